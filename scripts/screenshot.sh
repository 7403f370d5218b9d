#!/usr/bin/env bash
# Takes a picture of a report: that in the README of a demo's, that in docs/LAB.md of a lab's.
#
#   scripts/screenshot.sh [DIR] [PICTURE]           default: a new demo, docs/images/demo.png
#   SIZE=1000,1850 scripts/screenshot.sh results/home-router docs/images/lab.png
#
# Needs chromium (or another browser of its family by BROWSER=...), which runs without a window.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

browser=${BROWSER:-}
for name in chromium chromium-browser google-chrome chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
[ -n "$browser" ] || skip screenshot "no browser of the chromium family is installed"
scratch
trap clean_up EXIT

demo=${1:-}
if [ -z "$demo" ]; then
    build
    demo=$work/demo
    "$anabranch" demo --out "$demo"
fi
picture=${2:-$repo/docs/images/demo.png}
mkdir -p "$(dirname "$picture")"
# As root a browser refuses to run in its sandbox; it opens nothing but our own file.
"$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size="${SIZE:-1000,1780}" --force-device-scale-factor=1 --virtual-time-budget=5000 \
    --screenshot="$work/picture.png" "file://$(realpath "$demo/report.html")" >"$work/browser.log" 2>&1 ||
    { tail -n 5 "$work/browser.log" >&2; die "the browser failed"; }
[ -s "$work/picture.png" ] || die "the browser wrote no picture"
mv "$work/picture.png" "$picture"
chmod 644 "$picture"
echo "$picture: $(stat -c %s "$picture") bytes"
