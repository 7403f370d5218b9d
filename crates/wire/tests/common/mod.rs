//! What the integration tests share.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod walk;

use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use anabranch_wire::*;
use std::net::IpAddr;

pub const HEADER: CommonHeader = CommonHeader { src_port: 5000, dst_port: 9899, vtag: 0x0102_0304 };

/// The written form of one item.
pub fn bytes(item: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    item.encode(&mut out);
    out
}

/// A packet of already written chunks, with its checksum.
pub fn packet(chunks: &[u8]) -> Vec<u8> {
    let mut out = HEADER.to_bytes().to_vec();
    out.extend_from_slice(chunks);
    fix_checksum(&mut out);
    out
}

/// Stores the right checksum, where there is room for one.
pub fn fix_checksum(datagram: &mut [u8]) {
    let sum = packet_checksum(datagram);
    if let Some(field) = datagram.get_mut(8..12) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}

/// CRC32c bit by bit: reflected polynomial of RFC 9260 appendix A. Shares no code with what it checks.
pub fn slow_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |c, _| if c & 1 == 1 { c >> 1 ^ 0x82f6_3b78 } else { c >> 1 })
    })
}

/// The single chunk of a packet.
pub fn only_chunk(datagram: &[u8]) -> RawChunk<'_> {
    let packet = Packet::parse(datagram, Verify::Checksum).expect("a good packet");
    assert_eq!(packet.header, HEADER);
    let all: Vec<_> = packet.chunks().collect();
    assert_eq!(all.len(), 1);
    all[0].expect("a framed chunk")
}

/// Material for any item: a selector and values that its fields are taken from.
#[derive(Clone, Debug)]
pub struct Stuff {
    pub select: u8,
    pub bytes: Vec<u8>,
    pub a: u32,
    pub b: u32,
    pub flag: bool,
    pub address: IpAddr,
    pub list: Vec<(u16, u16)>,
    pub tsns: Vec<u32>,
}

pub const PARAMETERS: u8 = 29;

/// Any parameter that has a written form which reads back as itself.
pub fn parameter(s: &Stuff) -> Parameter<'_> {
    let even = &s.bytes[..s.bytes.len() & !1];
    let (correlation, address) = (s.a, s.address);
    match s.select % PARAMETERS {
        0 => Parameter::from(s.address),
        1 => Parameter::Cookie(&s.bytes),
        2 => Parameter::Unrecognized(&[0xc0, 0x77, 0, 6, 1, 2]),
        3 => Parameter::CookiePreservative(s.a),
        4 => Parameter::SupportedAddressTypes(even),
        5 => Parameter::EcnCapable,
        6 => Parameter::ForwardTsnSupported,
        7 => Parameter::Padding,
        8 => Parameter::SupportedExtensions(&s.bytes),
        9 => Parameter::Random(&s.bytes),
        10 => Parameter::ChunkList(&s.bytes),
        11 => Parameter::HmacAlgo(even),
        12 => Parameter::AdaptationIndication(s.a),
        13 => Parameter::ZeroChecksum(s.a),
        14 => Parameter::AsconfAdd { correlation, address },
        15 => Parameter::AsconfDelete { correlation, address },
        16 => Parameter::AsconfSetPrimary { correlation, address },
        17 => Parameter::AsconfSuccess { correlation },
        // No whole item fits these four bytes, so nothing counts as final padding.
        18 => Parameter::AsconfErrorCause { correlation, causes: &[0, 4, 0, 4] },
        19 => Parameter::OutgoingReset { request: s.a, response: s.b, last_tsn: Tsn(!s.a), streams: even },
        20 => Parameter::IncomingReset { request: s.a, streams: even },
        21 => Parameter::TsnReset { request: s.a },
        22 => {
            let tsns = s.flag.then_some((Tsn(!s.a), Tsn(!s.b)));
            Parameter::ReconfigResponse { response: s.a, result: s.b, tsns }
        }
        23 => Parameter::AddOutgoing { request: s.a, streams: s.b as u16 },
        24 => Parameter::AddIncoming { request: s.a, streams: s.b as u16 },
        25 => Parameter::PacketCount,
        26 => Parameter::TimeStamps,
        27 => Parameter::Parity(s.bytes.first().copied()),
        _ => Parameter::Unknown(RawParameter { kind: 0x7000 | s.a as u16 & 0xff, value: &s.bytes, whole: &[] }),
    }
}

pub const CAUSES: u8 = 20;

/// Any error cause.
pub fn cause(s: &Stuff) -> Cause<'_> {
    match s.select % CAUSES {
        0 => Cause::InvalidStream(StreamId(s.a as u16)),
        1 => Cause::MissingParameters(&s.bytes[..s.bytes.len() & !1]),
        2 => Cause::StaleCookie { staleness_us: s.a },
        3 => Cause::OutOfResource,
        4 => Cause::UnresolvableAddress(&s.bytes),
        5 => Cause::UnrecognizedChunk(&s.bytes),
        6 => Cause::InvalidParameter,
        7 => Cause::UnrecognizedParameters(&s.bytes),
        8 => Cause::NoUserData(Tsn(s.a)),
        9 => Cause::CookieWhileShuttingDown,
        10 => Cause::RestartNewAddresses(&s.bytes),
        11 => Cause::UserAbort(&s.bytes),
        12 => Cause::ProtocolViolation(&s.bytes),
        13 => Cause::UnsupportedHmac(s.a as u16),
        14 => Cause::DeleteLastAddress(&s.bytes),
        15 => Cause::ResourceShortage(&s.bytes),
        16 => Cause::DeleteSourceAddress(&s.bytes),
        17 => Cause::IllegalAsconfAck,
        18 => Cause::NotAuthorized(&s.bytes),
        _ => Cause::Unknown { code: 0x4000 | s.a as u16 & 0xff, value: &s.bytes },
    }
}

