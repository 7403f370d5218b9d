//! The measurement: one flow, one path that dies, what the wire shows.

use super::table;
use crate::common::*;
use anabranch_base::{Duration, Instant};
use anabranch_sim::LinkConfig;
use anabranch_wire::{Chunk, Packet, Verify, kind};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Profiles that keep path truth: all but plain SCTP and those of ns-2's age.
pub const PROFILES: [&str; 7] = ["cmt", "cmt-rtx-csi", "thin", "confluent", "media", "live", "low-latency"];
/// The two paths of most runs: (forward, backward) of each.
pub type Links = [(LinkConfig, LinkConfig); 2];

/// Two paths with so many milliseconds one way, there and back.
pub fn links(first: (u64, u64), second: (u64, u64)) -> Links {
    [(link(6, first.0), link(6, first.1)), (link(6, second.0), link(6, second.1))]
}

/// TSNs of the DATA in a packet.
fn tsns(bytes: &Bytes) -> Vec<u32> {
    let Ok(p) = Packet::parse(bytes, Verify::Trusted) else { return vec![] };
    let data = p.chunks().flatten().filter(|c| c.kind == kind::DATA);
    data.filter_map(|c| match c.decode() {
        Ok(Chunk::Data(d)) => Some(d.header.tsn.0),
        _ => None,
    })
    .collect()
}

/// A connected pair whose client sends numbered messages of 1,000 bytes at a steady rate.
pub struct Run {
    pub b: Bench,
    pub flow: Flow,
    /// From one message to the next.
    pub gap: Duration,
    /// When the next one is due.
    due: Instant,
}

impl Run {
    /// `rate` messages a second over paths with `links`, with SCTP's own second for a first timeout.
    pub fn new(seed: u64, profile: &str, links: &Links, rate: u64) -> Run {
        let config = assoc_config(profile);
        Run::of(Bench::connected(seed, &config, links), rate)
    }

    /// A run over a pair that is connected already.
    pub fn of(mut b: Bench, rate: u64) -> Run {
        (b.tap, b.arrived) = (Some(vec![]), Some(vec![]));
        let (flow, gap) = (Flow::new(Side::Client, 0, 1_000), Duration::from_micros(1_000_000 / rate));
        Run { due: b.now, b, flow, gap }
    }

    /// Messages for `time`; what arrives is checked.
    pub fn go(&mut self, time: Duration) {
        let until = self.b.now + time;
        loop {
            let rest = self.due.min(until).since(self.b.now);
            self.b.run_for(rest);
            self.flow.check(&mut self.b);
            if self.b.now >= until {
                return;
            }
            self.due += self.gap;
            self.flow.send_to(&mut self.b, self.flow.sent + 1);
        }
    }

    /// The logs begin anew.
    pub fn forget(&mut self) {
        (self.b.tap, self.b.arrived) = (Some(vec![]), Some(vec![]));
    }

    /// Nothing is on its way any more, and every message came once, in order and whole.
    pub fn settle(&mut self) {
        let until = self.b.now + ms(120_000);
        while self.flow.got < self.flow.sent && self.b.now < until {
            self.b.run_for(ms(200));
            self.flow.check(&mut self.b);
        }
        self.b.run_for(ms(2_000));
        self.flow.check(&mut self.b);
        assert_eq!(self.flow.got, self.flow.sent, "messages are missing");
    }

    /// The larger smoothed round trip of the paths.
    pub fn srtt(&mut self) -> Duration {
        (0..2).map(|i| self.b.path(Side::Client, i).srtt).max().unwrap_or_default()
    }

    /// The bound of the take-over time.
    pub fn bound(&mut self) -> Duration {
        ms(200).max(self.srtt() * 2)
    }

    /// When the last packet of `from` came by `path`.
    pub fn last_arrival(&self, from: Side, path: usize) -> Option<Instant> {
        self.b.arrived.as_deref()?.iter().rev().find(|(_, s, p, _)| (*s, *p) == (from, path)).map(|(t, ..)| *t)
    }

    /// Packets with DATA that our side put on `path`.
    pub fn packets_on(&self, path: usize) -> usize {
        self.b.tapped(Side::Client, kind::DATA).iter().filter(|e| e.2 == path).count()
    }

    /// When the newest of them left.
    pub fn last_data_on(&self, path: usize) -> Option<Instant> {
        self.b.tapped(Side::Client, kind::DATA).iter().rev().find(|e| e.2 == path).map(|e| e.0)
    }

    /// When the last chunk that `path` did not deliver had left elsewhere, and nothing more went there. The logs end
    /// while the path is still dead. Panics when a chunk never left elsewhere.
    pub fn left_at(&self, path: usize) -> Option<Instant> {
        let (tap, arrived) = (self.b.tap.as_deref()?, self.b.arrived.as_deref()?);
        let ours = |s: &Side, p: &usize| (*s, *p) == (Side::Client, path);
        let came: BTreeSet<u32> =
            arrived.iter().filter(|(_, s, p, _)| ours(s, p)).flat_map(|(.., b)| tsns(b)).collect();
        // What the path was given and kept, and nothing else carries yet.
        let (mut kept, mut elsewhere, mut last) = (BTreeSet::new(), BTreeSet::new(), None);
        for (t, s, p, bytes) in tap.iter().filter(|e| e.1 == Side::Client) {
            let list = tsns(bytes);
            if ours(s, p) && !list.is_empty() {
                last = Some(*t);
                kept.extend(list.into_iter().filter(|n| !came.contains(n) && !elsewhere.contains(n)));
            } else {
                for n in list {
                    elsewhere.insert(n);
                    if kept.remove(&n) {
                        last = last.max(Some(*t));
                    }
                }
            }
        }
        assert!(kept.is_empty(), "never sent again elsewhere: {kept:?}");
        last
    }
}

/// Median and largest of some times.
pub fn spread(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}

/// Prints a row and holds it against the bound and the page.
pub fn judge(what: &str, profile: &str, bound: Duration, times: &mut [Duration]) {
    let (median, worst) = spread(times);
    println!("{what:28} {profile:12} median {median:>12} worst {worst:>12} bound {bound}");
    assert!(times.len() >= 20, "{what}, {profile}: only {} deaths", times.len());
    assert!(median <= bound, "{what}, {profile}: median {median} above {bound}: {times:?}");
    assert!(worst <= bound * 2, "{what}, {profile}: worst {worst} above twice {bound}: {times:?}");
    table::cell(what, profile, median, worst);
}
