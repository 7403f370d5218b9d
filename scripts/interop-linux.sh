#!/usr/bin/env bash
# Associations with the SCTP of a Linux kernel: Debian's stock one in QEMU (7 to 14 s to boot on a busy machine, 220 MB), or its user-mode
# kernel (3 s, 64 MB), which has no HMAC and no traffic control, so that some cases are left out by name. Every message
# says what it is, as with usrsctp. Prints a table; fails when anything was lost, doubled, out of order or damaged.
#
#   [KERNEL=qemu|uml] scripts/interop-linux.sh [PATTERN]     runs the cases whose names contain PATTERN
#
# Without KERNEL it is qemu where that and its kernel are to be had. Needs root, iproute2, nftables, a C compiler with static libraries,
# cpio, busybox-static; Debian's qemu-system-x86, kmod and what scripts/linux-image.sh fetches, or user-mode-linux. KEEP=1
# keeps the logs; ANABRANCH=PATH is another build of the program, INTEROP=PATH is another build of the example `interop`,
# SOCKETS=PATH of the library of crates/sockets.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/uml.sh
. "$(dirname "$0")/uml.sh"
# shellcheck source=scripts/qemu.sh
. "$(dirname "$0")/qemu.sh"

only=${1:-}
kernel=${KERNEL:-}
if [ -z "$kernel" ]; then
    kernel=uml
    if command -v qemu-system-x86_64 >/dev/null && linux_image; then kernel=qemu; fi
