//! Attacks, each with its figures: what a stranger, an eavesdropper and a lying peer can cost us.
//!
//! Memory is what the allocator handed out, work is the number of allocations, packets and bytes: nothing here depends
//! on how fast the machine is. Each test holds its figure in `docs/SECURITY.md`, or writes it there with `UPDATE=1`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/scene.rs"]
mod scene;

mod acks;
mod addresses;
mod blind;
mod check_bits;
mod figures;
mod floods;
mod handshake;
mod hostile;
mod hostile_extensions;
mod memory;
mod peer;
