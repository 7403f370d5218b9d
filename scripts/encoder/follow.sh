#!/usr/bin/env bash
# A real x264 over two emulated paths that carry less than it wants, without root: once it follows what the paths carry,
# once it does not. Needs ffmpeg, python3 and GStreamer with x264enc for the system's python3. Prints the frames lost.
#
#   scripts/encoder/follow.sh [SECONDS]     45 by default; KEEP=1 keeps what was received, statistics and logs
#
# The paths carry 4 + 3 Mbit/s, from a third of the time to two thirds 2 + 1 Mbit/s; the encoder makes up to 6 Mbit/s.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

seconds=${1:-45}
python=${PYTHON:-/usr/bin/python3}
need encoder-follow ffmpeg ffprobe python3 "$python"
"$python" - 2>/dev/null <<'PY' || skip encoder-follow "GStreamer with x264enc and mpegtsmux is not installed for $python"
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
assert all(Gst.ElementFactory.find(n) for n in ("x264enc", "mpegtsmux", "udpsink"))
PY
build
scratch
trap clean_up EXIT

third=$((seconds / 3))
one_run() {
    local name=$1 input far near_a near_b
    shift
    input=$(free_port 1) far=$(free_port 2) near_a=$(free_port 3) near_b=$(free_port 4)
    start "$name-emulate" "$anabranch" emulate \
        --path "listen 127.0.0.1:$near_a to 127.0.0.1:$far rate 4mbit delay 30ms limit 200 at ${third}s rate 2mbit at $((2 * third))s rate 4mbit" \
        --path "listen 127.0.0.1:$near_b to 127.0.0.1:$far rate 3mbit delay 50ms limit 200 at ${third}s rate 1mbit at $((2 * third))s rate 3mbit"
    local relay=$started
    start "$name-recv" "$anabranch" recv "anabranch://127.0.0.1:$far" "$work/$name.ts" -J --stats-file "$work/$name-recv.json"
    local recv=$started
    # The moving noise cannot be compressed: the encoder makes what it is allowed to.
    local encoder="exec $python $repo/scripts/encoder/gst_follow.py --to 127.0.0.1:$input --most 6000 --least 400 $* \
        --source 'videotestsrc is-live=true pattern=snow ! video/x-raw,width=640,height=360,framerate=25/1'"
    start "$name-send" "$anabranch" send "udp://127.0.0.1:$input" "anabranch://127.0.0.1:$far?latency=500" \
        --path "127.0.0.1,via=127.0.0.1:$near_a" --path "127.0.0.2,via=127.0.0.1:$near_b" \
        --duration "${seconds}s" --on-rate "$encoder" -J --stats-file "$work/$name-send.json"
    finish "$name-send" $started $((seconds + 30))
    finish "$name-recv" $recv 30
    kill -INT "$relay"
    # It ends by the signal, which is no failure.
    wait "$relay" || true
}
one_run follows
one_run fixed --fixed

"$python" - "$work" <<'PY'
import json, subprocess, sys
work, lost = sys.argv[1], {}
for name in ("follows", "fixed"):
    totals = [json.loads(l) for l in open(f"{work}/{name}-recv.json")][-1]["stream"]
    sent = [r["stream"] if "stream" in r else r for r in map(json.loads, open(f"{work}/{name}-send.json"))
            if r["event"] in ("stream", "totals")][-1]
    decoded = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                              "stream=nb_read_frames", "-of", "csv=p=0", f"{work}/{name}.ts"], capture_output=True, text=True)
    complaints = len(decoded.stderr.splitlines())
    lost[name] = totals["frames_unusable"] / max(totals["frames"], 1)
    print(f"{name:8} {totals['frames']} frames, {totals['frames_unusable']} unusable ({lost[name]:.2%}), "
          f"{sent['bytes'] * 8 / 1e6:.1f} Mbit sent, decoder: {decoded.stdout.split()[0].strip(',') if decoded.stdout.split() else 0} frames, {complaints} complaints")
# A busy machine costs both of them frames.
sys.exit(0 if lost["fixed"] > 0.1 and lost["follows"] < lost["fixed"] / 4 else "follow.sh: following did not help as it should")
PY
