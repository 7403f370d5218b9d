use super::*;
use crate::redundancy::{Source, SourceHead};
use crate::testing::{Scene, ms};
use anabranch_base::{PathSet, Rate};

/// Twenty chunks in flight on path 0, which loses 5 %, due 60 ms after they left; round trips of 40 and 50 ms.
pub(super) fn scene() -> Scene {
    let mut s = Scene::new(2, 20);
    for (i, rtt) in [(0, 40), (1, 50)] {
        let p = s.rtt(i, rtt);
        (p.mean_rtt, p.cwnd, p.capacity) = (ms(rtt), 100_000, Rate::from_bytes_per_sec(10_000_000));
    }
    (s.paths[0].loss, s.paths[0].in_flight) = (Ppm(50_000), 20_000);
    let now = s.now;
    for (c, age) in s.chunks.iter_mut().zip((1..=20).rev()) {
        (c.last_path, c.last_sent, c.len) = (Some(PathId(0)), Some(now - ms(age)), 1_000);
        (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
        c.deadline = Some(now - ms(age) + ms(60));
    }
    s
}

pub(super) fn policy(params: &str) -> Box<dyn Redundancy> {
    crate::testing::built(&POLICY, params, 1)
}

pub(super) fn pay(p: &mut dyn Redundancy, s: &Scene) {
    s.chunks.iter().for_each(|c| p.sent(&SentPayload { chunk: c, payload: &[], at: s.now }));
}

pub(super) struct Board;

impl Sources for Board {
    fn source(&self, tsn: Tsn) -> Option<Source<'_>> {
        Some(Source { number: u64::from(tsn.0), head: SourceHead::new(&[1; 12]), payload: &[7; 1_000] })
    }
}

pub(super) fn ask(p: &mut dyn Redundancy, s: &Scene, path: usize) -> Option<Extra> {
    p.worth_asking(&s.cx()).then(|| p.extra(&s.cx(), &s.paths[path], &mut s.chunks.iter().copied())).flatten()
}

pub(super) fn counted(p: &dyn Redundancy, name: &str) -> u64 {
    p.counters().iter().find(|c| c.0 == name).unwrap().1
}

#[test]
fn a_sum_leaves_by_the_other_path_and_within_its_rate() {
    let (s, mut p) = (scene(), policy(""));
    assert_eq!(ask(&mut *p, &s, 1), None, "nothing was paid for yet");
    assert_eq!(counted(&*p, "idle-rate"), 1);
    pay(&mut *p, &s);
    assert_eq!(ask(&mut *p, &s, 0), None, "what it covers is there");
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
    let record = p.write(100, 1_400, &Board).unwrap();
    assert_eq!(record.len(), head_len(20) + 1_012);
    assert_eq!(ask(&mut *p, &s, 1), None, "2000 bytes were earned");
    assert_eq!((counted(&*p, "parity"), counted(&*p, "parity-bytes")), (1, record.len() as u64));
}

/// With `copies=1` what is overdue is copied, and a sum leaves when no copy is wanted.
#[test]
fn a_copy_goes_before_a_sum() {
    let (mut s, mut p) = (scene(), policy("copies=1"));
    pay(&mut *p, &s);
    let now = s.now;
    s.paths[0].oldest_sent = Some(now - ms(70));
    s.unsent = 0;
    (s.chunks[0].last_sent, s.chunks[0].deadline) = (Some(now - ms(70)), Some(now + ms(60)));
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Copy { tsn: s.chunks[0].tsn }));
    s.chunks[0].live_copies = 2;
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
}

#[test]
fn it_does_nothing_where_nothing_is_lost_or_all_can_be_sent_again() {
    let (mut s, mut p) = (scene(), policy(""));
    pay(&mut *p, &s);
    s.paths[0].loss = Ppm(0);
    assert_eq!(ask(&mut *p, &s, 1), None);
    assert_eq!(counted(&*p, "idle-no-loss"), 1);
    s.paths[0].loss = Ppm(50_000);
    s.chunks.iter_mut().for_each(|c| c.deadline = c.deadline.map(|d| d + ms(40)));
    assert_eq!(ask(&mut *p, &s, 1), None);
    assert_eq!(counted(&*p, "idle-in-time"), 1);
    s.chunks.iter_mut().for_each(|c| c.deadline = None);
    assert_eq!(ask(&mut *p, &s, 1), None, "no deadline, no hurry");
    let mut p = policy("latency=60");
    pay(&mut *p, &s);
    s.chunks.iter_mut().for_each(|c| c.queued_at = c.last_sent.unwrap());
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
}

