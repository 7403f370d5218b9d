//! Whether a path answers: errors, news, and what is owed.

use super::PathLimits;
use super::answers::AnswerGaps;
use super::contact::Contact;
use anabranch_base::{Duration, Instant};
use anabranch_policy::view::PathState;

/// What the path answered, and what it did not.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// In a row (RFC 9260 §8.2).
    errors: u16,
    /// Path.Max.Retrans and PF.Max.Retrans of its own.
    limits: PathLimits,
    contact: Contact,
    answers: AnswerGaps,
    /// Newest arrival of any packet.
    last_received: Option<Instant>,
    /// Its last HEARTBEAT was not answered; what arrives by it shows that only the way back is dead.
    answers_lost: bool,
    /// When repetitions last made us ask whether it is.
    doubted_at: Option<Instant>,
    /// Left with data outstanding: since when it delivers nothing. None again when all that has left elsewhere.
    stalled_since: Option<Instant>,
    /// When the last SACK left that answered data by this path.
    sack_sent: Option<Instant>,
}

impl Health {
    // ---- news

    /// Unambiguous news: the path delivers and brings back answers.
    pub fn answer(&mut self, now: Instant) {
        self.confirm(now);
        self.answers_lost = false;
        self.stalled_since = None;
    }

    /// The path leads to the peer and back.
    pub fn confirm(&mut self, now: Instant) {
        self.contact.hear(now);
        self.errors = 0;
    }

    /// A chunk was acknowledged of which this path and another carried copies.
    pub fn hear_shared(&mut self, now: Instant) {
        self.contact.hear_shared(now);
    }

    /// Unambiguous news are about to be noted; the oldest packet in flight left at `owed_since`.
    pub fn measure_gap(&mut self, now: Instant, owed_since: Instant) {
        self.answers.sample(now, self.contact.last_heard(), owed_since);
    }

    /// A packet came by this path.
    #[inline]
    pub fn receive(&mut self, now: Instant) {
        self.last_received = Some(now);
    }

    /// DATA is about to leave, while nothing is in flight or something is.
    #[inline]
    pub fn send(&mut self, now: Instant, nothing_in_flight: bool) {
        self.contact.send(now, nothing_in_flight);
    }

    /// A SACK left that answers data by this path.
    pub fn send_sack(&mut self, now: Instant) {
        self.sack_sent = Some(now);
    }

    /// When the last one did.
    pub fn last_sack(&self) -> Option<Instant> {
        self.sack_sent
    }

    /// When the last packet came.
    pub fn last_received(&self) -> Option<Instant> {
        self.last_received
    }

    /// When something came last that this path alone can have brought.
    pub fn last_heard(&self) -> Option<Instant> {
        self.contact.last_heard()
    }

    /// When it was heard of last, or began to owe an answer.
    pub fn quiet_since(&self) -> Option<Instant> {
        self.contact.newest()
    }

    /// Since when packets have left of which nothing was heard.
    #[inline]
    pub fn unanswered_since(&self) -> Option<Instant> {
        self.contact.unanswered()
    }

    // ---- errors

    /// Errors in a row.
    pub fn errors(&self) -> u16 {
        self.errors
    }

    /// One more error; answers how many there are now.
    pub fn fail(&mut self) -> u16 {
        self.errors = self.errors.saturating_add(1);
        self.errors
    }

    /// The path is another one behind the same addresses.
    pub fn forget_errors(&mut self) {
        self.errors = 0;
    }

    /// Limits of its own.
    pub fn limits(&self) -> PathLimits {
        self.limits
    }

    /// Limits of its own from now on.
    pub fn limit(&mut self, limits: PathLimits) {
        self.limits = limits;
    }

    /// The state that so many errors make of `state`, where the association's policy says `to`.
    pub fn judge(&self, state: PathState, to: PathState) -> PathState {
        self.limits.judged(self.errors, state, to)
    }

    // ---- doubt

    /// A HEARTBEAT was not answered: acknowledgements had better leave by another path.
    pub fn lose_answer(&mut self) {
        self.answers_lost = true;
    }

    /// Was its last HEARTBEAT not answered?
    pub fn loses_answers(&self) -> bool {
        self.answers_lost
    }

