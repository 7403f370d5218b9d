//! Two endpoints over simulated paths in virtual time: the engine's test bench.
//!
//! Path `i` joins the client's interface `i` with the server's only one. The server sees the client under another
//! address and port than the client's own, as behind a NAT.
#![allow(dead_code, reason = "each test file uses its part")]

mod bench;
pub mod flow;
pub mod keys;
pub mod manual;
pub mod page;
pub mod raw;
pub mod sampled;
pub mod signed;

use anabranch_base::{Duration, Instant, RandomStream, Rate, StreamId};
use anabranch_engine::{
    AssocConfig, AssocId, Association, Endpoint, EndpointConfig, Event, LocalId, Message, PathStats, SendOptions,
    TimerReason, Transmit,
};
use anabranch_policy::registry::Profile;
use anabranch_sim::{Direction, LinkConfig, Paths, Setting};
use anabranch_wire::{Packet, Verify, kind};
use bytes::Bytes;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

pub use bench::Bench;
#[allow(unused_imports, reason = "not every test file has a flow")]
pub use flow::{Flow, number_of, numbered};

pub const PORT: u16 = 5_001;

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}

/// A packet about to enter its link.
pub struct Leaving<'a> {
    pub now: Instant,
    pub from: Side,
    pub path: usize,
    pub bytes: &'a Bytes,
}

impl Leaving<'_> {
    pub fn has(&self, chunk: u8) -> bool {
        kinds(self.bytes).contains(&chunk)
    }
}

/// True lets a packet pass.
pub type Filter = Box<dyn FnMut(&Leaving<'_>) -> bool>;

/// What leaves in place of a packet; none leaves it as it is.
pub type Forger = Box<dyn FnMut(&Leaving<'_>) -> Option<Bytes>>;

/// Chunk types of a packet.
pub fn kinds(bytes: &Bytes) -> Vec<u8> {
    Packet::parse(bytes, Verify::Trusted).map(|p| p.chunks().flatten().map(|c| c.kind).collect()).unwrap_or_default()
}

/// A filter that drops the first `n` packets of `side` with a chunk of type `chunk`.
pub fn drop_first(side: Side, chunk: u8, n: usize) -> Option<Filter> {
    let mut left = n;
    Some(Box::new(move |l| {
        let hit = l.from == side && left > 0 && l.has(chunk);
        left -= usize::from(hit);
        !hit
    }))
}

/// What a filter took out: by which path, and the packet.
pub type Caught = Rc<RefCell<Vec<(usize, Bytes)>>>;

/// A filter that takes out the second packet with DATA.
pub fn catch_second() -> (Option<Filter>, Caught) {
    let caught = Caught::default();
    let (keep, mut n) = (caught.clone(), 0);
    let filter: Filter = Box::new(move |l| {
        n += u32::from(l.has(kind::DATA));
        let this = n == 2 && l.has(kind::DATA);
        if this {
            keep.borrow_mut().push((l.path, l.bytes.clone()));
        }
        !this
    });
    (Some(filter), caught)
}

/// The client's interface `i` as the server sees it.
pub fn nat_addr(i: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 10 + i as u8], 40_000 + i as u16))
}
/// The server as the client reaches it over path `i`.
pub fn server_addr(i: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1 + i as u8], 9_899))
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A link of `mbit` Mbit/s and `delay_ms` one way.
pub fn link(mbit: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig::fixed(Some(Rate::from_bits_per_sec(mbit * 1_000_000)), ms(delay_ms))
}

/// A profile with packets of 1,200 bytes at most, so that what is said of profiles holds of packets of one size; larger
/// ones are for `plpmtud`.
pub fn assoc_config(profile: &str) -> AssocConfig {
    let mut c = AssocConfig::with(
        Profile::named(profile).expect("a profile that is registered"),
        anabranch_engine::Constants::RFC,
    );
    if let Some(d) = &mut c.mtu.discovery {
        d.max = c.mtu.packet_size;
    }
    c
}

/// A configuration with changes.
pub fn changed(mut c: AssocConfig, change: impl FnOnce(&mut AssocConfig)) -> AssocConfig {
    change(&mut c);
    c
}

/// Turns a rule on or off: a policy with a parameter (`window=rfc9260:idle_keeps=1`), which stays as it is for off, or the
/// name of a setting.
pub fn choose(c: &mut AssocConfig, rule: &str, on: bool) {
    match rule.split_once('=') {
        Some((hook, spec)) if on => c.profile.set(hook.parse().expect("a hook"), spec).expect("registered"),
        Some(_) => {}
        None => assert!(c.set(rule, on.into()), "{rule}"),
    }
}

/// Bytes that tell their position, so that a wrong one is noticed.
pub fn pattern(seed: u64, len: usize) -> Bytes {
    let mut r = RandomStream::named(seed, "pattern");
    let mut v = Vec::with_capacity(len + 8);
    while v.len() < len {
        v.extend_from_slice(&r.u64().to_le_bytes());
    }
    v.truncate(len);
    Bytes::from(v)
}