fi
[ "$(id -u)" = 0 ] || skip interop-linux "needs root"
need interop-linux python3 nft
scratch
began=$SECONDS
${kernel}_image interop-linux
build
ours=${INTEROP:-${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop}
if [ -z "${INTEROP:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
fi

library=${SOCKETS:-${CARGO_TARGET_DIR:-$repo/target}/release/libanabranch_sockets.so}
if [ -z "${SOCKETS:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-sockets
fi

near=anab-l$$
remove_all() {
    ${kernel}_off
    clean_up
    ip netns del $near 2>/dev/null || true
}
trap remove_all EXIT

nft_there() {
    ip netns exec $near nft "$@"
}

# boot: one namespace with our two addresses, 10.89.1.1 and 10.89.2.1, and fd89:1::1 and fd89:2::1; the kernel's are .2 and
# ::2. Each link is a bridge, so that it can die without our interface or theirs going down.
boot() {
    local i
    ip netns add $near 2>"$work/ip.log" || skip interop-linux "network namespaces are not allowed here: $(cat "$work/ip.log")"
    ip -n $near link set lo up
    for i in 1 2; do
        ip -n $near link add bridge$i type bridge
        ip -n $near link add link$i type veth peer name port$i
        ip -n $near tuntap add tap$i mode tap
        ip -n $near addr add 10.89.$i.1/24 dev link$i
        ip -n $near addr add fd89:$i::1/64 dev link$i nodad
        for name in port$i tap$i; do ip -n $near link set $name master bridge$i; done
        for name in bridge$i link$i port$i tap$i; do ip -n $near link set $name up; done
    done
    # Else a bridge answers for the address of its link, and takes what is for that.
    ip netns exec $near sh -c 'echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore'
    nft_there add table netdev drops
    nft_there add chain netdev drops links '{ type filter hook ingress devices = { port1, tap1 } priority 0 ; }'
    began=$SECONDS
    ${kernel}_boot jobs $near tap1 tap2
}

# job NAME WORDS...: the peer in the guest, after the settings of the case.
job() {
    ${kernel}_job jobs "$1" "$settings"$'\n'"exec peer ${*:2}"
}
# guest NAME LINES: commands for the guest, and waits for their end.
guest() {
    ${kernel}_job jobs "$ran-$1" "$2"
    ${kernel}_done jobs "$ran-$1" 10
}
# says WORD LOG: waits for that line.
says() {
    local waited=0
    until grep -qs "^$1" "$2" || [ $waited -ge 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}

# The peer's program here, over our library.
over_library=(env "LD_PRELOAD=$library" ANABRANCH_SET=transport=raw,addip_enable=1,auth_enable=1 "$work/peer-here")

failed=()
ran=0
# set_extensions LIST: what Linux has switched off by default; asconf is ASCONF under AUTH.
set_extensions() {
    local x
    for x in reconf:reconf_enable idata:intl_enable asconf:addip_enable asconf:auth_enable auto:default_auto_asconf; do
        if [[ ,$1, == *,${x%:*},* ]]; then echo "echo 1 >/proc/sys/net/sctp/${x#*:}"; else echo "echo 0 >/proc/sys/net/sctp/${x#*:}"; fi
    done
}
# set_encapsulation PORT: the peer's UDP port, 0 is none. What a socket knew when it was made counts, not later changes.
set_encapsulation() {
    local largest=65536 i
    echo "[ \$(cat /proc/sys/net/sctp/udp_port) = 9899 ] || echo 9899 >/proc/sys/net/sctp/udp_port"
    echo "echo $1 >/proc/sys/net/sctp/encap_port"
    # What Linux 6.1 puts together above the MTU to be divided later (GSO) it loses over UDP: see docs/INTEROP.md.
    [ $1 = 0 ] || largest=1400
    [ "$kernel" != qemu ] || for i in 0 1; do echo "/programs/ip link set dev eth$i gso_max_size $largest"; done
}
# set_network WORDS: tc's netem for both directions of the first link; none is a good network.
set_network() {
    [ "$kernel" = qemu ] || return 0
    cat <<LINES
exec 2>/dev/null
/programs/tc qdisc del dev eth0 root
/programs/tc qdisc del dev eth0 ingress
exec 2>&1
LINES
    [ -z "$1" ] || cat <<LINES
/programs/ip link add ifb0 type ifb 2>/dev/null
/programs/ip link set ifb0 up
/programs/tc qdisc replace dev eth0 root netem $1
/programs/tc qdisc replace dev ifb0 root netem $1
/programs/tc qdisc add dev eth0 ingress
/programs/tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0
LINES
}

# between NAME WE HOW ADDRESSES MEANWHILE [asconf|auto] [library] [near:WORDS] [far:WORDS] OPTION... -- JUDGE...
# WE is client or server; HOW is raw, `raw` and netem's words, udp, or `udp` and those of our emulator. ADDRESSES is 1 or
# 2 of each side, or near or far: that side begins with one of two; or joins: our second path asks to join. 6 and 6:2 are
# one and two of IPv6, 4+6 is one of each. Our side is the peer's program over our library with `library`.
between() {
    local name=$1 we=$2 how=$3 addresses=$4 meanwhile=$5 both=() mine=() theirs=() us=10.89.1.1 them=10.89.1.2
    local word relay=() taps=() encapsulated=0 extensions= pcap=$work/$ran.pcap
    local program=("$ours") capture=(--linger 1 --pcap "$pcap")
    shift 5
    while [ "$1" != -- ]; do
        case $1 in
        near:*) read -ra word <<<"${1#near:}" && mine+=("${word[@]}") ;;
        far:*) read -ra word <<<"${1#far:}" && theirs+=("${word[@]}") ;;
        asconf) extensions+=,asconf ;;
        # All its addresses, which are one for now.
        library) program=("${over_library[@]}") capture=() ;;
        auto) extensions+=,asconf,auto theirs+=(--local 0.0.0.0) ;;
        *) both+=("$1") ;;
        esac
        shift
    done
    shift
    [ -z "$only" ] || [[ $name == *"$only"* ]] || return 0
    case $addresses in 2 | far | joins) us+=,10.89.2.1 ;; esac
    case $addresses in 2 | near | joins) them+=,10.89.2.2 ;; esac
    case $addresses in 6*) us=fd89:1::1 them=fd89:1::2 ;; esac
    case $addresses in 6:2 | 4+6) us+=,fd89:2::1 them+=,fd89:2::2 ;; esac
    if [ ${#capture[@]} = 0 ]; then
        pcap=$work/$ran-link1.pcap,$work/$ran-link2.pcap
        for word in 1 2; do
            start "$ran-tap$word" ip netns exec $near tcpdump -U -i link$word -w "$work/$ran-link$word.pcap" "proto 132"
            taps+=("$started")
        done
        for word in 1 2; do await "tcpdump does not begin" grep -qs listening "$work/$ran-tap$word.log"; done
    else
        case $addresses in 2 | near | far | 6:2 | 4+6) mine+=(--list) ;; esac
    fi
    local port=$((10000 + ran)) log=$work/$ran-near.log far=$work/jobs/$ran.log pid via=9899 our_run their_run our_turn their_turn settings
    if [[ $how == udp* ]]; then encapsulated=9899; fi
    if [[ $how == udp\ * ]]; then
        via=7001
        [ "$we" = client ] && word=10.89.1.2 || word=10.89.1.1 encapsulated=7001
        start "$ran-relay" ip netns exec $near "$anabranch" emulate \
            --path "listen 10.89.1.1:7001 to $word:9899 ${how#udp }"
        relay=("$started")
        sleep 0.3
    fi
    for word in "${!both[@]}"; do
        [ "${both[word]}" != --extensions ] || extensions+=,${both[word + 1]}
    done
    settings=$(set_encapsulation $encapsulated)$'\n'$(set_extensions "$extensions")$'\n'
    [[ $extensions != *auto* ]] || settings+="/programs/ip addr del 10.89.2.2/24 dev eth1"$'\n'
    case $how in raw\ *) settings+=$(set_network "${how#raw }") ;; *) settings+=$(set_network "") ;; esac
    our_run=(ip netns exec $near "${program[@]}" $we --local "$us" "${both[@]}" "${capture[@]}")
    # The side that listened, when it has lost its memory and opens: the other one's port is always this one then.
    our_turn=(ip netns exec $near "${program[@]}" client --local "$us" --port $port --peer "$them" --peer-port 7777
        --end wait "${both[@]}" "${mine[@]}" "${capture[@]}")
    their_turn=(client --local "$them" --port $port --peer "$us" --peer-port 7777 --end wait "${both[@]}" "${theirs[@]}")
    if [ "$we" = client ]; then
        local to=$them
        [ $via = 9899 ] || to=10.89.1.1
        [ $encapsulated = 0 ] || mine+=(--udp "9898:$via")
        our_run+=(--peer "$to" --peer-port $port --end shutdown "${mine[@]}")
        their_run=(server --local "$them" --port $port --end wait "${both[@]}" "${theirs[@]}")
        job $ran "${their_run[@]}"
        says ready "$far"
        start "$ran-near" "${our_run[@]}"
        pid=$started
    else
        [ $encapsulated = 0 ] || mine+=(--udp 9899)
        our_run+=(--port $port --end wait "${mine[@]}")
        their_run=(client --local "$them" --peer "$us" --peer-port $port --end shutdown "${both[@]}" "${theirs[@]}")
        start "$ran-near" "${our_run[@]}"
        pid=$started
        says ready "$log"
        job $ran "${their_run[@]}"
    fi
    if [ -n "$meanwhile" ]; then says open "$log" && $meanwhile; fi
    wait "$pid" || true
    ${kernel}_done jobs "$(basename "$far" .log)" 30
    for word in "${relay[@]}" "${taps[@]}"; do kill "$word" && wait "$word" || true; done 2>/dev/null
    children=()
    [[ $extensions != *auto* ]] || for word in 0 1; do
        guest "back$word" "/programs/ip addr replace 10.89.$((word + 1)).2/24 dev eth$word"
    done
    python3 "$repo/scripts/interop_judge.py" "$name" "$log" "$far" "pcap=$pcap" "$@" || {
        failed+=("$name")
        grep -hv -e '^{' -e '^ready' -e '^open' "$log" "$far" | head -n 5 || true
    }
    ran=$((ran + 1))
}

