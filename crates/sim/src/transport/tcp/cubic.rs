//! CUBIC (RFC 9438): in congestion avoidance the window is a cubic function of the time since its latest reduction, and
//! never below what Reno would have (Reno-friendly region).
//!
//! Two choices that the RFC leaves open are Linux's. A reduction is one of `cwnd`, which therefore does not grow while
//! something else limits what is sent (§4.6); and the window moves towards its target with each segment acknowledged,
//! not with each acknowledgement, so that delayed acknowledgements do not slow it down.

use anabranch_base::{Duration, Instant};

/// Multiplicative decrease factor (§4.6).
pub(super) const BETA: f64 = 0.7;
/// Segments per cubic second (§5).
pub(super) const C: f64 = 0.4;
/// Additive increase factor of the Reno-friendly region (§4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window after a loss is no smaller (§4.6).
const LEAST: f64 = 2.0;

/// The window of one connection. Windows are in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cubic {
    fast_convergence: bool,
    /// The window before the latest reduction, or less by fast convergence; 0 while it is undefined.
    w_max: f64,
    /// The window when the threshold was set the last time.
    prior: f64,
    /// `None` until the next acknowledgement in congestion avoidance.
    stage: Option<Stage>,
    /// Is it the window that limits what is sent, and since when has that been so, or not?
    limits: bool,
    since: Instant,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Seconds until the window is back at `w_max`.
    k: f64,
    w_max: f64,
    /// Reno's window.
    w_est: f64,
    /// Time in the stage in which the window was the limit (§5.8).
    elapsed: Duration,
}

impl Cubic {
    pub fn new(fast_convergence: bool) -> Self {
        Cubic { fast_convergence, w_max: 0.0, prior: 0.0, stage: None, limits: true, since: Instant::ZERO }
    }

    /// From now on the window is what limits the sender, or is not.
    pub fn limits(&mut self, now: Instant, limits: bool) {
        if let Some(stage) = self.stage.as_mut().filter(|_| self.limits) {
            stage.elapsed += now.since(self.since);
        }
        (self.limits, self.since) = (limits, now);
    }

    /// Does the window limit the sender?
    pub fn is_limit(&self) -> bool {
        self.limits
    }

