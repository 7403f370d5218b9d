//! The largest packet a path carries, found by packets of that size (RFC 8899; probes as RFC 4820 §4 has them).
//!
//! A machine of states without I/O: it says which size to probe when, and learns what became of it. ICMP is not asked
//! (RFC 6951 §5.5). Probes are HEARTBEATs filled up by a PAD chunk, so their loss says nothing about congestion and
//! nothing about the health of the path.
//!
//! The search begins with the largest size: most paths carry it, and then one round trip is all it takes. Otherwise it
//! halves the range until [`GAIN`] bytes are not worth a further probe. A CONFIRMATION timer is not needed, for data is
//! acknowledged (RFC 8899 §5.2): its loss tells of a black hole.

use super::suspicion::Suspicion;
use anabranch_base::{Duration, Instant};
use core::cmp::Ordering;

/// How a path's largest packet is looked for (RFC 8899 §5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtuDiscovery {
    /// Largest SCTP packet to try, common header included, bytes: MAX_PLPMTU less the headers of IP and UDP. Where it is
    /// not above the association's packet size, which is BASE_PLPMTU, nothing larger is searched for; a path that carries
    /// only less is noticed all the same.
    pub max: usize,
    /// MAX_PROBES: probes of one size that stay unanswered before it is given up, and packets of a size with data that
    /// are lost in a row, over a round trip at least and while smaller ones arrive, before the path is taken for a black
    /// hole.
    pub max_probes: u8,
    /// PMTU_RAISE_TIMER: time after a search before a larger size is tried again.
    pub raise_after: Duration,
}

impl PathMtuDiscovery {
    /// Up to `max` bytes, with the values of RFC 8899.
    pub const fn up_to(max: usize) -> Self {
        PathMtuDiscovery { max, max_probes: 3, raise_after: Duration::from_secs(600) }
    }
}

/// Least gain worth a probe, bytes.
const GAIN: usize = 16;
/// PROBE_TIMER is never shorter (RFC 8899 §5.1.1).
const MIN_PROBE_TIMER: Duration = Duration::from_secs(1);
/// Longest time between probes while not even the base size goes through.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// What discovery on a path is doing (RFC 8899 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveryState {
    /// The path is not in use.
    Disabled,
    /// Does it carry the base size?
    Base,
    /// Looking for more.
    Searching,
    /// The size was found.
    Complete,
    /// Not even the base size goes through.
    Error,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u64,
    size: usize,
}

#[derive(Debug)]
pub(crate) struct Discovery {
    config: PathMtuDiscovery,
    base: usize,
    floor: usize,
    state: DiscoveryState,
    /// Largest size that may be used.
    size: usize,
    /// Smallest size that was given up; above `config.max` where none was.
    refused: usize,
    probe: Option<Probe>,
    /// Probes of this size without an answer.
    count: u8,
    /// Packets with data that vanish.
    suspicion: Suspicion,
    timer: Option<Instant>,
    retry: Duration,
}

impl Discovery {
    pub fn new(config: PathMtuDiscovery, base: usize, floor: usize) -> Self {
        let base = base & !3;
        let config = PathMtuDiscovery { max: (config.max.min(65_535) & !3).max(base), ..config };
        Discovery {
            config,
            base,
            floor,
            state: DiscoveryState::Disabled,
            size: base,
            refused: config.max + 4,
            probe: None,
            count: 0,
            suspicion: Suspicion::default(),
            timer: None,
            retry: MIN_PROBE_TIMER,
        }
    }
    pub fn state(&self) -> DiscoveryState {
        self.state
    }
    /// Largest packet for now, bytes.
    pub fn size(&self) -> usize {
        self.size
    }
    pub fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// The path is in use, or in use again.
    pub fn connected(&mut self, now: Instant) {
        if self.state != DiscoveryState::Disabled {
            return;
        }
        // What it was found to carry before it was doubted holds, unless packets of that size were lost.
        let (state, wait) = match self.size.cmp(&self.base) {
            Ordering::Greater if self.is_done() => (DiscoveryState::Complete, self.config.raise_after),
            Ordering::Greater => (DiscoveryState::Searching, Duration::ZERO),
            // Nothing to gain: data tell of a path that carries less.
            Ordering::Equal if self.config.max == self.base => (DiscoveryState::Complete, Duration::ZERO),
            Ordering::Equal => (DiscoveryState::Base, Duration::ZERO),
            Ordering::Less => (DiscoveryState::Error, Duration::ZERO),
        };
        self.state = state;
        self.count = 0;
        self.timer = (state != DiscoveryState::Complete || self.size < self.config.max).then(|| now + wait);
    }

