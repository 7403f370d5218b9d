#!/bin/sh
# Makes demo.ts and the frame list that the tests compare with. Needs ffmpeg with libx264.
# Usage: clips/make.sh [OUTPUT]    (default: demo.ts beside this script)
#
# 96 frames at 25 per second last exactly as long as 180 AAC frames at 48 kHz (3.84 s), so the
# clip can be repeated without a gap or an overlap in either track.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/demo.ts}

ffmpeg -hide_banner -loglevel error -y \
  -f lavfi -i "testsrc2=size=1280x720:rate=25:duration=3.84" \
  -f lavfi -i "mandelbrot=size=1280x720:rate=25:end_scale=0.02:end_pts=400" \
  -f lavfi -i "sine=frequency=330:beep_factor=3:sample_rate=48000:duration=3.8186667" \
  -filter_complex "[0:v]format=yuv420p[a];[1:v]format=yuv420p[b];[a][b]blend=all_mode=average:shortest=1,noise=alls=22:allf=t:all_seed=7,format=yuv420p[v]" \
  -map "[v]" -map 2:a \
  -c:v libx264 -preset medium -profile:v high -threads 1 \
  -b:v 7270k -minrate 7270k -maxrate 7270k -bufsize 1100k \
  -x264-params "keyint=24:min-keyint=24:scenecut=0:open-gop=0:bframes=2:b-adapt=0:b-pyramid=none:nal-hrd=cbr:force-cfr=1:sync-lookahead=0:lookahead-threads=1" \
  -c:a aac -b:a 128k -ac 2 \
  -bitexact -map_metadata -1 \
  -f mpegts -muxrate 8000k -muxdelay 0.5 -muxpreload 0.5 -pcr_period 20 -pat_period 0.2 -mpegts_flags +pat_pmt_at_frames \
  "$out"

# One line per video frame: presentation time stamp (90 kHz) and picture type.
ffprobe -v error -select_streams v:0 -show_entries frame=pts,pict_type -of csv=p=0 "$out" \
  | tr -d "\r" | sed -e "s/,*$//" -e "/^$/d" > "${out%.ts}.frames.csv"