    /// Repetitions make us doubt that the peer hears us here. Is it time to ask? Less and less often with each error.
    pub fn doubt(&mut self, now: Instant, patience: Duration) -> bool {
        let patience = patience * (1 << self.errors.min(16));
        let asks = self.doubted_at.is_none_or(|t| now.since(t) >= patience);
        if asks {
            self.doubted_at = Some(now);
        }
        asks
    }

    /// The path is left with data outstanding: it delivers nothing since it was heard of last, or began to owe an answer.
    pub fn stall(&mut self, now: Instant) {
        self.stalled_since = Some(self.contact.newest().unwrap_or(now));
    }

    /// Since when it delivers nothing of what others have not taken over yet.
    #[inline]
    pub fn stalled_since(&self) -> Option<Instant> {
        self.stalled_since
    }

    /// All that was outstanding has left elsewhere.
    pub fn end_stall(&mut self) {
        self.stalled_since = None;
    }

    // ---- what views show

    pub(super) fn contact(&self) -> &Contact {
        &self.contact
    }

    pub(super) fn answers(&self) -> &AnswerGaps {
        &self.answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn failed(times: u16) -> Health {
        let mut h = Health::default();
        (0..times).for_each(|_| _ = h.fail());
        h
    }

    #[test]
    fn news_end_the_row_of_errors_and_every_doubt() {
        for times in 0..20 {
            let mut h = failed(times);
            h.lose_answer();
            h.stall(at(5));
            h.answer(at(10));
            assert_eq!((h.errors(), h.loses_answers(), h.stalled_since()), (0, false, None), "{times}");
            assert_eq!(h.last_heard(), Some(at(10)));
        }
        // What two paths may have brought is no such news.
        let mut h = failed(3);
        h.lose_answer();
        h.hear_shared(at(10));
        assert_eq!((h.errors(), h.loses_answers(), h.last_heard()), (3, true, None));
    }

    #[test]
    fn errors_never_wrap() {
        let mut h = Health::default();
        let all: Vec<u16> = (0..70_000).map(|_| h.fail()).collect();
        assert!(all.is_sorted() && h.errors() == u16::MAX);
    }

    /// Asked again after the patience for no error, twice that for one, four times that for two.
    #[test]
    fn a_path_in_doubt_is_asked_less_often_with_each_error() {
        for errors in 0..6 {
            let mut h = failed(errors);
            let wait = 100 << errors;
            assert!(h.doubt(at(1_000), Duration::from_millis(100)));
            for ms in (0..2 * wait).step_by(10) {
                let again = h.doubt(at(1_000 + ms), Duration::from_millis(100));
                assert_eq!(again, ms == wait, "{errors} errors, after {ms} ms");
            }
        }
    }

    /// A stall began with the newest of debt and news, or with the moment it is noticed where there is neither.
    #[test]
    fn a_stall_is_dated_by_what_the_path_last_showed() {
        let mut h = Health::default();
        h.stall(at(70));
        assert_eq!(h.stalled_since(), Some(at(70)));
        h.answer(at(100));
        h.send(at(120), true);
        h.stall(at(500));
        assert_eq!((h.stalled_since(), h.unanswered_since()), (Some(at(120)), Some(at(120))));
        h.end_stall();
        assert_eq!(h.stalled_since(), None);
    }

    /// Limits of its own decide between the states of RFC 7829, whatever the policy proposes.
    #[test]
    fn own_limits_overrule_the_policy() {
        use PathState::{Active, Inactive, PotentiallyFailed};
        for (errors, most) in (0..8).flat_map(|e| (0..8).map(move |m| (e, m))) {
            let mut h = failed(errors);
            assert_eq!(h.judge(Active, PotentiallyFailed), PotentiallyFailed, "no limits");
            h.limit(PathLimits { max_retrans: None, potentially_failed: Some(most) });
            let expected = if errors > most { PotentiallyFailed } else { Active };
            assert_eq!(h.judge(Active, PotentiallyFailed), expected, "{errors} errors, {most} allowed");
            assert_eq!(h.judge(Active, Active), expected, "{errors} errors, {most} allowed");
            assert_eq!(h.judge(Active, Inactive), Inactive, "Path.Max.Retrans is the association's");
        }
    }
}
