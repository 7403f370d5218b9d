//! A link against closed forms.

use super::*;
use crate::loss::LossConfig;
use crate::queue::Limit;
use anabranch_base::{Duration, Rate};
use proptest::prelude::*;

const MBIT: u64 = 1_000_000;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn at(n: u64) -> Instant {
    Instant::from_millis(n)
}
fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_sec(n * MBIT))
}
fn change(at_ms: u64, set: Setting) -> Change {
    Change { at: ms(at_ms), set }
}

/// Everything that comes out, by following `next_event` alone.
fn drain<P: Clone + Send + 'static>(link: &mut Link<P>) -> Vec<Delivery<P>> {
    let mut out = Vec::new();
    while let Some(next) = link.next_event() {
        while let Some(d) = link.poll_delivery(next) {
            assert_eq!(d.at, next, "the link named the very time of each delivery");
            out.push(d);
        }
    }
    out
}

/// `n` packets of `size` bytes, one each `gap`, then everything that comes out.
fn run(config: LinkConfig, seed: u64, n: u64, gap: Duration, size: u32) -> (Vec<Delivery<u64>>, LinkCounters) {
    let mut link = Link::new("link", seed, config);
    let mut out = Vec::new();
    for i in 0..n {
        let now = Instant::ZERO + gap * i;
        out.extend(std::iter::from_fn(|| link.poll_delivery(now)));
        link.enqueue(now, size, i);
    }
    while let Some(next) = link.next_event() {
        out.extend(std::iter::from_fn(|| link.poll_delivery(next)));
    }
    (out, link.counters())
}

#[test]
fn delay_and_serialisation_are_exact() {
    let mut link = Link::new("l", 1, LinkConfig { overhead: 28, ..LinkConfig::fixed(mbit(8), ms(30)) });
    // 972 + 28 bytes at 8 Mbit/s take 1 ms each; the second waits for the first.
    assert_eq!(link.enqueue(at(5), 972, 'a'), Verdict::Queued);
    link.enqueue(at(5), 972, 'b');
    assert_eq!(link.backlog(), Tally { packets: 2, bytes: 2_000 });
    let mut out = drain(&mut link);
    link.enqueue(at(50), 472, 'c');
    out.extend(drain(&mut link));
    let got: Vec<_> = out.iter().map(|d| (d.at.as_nanos() / 1_000, d.payload)).collect();
    assert_eq!(got, [(36_000, 'a'), (37_000, 'b'), (80_500, 'c')]);
    assert_eq!(link.next_event(), None);
}

#[test]
fn nothing_comes_early() {
    let mut link = Link::new("l", 1, LinkConfig::fixed(None, ms(30)));
    link.enqueue(at(1), 100, ());
    assert_eq!(link.next_event(), Some(at(31)));
    assert!(link.poll_deliver(at(31) - Duration::from_nanos(1)).is_none());
    assert!(link.poll_deliver(at(31)).is_some());
}

#[test]
fn limit_counts_waiting_and_in_transmission() {
    let config = LinkConfig::fixed(mbit(8), ms(1)).with_limit(Limit::packets(3));
    let mut link = Link::new("l", 1, config);
    let verdicts: Vec<_> = (0..5).map(|i| link.enqueue(at(0), 1_000, i)).collect();
    let full = Verdict::Dropped(DropReason::Queue);
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Queued, Verdict::Queued, full, full]);
    // What leaves at this very instant is still in the way, whether or not the link was polled.
    assert_eq!(link.enqueue(at(1), 1_000, 5), full);
    link.advance(at(1));
    assert_eq!(link.enqueue(at(1), 1_000, 5), full);
    // Then there is room for one.
    let after = at(1) + Duration::from_nanos(1);
    assert_eq!(link.enqueue(after, 1_000, 5), Verdict::Queued);
    assert_eq!(link.enqueue(after, 1_000, 6), full);
    assert_eq!(link.counters().dropped_queue, Tally { packets: 5, bytes: 5_000 });
}

