//! Rates of a path: what is sent, and what is delivered.
//!
//! The delivery rate follows the sample of draft-cheng-iccrg-delivery-rate-estimation: bytes delivered between
//! the departure of a packet and its acknowledgement, over the longer of the sending and the acknowledging span,
//! so neither a burst sent nor a burst of acknowledgements overstates it.

use super::capacity::RateSample;
use anabranch_base::{Duration, Instant, Rate};

/// Snapshot kept with every packet in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveredAtSend {
    pub delivered: u64,
    pub delivered_at: Instant,
    pub first_sent: Instant,
    pub app_limited: bool,
    /// Bytes that were in flight before it.
    pub in_flight: u64,
    /// When the first packet left of the burst it belongs to ([`super::capacity::Capacity::on_sent`]).
    pub burst: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateEstimator {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Delivered bytes at which the application-limited phase is over.
    app_limited_until: u64,
    /// Best samples of the current and the two previous spans.
    best: [Rate; 3],
    span_began: Instant,
    sent_window_began: Instant,
    sent_in_window: u64,
    send_rate: Rate,
}

impl RateEstimator {
    /// A packet with `bytes` of payload leaves.
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight_before: u64, srtt: Duration) -> DeliveredAtSend {
        if in_flight_before == 0 {
            self.delivered_at = now;
            self.first_sent = now;
        }
        let window = srtt.max(Duration::from_millis(50));
        let age = now.since(self.sent_window_began);
        if age >= window {
            let r = Rate::of(self.sent_in_window, age);
            self.send_rate = if self.send_rate == Rate::ZERO {
                r
            } else {
                Rate::from_bytes_per_sec((self.send_rate.bytes_per_sec() * 3 + r.bytes_per_sec()) / 4)
            };
            self.sent_window_began = now;
            self.sent_in_window = 0;
        }
        self.sent_in_window += bytes;
        DeliveredAtSend {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            // What was in flight then has to arrive, and something after it.
            app_limited: self.app_limited_until > 0 && self.delivered <= self.app_limited_until,
            in_flight: in_flight_before,
            burst: now,
        }
    }

    /// The sender had nothing to send although the window was open.
    pub fn app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight.max(1);
    }

    /// Would [`Self::app_limited`] change nothing?
    pub fn is_app_limited(&self, in_flight: u64) -> bool {
        self.app_limited_until == self.delivered + in_flight.max(1)
    }

    /// Bytes on this path were acknowledged.
    pub fn on_delivered(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// The newest packet of an acknowledgement, after [`Self::on_delivered`] for all of its bytes. Answers the sample
    /// that it gave, if any.
    pub fn on_newest(
        &mut self,
        now: Instant,
        sent_at: Instant,
        at_send: &DeliveredAtSend,
        srtt: Duration,
    ) -> Option<RateSample> {
        self.first_sent = sent_at;
        let send_span = sent_at.since(at_send.first_sent);
        let ack_span = now.since(at_send.delivered_at);
        let span = send_span.max(ack_span);
        let bytes = self.delivered.saturating_sub(at_send.delivered);
        // A span far below the round trip is an artefact of few packets.
        if span.is_zero() || bytes == 0 || span * 2 < srtt.min(Duration::from_millis(20)) {
            return None;
        }
        let sample = Rate::of(bytes, span);
        let answer = Some(RateSample { rate: sample, span, app_limited: at_send.app_limited });
        if at_send.app_limited && sample <= self.delivery_rate() {
            return answer;
        }
        let length = (srtt * 8).max(Duration::from_millis(500));
        if now.since(self.span_began) > length {
            self.best = [Rate::ZERO, self.best[0], self.best[1]];
            self.span_began = now;
        }
        self.best[0] = self.best[0].max(sample);
        answer
    }

    /// Bytes that were acknowledged so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Largest delivery rate sampled over the last two to three spans of eight round trips.
    pub fn delivery_rate(&self) -> Rate {
        self.best[0].max(self.best[1]).max(self.best[2])
    }
    pub fn send_rate(&self) -> Rate {
        self.send_rate
    }
    /// Another route: nothing learnt holds.
    pub fn restart(&mut self) {
        self.best = [Rate::ZERO; 3];
    }
}
