#!/usr/bin/env bash
# What the way back carries beside a live stream of 8 Mbit/s, over calm paths and over paths whose packets overtake each
# other: bytes of UDP payload that the emulator delivered towards the sender, as a share of those towards the receiver.
#
#   scripts/way-back.sh [--rounds 3]        needs ffmpeg, which makes the recording; exit code 1 above a bound
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need way-back ffmpeg python3
build
scratch
trap clean_up EXIT
# The clip eight times over, half a minute.
ffmpeg -loglevel error -stream_loop 7 -i "$repo/crates/media/clips/demo.ts" -map 0 -c copy -f mpegts "$work/long.ts"
python3 "$repo/scripts/way_back.py" --program "$anabranch" --clip "$work/long.ts" "$@"
