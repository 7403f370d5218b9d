//! Petlund et al. 2009 over two paths: each path is thin or thick by its own flight, and only a thin one repairs at the
//! first report.

use super::two_paths::*;
use anabranch_base::{Duration, Instant, PathId, StreamId};
use anabranch_engine::SendOptions;
use anabranch_policy::loss_threshold::{LossThreshold, Verdict};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_policy::view::{AssocView, CopyView, SackView};
use anabranch_sim::{Direction, LinkConfig, LossConfig, Setting};

/// The registered mechanisms, with every second message on the other path.
fn thin(choices: &[(Hook, &str)]) -> Profile {
    let mut p = profile("thin", &[(Hook::PathScheduler, "round_robin:strict=1"), (Hook::AckCredit, "cuc")]);
    for (hook, spec) in choices {
        p.set(*hook, spec).expect("registered");
    }
    p
}

/// Round trips of 50 and 70 ms.
fn links() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(10, 25)), both_ways(link(10, 35))]
}

/// A judgement of the threshold while the engine ran.
#[derive(Clone, Copy, Debug)]
struct Judged {
    at: Instant,
    tsn: u32,
    path: PathId,
    misses: u8,
    flight_before: u32,
    flight_now: u32,
    loss: u32,
    verdict: Verdict,
}

impl Judged {
    /// Petlund et al. 2009: fewer than 4 / (1 - loss) packets.
    fn thin(&self) -> bool {
        u64::from(self.flight_before) * (1_000_000 - u64::from(self.loss.min(500_000))) < 4_000_000
    }
}

struct Watched {
    inner: Box<dyn LossThreshold>,
    judged: Notes<Vec<Judged>>,
}

impl LossThreshold for Watched {
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict {
        let verdict = self.inner.judge(cx, sack, copy);
        let p = cx.path(copy.path).expect("a path");
        self.judged.get().push(Judged {
            at: cx.now,
            tsn: copy.chunk.tsn.0,
            path: copy.path,
            misses: copy.misses,
            flight_before: sack.flight_before[copy.path.index()],
            flight_now: p.packets_in_flight,
            loss: p.loss.0,
            verdict,
        });
        verdict
    }
}

fn watched(profile: &Profile) -> (Bench, Notes<Vec<Judged>>) {
    let judged = Notes::default();
    let mut set = policies(profile, 2);
    set.loss_threshold = Box::new(Watched { inner: set.loss_threshold, judged: judged.clone() });
    (connected_by(11, set, &links()), judged)
}

/// Sparse messages on both paths; the first packet with DATA on path 0 after two seconds is lost. Where its TSN left
/// again, and how long after its first departure.
fn sparse_loss(b: &mut Bench) -> (Departure, Departure, Duration) {
    let mut flow = Flow::new(Side::Client, 0, 100);
    flow.stream(b, ms(20), ms(2_000));
    let from = b.now;
    let mut armed = true;
    b.filter = Some(Box::new(move |l| {
        let hit = armed && l.from == Side::Client && l.path == 0 && !tsns(l.bytes).is_empty();
        armed &= !hit;
        !hit
    }));
    flow.stream(b, ms(20), ms(2_000));
    b.run_for(ms(2_000));
    flow.check(b);
    assert_eq!(flow.got, flow.sent, "nothing is missing");
    let all = departures(b);
    let lost = all.iter().find(|d| d.at >= from && d.path == 0).expect("something left").clone();
    let again = all.iter().find(|d| d.at > lost.at && d.tsns.contains(&lost.tsns[0])).expect("sent again").clone();
    let after = again.at - lost.at;
    (lost, again, after)
}

#[test]
fn the_first_report_repairs_a_thin_path() {
    let (mut b, judged) = watched(&thin(&[]));
    let (lost, again, after) = sparse_loss(&mut b);
    // The next packet of the path left 40 ms later, and its acknowledgement took 50 ms. Path 1 reported before.
    assert!(after >= ms(90) && after < ms(92), "{after:?}");
    let j = judged.get();
    let verdicts: Vec<_> = j.iter().filter(|j| j.tsn == lost.tsns[0]).collect();
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert!(verdicts[0].verdict == Verdict::Lost && verdicts[0].misses == 1 && verdicts[0].at == again.at);
    // What is outstanding on the path rides along, in TSN order.
    assert!(again.tsns.len() > 1 && again.tsns.is_sorted(), "{again:?}");
    let p = b.path(Side::Client, 0).counters;
    assert_eq!((p.lost_by_report, p.timeouts, p.lost_by_timeout), (1, 0, 0));
    assert_eq!(b.path(Side::Client, 1).counters.lost_by_report, 0, "the other path is not judged by it");
}

