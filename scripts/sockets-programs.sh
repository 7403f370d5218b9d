#!/usr/bin/env bash
# Programs that were written for the kernel's SCTP, unmodified, over the preload library: iperf3, socat, and sctp_test and
# sctp_darn of lksctp-tools, in network namespaces that this script makes and removes. Fails when anything arrived
# otherwise than it was sent, or when two paths together do not reach 90 % of the sum of what each reaches alone.
#
#   scripts/sockets-programs.sh [PART]...     parts: programs multipath linux; all without
#
# Needs root, iproute2, python3, and the programs. Part `linux` runs them against the SCTP of a Linux kernel, which is a
# user-mode process: it needs Debian's user-mode-linux with its modules, cpio and busybox-static. SOCKETS=PATH is another
# build of the library, SECONDS_EACH the length of a measurement (6), KEEP=1 keeps the logs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

parts=${*:-programs multipath linux}
[ "$(id -u)" = 0 ] || skip sockets-programs "needs root"
need sockets-programs ip python3 cmp
scratch
library=${SOCKETS:-${CARGO_TARGET_DIR:-$repo/target}/release/libanabranch_sockets.so}
if [ -z "${SOCKETS:-}" ]; then
    cargo build --release --quiet --manifest-path "$repo/Cargo.toml" -p anabranch-sockets
fi
[ -e "$library" ] || die "there is no library $library"
seconds=${SECONDS_EACH:-6}

near=anab-p$$
far=anab-q$$
uml=
remove_all() {
    [ ! -d "$work/jobs" ] || : >"$work/jobs/stop"
    clean_up
    [ -z "$uml" ] || kill -- "-$uml" 2>/dev/null || true
    ip netns del $near 2>/dev/null || true
    ip netns del $far 2>/dev/null || true
}
trap remove_all EXIT

