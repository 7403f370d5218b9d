//! An association between forged packets, honest ones of a live peer, time and its user: no panic, and its books agree.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The engine's own tests play the seeds and what was found with the same driver.
#[path = "../../crates/engine/tests/common/driven.rs"]
mod driven;
#[path = "../../crates/engine/tests/common/profiles.rs"]
mod profiles;

fuzz_target!(|data: &[u8]| {
    driven::drive(data);
});
