#!/usr/bin/env bash
# Associations with usrsctp, a foreign stack. Every message says what it is, so both sides know what was
# lost, doubled, out of order or damaged. Prints a table; fails when anything of that happened.
#
#   scripts/interop-usrsctp.sh [PATTERN]     runs the cases whose names contain PATTERN
#
# Needs a C compiler and libusrsctp-dev. As root (and with iproute2) also raw IP, and two addresses on each side with a
# link that fails, in network namespaces of its own, and with nftables restarts. KEEP=1 keeps the logs; INTEROP=PATH is another build of the example
# `interop`.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

only=${1:-}
need interop-usrsctp cc python3
scratch
peer=$work/peer
cc -O2 -o "$peer" "$repo/interop/usrsctp/peer.c" -lusrsctp -lpthread 2>"$work/cc.log" ||
    skip interop-usrsctp "libusrsctp-dev is not installed ($(grep -m1 -E 'error|cannot find' "$work/cc.log"))"
build
ours=${INTEROP:-${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop}
if [ -z "${INTEROP:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
fi

near=anab-n$$
far=anab-f$$
remove_all() {
    clean_up
    ip netns del $near 2>/dev/null || true
    ip netns del $far 2>/dev/null || true
}
trap remove_all EXIT

failed=()
ran=0
sctp=9899

wanted() {
    [ -z "$only" ] || [[ $1 == *"$only"* ]]
}

# run_pair NAME JUDGE... : runs $server and $client (arrays), then judges. $we is client or server: our side.
run_pair() {
    local name=$1
    shift
    local server_log=$work/$ran-server client_log=$work/$ran-client near_log far_log began=$SECONDS
    start "$ran-server" "${server[@]}"
    local server_pid=$started
    local waited=0
    until grep -qs ready "$server_log.log" || ! kill -0 "$server_pid" 2>/dev/null || [ $waited -ge 50 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    start "$ran-client" "${client[@]}"
    local client_pid=$started
    if [ -n "${meanwhile:-}" ]; then $meanwhile; fi
    wait "$client_pid" || true
    wait "$server_pid" || true
    if [ $we = client ]; then near_log=$client_log far_log=$server_log; else near_log=$server_log far_log=$client_log; fi
    python3 "$repo/scripts/interop_judge.py" "$name" "$near_log.log" "$far_log.log" "$@" || {
        failed+=("$name")
        grep -hv -e '^{' -e '^ready' -e '^open' "$near_log.log" "$far_log.log" | head -n 5 || true
    }
    ran=$((ran + 1))
    children=("${relays[@]}")
}

# ---- one address on each side, over UDP on loopback, without root

# usrsctp opens raw sockets where it may, and answers a path that joins over UDP right on IP first: on one machine it
# hears itself, and ends the association as one that it does not know.
them=("$peer")
[ "$(id -u)" != 0 ] || them=(setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$peer")

relays=()
# relay WORDS...: a bad network; packets to $relay_port come out at $udp.
relay() {
    relay_port=$(free_port $((ran % 8 * 2 + 1)))
    start "$ran-relay" "$anabranch" emulate --path "listen 127.0.0.1:$relay_port to 127.0.0.1:$udp $*"
    relays=("$started")
    sleep 0.3
}
no_relay() {
    local pid
    for pid in "${relays[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    relays=()
    children=()
}

# over_udp NAME WE NETWORK [near:OPTION...] [far:OPTION...] [OPTION...] -- JUDGE...
# Options without a side are for both. $we opens when WE is client.
over_udp() {
    local name=$1 network=$3 both=() mine=() theirs=() word
    we=$2
    shift 3
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        # A word of several belongs together, as in `near:--end abort`.
        word=${1#near:} && word=${word#far:}
        case $1 in
        near:*) read -ra split <<<"$word" && mine+=("${split[@]}") ;;
        far:*) read -ra split <<<"$word" && theirs+=("${split[@]}") ;;
        *) both+=("$word") ;;
        esac
        shift
    done
    shift
    wanted "$name" || return 0
    udp=$(free_port $((ran % 8 * 2)))
    local to=$udp
    if [ -n "$network" ]; then relay "$network" && to=$relay_port; fi
    local listening=(server --local 127.0.0.1 --port $sctp --udp "$udp" --end wait)
    mine+=(--pcap "$work/$ran.pcap")
    local opening=(client --local 127.0.0.1 --peer 127.0.0.1 --peer-port $sctp --udp "$((udp + 3)):$to")
    if [ "$we" = client ]; then
        client=("$ours" "${opening[@]}" "${both[@]}" "${mine[@]}")
        server=("${them[@]}" "${listening[@]}" "${both[@]}" "${theirs[@]}")
    else
        client=("${them[@]}" "${opening[@]}" "${both[@]}" "${theirs[@]}")
        server=("$ours" "${listening[@]}" "${both[@]}" "${mine[@]}")
    fi
    run_pair "$name" "pcap=$work/$ran.pcap" "$@"
    no_relay
}

printf '%-52s%11s%11s%11s%11s%11s%11s\n' "case (left: anabranch, right: usrsctp)" "left got" "right got" \
    "left gave" "right gave" end seconds

bad='delay 5ms loss 2% duplicate 1% reorder 3%'
traffic=(--messages 10000 --streams 10 --seconds 100 --linger 4)
few=(--messages 1000 --streams 10 --seconds 30 near:"--linger 1")
over_udp "udp, we open" client "" "${few[@]}" -- messages=1000
over_udp "udp, they open" server "" "${few[@]}" -- messages=1000
over_udp "udp, we open, they shut down" client "" "${few[@]}" near:"--end wait" far:"--end shutdown" -- messages=1000
over_udp "udp, they open, we shut down" server "" "${few[@]}" near:"--end shutdown" far:"--end wait" -- messages=1000
over_udp "udp, we open, 2 % loss, duplicates, reordered" client "$bad" "${traffic[@]}" -- messages=10000
over_udp "udp, they open, 2 % loss, duplicates, reordered" server "$bad" "${traffic[@]}" -- messages=10000
over_udp "udp, we abort" client "" "${few[@]}" near:"--end abort" far:"--end wait" -- messages=1000 end=abort
over_udp "udp, they abort" client "" "${few[@]}" near:"--end wait" far:"--end abort" -- messages=1000 end=abort
narrow='rate 2mbit delay 20ms loss 2% limit 30'
over_udp "udp, we send with 150 ms to live" client "$narrow" "${few[@]}" \
    near:"--messages 2000 --rate 500 --pr ttl:150" \
    far:"--messages 100 --gaps" -- near=2000 far=100 gives_up=near tosses=far
over_udp "udp, they send with 150 ms to live" client "$narrow" "${few[@]}" near:"--messages 100 --gaps" \
    far:"--messages 2000 --rate 400 --pr ttl:150" -- near=100 far=2000 gives_up=far
over_udp "udp, they send without retransmissions" client "delay 5ms loss 5%" "${few[@]}" \
    near:"--messages 100 --gaps" far:"--messages 1000 --pr rtx:0" -- near=100 far=1000 gives_up=far
over_udp "udp, they know no PR-SCTP" client "delay 5ms loss 2%" "${few[@]}" near:"--pr ttl:50" far:"--no-pr" \
    -- messages=1000
# Over this network too, and the wire must show what was agreed on.
traffic[1]=3000
over_udp "udp, we open, I-DATA, loss" client "$bad" "${traffic[@]}" --extensions idata -- messages=3000 wire=I-DATA
over_udp "udp, they open, NR-SACK, loss" server "$bad" "${traffic[@]}" --extensions nrsack -- messages=3000 wire=NR-SACK
over_udp "udp, streams begin anew, loss" client "$bad" "${traffic[@]}" --extensions reconf --reset \
    -- messages=3000 resets=1 wire=RE-CONFIG
over_udp "udp, they open, all of these, loss" server "$bad" "${traffic[@]}" --extensions idata,nrsack,reconf --reset \
    -- messages=3000 resets=1 wire=I-DATA,NR-SACK,RE-CONFIG
over_udp "udp, we send with 150 ms to live, I-DATA" client "$narrow" "${few[@]}" --extensions idata \
    near:"--messages 2000 --rate 500 --pr ttl:150" \
    far:"--messages 100 --gaps" -- near=2000 far=100 gives_up=near tosses=far wire=I-DATA,I-FORWARD-TSN:1
over_udp "udp, they send with 150 ms to live, I-DATA" client "$narrow" "${few[@]}" --extensions idata \
    near:"--messages 100 --gaps" \
    far:"--messages 2000 --rate 400 --pr ttl:150" -- near=100 far=2000 gives_up=far wire=I-DATA,I-FORWARD-TSN:1
rebinds='delay 5ms at 500ms rebind at 1s rebind at 1500ms rebind'
over_udp "udp, we open, the NAT changes ports" client "$rebinds" "${few[@]}" --rate 400 -- messages=1000
over_udp "udp, they open, the NAT changes ports" server "$rebinds" "${few[@]}" --rate 400 -- messages=1000
two='--local 127.0.0.1,127.0.0.2'
over_udp "udp, our second path joins by ASCONF" client "" "${few[@]}" --rate 250 near:"$two" far:--nat \
    -- messages=1000 paths=2
over_udp "udp, they misunderstand the wildcard" client "" "${few[@]}" --rate 500 near:"$two" -- messages=1000 paths=1
over_udp "udp, they know neither ASCONF nor AUTH" client "" "${few[@]}" --rate 500 near:"$two" far:--no-asconf \
    -- messages=1000 paths=1

# ---- raw IP, and two addresses on each side, in network namespaces

# lay_out: two namespaces, joined by two links, 10.88.1.0/24 and 10.88.2.0/24; ours is .1, theirs .2.
lay_out() {
    local i
    ip netns add $near 2>"$work/ip.log" || return 1
    ip netns add $far
    for i in 1 2; do
        ip -n $near link add link$i type veth peer name link$i netns $far
        ip -n $near addr add 10.88.$i.1/24 dev link$i
        ip -n $far addr add 10.88.$i.2/24 dev link$i
        ip -n $near link set link$i up
        ip -n $far link set link$i up
    done
    for i in $near $far; do
        ip -n $i link set lo up
        # Lets a rule come before local delivery: `silence` needs that.
        ip -n $i rule add pref 100 lookup local
        ip -n $i rule del pref 0
    done
}

# What becomes of the first link while messages are on their way.
taken_down() {
    sleep 2
    ip -n $far link set link1 down
    sleep 3
    ip -n $far link set link1 up
}
silent() {
    local ns verb
    for verb in add del; do
        sleep 2
        for ns in $near $far; do ip -n $ns rule $verb pref 10 iif link1 blackhole; done
    done
}

# One direction of the first link dies, and stays dead.
no_way_back() {
    sleep 2
    ip -n $near rule add pref 10 iif link1 blackhole
}
no_way_there() {
    sleep 2
    ip -n $far rule add pref 10 iif link1 blackhole
}

# usrsctp loses its memory without a word and opens from the same port, be it the one that had opened or the one that had
# listened. Only the handshake (INIT, INIT ACK, COOKIE ECHO, COOKIE ACK) passes until then: anything else would be
# answered by an ABORT. These know what `run_pair` and `between` have set.
they_begin_anew() {
    local again=("${client[@]}") pid=$client_pid ns waited=0
    [ "$we" = server ] || again=("${server_turn[@]}") pid=$server_pid
    await "$name: no association" grep -qs ^open "$client_log.log"
    sleep 0.5
    for ns in $near $far; do
        ip netns exec $ns nft add table netdev drops
        ip netns exec $ns nft add chain netdev drops links '{ type filter hook ingress device link1 priority 0 ; }'
        ip netns exec $ns nft add rule netdev drops links ip protocol sctp @th,96,8 != '{ 1, 2, 10, 11 }' drop
    done
    # The process below `ip netns exec`, which replaces itself.
    kill -9 "$pid" || true
    wait "$pid" 2>/dev/null || true
    start "$ran-again" "${again[@]}" --epoch 1
    if [ "$we" = server ]; then
        client_pid=$started client_log=$work/$ran-again
    else
        server_pid=$started server_log=$work/$ran-again
    fi
    until grep -qs ^open "$work/$ran-again.log" || [ $waited -ge 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    for ns in $near $far; do ip netns exec $ns nft delete table netdev drops; done
}

# between NAME WE raw|udp ADDRESSES MEANWHILE OPTION... -- JUDGE...
between() {
    local name=$1 how=$3 addresses=$4 options=() mine theirs udp_server=() udp_client=() near_to=() far_to=() word
    we=$2 meanwhile=$5
    shift 5
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    wanted "$name" || return 0
    mine=10.88.1.1 theirs=10.88.1.2
    case $addresses in
    2) mine=$mine,10.88.2.1 theirs=$theirs,10.88.2.2 near_to=(--list) ;;
    # Both our links lead to their one address: by the second only with a route of its own.
    2:1) mine=$mine,10.88.2.1 far_to=(--nat) ;;
    esac
    if [ "$how" = udp ]; then udp_server=(--udp 9899) udp_client=(--udp 9898:9899); fi
    local listening=(server --port $sctp "${udp_server[@]}" --end wait "${options[@]}")
    local opening=(client --port 7777 --peer-port $sctp "${udp_client[@]}" --end shutdown "${options[@]}")
    local us=(ip netns exec $near "$ours") them=(ip netns exec $far "$peer") capture=(--pcap "$work/$ran.pcap")
    # Of the peer that listened, when it opens: our port is this one then.
    local turn=(client --port $sctp --peer-port 7777 --end wait "${options[@]}")
    if [ "$we" = client ]; then
        client=("${us[@]}" "${opening[@]}" --local "$mine" --peer "$theirs" "${near_to[@]}" --linger 1 "${capture[@]}")
        server=("${them[@]}" "${listening[@]}" --local "$theirs" "${far_to[@]}")
        server_turn=("${them[@]}" "${turn[@]}" --local "$theirs" --peer "$mine")
    else
        client=("${them[@]}" "${opening[@]}" --local "$theirs" --peer "$mine")
        server=("${us[@]}" "${listening[@]}" --local "$mine" "${near_to[@]}" "${capture[@]}")
    fi
    run_pair "$name" "pcap=$work/$ran.pcap" "$@"
    meanwhile=
    for word in $near $far; do ip -n $word rule del pref 10 2>/dev/null || true; done
    children=()
}

namespaces() {
    if [ "$(id -u)" != 0 ]; then echo "SKIPPED interop-usrsctp over raw IP and two addresses: needs root" && return; fi
    if ! command -v ip >/dev/null; then
        echo "SKIPPED interop-usrsctp over raw IP and two addresses: ip is not installed" && return
    fi
    lay_out || { echo "SKIPPED interop-usrsctp over raw IP and two addresses: $(cat "$work/ip.log")" && return; }
    local steady=(--messages 3200 --streams 10 --rate 400 --seconds 40 --rto 200:1000) how
    between "raw, we open" client raw 1 "" "${few[@]:0:6}" -- messages=1000
    between "raw, they open" server raw 1 "" "${few[@]:0:6}" -- messages=1000
    between "raw, our second path joins by ASCONF" client raw 2:1 "" "${few[@]:0:6}" --rate 250 -- messages=1000 paths=2
    if command -v nft >/dev/null; then
        local slow=(--messages 1200 --streams 10 --rate 400 --seconds 30)
        # Of ours it hears, and then takes nothing more to send: see docs/INTEROP.md.
        between "raw, they open, they begin anew" server raw 1 they_begin_anew "${slow[@]}" \
            -- messages=1200 restarts=near inits=far
        between "raw, we open, they begin anew" client raw 1 they_begin_anew "${slow[@]}" \
            -- messages=1200 restarts=near inits=near,far
    else
        echo "SKIPPED interop-usrsctp (restarts): nft is not installed"
    fi
    for how in raw udp; do
        between "$how, two addresses, we open" client $how 2 "" "${few[@]:0:6}" --rate 500 -- messages=1000 paths=2
        between "$how, two addresses, we open, a link down" client $how 2 taken_down "${steady[@]}" \
            -- messages=3200 lost=1 back=1 paths=2
        between "$how, two addresses, they open, one silent" server $how 2 silent "${steady[@]}" \
            -- messages=3200 lost=1 back=1 paths=2
        between "$how, two addresses, we open, no way back" client $how 2 no_way_back "${steady[@]}" \
            -- messages=3200 paths=2
        between "$how, two addresses, they open, no way there" server $how 2 no_way_there "${steady[@]}" \
            -- messages=3200 paths=2
    done
}
namespaces

[ ${#failed[@]} = 0 ] || die "${#failed[@]} of $ran cases failed:$(printf ' "%s"' "${failed[@]}")"
echo "$ran cases, nothing lost, doubled or out of order"