    /// The path is in doubt; `lost_large`: with it, packets above the base size.
    pub fn disconnected(&mut self, lost_large: bool) {
        self.state = DiscoveryState::Disabled;
        (self.probe, self.timer) = (None, None);
        if lost_large || self.suspicion.is_any() {
            self.begin_again();
        }
    }

    /// The path answers again after it did not. That probes were lost meanwhile says nothing about sizes.
    pub fn answers_again(&mut self, now: Instant) {
        if self.state == DiscoveryState::Error {
            self.retry = MIN_PROBE_TIMER;
            (self.probe, self.timer) = (None, Some(now));
        }
    }

    fn begin_again(&mut self) {
        self.size = self.size.min(self.base);
        self.refused = self.config.max + 4;
        self.count = 0;
    }

    /// The timer fired. The size to probe now, if any.
    pub fn due(&mut self, now: Instant) -> Option<usize> {
        self.timer = None;
        if let Some(lost) = self.probe.take() {
            self.count += 1;
            if self.count >= self.config.max_probes {
                self.give_up(lost.size);
            }
        } else if self.state == DiscoveryState::Complete {
            // Time has passed: perhaps the path carries more by now.
            self.refused = self.config.max + 4;
            self.state = DiscoveryState::Searching;
            self.count = 0;
        }
        self.next_probe(now)
    }

