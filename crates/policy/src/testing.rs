//! A scene for unit tests: paths, a queue, and the questions an engine asks.

use crate::path_scheduler::{Decision, Occasion, PathScheduler, Settled};
use crate::stream_scheduler::{Place, StreamScheduler};
use crate::view::{AssocView, ChunkView, PathView, Period, QueueView, StreamView, TimeoutLog};
use anabranch_base::{Duration, Instant, PathId, PathSet, Ppm, StreamId, Tsn};
use std::collections::BTreeMap;

pub(crate) struct Scene {
    pub now: Instant,
    pub paths: Vec<PathView>,
    pub chunks: Vec<ChunkView>,
    pub eligible: PathSet,
    pub aside: PathSet,
    pub timeouts: Vec<TimeoutLog>,
    pub unsent: u64,
    pub declined: bool,
    pub peer_rwnd: u64,
    pub fill: Ppm,
    pub primary: PathId,
    pub data_sent_at: Option<Instant>,
    pub period: Period,
    pub aggregate_window: Option<u64>,
    pub class_rates: [anabranch_base::Rate; 3],
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Scene {
    /// `paths` idle paths, all eligible, and `chunks` waiting chunks from TSN 40 on.
    pub fn new(paths: u8, chunks: u32) -> Self {
        Scene {
            now: Instant::from_millis(100_000),
            paths: (0..paths).map(|i| PathView::idle(PathId(i))).collect(),
            chunks: (0..chunks).map(|i| ChunkView::waiting(Tsn(40 + i))).collect(),
            eligible: PathSet::first(usize::from(paths)),
            aside: PathSet::EMPTY,
            timeouts: vec![TimeoutLog::default(); usize::from(paths)],
            unsent: u64::from(chunks) * 1_144,
            declined: false,
            peer_rwnd: 1 << 20,
            fill: Ppm(0),
            primary: PathId(0),
            data_sent_at: None,
            period: Period::default(),
            aggregate_window: None,
            class_rates: [anabranch_base::Rate::ZERO; 3],
        }
    }
    pub fn cx(&self) -> AssocView<'_> {
        AssocView {
            eligible: self.eligible,
            aside: self.aside,
            primary: self.primary,
            peer_rwnd: self.peer_rwnd,
            unsent: self.unsent,
            declined: self.declined,
            period: self.period,
            aggregate_window: self.aggregate_window,
            send_buffer_fill: self.fill,
            data_sent_at: self.data_sent_at,
            class_rates: self.class_rates,
            timeouts: &self.timeouts,
            ..AssocView::of(self.now, &self.paths)
        }
    }
    /// The window of path `i` is full.
    pub fn close(&mut self, i: u8) {
        self.eligible = self.eligible.without(PathId(i));
        let p = &mut self.paths[usize::from(i)];
        p.in_flight = p.in_flight.max(p.cwnd);
    }
    /// Path `i` takes data.
    pub fn open(&mut self, i: u8) {
        self.eligible = self.eligible.with(PathId(i));
        self.paths[usize::from(i)].in_flight = 0;
    }
    /// Gives path `i` an RTT, without variation.
    pub fn rtt(&mut self, i: u8, millis: u64) -> &mut PathView {
        let p = &mut self.paths[usize::from(i)];
        (p.srtt, p.min_rtt, p.last_rtt) = (ms(millis), ms(millis), ms(millis));
        p
    }
    pub fn ask(&self, policy: &dyn PathScheduler) -> Decision {
        policy.next(&self.cx(), &QueueView::of(&self.chunks))
    }
    /// Asks, carries out and removes the chunk; flights do not change.
    pub fn send(&mut self, policy: &mut dyn PathScheduler) -> Option<(u32, PathId)> {
        match self.ask(policy) {
            Decision::Send { index, path } => {
                let c = self.chunks.remove(index);
                policy.settle(&self.cx(), &Settled::Sent { tsn: c.tsn, path, len: c.len });
                Some((index as u32, path))
            }
            _ => None,
        }
    }
    pub fn opportunity(&self, policy: &mut dyn PathScheduler) {
        policy.observe(&self.cx(), &QueueView::of(&self.chunks), Occasion::Opportunity);
    }
    pub fn refilled(&self, policy: &mut dyn PathScheduler) {
        policy.observe(&self.cx(), &QueueView::of(&self.chunks), Occasion::Refilled);
    }
}

