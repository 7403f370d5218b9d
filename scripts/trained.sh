#!/usr/bin/env bash
# Builds the program and the preload library as they are released: twice, and between the two a run whose counts tell the
# compiler which code is used and which way it branches (profile-guided optimisation). benches/README.md has what that is worth.
#
#   scripts/trained.sh [TARGET]      one whose programs run here, this machine's without one; leaves both in target/trained/TARGET/release
#
# Needs rustup's llvm-tools. What trains is scripts/train.sh: transfers, messages, handshakes and simulations of other sizes than
# those that benchmarks measure.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
into=$(realpath -m "${CARGO_TARGET_DIR:-target}")/trained
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if [ ! -x "$profdata" ]; then
    echo "scripts/trained.sh needs llvm-profdata: rustup component add llvm-tools" >&2
    exit 2
fi
counts=$into/counts
rm -rf "$counts"
# With the settings of the last build: counts of functions that were put together otherwise fit nothing.
CARGO_TARGET_DIR=$into/counting RUSTFLAGS="-Cprofile-generate=$counts" \
    cargo build --locked --release --target "$target" -p anabranch
scripts/train.sh "$into/counting/$target/release/anabranch"
"$profdata" merge -o "$into/counts.profdata" "$counts"
CARGO_TARGET_DIR=$into RUSTFLAGS="-Cprofile-use=$into/counts.profdata" \
    cargo build --locked --release --target "$target" -p anabranch -p anabranch-sockets
echo "$into/$target/release/anabranch"
