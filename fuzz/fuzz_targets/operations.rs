//! Any sequence of what users, interfaces, NATs and networks do: nothing reliable is lost, doubled, changed or out of
//! order, the books agree after every step, and the association ends or goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The engine's own tests play random sequences with the same bench.
#[path = "../../crates/engine/tests/common/mod.rs"]
mod common;
#[path = "../../crates/engine/tests/common/operated.rs"]
mod operated;
#[path = "../../crates/engine/tests/common/profiles.rs"]
mod profiles;

fuzz_target!(|data: &[u8]| {
    operated::play_bytes(data);
});
