#!/usr/bin/env bash
# What the wire shows of an association from behind NATs, read back from tcpdump: no private address inside SCTP, and
# not one packet from an address that the peer cannot learn.
#
#   scripts/nat-wire.sh
#
# Two network namespaces, joined by two links. The near side has a private address on each; relays on the far side
# give its packets other addresses and ports, as NATs do. Needs root, iproute2, tcpdump, python3, a C compiler and
# libusrsctp-dev. KEEP=1 keeps captures and logs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip nat-wire "needs root"
need nat-wire ip tcpdump cc python3
scratch
peer=$work/peer
cc -O2 -o "$peer" "$repo/interop/usrsctp/peer.c" -lusrsctp -lpthread 2>"$work/cc.log" ||
    skip nat-wire "libusrsctp-dev is not installed"
build
cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
ours=${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop

near=anab-n$$
far=anab-f$$
remove_all() {
    clean_up
    ip netns del $near 2>/dev/null || true
    ip netns del $far 2>/dev/null || true
}
trap remove_all EXIT

ip netns add $near 2>"$work/ip.log" || skip nat-wire "network namespaces are not allowed here: $(cat "$work/ip.log")"
ip netns add $far
ip -n $far link set lo up gso_max_segs 1
for i in 1 2; do
    # A capture shall show single packets, not what segmentation offload makes one of.
    ip -n $near link add link$i gso_max_segs 1 type veth peer name link$i netns $far gso_max_segs 1
    ip -n $near addr add 10.99.$i.1/24 dev link$i
    ip -n $far addr add 10.99.$i.2/24 dev link$i
    ip -n $near link set link$i up
    ip -n $far link set link$i up
done
in_near=(ip netns exec $near)
in_far=(ip netns exec $far)
private=(10.99.1.1 10.99.2.1 10.99.1.2 10.99.2.2)

start relays "${in_far[@]}" "$anabranch" emulate \
    --path "listen 10.99.1.2:7001 to 127.0.0.1:9899 from 127.0.1.1 delay 2ms" \
    --path "listen 10.99.2.2:7001 to 127.0.0.1:9899 from 127.0.1.2 delay 2ms"
sleep 0.5
failed=0

# carried NAME SERVER...: an association through the NATs, captured on both links and behind them.
carried() {
    local name=$1 where taps=()
    shift
    for where in "near link1" "near link2" "far lo"; do
        local tap=("${in_near[@]}")
        [ "${where% *}" = near ] || tap=("${in_far[@]}")
        start "tap-${where#* }" "${tap[@]}" tcpdump -U -i "${where#* }" -w "$work/$name-${where#* }.pcap" udp
        taps+=("$started")
    done
    sleep 1
    start "$name-server" "${in_far[@]}" "$@" server --local 127.0.0.1 --port 9899 --udp 9899 --messages 600 \
        --streams 4 --rate 200 --seconds 20 --end wait
    local server=$started
    sleep 0.5
    start "$name-client" "${in_near[@]}" "$ours" client --local 10.99.1.1,10.99.2.1 \
        --paths 10.99.1.2:7001,10.99.2.2:7001 --udp 0:0 --peer-port 9899 --messages 600 --streams 4 --rate 200 \
        --seconds 20 --end shutdown --linger 1
    finish "$name-client" "$started" 30
    finish "$name-server" "$server" 30
    python3 "$repo/scripts/interop_judge.py" "$name" "$work/$name-client.log" "$work/$name-server.log" messages=600 \
        "paths=$paths" || failed=1
    sleep 0.3
    for where in "${taps[@]}"; do kill -INT "$where" && wait "$where" || true; done
}

# shows NAME INTERFACE PORT [OPTION]: nothing private inside.
shows() {
    echo "$1, $2:"
    python3 "$repo/scripts/check_nat_wire.py" "$work/$1-$2.pcap" "$3" "${@:4}" || failed=1
}

paths=2 carried "anabranch" "$ours"
shows "anabranch" link1 7001 "${private[@]}"
shows "anabranch" link2 7001 "${private[@]}"
shows "anabranch" lo 9899 "${private[@]}"

# usrsctp right at the other end, without address changes: one path, and silence on the other.
them=(setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$peer")
cat >"$work/no-asconf" <<EOF
#!/bin/sh
exec ${them[*]} "\$@" --no-asconf
EOF
chmod +x "$work/no-asconf"
paths=1 carried "usrsctp-without-asconf" "$work/no-asconf"
shows "usrsctp-without-asconf" link1 7001 "${private[@]}"
shows "usrsctp-without-asconf" link2 7001 10.99.2.1 --silent

[ $failed = 0 ] || die "something private or unlearnt was on the wire"
echo "no private address in any chunk, nothing from an address that was not learnt"
