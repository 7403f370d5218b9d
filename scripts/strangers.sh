#!/usr/bin/env bash
# Strangers at the door: attacks by an SCTP peer that shares no code with ours (interop/strangers/peer.py) on a real
# `recv` or `tunnel --accept`, beside a real sender. For each: after how long the sender was served, memory beyond that at
# the beginning, open files, CPU, lines on standard error, and how long the program took to end after SIGTERM.
#
#   scripts/strangers.sh                  # the table, about a minute; exit code 1 when a row is a fault
#   scripts/strangers.sh --soak 2h        # flapping paths, senders killed and begun again, one attacker after another
#   ANABRANCH=path/to/anabranch scripts/strangers.sh
#
# Needs Python 3.9 and nothing else. All traffic stays on loopback.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ANABRANCH:-}" ]; then
    cargo build --quiet -p anabranch
    ANABRANCH=${CARGO_TARGET_DIR:-target}/debug/anabranch
fi
exec python3 interop/strangers/run.py "$ANABRANCH" "$@"
