#!/usr/bin/env bash
# Runs the demo several times, each with another seed, and checks all results together.
#
#   scripts/demo-repeated.sh [TIMES]        default: 5
#
# A demo whose control failed (the machine was too busy) is repeated, up to three times in all.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
build

out=${CARGO_TARGET_DIR:-$repo/target}/demo-repeated
folders=()
failed=0
for ((seed = 1; seed <= ${1:-5}; )); do
    code=0
    "$anabranch" demo --out "$out/$seed" --seed $seed || code=$?
    case $code in
    0)
        folders+=("$out/$seed")
        seed=$((seed + 1))
        ;;
    3)
        failed=$((failed + 1))
        [ $failed -lt 3 ] || skip demo-repeated "its control failed $failed times"
        ;;
    *) exit $code ;;
    esac
done
python3 "$repo/scripts/check_demo.py" "${folders[@]}"