#[test]
fn what_a_sum_covers_needs_no_second_one() {
    let (mut s, mut p) = (scene(), policy("rate=1"));
    s.paths[0].loss = Ppm(2_000);
    pay(&mut *p, &s);
    assert_eq!(ask(&mut *p, &s, 1), None, "a loss of 0.2 % of twenty is not to be expected");
    s.paths[0].loss = Ppm(10_000);
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
    p.write(100, 1_400, &Board).unwrap();
    assert_eq!(ask(&mut *p, &s, 1), None);
    assert_eq!(counted(&*p, "idle-enough"), 2);
}

/// A board that keeps which chunks it was asked for.
#[derive(Default)]
pub(super) struct Asked(pub std::cell::RefCell<Vec<u32>>);

impl Sources for Asked {
    fn source(&self, tsn: Tsn) -> Option<Source<'_>> {
        self.0.borrow_mut().push(tsn.0);
        Board.source(tsn)
    }
}

/// The TSNs that each sum covers of those that leave, one behind the other.
fn sums(p: &mut dyn Redundancy, s: &Scene) -> Vec<Vec<u32>> {
    let mut all = vec![];
    while ask(p, s, 1) == Some(Extra::Parity) {
        let board = Asked::default();
        p.write(100, 1_400, &board).unwrap();
        all.push(board.0.take());
    }
    all
}

/// Credit from an idle while is for several sums at once. Of plain ones a second over the same chunks would say nothing.
#[test]
fn no_two_plain_sums_are_over_the_same_chunks() {
    let (mut s, mut p) = (scene(), policy("rate=1,code=xor"));
    pay(&mut *p, &s);
    // Twenty chunks of which 5 % are lost: one, and two standard deviations of one.
    let first = sums(&mut *p, &s);
    assert!(first.len() == 3 && first.iter().all(|c| (6..=7).contains(&c.len())), "{first:?}");
    let mut all: Vec<u32> = first.concat();
    all.sort_unstable();
    assert_eq!(all, (40..60).collect::<Vec<_>>(), "each is in one of them");
    assert!(first.iter().all(|c| c.windows(2).all(|w| w[1] >= w[0] + 2)), "neighbours are in different ones");
    pay(&mut *p, &s);
    assert_eq!((sums(&mut *p, &s).len(), counted(&*p, "idle-enough")), (0, 2));
    // Five new ones leave, and are all that the next sum covers.
    s.chunks.drain(..5);
    for n in 60..65 {
        let mut c = s.chunks[0];
        (c.tsn, c.last_sent, c.deadline) = (Tsn(n), Some(s.now), Some(s.now + ms(60)));
        p.sent(&SentPayload { chunk: &c, payload: &[], at: s.now });
        s.chunks.push(c);
    }
    let next = sums(&mut *p, &s).concat();
    assert_eq!(next, (60..65).collect::<Vec<_>>());
    // Random linear sums over the same are different ones.
    let (s, mut p) = (scene(), policy("rate=1"));
    pay(&mut *p, &s);
    let linear = sums(&mut *p, &s);
    assert!(linear.len() > 1 && linear.iter().all(|c| c.len() == 20), "{linear:?}");
}

#[test]
fn one_path_alone_carries_its_own_parity_and_what_has_no_room_is_left_out() {
    let (mut s, mut p) = (scene(), policy(""));
    s.close(1);
    pay(&mut *p, &s);
    assert_eq!(ask(&mut *p, &s, 0), Some(Extra::Parity));
    assert_eq!(p.write(100, 1_040, &Board), None, "1,012 bytes of each, and up to 38 before the sum");
    assert_eq!(counted(&*p, "parity-too-large"), 20);
}

/// Copies are asked for first; sums leave where nothing waits, and cover nothing that is under way twice.
#[test]
fn with_copies_sums_are_for_what_is_left() {
    let (mut s, mut p) = (scene(), policy("copies=1"));
    assert!(p.asks().any(Asks::EXTRA_FIRST) && !policy("").asks().any(Asks::EXTRA_FIRST));
    pay(&mut *p, &s);
    s.unsent = 1_000;
    assert_eq!(ask(&mut *p, &s, 1), None, "new data go first");
    s.unsent = 0;
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
    // The oldest left so long ago that its answer is overdue.
    let (now, oldest) = (s.now, &mut s.chunks[0]);
    (oldest.last_sent, oldest.deadline) = (Some(now - ms(90)), Some(now + ms(40)));
    (s.paths[0].oldest_sent, s.unsent) = (oldest.last_sent, 1_000);
    let tsn = oldest.tsn;
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Copy { tsn }));
    (s.chunks[0].live_copies, s.unsent) = (2, 0);
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
    p.write(100, 1_400, &Without(tsn)).unwrap();
}

