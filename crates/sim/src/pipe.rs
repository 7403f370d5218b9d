//! Two ends and what lies between them: one path in both directions, or several paths side by side.

use crate::link::{Link, LinkConfig, LinkCounters, Setting, Verdict};
use anabranch_base::{Instant, earlier};

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];
}

/// A path: a link each way.
#[derive(Debug)]
pub struct DuplexPath<P> {
    forward: Link<P>,
    backward: Link<P>,
}

impl<P: Clone + Send + 'static> DuplexPath<P> {
    /// A path called `name`; its links are `{name}.forward` and `{name}.backward`.
    pub fn new(name: &str, seed: u64, forward: LinkConfig, backward: LinkConfig) -> Self {
        DuplexPath {
            forward: Link::new(&format!("{name}.forward"), seed, forward),
            backward: Link::new(&format!("{name}.backward"), seed, backward),
        }
    }

    /// Sends a packet of `size` bytes.
    pub fn send(&mut self, now: Instant, direction: Direction, size: u32, payload: P) -> Verdict {
        self.link_mut(direction).enqueue(now, size, payload)
    }

    /// The next packet that has arrived by `now`, earliest first; forward first among equals.
    pub fn poll(&mut self, now: Instant) -> Option<(Direction, P)> {
        let direction = self.earliest(now)?.1;
        let payload = self.link_mut(direction).poll_deliver(now)?;
        Some((direction, payload))
    }

    /// When to poll next.
    pub fn next_event(&self) -> Option<Instant> {
        earlier(self.forward.next_event(), self.backward.next_event())
    }

    /// Changes one thing of one direction now.
    pub fn apply(&mut self, now: Instant, direction: Direction, set: Setting) {
        self.link_mut(direction).apply(now, set);
    }

    /// Takes both directions down.
    pub fn cut(&mut self, now: Instant) {
        Direction::BOTH.into_iter().for_each(|d| self.apply(now, d, Setting::Down));
    }

    /// Takes both directions up again.
    pub fn restore(&mut self, now: Instant) {
        Direction::BOTH.into_iter().for_each(|d| self.apply(now, d, Setting::Up));
    }

    /// Counters of one direction.
    pub fn counters(&self, direction: Direction) -> LinkCounters {
        self.link(direction).counters()
    }

    /// The link of one direction.
    pub fn link(&self, direction: Direction) -> &Link<P> {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }

    /// The link of one direction.
    pub fn link_mut(&mut self, direction: Direction) -> &mut Link<P> {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Backward => &mut self.backward,
        }
    }

    fn earliest(&mut self, now: Instant) -> Option<(Instant, Direction)> {
        let forward = self.forward.peek_arrival(now).map(|at| (at, Direction::Forward));
        let backward = self.backward.peek_arrival(now).map(|at| (at, Direction::Backward));
        earlier(forward, backward)
    }
}

/// Several paths between the same two ends, by index.
#[derive(Debug)]
pub struct Paths<P> {
    paths: Vec<DuplexPath<P>>,
    seed: u64,
}

