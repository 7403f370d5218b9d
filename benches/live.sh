#!/usr/bin/env bash
# What a live stream costs beside srt-live-transmit (Debian: srt-tools), interleaved, round by round.
#
#   benches/live.sh [--rates 8,40,200] [--rounds 3] [--seconds 8] [--latency 300] [--only anabranch|srt]
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v srt-live-transmit >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -y -q --no-install-recommends srt-tools >/dev/null
    else
        echo "SKIPPED srt: srt-live-transmit is not installed (Debian: srt-tools)"
        set -- "$@" --only anabranch
    fi
fi
cargo build --release --locked -p anabranch --bin anabranch --example live_cost
target=${CARGO_TARGET_DIR:-target}
exec "$target/release/examples/live_cost" --program "$target/release/anabranch" "$@"