#[test]
fn three_reports_would_take_longer() {
    let slow_timer = (Hook::Timer, "rfc9260");
    let (mut b, _) = watched(&thin(&[(Hook::LossThreshold, "three"), slow_timer]));
    let (_, _, three) = sparse_loss(&mut b);
    assert!(three >= ms(170), "{three:?}: the third packet after it left 120 ms later");
}

#[test]
fn a_thick_path_waits_for_three_and_a_thin_one_does_not() {
    let (mut b, judged) = watched(&thin(&[]));
    for path in 0..2 {
        let now = b.now;
        let loss = Setting::Loss(LossConfig::bernoulli(0.03));
        b.paths.get_mut(path).expect("a path").apply(now, Direction::Forward, loss);
    }
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    for _ in 0..6 {
        flow.stream(&mut b, ms(25), ms(5_000));
        flow.transfer(&mut b, 500, ms(60_000)).expect("arrives");
    }
    let j = judged.get();
    for path in [PathId(0), PathId(1)] {
        let of = |thin: bool, misses: u8| {
            let list = j.iter().filter(move |j| j.path == path && j.thin() == thin && j.misses == misses);
            list.filter(|j| j.verdict == Verdict::Lost).count()
        };
        assert!(of(true, 1) > 5, "{path:?}: {} at the first report", of(true, 1));
        assert!(of(false, 3) > 5, "{path:?}: {} at the third report", of(false, 3));
        assert_eq!((of(false, 1), of(false, 2)), (0, 0), "{path:?}");
    }
    // The flight is the one from before the acknowledgement: something of it has just left it.
    assert!(j.iter().filter(|j| j.misses == 1).all(|j| j.flight_before > 0));
    assert!(j.iter().any(|j| j.flight_before > j.flight_now && j.thin()));
}

#[test]
fn timeouts_of_a_thin_path_are_early_and_linear() {
    let (mut b, _) = watched(&thin(&[]));
    let mut flow = Flow::new(Side::Client, 0, 100);
    flow.stream(&mut b, ms(20), ms(1_000));
    b.run_for(ms(500));
    // The last message, and its repetitions, four times over.
    let mut left = 4;
    b.filter = Some(Box::new(move |l| {
        let hit = l.from == Side::Client && !tsns(l.bytes).is_empty() && left > 0;
        left -= u32::from(hit);
        !hit
    }));
    let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
    let began = b.now;
    assert!(b.send(Side::Client, options, numbered(1, 0, 100)));
    b.run_for(ms(3_000));
    let times: Vec<_> = departures(&b).iter().filter(|d| d.at >= began).map(|d| d.at - began).collect();
    assert_eq!(times.len(), 5, "{times:?}");
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= ms(200) && gap < ms(210), "{times:?}");
    }
}

/// What left, and how long after the first packet, while a transfer lost some of its packets.
fn thick_transfer(p: &Profile) -> Vec<(Duration, Vec<u32>)> {
    let mut b = connected_by(11, policies(p, 1), &links()[..1]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    let mut seen = 0;
    b.filter = Some(Box::new(move |l| {
        let data = l.from == Side::Client && !tsns(l.bytes).is_empty();
        seen += u32::from(data);
        !(data && [100, 200, 201, 300].contains(&seen))
    }));
    flow.transfer(&mut b, 600, ms(60_000)).expect("arrives");
    let p = b.path(Side::Client, 0).counters;
    assert!(p.lost_by_report >= 4 && p.timeouts == 0, "{p:?}");
    let all = departures(&b);
    let first = all.first().map_or(Instant::ZERO, |d| d.at);
    all.into_iter().map(|d| (d.at.since(first), d.tsns)).collect()
}

#[test]
fn a_thick_stream_is_sent_as_by_the_standard() {
    let standard = thick_transfer(&profile("lksctp", &[]));
    for timer in ["thin:rto_initial=3000", "thin:rto_initial=3000,reset=keep_deadline"] {
        let modified = profile("lksctp", &[(Hook::LossThreshold, "thin"), (Hook::Timer, timer)]);
        assert!(standard == thick_transfer(&modified), "{timer}: other packets, or at other times");
    }
    let bare = profile("thin", &[(Hook::Timer, "rfc9260"), (Hook::LossThreshold, "three")]);
    assert!(thick_transfer(&bare) == thick_transfer(&profile("thin", &[])), "profile thin: other packets or times");
}
