#!/usr/bin/env bash
# Path MTU discovery by probes on a stream between network namespaces, read from a capture of the network in the middle.
# docs/PATH-MTU.md has the figures.
#
#   scripts/path-mtu.sh
#
# `anabranch send` takes a steady stream of bytes over two paths to `anabranch recv`. Beyond its first hop, which has an
# MTU of 1,500, path 1 takes packets of 1,300 bytes, without a report: ICMP is dropped. In the middle path 2 shrinks
# from 1,500 to 1,260 in the same way. What came must be what was sent, and it must have come all the time. With
# `--mtu none` (the control) no packet is larger than the program's own size. Needs root, iproute2, nftables, tcpdump and
# python3; KEEP=1 keeps captures and logs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip path-mtu "needs root"
need path-mtu ip nft tcpdump python3
build
scratch

near=anab-mn$$ mid=anab-mm$$ far=anab-mf$$
remove_all() {
    clean_up
    local ns
    for ns in $near $mid $far; do ip netns del $ns 2>/dev/null || true; done
}
trap remove_all EXIT

# Path I: 10.73.I.1 of the sender, the middle, 10.74.I.1 of the receiver.
ip netns add $mid 2>"$work/ip.log" || skip path-mtu "network namespaces are not allowed here: $(cat "$work/ip.log")"
ip netns add $near
ip netns add $far
ip netns exec $mid sysctl -qw net.ipv4.ip_forward=1
# end NS OWN OTHER SIDE I: one end of path I, and what the middle has there.
end() {
    # The capture shall show single packets, not what segmentation offload makes one of.
    ip -n $mid link add "$4$5" gso_max_segs 1 type veth peer name "link$5" netns "$1" gso_max_segs 1
    ip -n $mid addr add "10.7$2.$5.254/24" dev "$4$5"
    ip -n $mid link set "$4$5" up
    ip -n "$1" addr add "10.7$2.$5.1/24" dev "link$5"
    ip -n "$1" link set lo up
    ip -n "$1" link set "link$5" up
    ip -n "$1" route add "10.7$3.$5.0/24" via "10.7$2.$5.254" dev "link$5"
}
for i in 1 2; do
    end $near 3 4 n $i
    end $far 4 3 f $i
done
for ns in $near $mid $far; do
    ip netns exec $ns sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done'
done
ip netns exec $mid nft -f - <<EOF
table ip hole {
    chain out {
        type filter hook output priority 0
        icmp type destination-unreachable drop
    }
}
EOF
# shrink I BYTES: from the middle on, path I takes no larger packets.
shrink() { ip -n $mid link set "f$1" mtu "$2"; }

# 750,000 bytes a second for $1 seconds, and a copy in $2: what a live source does.
source_of='
import random, sys, time
seconds, copy, own = int(sys.argv[1]), open(sys.argv[2], "wb"), random.Random(1)
begun = time.monotonic()
for tick in range(seconds * 50):
    data = own.randbytes(15_000)
    copy.write(data)
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    time.sleep(max(0.0, begun + (tick + 1) * 0.02 - time.monotonic()))
'

port=9899 failed=0
# stream NAME SECONDS SHRINK OPTION...: a stream, during which path 2 shrinks after SHRINK seconds (0: never), and a row.
stream() {
    local name=$1 seconds=$2 after=$3 shrunk=0 tap recv send
    shift 3
    shrink 1 1300
    shrink 2 1500
    start "tap-$port" ip netns exec $mid tcpdump -U -s 128 -i any -w "$work/$port.pcap" ip
    tap=$started
    await "tcpdump does not begin" grep -qs listening "$work/tap-$port.log"
    start "recv-$port" ip netns exec $far "$anabranch" recv "anabranch://:$port" "$work/came-$port" --once "$@"
    recv=$started
    await "the receiver does not begin" ip netns exec $far sh -c "ss -uln | grep -q ':$port '"
    python3 -c "$source_of" "$seconds" "$work/sent-$port" |
        ip netns exec $near "$anabranch" send - "anabranch://10.74.1.1:$port" --mode file \
            --path link1 --path "link2,via=10.74.2.1:$port" "$@" >"$work/send-$port.log" 2>&1 &
    send=$!
    children+=("$send")
    if [ "$after" != 0 ]; then
        sleep "$after"
        shrunk=$(date +%s.%N)
        shrink 2 1260
    fi
    finish "send-$port" "$send" 30
    finish "recv-$port" "$recv" 10
    kill -INT "$tap" && wait "$tap" || true
    cmp "$work/sent-$port" "$work/came-$port" || { echo "WRONG: $name: what came is not what was sent"; failed=1; }
    # shellcheck disable=SC2046
    python3 "$repo/scripts/path_mtu.py" "$name" "$work/$port.pcap" "$shrunk" \
        $(ip -n $mid -o link | sed -n 's/^\([0-9]*\): \([nf][12]\)[@:].*/\2=\1/p') || failed=1
    port=$((port + 1))
}

stream "control" 4 0 --mtu none
# The search on path 1 waits a second for each probe that is lost, nine of them; then both paths carry data of its size.
stream "--mtu auto" 26 14 --mtu auto
[ $failed = 0 ] || die "a packet, a size or the content is not as it should be"
