//! Packets written by hand from the figures of the standards, padding rules, and lengths that lie.

mod common;

use anabranch_base::{Ssn, StreamId, Tsn};
use anabranch_wire::*;
use common::{bytes, only_chunk, packet, slow_crc32c};
use std::net::{Ipv4Addr, Ipv6Addr};

#[rustfmt::skip]
const INIT_PACKET: [u8; 60] = [
    0x13, 0x88, 0x26, 0xab, 0, 0, 0, 0, 0, 0, 0, 0, // ports 5000 and 9899, tag 0, checksum filled in below
    1, 0, 0, 48,
    0xde, 0xad, 0xbe, 0xef, // initiate tag
    0, 0x02, 0, 0, // a_rwnd 131072
    0, 10, 0xff, 0xff, // streams out and in
    0, 0, 0, 7, // initial TSN
    0, 5, 0, 8, 192, 0, 2, 1,
    0x80, 0x08, 0, 7, 192, 193, 128, 0, // supported extensions, one byte of padding
    0xc0, 0, 0, 4,
    0, 12, 0, 8, 0, 5, 0, 6,
];

#[test]
fn init_by_hand() {
    let mut datagram = INIT_PACKET;
    datagram[8..12].copy_from_slice(&slow_crc32c(&INIT_PACKET).to_le_bytes());
    let read = Packet::parse(&datagram, Verify::Checksum).unwrap();
    assert_eq!(read.header, CommonHeader { src_port: 5000, dst_port: 9899, vtag: 0 });
    assert_eq!(read.checksum(), slow_crc32c(&INIT_PACKET));
    let chunks: Vec<_> = read.chunks().map(|c| c.unwrap().decode().unwrap()).collect();
    let [Chunk::Init(init)] = chunks[..] else { panic!("{chunks:?}") };
    assert_eq!(
        init.fields,
        InitFields {
            tag: 0xdead_beef,
            a_rwnd: 131_072,
            outbound_streams: 10,
            inbound_streams: 65_535,
            initial_tsn: Tsn(7)
        }
    );
    let params: Vec<_> = init.params.iter().map(Result::unwrap).collect();
    assert_eq!(
        params,
        [
            Parameter::Ipv4(Ipv4Addr::new(192, 0, 2, 1)),
            Parameter::SupportedExtensions(&[192, 193, 128]),
            Parameter::ForwardTsnSupported,
            Parameter::SupportedAddressTypes(&[0, 5, 0, 6]),
        ]
    );
    let mut slices = PacketSlices::default();
    slices.start(read.header);
    let raw: Vec<u8> = params.iter().flat_map(bytes).collect();
    slices.push(&InitOut { ack: false, fields: init.fields, params: &raw });
    let mut written = Vec::new();
    slices.write_to(&mut written);
    assert_eq!(written, datagram);
}

#[test]
fn sack_by_hand() {
    #[rustfmt::skip]
    let chunk = [
        3, 0, 0, 28,
        0, 0, 0, 12, // cumulative TSN 12
        0, 0, 0x12, 0x34,
        0, 2, 0, 1, // two gap blocks, one duplicate
        0, 2, 0, 3, // 14 and 15
        0, 5, 0, 5, // 17
        0, 0, 0, 9,
    ];
    let datagram = packet(&chunk);
    let Ok(Chunk::Sack(sack)) = only_chunk(&datagram).decode() else { panic!() };
    assert_eq!((sack.cum_tsn, sack.a_rwnd), (Tsn(12), 0x1234));
    let gaps = [GapBlock { start: 2, end: 3 }, GapBlock { start: 5, end: 5 }];
    assert_eq!(sack.gaps().collect::<Vec<_>>(), gaps);
    assert_eq!(sack.duplicates().collect::<Vec<_>>(), [Tsn(9)]);
    let out = SackOut { cum_tsn: Tsn(12), a_rwnd: 0x1234, gaps: &gaps, duplicates: &[Tsn(9)] };
    assert_eq!(bytes(&out), chunk);
}

#[test]
fn data_by_hand() {
    let header = DataHeader {
        tsn: Tsn(0x0102_0304),
        stream: StreamId(5),
        ssn: Ssn(6),
        ppid: 7,
        flags: DataFlags { immediate: true, unordered: false, begin: true, end: false },
    };
    let chunk = bytes(&Data { header, payload: b"hello" });
    assert_eq!(chunk, [0, 0b1010, 0, 21, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7, b'h', b'e', b'l', b'l', b'o', 0, 0, 0]);
    for bits in 0..16 {
        assert_eq!(DataFlags::from_bits(bits | 0xf0).to_bits(), bits);
    }
    assert!(DataFlags::from_bits(4).unordered && DataFlags::from_bits(1).end);
}

