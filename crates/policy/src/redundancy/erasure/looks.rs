//! How often policies of `erasure` look at what is in flight where there is nothing to do: once, and not at each poll.

use super::tests::{ask, counted, pay, policy, scene, unsteady};
use super::*;
use crate::testing::{Scene, ms};

/// So many polls within a millisecond.
const POLLS: u64 = 1_000;

/// Chunks looked at over as many polls before and behind new data; and how many sums or copies left.
fn looked_at(p: &mut dyn Redundancy, s: &mut Scene) -> (usize, usize) {
    let (mut looks, mut left) = (0, 0);
    for _ in 0..POLLS {
        s.now += Duration::from_nanos(900);
        for declined in [false, true] {
            s.declined = declined;
            let cx = s.cx();
            if !p.worth_asking(&cx) {
                continue;
            }
            for path in s.eligible.iter() {
                let mut outstanding = s.chunks.iter().copied().inspect(|_| looks += 1);
                left += usize::from(p.extra(&cx, &s.paths[path.index()], &mut outstanding).is_some());
            }
        }
    }
    (looks, left)
}

/// So many in flight, the first of which left `age` ago and the last now, due `life` after they left.
fn flight(s: &mut Scene, chunks: u32, age: u64, life: u64) {
    let (now, one) = (s.now, s.chunks[0]);
    let left = |i: u32| now - ms(age) * u64::from(chunks - i) / u64::from(chunks);
    let chunk = |i| ChunkView {
        tsn: Tsn(40 + i),
        last_sent: Some(left(i)),
        queued_at: left(i),
        deadline: Some(left(i) + ms(life)),
        ..one
    };
    s.chunks = (0..chunks).map(chunk).collect();
}

#[test]
fn late_looks_once_in_a_millisecond() {
    for (case, chunks, rtt, life, unsteady_path) in [
        ("repeated in time", 400, 40, 400, false),
        ("steady", 200, 200, 250, false),
        ("steady", 400, 200, 250, false),
        ("overtaking", 400, 200, 250, true),
    ] {
        let mut p = policy("rate=1,late=1");
        let mut s = unsteady(&mut *p);
        (0..6_000).for_each(|_| p.answered(PathId(0), ms(rtt)));
        (s.paths[0].jitter, s.paths[0].mean_rtt) = (ms(1), ms(rtt));
        s.paths[0].overtaken_at = unsteady_path.then_some(s.now);
        flight(&mut s, chunks, rtt, life);
        pay(&mut *p, &s);
        let (looks, left) = looked_at(&mut *p, &mut s);
        // Before new data and, where the path may have sums of its own, behind them.
        let most = chunks as usize * if unsteady_path { 2 } else { 1 };
        assert!(looks <= most && left == 0, "{case}, {chunks} in flight: {looks} looked at, {left} left");
    }
}

#[test]
fn a_spent_block_is_none() {
    let mut p = policy("rate=1,late=1");
    let mut s = unsteady(&mut *p);
    pay(&mut *p, &s);
    s.now += ms(5);
    while ask(&mut *p, &s, 1) == Some(Extra::Parity) {
        p.write(100, 1_400, &super::tests::Board);
    }
    pay(&mut *p, &s);
    let (looks, left) = looked_at(&mut *p, &mut s);
    assert_eq!((looks, left), (0, 0), "within a millisecond");
    s.now += ms(1);
    assert!(looked_at(&mut *p, &mut s).0 > 0, "there may be another one");
}

#[test]
fn plain_sums_look_again_when_something_changed() {
    for (params, chunks, overdue) in [
        ("", 200, false),
        ("", 2_000, false),
        ("copies=1", 200, false),
        ("copies=1", 2_000, false),
        ("copies=1", 2_000, true),
    ] {
        let (mut s, mut p) = (scene(), policy(format!("rate=1,{params}").trim_end_matches(',')));
        flight(&mut s, chunks, 40, 60);
        (s.paths[0].loss, s.unsent) = (Ppm(1_000), 0);
        if overdue {
            s.paths[0].oldest_sent = Some(s.now - ms(200));
        }
        pay(&mut *p, &s);
        // What is wanted has left.
        let mut sums = 0;
        while ask(&mut *p, &s, 1) == Some(Extra::Parity) {
            p.write(4_000, 1_400, &super::tests::Board);
            sums += 1;
        }
        pay(&mut *p, &s);
        let (looks, left) = looked_at(&mut *p, &mut s);
        assert!(sums > 0 && counted(&*p, "idle-enough") >= 2 * POLLS, "each poll says why none leaves");
        // And once for each that is due by then.
        let most = chunks * (3 + chunks / 20);
        assert!(looks <= most as usize && left == 0, "{params}: {looks} of {chunks} looked at, {left} left");
    }
}

