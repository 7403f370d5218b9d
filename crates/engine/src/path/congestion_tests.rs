//! Windows without an endpoint.

use super::*;

const PACKET: u64 = 1_000;

/// Remembers the window as its threshold when it idles, and paces where it is asked to.
struct Plain {
    paces: bool,
}

impl Window for Plain {
    fn on_ack(&mut self, _: &AssocView<'_>, _: PathId, _: &AckOnPath) -> WindowChange {
        WindowChange::default()
    }
    fn on_loss(&mut self, _: &AssocView<'_>, _: PathId, _: &LossEvent, _: Cause) -> WindowState {
        WindowState::default()
    }
    fn paces(&self) -> bool {
        self.paces
    }
}

fn window(cwnd: u64) -> Congestion {
    Congestion::new(FirstWindow { cwnd, ssthresh: u64::MAX }, Box::new(Plain { paces: false }))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn proposal(grow: u64, recovering: bool) -> Proposal {
    let change = WindowChange { grow, partial_bytes_acked: 700, ssthresh: 9_000, set: None };
    Proposal { change, recovering }
}

/// Whatever part coupling grants, nothing is lost to rounding: many small grants add up to the share of the whole.
#[test]
fn granted_parts_add_up() {
    for share in [1, 333, 10_007, 333_333, 500_000, 999_999, 1_000_000] {
        let mut c = window(10_000);
        (0..1_000).for_each(|_| c.grow(&proposal(777, false), Ppm(share), PACKET, false));
        assert_eq!(c.cwnd() - 10_000, 777_000 * u64::from(share) / 1_000_000, "{share} ppm");
    }
}

#[test]
fn a_window_in_recovery_learns_its_threshold_only() {
    let mut c = window(10_000);
    let p = proposal(5_000, true);
    assert_eq!(p.grow(), 0);
    c.grow(&p, Ppm(1_000_000), PACKET, false);
    assert_eq!((c.cwnd(), c.ssthresh(), c.partial_bytes_acked()), (10_000, 9_000, 0));
}

#[test]
fn with_nothing_in_flight_no_part_of_a_round_trip_counts() {
    for idle in [false, true] {
        let mut c = window(10_000);
        c.grow(&proposal(0, false), Ppm(1_000_000), PACKET, idle);
        assert_eq!(c.partial_bytes_acked(), if idle { 0 } else { 700 });
    }
}

/// A model of the path sets its window, in recovery or not; a packet always fits.
#[test]
fn a_window_that_is_set_is_a_packet_at_least() {
    for (set, recovering) in [0, 1, 999, 1_000, 50_000].into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let mut c = window(10_000);
        let change = WindowChange { set: Some(set), ssthresh: 5, ..WindowChange::default() };
        c.grow(&Proposal { change, recovering }, Ppm(0), PACKET, false);
        assert_eq!((c.cwnd(), c.ssthresh()), (set.max(PACKET), 5));
    }
    for cwnd in (0..20_000).step_by(500) {
        let to = WindowState { cwnd, ssthresh: cwnd / 2, partial_bytes_acked: 3 };
        let mut c = window(10_000);
        c.cut(&to, PACKET);
        assert_eq!((c.cwnd(), c.ssthresh(), c.partial_bytes_acked()), (cwnd.max(PACKET), cwnd / 2, 3));
        c.narrow(4_404, PACKET);
        assert!((PACKET..=4_404.max(PACKET)).contains(&c.cwnd()));
    }
}

/// A cut takes with it what was granted in part; coupling's adjustment does not.
#[test]
fn a_cut_begins_growth_anew() {
    let grown = |cut: bool| {
        let mut c = window(10_000);
        c.grow(&proposal(1, false), Ppm(999_999), PACKET, false);
        let to = WindowState { cwnd: 5_000, ssthresh: 5_000, partial_bytes_acked: 0 };
        if cut {
            c.cut(&to, PACKET)
        } else {
            c.set(&to, PACKET)
        }
        c.grow(&proposal(1, false), Ppm(1), PACKET, false);
        c.cwnd()
    };
    assert_eq!((grown(true), grown(false)), (5_000, 5_001));
}

