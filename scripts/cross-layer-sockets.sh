#!/usr/bin/env bash
# One engine: goodput of a sender that reads its link layer's reports, on real sockets through the emulator and in the simulator.
#
#   scripts/cross-layer-sockets.sh [RUNS] [SENDER...]
#
# RUNS (10) of 60 s on real sockets for each of SENDER (cmt-cl-fd), those of the scenario cmt-cl-fd/live, two at a time,
# beside the twenty seeds of the simulator; once with the WLAN's reports, and once without, so that a sender that heard none
# shows: 11 minutes in all. REPORTS names other times between reports ("100ms none"). An idle emulator beside each run is the
# control, and a run beside which it failed is done again. Printed are both means, and the 95 % interval of their difference in
# per cent. OUT=FILE keeps every value. Exit code 1 where an interval is not within 5 %, 3 where the machine is too busy.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-10}
senders=("${@:2}")
[ ${#senders[@]} -gt 0 ] || senders=(cmt-cl-fd)
program=${ANABRANCH:-target/release/anabranch}
[ -x "$program" ] || cargo build --release -p anabranch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for sender in "${senders[@]}"; do
    for report in ${REPORTS:-100ms none}; do
        code=0
        rm -f "$folder/one.csv"
        "$program" lab emulate cmt-cl-fd/live --at "sender=$sender" --at "report=$report" --runs "$runs" \
            ${SEEDS:+--seeds "$SEEDS"} --out "$folder/one.csv" >"$folder/said" || code=$?
        # Whether single metrics lie outside their intervals is not asked here.
        [ "$code" -le 1 ] || { cat "$folder/said"; exit "$code"; }
        [ -s "$folder/one.csv" ] || { echo "no values of $sender, report $report" >&2; exit 1; }
        cat "$folder/one.csv" >>"$folder/all.csv"
        sed -n "/^control/p" "$folder/said"
    done
done
[ -z "${OUT:-}" ] || cp "$folder/all.csv" "$OUT"
python3 scripts/cross_layer_sockets.py "$folder/all.csv"
