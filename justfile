# Every habit, each a thin line over cargo or a script. `just --list` shows them.

# What to run first: format and lints
check:
    cargo fmt --all --check
    scripts/words.sh
    cargo clippy --workspace --all-targets -- -D warnings

# The ways through an association: calls in order, rooms that are entered, returns
rooms *args:
    scripts/rooms.py {{args}}

# Format everything
fmt:
    cargo fmt --all

# The lints alone
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The README's test command
test *args:
    cargo test --workspace {{args}}

# Everything CI does
ci:
    bash .ci/run

# Could the crates be published? package, msrv, deny, semver, or all of them
publishable *checks:
    scripts/publishable.sh {{checks}}

# The program with manual pages and completions, packed as for a release
bundle *target:
    scripts/bundle.sh {{target}}

# The program as it is released, built with what a run of it has counted; needs llvm-tools of rustup
trained *target:
    scripts/trained.sh {{target}}

# The documentation of all crates
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude anabranch --no-deps

# One live video over two emulated networks, with a report
demo *args:
    cargo run --release -- demo {{args}}

# The demo several times with other seeds, and the sums checked
demo-repeated times="5":
    scripts/demo-repeated.sh {{times}}

# What the engine costs beside other stacks, interleaved; needs libusrsctp-dev for usrsctp
bench *args:
    benches/run.sh {{args}}

# What a live stream costs beside srt-live-transmit, interleaved; needs srt-tools
bench-live *args:
    benches/live.sh {{args}}

# A game over anabranch, TCP, ENet and QUIC, through the same emulated links; TCP needs a network namespace
bench-game *args:
    benches/game.sh {{args}}

# What our stack costs, in a few seconds
bench-quick:
    cargo run --release -- bench --quick

# A gigabyte through loss and reordering, checked by content
bulk megabytes="1024":
    ANABRANCH_BULK_MB={{megabytes}} cargo test --release -p anabranch-engine --test endurance bulk

# A virtual day on two bad paths, every message accounted for
day hours="24":
    ANABRANCH_DAY_HOURS={{hours}} cargo test --release -p anabranch-engine --test endurance day -- --nocapture

# Random configurations, policies and weather in virtual time, so many of them from number FIRST on
random-configurations count="20000" first="0":
    ANABRANCH_CONFIGURATIONS={{count}} ANABRANCH_FIRST={{first}} cargo test -p anabranch-engine --test endurance random_configurations -- --nocapture

# Virtual hours of random weather for each own profile: how long nothing came in time although a path was able
soak hours="2":
    ANABRANCH_SOAK_HOURS={{hours}} cargo test --release -p anabranch-engine --test endurance soak -- --nocapture

# Attacks, with what they cost, held against docs/SECURITY.md
attacks:
    ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine --test attacks -- --nocapture --test-threads 1

# The figures in docs/SECURITY.md, PATHS.md and MEASURED.md that tests of the engine hold, written by them
figures:
    UPDATE=1 cargo test -p anabranch-engine --lib --test attacks --test endurance --test paths --test transfer
    UPDATE=1 ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine --test paths --test transfer --test weather -- rebinding send_buffer events_cost

# Strangers at the door of the real programs, beside a real sender; `--soak 2h` for a long time
strangers *args:
    scripts/strangers.sh {{args}}

# Property tests drawn from another seed than that of `cargo test`, with more cases where a test leaves their number open
properties seed cases="2000":
    PROPTEST_RNG_SEED={{seed}} PROPTEST_CASES={{cases}} cargo test --workspace

# The engine's tests over all cases of their grids, of which an ordinary run takes some
all-cases *args:
    ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine {{args}}

