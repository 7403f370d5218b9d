//! What paths carry, without an endpoint.

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A source that offers `offers` bytes a second over two paths, looked at each 50 ms.
struct Run {
    c: Carried,
    now: Instant,
    seen: Seen,
    ways: [Way; 2],
    offers: u64,
    /// What arrives, bytes a second, where that is not what the paths seem to carry.
    arrive: Option<u64>,
    /// All rates published, bytes a second.
    published: Vec<UsableRate>,
}

impl Run {
    fn new(rates: [u64; 2], offers: u64) -> Self {
        let way =
            |bytes| Way { capacity: Rate::from_bytes_per_sec(bytes), may_be_more: false, flight: MS(30), queued: 0 };
        let seen = Seen { offered: 0, waiting: 0, given_up: 0, delivered: 0 };
        let mut c = Carried::default();
        c.lives(MS(400));
        Run {
            c,
            now: Instant::from_millis(1_000),
            seen,
            ways: rates.map(way),
            offers,
            arrive: None,
            published: Vec::new(),
        }
    }
    fn go(&mut self, millis: u64) -> &mut Self {
        for _ in 0..millis / 50 {
            self.now += TICK;
            self.seen.offered += self.offers / 20;
            let carried: u64 = self.ways.iter().map(|w| w.capacity.bytes_per_sec()).sum();
            self.seen.delivered += self.arrive.unwrap_or(self.offers.min(carried)) / 20;
            let before = self.c.published().changes;
            self.c.update(self.now, &self.seen, self.ways.iter().copied());
            if self.c.published().changes != before {
                self.published.push(self.c.published());
            }
        }
        self
    }
    /// The encoder follows the low rate.
    fn follow(&mut self, millis: u64) -> &mut Self {
        for _ in 0..millis / 50 {
            self.go(50);
            self.offers = self.low();
        }
        self
    }
    fn low(&self) -> u64 {
        self.c.published().low.bytes_per_sec()
    }
    fn middle(&self) -> u64 {
        self.c.published().middle.bytes_per_sec()
    }
    fn carry(&mut self, rates: [u64; 2]) -> &mut Self {
        self.ways.iter_mut().zip(rates).for_each(|(w, r)| w.capacity = Rate::from_bytes_per_sec(r));
        self
    }
}

#[test]
fn it_is_a_part_of_what_the_paths_together_carry() {
    for (a, b) in [(100_000, 0), (100_000, 100_000), (2_000_000, 300_000), (125_000_000, 1)] {
        let mut r = Run::new([a, b], 50_000);
        r.go(10_000);
        let sum = a + b;
        assert!((sum * 82 / 100..=sum * 85 / 100).contains(&r.low()), "{a} {b}: {}", r.low());
        assert!((sum * 90 / 100..=sum * 93 / 100).contains(&r.middle()), "{a} {b}: {}", r.middle());
        assert!(r.low() < r.middle());
    }
}

#[test]
fn nothing_is_reported_before_something_is_known() {
    let mut r = Run::new([0, 0], 50_000);
    r.go(2_000);
    assert_eq!((r.c.published().changes, r.low()), (0, 0));
    assert!(r.carry([0, 50_000]).go(50).low() > 0);
}

#[test]
fn a_path_that_is_too_slow_for_the_deadline_does_not_count() {
    let mut r = Run::new([100_000, 900_000], 50_000);
    r.ways[1].flight = MS(301);
    r.go(5_000);
    assert!(r.middle() <= 93_000, "{}", r.middle());
    r.c.lives(MS(402));
    assert!(r.go(10_000).middle() > 500_000);
}

#[test]
fn it_falls_within_a_tenth_of_a_second_and_rises_slowly() {
    for to in [900_000, 500_000, 100_000, 10_000] {
        let mut r = Run::new([1_000_000, 0], 800_000);
        r.go(5_000).carry([to, 0]).go(100);
        assert!(r.middle() <= to * 93 / 100, "{to}: {}", r.middle());
        r.offers = to;
        r.carry([1_000_000, 0]).go(50);
        assert!(r.middle() <= 600_000.max(to), "half at once, no more: {}", r.middle());
        let before = r.middle();
        r.go(1_000);
        assert!(r.middle() <= (before * 3 / 2).max(700_000), "{to}: {before} -> {}", r.middle());
        assert!(r.go(5_000).middle() > 900_000, "{to}: {}", r.middle());
    }
}