failed=0
check() { # check NAME COMMAND...: one line of the table
    local name=$1
    shift
    if "$@" >"$work/check.log" 2>&1; then
        printf 'ok    %s\n' "$name"
    else
        printf 'WRONG %s\n' "$name"
        tail -n 5 "$work/check.log" "$work"/*.log | cut -c 1-200
        failed=$((failed + 1))
    fi
}

# over NAMESPACE SETTING... -- PROGRAM...: in $command.
over() {
    local ns=$1
    shift
    command=(timeout 60 ip netns exec "$ns" env "LD_PRELOAD=$library")
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    command+=("$@")
}

two_namespaces() {
    local i
    ip netns add $near 2>"$work/ip.log" || skip sockets-programs "no network namespaces: $(cat "$work/ip.log")"
    ip netns add $far
    for i in 1 2; do
        ip -n $near link add a$i type veth peer name b$i netns $far
        ip -n $near addr add 10.78.$i.1/24 dev a$i
        ip -n $far addr add 10.78.$i.2/24 dev b$i
        ip -n $near link set a$i up
        ip -n $far link set b$i up
    done
    ip -n $near link set lo up
    ip -n $far link set lo up
}

# listening NAMESPACE PORT|-: gives a server time to listen; a TCP port can be seen.
listening() {
    local waited=0
    until [ "$2" = - ] || ip netns exec "$1" ss -ltn 2>/dev/null | grep -q ":$2 " || [ $waited -ge 50 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ "$2" != - ] || sleep 0.5
}

socat_whole() { # socat_whole SETTING...: a file of 8 MB, compared at the other end
    over $far "$@" -- socat -u SCTP-LISTEN:7000 CREATE:"$work/got"
    start socat-far "${command[@]}"
    local pid=$started
    listening $far -
    over $near "$@" -- socat -u OPEN:"$work/data" SCTP-CONNECT:10.78.1.2:7000
    "${command[@]}" 2>"$work/socat-near.log"
    finish socat-far "$pid" 30
    cmp "$work/data" "$work/got"
}

iperf_sum() { # iperf_sum FILE: Mbit/s that arrived, and what is wrong
    python3 - "$1" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
if "error" in d:
    sys.exit(d["error"])
print("%.1f" % (d["end"]["sum_received"]["bits_per_second"] / 1e6))
PY
}

# iperf NAME PEER "SETTING..." "SETTING..." OPTION...: ours near, the peer far; Mbit/s in $rate.
iperf() {
    local name=$1 peer=$2 mine=$3 theirs=$4 pid
    shift 4
    # shellcheck disable=SC2086
    over $far $theirs -- iperf3 -s -1 -p 5300
    start "$name-far" "${command[@]}"
    pid=$started
    listening $far 5300
    # shellcheck disable=SC2086
    over $near $mine -- iperf3 -c "$peer" -p 5300 --sctp -J "$@"
    "${command[@]}" >"$work/$name.json" || true
    finish "$name-far" "$pid" 30
    rate=$(iperf_sum "$work/$name.json")
}
iperf_moves() { iperf "$@" && python3 -c "import sys; sys.exit($rate < 1)"; }

sctp_test_whole() { # 24 messages of 32 kB, which say how long they are
    over $far -- stdbuf -o0 sctp_test -H 10.78.1.2 -P 7001 -l
    start sctp_test-far "${command[@]}"
    local pid=$started
    listening $far -
    over $near -- sctp_test -H 10.78.1.1 -P 7002 -h 10.78.1.2 -p 7001 -s -x 24 -c 5
    "${command[@]}" >"$work/sctp_test-near.log" 2>&1
    sleep 0.5
    kill "$pid" 2>/dev/null || true
    python3 - "$work/sctp_test-near.log" "$work/sctp_test-far.log" <<'PY'
import re, sys
near, far = (open(f, errors="replace").read() for f in sys.argv[1:])
sent = sum(int(n) for n in re.findall(r"sendmsg\(.*\) +(\d+) bytes", near))
got = sum(int(n) for n in re.findall(r"Data +(\d+) bytes", far))
print("sent", sent, "got", got)
sys.exit(sent != got or not got or "SHUTDOWN_COMPLETE" not in far)
PY
}

sctp_darn_says() {
    over $far -- stdbuf -o0 sctp_darn -H 10.78.1.2 -P 7003 -l
    start sctp_darn-far "${command[@]}"
    local pid=$started
    listening $far -
    over $near -- sctp_darn -H 10.78.1.1 -P 7004 -h 10.78.1.2 -p 7003 -s
    (echo "a line that only we would say"; sleep 1) | "${command[@]}" >"$work/sctp_darn-near.log" 2>&1 || true
    sleep 0.5
    kill "$pid" 2>/dev/null || true
    grep -aq "a line that only we would say" "$work/sctp_darn-far.log"
}

programs() {
    local tool
    for tool in socat iperf3 sctp_test sctp_darn; do
        command -v $tool >/dev/null || echo "SKIPPED sockets-programs $tool: it is not installed"
    done
    head -c 8000000 /dev/urandom >"$work/data"
    if command -v socat >/dev/null && grep -q 'WITH_SCTP 1' <<<"$(socat -V)"; then
        check "socat, 8 MB over UDP" socat_whole A=
        check "socat, 8 MB right on IP" socat_whole ANABRANCH_TRANSPORT=raw
        check "socat, 8 MB over two paths" socat_whole_two
    fi
    if command -v iperf3 >/dev/null && grep -q -- --sctp <<<"$(iperf3 --help)"; then
        check "iperf3 over UDP" iperf_moves udp 10.78.1.2 A= A= -t 1
        echo "      $rate Mbit/s"
        check "iperf3 right on IP" iperf_moves ip 10.78.1.2 ANABRANCH_TRANSPORT=raw ANABRANCH_TRANSPORT=raw -t 1
        check "iperf3, the server sends, in three streams" iperf_moves back 10.78.1.2 A= A= -t 1 -R -P 3
        check "iperf3, bound by sctp_bindx" iperf_moves bindx 10.78.1.2 A= A= -t 1 -4 -X 10.78.1.1 -X 10.78.2.1
    fi
    if command -v sctp_test >/dev/null; then check "sctp_test, one-to-many" sctp_test_whole; fi
    if command -v sctp_darn >/dev/null; then check "sctp_darn" sctp_darn_says; fi
}

socat_whole_two() {
    over $far ANABRANCH_LOCAL=10.78.1.2,10.78.2.2 ANABRANCH_PROFILE=cmt -- socat -u SCTP-LISTEN:7000 CREATE:"$work/got2"
    start socat-far "${command[@]}"
    local pid=$started
    listening $far -
    over $near ANABRANCH_LOCAL=10.78.1.1,10.78.2.1 ANABRANCH_PROFILE=cmt -- socat -u OPEN:"$work/data" SCTP-CONNECT:10.78.1.2:7000
    "${command[@]}" 2>"$work/socat-near.log"
    finish socat-far "$pid" 30
    cmp "$work/data" "$work/got2"
}

# shape N RATE: what leaves either end of path N.
shape() {
    local way
    for way in "$near a" "$far b"; do
        read -r ns dev <<<"$way"
        if ! ip netns exec "$ns" tc qdisc replace dev "$dev$1" root handle 1: tbf rate "$2" burst 64k latency 60ms \
            2>"$work/tc.log"; then
            echo "SKIPPED sockets-multipath: the kernel shapes no traffic ($(head -n 1 "$work/tc.log"))"
            return 1
        fi
        # Delay where the kernel has it.
        ip netns exec "$ns" tc qdisc replace dev "$dev$1" parent 1:1 netem delay 10ms limit 200 2>/dev/null || true
    done
}

multipath() {
    local profile=cmt one two both
    need sockets-multipath iperf3 tc
    shape 1 30mbit && shape 2 15mbit || return 0
    settings() { echo "ANABRANCH_PROFILE=$profile ANABRANCH_LOCAL=$1"; }
    echo "iperf3 --sctp for $seconds s, Mbit/s received; links of 30 and 15 Mbit/s"
    iperf one 10.78.1.2 "$(settings 10.78.1.1)" "$(settings 10.78.1.2)" -t "$seconds"
    one=$rate
    iperf two 10.78.2.2 "$(settings 10.78.2.1)" "$(settings 10.78.2.2)" -t "$seconds"
    two=$rate
    iperf both 10.78.1.2 "$(settings 10.78.1.1,10.78.2.1)" "$(settings 10.78.1.2,10.78.2.2)" -t "$seconds"
    both=$rate
    printf '      %-12s%s\n' "path 1" "$one" "path 2" "$two" "both" "$both"
    check "both paths reach 90 % of the sum of each alone" \
        python3 -c "import sys; print($both / ($one + $two)); sys.exit($both < 0.9 * ($one + $two))"
    for i in 1 2; do
        ip netns exec $near tc qdisc del dev a$i root
        ip netns exec $far tc qdisc del dev b$i root
    done
}

# The Linux kernel of scripts/interop-linux.sh, with this machine's programs: it sees our files.
linux() {
    local busybox modules m root=$work/root
    for m in linux.uml cpio iperf3 socat; do
        command -v $m >/dev/null || { echo "SKIPPED sockets-linux: $m is not installed" && return; }
    done
    busybox=$(command -v busybox) || { echo "SKIPPED sockets-linux: busybox-static is not installed" && return; }
    modules=$(find /usr/lib/uml/modules -name sctp.ko -printf '%h\n' 2>/dev/null | head -n 1)
    [ -n "$modules" ] || { echo "SKIPPED sockets-linux: the user-mode kernel has no sctp.ko" && return; }
    modules=${modules%/net/sctp}
    mkdir -p "$root"/{bin,proc,sys,dev,host,modules} "$work/jobs"
    cp "$busybox" "$root/bin/"
    cp "$repo/interop/linux/init.sh" "$root/init"
    chmod +x "$root/init"
    for m in lib/crc-ccitt crypto/hmac net/ipv6/ipv6 net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel net/sctp/sctp; do
        cp "$modules/$m.ko" "$root/modules/"
        basename "$m.ko"
    done >"$root/modules/order"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
    for i in 1 2; do
        ip -n $near tuntap add link$i mode tap
        ip -n $near addr add 10.89.$i.1/24 dev link$i
        ip -n $near link set link$i up
    done
    # A user-mode kernel on a busy machine dies at its beginning now and then.
    if ! boot_linux && ! boot_linux; then
        # Its buffer for registers ends where those of processors with AMX go on.
        if grep -q "ptrace set fp regs failed" "$work/uml.log"; then
            echo "SKIPPED sockets-linux: user-mode Linux runs no program on this processor, whose registers are too large for it"
            return
        fi
        die "the kernel does not come up: $(tail -n 3 "$work/uml.log")"
    fi
    head -c 3000000 /dev/urandom >"$work/small"
    check "socat, 3 MB to Linux" socat_to_linux
    check "socat, 3 MB from Linux" socat_from_linux
    check "iperf3 to Linux" iperf_linux
    echo "      $rate Mbit/s (a user-mode kernel: no measure of either)"
    check "iperf3, Linux sends" iperf_linux -R
}

boot_linux() {
    local waited=0
    set -m
    ip netns exec $near linux.uml mem=96M initrd="$work/initrd.gz" rdinit=/init con=null con0=null,fd:1 quiet \
        vec1:transport=tap,ifname=link1,depth=128,gro=0 vec2:transport=tap,ifname=link2,depth=128,gro=0 \
        jobs="$work/jobs" >"$work/uml.log" 2>&1 </dev/null &
    uml=$!
    set +m
    until [ -e "$work/jobs/up" ]; do
        waited=$((waited + 1))
        [ $waited -le 300 ] && kill -0 $uml 2>/dev/null || return 1
        sleep 0.1
    done
}

# job NAME COMMAND: runs in the guest, with this machine's files as its root.
job() {
    rm -f "$work/jobs/$1.done"
    printf '%s\n' "exec chroot /host $2" >"$work/jobs/$1.new"
    mv "$work/jobs/$1.new" "$work/jobs/$1.job"
}
job_done() {
    local waited=0
    until [ -e "$work/jobs/$1.done" ]; do
        waited=$((waited + 1))
        [ $waited -lt 300 ] || return 1
        sleep 0.1
    done
}
socat_to_linux() {
    job a "socat -u SCTP-LISTEN:7100 CREATE:$work/at-linux"
    sleep 1.5
    over $near ANABRANCH_TRANSPORT=raw -- socat -u OPEN:"$work/small" SCTP-CONNECT:10.89.1.2:7100
    "${command[@]}" && job_done a && cmp "$work/small" "$work/at-linux"
}
socat_from_linux() {
    over $near ANABRANCH_TRANSPORT=raw -- socat -u SCTP-LISTEN:7101 CREATE:"$work/from-linux"
    start from-linux "${command[@]}"
    local pid=$started
    listening $near -
    job b "socat -u OPEN:$work/small SCTP-CONNECT:10.89.1.1:7101"
    job_done b && finish from-linux "$pid" 30 && cmp "$work/small" "$work/from-linux"
}
iperf_linux() {
    job c "iperf3 -s -1 -p 5400"
    sleep 1.5
    over $near ANABRANCH_TRANSPORT=raw -- iperf3 -c 10.89.1.2 -p 5400 --sctp -J -t 2 "$@"
    "${command[@]}" >"$work/linux.json" || true
    job_done c
    rate=$(iperf_sum "$work/linux.json")
    python3 -c "import sys; sys.exit($rate < 0.5)"
}

two_namespaces
for part in $parts; do
    case $part in
    programs | multipath | linux) $part ;;
    *) echo "$0: there is no part $part; there are: programs multipath linux" >&2 && exit 2 ;;
    esac
done
[ $failed = 0 ] || die "$failed checks failed"
