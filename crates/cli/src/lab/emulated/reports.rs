//! The links' reports of their frames, handed to the sender as a driver would.

use super::drive::{Clock, local};
use anabranch_base::{Duration, Instant};
use anabranch_emulator::{Direction, EmulatorHandle};
use anabranch_lab::run::EmulatedPath;
use anabranch_net::Connection;

/// A path whose link layer reports.
struct Reporting {
    path: usize,
    every: Duration,
    next: Instant,
}

impl Reporting {
    /// Moves on to its next report, also where the last ones were missed: counts go on, so that nothing is lost.
    fn move_on(&mut self, now: Instant) {
        while self.next <= now {
            self.next += self.every;
        }
    }
}

fn reporting(paths: &[EmulatedPath]) -> Vec<Reporting> {
    let one = |(path, p): (usize, &EmulatedPath)| {
        let every = p.reports_every()?;
        Some(Reporting { path, every, next: Instant::ZERO + every })
    };
    paths.iter().enumerate().filter_map(one).collect()
}

/// Hands over what is due until the run ends.
pub async fn report(to: &Connection, paths: &[EmulatedPath], emulator: &EmulatorHandle, clock: Clock, end: Instant) {
    let mut all = reporting(paths);
    loop {
        let next = all.iter().map(|r| r.next).min().unwrap_or(end);
        clock.reach(next.min(end)).await;
        if next >= end {
            return;
        }
        let now = clock.now();
        for r in all.iter_mut().filter(|r| r.next <= now) {
            r.move_on(now);
            if let (Some(p), Some(counted)) = (paths.get(r.path), emulator.frames(r.path, Direction::Forward)) {
                to.link_report(&local(r.path), p.report(counted));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_emulator::LinkConfig;

    fn path(every: Option<u64>) -> EmulatedPath {
        let mut up = LinkConfig::ideal();
        up.frames.every = every.map(Duration::from_millis);
        EmulatedPath { name: "path".into(), up, down: LinkConfig::ideal() }
    }

    #[test]
    fn reports_come_on_a_grid_from_the_start_whatever_was_missed() {
        let ms = Instant::from_millis;
        let mut all = reporting(&[path(None), path(Some(100)), path(Some(250))]);
        assert_eq!(all.iter().map(|r| (r.path, r.next)).collect::<Vec<_>>(), [(1, ms(100)), (2, ms(250))]);
        let mut after = |now| {
            all.iter_mut().for_each(|r| r.move_on(ms(now)));
            all.iter().map(|r| r.next).collect::<Vec<_>>()
        };
        assert_eq!(after(99), [ms(100), ms(250)]);
        assert_eq!(after(100), [ms(200), ms(250)]);
        assert_eq!(after(777), [ms(800), ms(1_000)]);
        assert!(reporting(&[path(None)]).is_empty());
    }
}
