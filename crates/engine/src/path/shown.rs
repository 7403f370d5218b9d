//! What a path is shown as to its policies.

use super::Path;
use anabranch_policy::view::{PathView, Signals};

impl Path {
    /// Puts all of it into a view, in its place: a view is large.
    pub fn show(&self, v: &mut PathView, mtu: u64, signals: Signals) {
        v.id = self.id;
        v.local = self.local.0;
        v.remote = Some(self.remote.ip());
        v.state = self.state;
        v.mtu = mtu;
        v.cwnd = self.congestion.cwnd;
        v.ssthresh = self.congestion.ssthresh;
        v.partial_bytes_acked = self.congestion.partial_bytes_acked;
        v.in_recovery = self.congestion.recovery_exit.is_some();
        v.in_flight = self.flight.bytes();
        v.packets_in_flight = self.flight.packets();
        v.srtt = self.rtt.srtt();
        v.rttvar = self.rtt.rttvar();
        v.rtt_deviation = self.rtt.deviation();
        v.min_rtt = self.rtt.min_rtt();
        v.last_rtt = self.rtt.last();
        v.recent_rtt = self.rtt.recent();
        v.mean_rtt = self.rtt.mean();
        v.jitter = self.rtt.jitter();
        v.unloaded_rtt = self.rtt.unloaded();
        v.unloaded_deviation = self.rtt.unloaded_deviation();
        v.sampled_at = self.rtt.sampled_at();
        v.stalled_at = self.rtt.stalled_at();
        v.one_way = self.one_way.least();
        v.recent_one_way = self.one_way.recent();
        v.reference_rtt = self.congestion.reference_rtt;
        v.backoff = self.expiry.backoff;
        v.consecutive_timeouts = self.expiry.consecutive_timeouts;
        v.errors = self.health.errors;
        v.send_rate = self.rate.send_rate();
        v.delivery_rate = self.rate.delivery_rate();
        v.capacity = self.capacity.rate();
        v.capacity_may_be_more = self.capacity.is_lower_bound();
        v.loss = self.flight.loss();
        v.last_timeout = self.expiry.last;
        v.oldest_sent = self.flight.oldest_sent();
        v.second_sent = self.flight.second_sent();
        v.unanswered_since = self.health.contact.unanswered();
        v.asked_at = self.probing.pending.map(|h| h.sent_at);
        v.last_heard = self.health.contact.last_heard();
        v.last_shared = self.health.contact.last_shared();
        v.answer_gap = self.health.answers.mean();
        v.answer_gap_var = self.health.answers.deviation();
        v.frame_errors = self.access.frame_errors;
        v.signals = signals;
    }

    /// A view of its own.
    pub fn view(&self, mtu: u64, signals: Signals) -> PathView {
        let mut v = PathView::idle(self.id);
        self.show(&mut v, mtu, signals);
        v
    }
}