#[test]
fn jitter_keeps_order_by_default() {
    let config = LinkConfig { jitter: Jitter::Uniform(ms(20)), ..LinkConfig::fixed(None, ms(30)) };
    let ordered = |out: &[Delivery<u64>]| out.windows(2).all(|w| w[0].payload < w[1].payload);
    let (out, _) = run(config.clone(), 3, 2_000, ms(5), 100);
    assert!(ordered(&out));
    assert!(out.iter().all(|d| d.at.since(d.entered) >= ms(10) && d.at.since(d.entered) <= ms(50)));
    let (out, _) = run(LinkConfig { jitter_reorders: true, ..config }, 3, 2_000, ms(5), 100);
    assert!(!ordered(&out) && out.len() == 2_000);
    let mean = out.iter().map(|d| d.at.since(d.entered).as_millis_f64()).sum::<f64>() / 2_000.0;
    // Uniform over 40 ms: 11.55 ms standard deviation, 0.26 ms of the mean.
    assert!((mean - 30.0).abs() < 1.1, "{mean}");
}

#[test]
fn loss_on_the_wire_uses_the_rate_and_loss_at_entry_does_not() {
    let config = LinkConfig::fixed(mbit(8), ms(0)).with_loss(LossConfig::Packets(vec![0]));
    let second = |config| run(config, 1, 2, Duration::ZERO, 1_000).0[0].at;
    assert_eq!(second(config.clone()), at(2));
    assert_eq!(second(LinkConfig { loss_point: LossPoint::Entry, ..config }), at(1));
}

/// A stall of three seconds that ends: what waited comes when it is over, and what follows does not wait for it.
#[test]
fn a_delay_that_falls_is_over_for_what_is_on_the_way() {
    let changes = |kept: bool| {
        let change = |at, delay| Change { at: ms(at), set: Setting::Delay(ms(delay)) };
        let schedule = Schedule::once(vec![change(100, 3_000), change(500, 20)]);
        let config = LinkConfig { jitter_reorders: !kept, ..LinkConfig::fixed(None, ms(20)) };
        let mut link = Link::new("l", 1, config.with_schedule(schedule));
        let (mut came, mut now) = (vec![], Instant::ZERO);
        for n in 0..400 {
            if n < 60 {
                link.enqueue(now, 100, n);
            }
            while let Some(d) = link.poll_delivery(now) {
                came.push((d.payload, d.at));
            }
            now += ms(10);
        }
        came
    };
    let kept = changes(true);
    let at = |n: usize| kept[n].1.since(Instant::ZERO);
    assert!(kept.iter().map(|(n, _)| *n).eq(0..60), "in order");
    assert_eq!((at(9), at(10), at(49), at(55)), (ms(110), ms(520), ms(520), ms(570)));
    let overtaken = changes(false);
    assert_eq!((overtaken[10].0, overtaken[59].1), (50, Instant::from_millis(3_490)), "as netem has it");
}

#[test]
fn duplicates_and_overtakers() {
    let config = LinkConfig { duplicate: 0.1, ..LinkConfig::fixed(None, ms(7)) };
    let (out, c) = run(config, 2, 10_000, ms(1), 100);
    assert!(c.duplicated.packets.abs_diff(1_000) < 120, "{:?}", c.duplicated);
    assert_eq!(out.len() as u64, 10_000 + c.duplicated.packets);
    assert_eq!(out.iter().filter(|d| d.duplicate).count() as u64, c.duplicated.packets);

    let config = LinkConfig { reorder: 0.25, ..LinkConfig::fixed(None, ms(7)) };
    let (out, _) = run(config, 2, 10_000, ms(1), 100);
    let at_once = out.iter().filter(|d| d.at == d.entered).count();
    assert!(at_once.abs_diff(2_500) < 175, "{at_once}");
    assert!(out.iter().all(|d| d.at == d.entered || d.at == d.entered + ms(7)));
}

