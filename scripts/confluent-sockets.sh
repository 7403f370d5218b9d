#!/usr/bin/env bash
# One engine: what a stream loses over the networks of Becke et al. 2013's scenario B, on real sockets through the emulator and
# in the simulator, sender by sender.
#
#   scripts/confluent-sockets.sh [RUNS] [SENDER...]
#
# RUNS (10) of 40 s on real sockets for each of SENDER (single, round robin, ConSN, live), two at a time, beside the twenty
# seeds of the simulator: 14 minutes in all. An idle emulator beside each run is the control, and a run beside which it failed
# is done again. SCENARIO=a is the other network, SCENARIO=clip the clip of the demo over that of B. Printed are both means,
# and the 95 % interval of their difference, in points of the share of packets that were late or never came: "same" where it
# includes 0 or lies within 1 point, "not shown" where it is wider than 2 points to either side. OUT=FILE keeps every value.
# Exit code 1 where a difference is neither.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-10}
senders=("${@:2}")
[ ${#senders[@]} -gt 0 ] || senders=(single "round robin" ConSN live)
program=${ANABRANCH:-target/release/anabranch}
[ -x "$program" ] || cargo build --release -p anabranch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for sender in "${senders[@]}"; do
    rm -f "$folder/one.csv"
    # What lies outside of an interval for single metrics is not asked here.
    "$program" lab emulate "confluent-scheduling/${SCENARIO:-b}" --at "sender=$sender" --runs "$runs" \
        ${SEEDS:+--seeds "$SEEDS"} --out "$folder/one.csv" >"$folder/said" || [ $? = 1 ] || { cat "$folder/said"; exit 3; }
    [ -s "$folder/one.csv" ] || { echo "no values of $sender" >&2; exit 1; }
    cat "$folder/one.csv" >>"$folder/all.csv"
done
[ -z "${OUT:-}" ] || cp "$folder/all.csv" "$OUT"
python3 scripts/confluent_sockets.py "$folder/all.csv"
