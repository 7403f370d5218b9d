#!/usr/bin/env bash
# What parity is worth to a decoder: the demo's clip over two emulated paths that lose packets, by `anabranch send` with and
# without parity, and what `anabranch quality` says of it, for which ffmpeg decodes both streams.
#
#   scripts/erasure-picture.sh [RUNS]
#
# RUNS (3) of the clip, four times over (15 s) for each sender; run by run the links draw the same random numbers. LOSS (2%)
# and LATENCY (150 ms) name others. A latency that leaves no time for what is sent again is where parity counts: here a
# round trip is 80 and 120 ms. Needs ffmpeg and python3; no root. KEEP=1 keeps streams and logs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

runs=${1:-3} loss=${LOSS:-2%} latency=${LATENCY:-150} repeat=4
need erasure-picture ffmpeg python3
build
scratch
trap clean_up EXIT
ffmpeg -nostdin -loglevel error -stream_loop $((repeat - 1)) -i "$repo/crates/media/clips/demo.ts" -c copy -muxrate 8000k \
    -pcr_period 20 -f mpegts "$work/sent.ts" 2>"$work/ffmpeg.log" || die "ffmpeg: $(tail -n 1 "$work/ffmpeg.log")"

# one NAME SEED SETTING...: sends the clip once and writes NAME-SEED.json.
one() {
    local name=$1 seed=$2 port relay_1 relay_2 recv send emulator file="$work/$1-$2"
    shift 2
    port=$(free_port 1) relay_1=$(free_port 2) relay_2=$(free_port 3)
    start emulate "$anabranch" emulate --seed "$seed" --stats none \
        --path "name one listen 127.0.0.1:$relay_1 to 127.0.0.1:$port rate 10mbit delay 40ms up.loss $loss limit 100" \
        --path "name two listen 127.0.0.1:$relay_2 to 127.0.0.1:$port rate 10mbit delay 60ms up.loss $loss limit 100"
    emulator=$started
    start recv "$anabranch" recv "anabranch://127.0.0.1:$port" "file:$file.ts" --once --set repair=erasure
    recv=$started
    sleep 0.5
    start send "$anabranch" send "file:$work/sent.ts" "anabranch://127.0.0.1:$port?latency=$latency" --once \
        --path "127.0.0.1,via=127.0.0.1:$relay_1" --path "127.0.0.2,via=127.0.0.1:$relay_2" "$@" \
        -J --stats-file "$file.stats.json"
    send=$started
    finish send "$send" 60 0 130
    finish recv "$recv" 20
    # Ended by a signal of ours, it says so by its code.
    kill "$emulator" && wait "$emulator" || true
    "$anabranch" quality "$work/sent.ts" "$file.ts" --json >"$file.json" 2>"$file.log" || die "$(tail -n 1 "$file.log")"
}

for seed in $(seq "$runs"); do
    one copies "$seed"
    one parity "$seed" --set redundancy=erasure:rate=0.2
    one both "$seed" --set redundancy=erasure:rate=0.2,copies=1
done
python3 - "$work" "$runs" <<'PY'
import json, statistics, sys

folder, runs = sys.argv[1], int(sys.argv[2])
print(f"{'':<10}{'decodable %':>13}{'packets lost %':>16}{'PSNR dB':>10}{'SSIM':>9}")
for name in ("copies", "parity", "both"):
    of = [json.load(open(f"{folder}/{name}-{n}.json")) for n in range(1, runs + 1)]
    mean = lambda get: statistics.mean(x for x in map(get, of) if x is not None)
    print(f"{name:<10}{100 * mean(lambda q: q['decodable_share']):>13.1f}"
          f"{100 * mean(lambda q: q['video_packets_missing'] / q['video_packets']):>16.2f}"
          f"{mean(lambda q: q['psnr_db']):>10.1f}{mean(lambda q: q['ssim']):>9.4f}")
PY
