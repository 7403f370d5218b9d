#!/usr/bin/env bash
# Builds the stacks that ours is measured beside, from the package registries.
#
#   benches/build-peers.sh            into target/bench; needs cargo, a C compiler, libusrsctp-dev for usrsctp
#
# Makes target/bench/peer-NAME for each: a program called as TEST TRANSPORT SIZE COUNT SEED.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${CARGO_TARGET_DIR:-$here/../target}/bench
mkdir -p "$out"
out=$(cd "$out" && pwd)

build() {
    (cd "$1" && CARGO_TARGET_DIR="$2" cargo build --release --locked "${@:3}")
}

# wrapper NAME PROGRAM STACK: puts the stack's name behind the test, where the program wants it
wrapper() {
    printf '#!/bin/sh\nt=$1; shift\nexec "%s" "$t" "%s" "$@"\n' "$2" "$3" >"$out/peer-$1"
    chmod +x "$out/peer-$1"
}

build "$here/peers" "$out/plain"
for stack in sctp-proto quinn limit; do
    wrapper "$stack" "$out/plain/release/peers" "$stack"
done

# dcsctp formats a hex dump of every packet although nothing is logged, which costs sixteen times its real work. A copy that
# asks first is the fair one to compare with.
crate=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 2 -type d -name dcsctp-0.1.16 | head -1)
rm -rf "$out/dcsctp" "$out/patched-src"
cp -r "$crate" "$out/dcsctp"
rm -f "$out/dcsctp/.cargo-checksum.json"
sed -i 's/^    pub fn log_packet(.*{$/&\n        if !log::log_enabled!(log::Level::Info) { return; }/' "$out/dcsctp/src/lib.rs"
cp -r "$here/peers" "$out/patched-src"
(cd "$out/patched-src" && CARGO_TARGET_DIR="$out/patched" cargo build --release \
    --config "patch.crates-io.dcsctp.path=\"$out/dcsctp\"")
wrapper dcsctp "$out/patched/release/peers" dcsctp

if echo '#include <usrsctp.h>' | cc -E - >/dev/null 2>&1; then
    cc -O2 -Wall -o "$out/peer-usrsctp" "$here/usrsctp/usr.c" -lusrsctp -lpthread
else
    echo "SKIPPED usrsctp: libusrsctp-dev is not installed"
fi
