#!/usr/bin/env bash
# Simulated seconds per second of CPU beside ns-2.35's (Debian package ns2), tracing off in both.
#
#   experiments/crosscheck-ns2/speed/speed.sh [ROUNDS]
#
# CPU is user + system of the whole process; nothing is subtracted. Rounds (5) of both are interleaved. Exit code: 0,
# 1 when a bound is missed or the two do not simulate the same goodput within 10 %, 2 when something is missing.
# ANABRANCH names the program; without it the release build is made and used.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
command -v ns > /dev/null || { echo "speed.sh: ns-2 is missing: apt install ns2" >&2; exit 2; }
command -v python3 > /dev/null || { echo "speed.sh: python3 is missing" >&2; exit 2; }
if [ -z "${ANABRANCH:-}" ]; then
    (cd "$root" && cargo build --release -p anabranch)
    ANABRANCH=$root/target/release/anabranch
fi
exec python3 "$here/speed.py" "$ANABRANCH" "${1:-5}"
