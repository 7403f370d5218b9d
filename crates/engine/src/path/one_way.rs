//! How long the way there takes, where the way back is another one.
//!
//! A SACK may come back over any path, so the round trip that a chunk shows is its path's way there and some path's
//! way back. Time stamps beside SACKs, of a clock that is the peer's, tell by how much the ways back differ; then one
//! number is open for all paths together: how the round trip of one of them divides. The quickest is taken for
//! symmetrical, since there the mistake is smallest. Without time stamps each path is. Its own round trips are those of
//! HEARTBEATs, which return the way they came (RFC 9260 §8.3), and of chunks whose SACK came back over their own path.

use super::Path;
use super::least::Least;
use anabranch_base::{Duration, Instant, PathId};

/// Half of the window for the smallest values; routes change.
const HALF: Duration = Duration::from_secs(5);
/// Least span of what counts as recent.
const RECENT: Duration = Duration::from_millis(50);
/// Ways back that differ by less are alike.
const CLOSE: Duration = Duration::from_millis(2);
/// By so much at least ways back vary by themselves.
const VARIES: Duration = Duration::from_millis(20);
/// Added to differences of clocks, which may be negative.
const BIAS: Duration = Duration::from_secs(1 << 20);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OneWay {
    /// Round trips there and back over this path alone.
    own: Least,
    /// Ways back by two clocks: the time here less the stamp, more or less than at the first stamp of all.
    back_by_clocks: Least,
    /// The way back beside that of the quickest path, where stamps tell.
    back: Option<Duration>,
    /// By how much the last SACK that came back this way took longer than the quickest of them.
    longer: Duration,
    there: Least,
    recent: Least,
    last: Duration,
}

/// The peer's clock beside ours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// Our time less the peer's at the first stamp, microseconds modulo 2^32.
    first: Option<u32>,
    /// A way back of this length by both clocks counts as none, and since when.
    base: Duration,
    base_at: Instant,
}

/// The base follows the shortest way back no faster than that, a part of time: rates are off by no more.
const FOLLOWS: u64 = 1_000;

impl Clocks {
    /// The way back of a packet that left at `stamp`, more or less than that of the first one.
    fn since_first(&mut self, now: Instant, stamp: u32) -> Duration {
        let apart = ((now.as_nanos() / 1_000) as u32).wrapping_sub(stamp);
        let more = apart.wrapping_sub(*self.first.get_or_insert(apart)) as i32;
        let micros = (BIAS.as_nanos() / 1_000) as i64 + i64::from(more);
        Duration::from_micros(micros as u64)
    }

    /// When something had arrived at the peer that said so at once and took so long to come back, but for a time that is
    /// the same for all. It may lie ahead.
    fn arrival(&mut self, now: Instant, took: Duration, shortest: Duration) -> Instant {
        let most = now.since(self.base_at) / FOLLOWS;
        self.base = if self.base.is_zero() { shortest } else { shortest.clamp(self.base - most, self.base + most) };
        self.base_at = now;
        (now + self.base) - took
    }
}

/// A SACK came back over `by`, stamped when it left. When what it tells of had arrived, on a scale on which the way back
/// takes no time.
pub(crate) fn stamped(now: Instant, paths: &mut [Box<Path>], clocks: &mut Clocks, by: PathId, stamp: u32) -> Instant {
    let took = clocks.since_first(now, stamp);
    let Some(p) = paths.get_mut(by.index()) else { return now };
    p.one_way.back_by_clocks.update(now, took, HALF);
    p.one_way.longer = took.saturating_sub(p.one_way.back_by_clocks.get());
    let seen = |p: &&Path| !p.one_way.back_by_clocks.get().is_zero();
    let whole = |p: &&Path| seen(p) && !p.one_way.own.get().is_zero();
    if let Some(quickest) =
        paths.iter().map(Box::as_ref).filter(whole).min_by_key(|p| p.one_way.own.get()).map(|p| p.one_way)
    {
        let half = quickest.own.get() / 2;
        for p in paths.iter_mut().filter(|p| !p.one_way.back_by_clocks.get().is_zero()) {
            let back = half + p.one_way.back_by_clocks.get();
            p.one_way.takes_back(now, back.saturating_sub(quickest.back_by_clocks.get()));
        }
    }
    let shortest = paths.iter().map(Box::as_ref).filter(seen).map(|p| p.one_way.back_by_clocks.get()).min();
    shortest.map_or(now, |least| clocks.arrival(now, took, least))
}

