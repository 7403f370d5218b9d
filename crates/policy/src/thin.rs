//! The thin test: too few packets in flight for a fast retransmit. And what needless repetitions teach.
//!
//! Petlund et al. 2009 §5.1 and fig. 3; used by the loss threshold and the timer of that name, and by what is overdue.

use crate::view::PathView;
use anabranch_base::{Duration, Instant, PathId, Ppm};

/// Compares packets in flight with `(3 + 1) / (1 - loss)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinTest {
    /// `<=` instead of `<`.
    pub or_equal: bool,
}

/// Missing reports a standard fast retransmit needs.
const REPORTS: u64 = 3;

impl ThinTest {
    /// From the parameter `cmp`, `lt` or `le`.
    pub fn of(word: &str) -> Self {
        ThinTest { or_equal: word == "le" }
    }
    /// Is a path with `packets` in flight and this loss rate thin?
    pub fn holds(self, packets: u32, loss: Ppm) -> bool {
        let delivered = 1_000_000 - u64::from(loss.0.min(500_000));
        let (left, right) = (u64::from(packets) * delivered, (REPORTS + 1) * 1_000_000);
        left < right || self.or_equal && left == right
    }
}

/// What shows that a repetition was needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needless {
    /// What it repeated had been acknowledged before the peer reported it as duplicate: the answer was late.
    AnsweredLate,
    /// The first acknowledgement reports it as duplicate: the answer was lost, or the peer waited with it.
    Unanswered,
}

/// What is added to a timeout of each path, by what its needless repetitions taught. One answer that comes late adds a
/// little, as jitter may be the cause. Two in a row mean that the path has become slow, as no chunk that was sent once was
/// answered between them, and the time is doubled at once. An answer that never came may have been lost, about which no
/// patience helps: only where that happens to a quarter of all packets the peer is taken for one that delays its answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    by_path: Vec<Learnt>,
}

#[derive(Clone, Copy, Debug)]
struct Learnt {
    path: PathId,
    /// As it was when so many packets had left; halved since then as [`Patience::FORGETS_IN`] has it.
    longer: Duration,
    since: u64,
    /// Newest round-trip sample when something was repeated, and when a repetition was found needless.
    repeated: Option<Instant>,
    needless: Option<Option<Instant>>,
    /// Packets that had left when a repetition was needless, and the smoothed number from one such to the next.
    sent: u64,
    apart: u64,
}

impl Learnt {
    fn longer(&self, path: &PathView) -> Duration {
        self.longer / (1 << (path.packets_sent.saturating_sub(self.since) / Patience::FORGETS_IN).min(16))
    }
    fn set(&mut self, path: &PathView, longer: Duration) {
        (self.longer, self.since) = (longer.min(Patience::MOST), path.packets_sent);
    }
}

impl Patience {
    /// The first step of doubling, and the most: no peer may delay a SACK longer (RFC 9260 §6.2).
    const STEP: Duration = Duration::from_millis(50);
    const MOST: Duration = Duration::from_millis(500);
    /// Patience is halved whenever so many packets have left and it was not lengthened: another timer may be the quicker
    /// one meanwhile, so that no repetition of this one could show that it is too long.
    const FORGETS_IN: u64 = 1_024;
    /// Packets from one needless repetition to the next are counted up to so many, and smoothed in such fractions.
    const FAR: u64 = 16;
    const UNIT: u64 = 64;
    /// When they are too close, which is assumed at first. A repetition is a packet too.
    const TOO_CLOSE: u64 = 9 * Self::UNIT / 2;

