#!/usr/bin/env bash
# Our stack beside an older one of ours, interleaved, round by round, built with the same settings.
#
# TRAINED=1 takes ours as it is released (scripts/trained.sh), and the older one as it was. PAIRS=60 takes each row in so many
# pairs of short runs (benches/pairs.py), for machines whose speed changes.
#
#   benches/against.sh REVISION [OPTIONS OF anabranch bench]      writes bench.json and bench.txt into target/against
#   PAIRS=N benches/against.sh REVISION [TEST...]                 prints a table
set -euo pipefail
cd "$(dirname "$0")/.."
revision=${1:?usage: benches/against.sh REVISION [OPTIONS OF anabranch bench]}
shift
[[ ${PAIRS:-2} =~ ^[1-9][0-9]*$ ]] || { echo "PAIRS is a number of pairs, such as 60, and not \`$PAIRS\`" >&2; exit 2; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/against
mkdir -p "$out"
commit=$(git rev-parse --verify --quiet "$revision^{commit}") || { echo "there is no revision \`$revision\`" >&2; exit 2; }
if [ ! -x "$out/$commit" ]; then
    tree=$(mktemp -d)
    trap 'git worktree remove --force "$tree/tree"; rm -rf "$tree"' EXIT
    git worktree add --quiet --detach "$tree/tree" "$commit"
    # In a folder of its own: crates of one name and place in their workspace would be taken for built already.
    (cd "$tree/tree" && CARGO_TARGET_DIR=$out/build cargo build --release --locked --bin anabranch)
    cp "$out/build/release/anabranch" "$out/$commit"
fi
if [ -n "${TRAINED:-}" ]; then
    now=$(scripts/trained.sh | tail -n 1)
else
    cargo build --release --locked --bin anabranch
    now=$target/release/anabranch
fi
if [ -n "${PAIRS:-}" ]; then
    benches/pairs.py --pairs "$PAIRS" "$out/$commit" "$now" "$@"
    exit
fi
# A peer knows two tests by other names, and the length of one in bytes; ours is in seconds.
cat >"$out/before" <<PEER
#!/bin/sh
test=\$1 transport=\$2 count=\$4
case \$test in
assoc) test=setup ;;
vnet) test=path transport=vnet count=20 ;;
esac
exec "$out/$commit" bench row "\$test" "\$transport" "\$3" "\$count" "\$5"
PEER
chmod +x "$out/before"
"$now" bench --peer "before=$out/before" --out "$out" "$@"
