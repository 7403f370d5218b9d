#!/usr/bin/env bash
# A live stream of 8 Mbit/s at a latency of 500 ms over two paths, by us and by others, judged by one tool.
#
#   scripts/rivals.sh [quick] [--tools "live rist ..."] [--networks "unlike dead ..."] [--runs N]
#
# Two network namespaces are joined by two TUN interfaces whose IP packets `anabranch emulate` carries, so that every tool
# meets the same links whatever protocol it speaks, and the kernel needs no netem. Each run has namespaces, links and
# programs of its own; runs of one network follow each other, tool by tool, over the same random numbers. Beside them stands
# `udp`: the same feeder and tap over perfect links and without a tool, which is what this machine does by itself.
#
# Every program is started anew when it ends, as a service manager does it. The connection is there before the stream begins.
# A packet is usable when it came out within the latency and GRACE milliseconds (200) after it went in, for all tools alike:
# SRT and RIST count their latency from the arrival over the network, whose slower path takes 160 ms.
#
# With PICTURE=1 a decoder judges, too: `anabranch quality` compares what was usable, in order, with what went in (lines in
# OUT/pictures.csv, a table at the end). Network `jump` is scenario B of Becke et al. 2013: a path of 6 Mbit/s, and one of 4
# with a jitter of 50 ms that reorders, whose delay jumps from 160 to 280 ms for a third of the time.
#
# Tools: live (and any other profile by its name), single (live over the first path alone), round-robin (cmt with turns),
# confluent-pdc (the confluent order with delay compensation), srt (over the first path alone, Debian's srt-tools),
# srt-broadcast, srt-backup (groups: srt-test-live of a libsrt built with ENABLE_BONDING and ENABLE_TESTING, in the search path
# or SRT_TEST_LIVE=PATH), rist (Debian's rist-tools; weights are set by hand to the rates), rist-double (everything over both),
# srtla (srtla_send and srtla_rec in the search path or SRTLA=FOLDER, with srt-tools), mptcp (a kernel with it; congestion
# control is the kernel's default). What is missing is skipped by name.
# Beside each run a control waits as the programs do. Where it is woken more than CONTROL (10) milliseconds late by the 99th
# percentile, the machine was busy: the run counts for nothing, is written to OUT/disturbed.csv and is made anew, twice at most.
# LATENCY (500) is that of the stream, milliseconds. FILM=1 codes the clip as a film is, with two B frames of three.
# Needs root, ffmpeg, iproute2, socat, python3. KEEP=1 keeps logs; results go to OUT (results/rivals).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

tools="live srt-broadcast srt-backup rist srtla mptcp" runs=2 form=full
networks="unlike dead loss-jitter collapse spike overload restart"
seconds=22
while [ $# -gt 0 ]; do
    case $1 in
        --*) [ $# -gt 1 ] || die "$1 needs a value; the head of this script has the usage" ;;
    esac
    case $1 in
        quick) form=quick runs=1 networks="unlike loss-jitter spike" seconds=10 ;;
        --tools) tools=$2; shift ;;
        --networks) networks=$2; shift ;;
        --runs) runs=$2; shift ;;
        *) die "there is no $1: quick, --tools, --networks or --runs" ;;
    esac
    shift
done
latency=${LATENCY:-500} grace=${GRACE:-200} rate=8000000
most_late=${CONTROL:-10}
# Seconds from the start of the links to that of the stream, and from the stream's end to that of a run.
lead=3 tail=2

[ "$(id -u)" = 0 ] || skip rivals "needs root"
need rivals ffmpeg ip socat python3
[ -c /dev/net/tun ] || skip rivals "the kernel has no TUN interfaces"
build
scratch
out=${OUT:-results/rivals}
mkdir -p "$out"

near=anab-ln$$ far=anab-lf$$
in_near=(ip netns exec $near)
in_far=(ip netns exec $far)
remove_network() {
    local pid
    for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${children[@]}"; do wait "$pid" 2>/dev/null || true; done
    children=()
    ip netns del $near 2>/dev/null || true
    ip netns del $far 2>/dev/null || true
}
remove_all() {
    remove_network
    clean_up
}
trap remove_all EXIT
ip netns add $near 2>"$work/ip.log" || skip rivals "network namespaces are not allowed here: $(cat "$work/ip.log")"
ip netns del $near

