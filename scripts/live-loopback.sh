#!/usr/bin/env bash
# A live stream over two emulated paths on one machine, without root: ffmpeg encodes, `anabranch send` takes the
# stream through two relays of `anabranch emulate` to `anabranch recv`, ffmpeg decodes. The first path is cut without
# a word in the middle and comes back. Prints the take-over time and the frames lost.
#
#   scripts/live-loopback.sh        needs ffmpeg and python3; KEEP=1 keeps the statistics and logs
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need live-loopback ffmpeg python3
build
scratch
trap clean_up EXIT

seconds=20
in_port=$(free_port 1) out_port=$(free_port 2) port=$(free_port 3) relay_1=$(free_port 4) relay_2=$(free_port 5)

start emulate "$anabranch" emulate \
    --path "name wlan listen 127.0.0.1:$relay_1 to 127.0.0.1:$port rate 6mbit delay 30ms down.delay 5ms limit 40 at 9s down at 13s up" \
    --path "name 3g listen 127.0.0.1:$relay_2 to 127.0.0.1:$port rate 6mbit delay 80ms down.delay 5ms limit 40"
start recv "$anabranch" recv "anabranch://127.0.0.1:$port" "udp://127.0.0.1:$out_port" --once \
    -J --stats-file "$work/recv.json"
recv=$started
sleep 1
start send "$anabranch" send "udp://127.0.0.1:$in_port" "anabranch://127.0.0.1:$port?latency=500" \
    --path "127.0.0.1,via=127.0.0.1:$relay_1" --path "127.0.0.2,via=127.0.0.1:$relay_2" \
    -J --stats-file "$work/send.json"
send=$started
sleep 1
decoder_command "$out_port"
start decoder "${command[@]}"
decoder=$started
encoder_command $seconds "$in_port"
start encoder "${command[@]}"
finish encoder "$started" $((seconds + 10))
sleep 1
interrupt send "$send"
finish send "$send" 10 0 130
finish recv "$recv" 10
finish decoder "$decoder" 15

echo "path 127.0.0.1 was cut 9 s after the emulator began, and restored 4 s later"
python3 "$repo/scripts/live_report.py" "$work" --left 127.0.0.1 --returned 127.0.0.1