#[test]
fn too_large_for_the_link() {
    let mut link = Link::new("l", 1, LinkConfig { mtu: Some(1_400), overhead: 28, ..LinkConfig::ideal() });
    assert_eq!(link.enqueue(at(0), 1_400, ()), Verdict::Queued);
    assert_eq!(link.enqueue(at(0), 1_401, ()), Verdict::Dropped(DropReason::Mtu));
}

#[test]
fn scheduled_changes_apply_at_their_time() {
    let config = LinkConfig::fixed(None, ms(30)).with_schedule(Schedule::once(vec![
        change(10, Setting::Delay(ms(280))),
        change(20, Setting::Down),
        change(25, Setting::Up),
        change(30, Setting::Delay(ms(5))),
    ]));
    let (out, c) = run(config, 1, 40, ms(1), 100);
    // A change at t holds for what is sent at t, and a shorter delay for what is on the way as well.
    for d in &out {
        let want = match d.entered.as_nanos() / 1_000_000 {
            n @ 0..=4 => n + 30,
            5..=19 | 25..=29 => 35,
            n @ 30..=39 => n + 5,
            n => panic!("sent at {n} ms while down"),
        };
        assert_eq!(d.at, at(want), "{d:?}");
    }
    assert_eq!((out.len(), c.dropped_down.packets), (35, 5));
}

#[test]
fn a_schedule_repeats() {
    let schedule = Schedule::every(ms(100), vec![change(40, Setting::Down), change(60, Setting::Up)]);
    let (_, c) = run(LinkConfig::fixed(None, ms(3)).with_schedule(schedule), 1, 1_000, ms(1), 100);
    assert_eq!(c.dropped_down.packets, 10 * 20);
}

#[test]
fn rate_changes_reach_the_packet_in_transmission() {
    let schedule = Schedule::once(vec![change(5, Setting::Rate(mbit(8))), change(7, Setting::Rate(None))]);
    let mut link = Link::new("l", 1, LinkConfig::fixed(mbit(1), ms(1)).with_schedule(schedule));
    // 1250 bytes: 10 ms at 1 Mbit/s. Half is sent by 5 ms, the rest takes 0.625 ms at 8 Mbit/s.
    link.enqueue(at(0), 1_250, 'a');
    link.enqueue(at(0), 10_000, 'b');
    let got: Vec<_> = drain(&mut link).iter().map(|d| (d.at.as_nanos() / 1_000, d.payload)).collect();
    assert_eq!(got, [(6_625, 'a'), (8_000, 'b')]);
}

#[test]
fn going_down_drops_what_has_not_left() {
    let mut link = Link::new("l", 1, LinkConfig::fixed(mbit(8), ms(30)));
    (0..4).for_each(|i| {
        link.enqueue(at(0), 1_000, i);
    });
    link.apply(at(2), Setting::Down);
    assert_eq!(link.enqueue(at(2), 1_000, 9), Verdict::Dropped(DropReason::Down));
    assert_eq!(link.counters().dropped_down, Tally { packets: 3, bytes: 3_000 });
    assert_eq!(drain(&mut link).iter().map(|d| d.payload).collect::<Vec<_>>(), [0, 1]);
    link.apply(at(50), Setting::Up);
    link.enqueue(at(50), 1_000, 10);
    assert_eq!(drain(&mut link)[0].at, at(81));
}

#[test]
fn a_stalled_link_waits_for_the_change_that_frees_it() {
    let schedule = Schedule::once(vec![change(0, Setting::Rate(Some(Rate::ZERO))), change(9, Setting::Rate(mbit(8)))]);
    let mut link = Link::new("l", 1, LinkConfig::fixed(mbit(8), ms(1)).with_schedule(schedule));
    link.enqueue(at(3), 1_000, ());
    assert_eq!(drain(&mut link)[0].at, at(11));
    link.apply(at(20), Setting::Rate(Some(Rate::ZERO)));
    link.enqueue(at(20), 1_000, ());
    assert_eq!(link.next_event(), None);
}

