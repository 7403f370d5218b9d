//! What became of chunks that were sent more than once.

use super::{Delays, Detail, Window};
use anabranch_base::{Instant, PathId};
use anabranch_engine::{LostCopy, TransmissionCause};
use anabranch_policy::loss_cause::Cause;
use anabranch_sim::link::DropReason;
use std::collections::{BTreeMap, VecDeque};

/// A chunk counts as done when so many were begun after it.
const SLACK: usize = 16_384;
/// The first to ninth repetitions are counted apart; those beyond count with the ninth.
pub const COUNTED_APART: usize = 9;
/// I, P, and B with everything else.
const CLASSES: usize = 3;
const CAUSES: usize = TransmissionCause::ALL.len();

/// A chunk leaves.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// TSN on the wire.
    pub tsn: u32,
    /// Time of this transmission.
    pub at: Instant,
    /// The path it takes.
    pub path: PathId,
    /// Number of its packet among those of its sender.
    pub packet: u32,
    /// Why it leaves.
    pub cause: TransmissionCause,
    /// Importance of its message.
    pub class: u8,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Instant,
    path: PathId,
    packet: u32,
    cause: TransmissionCause,
    arrived: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct History {
    class: u8,
    transmissions: Vec<Transmission>,
}

/// What a loss really was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Truth {
    /// A queue dropped it.
    Queue,
    /// The link's loss model dropped it.
    Radio,
    /// The link's loss model dropped it, and each of the link's own repetitions.
    Arq,
    /// The link was down.
    Down,
    /// It was larger than the link's MTU.
    Mtu,
    /// It came damaged, which its checksum showed.
    Damaged,
    /// It was not lost: it arrived, or its report was.
    Arrived,
}

impl Truth {
    /// All of them.
    pub const ALL: [Truth; 7] =
        [Truth::Queue, Truth::Radio, Truth::Arq, Truth::Down, Truth::Mtu, Truth::Damaged, Truth::Arrived];

    /// One word for the names of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truth::Queue => "queue",
            Truth::Radio => "radio",
            Truth::Arq => "arq",
            Truth::Down => "down",
            Truth::Mtu => "mtu",
            Truth::Damaged => "damaged",
            Truth::Arrived => "arrived",
        }
    }

    /// Would a policy that named this cause be right? None: no policy can name it.
    fn is(self, named: Cause) -> bool {
        matches!(
            (self, named),
            (Truth::Queue, Cause::Congestion)
                | (Truth::Radio | Truth::Arq | Truth::Damaged, Cause::Radio)
                | (Truth::Down, Cause::PathFailure)
                | (Truth::Arrived, Cause::Reordering)
        )
    }
}

impl From<DropReason> for Truth {
    fn from(why: DropReason) -> Truth {
        match why {
            DropReason::Queue => Truth::Queue,
            DropReason::Loss => Truth::Radio,
            DropReason::Repeats => Truth::Arq,
            DropReason::Down => Truth::Down,
            DropReason::Mtu => Truth::Mtu,
        }
    }
}

/// The causes a policy may name, and no name at all.
pub const NAMED: [(Option<Cause>, &str); 5] = [
    (Some(Cause::Congestion), "congestion"),
    (Some(Cause::Radio), "radio"),
    (Some(Cause::Reordering), "reordering"),
    (Some(Cause::PathFailure), "path-failure"),
    (None, "unnamed"),
];

/// Which repetitions are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Which {
    /// Only the k-th one of a chunk, from 1.
    pub nth: Option<usize>,
    /// Only for this reason.
    pub cause: Option<TransmissionCause>,
    /// Only of this class, 2 for all above.
    pub class: Option<usize>,
}

/// What was noted of all chunks of a flow.
#[derive(Clone, Debug)]
pub struct Repairs {
    /// Facts of chunks that are done, by the window in which they first left.
    windows: Vec<(Window, Facts)>,
    /// TSN of the front, unwrapped.
    base: i64,
    begun: bool,
    open: VecDeque<History>,
    lost: Vec<Lost>,
    /// What links dropped, by packet.
    dropped: BTreeMap<u32, Truth>,
}

/// A transmission that was taken for lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// When its chunk first left.
    first: Instant,
    packet: u32,
    /// The cause that was named.
    cause: Option<Cause>,
}