# with_qemu WHY NAME...: a case that the user-mode kernel cannot run.
with_qemu() {
    if [ "$kernel" = qemu ]; then
        between "${@:2}"
    elif [ -z "$only" ] || [[ $2 == *"$only"* ]]; then
        echo "SKIPPED interop-linux ($2): the user-mode kernel $1"
    fi
}

# What happens to the first link while messages are on their way. Our interface goes, or only packets do.
no_interface() {
    sleep 2
    date +%s.%N >"$work/dead"
    ip -n $near link set link1 down
    sleep 3
    date +%s.%N >>"$work/dead"
    ip -n $near link set link1 up
    # An interface that goes down forgets those of IPv6.
    ip -n $near addr replace fd89:1::1/64 dev link1 nodad
}
silent() {
    sleep 2
    date +%s.%N >"$work/dead"
    # The user-mode kernel gets nothing from its device any more once that has been down.
    nft_there add rule netdev drops links drop
    sleep 3
    date +%s.%N >>"$work/dead"
    nft_there flush chain netdev drops links
}

# Linux gets an address and loses its first one: with auto_asconf it asks for both changes itself.
their_interfaces_change() {
    sleep 0.5
    guest add "/programs/ip addr add 10.89.2.2/24 dev eth1"
    sleep 1
    guest remove "/programs/ip addr del 10.89.1.2/24 dev eth0"
}