# network NAME: words of both links in $first and $second, rates for weights, and when the receiver is killed (in seconds of
# the stream) in $killed.
network() {
    local at=6
    [ $form = full ] || at=4
    from() { echo "$((lead + at + $1))s"; }
    first= second= weights=(10 10) killed=
    case $1 in
        unlike) first="rate 6mbit delay 30ms" second="rate 4mbit delay 160ms" weights=(6 4) ;;
        dead) first="rate 10mbit delay 30ms at $(from 0) down at $(from 10) up" second="rate 10mbit delay 40ms" ;;
        loss-jitter)
            first="rate 10mbit delay 30ms 10ms loss 2%" second="rate 10mbit delay 30ms 10ms loss 2%" ;;
        collapse)
            first="rate 8mbit delay 20ms at $(from 0) rate 1mbit at $(from 8) rate 8mbit"
            second="rate 10mbit delay 30ms" weights=(8 10) ;;
        spike)
            first="rate 10mbit delay 30ms at $(from 0) delay 930ms at $(from 2) delay 30ms"
            second="rate 10mbit delay 40ms at $(from 0) delay 930ms at $(from 2) delay 40ms" ;;
        overload) first="rate 3mbit delay 30ms" second="rate 3mbit delay 50ms" weights=(3 3) ;;
        restart) first="rate 10mbit delay 30ms" second="rate 10mbit delay 40ms" killed=$at ;;
        jump)
            first="rate 6.2688mbit delay 30ms 1333us distribution normal order free down.delay 1ms down.jitter 0ms up.loss 0.5%"
            second="rate 4.1792mbit delay 160ms 50ms distribution normal order free down.delay 1ms down.jitter 0ms"
            second+=" at $(from 0) up.delay 280ms at $(from $((seconds / 3))) up.delay 160ms" weights=(6 4) ;;
        perfect) ;;
        *) die "there is no network $1" ;;
    esac
    # What counts on the wire is the IP packet, which is all of the datagram here.
    first+=" " second+=" "
    if [ "$1" = perfect ]; then first="limit none" second="limit none"; return; fi
    first="limit 200 overhead 0 $first" second="limit 200 overhead 0 $second"
}

# Interfaces w1 and w2 in the sender's namespace, r1 and r2 in the receiver's, 10.77.I.2 and 10.77.I.1. The server has an
# address beside them to which both interfaces lead.
server=203.0.113.9
relay=$((21000 + $$ % 2000 * 4))
# lay SEED: both links. Sets $began, the machine's uptime then.
lay() {
    local i
    ip netns add $near
    ip netns add $far
    for i in 1 2; do
        start "far$i" socat -b 4096 "TUN,tun-name=r$i-$$,iff-no-pi" "UDP4-LISTEN:$((relay + i + 1)),bind=127.0.0.1,rcvbuf=4000000"
    done
    start emulator "$anabranch" emulate --seed "$1" --stats none \
        --path "name one listen 127.0.0.1:$relay to 127.0.0.1:$((relay + 2)) $first" \
        --path "name two listen 127.0.0.1:$((relay + 1)) to 127.0.0.1:$((relay + 3)) $second"
    began=$(cut -d' ' -f1 /proc/uptime)
    # Whoever sends to it before that hears of a closed port and ends, and its interface with it.
    for i in 0 1; do await "the emulator does not listen" listens $((relay + i)); done
    for i in 1 2; do
        start "near$i" socat -b 4096 "TUN,tun-name=w$i-$$,iff-no-pi" "UDP4:127.0.0.1:$((relay + i - 1)),rcvbuf=4000000"
    done
    for i in 1 2; do
        await "no interface w$i" test -e "/sys/class/net/w$i-$$"
        await "no interface r$i" test -e "/sys/class/net/r$i-$$"
        move $near "w$i" "10.77.$i.2/24"
        move $far "r$i" "10.77.$i.1/24"
        ip -n $near rule add from "10.77.$i.2" lookup "$((100 + i))"
        ip -n $near route add default dev "w$i" table "$((100 + i))"
    done
    ip -n $near link set lo up
    ip -n $far link set lo up
    ip -n $far addr add $server/32 dev lo
    ip -n $near route add default dev w1
    for ns in $near $far; do
        ip netns exec $ns sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 2 > $f; done'
    done
    # The way back opens with the first packet of each path.
    for i in 1 2; do "${in_near[@]}" bash -c "echo >/dev/udp/10.77.$i.1/9"; done
}

# listens PORT: a UDP socket is bound to it.
listens() {
    [ -n "$(ss -Huln "sport = :$1")" ]
}

# move NS NAME ADDRESS: a TUN interface into its namespace; the program that made it keeps it.
move() {
    ip link set "$2-$$" netns "$1" name "$2"
    ip -n "$1" addr add "$3" dev "$2"
    ip -n "$1" link set "$2" txqueuelen 1000 up
}

# keep NAME COMMAND...: a program that is started anew whenever it ends. Sets $started.
keep() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # for the inner shell
    start "$name" bash -c 'trap "kill -KILL \$child 2>/dev/null; exit 0" TERM
        while :; do "$@" & child=$!; echo $child >"$0"; wait $child; echo "ended with $?"; sleep 0.3; done' \
        "$work/$name.pid" "$@"
}

