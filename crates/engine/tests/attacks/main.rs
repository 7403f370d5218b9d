//! Attacks, each with its figures: what a stranger, an eavesdropper and a lying peer can cost us.
//!
//! Memory is what the allocator handed out, work is the number of allocations, packets and bytes: nothing here depends
//! on how fast the machine is. `docs/SECURITY.md` quotes what `cargo test -p anabranch-engine --test attacks --
//! --nocapture --test-threads 1` prints.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/scene.rs"]
mod scene;

mod acks;
mod addresses;
mod blind;
mod check_bits;
mod floods;
mod handshake;
mod hostile;
mod hostile_extensions;
mod memory;
mod peer;