/// Counts and delays.
#[derive(Clone, Debug)]
struct Facts {
    /// By number of the repetition that arrived, and class.
    delays: Vec<[Delays; CLASSES]>,
    /// By number of the repetition and cause.
    counts: [[u64; CAUSES]; COUNTED_APART],
    spurious: [[u64; CAUSES]; COUNTED_APART],
    /// Chunks that left.
    chunks: u64,
}

impl Facts {
    fn new() -> Facts {
        let delays = || std::array::from_fn(|_| Delays::of(Detail::Spread));
        Facts {
            delays: (0..COUNTED_APART).map(|_| delays()).collect(),
            counts: [[0; CAUSES]; COUNTED_APART],
            spurious: [[0; CAUSES]; COUNTED_APART],
            chunks: 0,
        }
    }

    fn add(&mut self, h: &History) {
        let Some(first) = h.transmissions.first() else { return };
        self.chunks += 1;
        let class = usize::from(h.class).min(CLASSES - 1);
        let place = |k: usize| k.min(COUNTED_APART) - 1;
        let mut earlier_arrived = first.arrived.is_some();
        for (k, t) in h.transmissions.iter().enumerate().skip(1) {
            let cause = t.cause as usize;
            self.counts[place(k)][cause] += 1;
            self.spurious[place(k)][cause] += u64::from(earlier_arrived);
            earlier_arrived |= t.arrived.is_some();
        }
        // The copy that came first, whichever it was.
        let came = h.transmissions.iter().enumerate().filter_map(|(k, t)| Some((t.arrived?, k))).min();
        if let Some((at, k)) = came.filter(|(_, k)| *k > 0) {
            self.delays[place(k)][class].add(at - first.at);
        }
    }
}

impl Repairs {
    /// Nothing yet; a chunk counts for those of these windows in which it first left.
    pub fn new(windows: Vec<Window>) -> Repairs {
        Repairs {
            windows: windows.into_iter().map(|w| (w, Facts::new())).collect(),
            base: 0,
            begun: false,
            open: VecDeque::new(),
            lost: Vec::new(),
            dropped: BTreeMap::new(),
        }
    }

    fn at(&self, tsn: u32) -> Option<usize> {
        let n = self.base + i64::from(tsn.wrapping_sub(self.base as u32) as i32);
        usize::try_from(n - self.base).ok()
    }

    fn history(&mut self, tsn: u32) -> Option<&mut History> {
        let at = self.at(tsn)?;
        self.open.get_mut(at)
    }

    /// A chunk left.
    pub fn left(&mut self, d: &Departure) {
        if !core::mem::replace(&mut self.begun, true) {
            self.base = i64::from(d.tsn);
        }
        let Some(at) = self.at(d.tsn) else { return };
        if at >= self.open.len() {
            self.open.resize_with(at + 1, History::default);
        }
        let h = &mut self.open[at];
        h.class = d.class;
        h.transmissions.push(Transmission { at: d.at, path: d.path, packet: d.packet, cause: d.cause, arrived: None });
        while self.open.len() > SLACK
            && let Some(h) = self.open.pop_front()
        {
            self.base += 1;
            self.windows.iter_mut().filter(|(w, _)| counts(&h, *w)).for_each(|(_, done)| done.add(&h));
        }
    }

    /// A chunk came in this packet.
    pub fn came(&mut self, tsn: u32, packet: u32, at: Instant) {
        let Some(h) = self.history(tsn) else { return };
        if let Some(t) = h.transmissions.iter_mut().find(|t| t.packet == packet) {
            t.arrived.get_or_insert(at);
        }
    }

    /// The sender took a transmission for lost.
    pub fn taken_for_lost(&mut self, l: &LostCopy) {
        let Some(h) = self.history(l.tsn.0) else { return };
        let Some(first) = h.transmissions.first().map(|t| t.at) else { return };
        let packet = h.transmissions.iter().find(|t| t.at == l.sent_at && t.path == l.path).map(|t| t.packet);
        self.lost.extend(packet.map(|packet| Lost { first, packet, cause: l.cause }));
    }

    /// This packet did not come, or not whole.
    pub fn dropped(&mut self, packet: u32, why: Truth) {
        self.dropped.insert(packet, why);
    }

