//! A host's sockets between programs that do anything and a network that does worse: no panic, no endless answers, and
//! nothing is left when all is closed.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the library's own modules, of which not everything is played")]

use libfuzzer_sys::fuzz_target;

// The library exports the C library's symbols, so nothing may link it: its modules are built into the target instead.
#[path = "../../crates/sockets/src/abi/mod.rs"]
mod abi;
#[path = "../../crates/sockets/src/driven.rs"]
mod driven;
#[path = "../../crates/sockets/src/socket/mod.rs"]
mod socket;

fuzz_target!(|data: &[u8]| {
    let _ = driven::drive(data);
});
