//! What a path is shown as to its policies.

use super::Path;
use anabranch_policy::view::{PathView, Signals};

/// Puts values into all fields of a struct, one by one and in their place. The compiler names a field that is forgotten.
macro_rules! fill {
    ($into:expr, $of:ident { $($field:ident: $value:expr,)* }) => {{
        let $of { $($field),* } = $into;
        $(*$field = $value;)*
    }};
}

impl Path {
    /// Puts all of it into a view, in its place: a view is large. `payload` is what a packet carries, bytes.
    pub fn show(&self, v: &mut PathView, payload: u64, board: Signals) {
        let usual = self.rtt.without_queue(self.rtt.sampled_at().is_some_and(|t| self.progress.reorders(t)));
        fill!(
            v,
            PathView {
                id: self.id,
                local: self.local.0,
                remote: Some(self.remote.ip()),
                state: self.state,
                mtu: payload,
                cwnd: self.congestion.cwnd(),
                ssthresh: self.congestion.ssthresh(),
                partial_bytes_acked: self.congestion.partial_bytes_acked(),
                in_recovery: self.congestion.in_recovery(),
                in_flight: self.flight.bytes(),
                packets_in_flight: self.flight.packets(),
                packets_sent: self.flight.next_seq(),
                overtaken_at: self.progress.overtaken_at(),
                srtt: self.rtt.srtt(),
                rttvar: self.rtt.rttvar(),
                rtt_deviation: self.rtt.deviation(),
                min_rtt: self.rtt.min_rtt(),
                last_rtt: self.rtt.last(),
                recent_rtt: self.rtt.recent(),
                mean_rtt: self.rtt.mean(),
                jitter: self.rtt.jitter(),
                unloaded_rtt: usual.mean,
                unloaded_deviation: usual.deviation,
                sampled_at: self.rtt.sampled_at(),
                stalled_at: self.rtt.stalled_at(),
                one_way: self.one_way.least(),
                recent_one_way: self.one_way.recent(),
                last_one_way: self.one_way.last(),
                reference_rtt: self.congestion.reference_rtt(),
                backoff: self.expiry.backoff(),
                consecutive_timeouts: self.expiry.in_a_row(),
                errors: self.health.errors(),
                send_rate: self.rate.send_rate(),
                delivery_rate: self.rate.delivery_rate(),
                capacity: self.capacity.rate(),
                capacity_may_be_more: self.capacity.is_lower_bound(),
                loss: self.flight.loss(),
                last_timeout: self.expiry.last(),
                oldest_sent: self.flight.oldest_sent(),
                second_sent: self.flight.second_sent(),
                unanswered_since: self.health.contact().unanswered(),
                asked_at: self.probing.asked_at(),
                last_heard: self.health.contact().last_heard(),
                last_shared: self.health.contact().last_shared(),
                answer_gap: self.health.answers().mean(),
                answer_gap_var: self.health.answers().deviation(),
                frame_errors: self.access.frame_errors(),
                signals: board,
            }
        );
    }

    /// A view of its own.
    pub fn view(&self, mtu: u64, signals: Signals) -> PathView {
        let mut v = PathView::idle(self.id);
        self.show(&mut v, mtu, signals);
        v
    }
}
