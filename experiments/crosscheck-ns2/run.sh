#!/bin/sh
# Runs the grid in ns-2.35 and in anabranch and tabulates both: results/crosscheck-ns2/crosscheck.csv.
# Options are those of crosscheck.py: run.sh --only tcp --seeds 10.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
cargo build --release --package anabranch --bin anabranch
exec python3 "$here/crosscheck.py" --program "$root/target/release/anabranch" "$@"
