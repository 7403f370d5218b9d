#!/usr/bin/env bash
# Associations with the SCTP of a Linux kernel, which runs as a user-mode process of its own (about 3 s to boot, 64 MB).
# Every message says what it is, as with usrsctp. Prints a table; fails when anything was lost, doubled, out of order
# or damaged.
#
#   scripts/interop-linux.sh [PATTERN]     runs the cases whose names contain PATTERN
#
# Needs root, iproute2, a C compiler with static libraries, cpio, busybox-static, and Debian's user-mode-linux with its
# modules. KEEP=1 keeps the logs; ANABRANCH=PATH is another build of the program, INTEROP=PATH is another build of the example `interop`.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/uml.sh
. "$(dirname "$0")/uml.sh"

only=${1:-}
[ "$(id -u)" = 0 ] || skip interop-linux "needs root"
need interop-linux python3
scratch
began=$SECONDS
uml_image interop-linux
build
ours=${INTEROP:-${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop}
if [ -z "${INTEROP:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
fi

near=anab-l$$
remove_all() {
    uml_off
    clean_up
    ip netns del $near 2>/dev/null || true
}
trap remove_all EXIT

# boot: one namespace with our two addresses, 10.89.1.1 and 10.89.2.1; the kernel's are .2.
boot() {
    local i
    ip netns add $near 2>"$work/ip.log" || skip interop-linux "network namespaces are not allowed here: $(cat "$work/ip.log")"
    ip -n $near link set lo up
    for i in 1 2; do
        ip -n $near tuntap add link$i mode tap
        ip -n $near addr add 10.89.$i.1/24 dev link$i
        ip -n $near link set link$i up
    done
    uml_boot jobs $near link1 link2
}

# job NAME WORDS...: a command in the guest, after the settings of the case.
job() {
    uml_job jobs "$1" "$settings"$'\n'"exec peer ${*:2}"
}
ready() {
    local waited=0
    until grep -qs ready "$1" || [ $waited -ge 50 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}

failed=0
ran=0
# What Linux has switched off by default and needs no HMAC, which this kernel has not (see init.sh).
set_extensions() {
    echo "for x in reconf_enable intl_enable; do echo $1 >/proc/sys/net/sctp/\$x; done"
}
# set_encapsulation PORT: the peer's UDP port, 0 is none. What a socket knew when it was made counts, not later changes.
set_encapsulation() {
    echo "[ \$(cat /proc/sys/net/sctp/udp_port) = 9899 ] || echo 9899 >/proc/sys/net/sctp/udp_port"
    echo "echo $1 >/proc/sys/net/sctp/encap_port"
}

# between NAME WE HOW ADDRESSES MEANWHILE [near:WORDS] [far:WORDS] OPTION... -- JUDGE...
# WE is client or server; HOW is raw, udp, or `udp` and the words of a bad network.
between() {
    local name=$1 we=$2 how=$3 addresses=$4 meanwhile=$5 both=() mine=() theirs=() us=10.89.1.1 them=10.89.1.2
    local word relay=() encapsulated=0
    shift 5
    while [ "$1" != -- ]; do
        case $1 in
        near:*) read -ra word <<<"${1#near:}" && mine+=("${word[@]}") ;;
        far:*) read -ra word <<<"${1#far:}" && theirs+=("${word[@]}") ;;
        *) both+=("$1") ;;
        esac
        shift
    done
    shift
    [ -z "$only" ] || [[ $name == *"$only"* ]] || return 0
    if [ "$addresses" = 2 ]; then us+=,10.89.2.1 them+=,10.89.2.2 && mine+=(--list); fi
    local port=$((10000 + ran)) log=$work/$ran-near.log far=$work/jobs/$ran.log pid via=9899
    if [[ $how == udp* ]]; then encapsulated=9899; fi
    if [[ $how == udp\ * ]]; then
        via=7001
        [ "$we" = client ] && word=10.89.1.2 || word=10.89.1.1 encapsulated=7001
        start "$ran-relay" ip netns exec $near "$anabranch" emulate \
            --path "listen 10.89.1.1:7001 to $word:9899 ${how#udp }"
        relay=("$started")
        sleep 0.3
    fi
    settings=$(set_encapsulation $encapsulated)$'\n'
    if [[ ${both[*]} == *--extensions* ]]; then word=1; else word=0; fi
    settings+=$(set_extensions $word)
    mine+=(--pcap "$work/$ran.pcap")
    if [ "$we" = client ]; then
        local to=10.89.1.2
        [ $via = 9899 ] || to=10.89.1.1
        [ $encapsulated = 0 ] || mine+=(--udp "9898:$via")
        job $ran server --local "$them" --port $port --end wait "${both[@]}" "${theirs[@]}"
        ready "$far"
        start "$ran-near" ip netns exec $near "$ours" client --local "$us" --peer $to --peer-port $port \
            --end shutdown "${both[@]}" --linger 1 "${mine[@]}"
        pid=$started
    else
        [ $encapsulated = 0 ] || mine+=(--udp 9899)
        start "$ran-near" ip netns exec $near "$ours" server --local "$us" --port $port --end wait \
            "${both[@]}" "${mine[@]}"
        pid=$started
        ready "$log"
        job $ran client --local "$them" --peer "$us" --peer-port $port --end shutdown "${both[@]}" "${theirs[@]}"
    fi
    if [ -n "$meanwhile" ]; then $meanwhile; fi
    wait "$pid" || true
    uml_done jobs $ran 30
    for word in "${relay[@]}"; do kill "$word" && wait "$word" || true; done 2>/dev/null
    children=()
    ip -n $near link set link1 up
    python3 "$repo/scripts/interop_judge.py" "$name" "$log" "$far" "pcap=$work/$ran.pcap" "$@" || {
        failed=$((failed + 1))
        grep -hv -e '^{' -e '^ready' "$log" "$far" | head -n 5 || true
    }
    ran=$((ran + 1))
}

