//! Any datagram through the parser: every chunk, parameter and cause is read, written and read again.
#![no_main]

use anabranch_wire::Verify;
use libfuzzer_sys::fuzz_target;

// The property tests' own walk, so both check the same things.
#[path = "../../crates/wire/tests/common/walk.rs"]
mod walk;

fuzz_target!(|datagram: &[u8]| {
    walk::walk(datagram, Verify::Trusted);
});