pub fn init_fields(s: &Stuff) -> InitFields {
    InitFields {
        tag: s.a,
        a_rwnd: s.b,
        outbound_streams: s.a as u16,
        inbound_streams: s.b as u16,
        initial_tsn: Tsn(!s.a),
    }
}

pub fn data_header(s: &Stuff) -> DataHeader {
    DataHeader {
        tsn: Tsn(s.a),
        stream: StreamId(s.b as u16),
        ssn: Ssn((s.b >> 16) as u16),
        ppid: !s.b,
        flags: DataFlags::from_bits(s.select),
    }
}

pub fn i_data_header(s: &Stuff) -> IDataHeader {
    let flags = DataFlags::from_bits(s.select);
    IDataHeader {
        tsn: Tsn(s.a),
        stream: StreamId(s.b as u16),
        mid: Mid(!s.a),
        ppid: if flags.begin { !s.b } else { 0 },
        fsn: if flags.begin { 0 } else { !s.b },
        flags,
    }
}

pub fn skipped(s: &Stuff) -> Vec<Skipped> {
    let of = |&(i, n): &(u16, u16)| Skipped {
        stream: StreamId(i),
        unordered: n.is_multiple_of(2),
        mid: Mid(u32::from(n).wrapping_mul(70_001)),
    };
    s.list.iter().map(of).collect()
}

pub const CHUNKS: u8 = 27;

/// Any chunk, in written form.
pub fn chunk(s: &Stuff) -> Vec<u8> {
    let params = bytes(&parameter(s));
    let causes = bytes(&cause(s));
    let gaps: Vec<_> = s.list.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    let streams: Vec<_> = s.list.iter().map(|&(i, n)| (StreamId(i), Ssn(n))).collect();
    let duplicates: Vec<_> = s.tsns.iter().map(|&t| Tsn(t)).collect();
    let (serial, cum_tsn) = (s.a, Tsn(s.a));
    match (s.b % u32::from(CHUNKS)) as u8 {
        0 => bytes(&Data { header: data_header(s), payload: &s.bytes }),
        1 => bytes(&InitOut { ack: false, fields: init_fields(s), params: &params }),
        2 => bytes(&InitOut { ack: true, fields: init_fields(s), params: &params }),
        3 => bytes(&SackOut { cum_tsn, a_rwnd: s.b, gaps: &gaps, duplicates: &duplicates }),
        4 => bytes(&Heartbeat::new(&s.bytes)),
        5 => bytes(&HeartbeatAck { info: &s.bytes, params_raw: &[] }),
        6 => bytes(&AbortOut { tag_reflected: s.flag, causes: &causes }),
        7 => bytes(&Shutdown { cum_tsn }),
        8 => bytes(&ShutdownAck),
        9 => bytes(&ErrorOut { causes: &causes }),
        10 => bytes(&CookieEcho { cookie: &s.bytes }),
        11 => bytes(&CookieAck),
        12 => bytes(&ShutdownComplete { tag_reflected: s.flag }),
        13 => bytes(&ForwardTsnOut { new_cum: cum_tsn, streams: &streams }),
        14 => bytes(&Auth { key_id: s.a as u16, hmac_id: s.b as u16, mac: &s.bytes }),
        15 => bytes(&AsconfOut { serial, address: s.address, params: &params }),
        16 => bytes(&AsconfAckOut { serial, params: &params }),
        17 => bytes(&IData { header: i_data_header(s), payload: &s.bytes }),
        18 => bytes(&IForwardTsnOut { new_cum: cum_tsn, entries: &skipped(s) }),
        19 => bytes(&ReConfigOut { params: &params }),
        20 => {
            let (gaps, kept) = gaps.split_at(gaps.len() / 2);
            bytes(&NrSackOut { cum_tsn, a_rwnd: s.b, gaps, kept, duplicates: &duplicates })
        }
        21 => bytes(&Pad { len: s.bytes.len() }),
        22 => bytes(&Ecne { tsn: Tsn(s.a), marked: s.b }),
        23 => bytes(&Cwr { flags: s.select, tsn: Tsn(s.a) }),
        24 => bytes(&Parity { tsn: Tsn(s.a), record: &s.bytes }),
        25 => bytes(&RepairedOut { settled: s.flag, tsns: &duplicates }),
        _ => bytes(&RawChunk { kind: 0xfe, flags: s.select, value: &s.bytes, whole: &[], rest: &[], payload: None }),
    }
}

/// Strategies of proptest.
pub mod any {
    use super::Stuff;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::net::IpAddr;

    pub fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
    }

    pub fn stuff() -> impl Strategy<Value = Stuff> {
        (
            any::<u8>(),
            vec(any::<u8>(), 0..40),
            any::<(u32, u32, bool)>(),
            address(),
            vec(any::<(u16, u16)>(), 0..9),
            vec(any::<u32>(), 0..5),
        )
            .prop_map(|(select, bytes, (a, b, flag), address, list, tsns)| Stuff {
                select,
                bytes,
                a,
                b,
                flag,
                address,
                list,
                tsns,
            })
    }
}
