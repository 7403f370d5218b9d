//! What a path carries, before anything has to be carried: a train of padded HEARTBEATs.
//!
//! Packets that leave together are spread by the slowest link on their way, and so are their answers: the time between
//! the first answer and the last is what that link takes for the packets between (packet trains; Dovrolis, Ramanathan,
//! Moore 2001). One round trip after a path came into use its rate is known, which slow start needs many for. Only
//! where the window asks for it ([`anabranch_policy::window::Window::wants_train`]); padding is RFC 4820's, which peers
//! that do not know it skip.

use crate::association::Association;
use crate::association::control::What;
use anabranch_base::{Instant, PathId, Rate};
use anabranch_policy::view::PathState;

/// HEARTBEATs of a train.
pub(crate) const LENGTH: usize = 12;
/// An answer so near the end is enough: the last ones may be lost.
const ENOUGH: usize = LENGTH - 3;

/// A train that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Train {
    nonces: [u64; LENGTH],
    sent_at: Instant,
    /// Number and time of the first answer.
    first: Option<(usize, Instant)>,
    /// Those of one about its middle.
    middle: Option<(usize, Instant)>,
    /// Its rate is known.
    done: bool,
}

impl Association {
    /// Has every path shown what it carries, as far as its window asks for that? A path that is not confirmed yet, or
    /// whose train is under way, has not. What is sent before that may find less room than there is. Whoever asks means to
    /// send: trains leave if none did.
    pub fn warm_up(&mut self, now: Instant) -> bool {
        self.means_to_send(now);
        let answered = |p: &crate::path::Path| {
            let known = p.probing.train.as_deref().is_none_or(|t| t.done) || !p.congestion.window.wants_train();
            p.access.interface_down || p.health.errors() > 0 || p.state != PathState::Unconfirmed && known
        };
        self.handshake.state().is_connected() && self.paths.iter().all(answered)
    }

    /// The user sends, or is about to. A side that only receives never sends trains: they would come in the way of the
    /// answers to the peer's, which would seem to carry more than they do.
    #[inline]
    pub(in crate::association) fn means_to_send(&mut self, now: Instant) {
        if self.sender.note_sends() && self.handshake.state().is_connected() {
            let used = self.paths.iter().filter(|p| p.state == PathState::Active).map(|p| p.id);
            used.collect::<Vec<_>>().into_iter().for_each(|id| self.send_train(now, id));
        }
    }

    /// The path came into use: sends a train on it, if its window wants one.
    pub(in crate::association) fn send_train(&mut self, now: Instant, id: PathId) {
        if !self.sender.sends() {
            return;
        }
        let wanted = |p: &&crate::path::Path| {
            p.congestion.window.wants_train() && p.access.known_to_peer && !p.access.interface_down
        };
        if self.paths.get(id.index()).filter(wanted).is_none() {
            return;
        }
        let nonces = core::array::from_fn(|_| self.paths.nonces.next());
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.probing.train = Some(Box::new(Train { nonces, sent_at: now, first: None, middle: None, done: false }));
            p.counters.heartbeats_sent += LENGTH as u64;
        }
        let size = self.packet_size(id);
        for nonce in nonces {
            self.control.push(id, What::PathProbe { nonce, size });
        }
    }

    /// Is this HEARTBEAT ACK the answer to one of a train?
    pub(in crate::association) fn train_answered(&mut self, now: Instant, id: PathId, nonce: u64) -> bool {
        let payload = self.paths.mtu;
        let Some(p) = self.paths.get_mut(id.index()) else { return false };
        let Some(train) = p.probing.train.as_deref_mut() else { return false };
        let Some(number) = train.nonces.iter().position(|n| *n == nonce) else { return false };
        p.counters.heartbeats_answered += 1;
        match train.first {
            None => {
                train.first = Some((number, now));
                let sent_at = train.sent_at;
                p.sample_own_round_trip(now, now.since(sent_at));
            }
            Some(_) if train.middle.is_none() && number < ENOUGH => {
                train.middle = Some((number, now)).filter(|_| number >= LENGTH / 2);
            }
            Some(first) if number >= ENOUGH && !train.done => {
                train.done = true;
                let rate = regular_rate(first, train.middle, (number, now), payload);
                self.begin_with(now, id, rate);
            }
            Some(_) => {}
        }
        self.path_answered(now, id);
        true
    }

    /// The path begins with the rate that its train showed.
    fn begin_with(&mut self, now: Instant, id: PathId, rate: Option<Rate>) {
        let (Some(rate), Some(p)) = (rate, self.paths.get_mut(id.index())) else { return };
        let rtt = p.rtt.min_rtt();
        p.capacity.guess(now, rate, rtt);
        let v = self.views.path(&mut self.paths, &self.policies, id);
        if let (Some(v), Some(p)) = (v, self.paths.get_mut(id.index()))
            && let Some(window) = p.congestion.window.on_train(now, v)
        {
            p.congestion.cwnd = p.congestion.cwnd.max(window);
        }
        self.opportunity();
    }
}

/// The rate at which a train was answered. None where its halves differ: something else than the link's rate spread it.
fn regular_rate(
    first: (usize, Instant),
    middle: Option<(usize, Instant)>,
    last: (usize, Instant),
    payload: u64,
) -> Option<Rate> {
    let rate = |a: (usize, Instant), b: (usize, Instant)| {
        (b.0 > a.0 && b.1 > a.1).then(|| Rate::of((b.0 - a.0) as u64 * payload, b.1.since(a.1)))
    };
    let whole = rate(first, last)?;
    let middle = middle?;
    let (a, b) = (rate(first, middle)?.bytes_per_sec(), rate(middle, last)?.bytes_per_sec());
    (a <= b * 2 && b <= a * 2).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_that_was_spread_evenly_shows_a_rate() {
        let at = |ms: u64| Instant::from_millis(1_000 + ms);
        let rate = |first, middle, last| regular_rate(first, middle, last, 1_000).map(Rate::bytes_per_sec);
        assert_eq!(rate((0, at(0)), Some((6, at(6))), (11, at(11))), Some(1_000_000));
        assert_eq!(rate((0, at(0)), Some((6, at(9))), (11, at(11))), None, "jitter");
        assert_eq!(rate((0, at(5)), Some((6, at(5))), (11, at(5))), None, "all at once");
        assert_eq!(rate((0, at(0)), None, (11, at(11))), None, "much was lost");
    }
}
