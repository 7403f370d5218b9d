#!/usr/bin/env bash
# Ten scenarios of weather on real sockets through the emulator, held against the simulator's intervals.
#
#   scripts/weather-sockets.sh [RUNS] [SCENARIO...]
#
# RUNS (3) of each on real sockets; the simulator runs all of a scenario's seeds. An idle emulator beside each run is the
# control. Exit codes are those of `anabranch lab emulate`: 1 when a value lies outside, 3 when the machine is too busy.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-3}
scenarios=("${@:2}")
if [ ${#scenarios[@]} -eq 0 ]; then
    scenarios=(spike-one-3s spike-both-600ms ramp-one collapse-one dark-back-one handover stopped-300ms loss-2-jitter-10
        mtu-600-one three-fading)
fi
program=${ANABRANCH:-target/release/anabranch}
[ -x "$program" ] || cargo build --release -p anabranch
exec "$program" lab emulate "${scenarios[@]/#/weather/}" --at sender=live --runs "$runs" ${SEEDS:+--seeds "$SEEDS"} \
    ${OUT:+--out "$OUT"}