/// A SACK that acknowledged up to `highest` on one path.
pub(crate) fn sack(highest: Option<Tsn>) -> crate::view::SackView<'static> {
    crate::view::SackView::up_to(highest)
}

/// A copy of chunk `tsn` sent on `path` in packet `tx_seq`.
pub(crate) fn copy(tsn: u32, path: u8, tx_seq: u64) -> crate::view::CopyView {
    crate::view::CopyView::sent(Tsn(tsn), PathId(path), tx_seq, Instant::from_millis(99_900))
}

/// A fast-retransmit loss of one chunk on `path` that opens an episode.
pub(crate) fn loss(path: u8) -> crate::loss_cause::LossEvent {
    crate::loss_cause::LossEvent::reported(PathId(path), 1_144)
}

/// `bytes` acknowledged on path 0.
pub(crate) fn acked(bytes: u64, oldest_advanced: bool, cumulative_advanced: bool) -> crate::ack_credit::PathAck {
    crate::ack_credit::PathAck {
        oldest_advanced,
        cumulative_advanced,
        ..crate::ack_credit::PathAck::of(PathId(0), bytes)
    }
}

/// Stream `id` whose first message arrived as number `order`.
pub(crate) fn stream(id: u16, order: u64) -> StreamView {
    StreamView::ready(StreamId(id), order)
}

/// Asks a stream scheduler as the engine does: for the places of streams that are new or were taken from.
#[derive(Default)]
pub(crate) struct Turns {
    places: BTreeMap<StreamId, Place>,
    taken: Option<StreamId>,
}

impl Turns {
    pub fn next(&mut self, p: &mut dyn StreamScheduler, ready: &[StreamView]) -> StreamId {
        let gone = |id: &StreamId| ready.iter().all(|s| s.id != *id);
        let silent: Vec<StreamId> = self.places.keys().copied().chain(self.taken).filter(gone).collect();
        for id in silent {
            self.places.remove(&id);
            p.silent(id);
        }
        let last = ready.iter().find(|s| Some(s.id) == self.taken);
        if let Some(s) = last.filter(|s| p.asks().any(crate::asks::Asks::PACKETS) && p.goes_on(s)) {
            return s.id;
        }
        // The one that was taken from first: what it has sent by now counts for newcomers.
        for s in last.into_iter().chain(ready) {
            if !self.places.contains_key(&s.id) {
                let place = p.place(s, self.places.values().min().copied());
                self.places.insert(s.id, place);
            }
        }
        self.places.iter().min_by_key(|(_, place)| **place).map_or(StreamId(0), |(id, _)| *id)
    }
    pub fn taken(&mut self, p: &mut dyn StreamScheduler, stream: StreamId, len: u64) {
        self.places.remove(&stream);
        self.taken = Some(stream);
        p.taken(stream, len);
    }
}

/// The `n`th packet with DATA since the last SACK.
pub(crate) fn received(n: u32) -> crate::acknowledge::ReceiveView {
    crate::acknowledge::ReceiveView::in_order(Instant::from_millis(5), n)
}

/// The policy of a table's row as a profile builds it, from parameters as a user writes them.
pub fn built<T: ?Sized>(policy: &crate::registry::Policy<T>, params: &str, seed: u64) -> Box<T> {
    let spec = format!("{}:{params}", policy.info.name);
    let mut profile = crate::Profile::named("sctp").unwrap();
    profile.set(policy.info.hook, &spec).unwrap_or_else(|e| panic!("{e}"));
    (policy.build)(&crate::registry::Params::new(&profile.values(policy.info.hook)[..], seed))
}
