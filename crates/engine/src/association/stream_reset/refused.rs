//! What the peer refuses as "request already in progress" (RFC 6525 §4.4): asked for again later, with the next
//! numbers. The answer ends the request (§5.2.7 H1, H3), so that none is in flight and nothing counts as an error
//! meanwhile. The pauses are those of the re-configuration timer (§5.1.1), and there are at most Association.Max.Retrans
//! of them: then the user learns of it.

use crate::association::Association;
use crate::association::stream_reset::request::{Part, StreamReset, Wish};
use crate::event::Event;
use anabranch_base::{Duration, Instant};
use anabranch_wire::reconfig_result as result;

/// A wish that waits.
#[derive(Debug)]
pub(in crate::association) struct Waiting {
    pub wish: Wish,
    /// How often the peer has refused it so.
    pub refused: u16,
    /// It is asked for again then; none when nothing but its turn is waited for.
    pub(super) not_before: Option<Instant>,
}

impl From<Wish> for Waiting {
    fn from(wish: Wish) -> Self {
        Waiting { wish, refused: 0, not_before: None }
    }
}

impl Waiting {
    pub fn is_early(&self, now: Instant) -> bool {
        self.not_before.is_some_and(|t| now < t)
    }

    /// It was refused and holds up our streams.
    fn holds_streams(&self) -> bool {
        self.refused > 0 && matches!(self.wish, Wish::Reset { outgoing: Some(_), .. })
    }
}

/// What of a wish `part` of its request was.
fn part_of_wish(wish: &Wish, part: Option<Part>) -> Option<Wish> {
    Some(match (wish, part) {
        (Wish::Reset { outgoing, response, .. }, Some(Part::Outgoing)) => {
            Wish::Reset { outgoing: outgoing.clone(), incoming: None, response: *response }
        }
        (Wish::Reset { incoming, .. }, Some(Part::Incoming)) => {
            Wish::Reset { outgoing: None, incoming: incoming.clone(), response: None }
        }
        (Wish::Add { outgoing, .. }, Some(Part::Outgoing)) => Wish::Add { outgoing: *outgoing, incoming: 0 },
        (Wish::Add { incoming, .. }, Some(Part::Incoming)) => Wish::Add { outgoing: 0, incoming: *incoming },
        (Wish::ResetTsns, _) => Wish::ResetTsns,
        _ => return None,
    })
}

impl StreamReset {
    /// When something that was refused is asked for again.
    pub(in crate::association) fn asks_again_at(&self) -> Option<Instant> {
        self.wishes.front().filter(|_| self.request.is_none())?.not_before
    }

    /// The pause is over.
    pub(in crate::association) fn end_pause(&mut self) {
        if let Some(w) = self.wishes.front_mut() {
            w.not_before = None;
        }
    }

    /// Nothing of ours stands before what the peer asks us for: not what it has refused, perhaps because it waits for
    /// this very answer.
    pub(in crate::association) fn may_ask_for_peer(&self) -> bool {
        self.request.is_none() && self.wishes.front().is_none_or(|w| w.refused > 0)
    }

    /// More streams are wished for. A peer that asks for them and refuses what it gets would else add a wish each time,
    /// and more streams in sum than it may have.
    pub(in crate::association) fn adds_wait(&self) -> bool {
        self.wishes.iter().any(|w| matches!(w.wish, Wish::Add { .. }))
    }

    /// Resets that are under way, or will be asked for again.
    pub(in crate::association) fn own_resets(&self) -> impl Iterator<Item = &Wish> {
        let refused = self.wishes.iter().take_while(|w| w.refused > 0).map(|w| &w.wish);
        self.request.iter().map(|r| &r.wish).chain(refused)
    }
}

impl Association {
    /// Keeps a part of a request that was answered by `what` for later. False when that was another answer or the last
    /// pause is over; and when the association is to end, which would have to wait for streams that are held.
    pub(in crate::association) fn asks_later(
        &mut self,
        now: Instant,
        what: u32,
        (wish, part): (&Wish, Option<Part>),
        refused: u16,
        rto: Duration,
    ) -> bool {
        let again = what == result::ALREADY_IN_PROGRESS && self.handshake.state().takes_user_data();
        if !again || refused >= self.config.failure.max_association_retrans {
            return false;
        }
        let Some(wish) = part_of_wish(wish, part) else { return false };
        let wait = self.config.timers.doubled(rto, refused.into());
        // Behind what was refused before it: nothing is asked for out of turn for ever.
        let wishes = &mut self.stream_reset.wishes;
        let at = wishes.iter().take_while(|w| w.refused > 0).count();
        wishes.insert(at, Waiting { wish, refused: refused + 1, not_before: Some(now + wait) });
        true
    }

    /// The peer wants a reset of `streams` while a refused one of ours holds others: ours is given up, as both cannot
    /// wait for each other.
    pub(in crate::association) fn give_up_refused_reset(&mut self) {
        let Some(at) = self.stream_reset.wishes.iter().position(Waiting::holds_streams) else { return };
        self.stream_reset.wishes.remove(at);
        self.sender.resume(false);
        self.events.push_back(Event::ReconfigFailed { result: result::ALREADY_IN_PROGRESS });
    }
}