#[test]
fn asconf_by_hand() {
    // The wildcard in front, and the example of RFC 5061 §4.2.1 as request.
    #[rustfmt::skip]
    let chunk = [
        193, 0, 0, 32, 0, 0, 0, 1,
        0, 5, 0, 8, 0, 0, 0, 0,
        0xc0, 1, 0, 16, 1, 2, 0x34, 0x74, 0, 5, 0, 8, 192, 0, 2, 1,
    ];
    let datagram = packet(&chunk);
    let Ok(Chunk::Asconf(asconf)) = only_chunk(&datagram).decode() else { panic!() };
    assert_eq!((asconf.serial, asconf.address), (1, Some(Ipv4Addr::UNSPECIFIED.into())));
    let add = Parameter::AsconfAdd { correlation: 0x0102_3474, address: Ipv4Addr::new(192, 0, 2, 1).into() };
    assert_eq!(asconf.params.iter().collect::<Vec<_>>(), [Ok(add)]);
    assert_eq!(bytes(&asconf), chunk);
}

#[test]
fn asconf_without_a_usable_address() {
    let add = bytes(&Parameter::AsconfAdd { correlation: 1, address: Ipv6Addr::LOCALHOST.into() });
    let host_name = [0, 11, 0, 6, b'a', 0, 0, 0];
    for (front, want) in [(&[][..], 1), (&host_name[..], 1)] {
        let value = [&[0, 0, 0, 9], front, &add].concat();
        let chunk =
            bytes(&RawChunk { kind: kind::ASCONF, flags: 0, value: &value, whole: &[], rest: &[], payload: None });
        let datagram = packet(&chunk);
        let Ok(Chunk::Asconf(asconf)) = only_chunk(&datagram).decode() else { panic!() };
        assert_eq!((asconf.serial, asconf.address, asconf.params.iter().count()), (9, None, want));
    }
}

/// The copy inside "Unrecognized Parameter" is padded and its padding counted; it reads back without.
#[test]
fn unrecognized_parameter_by_hand() {
    let copy = [0xc0, 0x77, 0, 5, 1];
    let written = [0, 8, 0, 12, 0xc0, 0x77, 0, 5, 1, 0, 0, 0];
    assert_eq!(bytes(&Parameter::Unrecognized(&copy)), written);
    for list in [&written[..], &[0, 8, 0, 9, 0xc0, 0x77, 0, 5, 1, 0, 0, 0]] {
        assert_eq!(Params::new(list).iter().collect::<Vec<_>>(), [Ok(Parameter::Unrecognized(&copy))]);
    }
}

/// The example of RFC 5061 §4.3.1: a refused deletion inside an ASCONF-ACK parameter.
#[test]
fn refused_deletion_by_hand() {
    #[rustfmt::skip]
    let parameter = [
        0xc0, 3, 0, 28, 1, 2, 0x34, 0x76,
        0, 0xa0, 0, 20, 0xc0, 2, 0, 16, 1, 2, 0x34, 0x76, 0, 5, 0, 8, 192, 0, 2, 1,
    ];
    let Some(Ok(Parameter::AsconfErrorCause { correlation, causes })) = Params::new(&parameter).iter().next() else {
        panic!()
    };
    assert_eq!(correlation, 0x0102_3476);
    assert_eq!(Causes::new(causes).iter().collect::<Vec<_>>(), [Ok(Cause::DeleteLastAddress(&parameter[12..]))]);
    let request = Parameter::AsconfDelete { correlation, address: Ipv4Addr::new(192, 0, 2, 1).into() };
    let causes = bytes(&Cause::DeleteLastAddress(&bytes(&request)));
    assert_eq!(bytes(&Parameter::AsconfErrorCause { correlation, causes: &causes }), parameter);
}

/// Shows: 9260/P3.
#[test]
fn final_padding_is_not_counted_by_the_sender() {
    let causes = bytes(&Cause::UserAbort(b"bye"));
    assert_eq!(causes.len(), 8);
    assert_eq!(
        bytes(&AbortOut { tag_reflected: true, causes: &causes }),
        [6, 1, 0, 11, 0, 12, 0, 7, b'b', b'y', b'e', 0]
    );
    // Padding between two causes is counted.
    let two = [&causes[..], &causes[..]].concat();
    assert_eq!(bytes(&ErrorOut { causes: &two })[..4], [9, 0, 0, 4 + 8 + 7]);
    let params = bytes(&Parameter::Cookie(&[1]));
    let fields = InitFields { tag: 1, a_rwnd: 1, outbound_streams: 1, inbound_streams: 1, initial_tsn: Tsn(1) };
    assert_eq!(bytes(&InitOut { ack: true, fields, params: &params })[..4], [2, 0, 0, 25]);
    assert_eq!(bytes(&AsconfAckOut { serial: 1, params: &params })[..4], [128, 0, 0, 13]);
    let address = Ipv4Addr::LOCALHOST.into();
    assert_eq!(bytes(&AsconfOut { serial: 1, address, params: &params })[..4], [193, 0, 0, 21]);
    let causes = [0, 6, 0, 5, 0x40, 0, 0, 0];
    let refused = bytes(&Parameter::AsconfErrorCause { correlation: 1, causes: &causes });
    assert_eq!((refused.len(), &refused[..4]), (16, &[0xc0, 3, 0, 13][..]));
    assert_eq!(bytes(&Heartbeat::new(&[1]))[..], [4, 0, 0, 9, 0, 1, 0, 5, 1, 0, 0, 0]);
}

