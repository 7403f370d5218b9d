//! A foreign dissector reads our captures: every chunk type, over UDP and over IP, IPv4 and IPv6.
//!
//! Needs `tshark` 4.0 or later, so it runs only when asked for: `cargo test -p anabranch-wire -- --ignored`.

mod common;

use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use anabranch_wire::*;
use common::{bytes, packet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

/// A parameter that no one knows, to be skipped and reported.
const UNKNOWN: [u8; 5] = [0xc0, 0x77, 0, 5, 1];

fn addresses() -> (IpAddr, IpAddr) {
    (Ipv4Addr::new(192, 0, 2, 1).into(), "2001:db8::1".parse().unwrap())
}

/// How an association begins and ends.
fn beginnings_and_ends() -> Vec<(u8, Vec<u8>)> {
    let fields = InitFields {
        tag: 0xdead_beef,
        a_rwnd: 131_072,
        outbound_streams: 10,
        inbound_streams: 2048,
        initial_tsn: Tsn(1),
    };
    let (address, v6) = addresses();
    let init: Vec<u8> = [
        Parameter::from(address),
        Parameter::from(v6),
        Parameter::SupportedAddressTypes(&[0, 5, 0, 6]),
        Parameter::CookiePreservative(1000),
        Parameter::EcnCapable,
        Parameter::ForwardTsnSupported,
        Parameter::SupportedExtensions(&[kind::ASCONF, kind::ASCONF_ACK, kind::AUTH, kind::FORWARD_TSN, kind::PAD]),
        Parameter::Random(&[9; 32]),
        Parameter::HmacAlgo(&[0, 3, 0, 1]),
        Parameter::ChunkList(&[kind::ASCONF, kind::ASCONF_ACK]),
        Parameter::AdaptationIndication(7),
    ]
    .iter()
    .flat_map(bytes)
    .collect();
    let init_ack = [bytes(&Parameter::Cookie(&[5; 101])), bytes(&Parameter::Unrecognized(&UNKNOWN))].concat();
    let abort = bytes(&Cause::UserAbort(b"bye"));
    vec![
        (kind::INIT, bytes(&InitOut { ack: false, fields, params: &init })),
        (kind::INIT_ACK, bytes(&InitOut { ack: true, fields, params: &init_ack })),
        (kind::COOKIE_ECHO, bytes(&CookieEcho { cookie: &[5; 101] })),
        (kind::COOKIE_ACK, bytes(&CookieAck)),
        (kind::SHUTDOWN, bytes(&Shutdown { cum_tsn: Tsn(4) })),
        (kind::SHUTDOWN_ACK, bytes(&ShutdownAck)),
        (kind::SHUTDOWN_COMPLETE, bytes(&ShutdownComplete { tag_reflected: true })),
        (kind::ABORT, bytes(&AbortOut { tag_reflected: false, causes: &abort })),
    ]
}

/// Data, and what is said of it.
fn data_and_acknowledgements() -> Vec<(u8, Vec<u8>)> {
    let data = DataHeader {
        tsn: Tsn(1),
        stream: StreamId(1),
        ssn: Ssn(0),
        ppid: 0,
        flags: DataFlags { begin: true, end: true, ..DataFlags::default() },
    };
    let begin = IDataHeader { tsn: Tsn(1), stream: StreamId(1), mid: Mid(7), ppid: 51, fsn: 0, flags: data.flags };
    let later = IDataHeader { ppid: 0, fsn: 3, flags: DataFlags { end: true, ..DataFlags::default() }, ..begin };
    let skipped = [
        Skipped { stream: StreamId(1), unordered: false, mid: Mid(70_000) },
        Skipped { stream: StreamId(1), unordered: true, mid: Mid(2) },
    ];
    let kept = [GapBlock { start: 7, end: 9 }];
    let gaps = [GapBlock { start: 2, end: 3 }, GapBlock { start: 5, end: 5 }];
    vec![
        (kind::DATA, bytes(&Data { header: data, payload: b"hello" })),
        (kind::SACK, bytes(&SackOut { cum_tsn: Tsn(1), a_rwnd: 9000, gaps: &gaps, duplicates: &[Tsn(1)] })),
        (kind::FORWARD_TSN, bytes(&ForwardTsnOut { new_cum: Tsn(9), streams: &[(StreamId(1), Ssn(2))] })),
        (kind::I_DATA, bytes(&IData { header: begin, payload: b"hello" })),
        (kind::I_DATA, bytes(&IData { header: later, payload: b"hello" })),
        (kind::I_FORWARD_TSN, bytes(&IForwardTsnOut { new_cum: Tsn(9), entries: &skipped })),
        (
            kind::NR_SACK,
            bytes(&NrSackOut { cum_tsn: Tsn(1), a_rwnd: 9000, gaps: &gaps, kept: &kept, duplicates: &[Tsn(1)] }),
        ),
        (kind::ECNE, bytes(&Ecne { tsn: Tsn(1), marked: 1 })),
        (kind::CWR, bytes(&Cwr { flags: 0, tsn: Tsn(1) })),
    ]
}

/// Paths and addresses.
fn paths_and_addresses() -> Vec<(u8, Vec<u8>)> {
    let (address, v6) = addresses();
    let add = Parameter::AsconfAdd { correlation: 1, address };
    let requests = [
        bytes(&add),
        bytes(&Parameter::AsconfDelete { correlation: 2, address: v6 }),
        bytes(&Parameter::AsconfSetPrimary { correlation: 3, address }),
    ]
    .concat();
    let refused = bytes(&Cause::ResourceShortage(&bytes(&add)));
    let answers = [
        bytes(&Parameter::AsconfErrorCause { correlation: 1, causes: &refused }),
        bytes(&Parameter::AsconfSuccess { correlation: 2 }),
    ]
    .concat();
    vec![
        (kind::HEARTBEAT, bytes(&Heartbeat::new(&[1, 2, 3, 4, 5]))),
        (kind::HEARTBEAT_ACK, bytes(&HeartbeatAck { info: &[1, 2, 3, 4, 5], params_raw: &[] })),
        (kind::AUTH, bytes(&AuthOut { key_id: 0, hmac_id: 3, mac_len: 32 })),
        (kind::ASCONF, bytes(&AsconfOut { serial: 1, address, params: &requests })),
        (kind::ASCONF_ACK, bytes(&AsconfAckOut { serial: 1, params: &answers })),
        (kind::PAD, bytes(&Pad { len: 100 })),
    ]
}

/// Streams that are reset and added.
fn reconfigurations() -> Vec<(u8, Vec<u8>)> {
    let reset = [
        bytes(&Parameter::OutgoingReset { request: 1, response: 2, last_tsn: Tsn(3), streams: &[0, 1, 0, 2, 0, 3] }),
        bytes(&Parameter::IncomingReset { request: 2, streams: &[0, 1] }),
    ]
    .concat();
    let added = [
        bytes(&Parameter::AddOutgoing { request: 3, streams: 4 }),
        bytes(&Parameter::AddIncoming { request: 4, streams: 4 }),
    ]
    .concat();
    let tsns = Some((Tsn(5), Tsn(6)));
    let responses = [
        bytes(&Parameter::ReconfigResponse { response: 1, result: reconfig_result::PERFORMED, tsns: None }),
        bytes(&Parameter::ReconfigResponse { response: 2, result: reconfig_result::PERFORMED, tsns }),
    ]
    .concat();
    vec![
        (kind::RE_CONFIG, bytes(&ReConfigOut { params: &reset })),
        (kind::RE_CONFIG, bytes(&ReConfigOut { params: &added })),
        (kind::RE_CONFIG, bytes(&ReConfigOut { params: &bytes(&Parameter::TsnReset { request: 9 }) })),
        (kind::RE_CONFIG, bytes(&ReConfigOut { params: &responses })),
    ]
}

/// Every cause of an error.
fn errors() -> Vec<(u8, Vec<u8>)> {
    let (address, _) = addresses();
    let causes: Vec<u8> = [
        Cause::InvalidStream(StreamId(3)),
        Cause::MissingParameters(&[0, 7]),
        Cause::StaleCookie { staleness_us: 5 },
        Cause::OutOfResource,
        Cause::UnresolvableAddress(&bytes(&Parameter::from(address))),
        Cause::UnrecognizedChunk(&[0xc7, 0, 0, 4]),
        Cause::InvalidParameter,
        Cause::UnrecognizedParameters(&UNKNOWN),
        Cause::NoUserData(Tsn(5)),
        Cause::CookieWhileShuttingDown,
        Cause::UnsupportedHmac(2),
    ]
    .iter()
    .flat_map(bytes)
    .collect();
    vec![(kind::ERROR, bytes(&ErrorOut { causes: &causes }))]
}

/// Every chunk type with plausible content, and its number.
fn chunks() -> Vec<(u8, Vec<u8>)> {
    let (begin, data, paths) = (beginnings_and_ends(), data_and_acknowledgements(), paths_and_addresses());
    [begin, data, paths, reconfigurations(), errors()].concat()
}

/// One line per packet: what tshark says of it.
fn dissect(capture: &std::path::Path) -> Vec<String> {
    let out = Command::new("tshark")
        .args(["-o", "sctp.checksum:CRC 32c", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(["-T", "fields", "-E", "separator=|", "-e", "sctp.checksum.status", "-e", "ip.checksum.status"])
        .args(["-e", "udp.checksum.status", "-e", "_ws.malformed", "-e", "frame.interface_name"])
        .args(["-e", "frame.time_epoch", "-e", "sctp.chunk_type", "-e", "_ws.expert.message", "-r"])
        .arg(capture)
        .output()
        .expect("tshark runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs tshark"]
fn every_chunk_is_understood() {
    let ends = |a: &str, b: &str| -> (SocketAddr, SocketAddr) { (a.parse().unwrap(), b.parse().unwrap()) };
    let (v4, v6) = (ends("10.0.0.1:9899", "10.0.0.2:9899"), ends("[2001:db8::1]:9899", "[2001:db8::2]:9899"));
    // SCTP checksum, IPv4 checksum, UDP checksum: 1 is good.
    let carriers = [
        (Encapsulation::udp(v4.0, v4.1), "1|1|1|"),
        (Encapsulation::udp(v6.0, v6.1), "1||1|"),
        (Encapsulation::ip(v4.0.ip(), v4.1.ip()), "1|1||"),
        (Encapsulation::ip(v6.0.ip(), v6.1.ip()), "1|||"),
    ];
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_chunk.pcapng");
    let mut capture = PcapngWriter::new(std::fs::File::create(&path).unwrap(), "anabranch tests").unwrap();
    let on = capture.add_interface("wlan0", LinkType::RAW_IP).unwrap();
    let mut want = Vec::new();
    let mut datagram = Vec::new();
    for (carrier, sums) in carriers {
        for (kind, chunk) in chunks() {
            datagram.clear();
            carrier.wrap(&packet(&chunk), &mut datagram);
            let at = 1_700_000_000_123_456_000 + want.len() as u64;
            capture.packet_with_comment(on, at, Direction::Out, &datagram, "a comment").unwrap();
            want.push((format!("{sums}|wlan0|1700000000.{:09}|", 123_456_000 + want.len()), kind));
        }
    }
    capture.into_inner().unwrap();
    let read = dissect(&path);
    assert_eq!(read.len(), want.len());
    for (line, (start, kind)) in read.iter().zip(want) {
        let rest = line.strip_prefix(&start).unwrap_or_else(|| panic!("{line} does not start with {start}"));
        let (kinds, _) = rest.split_once('|').unwrap();
        assert!(kinds.split(',').next() == Some(&kind.to_string()), "{line}: not chunk {kind}");
        assert!(!line.contains("alformed") && !line.contains("ad checksum"), "{line}");
    }
}
