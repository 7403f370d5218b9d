//! HEARTBEATs of a path (RFC 9260 §8.3): what was asked, what is answered.

use super::heartbeats::{Earlier, PendingHeartbeat};
use super::train::{LENGTH, Train, TrainAnswer};
use super::{HeartbeatSetting, Path};
use anabranch_base::{Duration, Instant};

/// Two HEARTBEATs back to back; the smaller round trip is the reference RTT (Xu et al. 2014 §2.3).
#[derive(Clone, Copy, Debug)]
struct HeartbeatPair {
    nonces: [u64; 2],
    sent_at: Instant,
    first: Option<Duration>,
}

impl HeartbeatPair {
    fn answers(&self) -> u8 {
        u8::from(self.first.is_some())
    }
}

/// HEARTBEATs that are not answered, and how often they leave.
#[derive(Debug, Default)]
pub(crate) struct Probing {
    pending: Option<PendingHeartbeat>,
    setting: HeartbeatSetting,
    /// Rarely needed.
    earlier: Option<Box<Earlier>>,
    /// Rarely asked for.
    pair: Option<Box<HeartbeatPair>>,
    /// Rarely asked for.
    train: Option<Box<Train>>,
}

/// The answer to a HEARTBEAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatAnswer {
    /// When what it answers had left.
    pub sent_at: Instant,
    /// A HEARTBEAT had been given up: answers take longer than was thought possible.
    pub late: bool,
    /// Until when the answer to a newer one is awaited.
    pub awaits: Option<Instant>,
}

/// The answer to one of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairAnswer {
    rtt: Duration,
    /// The smaller round trip of both, as far as they were answered.
    least: Duration,
    both: bool,
}

impl Probing {
    // ---- how often

    /// How often the user wants the path probed.
    pub fn setting(&self) -> HeartbeatSetting {
        self.setting
    }

    /// How often it is from now on.
    pub fn set(&mut self, setting: HeartbeatSetting) {
        self.setting = setting;
    }

    /// HB.interval of the path, where the association's is `configured`, zero for none; none when it is not probed.
    pub fn interval(&self, configured: Duration) -> Option<Duration> {
        match self.setting {
            HeartbeatSetting::Configured => Some(configured).filter(|i| !i.is_zero()),
            HeartbeatSetting::Every(d) => Some(d),
            HeartbeatSetting::Off => None,
        }
    }

    // ---- asking

    /// A HEARTBEAT leaves. Another one that is not answered yet was followed too soon; its answer still counts.
    pub fn ask(&mut self, h: PendingHeartbeat) {
        if let Some(unanswered) = self.pending.replace(h) {
            self.earlier.get_or_insert_default().remember(&unanswered, false);
        }
    }

    /// A HEARTBEAT leaves beside a chunk that is repeated until it is answered: the answer to the newest one counts.
    pub fn ask_beside(&mut self, h: PendingHeartbeat) {
        self.pending = Some(h);
    }

    /// Is an answer awaited?
    pub fn awaits_answer(&self) -> bool {
        self.pending.is_some()
    }

    /// When the HEARTBEAT left whose answer is awaited.
    #[inline]
    pub fn asked_at(&self) -> Option<Instant> {
        self.pending.map(|h| h.sent_at)
    }

    /// The HEARTBEAT whose answer was due by now is given up.
    pub fn give_up(&mut self, now: Instant) -> Option<PendingHeartbeat> {
        let lost = self.pending.take_if(|h| h.deadline <= now)?;
        self.earlier.get_or_insert_default().remember(&lost, true);
        Some(lost)
    }

    /// How many were given up that left after `t`.
    pub fn given_up_since(&self, t: Option<Instant>) -> usize {
        self.earlier.as_ref().map_or(0, |e| e.given_up_since(t))
    }

    /// What left last says nothing any more, whether or not it is answered.
    pub fn withdraw(&mut self) {
        self.pending = None;
    }

    /// Nothing that was asked counts any more: the path is none.
    pub fn withdraw_all(&mut self) {
        (self.pending, self.earlier, self.pair, self.train) = (None, None, None, None);
    }

    /// Two leave back to back. Answers how many of those before were answered where that was not known yet.
    pub fn ask_pair(&mut self, now: Instant, nonces: [u64; 2]) -> Option<u8> {
        let former = self.pair.replace(Box::new(HeartbeatPair { nonces, sent_at: now, first: None }));
        former.map(|pair| pair.answers())
    }

    /// Are two waited for that left back to back?
    pub fn awaits_pair(&self) -> bool {
        self.pair.is_some()
    }