/// Shows: 9260/P3.
#[test]
fn padding_is_ignored_whatever_it_holds() {
    let mut chunks = bytes(&CookieEcho { cookie: b"c" });
    chunks[5..8].fill(0xee);
    chunks.extend(bytes(&CookieAck));
    let datagram = packet(&chunks);
    let read: Vec<_> =
        Packet::parse(&datagram, Verify::Checksum).unwrap().chunks().map(|c| c.unwrap().decode().unwrap()).collect();
    assert_eq!(read, [Chunk::CookieEcho(CookieEcho { cookie: b"c" }), Chunk::CookieAck]);
}

fn errors(chunks: &[u8]) -> Vec<Result<u8, WireError>> {
    let datagram = packet(chunks);
    let read = Packet::parse(&datagram, Verify::Checksum).unwrap();
    read.chunks().map(|c| c.and_then(|raw| raw.decode().map(|_| raw.kind))).collect()
}

#[test]
fn lengths_that_lie() {
    let item = Item::Chunk;
    assert_eq!(errors(&[]), []);
    assert_eq!(errors(&[11, 0, 0]), [Err(WireError::Header { item, left: 3 })]);
    assert_eq!(errors(&[11, 0, 0, 3]), [Err(WireError::Length { item, kind: 11, length: 3 })]);
    assert_eq!(errors(&[11, 0, 0, 0, 11, 0, 0, 4]), [Err(WireError::Length { item, kind: 11, length: 0 })]);
    assert_eq!(errors(&[10, 0, 0, 9, 1, 2, 3, 4]), [Err(WireError::Overrun { item, kind: 10, length: 9, left: 8 })]);
    // The walk ends after the first error of framing.
    assert_eq!(
        errors(&[11, 0, 0, 4, 11, 0, 0, 1, 11, 0, 0, 4]),
        [Ok(11), Err(WireError::Length { item, kind: 11, length: 1 })]
    );
    // But goes on behind a chunk whose inside is broken.
    assert_eq!(errors(&[7, 0, 0, 4, 11, 0, 0, 4]), [Err(WireError::Body { item, kind: 7, length: 0 }), Ok(11)]);
    assert_eq!(
        errors(&[0, 3, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])[0].unwrap_err(),
        WireError::Body { item, kind: 0, length: 11 }
    );
    // One gap block claimed, none there.
    let sack = [3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(errors(&sack), [Err(WireError::Body { item, kind: 3, length: 12 })]);
    assert!(errors(&[192, 0, 0, 10, 0, 0, 0, 1, 9, 9, 0, 0])[0].is_err());
    assert_eq!(errors(&[4, 0, 0, 8, 0, 2, 0, 4]), [Err(WireError::NoHeartbeatInfo { kind: 4 })]);
    assert!(errors(&[15, 0, 0, 6, 0, 0, 0, 0])[0].is_err());
}

#[test]
fn parameters_that_lie_are_found_when_reached() {
    let item = Item::Parameter;
    let walk =
        |bytes: &[u8]| -> Vec<Result<u16, WireError>> { Params::new(bytes).iter().map(|p| p.map(|_| 0)).collect() };
    assert_eq!(walk(&[0, 5, 0, 8, 1, 2, 3, 4, 0, 7]), [Ok(0), Err(WireError::Header { item, left: 2 })]);
    assert_eq!(walk(&[0, 5, 0, 3, 1, 2, 3, 4]), [Err(WireError::Length { item, kind: 5, length: 3 })]);
    assert_eq!(walk(&[0, 7, 0, 9, 1, 2, 3, 4]), [Err(WireError::Overrun { item, kind: 7, length: 9, left: 8 })]);
    assert_eq!(
        walk(&[0, 5, 0, 7, 1, 2, 3, 0, 0xc0, 0, 0, 4]),
        [Err(WireError::Body { item, kind: 5, length: 3 }), Ok(0)]
    );
    assert!(walk(&[0x80, 4, 0, 7, 0, 1, 0])[0].is_err()); // half an identifier
    assert_eq!(walk(&[0, 9, 0, 6, 0, 1]), [Err(WireError::Body { item, kind: 9, length: 2 })]);
    // An address inside a request must fill it exactly.
    let trailing = [0xc0, 1, 0, 20, 0, 0, 0, 1, 0, 5, 0, 8, 1, 2, 3, 4, 0, 0, 0, 0];
    assert_eq!(walk(&trailing), [Err(WireError::Body { item, kind: 0xc001, length: 16 })]);
    // More missing parameters than fit.
    let missing = [0, 2, 0, 10, 0, 0, 0, 2, 0, 7];
    assert_eq!(
        Causes::new(&missing).iter().collect::<Vec<_>>(),
        [Err(WireError::Body { item: Item::Cause, kind: 2, length: 6 })]
    );
    let missing = [0, 2, 0, 8, 0xff, 0xff, 0xff, 0xff];
    assert!(Causes::new(&missing).iter().all(|c| c.is_err()));
}

/// Shows: 9260/P1, 9260/D19.
#[test]
fn packets_that_are_none() {
    assert_eq!(Packet::parse(&[0; 11], Verify::Trusted).unwrap_err(), WireError::Packet { len: 11 });
    let mut p = packet(&bytes(&CookieAck));
    p[8] ^= 1;
    assert!(matches!(Packet::parse(&p, Verify::Checksum), Err(WireError::Checksum { .. })));
    assert!(Packet::parse(&p, Verify::Trusted).is_ok());
    for port in [0, 2] {
        let mut p = packet(&bytes(&CookieAck));
        p[port..port + 2].fill(0);
        common::fix_checksum(&mut p);
        assert_eq!(Packet::parse(&p, Verify::Checksum).unwrap_err(), WireError::ZeroPort);
    }
}

#[test]
fn unknown_and_reserved_types() {
    let datagram = packet(&[0xc7, 3, 0, 5, 1, 0, 0, 0]);
    let raw = only_chunk(&datagram);
    assert_eq!(raw.decode(), Ok(Chunk::Unknown(raw)));
    assert_eq!((raw.unknown_action(), raw.flags), (UnknownAction::SkipReport, 3));
    assert_eq!(raw.without_padding(), [0xc7, 3, 0, 5, 1]);
    assert_eq!(raw.whole.len(), 8);
    for reserved in [63, 127, 191, 255] {
        assert!(is_reserved(reserved));
        let datagram = packet(&[reserved, 0, 0, 8, 0, 0, 0, 1]);
        assert!(matches!(only_chunk(&datagram).decode(), Ok(Chunk::Unknown(_))));
    }
    assert!(!is_reserved(kind::DATA) && !is_reserved(kind::FORWARD_TSN));
}

#[test]
fn causes_for_people() {
    let text = |c: Cause<'_>| c.to_string();
    assert_eq!(text(Cause::UserAbort(b"done\n\xff")), "ended by the user: done..");
    assert_eq!(text(Cause::MissingParameters(&[0, 7])), "missing parameters 0x0007");
    assert_eq!(text(Cause::UnrecognizedChunk(&[0xc1, 0, 0, 4])), "chunk type 193 is not known");
    assert_eq!(text(Cause::Unknown { code: 0x99, value: &[1] }), "cause 0x0099 with 1 bytes");
    assert!(text(Cause::ProtocolViolation(&[b'a'; 1000])).len() < 120);
}

#[test]
fn host_name_is_read_and_never_written() {
    let list = [0, 11, 0, 6, b'a', 0, 0, 0];
    assert_eq!(Params::new(&list).iter().collect::<Vec<_>>(), [Ok(Parameter::HostName)]);
    assert_eq!(bytes(&Parameter::HostName), []);
}

#[test]
fn lists_longer_than_a_chunk_can_be_are_cut() {
    let gaps = vec![GapBlock { start: 1, end: 1 }; 20_000];
    let chunk = bytes(&SackOut { cum_tsn: Tsn(0), a_rwnd: 0, gaps: &gaps, duplicates: &[Tsn(1)] });
    let datagram = packet(&chunk);
    let Ok(Chunk::Sack(sack)) = only_chunk(&datagram).decode() else { panic!() };
    assert_eq!((sack.gaps().len(), sack.duplicates().len()), ((65_535 - 16) / 4, 0));
    let streams = vec![(StreamId(1), Ssn(1)); 20_000];
    let datagram = packet(&bytes(&ForwardTsnOut { new_cum: Tsn(0), streams: &streams }));
    let Ok(Chunk::ForwardTsn(f)) = only_chunk(&datagram).decode() else { panic!() };
    assert_eq!(f.streams().len(), (65_535 - 8) / 4);
}