/// A board that must not be asked for one chunk.
struct Without(Tsn);

impl Sources for Without {
    fn source(&self, tsn: Tsn) -> Option<Source<'_>> {
        assert_ne!(tsn, self.0);
        Board.source(tsn)
    }
}

/// Ten chunks in flight on path 0, which takes 100 to 300 ms; they left 150 ms ago and are due in 50. Path 1 takes 20.
pub(super) fn unsteady(p: &mut dyn Redundancy) -> Scene {
    let mut s = Scene::new(2, 10);
    for (i, rtt) in [(0, 200), (1, 40)] {
        let p = s.rtt(i, rtt);
        (p.mean_rtt, p.cwnd, p.capacity) = (ms(rtt), 100_000, Rate::from_bytes_per_sec(10_000_000));
    }
    (s.paths[0].jitter, s.paths[0].one_way, s.paths[0].in_flight) = (ms(40), ms(200), 10_000);
    s.unsent = 0;
    let now = s.now;
    for c in &mut s.chunks {
        (c.last_path, c.last_sent, c.queued_at) = (Some(PathId(0)), Some(now - ms(150)), now - ms(150));
        (c.len, c.transmissions, c.live_copies, c.live_on) = (1_000, 1, 1, PathSet::only(PathId(0)));
        c.deadline = Some(now + ms(50));
    }
    (0..200).for_each(|i| p.answered(PathId(0), ms(100 + i)));
    s
}

#[test]
fn what_will_be_late_gets_its_sums_at_the_last_moment() {
    let mut p = policy("rate=1,late=1");
    let mut s = unsteady(&mut *p);
    pay(&mut *p, &s);
    assert_eq!(ask(&mut *p, &s, 1), None, "most of what comes is still to come");
    // A round trip of 40 ms and 5 ms of guard before they are due.
    assert_eq!(p.wakeup(), Some(s.now + ms(5)));
    s.now += ms(5);
    assert_eq!(ask(&mut *p, &s, 0), None, "path 1 is quicker");
    // Of ten that took 155 ms and may take 300, two thirds take more than 200. Nine sums would solve them but for a few
    // cases; there were bytes for eight.
    let mut sums = 0;
    while ask(&mut *p, &s, 1) == Some(Extra::Parity) {
        assert!(p.write(100, 1_400, &Board).is_some());
        sums += 1;
    }
    assert!((7..=8).contains(&sums), "{sums}");
    assert_eq!(ask(&mut *p, &s, 1), None, "they had theirs");
    s.now += ms(2);
    assert_eq!(ask(&mut *p, &s, 1), None);
}

#[test]
fn what_comes_in_time_gets_none_and_lateness_counts_only_where_it_is_asked_for() {
    for (params, slack) in [("rate=1,late=1", 200), ("rate=1", 45)] {
        let mut p = policy(params);
        let mut s = unsteady(&mut *p);
        pay(&mut *p, &s);
        s.chunks.iter_mut().for_each(|c| c.deadline = Some(s.now + ms(slack)));
        assert_eq!((ask(&mut *p, &s, 1), p.wakeup()), (None, None), "{params}");
    }
}

/// A queue that others made delays a sum as much as what it covers.
#[test]
fn a_path_that_keeps_the_order_makes_up_for_its_losses_and_not_for_its_queue() {
    for (overtakes, loss, sums) in [(false, 0, 0), (true, 0, 7), (false, 50_000, 1)] {
        let mut p = policy("rate=1,late=1");
        let mut s = unsteady(&mut *p);
        pay(&mut *p, &s);
        s.close(1);
        s.now += ms(5);
        let path = &mut s.paths[0];
        (path.mean_rtt, path.min_rtt, path.one_way, path.recent_one_way) = (ms(40), ms(40), ms(20), ms(20));
        (path.loss, path.overtaken_at) = (Ppm(loss), overtakes.then_some(s.now));
        let mut left = 0;
        while ask(&mut *p, &s, 0) == Some(Extra::Parity) {
            assert!(p.write(100, 1_400, &Board).is_some());
            left += 1;
        }
        assert!(left >= sums && (left > 0) == (sums > 0), "{left}: overtakes {overtakes}, loss {loss}");
    }
}

