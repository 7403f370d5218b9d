#!/usr/bin/env bash
# The anchor of the sparse messages on real sockets, held against the simulator: 100 bytes every 250 ms, a round trip of
# 100 ms, 5 % of the data lost, profile low-latency, for ten minutes through the emulator.
#
#   scripts/anchor-live.sh [RUNS]
#
# RUNS (3) on real sockets at a time; the simulator runs 40 seeds (SEEDS) of the same length (DURATION, 600s). SENDER is the
# point of the scenario's sweep that is run, "low-latency". The control is an idle emulator beside each run: what it was late by
# is the emulator's own. Exit codes are those of `anabranch lab emulate`: 1 when a value lies outside, 3 when the machine is too
# busy; where the user may, the sockets are served before all else (SCHED_FIFO), as a network is.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-3}
program=${ANABRANCH:-target/release/anabranch}
[ -x "$program" ] || cargo build --release -p anabranch
first=()
if chrt -f 10 true 2>/dev/null; then first=(chrt -f 10); fi
exec "${first[@]}" "$program" lab emulate messages/anchor --at "sender=${SENDER:-low-latency}" --at jitter=0ms \
    --set "duration=${DURATION:-600s}" --runs "$runs" --jobs "$runs" --seeds "${SEEDS:-40}" ${OUT:+--out "$OUT"}