# One end loses its memory without a word, and opens from the same port, be it the one that had opened or the one that
# had listened. These know what `between` has set.
we_begin_anew() {
    local again=("${our_run[@]}")
    [ "$we" = client ] || again=("${our_turn[@]}")
    sleep 1
    # The process is that below `ip netns exec`, which replaces itself.
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    start "$ran-again" "${again[@]}" --epoch 1
    pid=$started log=$work/$ran-again.log
}
they_begin_anew() {
    local again=("${their_run[@]}")
    [ "$we" = server ] || again=("${their_turn[@]}")
    sleep 1
    # Only the handshake (INIT, INIT ACK, COOKIE ECHO, COOKIE ACK): no ABORT, and no DATA that would be answered by one.
    nft_there add rule netdev drops links ip protocol sctp @th,96,8 != '{ 1, 2, 10, 11 }' drop
    guest kill 'kill -9 $(pidof peer)'
    ${kernel}_done jobs $ran 10
    far=$work/jobs/$ran-again.log
    job "$ran-again" "${again[@]}" --epoch 1
    says open "$far"
    nft_there flush chain netdev drops links
}

boot
version=${kernel}_version
echo "Linux ${!version} is up after $((SECONDS - began)) s"
printf '%-52s%11s%11s%11s%11s%11s%11s\n' "case (left: anabranch, right: Linux)" "left got" "right got" \
    "left gave" "right gave" end seconds
few=(--messages 1000 --streams 10 --seconds 30)
some=(--messages 100 --streams 10 --seconds 30)
steady=(--messages 3200 --streams 10 --rate 400 --seconds 60 --rto 200:1000)
narrow='rate 2mbit delay 20ms loss 2% limit 30'
bad='delay 5ms loss 2% duplicate 1% reorder 3%'

basics() {
    between "raw, we open" client raw 1 "" "${few[@]}" -- messages=1000
    between "raw, they open" server raw 1 "" "${few[@]}" -- messages=1000
    between "raw, we abort" client raw 1 "" "${few[@]}" near:"--end abort" far:"--end wait" -- messages=1000 end=abort
    between "raw, they abort" client raw 1 "" "${few[@]}" near:"--end wait" far:"--end abort" -- messages=1000 end=abort
    between "udp, we open" client udp 1 "" "${some[@]}" -- messages=100
    between "udp, they open" server udp 1 "" "${some[@]}" -- messages=100
    # See docs/INTEROP.md.
    with_qemu "stalls" "udp, bulk, we open" client udp 1 "" "${few[@]}" -- messages=1000
    with_qemu "stalls" "udp, bulk, they open" server udp 1 "" "${few[@]}" -- messages=1000
}

networks() {
    local why="has no traffic control" lossy=(--messages 2000 --streams 10 --seconds 60)
    # netem's delay holds back what is not reordered.
    local disordered='delay 10ms reorder 10% loss 2% duplicate 1%'
    with_qemu "$why" "raw, we open, 2 % loss, duplicates, reordered" client "raw $disordered" 1 "" "${lossy[@]}" -- messages=2000
    with_qemu "$why" "raw, they open, 2 % loss, duplicates, reordered" server "raw $disordered" 1 "" "${lossy[@]}" \
        -- messages=2000
}