input=5001 output=5002
srt_test_live=${SRT_TEST_LIVE:-srt-test-live}
srt_live_transmit=${SRT_LIVE_TRANSMIT:-srt-live-transmit}
srtla_send=${SRTLA:+$SRTLA/}srtla_send srtla_rec=${SRTLA:+$SRTLA/}srtla_rec

# missing TOOL: why it cannot run here, or nothing.
missing() {
    local program
    case $1 in
        srt-broadcast | srt-backup) set -- "$srt_test_live" ;;
        srt) set -- "$srt_live_transmit" ;;
        rist*) set -- ristsender ristreceiver ;;
        srtla) set -- "$srt_live_transmit" "$srtla_send" "$srtla_rec" ;;
        mptcp)
            [ "$(cat /proc/sys/net/mptcp/enabled 2>/dev/null)" = 1 ] || echo "the kernel has no Multipath TCP"
            return ;;
        *) return ;;
    esac
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "$program is not installed"; return; }
    done
}

# receiver TOOL and sender TOOL start its programs. The one that "restart" kills is called receiver.
receiver() {
    local to=udp://127.0.0.1:$output
    case $1 in
        udp) ;;
        srt) keep receiver "${in_far[@]}" "$srt_live_transmit" "srt://:6000?mode=listener&lossmaxttl=40&latency=$latency" "$to" ;;
        srt-*) keep receiver "${in_far[@]}" "$srt_test_live" "srt://:6000?groupconnect=1&latency=$latency" "$to" ;;
        rist*) keep receiver "${in_far[@]}" ristreceiver -i "rist://@0.0.0.0:7000?buffer=$latency" -o "$to" ;;
        srtla)
            keep receiver "${in_far[@]}" "$srt_live_transmit" \
                "srt://127.0.0.1:6002?mode=listener&lossmaxttl=40&latency=$latency" "$to"
            keep srtla_rec "${in_far[@]}" "$srtla_rec" 5000 127.0.0.1 6002 ;;
        mptcp)
            "${in_far[@]}" ip mptcp limits set subflow 2 add_addr_accepted 2
            keep receiver "${in_far[@]}" python3 "$repo/scripts/rivals.py" mptcp-out 5003 127.0.0.1:$output ;;
        *)
            keep receiver "${in_far[@]}" "$anabranch" recv anabranch://:9899 "$to" --keep ${RECV_FLAGS:-} ;;
    esac
}
sender() {
    local from=udp://127.0.0.1:$input group
    case $1 in
        udp) ;;
        srt) keep sender "${in_near[@]}" "$srt_live_transmit" "$from" "srt://10.77.1.1:6000?latency=$latency" ;;
        srt-*)
            group="srt:////group?type=${1#srt-}&latency=$latency&nodes=10.77.1.1:6000,10.77.2.1:6000"
            keep sender "${in_near[@]}" "$srt_test_live" "$from" "$group" ;;
        rist*)
            [ "$1" = rist ] || weights=(0 0)
            keep sender "${in_near[@]}" ristsender -i "udp://127.0.0.1:$input" -b $latency \
                -o "rist://10.77.1.1:7000?buffer=$latency&weight=${weights[0]},rist://10.77.2.1:7000?buffer=$latency&weight=${weights[1]}" ;;
        srtla)
            printf '10.77.1.2\n10.77.2.2\n' >"$work/addresses"
            keep srtla_send "${in_near[@]}" "$srtla_send" 6001 $server 5000 "$work/addresses"
            sleep 0.5
            keep sender "${in_near[@]}" "$srt_live_transmit" "$from" "srt://127.0.0.1:6001?latency=$latency" ;;
        mptcp)
            "${in_near[@]}" ip mptcp limits set subflow 2 add_addr_accepted 2
            "${in_near[@]}" ip mptcp endpoint add 10.77.2.2 dev w2 subflow
            keep sender "${in_near[@]}" python3 "$repo/scripts/rivals.py" mptcp-in $input $server:5003 ;;
        *)
            local profile=$1 flags=(--path w1 --path w2)
            case $1 in
                single) profile=live flags=(--path w1) ;;
                round-robin) profile=cmt flags+=(--scheduler round_robin) ;;
                confluent-pdc) profile=confluent flags+=(--scheduler delay_compensation:inner=confluent) ;;
            esac
            keep sender "${in_near[@]}" "$anabranch" send "$from" "anabranch://$server:9899?latency=$latency&profile=$profile" \
                "${flags[@]}" --stats json --stats-interval 200ms ${SEND_FLAGS:-} ;;
    esac
}