    pub fn of(&self, path: &PathView) -> Duration {
        let learnt = self.by_path.iter().find(|l| l.path == path.id);
        learnt.map_or(Duration::ZERO, |l| l.longer(path))
    }
    /// The peer had what was repeated.
    pub fn learn(&mut self, path: &PathView, needless: Needless) {
        let learnt = self.of_mut(path.id);
        let apart = path.packets_sent.saturating_sub(learnt.sent).min(Self::FAR);
        learnt.apart = (learnt.apart * 3 + apart * Self::UNIT) / 4;
        learnt.sent = path.packets_sent;
        let late = needless == Needless::AnsweredLate && learnt.repeated == path.sampled_at;
        let in_a_row = learnt.needless.replace(path.sampled_at) == Some(path.sampled_at);
        if learnt.apart <= Self::TOO_CLOSE || late && in_a_row {
            learnt.set(path, (learnt.longer(path) * 2).max(Self::STEP));
        } else if late {
            learnt.set(path, learnt.longer(path) * 3 / 2 + path.srtt / 8);
        } else {
            // The answer was lost: whichever timer it was that repeated, it was not too quick.
            learnt.longer = learnt.longer - learnt.longer / 8;
        }
    }
    /// Something is repeated. Patience is forgotten slowly, by repetitions that nothing shows to be needless.
    pub fn repeat(&mut self, path: &PathView) {
        let learnt = self.of_mut(path.id);
        learnt.repeated = path.sampled_at;
        learnt.longer = learnt.longer - learnt.longer / 16;
    }
    fn of_mut(&mut self, path: PathId) -> &mut Learnt {
        let at = self.by_path.iter().position(|l| l.path == path).unwrap_or(self.by_path.len());
        if at == self.by_path.len() {
            self.by_path.push(Learnt {
                path,
                longer: Duration::ZERO,
                since: 0,
                repeated: None,
                needless: None,
                sent: 0,
                apart: Self::TOO_CLOSE,
            });
        }
        &mut self.by_path[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    /// Largest number of packets that is still thin.
    fn most(t: ThinTest, loss: u32) -> u32 {
        (0..100).take_while(|&k| t.holds(k, Ppm(loss))).last().unwrap()
    }

    #[test]
    fn limits_rise_with_the_loss_rate() {
        // Limits 4.0, 4.21, 4.44 and 8.0 at 0, 5, 10 and 50 % loss|.
        let lt = ThinTest { or_equal: false };
        assert_eq!([0, 50_000, 100_000, 500_000].map(|l| most(lt, l)), [3, 4, 4, 7]);
        assert!(!lt.holds(4, Ppm(0)) && ThinTest { or_equal: true }.holds(4, Ppm(0)));
        assert_eq!(most(lt, 900_000), 7, "the loss rate counts as one half at most");
    }

    /// Patience after these reports, so many packets from one to the next, and with a new round-trip sample before each
    /// of which that is said.
    fn learnt(packets: u64, reports: &[(Needless, bool)]) -> Duration {
        let (mut s, mut patience) = (Scene::new(1, 0), Patience::default());
        s.rtt(0, 96);
        for (needless, sampled) in reports {
            s.paths[0].packets_sent += packets;
            if *sampled {
                s.now += ms(10);
                s.paths[0].sampled_at = Some(s.now);
            }
            patience.repeat(&s.paths[0]);
            patience.learn(&s.paths[0], *needless);
        }
        patience.of(&s.paths[0])
    }

    #[test]
    fn one_late_answer_adds_a_little_and_a_row_doubles() {
        use Needless::AnsweredLate as Late;
        assert_eq!(learnt(20, &[(Late, true)]), ms(12));
        assert!(learnt(20, &[(Late, true), (Late, true)]) < ms(31), "answers between them");
        assert_eq!(learnt(20, &[(Late, true), (Late, false)]), ms(50));
        assert!(learnt(20, &[(Late, false); 8]) > ms(400));
        assert!(learnt(20, &[(Late, false); 40]) <= Patience::MOST);
    }

    #[test]
    fn lost_answers_teach_nothing_and_delayed_ones_do() {
        use Needless::Unanswered as Lost;
        for packets in [10, 20, 50] {
            assert_eq!(learnt(packets, &[(Lost, true); 100]), Duration::ZERO, "one in {packets}");
        }
        for packets in 1..=4 {
            assert_eq!(learnt(packets, &[(Lost, true)]), ms(50), "one in {packets}");
            assert!(learnt(packets, &[(Lost, true); 12]) > ms(300), "one in {packets}");
        }
    }

    #[test]
    fn what_was_learnt_is_forgotten_though_nothing_is_repeated() {
        let (mut s, mut patience) = (Scene::new(1, 0), Patience::default());
        s.rtt(0, 96);
        for _ in 0..4 {
            s.paths[0].packets_sent += 2;
            patience.learn(&s.paths[0], Needless::Unanswered);
        }
        let mut before = patience.of(&s.paths[0]);
        assert_eq!(before, ms(400));
        for _ in 0..4 {
            s.paths[0].packets_sent += 1_024;
            assert_eq!(patience.of(&s.paths[0]), before / 2);
            before = before / 2;
        }
        // Another timer repeats what was acknowledged and its answer lost.
        for _ in 0..20 {
            s.paths[0].packets_sent += 20;
            patience.learn(&s.paths[0], Needless::Unanswered);
        }
        assert!(patience.of(&s.paths[0]) < before / 8);
    }

    #[test]
    fn a_round_trip_measured_meanwhile_excuses_a_late_answer() {
        let (mut s, mut patience) = (Scene::new(1, 0), Patience::default());
        s.rtt(0, 96);
        s.paths[0].packets_sent = 20;
        patience.repeat(&s.paths[0]);
        s.paths[0].sampled_at = Some(s.now);
        patience.learn(&s.paths[0], Needless::AnsweredLate);
        assert_eq!(patience.of(&s.paths[0]), Duration::ZERO);
    }
}