impl<P: Clone + Send + 'static> Paths<P> {
    /// No path yet; the paths to come draw from `seed`.
    pub fn new(seed: u64) -> Self {
        Paths { paths: Vec::new(), seed }
    }

    /// Adds a path and returns its index. Its random streams follow its name, so it shifts no other's numbers; two
    /// paths of one name see the same fate.
    pub fn add(&mut self, name: &str, forward: LinkConfig, backward: LinkConfig) -> usize {
        self.paths.push(DuplexPath::new(name, self.seed, forward, backward));
        self.paths.len() - 1
    }

    /// Sends on path `index`; `None` when there is no such path.
    pub fn send(&mut self, now: Instant, index: usize, direction: Direction, size: u32, payload: P) -> Option<Verdict> {
        Some(self.paths.get_mut(index)?.send(now, direction, size, payload))
    }

    /// The next packet that has arrived by `now` on any path, earliest first; the lowest index first
    /// among equals.
    pub fn poll(&mut self, now: Instant) -> Option<(usize, Direction, P)> {
        let arrivals = self.paths.iter_mut().enumerate().filter_map(|(i, p)| Some((p.earliest(now)?.0, i)));
        let (_, index) = arrivals.min()?;
        let (direction, payload) = self.paths.get_mut(index)?.poll(now)?;
        Some((index, direction, payload))
    }

    /// When to poll next.
    pub fn next_event(&self) -> Option<Instant> {
        self.paths.iter().filter_map(DuplexPath::next_event).min()
    }

    /// A path.
    pub fn get(&self, index: usize) -> Option<&DuplexPath<P>> {
        self.paths.get(index)
    }

    /// A path.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut DuplexPath<P>> {
        self.paths.get_mut(index)
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Is there no path?
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::LossConfig;
    use anabranch_base::Duration;

    fn delay(ms: u64) -> LinkConfig {
        LinkConfig::fixed(None, Duration::from_millis(ms))
    }

    #[test]
    fn both_ways_in_order_of_time() {
        let mut path = DuplexPath::new("p", 1, delay(30), delay(5));
        path.send(Instant::ZERO, Direction::Forward, 100, 'f');
        path.send(Instant::ZERO, Direction::Backward, 100, 'b');
        assert_eq!(path.next_event(), Some(Instant::from_millis(5)));
        let late = Instant::from_millis(40);
        assert_eq!(path.poll(late), Some((Direction::Backward, 'b')));
        assert_eq!(path.poll(late), Some((Direction::Forward, 'f')));
        assert_eq!((path.poll(late), path.next_event()), (None, None));
    }

    /// Polling at each [`next_event`](Paths::next_event) gets past packets that are lost on the wire.
    #[test]
    fn a_lost_packet_is_no_event_for_ever() {
        let lossy = delay(30).with_loss(LossConfig::Packets(vec![0, 1, 3]));
        let mut path = DuplexPath::new("p", 1, lossy, delay(5));
        for i in 0..5 {
            path.send(Instant::ZERO, Direction::Forward, 100, i);
        }
        let (mut got, mut polls) = (Vec::new(), 0);
        while let Some(at) = path.next_event() {
            got.extend(std::iter::from_fn(|| path.poll(at)).map(|(_, i)| i));
            polls += 1;
            assert!(polls < 10, "still {at:?}");
        }
        assert_eq!(got, [2, 4]);
        assert_eq!(path.counters(Direction::Forward).dropped_loss.packets, 3);
    }

    #[test]
    fn cut_and_restore() {
        let mut path = DuplexPath::new("p", 1, delay(30), delay(5));
        path.cut(Instant::ZERO);
        assert_ne!(path.send(Instant::ZERO, Direction::Backward, 1, 'x'), Verdict::Queued);
        path.restore(Instant::from_millis(1));
        assert_eq!(path.send(Instant::from_millis(1), Direction::Backward, 1, 'y'), Verdict::Queued);
        assert_eq!(path.counters(Direction::Backward).dropped_down.packets, 1);
    }

    #[test]
    fn a_new_path_shifts_no_other_numbers() {
        let run = |names: &[&str]| {
            let mut paths = Paths::new(7);
            for name in names {
                paths.add(name, delay(10).with_loss(LossConfig::bernoulli(0.3)), delay(1));
            }
            let wlan = names.iter().position(|n| *n == "wlan").unwrap();
            let mut out = Vec::new();
            for n in 0..500u64 {
                let now = Instant::from_millis(n);
                for i in 0..paths.len() {
                    paths.send(now, i, Direction::Forward, 100, n);
                }
                while let Some((i, _, n)) = paths.poll(now) {
                    if i == wlan {
                        out.push(n);
                    }
                }
            }
            out
        };
        let alone = run(&["wlan"]);
        assert!(alone.len() > 300 && alone.len() < 400);
        assert_eq!(alone, run(&["wlan", "3g"]));
        assert_eq!(alone, run(&["5g", "wlan", "3g"]));
    }

    #[test]
    fn paths_interleave_by_time() {
        let mut paths = Paths::new(1);
        paths.add("slow", delay(20), delay(20));
        paths.add("fast", delay(10), delay(10));
        assert_eq!(paths.send(Instant::ZERO, 2, Direction::Forward, 1, 'z'), None);
        paths.send(Instant::ZERO, 0, Direction::Forward, 1, 'a');
        paths.send(Instant::ZERO, 1, Direction::Backward, 1, 'b');
        assert_eq!(paths.next_event(), Some(Instant::from_millis(10)));
        let late = Instant::from_millis(99);
        assert_eq!(paths.poll(late), Some((1, Direction::Backward, 'b')));
        assert_eq!(paths.poll(late), Some((0, Direction::Forward, 'a')));
        assert_eq!(paths.poll(late), None);
    }
}