# one NETWORK TOOL RUN: a line of results, from a run whose control passed.
one() {
    local again
    for again in 1 2 3; do
        disturbed=
        attempt "$@"
        [ -n "$disturbed" ] || return 0
        echo "the control of $1, $2, run $3 was woken $(cut -d, -f1 "$work/control") ms late: the run does not count"
    done
    echo "SKIPPED rivals $1 $2 run $3: this machine is too busy"
}

# attempt NETWORK TOOL RUN: sets $disturbed where the machine was busy.
attempt() {
    local to=127.0.0.1:$input at feeder results=$out/results.csv
    rm -f "$work"/*.log "$work/sent" "$work/tapped" "$work/control"
    network "$1"
    [ "$2" != udp ] || to=10.77.1.1:$output
    lay "$3"
    at=$(awk "BEGIN { print $began + $lead }")
    start control python3 "$repo/scripts/rivals.py" control "$work/control"
    start tap "${in_far[@]}" python3 "$repo/scripts/rivals.py" tap $output "$work/tapped"
    receiver "$2"
    sleep 0.3
    sender "$2"
    start feeder "${in_near[@]}" python3 "$repo/scripts/rivals.py" feed "$work/clip.ts" $rate "$to" "$at" "$work/sent"
    feeder=$started
    if [ -n "$killed" ] && [ -f "$work/receiver.pid" ]; then
        sleep "$(awk "BEGIN { print $at + $killed - $(cut -d' ' -f1 /proc/uptime) }")"
        kill -KILL "$(cat "$work/receiver.pid")"
    fi
    finish feeder "$feeder" $((seconds + lead + 5))
    sleep $tail
    remove_network
    [ -s "$work/control" ] || die "the control has noted nothing: $(cat "$work/control.log")"
    if ! awk -F, -v most="$most_late" '{ exit $1 > most }' "$work/control"; then
        disturbed=1 results=$out/disturbed.csv
    fi
    echo "$1,$2,$3,$(python3 "$repo/scripts/rivals.py" judge "$work/clip.ts" "$work/sent" "$work/tapped" $latency "$grace"),$(cat "$work/control")" |
        tee -a "$results"
    if [ -n "${PICTURE:-}" ] && [ -z "$disturbed" ]; then
        python3 "$repo/scripts/rivals.py" usable "$work/clip.ts" "$work/sent" "$work/tapped" $latency "$grace" "$work/usable.ts"
        "$anabranch" quality "$work/clip.ts" "$work/usable.ts" --json >"$work/quality.json" 2>"$work/quality.log" ||
            echo '{}' >"$work/quality.json"
        python3 "$repo/scripts/rivals.py" picture "$1" "$2" "$3" "$work/quality.json" >>"$out/pictures.csv"
    fi
    if [ "${KEEP:-0}" = 1 ]; then mkdir -p "$out/logs/$1-$2-$3" && cp "$work"/*.log "$out/logs/$1-$2-$3/"; fi
}

# The clip, filled up to a steady rate as for a broadcast. Each frame of noise passes for a new scene, so that x264 makes hardly
# any B frames of it: 22 s are 12 I, 526 P and 12 B frames. With FILM=1 it does not look for scenes: 11 I, 187 P and 352 B.
scenes=()
[ -z "${FILM:-}" ] || scenes=(-sc_threshold 0)
ffmpeg -nostdin -hide_banner -loglevel error -f lavfi -i "testsrc2=size=960x540:rate=25" -vf noise=alls=24:allf=t \
    -t "$seconds" -pix_fmt yuv420p -c:v libx264 -preset veryfast -bf 2 -g 50 "${scenes[@]}" -b:v 7400k -maxrate 7400k -bufsize 3700k \
    -f mpegts -muxrate $rate -flush_packets 0 "$work/clip.ts"

able=
for tool in $tools; do
    why=$(missing "$tool")
    if [ -n "$why" ]; then echo "SKIPPED rivals $tool: $why"; else able+=" $tool"; fi
done
echo network,tool,run,usable,clean,usable_after_2s,clean_after_2s,late,delay_p50_ms,delay_p99_ms,packets,frames,control_p99_ms,control_max_ms |
    tee "$out/results.csv" "$out/disturbed.csv"
echo network,tool,run,decodable,psnr_db,ssim >"$out/pictures.csv"
for run in $(seq "$runs"); do
    one perfect udp "$run"
    for name in $networks; do
        for tool in $able; do one "$name" "$tool" "$run"; done
    done
done
one perfect udp "$((runs + 1))"
python3 "$repo/scripts/rivals.py" table "$out/results.csv" | tee "$out/table.md"
if [ -n "${PICTURE:-}" ]; then python3 "$repo/scripts/rivals.py" pictures "$out/pictures.csv" | tee "$out/pictures.md"; fi
