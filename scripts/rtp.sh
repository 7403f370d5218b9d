#!/usr/bin/env bash
# MPEG-TS in RTP through a network that reorders and repeats, without root: ffmpeg encodes and sends RTP through a relay
# of `anabranch emulate` to `anabranch send rtp://`, `anabranch recv` gives RTP to ffmpeg, which decodes. Beside it, as
# the control, the very same stream through a relay with the same fate to a `send` that does not wait for packets that
# were overtaken. Prints what was out of order and what could be decoded. Takes less than a minute.
#
#   scripts/rtp.sh        needs ffmpeg and python3; KEEP=1 keeps the logs
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need rtp ffmpeg python3
build
scratch
trap clean_up EXIT

seconds=10
names=(ordered control)
waits=(30 0)
relays=() senders=() receivers=() decoders=()

for i in 0 1; do
    name=${names[$i]}
    # The ports behind `relay` and `out` are RTCP's.
    relay=$(free_port $((i * 8))) input=$(free_port $((i * 8 + 2))) port=$(free_port $((i * 8 + 3)))
    out=$(free_port $((i * 8 + 4)))
    relays+=("$relay")
    # The seed makes both relays choose the same packets, which overtake others or come twice.
    start "relay-$name" "$anabranch" emulate --seed 5 --stats none \
        --path "name in listen 127.0.0.1:$relay to 127.0.0.1:$input delay 10ms reorder 1% duplicate 1%"
    start "recv-$name" "$anabranch" recv "anabranch://127.0.0.1:$port" "rtp://127.0.0.1:$out" --once
    receivers+=("$started")
    # Of `-i rtp://…` ffmpeg loses what comes while it opens its socket anew; an SDP file tells it all beforehand.
    printf 'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=video %s RTP/AVP 33\n' "$out" >"$work/$name.sdp"
    start "decoder-$name" ffmpeg -nostdin -hide_banner -loglevel warning -progress "$work/decoder-$name.progress" \
        -protocol_whitelist file,udp,rtp -i "$work/$name.sdp" -map 0:v -fps_mode passthrough -f null -
    decoders+=("$started")
    sleep 0.5
    start "send-$name" "$anabranch" send "rtp://127.0.0.1:$input?reorder=${waits[$i]}" \
        "anabranch://127.0.0.1:$port?latency=500" -v
    senders+=("$started")
done
sleep 1
start encoder ffmpeg -nostdin -hide_banner -loglevel error -progress "$work/encoder.progress" \
    -re -f lavfi -i "testsrc2=size=640x360:rate=25" -t $seconds -map 0:v -pix_fmt yuv420p \
    -c:v libx264 -preset ultrafast -tune zerolatency -g 25 -b:v 2500k -maxrate 2500k -bufsize 500k \
    -f tee "[f=rtp_mpegts]rtp://127.0.0.1:${relays[0]}|[f=rtp_mpegts]rtp://127.0.0.1:${relays[1]}"
finish encoder "$started" $((seconds + 10))
sleep 1
for i in 0 1; do
    interrupt "send-${names[$i]}" "${senders[$i]}"
    finish "send-${names[$i]}" "${senders[$i]}" 10 0 130
    finish "recv-${names[$i]}" "${receivers[$i]}" 10
    interrupt "decoder-${names[$i]}" "${decoders[$i]}"
    finish "decoder-${names[$i]}" "${decoders[$i]}" 20 0 69 255
done

last_of() {
    sed -n 's/^frame=//p' "$1" | tail -n 1
}

encoded=$(last_of "$work/encoder.progress")
for i in 0 1; do
    name=${names[$i]}
    # `grep -c` fails when it counts none.
    echo "reorder=${waits[$i]}: $(grep -o 'RTP input: .*' "$work/send-$name.log")"
    echo "reorder=${waits[$i]}: $(last_of "$work/decoder-$name.progress") of $encoded frames decoded," \
        "$(grep -c '^\[h264' "$work/decoder-$name.log" || true) complaints of the decoder"
done
whole=$(last_of "$work/decoder-ordered.progress")
# The decoder is interrupted, and leaves what it still holds: fewer frames than these.
[ $((whole + 5)) -ge "$encoded" ] || die "a stream whose packets all arrived is not whole"
if grep -q '^\[h264' "$work/decoder-ordered.log"; then die "the decoder complains, see KEEP=1"; fi
grep -q '^\[h264' "$work/decoder-control.log" || die "the network did nothing: the control is whole too"
