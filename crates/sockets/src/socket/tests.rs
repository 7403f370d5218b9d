//! Two sockets of one host over a network that a test may cut: what options and peers make a program hear.

use super::receive::Received;
use super::{AssociationId, Departure, SendRequest, Settings, SocketId, Stack, Style};
use crate::abi::address;
use crate::abi::notification::{auth, kind, spc};
use crate::abi::option::{EventOption, Thresholds, name};
use crate::abi::{SOL_SCTP, read};
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_wire::Verify;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use zerocopy::{FromZeros, IntoBytes};

mod addresses;
mod connecting;

const PORT: u16 = 5_001;

/// A host with two addresses for each end.
pub(super) struct Host {
    pub stack: Stack,
    pub now: Instant,
    /// Packets to and from this address are lost.
    cut: Option<IpAddr>,
    last: Option<Departure>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Host {
    pub fn new(settings: &[(&str, &str)]) -> Host {
        let mut s = Settings::default();
        settings.iter().for_each(|(name, value)| assert!(s.set(name, value), "{name}"));
        let mut made = 0;
        let entropy = Box::new(move || {
            made += 1;
            Box::new(RandomStream::named(made, "endpoint")) as Box<dyn anabranch_base::Entropy>
        });
        let mut stack = Stack::new(s, entropy);
        ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].iter().for_each(|a| stack.add_host_address(ip(a)));
        Host { stack, now: Instant::from_millis(1_000), cut: None, last: None }
    }

    /// All packets arrive, and those that they cause.
    fn exchange(&mut self) {
        while let Some(d) = self.stack.poll_transmit() {
            if self.cut.is_some_and(|cut| cut == d.from || cut == d.to.ip()) {
                continue;
            }
            self.last = Some(d.clone());
            self.arrive(d, Verify::Checksum);
        }
    }

    fn arrive(&mut self, d: Departure, verify: Verify) {
        let from = SocketAddr::new(d.from, d.to.port());
        self.stack.arrive(self.now, d.to.ip(), from, &Bytes::from(d.packet), verify);
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        self.exchange();
        while let Some(next) = self.stack.poll_timeout().filter(|t| *t <= until) {
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.exchange();
        }
        self.now = until;
    }

    pub fn set(&mut self, id: SocketId, option: i32, value: &[u8]) {
        self.stack.set_option(self.now, id, SOL_SCTP, option, value).expect("it is taken");
    }

    fn hear(&mut self, id: SocketId, kind: u16) {
        let mut e = EventOption::new_zeroed();
        (e.kind, e.on) = (kind.into(), 1);
        self.set(id, name::EVENT, e.as_bytes());
    }

    /// A client at 10.0.0.1 and .2, and a server at .3 and .4 that hears of `events`.
    pub fn connect(&mut self, style: Style, events: &[u16]) -> (SocketId, SocketId, AssociationId) {
        let (client, server) = (self.stack.socket(style, false), self.stack.socket(style, false));
        let at = |last: u8, port: u16| SocketAddr::from(([10, 0, 0, last], port));
        for (id, list) in [(client, [at(1, 0), at(2, 0)]), (server, [at(3, PORT), at(4, PORT)])] {
            self.stack.bind_more(self.now, id, &list).expect("bound");
            events.iter().for_each(|e| self.hear(id, *e));
        }
        self.stack.listen(self.now, server, 5).expect("listens");
        let a = self.stack.connect(self.now, client, &[at(3, PORT)]).expect("begins");
        self.pass(Duration::from_secs(5));
        assert!(self.stack.connecting(client, a).is_ok());
        let server = if style == Style::OneToOne { self.stack.accept(server).expect("it waits").0 } else { server };
        (client, server, a)
    }

    fn send(&mut self, id: SocketId, a: AssociationId, len: usize, request: SendRequest) {
        let request = SendRequest { payload: vec![7; len].into(), association: Some(a.0), ..request };
        self.stack.send(self.now, id, &request).expect("taken");
    }

    fn receive(&mut self, id: SocketId) -> Option<Received> {
        self.stack.receive(self.now, id, 100_000, false).ok()
    }