#[test]
fn what_will_be_late_has_no_more_than_was_earned() {
    let mut p = policy("rate=0.3,late=1");
    let mut s = unsteady(&mut *p);
    pay(&mut *p, &s);
    s.now += ms(5);
    assert_eq!(ask(&mut *p, &s, 1), None, "two sums for seven that are missing would be thrown away");
    // The newest three alone are worth them.
    s.chunks.drain(..7);
    s.now += ms(1);
    s.chunks.iter_mut().for_each(|c| c.tsn = anabranch_base::Tsn(c.tsn.0 + 10));
    assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
}

/// Where packets overtake each other and new data want no more of the path, its own sums leave at once, behind the last that
/// they cover.
#[test]
fn what_left_by_a_path_that_reorders_has_its_sums_there_as_soon_as_all_has_left() {
    for (life, reorders, declined, least) in [
        (220, true, true, 0),
        (245, true, true, 3),
        (280, true, true, 1),
        (500, true, true, 0),
        (240, false, true, 0),
        (240, true, false, 0),
    ] {
        let case = format!("due after {life} ms, reorders {reorders}, declined {declined}");
        let mut p = policy("rate=1,late=1");
        let mut s = unsteady(&mut *p);
        let now = s.now;
        (s.paths[0].overtaken_at, s.declined) = (reorders.then_some(now), declined);
        let path = &mut s.paths[0];
        (path.min_rtt, path.one_way, path.capacity) = (ms(120), ms(120), Rate::from_bytes_per_sec(1_000_000));
        for (i, c) in (0..).zip(&mut s.chunks) {
            (c.last_sent, c.queued_at, c.deadline) =
                (Some(now - ms(10) + ms(i)), now - ms(10), Some(now + ms(life - 10)));
        }
        pay(&mut *p, &s);
        assert_eq!(ask(&mut *p, &s, 0), None, "{case}: more may follow the last");
        s.now += ms(3);
        let mut sums = 0;
        while ask(&mut *p, &s, 0) == Some(Extra::Parity) {
            let board = Asked::default();
            p.write(100, 1_400, &board).unwrap();
            assert_eq!(board.0.take(), (40..50).collect::<Vec<_>>(), "{case}");
            sums += 1;
        }
        assert!(sums >= least && (sums > 0) == (least > 0) && sums <= 8, "{case}: {sums}");
        // The other path has none of them.
        assert_eq!(ask(&mut *p, &s, 1), None, "{case}");
    }
}

