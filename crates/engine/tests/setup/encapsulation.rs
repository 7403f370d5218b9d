//! UDP ports of a peer's addresses: kept for each path, followed, set by the user (RFC 6951).

use crate::common::*;
use anabranch_base::PathId;
use anabranch_engine::LocalId;
use anabranch_wire::{CommonHeader, Heartbeat, Verify, kind};
use bytes::Bytes;

fn two() -> Bench {
    let mut b =
        Bench::connected(5, &assoc_config("cmt"), &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    b.strict = true;
    b
}

/// A packet for the server's association, or for none where `tag` is wrong, with one chunk.
fn packet(b: &mut Bench, tag: Option<u32>, chunk: &[u8]) -> Bytes {
    b.tap = Some(vec![]);
    b.filter = Some(Box::new(|_| false));
    let now = b.now;
    b.assoc(Side::Client).request_heartbeat(now, PathId(0));
    b.flush();
    b.filter = None;
    let sent = b.tap.take().expect("tapped").pop().expect("a packet").3;
    let vtag = tag.unwrap_or_else(|| u32::from_be_bytes(sent[4..8].try_into().expect("a tag")));
    let mut out = CommonHeader { src_port: PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
    out.extend_from_slice(chunk);
    Bytes::from(out)
}

fn heartbeat() -> Vec<u8> {
    manual::encoded(&Heartbeat::new(&[5; 8]))
}

fn ports(b: &mut Bench) -> [u16; 2] {
    [0, 1].map(|p| b.path(Side::Server, p).remote.port())
}

/// Where the server's packets go now.
fn answers(b: &mut Bench) -> Vec<std::net::SocketAddr> {
    let (mut t, mut out) = (anabranch_engine::Transmit::default(), vec![]);
    while b.server.poll_transmit(b.now, &mut t) {
        out.push(t.remote);
    }
    out
}

/// Shows: ext/E1, ext/E3.
#[test]
fn each_address_has_a_port_of_its_own_and_only_a_right_tag_changes_it() {
    let mut b = two();
    let known = ports(&mut b);
    assert_eq!(known, [40_000, 40_001], "as they were seen");
    let mut from = nat_addr(1);
    from.set_port(50_001);
    for (tag, follows) in [(Some(0x1234_5678), false), (None, true)] {
        let p = packet(&mut b, tag, &heartbeat());
        let now = b.now;
        b.server.handle(now, LocalId(0), from, &p, Verify::Trusted);
        assert_eq!(ports(&mut b), [known[0], if follows { 50_001 } else { known[1] }]);
    }
    assert!(answers(&mut b).contains(&from), "answered there");
}

/// A packet right on IP, which has no port: the path sends so too, with eight bytes more for itself.
///
/// Shows: ext/E3, ext/E6.
#[test]
fn a_packet_without_udp_turns_it_off_and_one_with_turns_it_on() {
    let mut b = two();
    let before = [0, 1].map(|p| b.path(Side::Server, p).packet_size);
    let mut from = nat_addr(1);
    from.set_port(0);
    let p = packet(&mut b, None, &heartbeat());
    let now = b.now;
    b.server.handle(now, LocalId(0), from, &p, Verify::Trusted);
    assert_eq!(ports(&mut b), [40_000, 0], "only there");
    assert!(answers(&mut b).contains(&from));
    assert_eq!([0, 1].map(|p| b.path(Side::Server, p).packet_size), before, "never above what was configured");
    b.server.handle(now, LocalId(0), nat_addr(1), &p, Verify::Trusted);
    assert_eq!(ports(&mut b), [40_000, 40_001]);
    assert_eq!([0, 1].map(|p| b.path(Side::Server, p).packet_size), [before[0], before[1] - 8]);
    b.server.handle(now, LocalId(0), from, &p, Verify::Trusted);
    assert_eq!([0, 1].map(|p| b.path(Side::Server, p).packet_size), before);
}

/// INIT and packets without an association say nothing of an association that is there; what they get goes back to
/// where they came from.
///
/// Shows: ext/E4.
#[test]
fn what_has_no_checked_tag_moves_no_port() {
    let mut b = two();
    b.tap = Some(vec![]);
    let known = ports(&mut b);
    let mut from = nat_addr(0);
    from.set_port(50_000);
    let init = {
        let mut other = Bench::new(9, &assoc_config("cmt"));
        other.paths.add("path0", link(10, 20), link(10, 20));
        other.tap = Some(vec![]);
        other.connect(&assoc_config("cmt"));
        other.flush();
        other.tapped(Side::Client, kind::INIT)[0].3.clone()
    };
    let stray = packet(&mut b, Some(0x1234_5678), &manual::encoded(&anabranch_wire::CookieAck));
    let shutdown_ack = packet(&mut b, Some(0x1234_5678), &manual::encoded(&anabranch_wire::ShutdownAck));
    for p in [init, stray, shutdown_ack] {
        let now = b.now;
        b.server.handle(now, LocalId(0), from, &p, Verify::Trusted);
        let to = answers(&mut b);
        assert!(to.iter().all(|t| *t == from), "{to:?}");
        assert_eq!(ports(&mut b), known);
    }
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 100, ms(10_000)).expect("arrives");
}

/// Shows: ext/E9.
#[test]
fn the_user_reads_and_sets_the_port_of_each_address() {
    let mut b = two();
    assert_eq!(b.path(Side::Client, 1).remote.port(), 9_899);
    assert!(b.assoc(Side::Client).set_encapsulation_port(PathId(1), 9_900));
    assert_eq!([0, 1].map(|p| b.path(Side::Client, p).remote.port()), [9_899, 9_900]);
    let now = b.now;
    b.assoc(Side::Client).request_heartbeat(now, PathId(1));
    let (mut t, mut to) = (anabranch_engine::Transmit::default(), vec![]);
    while b.client.poll_transmit(b.now, &mut t) {
        to.push(t.remote.port());
    }
    assert_eq!(to, [9_900]);
    assert!(b.assoc(Side::Client).set_encapsulation_port(PathId(1), 0), "off");
    assert_eq!(b.path(Side::Client, 1).remote.port(), 0);
    assert!(!b.assoc(Side::Client).set_encapsulation_port(PathId(7), 1), "no such path");
}
