#!/usr/bin/env bash
# Fetches Debian's stock kernel for virtual machines and unpacks it, 27 MB; nothing is installed. scripts/qemu.sh boots it.
#
#   scripts/linux-image.sh [FOLDER [PACKAGE]]     default: linux-image in the target folder
#
# PACKAGE is linux-image-amd64 for the one of whole machines, 71 MB, which has wireless interfaces (scripts/wireless.sh).
# Needs apt-get and dpkg-deb. Does nothing when it is there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

folder=${1:-${LINUX_IMAGE:-${CARGO_TARGET_DIR:-$repo/target}/linux-image}}
[ ! -e "$folder/complete" ] || exit 0
need linux-image apt-get apt-cache dpkg-deb
rm -rf "$folder"
mkdir -p "$folder"
name=${2:-linux-image-cloud-amd64}
# The kernel that Debian's name for the newest one refers to.
fetch() {
    package=$(apt-cache depends "$name" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$package" ] && (cd "$folder" && apt-get download -qq "$package") >"$folder/apt.log" 2>&1
}
fetch || { apt-get update -qq >"$folder/apt.log" 2>&1 && fetch; } ||
    skip linux-image "$name cannot be fetched ($(tail -n 1 "$folder/apt.log"))"
dpkg-deb -x "$folder"/*.deb "$folder"
rm "$folder"/*.deb
: >"$folder/complete"
echo "$package is in $folder"