    /// The numbers of all that was noted until now of chunks that first left in this window; none where that was not
    /// noted.
    pub fn summary(&self, window: Window) -> Option<Summary> {
        let (_, done) = self.windows.iter().find(|(w, _)| *w == window)?;
        let mut facts = done.clone();
        self.open.iter().filter(|h| counts(h, window)).for_each(|h| facts.add(h));
        let mut confusion = BTreeMap::new();
        for l in self.lost.iter().filter(|l| window.holds(l.first)) {
            let truth = self.dropped.get(&l.packet).copied().unwrap_or(Truth::Arrived);
            let named = NAMED.iter().position(|(c, _)| *c == l.cause).unwrap_or(0);
            *confusion.entry((truth, named)).or_insert(0) += 1;
        }
        Some(Summary { facts, confusion })
    }
}

/// Did the chunk first leave in this window?
fn counts(h: &History, window: Window) -> bool {
    h.transmissions.first().is_some_and(|t| window.holds(t.at))
}

/// Numbers of the repairs of one or several flows.
#[derive(Clone, Debug)]
pub struct Summary {
    facts: Facts,
    /// By what it was and what it was taken for, of [`NAMED`].
    confusion: BTreeMap<(Truth, usize), u64>,
}

impl Summary {
    /// Of no flow.
    pub fn empty() -> Summary {
        Summary { facts: Facts::new(), confusion: BTreeMap::new() }
    }

    /// Adds another flow's.
    pub fn merge(&mut self, other: &Summary) {
        for (mine, more) in self.facts.delays.iter_mut().zip(&other.facts.delays) {
            mine.iter_mut().zip(more).for_each(|(m, o)| m.merge(o));
        }
        let add = |mine: &mut [[u64; CAUSES]; COUNTED_APART], more: &[[u64; CAUSES]; COUNTED_APART]| {
            mine.iter_mut().flatten().zip(more.iter().flatten()).for_each(|(m, o)| *m += o);
        };
        add(&mut self.facts.counts, &other.facts.counts);
        add(&mut self.facts.spurious, &other.facts.spurious);
        self.facts.chunks += other.facts.chunks;
        for (k, n) in &other.confusion {
            *self.confusion.entry(*k).or_insert(0) += n;
        }
    }

    /// From the first transmission to the arrival of chunks of which the k-th repetition arrived first.
    pub fn delays(&self, which: Which) -> Delays {
        let mut all = Delays::of(Detail::Spread);
        for (i, of_class) in self.facts.delays.iter().enumerate() {
            for (class, d) in of_class.iter().enumerate() {
                if which.nth.is_none_or(|k| k == i + 1) && which.class.is_none_or(|c| c == class) {
                    all.merge(d);
                }
            }
        }
        all
    }

    /// Repetitions, and how many of them were spurious: an earlier transmission of the chunk arrived too.
    pub fn repetitions(&self, which: Which) -> (u64, u64) {
        let sum = |of: &[[u64; CAUSES]; COUNTED_APART]| -> u64 {
            let rows = of.iter().enumerate().filter(|(i, _)| which.nth.is_none_or(|k| k == i + 1));
            let cells = rows.flat_map(|(_, row)| row.iter().enumerate());
            cells.filter(|(c, _)| which.cause.is_none_or(|w| w as usize == *c)).map(|(_, n)| n).sum()
        };
        (sum(&self.facts.counts), sum(&self.facts.spurious))
    }

    /// Part of all transmissions, first ones included, that were spurious.
    pub fn needless(&self) -> Option<f64> {
        let (again, spurious) = self.repetitions(Which::default());
        let all = self.facts.chunks + again;
        (all > 0).then(|| spurious as f64 / all as f64)
    }

    /// Transmissions taken for lost that were this and were taken for that.
    pub fn confused(&self, truth: Truth, named: Option<Cause>) -> u64 {
        let named = NAMED.iter().position(|(c, _)| *c == named).unwrap_or(0);
        self.confusion.get(&(truth, named)).copied().unwrap_or(0)
    }

    /// Part of the transmissions taken for lost, with a cause named, of which the true one was named.
    pub fn right(&self) -> Option<f64> {
        let (mut right, mut all) = (0, 0);
        for ((truth, named), n) in &self.confusion {
            let Some(Some(named)) = NAMED.get(*named).map(|n| n.0) else { continue };
            all += n;
            right += if truth.is(named) { *n } else { 0 };
        }
        (all > 0).then(|| right as f64 / all as f64)
    }
}

#[cfg(test)]
#[path = "repairs_tests.rs"]
mod tests;