    /// The window after `acked` segments have been acknowledged in congestion avoidance (§4.2 to 4.5).
    pub fn grow(&mut self, now: Instant, cwnd: f64, acked: u64, rtt: Duration) -> f64 {
        self.limits(now, self.limits);
        if !self.limits {
            return cwnd;
        }
        let (w_max, prior) = (self.w_max, &mut self.prior);
        let stage = self.stage.get_or_insert_with(|| {
            if w_max == 0.0 {
                *prior = prior.max(cwnd); // Slow start ended without a loss (§4.10).
            }
            Stage::new(cwnd, w_max)
        });
        let acked = acked as f64;
        let alpha = if stage.w_est >= *prior { 1.0 } else { ALPHA };
        stage.w_est += alpha * acked / cwnd;
        let t = stage.elapsed.as_secs_f64();
        if stage.window(t) < stage.w_est {
            return cwnd.max(stage.w_est);
        }
        let target = stage.window(t + rtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        (cwnd + (target - cwnd) / cwnd * acked).min(target)
    }

    /// A loss has been noticed by acknowledgements: the threshold (§4.6, 4.7).
    pub fn reduce(&mut self, cwnd: f64) -> f64 {
        let converges = self.fast_convergence && cwnd < self.w_max;
        self.w_max = if converges { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.end_stage(cwnd)
    }

    /// A loss has been noticed by the timer: the threshold (§4.8). The next stage begins with `K` 0.
    pub fn time_out(&mut self, cwnd: f64) -> f64 {
        self.w_max = 0.0;
        self.end_stage(cwnd)
    }

    fn end_stage(&mut self, cwnd: f64) -> f64 {
        self.stage = None;
        self.prior = cwnd;
        (cwnd * BETA).max(LEAST)
    }

    /// The window is that of a slow start: the next stage begins where that ends.
    pub fn slow_start(&mut self) {
        self.stage = None;
    }
}

impl Stage {
    /// A stage that begins with a window of `cwnd`; `w_max` is 0 where it is undefined.
    fn new(cwnd: f64, w_max: f64) -> Self {
        let w_max = w_max.max(cwnd);
        Stage { k: libm::cbrt((w_max - cwnd) / C), w_max, w_est: cwnd, elapsed: Duration::ZERO }
    }

    /// W_cubic (§4.2), `t` in seconds.
    fn window(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.w_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Windows at the end of each round of `rtt` ms, all of whose segments are acknowledged one by one.
    fn rounds(c: &mut Cubic, start: Instant, mut cwnd: f64, rtt: u64, count: u64) -> Vec<f64> {
        let mut all = Vec::new();
        for round in 0..count {
            let window = cwnd as u64;
            for n in 0..window {
                let now = start + MS(rtt) * round + MS(rtt) * n / window;
                c.limits(now, true);
                cwnd = c.grow(now, cwnd, 1, MS(rtt));
            }
            all.push(cwnd);
        }
        all
    }

    #[test]
    fn concave_to_the_window_before_the_loss_then_convex() {
        let mut c = Cubic::new(true);
        // §4.6: 0.7 of the window. §4.2: K is the cube root of 300 / 0.4, 9.09 s.
        assert_eq!(c.reduce(1_000.0), 700.0);
        let all = rounds(&mut c, Instant::ZERO, 700.0, 100, 150);
        let at = |s: f64| all[(s * 10.0) as usize - 1];
        // C (t - K)^3 + W_max; what is set is a target one round trip ahead.
        for t in [1.0, 3.0, 6.0, 9.0, 12.0] {
            let d = t - libm::cbrt(300.0 / 0.4);
            let w = 0.4 * d * d * d + 1_000.0;
            assert!((at(t) - w).abs() < 0.01 * w, "{t}: {} {w}", at(t));
        }
        assert!(all.windows(2).all(|w| w[1] >= w[0]));
    }

    #[test]
    fn reno_friendly_where_the_cubic_is_slower() {
        let mut c = Cubic::new(true);
        assert_eq!(c.reduce(20.0), 14.0);
        let all = rounds(&mut c, Instant::ZERO, 14.0, 10, 30);
        // alpha is 9/17 a round below the window of before, then 1.
        let below: Vec<f64> = all.iter().copied().filter(|w| *w < 20.0).collect();
        let mean = (below[below.len() - 1] - below[0]) / (below.len() - 1) as f64;
        assert!((mean - 9.0 / 17.0).abs() < 0.03, "{mean}");
        let above: Vec<f64> = all.iter().copied().filter(|w| *w > 21.0).collect();
        let mean = (above[above.len() - 1] - above[0]) / (above.len() - 1) as f64;
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn fast_convergence_gives_way_to_a_new_flow() {
        let w_max = |fast| {
            let mut c = Cubic::new(fast);
            c.reduce(100.0);
            c.reduce(80.0);
            c.w_max
        };
        assert_eq!((w_max(false), w_max(true)), (80.0, 80.0 * 1.7 / 2.0));
        let mut more = Cubic::new(true);
        more.reduce(100.0);
        more.reduce(120.0);
        assert_eq!(more.w_max, 120.0);
        assert_eq!(more.reduce(1.0), 2.0, "no less than two segments");
    }

    #[test]
    fn after_a_timeout_and_after_slow_start_growth_begins_at_once() {
        for timeout in [false, true] {
            let mut c = Cubic::new(true);
            if timeout {
                c.reduce(500.0);
                c.time_out(300.0);
            }
            let cwnd = c.grow(Instant::ZERO, 210.0, 1, MS(100));
            let stage = c.stage.unwrap();
            assert_eq!((stage.k, stage.w_max), (0.0, 210.0));
            assert!(cwnd > 210.0);
            assert_eq!(c.prior, if timeout { 300.0 } else { 210.0 });
        }
    }

    #[test]
    fn time_in_which_the_window_was_no_limit_does_not_count() {
        let windows = |pause: u64| {
            let mut c = Cubic::new(true);
            let cwnd = c.reduce(1_000.0);
            let first = rounds(&mut c, Instant::ZERO, cwnd, 100, 20);
            let later = Instant::from_millis(2_000);
            c.limits(later, false);
            assert_eq!(c.grow(later + MS(pause), first[19], 1, MS(100)), first[19]);
            c.limits(later + MS(pause), true);
            rounds(&mut c, later + MS(pause), first[19], 100, 20)
        };
        assert_eq!(windows(0), windows(60_000));
    }

    #[test]
    fn never_faster_than_half_a_window_in_a_round() {
        let mut c = Cubic::new(true);
        c.grow(Instant::ZERO, 10.0, 1, MS(10));
        c.limits(Instant::from_millis(60_000), true);
        let cwnd = c.grow(Instant::from_millis(60_000), 10.0, 1, MS(10));
        assert_eq!(cwnd, 10.5);
        assert_eq!(c.grow(Instant::from_millis(60_000), 10.0, 1_000, MS(10)), 15.0);
    }
}
