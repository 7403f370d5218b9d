#!/usr/bin/env bash
# Our stack beside the others, interleaved, round by round.
#
#   benches/run.sh [OPTIONS OF anabranch bench]        writes bench.json and bench.txt into target/bench
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
"$here/build-peers.sh"
cargo build --release --locked
target=${CARGO_TARGET_DIR:-target}
peers=()
for name in dcsctp usrsctp sctp-proto quinn limit; do
    [ ! -x "$target/bench/peer-$name" ] || peers+=(--peer "$name=$target/bench/peer-$name")
done
"$target/release/anabranch" bench "${peers[@]}" --out "$target/bench" "$@"