    /// Notifications that wait.
    fn heard(&mut self, id: SocketId) -> Vec<Bytes> {
        let all: Vec<Received> = std::iter::from_fn(|| self.receive(id)).collect();
        all.into_iter().filter(|r| r.notification).map(|r| r.bytes).collect()
    }

    fn address_states(&mut self, id: SocketId) -> Vec<i32> {
        let word = |b: &Bytes, at: usize| i32::from_ne_bytes(b[at..at + 4].try_into().expect("four bytes"));
        let changes = self.heard(id);
        let changes = changes.iter().filter(|b| b[..2] == kind::PEER_ADDR_CHANGE.to_ne_bytes());
        // Each of our addresses has a path to it.
        let mut states: Vec<i32> = changes.map(|b| word(b, 136)).collect();
        states.sort_unstable();
        states.dedup();
        states
    }
}

/// RFC 7829 §7.1: a program that asked for it hears that a path is doubtful, and no other does.
#[test]
fn potentially_failed_addresses_are_notified_when_exposed() {
    for (expose, shown) in
        [("0", vec![spc::ADDR_UNREACHABLE]), ("2", vec![spc::ADDR_UNREACHABLE, spc::ADDR_POTENTIALLY_FAILED])]
    {
        let mut h = Host::new(&[("pf_expose", expose), ("pf_enable", "1"), ("path_max_retrans", "3")]);
        let (client, _, a) = h.connect(Style::OneToOne, &[kind::PEER_ADDR_CHANGE]);
        h.heard(client);
        h.cut = Some(ip("10.0.0.3"));
        h.send(client, a, 100, SendRequest::default());
        h.pass(Duration::from_secs(120));
        assert_eq!(h.address_states(client), shown, "pf_expose {expose}");
    }
}

/// The thresholds of a living association: with 65535 a path is used until it has failed, with 0 it is left at the first
/// timeout, and above `spt_pathcpthld` errors the other address is the primary one (RFC 7829 §5).
#[test]
fn thresholds_decide_when_a_path_is_left_and_who_is_primary() {
    let mut arrived = Vec::new();
    for (pf, switchover) in [(65_535, 65_535), (0, 65_535), (0, 1)] {
        let mut h = Host::new(&[]);
        let (client, server, a) = h.connect(Style::OneToOne, &[]);
        let mut t = Thresholds::new_zeroed();
        (t.max_retrans, t.potentially_failed, t.switchover) = (4.into(), pf.into(), switchover.into());
        h.set(client, name::PEER_ADDR_THLDS_V2, t.as_bytes());
        let got = h.stack.get_option(client, SOL_SCTP, name::PEER_ADDR_THLDS_V2, &[0; 144]).expect("there");
        let got = read::<Thresholds>(&got, 144).expect("whole");
        assert_eq!(got.max_retrans.get(), 4);
        h.cut = Some(ip("10.0.0.3"));
        h.send(client, a, 100, SendRequest::default());
        let begun = h.now;
        while h.receive(server).is_none_or(|r| r.notification) {
            h.pass(Duration::from_millis(100));
            assert!(h.now.since(begun) < Duration::from_secs(200), "it never arrives");
        }
        arrived.push(h.now.since(begun));
        h.pass(Duration::from_secs(20));
        let primary = h.stack.get_option(client, SOL_SCTP, name::PRIMARY_ADDR, &[0; 132]).expect("there");
        let (primary, _) = address::parse(&primary[4..]).expect("an address");
        let expected = if switchover == 1 { "10.0.0.4" } else { "10.0.0.3" };
        assert_eq!(primary.ip(), ip(expected), "pf {pf}, switchover {switchover}");
    }
    assert!(arrived[1] <= arrived[0] && arrived[1] < Duration::from_secs(3), "{arrived:?}");
}