    /// Two that left as long ago as `timeout` are waited for no longer. Answers how many of them were answered.
    pub fn give_up_pair(&mut self, now: Instant, timeout: Duration) -> Option<u8> {
        self.pair.take_if(|pair| now.since(pair.sent_at) >= timeout).map(|pair| pair.answers())
    }

    /// A train leaves.
    pub fn ask_train(&mut self, now: Instant, nonces: [u64; LENGTH]) {
        self.train = Some(Box::new(Train::new(now, nonces)));
    }

    /// The path is another one: what an answer to its train would show is of the one before.
    pub fn forget_train(&mut self) {
        self.train = None;
    }

    /// The peer asks on this path as well.
    #[inline]
    pub fn note_heartbeat(&mut self) {
        if let Some(train) = &mut self.train {
            train.note_heartbeat();
        }
    }

    /// Is a train under way?
    pub fn awaits_train(&self) -> bool {
        self.train.as_ref().is_some_and(|t| !t.is_over())
    }

    // ---- answers

    /// The answer to the newest HEARTBEAT, or to an earlier one that it can still have been; none otherwise.
    fn answer(&mut self, nonce: u64) -> Option<HeartbeatAnswer> {
        let asked = self.pending.filter(|h| h.nonce == nonce).map(|h| h.sent_at);
        let sent_at = asked.or_else(|| self.earlier.as_ref()?.sent_at(nonce))?;
        let newer = self.pending.take().filter(|h| h.nonce != nonce);
        // Later than was thought possible: the path is not what it was.
        if self.earlier.take_if(|e| e.given_up_since(None) > 0).is_some() {
            return Some(HeartbeatAnswer { sent_at, late: true, awaits: None });
        }
        self.pending = newer;
        self.earlier = self.earlier.take().filter(|_| newer.is_some());
        if let Some(e) = &mut self.earlier {
            e.forget_to(sent_at);
        }
        Some(HeartbeatAnswer { sent_at, late: false, awaits: newer.map(|h| h.deadline) })
    }

    fn answer_pair(&mut self, now: Instant, nonce: u64) -> Option<PairAnswer> {
        let pair = self.pair.as_deref_mut().filter(|pair| pair.nonces.contains(&nonce))?;
        let rtt = now.since(pair.sent_at);
        let Some(first) = pair.first else {
            pair.first = Some(rtt);
            return Some(PairAnswer { rtt, least: rtt, both: false });
        };
        self.pair = None;
        Some(PairAnswer { rtt, least: first.min(rtt), both: true })
    }
}

impl Path {
    /// A HEARTBEAT ACK came; none when it answers nothing that was asked.
    pub fn heartbeat_answered(&mut self, now: Instant, nonce: u64) -> Option<HeartbeatAnswer> {
        let answer = self.probing.answer(nonce)?;
        self.counters.heartbeats_answered += 1;
        let rtt = now.since(answer.sent_at);
        // One that was given up may have been lost: the path is what it was where the answer took as long as others.
        if answer.late && !self.rtt.agrees_with(rtt) {
            self.rtt.restart(now, rtt);
            self.sample_own_ways(now, rtt);
        } else {
            self.sample_own_round_trip(now, rtt);
        }
        Some(answer)
    }

    /// Was that the answer to one of a pair, and are both answered? Each counts as a round trip.
    pub fn pair_answered(&mut self, now: Instant, nonce: u64) -> Option<bool> {
        let answer = self.probing.answer_pair(now, nonce)?;
        self.congestion.refer_to(answer.least);
        self.sample_own_round_trip(now, answer.rtt);
        self.counters.heartbeats_answered += 1;
        Some(answer.both)
    }