#[test]
fn a_source_that_follows_is_not_held_at_what_it_sends() {
    let mut r = Run::new([100_000, 0], 85_000);
    r.ways[0].may_be_more = true;
    let mut last = 0;
    for _ in 0..10 {
        // What it sends is all that the path could show.
        r.follow(2_000);
        let shown = r.offers.max(100_000);
        r.carry([shown, 0]);
        assert!(r.low() >= last, "{} after {last}", r.low());
        last = r.low();
    }
    assert!(last > 200_000, "{last}");
    for pair in r.published.windows(2).skip(3) {
        let (a, b) = (pair[0].low.bytes_per_sec() as f64, pair[1].low.bytes_per_sec() as f64);
        let seconds = pair[1].at.since(pair[0].at).as_secs_f64();
        assert!((b / a).ln() / seconds < 0.6, "{a} -> {b} in {seconds}");
    }
}

#[test]
fn a_source_that_rests_shows_nothing() {
    let mut r = Run::new([100_000, 0], 10_000);
    r.ways[0].may_be_more = true;
    r.go(60_000);
    assert!(r.middle() <= 100_000, "{}", r.middle());
}

#[test]
fn what_stands_still_in_a_queue_holds_it_down_and_a_large_frame_does_not() {
    let mut r = Run::new([1_000_000, 0], 800_000);
    r.go(5_000);
    let before = r.low();
    for _ in 0..20 {
        // An I frame each second, gone after a quarter of it.
        r.seen.waiting = 100_000;
        r.go(250);
        r.seen.waiting = 0;
        r.go(750);
    }
    assert_eq!(r.low(), before);
    r.seen.waiting = 150_000;
    r.arrive = Some(1_000_000);
    r.go(450);
    assert!(r.low() <= before - 140_000, "{}", r.low());
    r.seen.waiting = u64::MAX;
    r.go(1_000);
    assert!(r.low() > 0, "something is left");
}

#[test]
fn what_arrives_while_something_waits_is_what_the_paths_carry() {
    for arrive in [200_000, 600_000, 900_000] {
        let mut r = Run::new([700_000, 300_000], 800_000);
        r.go(5_000);
        (r.seen.waiting, r.arrive) = (arrive / 20, Some(arrive));
        r.go(450);
        assert!(r.middle() <= arrive * 93 / 100, "{arrive}: {}", r.middle());
        // The queue is gone, and what is known of the paths has not changed.
        (r.seen.waiting, r.arrive) = (0, None);
        r.go(2_000);
        assert!(r.middle() <= (arrive * 93 / 100 * 6 / 5).max(600_000), "{arrive}: {}", r.middle());
        assert!(r.go(8_000).middle() > 900_000, "it is believed again: {}", r.middle());
    }
    // Where more arrives than was believed the news is good.
    let mut r = Run::new([500_000, 0], 700_000);
    r.go(5_000);
    (r.seen.waiting, r.arrive) = (60_000, Some(700_000));
    assert!(r.go(450).middle() > 550_000, "{}", r.middle());
}

#[test]
fn where_the_sum_is_a_lie_a_part_of_it_is_believed() {
    let mut r = Run::new([1_000_000, 0], 700_000);
    r.go(5_000);
    for _ in 0..30 {
        r.seen.given_up += 1;
        r.follow(500);
    }
    assert!((350_000..=500_000).contains(&r.low()), "{}", r.low());
    // It grows back once nothing is lost.
    r.go(15_000);
    assert!(r.low() > 800_000, "{}", r.low());
    // A source that does not follow loses whatever is said: nothing is learnt from that.
    r.offers = 5_000_000;
    r.go(3_000);
    for _ in 0..30 {
        r.seen.given_up += 1;
        r.go(500);
    }
    assert!(r.low() > 800_000, "{}", r.low());
}

#[test]
fn it_speaks_seldom_and_only_of_news() {
    let mut r = Run::new([1_000_000, 0], 800_000);
    r.go(10_000);
    r.published.clear();
    for i in 0..200 {
        r.carry([if i % 2 == 0 { 1_000_000 } else { 985_000 }, 0]).go(50);
    }
    assert!(r.published.len() <= 1, "{}", r.published.len());
    for i in 0..200 {
        r.carry([if i % 2 == 0 { 1_000_000 } else { 400_000 }, 0]).go(50);
    }
    for pair in r.published.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= APART);
    }
}

#[test]
fn no_path_carries_anything_and_then_one_does() {
    let mut r = Run::new([1_000_000, 500_000], 900_000);
    r.go(5_000).carry([0, 0]).go(200);
    assert_eq!((r.low(), r.middle()), (0, 0));
    r.carry([1_000_000, 0]).go(100);
    assert!(r.low() >= 400_000, "half at once: {}", r.low());
}
