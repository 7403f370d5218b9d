#!/bin/busybox sh
# /init of the user-mode kernel of scripts/interop-linux.sh: two interfaces, the kernel's SCTP, and one job after the
# other from the folder that the kernel command line names (jobs=FOLDER): N.job is run, its output goes to N.log, and
# N.done says that it is over. A file `stop` ends it.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t hostfs none /host
for m in crc-ccitt hmac ipv6 udp_tunnel ip6_udp_tunnel sctp; do insmod /modules/$m.ko; done
# Debian's user-mode kernel lacks cryptomgr, without which there is no HMAC: neither for cookies nor for AUTH.
echo none >/proc/sys/net/sctp/cookie_hmac_alg
ip link set lo up
# word NAME: what the command line says of it. Here: [own1=ADDRESS/LENGTH own2=...] [to1=NETWORK,ROUTER to2=...].
word() { sed -n "s/.*\<$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
for i in 1 2; do
    own=$(word own$i)
    ip addr add "${own:-10.89.$i.2/24}" dev vec$i
    ip link set vec$i up
    to=$(word to$i)
    [ -z "$to" ] || ip route add "${to%,*}" via "${to#*,}"
done
# An address answers on its own link only.
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
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
