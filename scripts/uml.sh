# shellcheck shell=bash disable=SC2154
# Linux's own SCTP in user-mode kernels (3 s to boot, 64 MB each): what the scripts beside this file share. Read by them
# after lib.sh, not run. A kernel runs jobs that are left for it in $work/NAME (interop/linux/init.sh).

umls=()

# uml_image CHECK: builds the peer and the initramfs: busybox, the modules, our init. Skips CHECK where a tool is missing.
uml_image() {
    local busybox modules root=$work/root m
    need "$1" cc linux.uml cpio ip
    busybox=$(command -v busybox) || skip "$1" "busybox-static is not installed"
    modules=$(find /usr/lib/uml/modules -name sctp.ko -printf '%h\n' 2>/dev/null | head -n 1)
    [ -n "$modules" ] || skip "$1" "the user-mode kernel has no sctp.ko"
    modules=${modules%/net/sctp}
    uml_version=$(basename "${modules%/kernel}")
    cc -O2 -static -I "$repo/interop/linux" -o "$work/peer" "$repo/interop/usrsctp/peer.c" -lpthread 2>"$work/cc.log" ||
        skip "$1" "the peer does not build ($(grep -m1 -E 'error|cannot find' "$work/cc.log"))"
    mkdir -p "$root"/{bin,proc,sys,dev,host,modules}
    cp "$busybox" "$work/peer" "$root/bin/"
    cp "$repo/interop/linux/init.sh" "$root/init"
    chmod +x "$root/init"
    for m in lib/crc-ccitt crypto/hmac net/ipv6/ipv6 net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel net/sctp/sctp; do
        cp "$modules/$m.ko" "$root/modules/"
        basename "$m.ko"
    done >"$root/modules/order"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
}

# uml_boot NAME NAMESPACE TAP1 TAP2 WORD...: a kernel whose links are these; the words are for init.
uml_boot() {
    local name=$1 waited=0 pid
    mkdir -p "$work/$name"
    set -m
    ip netns exec "$2" linux.uml mem=64M initrd="$work/initrd.gz" rdinit=/init con=null con0=null,fd:1 quiet \
        vec1:transport=tap,ifname="$3",depth=128,gro=0 vec2:transport=tap,ifname="$4",depth=128,gro=0 \
        "${@:5}" jobs="$work/$name" >"$work/$name.uml.log" 2>&1 </dev/null &
    pid=$!
    set +m
    umls+=("$pid")
    until [ -e "$work/$name/up" ]; do
        waited=$((waited + 1))
        if [ $waited -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
            tail -n 5 "$work/$name.uml.log"
            # Its buffer for registers ends where those of processors with AMX go on.
            ! grep -q "ptrace set fp regs failed" "$work/$name.uml.log" ||
                die "user-mode Linux runs no program on this processor, whose registers are too large for it"
            die "the kernel does not come up"
        fi
        sleep 0.1
    done
}

# uml_job KERNEL NAME LINES: commands for it; their output is $work/KERNEL/NAME.log.
uml_job() {
    printf '%s\n' "$3" >"$work/$1/$2.new"
    mv "$work/$1/$2.new" "$work/$1/$2.job"
}

# uml_done KERNEL NAME SECONDS: waits for its end.
uml_done() {
    local waited=0
    until [ -e "$work/$1/$2.done" ] || [ $waited -ge $(($3 * 10)) ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}

# uml_off: ends all of them.
uml_off() {
    local pid folder
    [ -z "$work" ] || for folder in "$work"/*/; do [ ! -d "$folder" ] || : >"$folder/stop"; done
    for pid in "${umls[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
    umls=()
}
