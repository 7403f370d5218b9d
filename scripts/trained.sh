#!/usr/bin/env bash
# Builds the program and the preload library as they are released: twice, and between the two a run whose counts tell the
# compiler which code is used and which way it branches (profile-guided optimisation). benches/README.md has what that is worth.
#
#   scripts/trained.sh [TARGET]      leaves both in target/trained/TARGET/release
#
# TARGET is one whose programs run here; without one it is this machine's.
#
# Needs rustup's llvm-tools. What trains is scripts/train.sh: transfers, messages, handshakes and simulations of other sizes than
# those that benchmarks measure.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
into=$(realpath -m "${CARGO_TARGET_DIR:-target}")/trained
tools=$(rustc --print sysroot)/lib/rustlib/$host/bin
if [ ! -x "$tools/llvm-profdata" ] || [ ! -x "$tools/llvm-nm" ]; then
    echo "scripts/trained.sh needs llvm-profdata and llvm-nm: rustup component add llvm-tools" >&2
    exit 2
fi
# Both builds have the same settings and the same packages: a package that needs another form of a library changes the names
# of all functions in it, and counts are found by name.
packages=(--locked --release --target "$target" -p anabranch -p anabranch-sockets)
counts=$into/counts
rm -rf "$counts" "$into"/counts-*.profdata
CARGO_TARGET_DIR=$into/counting RUSTFLAGS="-Cprofile-generate=$counts" cargo build "${packages[@]}"
scripts/train.sh "$into/counting/$target/release/anabranch"
"$tools/llvm-profdata" merge -o "$into/counts.profdata" "$counts"
# Under a name of its own, or cargo would not see that it is another profile.
profile=$into/counts-$(cksum <"$into/counts.profdata" | cut -d ' ' -f 1).profdata
mv "$into/counts.profdata" "$profile"
CARGO_TARGET_DIR=$into RUSTFLAGS="-Cprofile-use=$profile" cargo build "${packages[@]}"

program=$into/$target/release/anabranch
# The engine's functions in a list of symbols or of counts.
functions() {
    awk 'match($0, /[A-Za-z0-9_$.]*16anabranch_engine[A-Za-z0-9_$.]*/) { print substr($0, RSTART, RLENGTH) }' |
        sed 's/\.llvm\..*//; s/^_*//' | sort -u
}
"$tools/llvm-nm" "$program" | awk '$(NF - 1) ~ /^[tTwW]$/' | functions >"$into/functions"
"$tools/llvm-profdata" show --all-functions "$profile" | functions >"$into/counted"
of=$(wc -l <"$into/functions")
fit=$(comm -12 "$into/functions" "$into/counted" | wc -l)
if [ $((fit * 2)) -le "$of" ]; then
    echo "scripts/trained.sh: of the engine's $of functions (a stripped program has none) only $fit are in the counts," \
        "so the program is as if untrained" >&2
    exit 1
fi
echo "$program"
