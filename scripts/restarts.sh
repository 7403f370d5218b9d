#!/usr/bin/env bash
# A live stream whose two ends are restarted, killed, stopped and late, twenty times in sum, over two emulated paths on
# one machine, without root. Prints for each what happened, after how many seconds the picture was back, and how many
# frames the viewer lost. Ends with 1 when it did not come back.
#
#   scripts/restarts.sh [--short]   needs python3; three minutes, or less than one; KEEP=1 keeps statistics and logs
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need restarts python3
build
scratch
trap clean_up EXIT
python3 "$repo/scripts/restarts.py" "$anabranch" "$repo/crates/media/clips/demo.ts" "$work" "$@"
