//! Whatever the paths look like: schedulers answer with an existing chunk and an eligible path, never stop while
//! nothing is under way that would wake them, and retransmission policies answer with a path they were offered.

use anabranch_base::{Duration, Instant, PathId, PathSet, Rate, Tsn};
use anabranch_policy::loss_cause::{Cause, LossEvent, LossKind};
use anabranch_policy::path_scheduler::{Decision, Occasion, PathScheduler, Settled};
use anabranch_policy::retransmission::{Retransmit, Target};
use anabranch_policy::view::{AssocView, ChunkView, PathState, PathView, Period, QueueView, Signals, TimeoutLog};
use anabranch_policy::window::{AckOnPath, UNLIMITED};
use anabranch_policy::{Hook, Profile};
use proptest::prelude::*;

/// Every scheduler, and every one that can be wrapped.
fn schedulers() -> Vec<(String, Box<dyn PathScheduler>)> {
    let mut specs: Vec<String> = Hook::PathScheduler.policies().iter().map(|p| p.name.to_owned()).collect();
    specs.extend(["round_robin:strict=1", "confluent:variant=1,rounds=0"].map(String::from));
    specs.extend(["confluent:fixed_split=1", "delay_equalisation:weights=equal,most=50"].map(String::from));
    specs.push("delay_compensation:inner=round_robin,strict=1".into());
    specs.extend(["tick,cap=none", "drain,cap=window", "drain"].map(|w| format!("residual_capacity:refresh={w}")));
    specs.push("handling_time:refresh=tick".into());
    specs.extend(["equal", "rate"].map(|w| format!("weighted_round_robin:weights={w}")));
    specs.extend(["queue_cost=5,guard=0", "risk=0,look_ahead=0"].map(|w| format!("earliest_arrival:{w}")));
    for inner in ["confluent", "weighted_round_robin", "round_robin", "min_rtt", "redundant"] {
        specs.push(format!("delay_compensation:inner={inner}"));
        specs.push(format!("delay_compensation:estimate=srtt,inner={inner}"));
    }
    let build = |spec: &String| {
        let mut p = Profile::named("cmt").expect("a profile");
        p.set(Hook::PathScheduler, spec).expect("a registered scheduler");
        p.build(1).expect("it builds").path_scheduler
    };
    specs.iter().map(|s| (s.clone(), build(s))).collect()
}

#[derive(Clone, Debug)]
struct World {
    now: Instant,
    paths: Vec<PathView>,
    chunks: Vec<ChunkView>,
    unsent: u64,
    peer_rwnd: u64,
    period: Period,
}

impl World {
    /// Paths with room in their window, as the engine would offer them.
    fn offered(&self) -> PathSet {
        let aside = self.cx(PathSet::EMPTY, &[]).aside;
        let open = |p: &&PathView| p.state.usable() && !aside.has(p.id) && p.in_flight < p.cwnd;
        self.paths.iter().filter(open).map(|p| p.id).collect()
    }
    fn in_flight(&self) -> u64 {
        self.paths.iter().map(|p| p.in_flight).sum()
    }
    fn cx<'a>(&'a self, eligible: PathSet, timeouts: &'a [TimeoutLog]) -> AssocView<'a> {
        // As the engine has it: paths in use that are sidelined, as long as another one in use is not.
        let usable = || self.paths.iter().filter(|p| p.state.usable());
        let all = usable().all(|p| p.signals.sidelined);
        let aside = usable().filter(|p| p.signals.sidelined && !all).map(|p| p.id).collect();
        AssocView {
            eligible,
            aside,
            peer_rwnd: self.peer_rwnd,
            unsent: self.unsent,
            period: self.period,
            timeouts,
            ..AssocView::of(self.now, &self.paths)
        }
    }
    fn carry_out(&mut self, index: usize, path: PathId) -> Settled {
        let c = self.chunks.remove(index);
        self.unsent = self.unsent.saturating_sub(c.len);
        self.paths[path.index()].in_flight += c.len;
        Settled::Sent { tsn: c.tsn, path, len: c.len }
    }
}

/// Values that matter: nothing, small, plausible, absurd.
fn scale(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..=most / 1_000 + 1, 0..=most, Just(most), Just(u64::MAX / 4)]
}

/// What estimators and couplings may have written.
fn signals() -> impl Strategy<Value = Signals> {
    let spare = proptest::option::of(prop_oneof![Just(0), -5_000_000..5_000_000i64, Just(i64::MAX / 4)]);
    let penalised = proptest::option::of(90_000..=100_000u64);
    (spare, scale(5_000_000), scale(5_000_000), 0..50u64, proptest::bool::weighted(0.2), 0..4u32, penalised).prop_map(
        |(spare_rate, rate, previous, frame_errors, sidelined, penalties, penalised)| Signals {
            spare_rate,
            handling_rate: Rate::from_bytes_per_sec(rate),
            previous_rate: Rate::from_bytes_per_sec(previous),
            frame_errors,
            sidelined,
            penalties,
            penalty_events: penalties,
            penalised_at: penalised.map(Instant::from_millis),
            ..Signals::default()
        },
    )
}

