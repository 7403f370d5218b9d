#!/usr/bin/env bash
# What the program does before its last build so that the compiler learns what is used: half a minute of transfers, messages,
# round trips and handshakes in memory and over loopback, and the small forms of some experiments.
#
#   scripts/train.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:?usage: scripts/train.sh PROGRAM}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Other sizes, packets, windows and seeds than benches/run.sh has. The last number is bytes, of round trips and handshakes their
# count.
rows=(
    "bulk mem 1300 20000000" "bulk mem 24000 20000000" "bulk udp 1300 20000000" "bulk udp 24000 20000000"
    "small mem 140 20000000" "small udp 140 20000000" "pingpong mem 300 30000" "pingpong udp 300 10000"
    "setup mem 0 4000"
)
for window in 100000 700000; do
    for row in "${rows[@]}"; do
        # shellcheck disable=SC2086 # words of their own
        MTU=1350 RWND=$window SNDBUF=$window PROFILE=sctp "$program" bench row $row 7 >"$out/row.csv"
    done
done
for experiment in thin-streams confluent-scheduling media-streams cmt-cl-fd fairness examples messages; do
    "$program" lab run "$experiment" --quick --seeds 1 --out "$out/$experiment" >"$out/lab.txt" 2>&1 || {
        cat "$out/lab.txt" >&2
        exit 1
    }
done
