#!/usr/bin/env bash
# How long a path that dies keeps what it was given, measured on the wire: an association over two paths, through a
# network in the middle where one of them is cut. docs/PATHS.md has the definition and the figures.
#
#   scripts/path-deaths.sh [anabranch|usrsctp|linux] [DEATHS [PROFILE...]]
#
# Both ends are the named stack; DEATHS of each kind (5; 1 for the others) with each of our profiles (live, cmt). Ours
# is held against the bound. Needs root, iproute2, tcpdump, python3; for usrsctp a C compiler and libusrsctp-dev, for
# Linux what scripts/interop-linux.sh needs. KEEP=1 keeps captures and logs; INTEROP=PATH is another build of the
# example `interop`; DEAD=SECONDS is how long a path stays dead (1; 75 for the others);
# KINDS="silent one-way address" are the kinds of death.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/uml.sh
. "$(dirname "$0")/uml.sh"

stack=${1:-anabranch}
[ "$(id -u)" = 0 ] || skip path-deaths "needs root"
need path-deaths ip tcpdump python3
scratch

near=anab-pn$$ mid=anab-pm$$ far=anab-pf$$
remove_all() {
    local ns
    [ $stack != linux ] || uml_off
    clean_up
    for ns in $near $mid $far; do ip netns del $ns 2>/dev/null || true; done
}
trap remove_all EXIT

# Path I: 10.71.I.1 of the sender, the middle, 10.72.I.1 of the receiver. Round trip: below a millisecond.
lay_out() {
    local i side ns
    ip netns add $mid 2>"$work/ip.log" || skip path-deaths "network namespaces are not allowed here: $(cat "$work/ip.log")"
    ip netns exec $mid sysctl -qw net.ipv4.ip_forward=1
    for i in 1 2; do
        for side in n f; do
            if [ $stack = linux ]; then
                ip -n $mid tuntap add $side$i mode tap
            else
                [ $side = n ] && ns=$near || ns=$far
                [ $i = 2 ] || ip netns add $ns
                # The capture shall show single packets, not what segmentation offload makes one of.
                ip -n $mid link add $side$i gso_max_segs 1 type veth peer name link$i netns $ns gso_max_segs 1
            fi
            ip -n $mid addr add 10.7$([ $side = n ] && echo 1 || echo 2).$i.254/24 dev $side$i
            ip -n $mid link set $side$i up
        done
    done
    for ns in $mid $near $far; do
        [ -e /run/netns/$ns ] || continue
        ip -n $ns link set lo up
        ip netns exec $ns sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done'
    done
    [ $stack != linux ] || return 0
    for i in 1 2; do
        addressed $near 1 2 $i
        addressed $far 2 1 $i
    done
    # The kernel notices the carrier a little later.
    for ns in $near $far; do
        for i in 1 2; do
            await "link$i has no carrier" ip netns exec $ns grep -qs 1 /sys/class/net/link$i/carrier
        done
    done
}
# addressed NS OWN OTHER I: its address on link I, and the way to the other side.
addressed() {
    ip -n "$1" addr add "10.7$2.$4.1/24" dev "link$4"
    ip -n "$1" link set "link$4" up
    ip -n "$1" route add "10.7$3.$4.0/24" via "10.7$2.$4.254"
}

# ---- the stacks: each has a server and a client, which sends 100 messages a second

case $stack in
anabranch)
    ours=${INTEROP:-${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop}
    if [ -z "${INTEROP:-}" ]; then
        cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
    fi
    run=("$ours") dead=${DEAD:-1} count=${2:-5} limit=200
    ;;
usrsctp)
    need path-deaths cc
    cc -O2 -o "$work/peer" "$repo/interop/usrsctp/peer.c" -lusrsctp -lpthread 2>"$work/cc.log" ||
        skip path-deaths "libusrsctp-dev is not installed"
    run=("$work/peer") dead=${DEAD:-75} count=${2:-1} limit=0
    ;;
linux)
    uml_image path-deaths
    dead=${DEAD:-75} count=${2:-1} limit=0
    ;;
*) die "which stack is $stack?" ;;
esac
if [ $# -gt 2 ]; then profiles=("${@:3}"); else profiles=(live cmt); fi
[ "$stack" = anabranch ] || profiles=("")

# end NAME SIDE WORDS...: one end, whose output goes to $work/NAME.log; sets $started, or starts a job.
end() {
    local name=$1 side=$2
    shift 2
    if [ $stack = linux ]; then
        uml_job $side "$name" "exec peer $*"
        started=
        return
    fi
    [ $side = near ] && side=$near || side=$far
    start "$name" ip netns exec $side "${run[@]}" "$@"
}
log_of() { if [ $stack = linux ]; then echo "$work/$2/$1.log"; else echo "$work/$1.log"; fi; }

# ---- deaths

now() { date +%s.%N; }
silent() { printf 'rule %s pref 10 iif n%s blackhole\nrule %s pref 10 iif f%s blackhole\n' "$1" "$2" "$1" "$2" | ip -n $mid -batch -; }
one-way() { ip -n $mid rule "$1" pref 10 iif "n$2" blackhole; }
# A NAT on the way gives the sender another address: the receiver hears from one that it has never heard of. Ours makes
# it known by ASCONF after a while, so each time it is a new one.
fresh=10
address() {
    case $1 in
    add)
        fresh=$((fresh + 1))
        ip netns exec $mid nft -f - <<EOF
table ip middle {
    chain there {
        type filter hook prerouting priority -300
        ip saddr 10.71.$2.1 ip saddr set 10.71.$2.$fresh
        ip daddr 10.71.$2.$fresh ip daddr set 10.71.$2.1
    }
}
EOF
        ;;
    del) ip netns exec $mid nft delete table ip middle ;;
    esac
}