    /// Was that the answer to one of a train, whose packets had `payload` bytes? Its first one counts as a round trip.
    pub fn train_answered(&mut self, now: Instant, nonce: u64, payload: u64) -> Option<TrainAnswer> {
        let answer = self.probing.train.as_mut()?.answer(now, nonce, payload)?;
        self.counters.heartbeats_answered += 1;
        if let TrainAnswer::First(sent_at) = answer {
            self.sample_own_round_trip(now, now.since(sent_at));
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn asked(nonce: u64, sent: u64, deadline: u64) -> PendingHeartbeat {
        PendingHeartbeat { nonce, sent_at: at(sent), deadline: at(deadline) }
    }

    #[test]
    fn each_heartbeat_is_answered_once() {
        let mut p = Probing::default();
        for i in 0..100 {
            p.ask(asked(i, i * 100, i * 100 + 50));
            assert_eq!(p.answer(i + 1), None, "never asked");
            assert_eq!(p.answer(i), Some(HeartbeatAnswer { sent_at: at(i * 100), late: false, awaits: None }));
            assert_eq!(p.answer(i), None, "answered before");
            assert!(!p.awaits_answer());
        }
    }

    /// Asked again too soon, any of them may be answered: the newest is awaited on, what left before is forgotten.
    #[test]
    fn the_answer_to_an_earlier_one_counts_and_the_newest_is_awaited_still() {
        for answered in 0..9 {
            let mut p = Probing::default();
            (0..10).for_each(|i| p.ask(asked(i, i * 10, i * 10 + 500)));
            let expected = HeartbeatAnswer { sent_at: at(answered * 10), late: false, awaits: Some(at(590)) };
            assert_eq!(p.answer(answered), Some(expected));
            assert!((0..=answered).all(|i| p.answer(i).is_none()), "{answered}: what left before says nothing more");
            assert!(p.asked_at() == Some(at(90)) && p.answer(9).is_some());
        }
    }

    #[test]
    fn an_answer_after_its_deadline_is_late_and_ends_all_that_was_asked() {
        for lost in 1..5 {
            let mut p = Probing::default();
            for i in 0..lost {
                p.ask(asked(i, i * 100, i * 100 + 100));
                assert!(p.give_up(at(i * 100 + 99)).is_none(), "it may be answered still");
                assert!(p.give_up(at(i * 100 + 100)).is_some());
            }
            assert_eq!(p.given_up_since(None), lost as usize);
            assert_eq!(p.given_up_since(Some(at(0))), lost as usize - 1, "the first left then");
            p.ask(asked(99, 1_000, 2_000));
            assert_eq!(p.answer(0), Some(HeartbeatAnswer { sent_at: at(0), late: true, awaits: None }));
            assert!(!p.awaits_answer() && p.given_up_since(None) == 0 && p.answer(99).is_none());
        }
    }

    #[test]
    fn beside_a_chunk_that_is_repeated_only_the_newest_counts() {
        let mut p = Probing::default();
        (0..5).for_each(|i| p.ask_beside(asked(i, i * 10, 500)));
        assert!((0..4).all(|i| p.answer(i).is_none()) && p.answer(4).is_some());
    }

    #[test]
    fn the_quicker_of_a_pair_is_its_round_trip() {
        for (first, second) in [(40, 60), (60, 61), (5, 5)] {
            let mut p = Probing::default();
            p.ask_pair(at(0), [7, 8]);
            let ms = Duration::from_millis;
            let answer = |rtt, both| Some(PairAnswer { rtt: ms(rtt), least: ms(first), both });
            assert_eq!(p.answer_pair(at(first), 8), answer(first, false));
            assert_eq!(p.answer_pair(at(second), 7), answer(second, true));
            assert_eq!(p.answer_pair(at(second), 7), None, "both are answered");
            assert_eq!((p.give_up_pair(at(9_999), ms(0)), p.awaits_pair()), (None, false));
        }
    }

    #[test]
    fn a_pair_without_both_answers_is_given_up() {
        let ms = Duration::from_millis;
        let mut p = Probing::default();
        assert_eq!(p.ask_pair(at(0), [7, 8]), None);
        assert_eq!(p.give_up_pair(at(99), ms(100)), None, "they may be answered still");
        assert_eq!(p.give_up_pair(at(100), ms(100)), Some(0));
        assert_eq!(p.answer_pair(at(101), 7), None, "too late");
        p.ask_pair(at(200), [9, 10]);
        assert!(p.answer_pair(at(240), 10).is_some());
        assert_eq!(p.ask_pair(at(250), [11, 12]), Some(1), "the next pair ends it");
        assert_eq!(p.give_up_pair(at(350), ms(100)), Some(0));
    }

    #[test]
    fn a_path_is_probed_as_configured_unless_the_user_says_otherwise() {
        let (mut p, s) = (Probing::default(), Duration::from_secs);
        assert_eq!([p.interval(s(30)), p.interval(Duration::ZERO)], [Some(s(30)), None]);
        p.set(HeartbeatSetting::Every(s(2)));
        assert_eq!([p.interval(s(30)), p.interval(Duration::ZERO)], [Some(s(2)), Some(s(2))]);
        p.set(HeartbeatSetting::Off);
        assert_eq!([p.interval(s(30)), p.interval(Duration::ZERO)], [None, None]);
    }
}
