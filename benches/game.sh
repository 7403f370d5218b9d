#!/usr/bin/env bash
# A game of 50 bots over anabranch, TCP, ENet and QUIC, through the same emulated links, interleaved, round by round.
#
#   benches/game.sh [--bots 50] [--rate 30] [--seconds 10] [--rounds 3] [--loss 0,1,5] [--stacks anabranch,tcp,…]
#                   [--lifetime 100] [--chat-every 5000] [--link 'rate 10mbit delay 25ms 5ms'] [--second 'rate …']
#
# An idle emulator runs beside each round as its control; a round beside which it lost packets or was late is done again
# (--tries 4). Exit codes: 0 done; 1 a stack failed; 2 a mistake; 3 the control failed too often. TCP needs a TUN interface,
# which is made in a network namespace of its own: as root, or where users may have namespaces. Otherwise it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}/bench/game
(cd benches/game && CARGO_TARGET_DIR="$target" cargo build --release --locked)
program=("$target/release/game" "$@")
user=()
[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
# shellcheck disable=SC2016 # for the inner shell
if unshare "${user[@]}" --net true 2>/dev/null; then
    exec unshare "${user[@]}" --net sh -c 'ip link set lo up && exec "$@"' game "${program[@]}"
fi
exec "${program[@]}"