extensions() {
    local small=(--extensions idata --largest 1000) why="has no traffic control"
    local slow='rate 2mbit delay 20ms loss 2% limit 30' lossy='delay 5ms loss 5%'
    between "raw, streams begin anew" client raw 1 "" "${few[@]}" --extensions reconf --reset \
        -- messages=1000 resets=1 wire=RE-CONFIG
    between "raw, they open, streams begin anew" server raw 1 "" "${few[@]}" --extensions reconf --reset \
        -- messages=1000 resets=1 wire=RE-CONFIG
    between "raw, I-DATA of one fragment" client raw 1 "" "${few[@]}" "${small[@]}" -- messages=1000 wire=I-DATA
    between "raw, they open, I-DATA of one fragment" server raw 1 "" "${few[@]}" "${small[@]}" -- messages=1000 wire=I-DATA
    with_qemu "$why" "raw, we send with 150 ms to live" client "raw $slow" 1 "" "${few[@]}" \
        near:"--messages 800 --rate 400 --pr ttl:150" far:"--messages 50 --gaps" \
        -- near=800 far=50 gives_up=near tosses=far wire=FORWARD-TSN:1
    with_qemu "$why" "raw, they send with 150 ms to live" client "raw $slow" 1 "" "${few[@]}" near:"--messages 50 --gaps" \
        far:"--messages 800 --rate 400 --pr ttl:150" -- near=50 far=800 gives_up=far least=20 untold=far wire=FORWARD-TSN:1
    with_qemu "$why" "raw, we send without retransmissions" client "raw $lossy" 1 "" "${few[@]}" \
        near:"--pr rtx:0" far:"--messages 50 --gaps" -- near=1000 far=50 gives_up=near tosses=far wire=FORWARD-TSN:1
    with_qemu "$why" "raw, they send without retransmissions" client "raw $lossy" 1 "" "${few[@]}" \
        near:"--messages 50 --gaps" far:"--pr rtx:0" -- near=50 far=1000 gives_up=far untold=far wire=FORWARD-TSN:1
    with_qemu "$why" "raw, we send again once" client "raw $lossy" 1 "" "${few[@]}" \
        near:"--pr rtx:1" far:"--messages 50 --gaps" -- near=1000 far=50 gives_up=near tosses=far wire=FORWARD-TSN:1
    between "udp, we send with 150 ms to live" client "udp $narrow" 1 "" "${few[@]}" \
        near:"--messages 800 --rate 400 --pr ttl:150" far:"--messages 50 --gaps" \
        -- near=800 far=50 gives_up=near tosses=far wire=FORWARD-TSN:1
    between "udp, they send with 150 ms to live" client "udp $narrow" 1 "" "${few[@]}" near:"--messages 50 --gaps" \
        far:"--messages 800 --rate 400 --pr ttl:150" -- near=50 far=800 gives_up=far least=20 untold=far wire=FORWARD-TSN:1
}

