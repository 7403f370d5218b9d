//! A subflow: a TCP sender of its own, and which of the connection's segments it has outstanding.

use super::{Content, MptcpConfig, MptcpData, MptcpParcel, MptcpSegment};
use crate::network::{Address, Body, Context, Packet, Peer};
use crate::transport::tcp::{DataSegment, Sender, Supply};
use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

/// The sending end of a subflow.
pub(super) struct Subflow {
    source: Address,
    peer: Peer,
    header: u32,
    pub sender: Sender,
    /// Number of the first of `carried`.
    first: u64,
    /// What each of its segments from there on carries, by the connection's numbers.
    carried: VecDeque<u64>,
    /// When it last had another one's window halved.
    pub penalised: Instant,
    /// Its SYN has left.
    pub joined: bool,
    losses: Losses,
}

/// How much was acknowledged between losses.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Losses noticed so far, and what had been acknowledged at the latest.
    seen: u64,
    at: u64,
    /// Segments acknowledged between the two latest.
    between: u64,
}

impl Subflow {
    pub fn new(config: &MptcpConfig, number: u32, source: Address, peer: Peer, phase: Duration) -> Self {
        Subflow {
            source,
            peer,
            header: config.tcp.header,
            sender: Sender::new(config.tcp, number, Supply::Handed, phase),
            first: 1,
            carried: VecDeque::new(),
            penalised: Instant::ZERO,
            joined: false,
            losses: Losses::default(),
        }
    }

    /// Its SYN has been acknowledged.
    pub fn is_open(&self) -> bool {
        self.sender.acknowledged() > 0
    }

    /// May it take something new? Not while what a time-out found outstanding is repaired, as in Linux.
    pub fn takes(&self) -> bool {
        self.is_open() && !self.sender.is_timed_out()
    }

    /// Smoothed round trip; none measured is longer than any.
    pub fn rtt(&self) -> Duration {
        self.sender.srtt().unwrap_or(Duration::from_nanos(u64::MAX))
    }

    /// Segments acknowledged since the latest loss or between the two latest, whichever are more; the SYN counts as one.
    pub fn between_losses(&self) -> f64 {
        (self.sender.acknowledged() - self.losses.at).max(self.losses.between) as f64
    }

    /// Looks whether its sender has noticed a loss.
    pub fn note_losses(&mut self) {
        let c = self.sender.counters();
        let (seen, acknowledged) = (c.fast_retransmits + c.timeouts, self.sender.acknowledged());
        if seen > self.losses.seen {
            self.losses = Losses { seen, at: acknowledged, between: acknowledged - self.losses.at };
        }
    }

    /// The next segment to leave would carry this.
    pub fn hand(&mut self, number: u64, bytes: u32) {
        self.sender.hand(bytes);
        self.carried.push_back(number);
    }

    /// What was handed over last has not left and will not.
    pub fn take_back(&mut self) {
        self.sender.take_back();
        self.carried.truncate(self.sender.next_new().saturating_sub(self.first) as usize);
    }

    /// What its segment `number` carries.
    pub fn carries(&self, number: u64) -> Option<u64> {
        self.carried.get(number.checked_sub(self.first)? as usize).copied()
    }

    /// What it has outstanding, oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
        self.carried.iter().copied()
    }

    /// What has been acknowledged will not leave again.
    pub fn forget_acknowledged(&mut self) {
        let una = self.sender.acknowledged();
        while self.first < una && self.carried.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Sends a segment.
    pub fn send<X>(&self, cx: &mut Context<'_, X>, segment: DataSegment, content: Content) {
        let body = Body::Mptcp(MptcpParcel::of(MptcpSegment::Data(MptcpData { segment, content })));
        cx.send(Packet::new(self.source, self.peer, self.header + segment.bytes, body));
    }
}