/// RFC 6458 §8.1.12: Path.Max.Retrans and the threshold of RFC 7829 of one address alone, until all are set again.
#[test]
fn limits_of_one_address_are_its_own() {
    use crate::abi::option::{PeerAddressInfo, PeerAddressParams};
    const FAILED: i32 = 0;
    const DOUBTFUL: i32 = 1;
    const ACTIVE: i32 = 2;
    let (first, second) = (SocketAddr::from(([10, 0, 0, 3], PORT)), SocketAddr::from(([10, 0, 0, 4], PORT)));
    let mut states = Vec::new();
    for (limited, doubted) in [(None, None), (Some(first), None), (Some(second), None), (None, Some(second))] {
        let mut h = Host::new(&[("hb_interval", "1000"), ("pf_enable", "0")]);
        let (client, _, a) = h.connect(Style::OneToOne, &[]);
        let storage = |to: SocketAddr| address::storage(to, false);
        if let Some(to) = limited {
            let mut p = PeerAddressParams::new_zeroed();
            (p.address, p.max_retrans) = (storage(to), 2.into());
            h.set(client, name::PEER_ADDR_PARAMS, p.as_bytes());
        }
        if let Some(to) = doubted {
            let mut t = Thresholds::new_zeroed();
            (t.address, t.potentially_failed) = (storage(to), 0.into());
            h.set(client, name::PEER_ADDR_THLDS, t.as_bytes());
        }
        for to in [first, second] {
            let mut p = PeerAddressParams::new_zeroed();
            p.address = storage(to);
            let got = h.stack.get_option(client, SOL_SCTP, name::PEER_ADDR_PARAMS, p.as_bytes()).expect("there");
            let got = read::<PeerAddressParams>(&got, 132).expect("whole");
            assert_eq!(got.max_retrans.get(), if limited == Some(to) { 2 } else { 5 });
            assert_eq!(got.interval.get(), 1_000);
            let mut t = Thresholds::new_zeroed();
            t.address = storage(to);
            let got = h.stack.get_option(client, SOL_SCTP, name::PEER_ADDR_THLDS, t.as_bytes()).expect("there");
            let got = read::<Thresholds>(&got, 140).expect("whole");
            assert_eq!(got.max_retrans.get(), if limited == Some(to) { 2 } else { 5 });
            assert_eq!(got.potentially_failed.get() == 0, doubted == Some(to));
        }
        h.cut = Some(second.ip());
        h.pass(Duration::from_secs(4));
        let state = |h: &mut Host| {
            let mut i = PeerAddressInfo::new_zeroed();
            (i.id, i.address) = (a.0.into(), storage(second));
            let got = h.stack.get_option(client, SOL_SCTP, name::GET_PEER_ADDR_INFO, i.as_bytes()).expect("there");
            read::<PeerAddressInfo>(&got, 132).expect("whole").state.get()
        };
        states.push(state(&mut h));
        // What is set for all holds for this one too.
        let mut p = PeerAddressParams::new_zeroed();
        p.max_retrans = 7.into();
        h.set(client, name::PEER_ADDR_PARAMS, p.as_bytes());
        let mut p = PeerAddressParams::new_zeroed();
        p.address = storage(second);
        let got = h.stack.get_option(client, SOL_SCTP, name::PEER_ADDR_PARAMS, p.as_bytes()).expect("there");
        assert_eq!(read::<PeerAddressParams>(&got, 132).expect("whole").max_retrans.get(), 7);
    }
    assert_eq!(states, [ACTIVE, ACTIVE, FAILED, DOUBTFUL], "without, of the other address, and of this one");
}

/// RFC 6458 §8.1.8: user data of either side begins the time anew, HEARTBEATs do not.
#[test]
fn idle_associations_of_a_one_to_many_socket_close() {
    let mut h = Host::new(&[("hb_interval", "1000")]);
    let client = h.stack.socket(Style::OneToMany, false);
    let server = h.stack.socket(Style::OneToMany, false);
    h.set(client, name::AUTOCLOSE, &3u32.to_ne_bytes());
    h.hear(client, kind::ASSOC_CHANGE);
    let at = SocketAddr::from(([10, 0, 0, 3], PORT));
    h.stack.bind(h.now, server, at).expect("bound");
    h.stack.listen(h.now, server, 1).expect("listens");
    let a = h.stack.connect(h.now, client, &[at]).expect("begins");
    h.pass(Duration::from_secs(2));
    h.send(client, a, 10, SendRequest::default());
    h.pass(Duration::from_millis(2_900));
    assert_eq!(h.heard(client).len(), 1, "it came up, and data 2.9 s ago keep it");
    h.pass(Duration::from_millis(200));
    let heard = h.heard(client);
    assert!(heard.len() == 1 && heard[0][8] == 3, "SCTP_SHUTDOWN_COMP: {heard:?}");
}