/// Numbers below `n`.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What leaves when, of a policy that remembers or that forgets at each poll, where chunks leave and are acknowledged, paths
/// lose more or less, and shut and open.
fn history(params: &str, seed: u64, forgets: bool) -> Vec<(u64, PathId, Extra, Vec<u32>)> {
    let (mut p, mut s, mut r, mut all) = (policy(params), scene(), Numbers(seed), vec![]);
    let one = s.chunks[0];
    s.chunks.clear();
    for step in 0..2_000 {
        s.now += Duration::from_micros(r.below(900));
        let (now, path) = (s.now, r.below(2) as usize);
        match r.below(12) {
            0..=3 => {
                let mut c = ChunkView { tsn: Tsn(100 + step as u32), last_sent: Some(now), queued_at: now, ..one };
                (c.deadline, c.live_on) = (Some(now + ms(50 + r.below(60))), PathSet::only(PathId(path as u8)));
                c.last_path = Some(PathId(path as u8));
                s.chunks.push(c);
                p.sent(&SentPayload { chunk: &c, payload: &[], at: now });
            }
            4..=6 if !s.chunks.is_empty() => {
                s.chunks.remove(r.below(s.chunks.len() as u64).min(3) as usize);
                s.paths[path].sampled_at = Some(now);
            }
            7 => s.paths[path].loss = Ppm(r.below(80_000) as u32),
            8 => s.eligible = PathSet::first(2).without(PathId(r.below(4) as u8)),
            9 => s.paths[path].mean_rtt = ms(30 + r.below(40)),
            _ => {}
        }
        for i in 0..2u8 {
            let on = || s.chunks.iter().filter(|c| c.live_on.has(PathId(i)));
            (s.paths[usize::from(i)].oldest_sent, s.paths[usize::from(i)].in_flight) =
                (on().filter_map(|c| c.last_sent).min(), on().count() as u64 * 1_000);
        }
        s.unsent = r.below(4).saturating_sub(2);
        for declined in [false, true] {
            s.declined = declined;
            if forgets {
                p.repaired(Tsn(0));
            }
            let open: Vec<PathId> = s.eligible.iter().collect();
            let worth = p.worth_asking(&s.cx());
            let mut ask = |id: &PathId| {
                let extra = p.extra(&s.cx(), &s.paths[id.index()], &mut s.chunks.iter().copied())?;
                Some((*id, extra))
            };
            let Some((id, extra)) = worth.then(|| open.iter().find_map(&mut ask)).flatten() else { continue };
            let board = super::tests::Asked::default();
            if let Extra::Copy { tsn } = extra {
                let c = s.chunks.iter_mut().find(|c| c.tsn == tsn).unwrap();
                (c.live_copies, c.transmissions, c.live_on) = (2, 2, c.live_on.with(id));
                p.sent(&SentPayload { chunk: c, payload: &[], at: now });
            } else {
                p.write(200 + step, 1_400, &board);
            }
            all.push((step, id, extra, board.0.take()));
        }
    }
    all
}

/// What is remembered changes nothing but the work.
#[test]
fn what_is_remembered_is_what_another_look_would_find() {
    for params in ["", "code=xor", "copies=1", "late=1", "late=1,copies=1"] {
        for seed in 0..12 {
            let params = format!("rate=1,{params}").trim_end_matches(',').to_owned();
            let (remembers, forgets) = (history(&params, seed, false), history(&params, seed, true));
            let apart = remembers.iter().zip(&forgets).find(|(a, b)| a != b);
            assert!(apart.is_none() && remembers.len() == forgets.len(), "{params}, seed {seed}: {apart:?}");
            assert!(remembers.len() > 20, "{params}, seed {seed}: {}", remembers.len());
        }
    }
}
