//! When a path was heard of last, and since when it owes an answer.

use anabranch_base::Instant;

/// News of a path: unambiguous ones, for what a copy on another path may have brought proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contact {
    last_heard: Option<Instant>,
    last_shared: Option<Instant>,
    /// The first packet with DATA on an empty path of which nothing has been heard yet, or had not when it left.
    unanswered_since: Option<Instant>,
    /// The first packet with DATA after the newest news.
    sent_since_heard: Option<Instant>,
}

impl Contact {
    /// Something came that this path alone can have brought.
    pub fn hear(&mut self, at: Instant) {
        self.last_heard = self.last_heard.max(Some(at));
    }

    /// A chunk was acknowledged of which this path and another carried copies.
    pub fn hear_shared(&mut self, now: Instant) {
        self.last_shared = Some(now);
    }

    /// DATA is about to leave, while nothing is in flight or something is.
    pub fn send(&mut self, now: Instant, nothing_in_flight: bool) {
        if !self.is_silent_since(self.sent_since_heard) {
            self.sent_since_heard = Some(now);
        }
        if nothing_in_flight && !self.is_silent_since(self.unanswered_since) {
            self.unanswered_since = Some(now);
        }
    }

    pub fn last_heard(&self) -> Option<Instant> {
        self.last_heard
    }

    pub fn last_shared(&self) -> Option<Instant> {
        self.last_shared
    }

    /// Since when packets have left of which nothing was heard. Where copies settle what is in flight, the path need not
    /// have been empty when the first of them left.
    pub fn unanswered(&self) -> Option<Instant> {
        let shared = self.last_shared > self.last_heard;
        let since = if shared { self.sent_since_heard } else { self.unanswered_since };
        since.filter(|_| self.is_silent_since(since))
    }

    /// The newest time at which it began to owe something or was heard of.
    pub fn newest(&self) -> Option<Instant> {
        self.unanswered_since.max(self.last_heard)
    }

    fn is_silent_since(&self, since: Option<Instant>) -> bool {
        since.is_some_and(|since| self.last_heard.is_none_or(|heard| heard < since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Option<Instant> {
        Some(Instant::from_millis(ms))
    }

    fn do_all(steps: &[(char, u64)]) -> Contact {
        let mut c = Contact::default();
        for &(step, ms) in steps {
            let now = Instant::from_millis(ms);
            match step {
                'h' => c.hear(now),
                's' => c.hear_shared(now),
                // On an empty path, or beside what is in flight.
                'e' => c.send(now, true),
                _ => c.send(now, false),
            }
        }
        c
    }

    #[test]
    fn it_owes_an_answer_since_the_first_packet_on_an_empty_path() {
        assert_eq!(do_all(&[]).unanswered(), None);
        assert_eq!(do_all(&[('e', 10), ('+', 20), ('e', 30)]).unanswered(), at(10));
        assert_eq!(do_all(&[('e', 10), ('h', 20)]).unanswered(), None);
        assert_eq!(do_all(&[('e', 10), ('h', 20), ('e', 30)]).unanswered(), at(30));
    }

    /// What another path brings late may be of a time before what was heard already.
    #[test]
    fn older_news_take_nothing_back() {
        assert_eq!(do_all(&[('h', 20), ('h', 10)]).last_heard(), at(20));
        assert_eq!(do_all(&[('e', 10), ('+', 20), ('h', 5)]).unanswered(), at(10), "of a time before it owed anything");
    }

    /// While something is in flight T3 watches over it; news of the first packet is none of the ones behind it, but those
    /// were not the first on an empty path either.
    #[test]
    fn what_leaves_behind_other_packets_begins_no_silence_of_its_own() {
        assert_eq!(do_all(&[('e', 10), ('+', 20), ('h', 30), ('+', 40)]).unanswered(), None);
    }

    /// The path looks alive by what copies elsewhere brought: it is held to the first packet since it was heard itself.
    #[test]
    fn where_copies_settle_what_is_in_flight_any_packet_begins_it() {
        let steps = [('e', 10), ('h', 30), ('+', 40), ('+', 50), ('s', 60)];
        assert_eq!(do_all(&steps).unanswered(), at(40));
        assert_eq!(do_all(&[&steps[..], &[('h', 70)]].concat()).unanswered(), None);
    }

    #[test]
    fn what_was_left_is_dated_by_the_newest_of_debt_and_news() {
        assert_eq!(do_all(&[]).newest(), None);
        assert_eq!(do_all(&[('e', 10), ('h', 20)]).newest(), at(20));
        assert_eq!(do_all(&[('h', 20), ('e', 30)]).newest(), at(30));
    }
}