taken_down() {
    sleep 2
    ip -n $near link set link1 down
    sleep 3
    ip -n $near link set link1 up
}

boot
echo "Linux $uml_version is up after $((SECONDS - began)) s"
printf '%-44s%11s%11s%11s%11s%11s%11s\n' "case (left: anabranch, right: Linux)" "left got" "right got" \
    "left gave" "right gave" end seconds
few=(--messages 1000 --streams 10 --seconds 30)
steady=(--messages 3200 --streams 10 --rate 400 --seconds 60 --rto 200:1000)
narrow='udp rate 2mbit delay 20ms loss 2% limit 30'
between "raw, we open" client raw 1 "" "${few[@]}" -- messages=1000
between "raw, they open" server raw 1 "" "${few[@]}" -- messages=1000
between "raw, we abort" client raw 1 "" "${few[@]}" near:"--end abort" far:"--end wait" -- messages=1000 end=abort
between "raw, they abort" client raw 1 "" "${few[@]}" near:"--end wait" far:"--end abort" -- messages=1000 end=abort
# Bulk over UDP is not here: see docs/INTEROP.md.
some=(--messages 100 --streams 10 --seconds 30)
between "udp, we open" client udp 1 "" "${some[@]}" -- messages=100
between "udp, they open" server udp 1 "" "${some[@]}" -- messages=100
between "raw, streams begin anew" client raw 1 "" "${few[@]}" --extensions reconf --reset \
    -- messages=1000 resets=1 wire=RE-CONFIG
between "raw, they open, streams begin anew" server raw 1 "" "${few[@]}" --extensions reconf --reset \
    -- messages=1000 resets=1 wire=RE-CONFIG
between "udp, we send with 150 ms to live" client "$narrow" 1 "" "${few[@]}" \
    near:"--messages 800 --rate 400 --pr ttl:150" far:"--messages 50 --gaps" \
    -- near=800 far=50 gives_up=near tosses=far wire=FORWARD-TSN:1
between "udp, they send with 150 ms to live" client "$narrow" 1 "" "${few[@]}" near:"--messages 50 --gaps" \
    far:"--messages 800 --rate 400 --pr ttl:150" -- near=50 far=800 gives_up=far least=20 wire=FORWARD-TSN:1
between "raw, two addresses, we open" client raw 2 "" "${few[@]}" --rate 500 -- messages=1000 paths=2
between "raw, two addresses, we open, a link down" client raw 2 taken_down "${steady[@]}" \
    -- messages=3200 lost=1 paths=2
between "raw, two addresses, they open, a link down" server raw 2 taken_down "${steady[@]}" \
    -- messages=3200

[ $failed = 0 ] || die "$failed of $ran cases failed"
echo "$ran cases in $((SECONDS - began)) s, nothing lost, doubled or out of order"
