#!/usr/bin/env bash
# Can the crates be published? Their packages, the oldest compiler, licences and advisories, the interface.
#
#   scripts/publishable.sh [list|package|msrv|msrv-libraries|deny|semver]...   without a name package, msrv, deny, semver
#
# What is missing on this machine is skipped by name.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    printf 'SKIPPED %s: %s\n' "$1" "$2"
}

# Every crate that is meant for others, packed, and built from what is in its package alone.
package() {
    cargo publish --workspace --allow-dirty --dry-run --quiet
}

# The packages are made, and not built: seconds in place of minutes.
list() {
    cargo package --workspace --allow-dirty --no-verify --quiet
}

# `rust-version` says which compiler is enough. The arguments say of what.
msrv() {
    local version
    [ $# -gt 0 ] || set -- --workspace
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! command -v rustup >/dev/null || ! rustup toolchain install "$version" --profile minimal >/dev/null 2>&1; then
        skip "Rust $version" "rustup cannot install it here"
        return
    fi
    # Programs that only this repository builds may need more, and so may tests.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv rustup run "$version" cargo check "$@" --quiet
}

# The crates that programs of others are built on.
msrv-libraries() {
    msrv -p anabranch-engine -p anabranch-net -p anabranch-media -p anabranch-sim -p anabranch-emulator
}

deny() {
    if ! cargo deny --version >/dev/null 2>&1; then
        skip cargo-deny "not installed (cargo install --locked cargo-deny)"
        return
    fi
    cargo deny --log-level error check licenses bans sources
    # They come from a repository of their own.
    if cargo deny --log-level error fetch db >/dev/null 2>&1; then
        cargo deny --log-level error check advisories
    else
        skip "security advisories" "github.com/rustsec/advisory-db cannot be reached"
    fi
}

# Against the last release: what breaks those who use a crate needs a new minor version before 1.0.
semver() {
    local tag
    if ! tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
        skip cargo-semver-checks "there is no release to compare with"
    elif ! cargo semver-checks --version >/dev/null 2>&1; then
        skip cargo-semver-checks "not installed (cargo install --locked cargo-semver-checks)"
    else
        cargo semver-checks --workspace --exclude anabranch --exclude anabranch-sockets --baseline-rev "$tag"
    fi
}

[ $# -gt 0 ] || set -- package msrv deny semver
for check in "$@"; do
    printf '==== %s\n' "$check"
    case $check in
    list | package | msrv | msrv-libraries | deny | semver) "$check" ;;
    *)
        echo "there is no check \`$check\`: list, package, msrv, msrv-libraries, deny, semver" >&2
        exit 2
        ;;
    esac
done