#[test]
fn same_seed_same_run() {
    let config = LinkConfig {
        jitter: Jitter::Normal(ms(5)),
        jitter_reorders: true,
        duplicate: 0.05,
        reorder: 0.05,
        ..LinkConfig::fixed(mbit(6), ms(30)).with_loss(LossConfig::bursts(0.1, 3.0)).with_limit(Limit::packets(40))
    };
    let go = |seed| run(config.clone(), seed, 5_000, ms(1), 1_000);
    assert_eq!(go(1), go(1));
    assert_ne!(go(1).0, go(2).0);
    // Switching one feature off leaves the others' numbers alone.
    let (with, _) = go(1);
    let (without, _) = run(LinkConfig { duplicate: 0.0, ..config.clone() }, 1, 5_000, ms(1), 1_000);
    let ids = |out: &[Delivery<u64>]| {
        let mut ids: Vec<u64> = out.iter().filter(|d| !d.duplicate).map(|d| d.payload).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&with), ids(&without));
}

/// 1,000 bytes take 1 ms each time; the fates of transmissions are those of the pattern.
fn repeating(repeats: u32, pattern: [bool; 6]) -> LinkConfig {
    LinkConfig::fixed(mbit(8), ms(30)).with_loss(LossConfig::Pattern(pattern.to_vec())).with_repeats(repeats)
}

#[test]
fn what_is_lost_takes_the_rate_again_while_others_wait() {
    // Lost, lost, through; through; lost, through.
    let mut link = Link::new("l", 1, repeating(2, [true, true, false, false, true, false]));
    for i in 0..3 {
        link.enqueue(at(0), 1_000, i);
    }
    let frames = |sent, erroneous, repeated| Frames { sent, erroneous, repeated };
    let seen = [(0, frames(0, 0, 0)), (2, frames(0, 0, 2)), (3, frames(1, 1, 2)), (4, frames(2, 1, 2))];
    for (t, want) in seen {
        link.advance(at(t));
        assert_eq!(link.frames(), want, "at {t} ms");
    }
    let out = drain(&mut link);
    assert_eq!(out.iter().map(|d| (d.payload, d.at)).collect::<Vec<_>>(), [(0, at(33)), (1, at(34)), (2, at(36))]);
    assert_eq!((link.frames(), link.counters().dropped()), (frames(3, 2, 3), Tally::default()));
}

#[test]
fn a_packet_is_given_up_after_its_repetitions() {
    let mut link = Link::new("l", 1, repeating(1, [true, true, true, false, false, false]));
    link.record();
    for i in 0..2 {
        link.enqueue(at(0), 1_000, i);
    }
    let out = drain(&mut link);
    assert_eq!(out.iter().map(|d| (d.payload, d.at)).collect::<Vec<_>>(), [(1, at(34))]);
    let notices: Vec<_> = link.take_notices().map(|n| (n.at, n.dropped, n.payload)).collect();
    let gone = Some(DropReason::Repeats);
    assert_eq!(notices, [(at(0), None, 0), (at(2), gone, 0), (at(2), None, 1)], "a repetition leaves no queue");
    let c = link.counters();
    assert_eq!((c.dropped_repeats.packets, c.dropped_loss.packets, c.repaired.packets), (1, 0, 1));
    assert_eq!(link.frames(), Frames { sent: 2, erroneous: 2, repeated: 2 });
}

#[test]
fn a_cut_ends_a_repetition_and_a_rate_without_limit_takes_no_time() {
    let mut link = Link::new("l", 1, repeating(5, [true; 6]));
    link.enqueue(at(0), 1_000, ());
    link.apply(Instant::from_nanos(2_500_000), Setting::Down);
    let c = link.counters();
    assert_eq!((c.dropped_down.packets, c.dropped_repeats.packets, c.repeated.packets), (1, 0, 2));
    assert_eq!(link.frames(), Frames { sent: 0, erroneous: 0, repeated: 2 });
    let free = LinkConfig { rate: None, ..repeating(2, [true, true, false, true, true, true]) };
    let mut link = Link::new("l", 1, free);
    assert_eq!([0, 1].map(|i| link.enqueue(at(1), 1_000, i)), [Verdict::Queued; 2]);
    assert_eq!(drain(&mut link).iter().map(|d| (d.payload, d.at)).collect::<Vec<_>>(), [(0, at(31))]);
    assert_eq!(link.frames(), Frames { sent: 2, erroneous: 2, repeated: 4 });
}

