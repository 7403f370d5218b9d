#!/usr/bin/env bash
# Packs the built program with its manual pages, completions, preload library, licences and changelog for a release.
#
# The program is built as scripts/trained.sh says.
#
#   scripts/bundle.sh [TARGET]          this machine's without one; leaves target/bundle/anabranch-VERSION-TARGET.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=anabranch-$version-$target
built=${CARGO_TARGET_DIR:-target}/trained/$target/release
out=target/bundle

scripts/trained.sh "$target"
rm -rf "${out:?}/$name"
mkdir -p "$out/$name/completions"
cp "$built/anabranch" "$built/libanabranch_sockets.so" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$out/$name/"
"$built/anabranch" generate man "$out/$name/man"
for shell in bash zsh fish; do
    "$built/anabranch" generate completions "$shell" >"$out/$name/completions/anabranch.$shell"
done
tar -C "$out" -czf "$out/$name.tar.gz" "$name"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
