#!/usr/bin/env bash
# Parity on real sockets through the emulator, held against the simulator's intervals.
#
#   scripts/erasure-sockets.sh [RUNS] [SENDER...]
#
# RUNS (3) of 20 s for each sender of erasure/loss (live as it is, and with a tenth of parity) with 4 % loss on both paths,
# shown after 150 ms; LOSS and PLAYOUT name others. The simulator runs all of the scenario's seeds. An idle emulator beside
# each run is the control. Exit codes are those of `anabranch lab emulate`: 1 when a value lies outside, 3 when the machine
# is too busy. Two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-3}
senders=("${@:2}")
[ ${#senders[@]} -gt 0 ] || senders=("live" "live, rlc 10 %")
program=${ANABRANCH:-target/release/anabranch}
[ -x "$program" ] || cargo build --release -p anabranch
code=0
for sender in "${senders[@]}"; do
    echo "== $sender"
    "$program" lab emulate erasure/loss --at "sender=$sender" --at "loss=${LOSS:-4%}" --at "playout=${PLAYOUT:-150ms}" \
        --set duration=20s --runs "$runs" ${SEEDS:+--seeds "$SEEDS"} ${OUT:+--out "$OUT-${sender//[^a-z0-9]/}.csv"} || code=$?
done
exit "$code"
