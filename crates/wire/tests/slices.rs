//! A packet put together from slices equals the contiguous one.

mod common;

use anabranch_wire::*;
use bytes::Bytes;
use common::{HEADER, Stuff, any, bytes, data_header, packet};
use proptest::prelude::*;

/// A chunk already written, pushed as it is.
struct Written(Vec<u8>);

impl Encode for Written {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Pushes DATA or I-DATA for even selectors, other chunks for odd ones. Returns the chunks as contiguous bytes.
fn fill(slices: &mut PacketSlices, all: &[Stuff]) -> Vec<u8> {
    let mut contiguous = Vec::new();
    for s in all {
        if s.select.is_multiple_of(4) {
            let header = common::i_data_header(s);
            slices.push_i_data(&header, &Bytes::from(s.bytes.clone()));
            contiguous.extend(bytes(&IData { header, payload: &s.bytes }));
        } else if s.select.is_multiple_of(2) {
            slices.push_data(&data_header(s), &Bytes::from(s.bytes.clone()));
            contiguous.extend(bytes(&Data { header: data_header(s), payload: &s.bytes }));
        } else {
            slices.push(&Written(common::chunk(s)));
            contiguous.extend(common::chunk(s));
        }
    }
    contiguous
}

/// To be written, or to be handed over as slices.
fn empty(written: bool) -> PacketSlices {
    if written { PacketSlices::to_be_written() } else { PacketSlices::default() }
}

proptest! {
    #[test]
    fn equals_the_contiguous_packet(
        before in prop::collection::vec(any::stuff(), 0..5),
        all in prop::collection::vec(any::stuff(), 0..8),
        written in prop::bool::ANY,
    ) {
        let mut slices = empty(written);
        slices.start(CommonHeader { src_port: 1, dst_port: 2, vtag: 3 });
        fill(&mut slices, &before);
        slices.start(HEADER);
        prop_assert!(slices.is_empty());
        let contiguous = packet(&fill(&mut slices, &all));
        prop_assert_eq!(slices.len(), contiguous.len());
        prop_assert_eq!(slices.is_empty(), all.is_empty());
        prop_assert_eq!(slices.header(), HEADER);
        let mut written = vec![0xaa; 3];
        slices.write_to(&mut written);
        prop_assert_eq!(&written[3..], &contiguous[..]);
        prop_assert_eq!(&written[..3], [0xaa; 3]);
        let read = Packet::parse(&written[3..], Verify::Checksum).unwrap();
        let kinds: Vec<u8> = read.chunks().map(|c| c.unwrap().kind).collect();
        prop_assert_eq!(slices.chunk_kinds(), &kinds[..]);
        let carried = Packet::of_slices(&slices).unwrap();
        prop_assert_eq!((carried.header, carried.len()), (read.header, read.len()));
        prop_assert_eq!(carried.chunks().count(), all.len());
        for (a, b) in carried.chunks().zip(read.chunks()) {
            let (a, b) = (a.unwrap(), b.unwrap());
            prop_assert_eq!((a.kind, a.flags, bytes(&a)), (b.kind, b.flags, bytes(&b)));
            match (a.decode(), b.decode()) {
                (Ok(Chunk::Data(a)), Ok(Chunk::Data(b))) => prop_assert_eq!(a, b),
                (a, b) => prop_assert_eq!(a.is_ok(), b.is_ok()),
            }
        }
        let payload: usize = all.iter().filter(|s| s.select.is_multiple_of(2)).map(|s| s.bytes.len()).sum();
        prop_assert_eq!(slices.payload_len(), payload);
    }

    /// What AUTH signs is the packet from its first byte on, as the receiver sees it.
    #[test]
    fn auth_covers_the_rest(
        before in prop::collection::vec(any::stuff(), 0..4),
        after in prop::collection::vec(any::stuff(), 0..4),
        written in prop::bool::ANY,
    ) {
        let mut slices = empty(written);
        slices.start(HEADER);
        fill(&mut slices, &before);
        let start = slices.push_auth(&AuthOut { key_id: 0, hmac_id: 3, mac_len: 32 });
        fill(&mut slices, &after);
        let signed: Vec<u8> = slices.slices_from(start).flatten().copied().collect();
        let mac = start + AuthOut::MAC_OFFSET;
        slices.head_mut()[mac..mac + 32].fill(0x77);
        let mut written = Vec::new();
        slices.write_to(&mut written);
        let read = Packet::parse(&written, Verify::Checksum).unwrap();
        let raw = read.chunks().map(Result::unwrap).nth(before.len()).unwrap();
        prop_assert!(matches!(raw.decode(), Ok(Chunk::Auth(a)) if a.mac == [0x77; 32]));
        let mut rest = raw.rest.to_vec();
        rest[AuthOut::MAC_OFFSET..AuthOut::MAC_OFFSET + 32].fill(0);
        prop_assert_eq!(rest, signed);
    }
}

#[test]
fn payload_is_shared_and_buffers_stay() {
    let stuff = |select, bytes| Stuff {
        select,
        bytes,
        a: 1,
        b: 2,
        flag: false,
        address: [127, 0, 0, 1].into(),
        list: vec![],
        tsns: vec![],
    };
    let payload = Bytes::from(vec![5; 1001]);
    let small = Bytes::from(vec![6; 102]);
    let header = data_header(&stuff(3, vec![]));
    let mut slices = PacketSlices::to_be_written();
    let mut head = core::ptr::null();
    for round in 0..3 {
        slices.start(HEADER);
        slices.push(&Written(common::chunk(&stuff(1, vec![1; 9]))));
        slices.push_data(&header, &payload);
        slices.push_data(&header, &small);
        assert!(small.is_unique(), "what is small is copied");
        assert_eq!((slices.control_chunks(), slices.payload_len()), (1, 1103));
        assert!(slices.shared_payloads().all(|p| p.as_ptr() == payload.as_ptr()));
        assert_eq!(slices.shared_payloads().len(), 1);
        if round > 0 {
            assert_eq!(slices.head_mut().as_ptr(), head);
        }
        head = slices.head_mut().as_ptr();
    }
    let _ = slices.len();
    slices.clear();
    assert_eq!((slices.is_empty(), slices.len()), (true, 0));
    assert!(payload.is_unique(), "cleared slices let go of the payload");
}

#[test]
fn a_payload_too_long_for_its_length_field_is_cut() {
    let mut slices = PacketSlices::default();
    slices.start(HEADER);
    let header = DataHeader {
        tsn: anabranch_base::Tsn(1),
        stream: Default::default(),
        ssn: Default::default(),
        ppid: 0,
        flags: DataFlags::default(),
    };
    slices.push_data(&header, &Bytes::from(vec![1; 70_000]));
    slices.push(&CookieAck);
    let mut written = Vec::new();
    slices.write_to(&mut written);
    let read = Packet::parse(&written, Verify::Checksum).unwrap();
    let chunks: Vec<_> = read.chunks().map(|c| c.unwrap().decode().unwrap()).collect();
    assert!(matches!(chunks[..], [Chunk::Data(d), Chunk::CookieAck] if d.payload.len() == DataHeader::MAX_PAYLOAD));
}

#[test]
fn before_the_start_there_is_nothing() {
    let slices = PacketSlices::default();
    assert_eq!((slices.len(), slices.is_empty(), slices.header().src_port), (0, true, 0));
    let mut out = vec![1];
    slices.write_to(&mut out);
    assert_eq!(out, [1]);
}

/// An AUTH chunk finds its place whether the payload before it is in the head or apart, with padding and without.
#[test]
fn an_auth_chunk_is_put_in_behind_payloads_of_either_kind() {
    let auth = AuthOut { key_id: 1, hmac_id: 3, mac_len: 32 };
    let header = data_header(&Stuff {
        select: 3,
        a: 1,
        b: 2,
        flag: false,
        address: [127, 0, 0, 1].into(),
        list: vec![],
        bytes: vec![],
        tsns: vec![],
    });
    for (first, second) in [(1, 7), (100, 101), (255, 1_001), (1_002, 256), (3, 4)] {
        for index in 0..=3 {
            let [shared, written] = [false, true].map(|written| {
                let mut slices = empty(written);
                slices.start(HEADER);
                slices.push_data(&header, &Bytes::from(vec![1; first]));
                slices.push_data(&header, &Bytes::from(vec![2; second]));
                slices.push_data(&header, &Bytes::from(vec![3; 9]));
                let inserted = slices.insert_auth(index, &auth).is_some();
                let mut out = Vec::new();
                slices.write_to(&mut out);
                (inserted, out)
            });
            assert_eq!(shared, written, "{first} and {second} bytes, before chunk {index}");
            assert_eq!(shared.0, index < 3);
        }
    }
}
