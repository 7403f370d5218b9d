//! Associations with policies of the test's own making, and what left on the wire.

pub use crate::common::*;
use anabranch_base::Instant;
use anabranch_engine::{AssocConfig, Event, LocalId};
use anabranch_policy::registry::{Hook, PolicySet, Profile};
use anabranch_sim::LinkConfig;
use anabranch_wire::{Chunk, Packet, Verify, kind};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a policy of the test wrote down while the engine ran it.
pub struct Notes<T>(Arc<Mutex<T>>);

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Notes(self.0.clone())
    }
}

impl<T: Default> Default for Notes<T> {
    fn default() -> Self {
        Notes(Arc::default())
    }
}

impl<T> Notes<T> {
    pub fn get(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no test thread panicked")
    }
}

/// The profile called `name` with other choices for some hooks.
pub fn profile(name: &str, choices: &[(Hook, &str)]) -> Profile {
    let mut p = Profile::named(name).expect("registered");
    for (hook, spec) in choices {
        p.set(*hook, spec).expect("registered");
    }
    p
}

/// The policies of a profile, to be wrapped or replaced.
pub fn policies(profile: &Profile, paths: usize) -> PolicySet {
    profile.check(paths).expect("makes sense");
    profile.build(1).expect("registered")
}

/// Two ends; the client runs `policies`, the server plain `cmt` that acknowledges every packet.
pub fn connected_by(seed: u64, policies: PolicySet, links: &[(LinkConfig, LinkConfig)]) -> Bench {
    let config =
        AssocConfig::with(profile("cmt", &[(Hook::Acknowledge, "immediate")]), anabranch_engine::Constants::RFC);
    let mut b = connected_with(seed, &config, policies, links);
    b.tap = Some(vec![]);
    b
}

/// Two ends whose client runs `policies`, with a configuration of the test's choice, and nothing tapped.
pub fn connected_with(
    seed: u64,
    config: &AssocConfig,
    policies: PolicySet,
    links: &[(LinkConfig, LinkConfig)],
) -> Bench {
    let mut b = Bench::new(seed, config);
    for (i, (f, r)) in links.iter().enumerate() {
        b.add_path(&format!("path{i}"), f.clone(), r.clone());
    }
    b.client_id = b.client.connect_with(b.now, config.clone(), policies, LocalId(0), server_addr(0), PORT);
    let now = b.now;
    for i in 1..links.len() {
        b.assoc(Side::Client).add_path(now, LocalId(i as u16), server_addr(i));
    }
    let until = b.now + ms(30_000);
    b.run_until(until, |b| b.client_events.contains(&Event::Connected));
    b.run_for(ms(3_000));
    assert!(b.client_events.contains(&Event::Connected), "not connected: {:?}", b.client_events);
    b.strict = true;
    b
}

/// One link for both directions.
pub fn both_ways(l: LinkConfig) -> (LinkConfig, LinkConfig) {
    (l.clone(), l)
}

/// A packet with DATA.
#[derive(Clone, Debug)]
pub struct Departure {
    pub at: Instant,
    pub path: usize,
    /// In the order of the packet.
    pub tsns: Vec<u32>,
    /// Messages by their numbers, see [`numbered`].
    pub numbers: Vec<u32>,
    pub streams: Vec<u16>,
    pub bytes: u64,
}

/// TSNs of the DATA chunks of a packet.
pub fn tsns(bytes: &Bytes) -> Vec<u32> {
    departure(Instant::ZERO, 0, bytes).tsns
}

fn departure(at: Instant, path: usize, bytes: &Bytes) -> Departure {
    let packet = Packet::parse(bytes, Verify::Trusted).expect("our own packet");
    let mut d = Departure { at, path, tsns: vec![], numbers: vec![], streams: vec![], bytes: 0 };
    for c in packet.chunks().flatten() {
        if let Ok(Chunk::Data(data)) = c.decode() {
            let number = data.payload.get(2..6).map_or(0, |n| u32::from_be_bytes([n[0], n[1], n[2], n[3]]));
            d.tsns.push(data.header.tsn.0);
            d.numbers.push(number);
            d.streams.push(data.header.stream.0);
            d.bytes += data.payload.len() as u64;
        }
    }
    d
}

/// Every packet with DATA that the client sent since the tap was opened.
pub fn departures(b: &Bench) -> Vec<Departure> {
    b.tapped(Side::Client, kind::DATA).iter().map(|(at, _, path, bytes)| departure(*at, *path, bytes)).collect()
}

/// The first departure of each TSN, and all the later ones.
pub fn first_and_again(all: &[Departure]) -> (Vec<&Departure>, Vec<&Departure>) {
    let mut seen = std::collections::BTreeSet::new();
    all.iter().partition(|d| d.tsns.iter().all(|t| seen.insert(*t)))
}
