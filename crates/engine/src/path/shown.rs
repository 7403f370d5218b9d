//! What a path is shown as to its policies.

use super::Path;
use anabranch_policy::view::{PathView, Signals};

impl Path {
    /// Puts all of it into a view, in its place: a view is large. The pattern makes the compiler name a field that is
    /// forgotten.
    pub fn show(&self, v: &mut PathView, mtu: u64, signals: Signals) {
        let PathView {
            id,
            local,
            remote,
            state,
            mtu: payload,
            cwnd,
            ssthresh,
            partial_bytes_acked,
            in_recovery,
            in_flight,
            packets_in_flight,
            packets_sent,
            overtaken_at,
            srtt,
            rttvar,
            rtt_deviation,
            min_rtt,
            last_rtt,
            recent_rtt,
            mean_rtt,
            jitter,
            unloaded_rtt,
            unloaded_deviation,
            sampled_at,
            stalled_at,
            one_way,
            recent_one_way,
            last_one_way,
            reference_rtt,
            backoff,
            consecutive_timeouts,
            errors,
            send_rate,
            delivery_rate,
            capacity,
            capacity_may_be_more,
            loss,
            last_timeout,
            oldest_sent,
            second_sent,
            unanswered_since,
            asked_at,
            last_heard,
            last_shared,
            answer_gap,
            answer_gap_var,
            frame_errors,
            signals: all_signals,
        } = v;
        *id = self.id;
        *local = self.local.0;
        *remote = Some(self.remote.ip());
        *state = self.state;
        *payload = mtu;
        *cwnd = self.congestion.cwnd();
        *ssthresh = self.congestion.ssthresh();
        *partial_bytes_acked = self.congestion.partial_bytes_acked();
        *in_recovery = self.congestion.in_recovery();
        *in_flight = self.flight.bytes();
        *packets_in_flight = self.flight.packets();
        *packets_sent = self.flight.next_seq();
        *overtaken_at = self.progress.overtaken_at();
        *srtt = self.rtt.srtt();
        *rttvar = self.rtt.rttvar();
        *rtt_deviation = self.rtt.deviation();
        *min_rtt = self.rtt.min_rtt();
        *last_rtt = self.rtt.last();
        *recent_rtt = self.rtt.recent();
        *mean_rtt = self.rtt.mean();
        *jitter = self.rtt.jitter();
        *unloaded_rtt = self.rtt.unloaded();
        *unloaded_deviation = self.rtt.unloaded_deviation();
        *sampled_at = self.rtt.sampled_at();
        *stalled_at = self.rtt.stalled_at();
        *one_way = self.one_way.least();
        *recent_one_way = self.one_way.recent();
        *last_one_way = self.one_way.last();
        *reference_rtt = self.congestion.reference_rtt();
        *backoff = self.expiry.backoff();
        *consecutive_timeouts = self.expiry.in_a_row();
        *errors = self.health.errors();
        *send_rate = self.rate.send_rate();
        *delivery_rate = self.rate.delivery_rate();
        *capacity = self.capacity.rate();
        *capacity_may_be_more = self.capacity.is_lower_bound();
        *loss = self.flight.loss();
        *last_timeout = self.expiry.last();
        *oldest_sent = self.flight.oldest_sent();
        *second_sent = self.flight.second_sent();
        *unanswered_since = self.health.contact().unanswered();
        *asked_at = self.probing.asked_at();
        *last_heard = self.health.contact().last_heard();
        *last_shared = self.health.contact().last_shared();
        *answer_gap = self.health.answers().mean();
        *answer_gap_var = self.health.answers().deviation();
        *frame_errors = self.access.frame_errors();
        *all_signals = signals;
    }

    /// A view of its own.
    pub fn view(&self, mtu: u64, signals: Signals) -> PathView {
        let mut v = PathView::idle(self.id);
        self.show(&mut v, mtu, signals);
        v
    }
}