#[test]
fn nonsense_is_named() {
    let bad = |c: LinkConfig| c.check().is_err();
    assert!(!bad(LinkConfig::ideal()));
    assert!(bad(LinkConfig { loss_point: LossPoint::Entry, ..LinkConfig::ideal().with_repeats(1) }));
    let frames = |frame, every| LinkConfig {
        frames: FrameReports { frame, every, ..FrameReports::NONE },
        ..LinkConfig::ideal()
    };
    assert!(bad(frames(0, None)) && bad(frames(9, Some(Duration::ZERO))) && !bad(frames(9, Some(ms(1)))));
    assert!(bad(LinkConfig { duplicate: 1.1, ..LinkConfig::ideal() }));
    assert!(bad(LinkConfig { reorder: f64::NAN, ..LinkConfig::ideal() }));
    assert!(bad(LinkConfig::fixed(Some(Rate::ZERO), ms(1))));
    assert!(bad(LinkConfig::ideal().with_loss(LossConfig::bernoulli(-0.1))));
}

#[derive(Clone, Debug)]
enum Op {
    Send(u32),
    Wait(u64),
    Poll,
    Set(Setting),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u32..3_000).prop_map(Op::Send),
        3 => (0u64..5_000_000).prop_map(Op::Wait),
        2 => Just(Op::Poll),
        1 => prop_oneof![
            Just(Setting::Down),
            Just(Setting::Up),
            Just(Setting::Rate(None)),
            (0u64..20).prop_map(|n| Setting::Rate(mbit(n))),
            (0u64..50).prop_map(|n| Setting::Delay(ms(n))),
            (0u64..9).prop_map(|n| Setting::Jitter(Jitter::Normal(ms(n)))),
            (0u64..9).prop_map(|n| Setting::Limit(Limit::packets(n))),
            (0.0f64..1.0).prop_map(|p| Setting::Loss(LossConfig::bernoulli(p))),
            (0.0f64..0.5).prop_map(Setting::Duplicate),
            (0.0f64..0.5).prop_map(Setting::Reorder),
            proptest::option::of(0u32..3_000).prop_map(Setting::Mtu),
        ].prop_map(Op::Set),
    ]
}