/// RFC 6458 §6.1.3: each cause that the peer reports, as it is on the wire. RFC 5061 §4.2.6: the adaptation layer.
#[test]
fn errors_of_the_peer_and_its_adaptation_layer_are_notified() {
    let mut h = Host::new(&[]);
    let (client, server) = (h.stack.socket(Style::OneToOne, false), h.stack.socket(Style::OneToOne, false));
    for id in [client, server] {
        for kind in [kind::REMOTE_ERROR, kind::ADAPTATION_INDICATION, kind::AUTHENTICATION_EVENT] {
            h.hear(id, kind);
        }
    }
    h.set(server, name::ADAPTATION_LAYER, &0x1234u32.to_ne_bytes());
    let at = SocketAddr::from(([10, 0, 0, 3], PORT));
    h.stack.bind(h.now, server, at).expect("bound");
    h.stack.listen(h.now, server, 1).expect("listens");
    let a = h.stack.connect(h.now, client, &[at]).expect("begins");
    h.pass(Duration::from_secs(1));
    let heard = h.heard(client);
    let adaptation = crate::abi::notification::adaptation(a.0, 0x1234);
    let no_auth = crate::abi::notification::authentication(a.0, 0, auth::NO_AUTH);
    assert_eq!(heard, [no_auth, adaptation]);

    let (server, _) = h.stack.accept(server).expect("it waits");
    h.send(server, AssociationId(0), 10, SendRequest::default());
    let to_client = loop {
        let d = h.stack.poll_transmit().expect("DATA leaves");
        h.arrive(d.clone(), Verify::Checksum);
        if d.from == ip("10.0.0.3") {
            break d;
        }
    };
    // The common header of the DATA, then an ERROR with "out of resource" and one without a format here.
    let mut packet = to_client.packet[..12].to_vec();
    packet.extend_from_slice(&[9, 0, 0, 15, 0, 4, 0, 4, 0xab, 0xcd, 0, 7, 1, 2, 3, 0]);
    h.arrive(Departure { packet, ..to_client }, Verify::Trusted);
    let error = |code, value: &[u8]| crate::abi::notification::remote_error(a.0, code, value);
    assert_eq!(h.heard(client), [error(4, &[]), error(0xabcd, &[1, 2, 3, 0])]);
}

/// RFC 7496 §3.2, §4.2: messages that were dropped before they left come back, those for room and those too late.
#[test]
fn messages_that_were_dropped_unsent_come_back() {
    use super::Reliability::{Lifetime, Priority};
    for reliability in [Priority(9), Lifetime(Duration::from_millis(500))] {
        let mut h = Host::new(&[("sendspace", "4000"), ("as_kernels", "0")]);
        let (client, _, a) = h.connect(Style::OneToOne, &[kind::SEND_FAILED_EVENT]);
        h.cut = Some(ip("10.0.0.3"));
        let request =
            |context, reliability| SendRequest { context: Some(context), reliability, ..SendRequest::default() };
        // More than the window and not more than the buffer: the last waits.
        h.send(client, a, 1_400, request(1, None));
        for context in [2, 3] {
            h.send(client, a, 600, request(context, Some(reliability)));
        }
        match reliability {
            Priority(_) => h.send(client, a, 1_800, request(4, None)),
            _ => {
                h.pass(Duration::from_secs(2));
                h.cut = None;
                h.pass(Duration::from_secs(20));
            }
        }
        let heard = h.heard(client);
        assert!(!heard.is_empty(), "{reliability:?}");
        for b in heard {
            let context = u32::from_ne_bytes(b[20..24].try_into().expect("four bytes"));
            assert!(context == 2 || context == 3, "{reliability:?}: {context}");
            assert_eq!((b.len(), b[2]), (32 + 600, 0), "whole, and SCTP_DATA_UNSENT");
        }
    }
}

