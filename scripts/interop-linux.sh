#!/usr/bin/env bash
# Associations right on IP with the SCTP of a Linux kernel, which runs as a user-mode process of its own (about 3 s to boot, 64 MB).
# Every message says what it is, as with usrsctp. Prints a table; fails when anything was lost, doubled, out of order
# or damaged.
#
#   scripts/interop-linux.sh [PATTERN]     runs the cases whose names contain PATTERN
#
# Needs root, iproute2, a C compiler with static libraries, cpio, busybox-static, and Debian's user-mode-linux with its
# modules. KEEP=1 keeps the logs; INTEROP=PATH is another build of the example `interop`.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

only=${1:-}
need interop-linux cc python3 linux.uml cpio ip
[ "$(id -u)" = 0 ] || skip interop-linux "needs root"
busybox=$(command -v busybox) || skip interop-linux "busybox-static is not installed"
modules=$(find /usr/lib/uml/modules -name sctp.ko -printf '%h\n' 2>/dev/null | head -n 1)
[ -n "$modules" ] || skip interop-linux "the user-mode kernel has no sctp.ko"
modules=${modules%/net/sctp}
scratch
began=$SECONDS

cc -O2 -static -I "$repo/interop/linux" -o "$work/peer" "$repo/interop/usrsctp/peer.c" -lpthread 2>"$work/cc.log" ||
    skip interop-linux "the peer does not build ($(grep -m1 -E 'error|cannot find' "$work/cc.log"))"
