# shellcheck shell=bash
# What the scripts beside this file share. Read by them, not run.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The program under test; another one by ANABRANCH=PATH.
anabranch=${ANABRANCH:-${CARGO_TARGET_DIR:-$repo/target}/release/anabranch}

children=()
work=

# Ends what was started and removes the scratch folder, unless KEEP=1.
clean_up() {
    local pid
    for pid in "${children[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${children[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    children=()
    if [ -n "$work" ]; then
        if [ "${KEEP:-0}" = 1 ]; then echo "kept: $work"; else rm -rf "$work"; fi
    fi
}

# scratch: a folder for this run in $work.
scratch() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/anabranch.XXXXXX")
}

# need NAME TOOL...: ends the script as skipped when a tool is missing.
need() {
    local name=$1 tool
    shift
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || skip "$name" "$tool is not installed"
    done
}

# skip NAME WHY: says so in the form that CI collects, and ends the script.
skip() {
    echo "SKIPPED $1: $2"
    exit 0
}

die() {
    echo "$0: $*" >&2
    exit 1
}

# await WHAT COMMAND...: until it succeeds, for 10 s.
await() {
    local what=$1 waited=0
    shift
    until "$@"; do
        [ $waited -lt 100 ] || die "$what"
        sleep 0.1
        waited=$((waited + 1))
    done
}

# Builds the program unless it is there already.
build() {
    if [ -z "${ANABRANCH:-}" ]; then
        cargo build --release --quiet --manifest-path "$repo/Cargo.toml" --bin anabranch
    fi
    [ -x "$anabranch" ] || die "there is no program $anabranch"
}

# start NAME COMMAND...: runs a command beside the script; its output goes to $work/NAME.log. Sets $started.
start() {
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 </dev/null &
    started=$!
    children+=("$started")
}

# interrupt NAME PID: Ctrl-C for a child, which must still run.
interrupt() {
    kill -INT "$2" 2>/dev/null && return
    tail -n 5 "$work/$1.log" >&2
    die "$1 ended too early"
}

# finish NAME PID SECONDS [CODE...]: waits for a child and checks how it ended (0 by default).
finish() {
    local name=$1 pid=$2 seconds=$3 code=0 waited=0 fine
    shift 3
    while kill -0 "$pid" 2>/dev/null; do
        if [ $waited -ge $((seconds * 10)) ]; then
            tail -n 5 "$work/$name.log" >&2
            die "$name does not end"
        fi
        sleep 0.1
        waited=$((waited + 1))
    done
    wait "$pid" || code=$?
    for fine in "${@:-0}"; do
        [ "$code" != "$fine" ] || return 0
    done
    tail -n 5 "$work/$name.log" >&2
    die "$name ended with exit code $code"
}

# A UDP port that is free now; $1 keeps several in one script apart.
free_port() {
    python3 - "$1" <<'PY'
import os, socket, sys
port = 20000 + (os.getppid() * 16 + int(sys.argv[1])) % 12000
while True:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", port))
        break
    except OSError:
        port += 16
print(port)
PY
}

# encoder_command SECONDS PORT: a live picture with sound as a transport stream over UDP, in $command.
encoder_command() {
    command=(ffmpeg -nostdin -hide_banner -loglevel error -progress "$work/encoder.progress"
        -re -f lavfi -i "testsrc2=size=640x360:rate=25" -re -f lavfi -i "sine=frequency=330:sample_rate=48000"
        -t "$1" -pix_fmt yuv420p -c:v libx264 -preset ultrafast -tune zerolatency -g 25
        -b:v 2500k -maxrate 2500k -bufsize 500k -c:a aac -b:a 128k
        -f mpegts "udp://127.0.0.1:$2?pkt_size=1316")
}

# decoder_command PORT: decodes what arrives there until nothing has come for six seconds, in $command.
decoder_command() {
    command=(ffmpeg -nostdin -hide_banner -loglevel warning -progress "$work/decoder.progress"
        -i "udp://127.0.0.1:$1?timeout=6000000&fifo_size=50000&overrun_nonfatal=1"
        -map 0:v -map 0:a -fps_mode passthrough -f null -)
}
