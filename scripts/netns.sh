#!/usr/bin/env bash
# A live stream between two network namespaces that are joined by two pairs of interfaces. Needs root, ffmpeg,
# iproute2 and python3; makes and removes its own namespaces. KEEP=1 keeps the statistics and logs.
#
#   scripts/netns.sh
#
# 1. ffmpeg encodes; `anabranch send --path wlan0 --path wwan0` takes the stream to `anabranch recv`; ffmpeg decodes.
#    wlan0 goes silent in the middle (packets vanish both ways, both ends still see a carrier) and comes back; then
#    wwan0 is switched off and on. Prints the take-over times and the frames lost.
# 2. The sender has one default route, over wlan0. Bytes counted per interface show that each --path leaves through
#    its own device all the same.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip netns "needs root"
need netns ffmpeg ip python3
build
scratch

near=anab-s$$
far=anab-r$$

remove_all() {
    clean_up
    ip netns del $near 2>/dev/null || true
    ip netns del $far 2>/dev/null || true
}
trap remove_all EXIT

ip netns add $near 2>"$work/ip.log" || skip netns "network namespaces are not allowed here: $(cat "$work/ip.log")"
ip netns add $far

# pair NAME PEER NET: NAME in the sender's namespace, PEER in the receiver's, 10.77.NET.2 and 10.77.NET.1.
pair() {
    ip -n $near link add "$1" type veth peer name "$2" netns $far
    ip -n $near addr add "10.77.$3.2/24" dev "$1"
    ip -n $far addr add "10.77.$3.1/24" dev "$2"
    ip -n $near link set "$1" up
    ip -n $far link set "$2" up
}
server=203.0.113.9
ip -n $near link set lo up
ip -n $far link set lo up
ip -n $far addr add $server/32 dev lo
pair wlan0 in0 1
pair wwan0 in1 2
# The only route to the server. Loose reverse-path filtering is what desktop and server distributions set.
ip -n $near route add default via 10.77.1.1
for ns in $near $far; do
    ip netns exec $ns sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 2 > $f; done'
    # Lets a rule come before local delivery: `silence` needs that.
    ip -n $ns rule add pref 100 lookup local
    ip -n $ns rule del pref 0
done

# Both become the program they are put before, so that its process number is the one we get.
in_near=(ip netns exec $near)
in_far=(ip netns exec $far)

# silence on|off NEAR FAR: what arrives at these interfaces vanishes, without an error to anybody.
silence() {
    local verb=add
    [ "$1" = on ] || verb=del
    ip -n $near rule $verb pref 10 iif "$2" blackhole
    ip -n $far rule $verb pref 10 iif "$3" blackhole
}

sent_bytes() { "${in_near[@]}" cat "/sys/class/net/$1/statistics/tx_bytes"; }

port=9899
echo "sender:"
ip -n $near -brief addr
ip -n $near route

echo
echo "== one live stream over wlan0 and wwan0"
in_port=5001 out_port=5002 seconds=24
start recv "${in_far[@]}" "$anabranch" recv "anabranch://:$port" "udp://127.0.0.1:$out_port" --once \
    -J --stats-file "$work/recv.json"
recv=$started
sleep 1
start send "${in_near[@]}" "$anabranch" send "udp://127.0.0.1:$in_port" "anabranch://$server:$port?latency=300" \
    --path wlan0 --path wwan0 -J --stats-file "$work/send.json"
send=$started
sleep 1
decoder_command $out_port
start decoder "${in_far[@]}" "${command[@]}"
decoder=$started
encoder_command $seconds $in_port
start encoder "${in_near[@]}" "${command[@]}"
encoder=$started
sleep 6
echo "after 6 s: wlan0 goes silent"
silence on wlan0 in0
sleep 4
echo "after 10 s: wlan0 comes back"
silence off wlan0 in0
sleep 4
echo "after 14 s: wwan0 is switched off"
ip -n $near link set wwan0 down
sleep 4
echo "after 18 s: wwan0 is switched on"
ip -n $near link set wwan0 up
finish encoder "$encoder" 30
sleep 1
interrupt send "$send"
finish send "$send" 10 0 130
finish recv "$recv" 10
finish decoder "$decoder" 15
python3 "$repo/scripts/live_report.py" "$work" --left wlan0 --left wwan0 --returned wlan0 --returned wwan0

echo
echo "== which interface carries what; the route to the server: $(ip -n $near route get $server | head -n 1)"
head -c 4000000 /dev/urandom >"$work/file"
wrong=0

# carry IFACE...: sends a file over these paths and counts the bytes of both interfaces.
carry() {
    local flags=() name before_wlan before_wwan
    for name in "$@"; do flags+=(--path "$name"); done
    before_wlan=$(sent_bytes wlan0)
    before_wwan=$(sent_bytes wwan0)
    start recv "${in_far[@]}" "$anabranch" recv "anabranch://:$port" "file:$work/copy" --once
    recv=$started
    sleep 0.5
    start send "${in_near[@]}" "$anabranch" send "file:$work/file" "anabranch://$server:$port" --mode file "${flags[@]}"
    finish send "$started" 60
    finish recv "$recv" 10
    cmp "$work/file" "$work/copy" || die "the file that came out differs"
    wlan=$(($(sent_bytes wlan0) - before_wlan))
    wwan=$(($(sent_bytes wwan0) - before_wwan))
    printf -- '--path %-16s wlan0 %8d bytes, wwan0 %8d bytes\n' "$*" $wlan $wwan
}

# expect CONDITION WHAT
expect() {
    if (($1)); then return; fi
    echo "WRONG: $2"
    wrong=1
}

size=4000000
small=100000
carry wwan0
expect "wwan > size && wlan < small" "everything should leave through wwan0, although the default route is wlan0"
carry wlan0
expect "wlan > size && wwan < small" "everything should leave through wlan0"
# At no rate of their own the first one may have carried everything before the second is confirmed.
limit() { for name in wlan0 wwan0; do tc -n $near qdisc "$@" dev $name root tbf rate 20mbit burst 20kb latency 100ms; done; }
limit add
carry wlan0 wwan0
limit del
expect "wlan > small && wwan > small && wlan + wwan > size" "both interfaces should carry a part"
carry 10.77.2.2
expect "wwan > size && wlan < small" "an address should mean its interface"
[ $wrong = 0 ] || exit 1
echo "each path left through its own interface"