impl OneWay {
    /// A round trip over this path both ways.
    pub fn own_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.own.update(now, rtt, HALF);
    }

    /// A round trip whose way there was this path, and whose way back takes `back`.
    pub fn sample(&mut self, now: Instant, rtt: Duration, back: Duration) {
        // However the way back was found, the way there takes some time.
        let there = rtt.saturating_sub(back).max(rtt / 8);
        self.there.update(now, there, HALF);
        self.recent.update(now, there, rtt.max(RECENT));
        self.last = there;
    }

    /// Its way back, as far as is known: half of its own round trip where stamps tell nothing.
    pub fn back(&self) -> Option<Duration> {
        let own = Some(self.own.get()).filter(|d| !d.is_zero());
        match (self.back, own) {
            // It is a part of that.
            (Some(back), Some(own)) => Some(back.min(own)),
            (back, own) => back.or(own.map(|d| d / 2)),
        }
    }

    /// So long the way back takes. What was concluded from another time is not kept.
    fn takes_back(&mut self, now: Instant, back: Duration) {
        let before = self.back.replace(back);
        if before.is_some_and(|b| b.abs_diff(back) <= CLOSE) {
            self.back = before;
            return;
        }
        (self.there, self.recent) = (Least::default(), Least::default());
        let own = self.own.get();
        if !own.is_zero() {
            self.sample(now, own, back);
        }
    }

    /// The way back of the SACK at hand, which came by this path: what it takes at its best, unless it has become another.
    pub fn back_now(&self) -> Option<Duration> {
        self.back().map(|d| if self.longer > (d * 2).max(VARIES) { d + self.longer } else { d })
    }

    /// Smallest time there of the last seconds; zero without a sample.
    pub fn least(&self) -> Duration {
        self.there.get()
    }

    /// The newest time there.
    pub fn last(&self) -> Duration {
        self.last
    }

    /// Smallest time there over the last one to two round trips before the newest sample.
    pub fn recent(&self) -> Duration {
        self.recent.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_came_back_over_a_faster_path_took_longer_to_get_there() {
        let (mut fast, mut slow) = (OneWay::default(), OneWay::default());
        let now = Instant::from_millis(1_000);
        assert_eq!(fast.back(), None);
        fast.own_round_trip(now, MS(60));
        slow.sample(now, MS(190), fast.back().unwrap());
        assert_eq!((slow.least(), slow.recent()), (MS(160), MS(160)));
        slow.sample(now + MS(10), MS(240), MS(30));
        assert_eq!((slow.least(), slow.recent(), slow.last()), (MS(160), MS(160), MS(210)));
        slow.sample(now + MS(600), MS(240), MS(30));
        slow.sample(now + MS(1_200), MS(240), MS(30));
        assert_eq!((slow.least(), slow.recent()), (MS(160), MS(210)), "the recent one follows");
    }

    #[test]
    fn nonsense_about_the_way_back_leaves_some_time_for_the_way_there() {
        let mut p = OneWay::default();
        p.sample(Instant::from_millis(5), MS(80), MS(500));
        assert_eq!(p.least(), MS(10));
    }

    #[test]
    fn clocks_may_be_apart_by_anything_and_wrap() {
        for apart in [0u32, 1, 1 << 31, u32::MAX] {
            let mut c = Clocks::default();
            let at = |ms: u64| Instant::from_millis(4_294_000 + ms);
            let stamp = |ms: u64| ((4_294_000 + ms) * 1_000) as u32;
            let took = |c: &mut Clocks, left: u64, came: u64| c.since_first(at(came), stamp(left).wrapping_sub(apart));
            let first = took(&mut c, 0, 30);
            assert_eq!(took(&mut c, 1_000, 1_005) + MS(25), first, "{apart}");
            assert_eq!(took(&mut c, 2_000, 2_090), first + MS(60), "{apart}");
        }
    }
}