proptest! {
    /// No packet appears or vanishes without a counter, nothing arrives before it was sent or after a
    /// poll, and without jitter's leave or `reorder` nothing overtakes.
    #[test]
    fn packets_are_conserved(ops in proptest::collection::vec(op(), 1..120), seed: u64, repeats in 0u32..3) {
        let config = LinkConfig { overhead: 28, repeats, ..LinkConfig::fixed(mbit(5), ms(10)) };
        let mut link = Link::new("l", seed, config);
        let (mut now, mut sent, mut may_overtake, mut last) = (Instant::ZERO, Tally::default(), false, None);
        for op in ops {
            match op {
                Op::Send(size) => {
                    link.enqueue(now, size, sent.packets);
                    sent = sent.with(size);
                }
                Op::Wait(ns) => now += Duration::from_nanos(ns),
                Op::Poll => {
                    while let Some(d) = link.poll_delivery(now) {
                        prop_assert!(d.entered <= d.at && d.at <= now);
                        prop_assert!(may_overtake || last.is_none_or(|l| l <= d.payload));
                        last = Some(d.payload);
                    }
                    prop_assert!(link.next_event().is_none_or(|at| at > now));
                }
                Op::Set(set) => {
                    may_overtake |= matches!(set, Setting::Reorder(_));
                    link.apply(now, set);
                }
            }
            let c = link.counters();
            let held = link.backlog().packets + link.on_the_way() as u64;
            prop_assert_eq!(c.offered, sent);
            prop_assert_eq!(sent.packets + c.duplicated.packets, c.delivered.packets + c.dropped().packets + held);
            let f = link.frames();
            prop_assert!(f.erroneous <= f.sent && f.sent <= sent.packets);
            prop_assert!(c.repeated.packets <= u64::from(repeats) * (f.erroneous + c.dropped_down.packets + 1));
            let other = if repeats > 0 { c.dropped_loss } else { c.dropped_repeats };
            prop_assert_eq!(other, Tally::default());
        }
    }

    /// How often the link is polled changes nothing.
    #[test]
    fn polling_is_free(
        polls in proptest::collection::vec(0u64..400_000_000, 0..60),
        seed: u64,
        repeats in 0u32..3,
    ) {
        let config = LinkConfig {
            jitter: Jitter::Uniform(ms(6)),
            duplicate: 0.1,
            repeats,
            ..LinkConfig::fixed(mbit(4), ms(20)).with_loss(LossConfig::bursts(0.2, 2.0)).with_schedule(
                Schedule::every(ms(90), vec![change(20, Setting::Rate(mbit(1))), change(50, Setting::Rate(mbit(9)))]))
        };
        let (plain, _) = run(config.clone(), seed, 200, ms(1), 700);
        let mut events: Vec<(Instant, bool)> = (0..200).map(|i| (at(i), true)).collect();
        events.extend(polls.iter().map(|t| (Instant::from_nanos(*t), false)));
        events.sort_by_key(|e| e.0);
        let mut link = Link::new("link", seed, config);
        let (mut out, mut sent) = (Vec::new(), 0u64);
        for (now, is_send) in events {
            if is_send {
                link.enqueue(now, 700, sent);
                sent += 1;
            } else {
                out.extend(std::iter::from_fn(|| link.poll_delivery(now)));
            }
        }
        out.extend(std::iter::from_fn(|| link.poll_delivery(at(100_000))));
        prop_assert_eq!(out, plain);
    }
}

#[test]
fn damage_flips_bits_of_what_leaves_and_leaves_other_numbers_alone() {
    use crate::damage::{DamageConfig, flip};
    let run = |damage: DamageConfig| {
        let loss = LossConfig::bernoulli(0.1);
        let config = LinkConfig { damage, loss, duplicate: 0.1, ..LinkConfig::fixed(None, Duration::from_millis(5)) };
        let mut link: Link<Vec<u8>> = Link::new("a", 3, config);
        link.set_flip(|bytes, bits| flip(bytes, bits));
        let mut out = Vec::new();
        for i in 0..1_000u64 {
            link.enqueue(Instant::from_millis(i), 100, vec![(i % 251) as u8; 100]);
            out.extend(std::iter::from_fn(|| link.poll_deliver(Instant::from_millis(i))));
        }
        out.extend(std::iter::from_fn(|| link.poll_deliver(Instant::from_millis(9_999))));
        (out, link.counters())
    };
    let wrong = |bytes: &Vec<u8>| bytes.iter().any(|b| *b != bytes[50] || *b != bytes[0]);
    let (whole, none) = run(DamageConfig::None);
    assert_eq!((whole.iter().filter(|b| wrong(b)).count(), none.damaged.packets), (0, 0));
    let (some, counted) = run(DamageConfig::OneBit { packets: 0.2 });
    assert_eq!(some.len(), whole.len(), "losses and copies are the others'");
    let damaged = some.iter().filter(|b| wrong(b)).count() as u64;
    assert_eq!(damaged, counted.damaged.packets);
    assert!((150..250).contains(&damaged), "{damaged}");
    let bits = |a: &Vec<u8>, b: &Vec<u8>| a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum::<u32>();
    assert!(some.iter().zip(&whole).all(|(a, b)| bits(a, b) <= 1));
    assert_eq!((counted.dropped_loss, counted.duplicated), (none.dropped_loss, none.duplicated));
}