fn path() -> impl Strategy<Value = PathView> {
    let state = prop_oneof![
        4 => Just(PathState::Active),
        1 => Just(PathState::Suspected),
        1 => Just(PathState::PotentiallyFailed),
        1 => Just(PathState::Inactive),
        1 => Just(PathState::Unconfirmed),
    ];
    let times = (scale(2_000_000_000), scale(500_000_000), scale(2_000_000_000));
    let window = prop_oneof![6 => 1..2_000_000u64, 1 => Just(UNLIMITED)];
    (state, window, scale(3_000_000), times, scale(50_000_000), 0..3u16, signals()).prop_map(
        |(state, cwnd, in_flight, (srtt, rttvar, min_rtt), rate, timeouts, signals)| PathView {
            signals,
            state,
            cwnd,
            in_flight: in_flight.min(4_000_000),
            srtt: Duration::from_nanos(srtt),
            rttvar: Duration::from_nanos(rttvar),
            min_rtt: Duration::from_nanos(min_rtt.min(srtt)),
            delivery_rate: Rate::from_bytes_per_sec(rate),
            consecutive_timeouts: timeouts,
            ..PathView::idle(PathId(0))
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let chunk = (1..1_172u64, proptest::option::of(0..2_000u64));
    let paths = proptest::collection::vec(path(), 1..6);
    let more = (any::<u32>(), scale(10_000_000), scale(1_000_000), any::<bool>(), prop_oneof![Just(0), 10..2_000u64]);
    (paths, proptest::collection::vec(chunk, 1..40), more).prop_map(
        |(mut paths, chunks, (tsn, unsent, rwnd, idle, period))| {
            let now = Instant::from_millis(100_000);
            for (i, p) in paths.iter_mut().enumerate() {
                p.id = PathId(i as u8);
                p.in_flight = if idle { 0 } else { p.in_flight };
            }
            let chunks: Vec<ChunkView> = chunks
                .into_iter()
                .enumerate()
                .map(|(i, (len, due))| ChunkView {
                    len,
                    deadline: due.map(|d| now + Duration::from_millis(d)),
                    ..ChunkView::waiting(Tsn(tsn).plus(i as u32))
                })
                .collect();
            let ahead: u64 = chunks.iter().map(|c| c.len).sum();
            let length = Duration::from_millis(period);
            let period = Period { serial: period.min(1), start: now, length };
            World { now, paths, chunks, unsent: unsent.saturating_add(ahead), peer_rwnd: rwnd, period }
        },
    )
}

fn valid(d: &Decision, eligible: PathSet, chunks: usize) -> bool {
    match *d {
        Decision::Send { index, path } => index < chunks && eligible.has(path),
        Decision::Copies { index, paths } => index < chunks && !paths.is_empty() && paths.and(eligible) == paths,
        Decision::WaitUntil(_) | Decision::Blocked => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn answers_stay_inside_the_question(w in world(), narrow in any::<[bool; 6]>()) {
        for (name, mut scheduler) in schedulers() {
            // Any subset, also of paths an engine would never offer.
            let eligible: PathSet = w.paths.iter().map(|p| p.id).filter(|p| narrow[p.index()]).collect();
            let cx = w.cx(eligible, &[]);
            let q = QueueView::of(&w.chunks);
            scheduler.observe(&cx, &q, Occasion::Refilled);
            scheduler.observe(&cx, &q, Occasion::Opportunity);
            let d = scheduler.next(&cx, &q);
            prop_assert!(valid(&d, eligible, w.chunks.len()), "{name}: {d:?}");
            prop_assert_eq!(d, scheduler.next(&cx, &q), "{}: asking changes nothing", name);
            prop_assert!(matches!(scheduler.next(&cx.narrowed(PathSet::EMPTY), &q), Decision::Blocked | Decision::WaitUntil(_)));
            let empty = scheduler.next(&cx, &QueueView::of(&[]));
            prop_assert!(!name.starts_with("delay") && !name.starts_with("earliest") || empty == Decision::Blocked);
            let _ = scheduler.look_ahead(&cx);
        }
    }

    #[test]
    fn an_opportunity_ends_and_nothing_sleeps_for_ever(start in world(), withheld in any::<[bool; 6]>()) {
        for (name, mut scheduler) in schedulers() {
            // The engine may withhold a path with room (pacing, packet size). Only a scheduler that is bound to one
            // path may then stop; the engine owes it a wake-up.
            let bound = name.starts_with("primary_only");
            let mut w = start.clone();
            let before = w.chunks.len();
            for step in 0..=before {
                let held_back = |p: PathId| !bound && withheld[p.index()];
                let eligible: PathSet = w.offered().iter().filter(|&p| !held_back(p)).collect();
                if w.chunks.is_empty() || eligible.is_empty() {
                    break;
                }
                let q = w.chunks.clone();
                let cx = w.cx(eligible, &[]);
                if step == 0 {
                    scheduler.observe(&cx, &QueueView::of(&q), Occasion::Refilled);
                    scheduler.observe(&cx, &QueueView::of(&q), Occasion::Opportunity);
                }
                let d = scheduler.next(&cx, &QueueView::of(&q));
                prop_assert!(valid(&d, eligible, q.len()), "{name}: {d:?}");
                let settled = match d {
                    Decision::Send { index, path } => w.carry_out(index, path),
                    Decision::Copies { index, paths } => {
                        w.carry_out(index, paths.iter().next().expect("not empty"))
                    }
                    Decision::WaitUntil(t) => Settled::Waiting(t),
                    Decision::Blocked => Settled::Blocked,
                };
                scheduler.settle(&w.cx(eligible, &[]), &settled);
                if matches!(settled, Settled::Blocked) && w.in_flight() > 0 {
                    break;
                }
                if matches!(settled, Settled::Blocked) {
                    // A clock wakes one that spends budgets, and then it may not sleep on.
                    prop_assert!(!w.period.length.is_zero(), "{name} sleeps with {} chunks and nothing in flight", q.len());
                    w.now += w.period.length;
                    w.period = Period { serial: w.period.serial + 1, start: w.now, ..w.period };
                    let cx = w.cx(eligible, &[]);
                    scheduler.observe(&cx, &QueueView::of(&q), Occasion::Period);
                    scheduler.observe(&cx, &QueueView::of(&q), Occasion::Opportunity);
                    let again = scheduler.next(&cx, &QueueView::of(&q));
                    prop_assert!(again != Decision::Blocked, "{name} sleeps with {} chunks although a period began", q.len());
                    break;
                }
            }
        }
    }

    #[test]
    fn a_window_without_congestion_control_has_no_limit_and_others_do(
        w in world(), bytes in scale(1_000_000), timeout: bool, new_episode: bool, cause in 0..4usize,
    ) {
        let me = PathId(0);
        let kind = if timeout { LossKind::Timeout } else { LossKind::FastRetransmit };
        let cause = [Cause::Congestion, Cause::Radio, Cause::Reordering, Cause::PathFailure][cause];
        for info in Hook::Window.policies() {
            let mut profile = Profile::named("cmt").expect("a profile");
            profile.set(Hook::Window, info.name).expect("registered");
            let mut window = (profile.build(1).expect("it builds").window)();
            let cx = w.cx(PathSet::first(1), &[]);
            let ack = AckOnPath { bytes, acked: bytes, packets: 1, fully_used: true, ..AckOnPath::default() };
            let grown = window.on_ack(&cx, me, &ack);
            let cut = window.on_loss(&cx, me, &LossEvent { path: me, kind, bytes, packets: None, new_episode }, cause);
            prop_assert_eq!(profile.controls_congestion(), window.controls_congestion());
            if window.controls_congestion() {
                prop_assert!(cut.cwnd <= w.paths[0].cwnd.max(64 * w.paths[0].mtu), "{}: {cut:?}", info.name);
            } else {
                prop_assert_eq!((grown.set, cut.cwnd), (Some(UNLIMITED), UNLIMITED));
            }
        }
    }

    #[test]
    fn retransmissions_go_where_they_were_offered(w in world(), offer in any::<[bool; 6]>(), may_exceed_cwnd_once: bool) {
        let active: PathSet = w.paths.iter().filter(|p| p.state.usable()).map(|p| p.id).collect();
        let candidates: PathSet = active.iter().filter(|p| offer[p.index()]).collect();
        let timeouts = vec![TimeoutLog::default(); w.paths.len()];
        for info in Hook::Retransmission.policies() {
            let mut profile = Profile::named("cmt").expect("a profile");
            profile.set(Hook::Retransmission, info.name).expect("registered");
            let mut policy = profile.build(9).expect("it builds").retransmission;
            let mut chunk = w.chunks[0];
            chunk.last_path = Some(PathId(0));
            let target = policy.target(&w.cx(active, &timeouts), &Retransmit { chunk: &chunk, candidates, may_exceed_cwnd_once, passes: PathSet::EMPTY });
            match target {
                Target::On(p) if active.is_empty() => prop_assert!(p.index() < w.paths.len()),
                Target::On(p) => prop_assert!(candidates.has(p), "{}: {p:?} was not offered", info.name),
                Target::Wait => prop_assert!(
                    candidates.is_empty() || w.in_flight() > 0, "{} waits for nothing", info.name
                ),
            }
        }
    }
}