    /// Probes of this size stay unanswered.
    fn give_up(&mut self, size: usize) {
        self.count = 0;
        match self.state {
            DiscoveryState::Base => {
                self.state = DiscoveryState::Error;
                self.size = self.floor;
                self.retry = MIN_PROBE_TIMER;
            }
            DiscoveryState::Searching => self.refused = self.refused.min(size),
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.refused.saturating_sub(self.size) <= GAIN.min(4 + self.config.max - self.base)
    }

    /// What to probe now; nothing where the search is over.
    fn next_probe(&mut self, now: Instant) -> Option<usize> {
        match self.state {
            DiscoveryState::Disabled | DiscoveryState::Complete => None,
            DiscoveryState::Base | DiscoveryState::Error => Some(self.base),
            DiscoveryState::Searching if self.refused > self.config.max && self.size < self.config.max => {
                Some(self.config.max)
            }
            DiscoveryState::Searching if self.size >= self.config.max || self.is_done() => {
                self.state = DiscoveryState::Complete;
                self.timer = (self.size < self.config.max).then(|| now + self.config.raise_after);
                None
            }
            DiscoveryState::Searching => Some(((self.size + self.refused) / 2) & !3),
        }
    }

    /// The probe that was asked for has left; an answer may take `timeout`.
    pub fn sent(&mut self, now: Instant, nonce: u64, size: usize, timeout: Duration) {
        self.probe = Some(Probe { nonce, size });
        let mut wait = timeout.max(MIN_PROBE_TIMER);
        if self.state == DiscoveryState::Error {
            wait = wait.max(self.retry);
            self.retry = (self.retry * 2).min(MAX_RETRY);
        }
        self.timer = Some(now + wait);
    }

    /// A HEARTBEAT ACK with this nonce; true when it answers the probe. Then the next one is due.
    pub fn answered(&mut self, now: Instant, nonce: u64) -> bool {
        let Some(p) = self.probe.take_if(|p| p.nonce == nonce) else { return false };
        self.count = 0;
        self.suspicion.clear();
        self.timer = Some(now);
        self.size = match self.state {
            DiscoveryState::Base | DiscoveryState::Error => self.base,
            _ => self.size.max(p.size),
        };
        self.state = DiscoveryState::Searching;
        true
    }

    /// A packet with data of `size` bytes met its fate. Those that fit any path tell nothing when they are lost.
    pub fn data_fate(&mut self, sent_at: Instant, size: usize, lost: bool) {
        match lost {
            true if size > self.floor => self.suspicion.lost(sent_at, size),
            true => {}
            false => self.suspicion.arrived(sent_at, size),
        }
    }

    /// What was lost was lost at the peer.
    pub fn forget_lost(&mut self) {
        self.suspicion.clear();
    }

    /// A small packet of control that left at `sent_at` arrived.
    pub fn small_arrived(&mut self, sent_at: Instant) {
        self.suspicion.arrived(sent_at, 0);
    }

    /// Is a small packet wanted, to see whether that arrives where larger ones do not?
    pub fn wants_small(&mut self, round_trip: Duration) -> bool {
        self.suspicion.asks(self.config.max_probes, round_trip)
    }

    /// Do packets of a size in use vanish? Then a smaller size holds from now on: the base size, or what fits any path
    /// where that vanishes too.
    pub fn black_hole(&mut self, now: Instant, round_trip: Duration) -> bool {
        let Some(vanishing) = self.suspicion.vanishing(self.config.max_probes, round_trip) else { return false };
        self.suspicion.clear();
        if vanishing > self.size {
            return false;
        }
        let refused = self.size;
        self.begin_again();
        let state = if vanishing > self.base {
            self.refused = refused;
            DiscoveryState::Base
        } else {
            self.size = self.floor.min(self.base);
            self.retry = MIN_PROBE_TIMER;
            DiscoveryState::Error
        };
        if self.state != DiscoveryState::Disabled {
            self.state = state;
            (self.probe, self.timer) = (None, Some(now));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    /// Runs the machine against a path that carries `carries` bytes; sizes probed, and when it came to rest.
    fn run(d: &mut Discovery, mut now: Instant, carries: usize) -> (Vec<usize>, Instant) {
        let (mut sizes, mut nonce) = (vec![], 0);
        while let Some(t) = d.deadline().filter(|t| t.since(now) < Duration::from_secs(100)) {
            now = now.max(t);
            let Some(size) = d.due(now) else { continue };
            assert!(size % 4 == 0 && size <= d.config.max, "{size}");
            nonce += 1;
            sizes.push(size);
            d.sent(now, nonce, size, Duration::from_millis(300));
            if size <= carries {
                now += Duration::from_millis(40);
                assert!(!d.answered(now, nonce + 1), "another one's");
                assert!(d.answered(now, nonce));
            }
            if d.state() == DiscoveryState::Error && sizes.len() > 20 {
                break;
            }
        }
        (sizes, now)
    }
    fn new(max: usize) -> Discovery {
        let mut d = Discovery::new(PathMtuDiscovery::up_to(max), 1_200, 512);
        assert_eq!((d.size(), d.state(), d.deadline()), (1_200, DiscoveryState::Disabled, None));
        d.connected(at(0));
        d
    }

    #[test]
    fn a_path_that_carries_all_takes_two_probes() {
        let mut d = new(1_472);
        let (sizes, now) = run(&mut d, at(0), 1_472);
        assert_eq!((sizes, now), (vec![1_200, 1_472], at(80)));
        assert_eq!((d.size(), d.state(), d.deadline()), (1_472, DiscoveryState::Complete, None));
    }

    #[test]
    fn the_range_is_halved_and_a_larger_size_is_tried_later() {
        for carries in (1_200..1_473).step_by(4) {
            let mut d = new(1_472);
            let (sizes, now) = run(&mut d, at(0), carries);
            assert_eq!(d.state(), DiscoveryState::Complete);
            assert!(d.size() <= carries && carries - d.size() <= GAIN, "{} of {carries}", d.size());
            assert!(sizes.len() <= 16, "{sizes:?}");
            if d.size() == 1_472 {
                continue;
            }
            assert!(d.deadline().is_some_and(|t| t.since(now) == Duration::from_secs(600)));
            let raised = d.deadline().unwrap();
            let size = d.due(raised).unwrap();
            d.sent(raised, 99, size, Duration::ZERO);
            assert!(size == 1_472 && d.answered(raised, 99) && d.size() == 1_472, "the path carries more now");
        }
    }

    #[test]
    fn below_the_base_size_it_is_conservative_and_goes_on_asking() {
        let mut d = new(1_472);
        let (sizes, now) = run(&mut d, at(0), 1_000);
        assert!(sizes.iter().all(|s| *s == 1_200));
        assert_eq!((d.size(), d.state()), (512, DiscoveryState::Error));
        assert!(now.since(at(0)) > Duration::from_secs(300), "less and less often: {}", now.since(at(0)));
        run(&mut d, now, 1_472);
        assert_eq!((d.size(), d.state()), (1_472, DiscoveryState::Complete));
    }

    #[test]
    fn a_black_hole_is_left_and_its_size_not_tried_again_soon() {
        let mut d = new(1_472);
        let (_, now) = run(&mut d, at(0), 1_472);
        let rtt = Duration::from_millis(40);
        let lose = |d: &mut Discovery, from: u64| (0..3).for_each(|i| d.data_fate(at(from + 20 * i), 1_472, true));
        lose(&mut d, 1_000);
        d.small_arrived(at(1_020));
        d.data_fate(at(1_050), 1_472, false);
        assert!(!d.black_hole(now, rtt) && d.size() == 1_472, "it was loss like any other");
        lose(&mut d, 2_000);
        assert!(!d.black_hole(now, rtt) && d.wants_small(rtt), "the path may be dead");
        d.small_arrived(at(2_050));
        assert!(d.black_hole(now, rtt));
        assert_eq!((d.size(), d.state()), (1_200, DiscoveryState::Base));
        let (sizes, _) = run(&mut d, now, 1_300);
        assert!(!sizes.contains(&1_472) && d.size() <= 1_300 && d.size() > 1_280, "{sizes:?}");
        assert!(d.deadline().is_some());
    }

    #[test]
    fn where_the_base_size_vanishes_what_fits_any_path_holds_at_once() {
        for disconnected in [false, true] {
            let mut d = new(1_472);
            let (_, now) = run(&mut d, at(0), 1_472);
            (0..3).for_each(|i| d.data_fate(at(1_000 + 20 * i), 1_180, true));
            if disconnected {
                d.disconnected(false);
            }
            d.small_arrived(at(1_050));
            assert!(d.black_hole(now, Duration::from_millis(40)));
            d.connected(now);
            assert_eq!((d.size(), d.state()), (512, DiscoveryState::Error));
            run(&mut d, now, 1_472);
            assert_eq!((d.size(), d.state()), (1_472, DiscoveryState::Complete), "it is asked again");
        }
    }

    #[test]
    fn a_path_in_doubt_keeps_what_it_carried_unless_that_was_lost() {
        for lost in [false, true] {
            let mut d = new(1_472);
            let (_, now) = run(&mut d, at(0), 1_472);
            d.disconnected(lost);
            assert_eq!((d.state(), d.deadline()), (DiscoveryState::Disabled, None));
            assert_eq!(d.size(), if lost { 1_200 } else { 1_472 });
            d.connected(now);
            let (sizes, _) = run(&mut d, now, 1_472);
            assert_eq!(sizes.len(), if lost { 2 } else { 0 });
            assert_eq!((d.size(), d.state()), (1_472, DiscoveryState::Complete));
        }
    }

    #[test]
    fn with_nothing_to_gain_nothing_is_probed() {
        let mut d = Discovery::new(PathMtuDiscovery::up_to(1_200), 1_200, 512);
        d.connected(at(0));
        assert_eq!((d.deadline(), d.size()), (None, 1_200));
    }
}
