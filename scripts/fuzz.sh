#!/usr/bin/env bash
# Runs one fuzz target, or all of them, for a while.
#
#   scripts/fuzz.sh [TARGET|all] [SECONDS]      default: all, 60 s each
#
# FAST_BUILD=1 builds without AddressSanitizer and hardly optimised, for a few seconds of each: in safe code only panics are
# to be found. The library of sockets is not all safe code; what that does to memory only the slow build sees, which is the
# default, and the nightly run's.
#
# Needs a nightly compiler and cargo-fuzz. What it finds lies in fuzz/artifacts/TARGET; a finding is fixed and
# becomes a test and a seed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${2:-60}
targets=${1:-all}
[ "$targets" != all ] || targets=$(cargo +nightly fuzz list)

options=()
if [ -n "${FAST_BUILD:-}" ]; then
    options=(--sanitizer none)
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0
fi
for target in $targets; do
    # The first folder takes what is found on the way; the seeds are only read.
    folders=("fuzz/corpus/$target")
    mkdir -p "${folders[0]}"
    [ ! -d "fuzz/seeds/$target" ] || folders+=("fuzz/seeds/$target")
    cargo +nightly fuzz run "${options[@]}" "$target" "${folders[@]}" -- -max_total_time="$seconds" -verbosity=0 -print_final_stats=1
done
