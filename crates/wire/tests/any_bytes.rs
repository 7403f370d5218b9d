//! No bytes make the parser panic, and what it accepts is consistent.

mod common;

use anabranch_wire::Verify;
use common::{any, chunk, fix_checksum, packet, walk::walk};
use proptest::collection::vec;
use proptest::prelude::*;

/// Mostly chunk types that have a format.
fn chunk_kind() -> impl Strategy<Value = u8> {
    prop_oneof![0..17u8, Just(64u8), 128..133u8, 192..195u8, any::<u8>()]
}

/// Parameter types and cause codes that have a format.
fn item_kind() -> impl Strategy<Value = u16> {
    prop_oneof![0..19u16, 0x8000..0x8009u16, 0xc000..0xc007u16, 0xa0..0xa5u16, Just(0x105u16)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary(datagram in vec(any::<u8>(), 0..200)) {
        walk(&datagram, Verify::Checksum);
        walk(&datagram, Verify::Trusted);
    }

    /// A right checksum and small length fields bring more of them past the first gates.
    #[test]
    fn arbitrary_chunks(
        items in vec((chunk_kind(), any::<u8>(), 0u16..40, vec(any::<u8>(), 0..40)), 0..6)
    ) {
        let mut chunks = Vec::new();
        for (kind, flags, length, value) in items {
            chunks.extend([kind, flags]);
            chunks.extend(length.to_be_bytes());
            chunks.extend(value);
        }
        walk(&packet(&chunks), Verify::Checksum);
    }

    /// Chunks full of parameter and cause headers.
    #[test]
    fn arbitrary_parameters(
        kind in prop::sample::select(vec![1u8, 2, 4, 5, 6, 9, 128, 130, 193]),
        fixed in vec(any::<u8>(), 0..20),
        items in vec((item_kind(), 0u16..30, vec(any::<u8>(), 0..30)), 0..6)
    ) {
        let mut value = fixed;
        for (kind, length, content) in items {
            value.extend(kind.to_be_bytes());
            value.extend(length.to_be_bytes());
            value.extend(content);
        }
        let mut chunk = vec![kind, 0];
        chunk.extend((4 + value.len() as u16).to_be_bytes());
        chunk.extend(value);
        walk(&packet(&chunk), Verify::Checksum);
    }

    /// Good packets with a few bytes changed, cut anywhere.
    #[test]
    fn damaged(
        all in vec(any::stuff(), 1..5),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut datagram = packet(&all.iter().flat_map(chunk).collect::<Vec<_>>());
        for (at, value) in changes {
            let at = at.index(datagram.len());
            datagram[at] = value;
        }
        if let Some(cut) = cut {
            datagram.truncate(cut.index(datagram.len()));
        }
        walk(&datagram, Verify::Trusted);
        fix_checksum(&mut datagram);
        walk(&datagram, Verify::Checksum);
    }

    /// One flipped bit anywhere is noticed.
    #[test]
    fn checksum_catches_a_flipped_bit(s in any::stuff(), bit in any::<prop::sample::Index>()) {
        let mut datagram = packet(&chunk(&s));
        prop_assert!(anabranch_wire::Packet::parse(&datagram, Verify::Checksum).is_ok());
        let bit = bit.index(datagram.len() * 8);
        datagram[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(anabranch_wire::Packet::parse(&datagram, Verify::Checksum).is_err());
    }
}

/// The fuzz target's seeds, and the inputs that once broke something.
#[test]
fn seeds_of_the_fuzz_target() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/parser");
    let mut decoded = 0;
    for seed in std::fs::read_dir(dir).expect("the seeds' folder") {
        let datagram = std::fs::read(seed.expect("an entry").path()).expect("a seed");
        walk(&datagram, Verify::Checksum);
        decoded += walk(&datagram, Verify::Trusted);
    }
    assert!(decoded >= 24, "at least one seed per chunk type");
}