/// Half for each timeout without DATA, however often it is looked at, down to four packets; and the threshold is the
/// window before the first halving.
#[test]
fn an_idle_window_halves_once_for_each_timeout() {
    let rto = Duration::from_millis(300);
    for step in [1, 70, 299, 300, 301, 1_000, 5_000] {
        let mut c = window(64_000);
        let (last, mut now) = (1_000, 1_000);
        while now < 6_000 {
            now += step;
            c.decay(at(now), at(last), rto, PACKET);
            let halvings = (now - last) / 300;
            assert_eq!(c.cwnd(), (64_000 >> halvings.min(63)).max(4_000), "after {} ms, every {step}", now - last);
            assert_eq!(c.ssthresh(), if halvings == 0 { u64::MAX } else { 64_000 });
        }
        // DATA leave, and the path idles again from a larger window.
        c.widen(32_000);
        c.decay(at(now + 1_000), at(now + 700), rto, PACKET);
        assert_eq!((c.cwnd(), c.ssthresh()), (16_000, 32_000), "every {step}");
    }
}

/// Beside what is in flight there is room for more, but never beyond the threshold; an idle path has it in any case.
#[test]
fn who_takes_over_stays_below_the_threshold() {
    for (in_flight, threshold) in (0..12_000).step_by(1_000).flat_map(|f| [(f, 3_000), (f, 8_000), (f, u64::MAX)]) {
        let mut c = Congestion::new(FirstWindow { cwnd: 2_000, ssthresh: threshold }, Box::new(Plain { paces: false }));
        c.take_over(in_flight, 10_000);
        let most = if in_flight == 0 { 10_000 } else { (in_flight + 10_000).min(threshold) };
        assert_eq!(c.cwnd(), most.max(2_000), "{in_flight} in flight, threshold {threshold}");
    }
}

#[test]
fn an_episode_ends_with_what_had_left_when_it_began() {
    let mut c = window(10_000);
    assert!(c.progress(|| panic!("not asked"), 0).is_none() && c.is_after_episode(0));
    c.begin_episode(Some(20));
    c.note_sent_end(500);
    for (oldest, cumulative) in (15..25).flat_map(|o| (495..505).map(move |t| (o, t))) {
        let expected = Progress { own: oldest > 20, all: cumulative >= 500 };
        assert_eq!(c.progress(|| Some(oldest), cumulative), Some(expected));
        assert_eq!(c.progress(|| None, cumulative), Some(Progress { own: true, ..expected }));
    }
    for seq in 15..25 {
        assert_eq!(c.is_after_episode(seq), seq > 20);
    }
    for highest in 495..505 {
        assert_eq!(c.place_loss(highest), Loss { in_episode: true, beyond: highest > 500 });
    }
    c.end_episode();
    assert_eq!(c.place_loss(501), Loss { in_episode: false, beyond: true });
}

#[test]
fn a_burst_has_an_end_unless_packets_are_paced_at_a_known_rate() {
    for paces in [false, true] {
        let mut c = Congestion::new(FirstWindow { cwnd: 1, ssthresh: 1 }, Box::new(Plain { paces }));
        c.allow_burst(4);
        for left in (0..4).rev() {
            assert!(c.allows_burst(false));
            assert_eq!(c.spend_burst(), left);
        }
        assert!(!c.allows_burst(false));
        assert_eq!(c.spend_burst(), 0, "it never wraps");
        assert_eq!(c.allows_burst(true), paces);
    }
}

/// Another route: nothing of the window before is left.
#[test]
fn a_restart_is_a_beginning() {
    let mut c = window(10_000);
    c.grow(&proposal(1, false), Ppm(999_999), PACKET, false);
    c.begin_episode(Some(3));
    c.restart(FirstWindow { cwnd: 4_404, ssthresh: 77 }, Box::new(Plain { paces: true }));
    c.grow(
        &Proposal { change: WindowChange { grow: 1, ..WindowChange::default() }, recovering: false },
        Ppm(1),
        1,
        false,
    );
    assert_eq!((c.cwnd(), c.in_recovery(), c.paces()), (4_404, false, true));
}