/// Over a second of a stream of a chunk each 4 ms by one path of 120 ms there and back, half of it there, which loses 5 %: how
/// many sums leave, and which part of the chunks is covered by one that may arrive in time.
fn streamed(params: &str, life: u64, jitter: u64) -> (usize, f64) {
    let (mut p, mut s) = (policy(params), Scene::new(1, 0));
    let path = s.rtt(0, 120);
    (path.mean_rtt, path.cwnd, path.capacity) = (ms(120), 1_000_000, Rate::from_bytes_per_sec(1_000_000));
    (path.one_way, path.recent_one_way, path.jitter, path.loss) = (ms(60), ms(60), ms(jitter), Ppm(50_000));
    (path.recent_rtt, s.unsent) = (ms(120), 0);
    let (mut sums, mut covered, mut sent) = (0, std::collections::BTreeSet::new(), 0);
    for at in 0..1_500 {
        s.now += ms(1);
        let now = s.now;
        s.paths[0].sampled_at = Some(now);
        if at % 4 == 0 {
            let mut c = ChunkView::waiting(Tsn(1_000 + at));
            (c.last_path, c.last_sent, c.queued_at, c.len) = (Some(PathId(0)), Some(now), now, 1_000);
            (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
            c.deadline = Some(now + ms(life));
            p.sent(&SentPayload { chunk: &c, payload: &[], at: now });
            s.chunks.push(c);
        }
        let gone = s.chunks.iter().filter(|c| now.since(c.last_sent.unwrap()) >= ms(120)).count();
        s.chunks.drain(..gone).for_each(|_| p.answered(PathId(0), ms(120)));
        s.paths[0].in_flight = s.chunks.len() as u64 * 1_000;
        // Before new data, and behind them.
        for declined in [false, true] {
            s.declined = declined;
            while ask(&mut *p, &s, 0) == Some(Extra::Parity) {
                let board = Asked::default();
                p.write(u64::from(1_001 + at), 1_400, &board).unwrap();
                let due = |t: &u32| s.chunks.iter().find(|c| c.tsn.0 == *t).unwrap().deadline.unwrap();
                covered.extend(board.0.take().into_iter().filter(|t| now + ms(60) <= due(t) && *t >= 1_500));
                sums += usize::from(at >= 500);
            }
        }
        sent += u32::from(at % 4 == 0 && at >= 500);
    }
    (sums, covered.len() as f64 / f64::from(sent))
}

/// What `late` is for comes on top: where a deadline leaves no time for a sum that takes all of a round trip, what is lost
/// has sums as without it.
#[test]
fn losses_have_their_sums_with_late_as_without() {
    for code in ["rlc", "xor"] {
        for (life, least) in [(64, 0.0), (70, 0.95), (100, 0.95), (115, 0.95), (130, 0.95), (200, 0.95), (400, 0.0)] {
            for jitter in [0, 3, 20] {
                let case = format!("{code}, due after {life} ms, jitter {jitter} ms");
                let (without, by_losses) = streamed(&format!("rate=0.5,code={code}"), life, jitter);
                let (sums, covered) = streamed(&format!("rate=0.5,code={code},late=1"), life, jitter);
                assert!(sums >= without && covered >= by_losses.max(least), "{case}: {sums} sums over {covered:.3}");
                assert!(sums <= without.max(60), "{case}: {sums} sums, {without} without");
            }
        }
    }
}

/// What leaves at a poll that goes on until nothing more does: the TSNs that each sum covers, its bytes paid for.
fn all_sums(p: &mut dyn Redundancy, s: &Scene, by: usize) -> Vec<Vec<u32>> {
    let mut all = vec![];
    pay(p, s);
    while ask(p, s, by) == Some(Extra::Parity) {
        let board = Asked::default();
        p.write(2_000, 1_400, &board).unwrap();
        all.push(board.0.take());
        pay(p, s);
    }
    all
}

/// A sum covers so many chunks at most: of more, the rest is the next block.
#[test]
fn each_chunk_of_a_large_frame_is_in_a_block() {
    for (code, beside, n, apart) in [
        ("rlc", false, 100, 1),
        ("rlc", false, 128, 1),
        ("rlc", false, 220, 1),
        ("rlc", false, 500, 1),
        ("rlc", false, 500, 3),
        ("xor", false, 500, 1),
        ("rlc", true, 100, 1),
        ("rlc", true, 220, 1),
        ("rlc", true, 500, 1),
        ("rlc", true, 500, 3),
        ("xor", true, 500, 1),
    ] {
        let case = format!("{code}, beside {beside}: {n} chunks, TSNs {apart} apart");
        let mut p = policy(&format!("rate=1,late=1,code={code}"));
        let mut s = unsteady(&mut *p);
        let (now, one) = (s.now, s.chunks[0]);
        // One in a hundred takes 300 ms, the others at most 150.
        (0..6_000).for_each(|i| p.answered(PathId(0), ms(if i % 100 == 0 { 300 } else { 130 + i % 20 })));
        let (age, life) = (if beside { 10 } else { 120 }, 170);
        s.chunks =
            (0..n).map(|i| ChunkView { tsn: Tsn(40 + i * apart), last_sent: Some(now - ms(age)), ..one }).collect();
        s.chunks.iter_mut().for_each(|c| c.deadline = Some(now + ms(life - age)));
        if beside {
            (s.paths[0].overtaken_at, s.declined) = (Some(now), true);
            let path = &mut s.paths[0];
            (path.min_rtt, path.one_way, path.capacity) = (ms(120), ms(120), Rate::from_bytes_per_sec(1_000_000));
        }
        let (mut covered, mut sums) = (std::collections::BTreeSet::<u32>::new(), Vec::<Vec<u32>>::new());
        for _ in 0..(life - age) {
            sums.extend(all_sums(&mut *p, &s, usize::from(!beside)));
            s.now += ms(1);
        }
        for sum in &sums {
            let first = Tsn(sum[0]);
            assert!(sum.len() <= 128 && sum.iter().all(|t| u64::from(Tsn(*t).distance(first)) < MOST_SPAN), "{case}");
            covered.extend(sum);
        }
        assert_eq!(covered.len() as u32, n, "{case}: {:?}", sums.iter().map(Vec::len).collect::<Vec<_>>());
    }
}