# Every experiment's quick runs against their committed fingerprints; `UPDATE=1 just fingerprints` writes them anew
fingerprints:
    cargo build --release
    rm -rf target/fingerprints
    for list in experiments/*/fingerprints.csv; do \
        name=$(basename $(dirname $list)); \
        target/release/anabranch lab run $name --quick --out target/fingerprints/$name >/dev/null && \
        scripts/check_fingerprints.py target/fingerprints/$name $list || exit 1; \
    done

# Mutants of a crate that its own tests catch, a sample; needs cargo-mutants (docs/MUTANTS.md)
mutants package="anabranch-policy" *args="":
    scripts/mutants.py {{package}} {{args}}

# Fuzz one target or all of them; needs nightly and cargo-fuzz
fuzz target="all" seconds="600":
    scripts/fuzz.sh {{target}} {{seconds}}

# Bytes of the way back beside a live stream, over calm paths and over paths whose packets overtake each other
way-back *args:
    scripts/way-back.sh {{args}}

# Ten scenarios of weather on real sockets, beside the simulator's intervals
weather-sockets *args:
    scripts/weather-sockets.sh {{args}}

# A film with and without parity on real sockets, beside the simulator's intervals
erasure-sockets *args:
    scripts/erasure-sockets.sh {{args}}

# What a decoder makes of the clip over lossy paths, with and without parity; needs ffmpeg
erasure-picture *args:
    scripts/erasure-picture.sh {{args}}

# A stream over the networks of Becke et al. 2013 on real sockets, beside the simulator, sender by sender; 14 minutes
confluent-sockets *args:
    scripts/confluent-sockets.sh {{args}}

# A transfer with a WLAN's reports of its frames and without on real sockets, beside the simulator; 6 minutes
cross-layer-sockets *args:
    scripts/cross-layer-sockets.sh {{args}}

# The anchor of the sparse messages on real sockets, ten minutes beside the simulator's
anchor-live *args:
    scripts/anchor-live.sh {{args}}

# A live stream over two emulated paths, one cut in the middle; needs ffmpeg
live:
    scripts/live-loopback.sh

# Both ends of a live stream restarted, killed, stopped and late, twenty times; --short takes less than a minute
restarts *args:
    scripts/restarts.sh {{args}}

# A real x264 over two emulated paths that follows what they carry, beside one that does not; needs ffmpeg and GStreamer
encoder-follow seconds="45":
    scripts/encoder/follow.sh {{seconds}}

# The scripts for encoders, OBS played by a small server
encoder-scripts:
    python3 scripts/encoder/test_follow.py

# `live` through network namespaces instead of relays; needs root, ffmpeg, iproute2
netns:
    scripts/netns.sh

# A stream in RTP through a network that reorders, beside one for which nothing is waited; needs ffmpeg
rtp:
    scripts/rtp.sh

# Associations with all the stacks below; `just interop-usrsctp PATTERN` and its kin run some
interop: interop-usrsctp interop-rust interop-linux

# Associations with two Rust stacks, dcsctp and sctp-proto, in virtual time
interop-rust *args:
    CARGO_TARGET_DIR=target/interop cargo test --locked --manifest-path interop/rust/Cargo.toml {{args}}

# Associations with usrsctp; needs libusrsctp-dev, and root for raw IP and two addresses
interop-usrsctp *pattern:
    scripts/interop-usrsctp.sh {{pattern}}

# Associations with a Linux kernel's SCTP; needs root, nftables, busybox-static, cpio, qemu-system-x86 and kmod, or
# user-mode-linux
interop-linux *pattern:
    scripts/interop-linux.sh {{pattern}}

# Frames as a kernel's wireless stack counts them, beside what statistics say; needs qemu-system-x86, kmod, iw
wireless:
    scripts/wireless.sh

# Small messages over a Linux kernel's SCTP and TCP in virtual time, beside the lab; needs user-mode-linux
kernel-streams:
    scripts/kernel-streams.sh

# iperf3, socat and lksctp's programs over the preload library; needs root and them. Parts: programs multipath linux
sockets *parts:
    scripts/sockets-programs.sh {{parts}}

# How long dead paths keep what they were given, on the wire, of anabranch, usrsctp or linux; needs root, tcpdump, nftables
path-deaths *args:
    scripts/path-deaths.sh {{args}}

# Path MTU discovery on a stream through network namespaces, in a capture; needs root, nft, tcpdump
path-mtu:
    scripts/path-mtu.sh

# A live stream by us, SRT, RIST, srtla and MPTCP over the same bad paths, judged by one tool; needs root, ffmpeg, iproute2
# and socat. `just rivals quick` is a short form
rivals *args:
    scripts/rivals.sh {{args}}

# What the wire shows from behind NATs; needs root, tcpdump, libusrsctp-dev
nat-wire:
    scripts/nat-wire.sh

# Our captures, read by tshark
captures:
    cargo test -p anabranch-wire --test tshark -- --ignored
    scripts/check-pcap.sh

# The picture in the README; needs chromium
screenshot *args:
    scripts/screenshot.sh {{args}}

# docs/ALGORITHMS.md, written from the registry of policies
algorithms:
    UPDATE=1 cargo test -p anabranch-policy

# Without PATH: docs/CONFORMANCE.md from the marks of the tests. With it: outside suites, see docs/SOCKETS.md
conformance path="" *args:
    {{ if path == "" { "UPDATE=1 cargo test -p anabranch-engine --test conformance" } else { "conformance/run.py " + path } }} {{args}}

# A paper's experiments: every point and seed, figures, a verdict for each claim
reproduce experiment="rtx-csi" *args:
    cargo run --release -- lab run {{experiment}} {{args}}

# The simulator beside ns-2.35 (Debian package ns2): goodput on a grid, see experiments/crosscheck-ns2/README.md.
crosscheck-ns2 *args:
    experiments/crosscheck-ns2/run.sh {{args}}

# The simulator's speed and memory beside ns-2.35's, with the bounds it is to keep.
speed-ns2 *args:
    experiments/crosscheck-ns2/speed/speed.sh {{args}}