ours=${INTEROP:-${CARGO_TARGET_DIR:-$repo/target}/release/examples/interop}
if [ -z "${INTEROP:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-net --example interop
fi

near=anab-l$$
uml=
remove_all() {
    [ -z "$work" ] || : >"$work/jobs/stop" 2>/dev/null || true
    clean_up
    [ -z "$uml" ] || kill -- "-$uml" 2>/dev/null || true
    ip netns del $near 2>/dev/null || true
}
trap remove_all EXIT

# initramfs: busybox, the modules, our init and the peer.
image() {
    local root=$work/root m
    mkdir -p "$root"/{bin,proc,sys,dev,host,modules} "$work/jobs"
    cp "$busybox" "$work/peer" "$root/bin/"
    cp "$repo/interop/linux/init.sh" "$root/init"
    chmod +x "$root/init"
    for m in net/sctp/sctp net/ipv6/ipv6 lib/crc-ccitt net/ipv6/ip6_udp_tunnel net/ipv4/udp_tunnel crypto/hmac; do
        cp "$modules/$m.ko" "$root/modules/"
    done
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
}

# boot: one namespace with our two addresses, 10.89.1.1 and 10.89.2.1; the kernel's are .2.
boot() {
    local i waited=0
    ip netns add $near
    ip -n $near link set lo up
    for i in 1 2; do
        ip -n $near tuntap add link$i mode tap
        ip -n $near addr add 10.89.$i.1/24 dev link$i
        ip -n $near link set link$i up
    done
    set -m
    ip netns exec $near linux.uml mem=64M initrd="$work/initrd.gz" rdinit=/init con=null con0=null,fd:1 quiet \
        vec1:transport=tap,ifname=link1,depth=128,gro=0 vec2:transport=tap,ifname=link2,depth=128,gro=0 \
        jobs="$work/jobs" >"$work/uml.log" 2>&1 </dev/null &
    uml=$!
    set +m
    until [ -e "$work/jobs/up" ]; do
        waited=$((waited + 1))
        if [ $waited -gt 300 ] || ! kill -0 $uml 2>/dev/null; then
            tail -n 5 "$work/uml.log"
            die "the kernel does not come up"
        fi
        sleep 0.1
    done
}

# job NAME WORDS...: a command in the guest, after the settings of the case.
job() {
    local name=$1
    shift
    printf '%s\n' "$settings" "exec peer $*" >"$work/jobs/$name.new"
    mv "$work/jobs/$name.new" "$work/jobs/$name.job"
}
done_with() {
    local waited=0
    until [ -e "$work/jobs/$1.done" ] || [ $waited -ge 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
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
extensions='for x in reconf_enable intl_enable; do echo 1 >/proc/sys/net/sctp/$x; done'
plain='for x in reconf_enable intl_enable; do echo 0 >/proc/sys/net/sctp/$x; done'

# between NAME WE ADDRESSES on|off MEANWHILE [near:WORDS] [far:WORDS] OPTION... -- JUDGE...
between() {
    local name=$1 we=$2 addresses=$3 exts=$4 meanwhile=$5 both=() mine=() theirs=() us=10.89.1.1 them=10.89.1.2
    shift 5
    while [ "$1" != -- ]; do
        case $1 in
        near:*) read -ra mine <<<"${1#near:}" ;;
        far:*) read -ra theirs <<<"${1#far:}" ;;
        *) both+=("$1") ;;
        esac
        shift
    done
    shift
    [ -z "$only" ] || [[ $name == *"$only"* ]] || return 0
    settings=$plain
    [ "$exts" = off ] || settings=$extensions
    if [ "$addresses" = 2 ]; then us+=,10.89.2.1 them+=,10.89.2.2 && mine+=(--list); fi
    local port=$((10000 + ran)) log=$work/$ran-near.log far=$work/jobs/$ran.log pid
    if [ "$we" = client ]; then
        job $ran server --local "$them" --port $port --end wait "${both[@]}" "${theirs[@]}"
        ready "$far"
        start "$ran-near" ip netns exec $near "$ours" client --local "$us" --peer 10.89.1.2 --peer-port $port \
            --end shutdown "${both[@]}" "${mine[@]}" --linger 1
        pid=$started
    else
        start "$ran-near" ip netns exec $near "$ours" server --local "$us" --port $port --end wait \
            "${both[@]}" "${mine[@]}"
        pid=$started
        ready "$log"
        job $ran client --local "$them" --peer "$us" --peer-port $port --end shutdown "${both[@]}" "${theirs[@]}"
    fi
    if [ -n "$meanwhile" ]; then $meanwhile; fi
    wait "$pid" || true
    done_with $ran
    children=()
    ip -n $near link set link1 up
    python3 "$repo/scripts/interop_judge.py" "$name" "$log" "$far" "$@" || {
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

image
boot
echo "Linux $(basename "${modules%/kernel}") is up after $((SECONDS - began)) s"
printf '%-44s%11s%11s%11s%11s%11s%11s\n' "case (left: anabranch, right: Linux)" "left got" "right got" \
    "left gave" "right gave" end seconds
few=(--messages 1000 --streams 10 --seconds 30)
steady=(--messages 3200 --streams 10 --rate 400 --seconds 60 --rto 200:1000)
between "we open" client 1 off "" "${few[@]}" -- messages=1000
between "they open" server 1 off "" "${few[@]}" -- messages=1000
between "we open, RE-CONFIG and I-DATA on" client 1 on "" "${few[@]}" -- messages=1000
between "they open, RE-CONFIG and I-DATA on" server 1 on "" "${few[@]}" -- messages=1000
between "we abort" client 1 off "" "${few[@]}" near:"--end abort" far:"--end wait" \
    -- messages=1000 end=abort
between "two addresses, we open" client 2 off "" "${few[@]}" --rate 500 -- messages=1000 paths=2
between "two addresses, we open, a link down" client 2 off taken_down "${steady[@]}" \
    -- messages=3200 lost=1 paths=2
between "two addresses, they open, a link down" server 2 off taken_down "${steady[@]}" \
    -- messages=3200

[ $failed = 0 ] || die "$failed of $ran cases failed"
echo "$ran cases in $((SECONDS - began)) s, nothing lost, doubled or out of order"