# busier: the path that carried more in the last 300 ms.
busier() {
    local before after i
    read -ra before <<<"$(carried)"
    sleep 0.3
    read -ra after <<<"$(carried)"
    for i in 0 1; do after[i]=$((after[i] - before[i])); done
    echo $((after[0] >= after[1] ? 1 : 2))
}
carried() { ip netns exec $mid cat /sys/class/net/n1/statistics/rx_packets /sys/class/net/n2/statistics/rx_packets | tr '\n' ' '; }

port=5000
failed=0
# deaths NAME KIND COUNT [OPTION...]: one association and its deaths, then the row.
deaths() {
    local name=$1 kind=$2 n=$3 log=$work/deaths-$port path t0 t1 pid="" interfaces
    shift 3
    local seconds=$((3 + n * (dead + 2)))
    local words=(--streams 1 --rate 100 --seconds $((seconds + 60)) --messages)
    : >"$log"
    start capture-$port ip netns exec $mid tcpdump -U -i any -w "$work/$port.pcap" ip
    local tap=$started
    await "tcpdump does not begin" grep -qs listening "$work/capture-$port.log"
    local encapsulated=() opened=()
    [ $stack != anabranch ] || encapsulated=(--udp 9899 --list) opened=(--udp 9898:9899 --list --linger 1)
    end server-$port far server --local 10.72.1.1,10.72.2.1 --port $port --end wait "${words[@]}" 0 \
        "${encapsulated[@]}" "$@"
    await "the server does not begin" grep -qs ready "$(log_of server-$port far)"
    local server=$started
    end client-$port near client --local 10.71.1.1,10.71.2.1 --peer 10.72.1.1,10.72.2.1 --peer-port $port \
        --end shutdown "${words[@]}" $((seconds * 100)) "${opened[@]}" "$@"
    pid=$started
    sleep 2.5
    for ((; n > 0; n--)); do
        path=$(busier)
        t0=$(now)
        "$kind" add "$path"
        t1=$(now)
        sleep "$dead"
        echo "$kind $path $t0 $t1 $(now)" >>"$log"
        "$kind" del "$path"
        [ $n = 1 ] || sleep 1.5
    done
    if [ $stack = linux ]; then uml_done near client-$port 120; else wait "$pid" || true; fi
    # A client that failed leaves a server that waits.
    for ((n = 0; n < 30; n++)); do
        [ -n "$server" ] && kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    kill -INT "$tap" && wait "$tap" || true
    interfaces=$(ip -n $mid -o link | sed -n 's/^\([0-9]*\): \([nf][12]\)[@:].*/\2=\1/p')
    # shellcheck disable=SC2086
    python3 "$repo/scripts/path_deaths.py" "$name" "$work/$port.pcap" "$log" $limit $interfaces || failed=1
    python3 "$repo/scripts/interop_judge.py" "  its messages" "$(log_of client-$port near)" \
        "$(log_of server-$port far)" near=$((seconds * 100)) far=0 >"$work/judged" || {
        cat "$work/judged"
        [ $limit = 0 ] || failed=1
    }
    port=$((port + 1))
}

lay_out
[ $stack != linux ] || {
    uml_boot near $mid n1 n2 own1=10.71.1.1/24 own2=10.71.2.1/24 to1=10.72.1.0/24,10.71.1.254 to2=10.72.2.0/24,10.71.2.254
    uml_boot far $mid f1 f2 own1=10.72.1.1/24 own2=10.72.2.1/24 to1=10.71.1.0/24,10.72.1.254 to2=10.71.2.0/24,10.72.2.254
}
for profile in "${profiles[@]}"; do
    options=()
    [ -z "$profile" ] || options=(--profile "$profile")
    deaths "$stack $profile, control" silent 0 "${options[@]}"
    for kind in ${KINDS:-silent one-way address}; do
        if [ $kind = address ] && ! command -v nft >/dev/null; then
            echo "SKIPPED path-deaths of kind address: nft is not installed"
            continue
        fi
        deaths "$stack $profile, $kind" $kind "$count" "${options[@]}"
    done
done
[ $failed = 0 ] || die "a control or a bound does not hold"
