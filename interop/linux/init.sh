#!/bin/busybox sh
# /init of the kernels of scripts/interop-linux.sh, in user mode or in QEMU: two interfaces, the kernel's SCTP, and jobs.
# In user mode they come from the folder that the kernel command line names (jobs=FOLDER): N.job is run, its output goes
# to N.log, and N.done says that it is over; a file `stop` ends it. In QEMU each serial port brings one job after the
# other, a line of base64, and takes its output and "#exit CODE".
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r m; do insmod "/modules/$m"; done </modules/order
ip link set lo up
# word NAME: what the command line says of it. Here: [own1=ADDRESS/LENGTH own2=...] [to1=NETWORK,ROUTER to2=...].
word() { sed -n "s/.*\<$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
if [ -e /sys/class/net/eth0 ]; then names='eth0 eth1'; else names='vec1 vec2'; fi
i=1
for name in $names; do
    [ -e /sys/class/net/$name ] || continue
    own=$(word own$i)
    ip addr add "${own:-10.89.$i.2/24}" dev $name
    if [ -z "$own" ] && [ -e /proc/sys/net/ipv6/conf/$name ]; then
        # No other host has it: it may be used at once.
        echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad
        ip addr add fd89:$i::2/64 dev $name
    fi
    ip link set $name up
    to=$(word to$i)
    [ -z "$to" ] || ip route add "${to%,*}" via "${to#*,}"
    i=$((i + 1))
done
# An address answers on its own link only.
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce

# serve PORT: its jobs, for ever; a read ends when the other side is closed.
serve() {
    exec 3<>"$1"
    while :; do
        if read -r line <&3; then
            echo "$line" | base64 -d | sh >&3 2>&1
            echo "#exit $?" >&3
        else
            usleep 50000
        fi
    done
}
if [ "$(word jobs)" = "" ]; then
    for port in /dev/vport*; do serve "$port" & done
    echo "init: up" >/dev/console
    wait
fi

# Debian's user-mode kernel lacks cryptomgr, without which there is no HMAC: neither for cookies nor for AUTH.
echo none >/proc/sys/net/sctp/cookie_hmac_alg
mount -t hostfs none /host
jobs=/host$(word jobs)
: >"$jobs/up"
while [ ! -e "$jobs/stop" ]; do
    for job in "$jobs"/*.job; do
        [ -e "$job" ] || continue
        name=${job%.job}
        mv "$job" "$name.running"
        (
            sh "$name.running" >"$name.log" 2>&1
            : >"$name.done"
        ) &
    done
    usleep 50000
done
poweroff -f
