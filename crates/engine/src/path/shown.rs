//! What a path is shown as to its policies.

use super::Path;
use anabranch_policy::view::{PathView, Signals};

impl Path {
    #[inline]
    pub fn view(&self, mtu: u64, signals: Signals) -> PathView {
        PathView {
            id: self.id,
            local: self.local.0,
            remote: Some(self.remote.ip()),
            state: self.state,
            mtu,
            cwnd: self.congestion.cwnd,
            ssthresh: self.congestion.ssthresh,
            partial_bytes_acked: self.congestion.partial_bytes_acked,
            in_recovery: self.congestion.recovery_exit.is_some(),
            in_flight: self.flight.bytes(),
            packets_in_flight: self.flight.packets(),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            rtt_deviation: self.rtt.deviation(),
            min_rtt: self.rtt.min_rtt(),
            last_rtt: self.rtt.last(),
            recent_rtt: self.rtt.recent(),
            mean_rtt: self.rtt.mean(),
            jitter: self.rtt.jitter(),
            unloaded_rtt: self.rtt.unloaded(),
            unloaded_deviation: self.rtt.unloaded_deviation(),
            sampled_at: self.rtt.sampled_at(),
            stalled_at: self.rtt.stalled_at(),
            one_way: self.one_way.least(),
            recent_one_way: self.one_way.recent(),
            reference_rtt: self.congestion.reference_rtt,
            backoff: self.expiry.backoff,
            consecutive_timeouts: self.expiry.consecutive_timeouts,
            errors: self.health.errors,
            send_rate: self.rate.send_rate(),
            delivery_rate: self.rate.delivery_rate(),
            capacity: self.capacity.rate(),
            capacity_may_be_more: self.capacity.is_lower_bound(),
            loss: self.flight.loss(),
            last_timeout: self.expiry.last,
            oldest_sent: self.flight.oldest_sent(),
            second_sent: self.flight.second_sent(),
            unanswered_since: self.health.contact.unanswered(),
            asked_at: self.probing.pending.map(|h| h.sent_at),
            last_heard: self.health.contact.last_heard(),
            last_shared: self.health.contact.last_shared(),
            answer_gap: self.health.answers.mean(),
            answer_gap_var: self.health.answers.deviation(),
            frame_errors: self.access.frame_errors,
            signals,
        }
    }
}
