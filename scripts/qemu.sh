# shellcheck shell=bash disable=SC2154
# Debian's stock kernel in QEMU, without hardware's help (7 to 14 s to boot on a busy machine, 220 MB each): the same functions as those of
# uml.sh. Read after lib.sh, not run. Jobs go through serial ports, not through the network that is tested.

qemus=()
# At once; each has a port.
qemu_jobs=2

# linux_image: where the kernel is, in $image; fetched when it is not there. False when it is not to be had.
linux_image() {
    image=${LINUX_IMAGE:-${CARGO_TARGET_DIR:-$repo/target}/linux-image}
    [ -e "$image/complete" ] || "$repo/scripts/linux-image.sh" "$image"
    [ -e "$image/complete" ]
}

# qemu_image CHECK: builds the peer and the initramfs: busybox, tc, the modules, our init. Skips CHECK where something is
# missing.
qemu_image() {
    local root=$work/root
    need "$1" cc ip tc
    qemu_kernel "$1"
    cc -O2 -static -I "$repo/interop/linux" -o "$work/peer" "$repo/interop/usrsctp/peer.c" -lpthread 2>"$work/cc.log" ||
        skip "$1" "the peer does not build ($(grep -m1 -E 'error|cannot find' "$work/cc.log"))"
    mkdir -p "$root/bin"
    cp "$work/peer" "$root/bin/"
    # busybox has a tc and an ip of its own, which know less.
    qemu_initrd tc ip -- sctp sch_netem sch_ingress cls_matchall act_mirred ifb hmac
}

# qemu_kernel CHECK: the kernel, in $work/vmlinuz. Skips CHECK where something is missing.
qemu_kernel() {
    need "$1" qemu-system-x86_64 cpio depmod modprobe busybox
    linux_image || skip "$1" "there is no kernel image: see scripts/linux-image.sh"
    cp "$image"/boot/vmlinuz-* "$work/vmlinuz"
}

# qemu_initrd PROGRAM... -- MODULE...: the initramfs of $work/root, with these in it.
qemu_initrd() {
    local root=$work/root m
    mkdir -p "$root"/{bin,proc,sys,dev,tmp,modules,programs}
    cp "$(command -v busybox)" "$root/bin/"
    while [ "$1" != -- ]; do
        qemu_program "$1" "$root"
        shift
    done
    shift
    cp "$repo/interop/linux/init.sh" "$root/init"
    chmod +x "$root/init"
    qemu_version=$(basename "$(find "$image/lib/modules" -mindepth 1 -maxdepth 1)")
    depmod -b "$image" "$qemu_version"
    for m in virtio_pci virtio_net virtio_console "$@"; do
        modprobe -d "$image" -S "$qemu_version" --show-depends "$m" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' >"$work/modules"
    while read -r m; do
        cp "$m" "$root/modules/"
        basename "$m"
    done <"$work/modules" >"$root/modules/order"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
}

# qemu_program NAME ROOT: with its libraries.
qemu_program() {
    local file library
    file=$(readlink -f "$(command -v "$1")")
    cp "$file" "$2/programs/$(basename "$1")"
    while read -r library; do
        mkdir -p "$2$(dirname "$library")"
        cp -L "$library" "$2$library"
    done < <(ldd "$file" | grep -oE '/[^ ]+')
}

# qemu_boot NAME NAMESPACE TAP1 TAP2 WORD...: a kernel whose links are these; the words are for init. With NAMESPACE - it
# has none.
qemu_boot() {
    local name=$1 links=(-nic none) there=() waited=0 pid i
    mkdir -p "$work/$name"
    [ "$2" = - ] || links=() there=(ip netns exec "$2")
    for i in 1 2; do
        [ "$2" != - ] || continue
        links+=(-netdev "tap,id=n$i,ifname=${*:i+2:1},script=no,downscript=no"
            -device "virtio-net-pci,netdev=n$i,mac=52:54:00:89:0$i:02,romfile=")
    done
    for i in $(seq $qemu_jobs); do
        links+=(-chardev "socket,id=c$i,path=$work/$name/port$i,server=on,wait=off"
            -device "virtserialport,chardev=c$i,nr=$i")
    done
    set -m
    # The device /dev/kvm need not work where it exists. On a busy machine the check of the timer would fail.
    "${there[@]}" qemu-system-x86_64 -machine q35 -accel tcg,tb-size=32 -cpu max -smp 1 -m "${qemu_memory:-128}" -nodefaults \
        -no-user-config -display none -no-reboot -serial "file:$work/$name/console" -kernel "$work/vmlinuz" \
        -initrd "$work/initrd.gz" -append "console=ttyS0 quiet edd=off no_timer_check panic=-1 net.ifnames=0 mitigations=off ${*:5}" \
        -device virtio-serial-pci "${links[@]}" >"$work/$name.qemu.log" 2>&1 </dev/null &
    pid=$!
    set +m
    qemus+=("$pid")
    until grep -qs 'init: up' "$work/$name/console"; do
        waited=$((waited + 1))
        if [ $waited -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then
            tail -n 5 "$work/$name.qemu.log" "$work/$name/console"
            die "the kernel does not come up"
        fi
        sleep 0.1
    done
}

# qemu_job KERNEL NAME LINES: commands for it; their output is $work/KERNEL/NAME.log.
qemu_job() {
    local port log=$work/$1/$2
    for port in $(seq $qemu_jobs); do
        if mkdir "$work/$1/busy$port" 2>/dev/null; then
            (
                python3 "$repo/scripts/qemu_job.py" "$work/$1/port$port" <<<"$3" >"$log.log" 2>&1 || true
                rmdir "$work/$1/busy$port"
                : >"$log.done"
            ) &
            return
        fi
    done
    die "more than $qemu_jobs jobs at once"
}

# qemu_done KERNEL NAME SECONDS: waits for its end.
qemu_done() {
    local waited=0
    until [ -e "$work/$1/$2.done" ] || [ $waited -ge $(($3 * 10)) ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}

# qemu_off: ends all of them.
qemu_off() {
    local pid
    for pid in "${qemus[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
    qemus=()
}
