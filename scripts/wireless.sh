#!/usr/bin/env bash
# Reports on frames from a kernel's own wireless stack: Debian's kernel in QEMU with two radios of mac80211_hwsim, which hear
# each other. `anabranch send --profile cmt-cl` takes a stream over its radio and over a wire to `anabranch recv`; the peer's
# radio is turned away for a tenth of the time in the middle third. What the sender's statistics say of frames is compared
# with what `iw` reads from the kernel, and the wire must be reported to have no counts.
#
#   scripts/wireless.sh         40 s, once 71 MB to fetch
#
# Needs qemu-system-x86, cpio, busybox-static, kmod, iproute2, iw, binutils, and what scripts/linux-image.sh fetches. KEEP=1
# keeps the logs; WIRELESS_IMAGE=FOLDER is where that is, ANABRANCH=PATH is another build of the program.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/qemu.sh
. "$(dirname "$0")/qemu.sh"

need wireless python3 ip iw strip
scratch
remove_all() {
    qemu_off
    clean_up
}
trap remove_all EXIT
build
LINUX_IMAGE=${WIRELESS_IMAGE:-${CARGO_TARGET_DIR:-$repo/target}/linux-image-wireless}
[ -e "$LINUX_IMAGE/complete" ] || "$repo/scripts/linux-image.sh" "$LINUX_IMAGE" linux-image-amd64
# Else the kernel of virtual machines would be fetched in its place, which has no radios.
[ -e "$LINUX_IMAGE/complete" ] || skip wireless "there is no kernel with wireless interfaces: see scripts/linux-image.sh"
qemu_kernel wireless
mkdir -p "$work/root/programs"
strip -o "$work/anabranch" "$anabranch"
qemu_initrd ip iw "$work/anabranch" -- mac80211_hwsim veth
# shellcheck disable=SC2034
qemu_memory=256
qemu_boot radio - - -

seconds=6
qemu_job radio stream "
export PATH=/programs:/bin
# Not the one of busybox.
ip() { /programs/ip \"\$@\"; }
mount -t debugfs none /sys/kernel/debug
mkdir -p /run/netns
ip netns add far
iw phy phy1 set netns name far
ip link add wire type veth peer name wire netns far
far() { ip netns exec far \"\$@\"; }
ip addr add 10.90.1.1/24 dev wlan0
ip addr add 10.90.2.1/24 dev wire
far ip addr add 10.90.1.2/24 dev wlan1
far ip addr add 10.90.2.2/24 dev wire
iw dev wlan0 set type ibss
far iw dev wlan1 set type ibss
for i in wlan0 wire; do ip link set \$i up; done
for i in lo wlan1 wire; do far ip link set \$i up; done
iw dev wlan0 ibss join lab 2412 HT20 fixed-freq 02:ca:ff:ee:ba:be
far iw dev wlan1 ibss join lab 2412 HT20 fixed-freq 02:ca:ff:ee:ba:be
for i in \$(seq 50); do ! ping -c 1 -W 1 10.90.1.2 >/dev/null || break; sleep 0.2; done
echo \"#radios hear each other\"
# What the kernel counts, with the time.
count() { echo \"#\$1 \$(date +%s)\"; iw dev wlan0 station dump | grep -E 'tx (packets|retries|failed|bitrate)'; }
far anabranch recv anabranch://0.0.0.0:5000 - --once >/dev/null 2>/tmp/recv.log &
sleep 1
count begin
yes | anabranch send -v - anabranch://10.90.1.2:5000 --path wlan0 --path wire,via=10.90.2.2:5000 --mode file --profile cmt-cl \\
    --duration $((3 * seconds))s --once -J --stats-interval 500ms --stats-file /tmp/send.json >/tmp/send.log 2>&1 &
sender=\$!
sleep $seconds
count away
group=/sys/kernel/debug/ieee80211/phy1/hwsim/group
for i in \$(seq $((seconds * 5))); do
    echo 2 >\$group; usleep 20000; echo 1 >\$group; usleep 180000
done
count back
wait \$sender
count end
echo '#log'; cat /tmp/send.log /tmp/recv.log
echo '#stats'; cat /tmp/send.json
"
qemu_done radio stream 120
python3 "$repo/scripts/wireless_judge.py" "$work/radio/stream.log"
