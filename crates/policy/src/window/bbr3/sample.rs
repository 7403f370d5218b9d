//! Samples of the delivery rate, of what was in flight and of what was lost since a packet left (draft-ietf-ccwg-bbr
//! "Delivery Rate Samples").

use crate::loss_cause::LossEvent;
use crate::window::AckOnPath;
use anabranch_base::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// Packets older than the newest one that was acknowledged, beyond twice those in flight, that are still remembered:
/// losses are noticed late.
const KEPT: u64 = 64;
/// Most packets that are remembered at all.
const MOST: usize = 1 << 16;

/// What was known when a packet left.
#[derive(Clone, Copy, Debug)]
struct Packet {
    seq: u64,
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    in_flight: u64,
    /// The sender held back by itself.
    held_back: bool,
}

/// What an acknowledgement, or a loss, says about the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Zero without one.
    pub rate: Rate,
    /// Bytes delivered between the departure of the packet and now.
    pub delivered: u64,
    /// Bytes that had been delivered when the packet left; none where it is not known which packet arrived.
    pub prior_delivered: Option<u64>,
    /// Bytes in flight once the packet had left.
    pub in_flight: u64,
    /// Bytes lost since the packet left.
    pub lost: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// The sender had less to send than the path takes.
    pub app_limited: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sampler {
    packets: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// Once so much was delivered, samples count again.
    held_back_until: u64,
    app_limited: bool,
    least_rtt: Duration,
}

impl Sampler {
    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Was the newest sample limited by the source?
    pub fn is_app_limited(&self) -> bool {
        self.app_limited
    }
    /// What leaves from now on shows less than the path takes, until it has arrived.
    pub fn hold_back(&mut self, in_flight: u64) {
        self.held_back_until = self.delivered + in_flight.max(1);
    }
    /// Packet `seq` left and `in_flight` bytes are in flight with it; `alone`: nothing was before.
    pub fn sent(&mut self, now: Instant, seq: u64, in_flight: u64, alone: bool) {
        if alone {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        if self.packets.len() >= MOST {
            self.packets.pop_front();
        }
        self.packets.push_back(Packet {
            seq,
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight,
            held_back: self.held_back_until > 0,
        });
    }
    fn find(&self, seq: u64) -> Option<&Packet> {
        self.packets.get(self.packets.partition_point(|p| p.seq < seq)).filter(|p| p.seq == seq)
    }
    /// An acknowledgement, with `packets` in flight after it.
    pub fn acked(&mut self, now: Instant, ack: &AckOnPath, packets: u32) -> Sample {
        self.delivered += ack.acked;
        self.delivered_at = now;
        self.app_limited = ack.app_limited;
        if self.delivered > self.held_back_until {
            self.held_back_until = 0;
        }
        if let Some(rtt) = ack.rtt {
            self.least_rtt = if self.least_rtt.is_zero() { rtt } else { self.least_rtt.min(rtt) };
        }
        let nothing = Sample { acked: ack.acked, app_limited: ack.app_limited, ..Sample::default() };
        let Some(p) = ack.newest_seq.and_then(|s| self.find(s)).copied() else { return nothing };
        self.first_sent = p.at;
        let oldest = p.seq.saturating_sub(2 * u64::from(packets) + KEPT);
        while self.packets.front().is_some_and(|f| f.seq < oldest) {
            self.packets.pop_front();
        }
        let span = p.at.since(p.first_sent).max(now.since(p.delivered_at));
        let delivered = self.delivered - p.delivered;
        Sample {
            // A shorter span is one of packets that arrived twice.
            rate: if span < self.least_rtt { Rate::ZERO } else { Rate::of(delivered, span) },
            delivered,
            prior_delivered: Some(p.delivered),
            in_flight: p.in_flight,
            lost: self.lost - p.lost,
            app_limited: ack.app_limited || p.held_back,
            ..nothing
        }
    }
    /// A loss, of one packet or of several noticed together, which count as one burst. What was in flight is taken from
    /// the newest of them, in whose time all were lost.
    pub fn lost(&mut self, e: &LossEvent) -> Sample {
        self.lost += e.bytes;
        let packet = e.packets.and_then(|l| self.find(l.last)).or_else(|| self.packets.front());
        let Some(p) = packet else { return Sample::default() };
        Sample {
            prior_delivered: Some(p.delivered),
            in_flight: p.in_flight,
            lost: self.lost - p.lost,
            app_limited: self.app_limited || p.held_back,
            ..Sample::default()
        }
    }
}