addresses() {
    cc -O2 -I "$repo/interop/linux" -o "$work/peer-here" "$repo/interop/usrsctp/peer.c" -lpthread
    local none="has no HMAC" slow=(--messages 1200 --streams 10 --rate 600 --seconds 30) pair=10.89.2.1,10.89.2.2
    between "raw, two addresses, we open" client raw 2 "" "${few[@]}" --rate 500 -- messages=1000 paths=2
    between "raw, two addresses, we open, no interface" client raw 2 no_interface "${steady[@]}" \
        -- messages=3200 lost=1 paths=2 moved="$work/dead"
    between "raw, two addresses, we open, a link down" client raw 2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead"
    between "raw, two addresses, they open, a link down" server raw 2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead"
    with_qemu "stalls" "udp, two addresses, we open, a link down" client udp 2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead"
    with_qemu "stalls" "udp, two addresses, they open, a link down" server udp 2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead"
    with_qemu "$none" "raw, AUTH, our address changes" client raw near "" asconf "${slow[@]}" near:"--swap $pair" \
        -- messages=1200 swaps=near
    with_qemu "$none" "raw, AUTH, they open, our address changes" server raw near "" asconf "${slow[@]}" \
        near:"--swap $pair" -- messages=1200 swaps=near
    with_qemu "$none" "raw, AUTH, their address changes" client raw far "" asconf "${slow[@]}" far:"--swap 10.89.2.2" \
        -- messages=1200 swaps=far
    with_qemu "$none" "raw, AUTH, they open, their address changes" server raw far "" asconf "${slow[@]}" \
        far:"--swap 10.89.2.2" -- messages=1200 swaps=far
    slow=(--messages 2400 --streams 10 --rate 300 --seconds 30 --rto 400:1000)
    with_qemu "$none" "raw, auto_asconf, we open" client raw far their_interfaces_change auto "${slow[@]}" \
        -- messages=2400 swaps=far
    with_qemu "$none" "raw, auto_asconf, they open" server raw far their_interfaces_change auto "${slow[@]}" \
        -- messages=2400 swaps=far
    slow=(--messages 1200 --streams 10 --rate 600 --seconds 30)
    if command -v tcpdump >/dev/null; then
        with_qemu "$none" "library, sctp_bindx, we open" client raw near "" asconf library "${slow[@]}" \
            near:"--swap 10.89.2.1" -- messages=1200 swaps=near
        with_qemu "$none" "library, sctp_bindx, they open" server raw near "" asconf library "${slow[@]}" \
            near:"--swap 10.89.2.1" -- messages=1200 swaps=near
    else
        echo "SKIPPED interop-linux (library): tcpdump is not installed"
    fi
    # Linux looks for the association by the address in the request, which is the wildcard.
    with_qemu "$none" "raw, AUTH, our second path asks to join" client raw joins "" asconf "${slow[@]}" \
        -- messages=1200 unheard=near
    with_qemu "$none" "raw, AUTH by a key, our address changes" client raw near "" asconf "${slow[@]}" \
        near:"--swap $pair" --key secret -- messages=1200 swaps=near
    with_qemu "$none" "raw, AUTH by another key, we ask" client raw near "" asconf "${slow[@]}" \
        near:"--swap $pair --key secret" far:"--key other" -- messages=1200 unheard=near
    with_qemu "$none" "raw, AUTH by another key, they ask" client raw far "" asconf "${slow[@]}" \
        near:"--key secret" far:"--swap 10.89.2.2 --key other" -- messages=1200 unheard=far
}

# The user-mode kernel was not tried with it.
ipv6() {
    local why="was not tried" how
    for how in raw udp; do
        with_qemu "$why" "$how, IPv6, we open" client $how 6 "" "${few[@]}" -- messages=1000 families=6
        with_qemu "$why" "$how, IPv6, they open" server $how 6 "" "${few[@]}" -- messages=1000 families=6
    done
    with_qemu "$why" "raw, two IPv6 addresses, we open, a link down" client raw 6:2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead" families=6
    with_qemu "$why" "raw, two IPv6 addresses, they open, a link down" server raw 6:2 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead" families=6
    with_qemu "$why" "raw, IPv4 and IPv6, we open, a link down" client raw 4+6 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead" families=46
    with_qemu "$why" "raw, IPv4 and IPv6, they open, a link down" server raw 4+6 silent "${steady[@]}" \
        -- messages=3200 lost=1 back=1 paths=2 moved="$work/dead" families=46
}

restarts() {
    local slow=(--messages 1200 --streams 10 --rate 400 --seconds 30)
    # Of our own that begins anew the second capture counts.
    between "raw, we open, we begin anew" client raw 1 we_begin_anew "${slow[@]}" near:"--port 7777" \
        -- messages=1200 restarts=far inits=near
    between "raw, they open, they begin anew" server raw 1 they_begin_anew "${slow[@]}" far:"--port 7777 --vanish" \
        -- messages=1200 restarts=near inits=far
    between "raw, they open, we begin anew" server raw 1 we_begin_anew "${slow[@]}" far:"--port 7777" \
        -- messages=1200 restarts=far inits=near
    between "raw, we open, they begin anew" client raw 1 they_begin_anew "${slow[@]}" near:"--port 7777" far:--vanish \
        -- messages=1200 restarts=near inits=near,far
}

basics
networks
extensions
addresses
ipv6
restarts
[ ${#failed[@]} = 0 ] || die "${#failed[@]} of $ran cases failed:$(printf ' "%s"' "${failed[@]}")"
echo "$ran cases in $((SECONDS - began)) s, nothing lost, doubled or out of order"