/// One request to change streams at a time, as in the kernel: the next is refused while an answer is awaited.
#[test]
fn a_second_change_of_streams_is_in_progress() {
    let mut h = Host::new(&[("reconfig_enable", "1")]);
    let (client, _, _) = h.connect(Style::OneToOne, &[]);
    h.set(client, name::ENABLE_STREAM_RESET, &[0, 0, 0, 0, 7, 0, 0, 0]);
    h.cut = Some(ip("10.0.0.3"));
    h.set(client, name::ADD_STREAMS, &[0, 0, 0, 0, 0, 0, 1, 0]);
    let again = h.stack.set_option(h.now, client, SOL_SCTP, name::ADD_STREAMS, &[0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(again, Err(super::Errno::IN_PROGRESS));
    h.cut = None;
    h.pass(Duration::from_secs(30));
    h.set(client, name::ADD_STREAMS, &[0, 0, 0, 0, 0, 0, 1, 0]);
}

/// A request of two packets is answered at once: its end does not wait for the acknowledgement of its beginning, which
/// a peer delays. `as_kernels`, as the outside suites expect it, makes it wait.
#[test]
fn the_end_of_a_message_does_not_wait_for_its_beginning() {
    let mut h = Host::new(&[("as_kernels", "0")]);
    let (client, server, a) = h.connect(Style::OneToOne, &[]);
    for round in 0..5 {
        h.send(client, a, 2_000, SendRequest::default());
        h.exchange();
        let got = h.receive(server).map(|r| r.bytes.len());
        assert_eq!(got, Some(2_000), "round {round}: no time has passed");
        h.pass(Duration::from_secs(1));
    }
}

/// After the last message `poll` says nothing any more, and says it again for the next one.
#[test]
fn who_has_read_the_last_message_is_not_readable() {
    let mut h = Host::new(&[]);
    let (client, server, a) = h.connect(Style::OneToOne, &[]);
    for _ in 0..3 {
        assert!(!h.stack.readiness(server).readable);
        h.send(client, a, 100, SendRequest::default());
        h.send(client, a, 100, SendRequest::default());
        h.exchange();
        h.pass(Duration::from_secs(1));
        for _ in 0..2 {
            assert!(h.stack.readiness(server).readable);
            assert!(h.receive(server).is_some());
        }
    }
}

/// What strangers send costs one endpoint, however many ports they try.
#[test]
fn strangers_at_many_ports_meet_one_endpoint() {
    let mut h = Host::new(&[]);
    let packet = |port: u16| {
        let mut p = vec![0, 7];
        p.extend_from_slice(&port.to_be_bytes());
        p.extend_from_slice(&[0, 0, 0, 9, 0, 0, 0, 0, 7, 0, 0, 8, 0, 0, 0, 1]);
        Bytes::from(p)
    };
    let from = SocketAddr::new(ip("192.0.2.9"), 0);
    let flood = |h: &mut Host, ports: fn(u16) -> u16| {
        let begun = std::time::Instant::now();
        for n in 0..20_000u16 {
            h.stack.arrive(h.now, ip("10.0.0.1"), from, &packet(ports(n)), Verify::Trusted);
            let d = h.stack.poll_transmit().expect("each is answered");
            assert_eq!(d.packet[..2], ports(n).to_be_bytes(), "from the port that it went to");
        }
        begun.elapsed()
    };
    flood(&mut h, |_| 7);
    let (one, many) = (flood(&mut h, |_| 7), flood(&mut h, |n| 1 + n));
    // What it was with an endpoint for each.
    let begun = std::time::Instant::now();
    for n in 0..2_000u16 {
        let mut fresh = h.stack.new_port(h.now, 1 + n);
        let local = h.stack.locals.number(ip("10.0.0.1"));
        fresh.endpoint.handle(h.now, local, from, &packet(1 + n), Verify::Trusted);
    }
    let fresh = begun.elapsed() * 10;
    println!("20000 packets to one port {one:?}, to 20000 ports {many:?}, with an endpoint each {fresh:?}");
    assert!(many * 3 < fresh, "{many:?} to many ports, {fresh:?} with an endpoint for each");
}
