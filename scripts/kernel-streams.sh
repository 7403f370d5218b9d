#!/usr/bin/env bash
# Streams of small messages over SCTP and TCP in the lab beside a Linux kernel's own, in virtual time: the quick form of
# experiments/thin-streams/kernel/beside.py, one point of each sender. The kernel is Debian's user-mode one; nothing needs
# root. Fails where a delay surely differs by more than it may.
#
#   scripts/kernel-streams.sh
#
# Needs user-mode-linux, kmod, iproute2, python3, and a C compiler with static libraries. ANABRANCH=PATH is another build.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need kernel-streams python3 linux.uml cc ip tc insmod
build
scratch
trap clean_up EXIT
python3 "$repo/experiments/thin-streams/kernel/beside.py" --quick --messages 2000 --seeds 4 --program "$anabranch" \
    --out "$work/results" --programs "$work/programs"
