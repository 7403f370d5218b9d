//! Axes: which values lie where, and which of them get a tick.

use super::usable;
use crate::text::{compose, decompose, fixed, power, short};

/// More ticks than this are never drawn.
const MOST_TICKS: usize = 40;
/// Powers of two beyond this are no sizes.
const LARGEST_DOUBLING: f64 = 1e30;
/// Less than this has no place on a logarithmic axis.
const SMALLEST_LOG: f64 = 1e-300;

/// What an axis shows, as its owner asked for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) log: bool,
    /// Powers of two are its round values, as of sizes in KB; on a logarithmic axis.
    pub(super) binary: bool,
    /// Ends fixed by the caller.
    pub(super) range: Option<(f64, f64)>,
    /// Lower and upper end, each fixed by itself; the other is found from the data.
    pub(super) ends: (Option<f64>, Option<f64>),
    /// What has to lie on it beside what is drawn.
    pub(super) cover: Option<(f64, f64)>,
    /// Zero need not be on it.
    pub(super) fit: bool,
    /// Only whole numbers are ticks.
    pub(super) whole: bool,
    /// Names at 0, 1, 2, … instead of numbers.
    pub(super) names: Vec<String>,
}

impl Axis {
    /// Name and unit as one label.
    pub(super) fn label(&self) -> String {
        match (self.name.is_empty(), self.unit.is_empty()) {
            (_, true) => self.name.clone(),
            (true, false) => self.unit.clone(),
            (false, false) => format!("{} ({})", self.name, self.unit),
        }
    }
    /// `v` with the unit.
    pub(super) fn with_unit(&self, v: f64) -> String {
        match self.named(v) {
            Some(name) => name.to_owned(),
            None => self.join(&short(v)),
        }
    }
    /// The name nearest to `v`, on an axis with names.
    fn named(&self, v: f64) -> Option<&str> {
        let last = self.names.len().checked_sub(1)? as f64;
        self.names.get(v.round().clamp(0.0, last) as usize).map(String::as_str)
    }
    /// A text with the unit.
    pub(super) fn join(&self, v: &str) -> String {
        if self.unit.is_empty() { v.to_owned() } else { format!("{v} {}", self.unit) }
    }
}

/// A place on an axis with its label; without one it is a minor line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// From values to pixels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub(super) lo: f64,
    pub(super) hi: f64,
    log: bool,
    /// Pixel of `lo` and of `hi`.
    pub(super) pixels: (f64, f64),
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// Lays out an axis for values between `data`'s ends. `round` widens the ends to ticks; about `target` ticks.
    pub(super) fn new(axis: &Axis, data: Option<(f64, f64)>, round: bool, target: usize) -> Scale {
        if !axis.names.is_empty() {
            let tick = |(i, n): (usize, &String)| Tick { value: i as f64, label: n.clone() };
            let ticks = axis.names.iter().enumerate().map(tick).collect();
            let hi = axis.names.len() as f64 - 0.6;
            return Scale { lo: -0.4, hi, log: false, pixels: (0.0, 1.0), ticks };
        }
        let allowed = |v: f64| usable(v) && (!axis.log || v >= SMALLEST_LOG);
        let asked = axis.range.filter(|&(a, b)| allowed(a) && allowed(b) && a < b);
        let (lo, hi) = asked.or(data.filter(|&(a, b)| allowed(a) && allowed(b))).unwrap_or(if axis.log {
            (1.0, 10.0)
        } else {
            (0.0, 1.0)
        });
        let ends = (axis.ends.0.filter(|v| allowed(*v)), axis.ends.1.filter(|v| allowed(*v)));
        let round = round && asked.is_none();
        let round = (round && ends.0.is_none(), round && ends.1.is_none());
        let (lo, hi) = fixed_ends(lo, hi, ends, axis.log);
        let (lo, hi, ticks) =
            if axis.log { log_ticks(lo, hi, round, target) } else { linear(lo, hi, round, target, axis.whole) };
        let doublings = if axis.log && axis.binary { doublings(lo, hi, target) } else { Vec::new() };
        let ticks = if doublings.len() > 1 { doublings } else { ticks };
        Scale { lo, hi, log: axis.log, pixels: (0.0, 1.0), ticks }
    }
    /// This scale between two other pixels.
    pub(super) fn onto(mut self, at_lo: f64, at_hi: f64) -> Scale {
        self.pixels = (at_lo, at_hi);
        self
    }
    /// Where `v` lies in pixels; `None` for what cannot be shown. Far outside it stops at a few thousand pixels.
    pub(super) fn at(&self, v: f64) -> Option<f64> {
        if !usable(v) || (self.log && v < SMALLEST_LOG) {
            return None;
        }
        let share = if self.log {
            (v.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln())
        } else {
            (v - self.lo) / (self.hi - self.lo)
        };
        Some(self.pixels.0 + share.clamp(-8.0, 9.0) * (self.pixels.1 - self.pixels.0))
    }
    /// As [`at`](Self::at); what is too small for a logarithmic axis lies at its lower end, so that an interval which
    /// reaches down to there is drawn to the edge.
    pub(super) fn at_or_below(&self, v: f64) -> Option<f64> {
        if self.log && usable(v) && v < SMALLEST_LOG { Some(self.pixels.0) } else { self.at(v) }
    }
    /// The value at a pixel.
    pub(super) fn value(&self, pixel: f64) -> f64 {
        let share = (pixel - self.pixels.0) / (self.pixels.1 - self.pixels.0);
        if self.log {
            (self.lo.ln() + share * (self.hi.ln() - self.lo.ln())).exp()
        } else {
            self.lo + share * (self.hi - self.lo)
        }
    }
    /// True when `v` lies between the ends.
    pub(super) fn shows(&self, v: f64) -> bool {
        usable(v) && self.lo <= v && v <= self.hi
    }
    /// Width in pixels of the widest tick label.
    pub(super) fn widest(&self, size: f64) -> f64 {
        self.ticks.iter().map(|t| crate::text::text_width(&t.label, size)).fold(0.0, f64::max)
    }
    /// The ticks with their pixels.
    pub(super) fn ticks_at_pixels(&self) -> impl Iterator<Item = (f64, &Tick)> {
        self.ticks.iter().filter_map(|t| self.at(t.value).map(|p| (p, t)))
    }
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `raw`, and the decimals its multiples need.
pub(super) fn nice_step(raw: f64) -> (f64, usize) {
    let (mantissa, mut exponent) = decompose(raw);
    let mut nice = 10.0;
    for candidate in [1.0, 2.0, 2.5, 5.0] {
        if mantissa <= candidate * (1.0 + 1e-9) {
            nice = candidate;
            break;
        }
    }
    if nice == 10.0 {
        nice = 1.0;
        exponent = exponent.saturating_add(1);
    }
    let finest = if nice == 2.5 { exponent.saturating_sub(1) } else { exponent };
    (compose(nice, exponent), usize::try_from(-finest).unwrap_or(0))
}

/// Puts one end or both where the caller wants them. An end that is left free and would lie beyond the other moves.
fn fixed_ends(lo: f64, hi: f64, ends: (Option<f64>, Option<f64>), log: bool) -> (f64, f64) {
    let room = |v: f64| if v == 0.0 { 1.0 } else { v.abs() };
    match (ends.0.unwrap_or(lo), ends.1.unwrap_or(hi)) {
        (lo, hi) if lo < hi => (lo, hi),
        (lo, _) if ends.0.is_some() => (lo, if log { lo * 10.0 } else { lo + room(lo) }),
        (_, hi) if ends.1.is_some() => (if log { hi / 10.0 } else { hi - room(hi) }, hi),
        same => same,
    }
}

fn linear(lo: f64, hi: f64, round: (bool, bool), target: usize, whole: bool) -> (f64, f64, Vec<Tick>) {
    let (mut lo, mut hi) = widen(lo, hi);
    let (mut step, mut decimals) = nice_step((hi - lo) / target.max(1) as f64);
    if whole && step < 1.0 {
        (step, decimals) = (1.0, 0);
    }
    let slack = step * 1e-6;
    if round.0 {
        lo = ((lo + slack) / step).floor() * step;
    }
    if round.1 {
        hi = ((hi - slack) / step).ceil() * step;
    }
    let first = ((lo - slack) / step).ceil();
    let label = |v: f64| {
        let power = v != 0.0 && (step >= 1e7 || decimals > 6);
        if power { short(v) } else { fixed(v, decimals) }
    };
    let ticks = (0..MOST_TICKS)
        .map(|i| (first + i as f64) * step)
        .take_while(|&v| v <= hi + slack)
        .map(|v| Tick { value: v, label: label(v) })
        .collect();
    (lo, hi, ticks)
}

/// Makes room around a range that is empty or too small to divide.
fn widen(lo: f64, hi: f64) -> (f64, f64) {
    let size = lo.abs().max(hi.abs());
    if hi - lo > size * 1e-9 && hi - lo > 1e-300 {
        return (lo, hi);
    }
    if size < 1e-290 {
        return (0.0, 1.0);
    }
    let room = size * 0.1;
    (lo - room, hi + room)
}

fn log_ticks(lo: f64, hi: f64, round: (bool, bool), target: usize) -> (f64, f64, Vec<Tick>) {
    let (mut lo, mut hi) = if hi > lo * (1.0 + 1e-9) { (lo, hi) } else { (lo / 2.0, hi * 2.0) };
    let first = decompose(lo).1;
    let (mantissa, mut last) = decompose(hi);
    if mantissa > 1.0 {
        last += 1;
    }
    // To a whole decade only where that wastes less than most of one.
    if round.0 {
        lo = [5.0, 2.0, 1.0].into_iter().map(|m| compose(m, first)).find(|&v| v <= lo).unwrap_or(lo);
    }
    if round.1 {
        hi = [2.0, 5.0, 10.0].into_iter().map(|m| compose(m, last - 1)).find(|&v| v >= hi).unwrap_or(hi);
    }
    let decades = (last - first).max(1);
    let every = (decades + 7) / 8;
    let label = decade_labels(first, last);
    // Between ends that are no ticks themselves one of 1, 2 and 5 would be lonely.
    let short_span = round == (false, false) && hi < lo * 20.0;
    let mut ticks = Vec::new();
    for (n, exponent) in (first..=last).enumerate() {
        let labelled = (n as i32) % every == 0;
        for m in 1..=9 {
            let value = compose(f64::from(m), exponent);
            let major = m == 1 || (decades <= 2 && (m == 2 || m == 5)) || (short_span && (m == 3 || m == 7));
            if value < lo * (1.0 - 1e-9) || value > hi * (1.0 + 1e-9) || (m > 1 && decades > 4) {
                continue;
            }
            ticks.push(Tick { value, label: if major && labelled { label(value) } else { String::new() } });
        }
    }
    if ticks.iter().filter(|t| !t.label.is_empty()).count() < 2 {
        // Within a part of a decade there may be no power of ten to name.
        ticks = linear(lo, hi, (false, false), target, false).2;
    }
    (lo, hi, ticks)
}

/// Powers of two, about `target` of them with a label.
fn doublings(lo: f64, hi: f64, target: usize) -> Vec<Tick> {
    let mut first = 1.0;
    while first < lo && first < LARGEST_DOUBLING {
        first *= 2.0;
    }
    while first / 2.0 >= lo && first > 1.0 / LARGEST_DOUBLING {
        first /= 2.0;
    }
    let values = std::iter::successors(Some(first), |v| Some(v * 2.0)).take_while(|v| *v <= hi * (1.0 + 1e-9));
    let values: Vec<f64> = values.take(MOST_TICKS).collect();
    let every = values.len().div_ceil(target.max(2));
    let label = |n: usize, v: f64| if n.is_multiple_of(every) { short(v) } else { String::new() };
    values.into_iter().enumerate().map(|(n, value)| Tick { value, label: label(n, value) }).collect()
}

/// Labels of powers of ten: where one of them is too large or too small to be written out, all are
/// written as powers.
fn decade_labels(first: i32, last: i32) -> impl Fn(f64) -> String {
    let powers = first < -4 || last > 6;
    move |v| match decompose(v) {
        (_, e) if powers && !(0..=1).contains(&e) => power(v),
        _ => short(v),
    }
}

/// The ends of the values that an axis can show.
pub(super) fn extent(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let cover = axis.cover.into_iter().flat_map(|(a, b)| [a, b]);
    let there = values.chain(cover).filter(|&v| usable(v) && (!axis.log || v >= SMALLEST_LOG));
    there.fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|t| t.label.as_str()).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn steps_are_nice() {
        assert_eq!(nice_step(0.7), (1.0, 0));
        assert_eq!(nice_step(1.0), (1.0, 0));
        assert_eq!(nice_step(0.021), (0.025, 3));
        assert_eq!(nice_step(3.0), (5.0, 0));
        assert_eq!(nice_step(6.0), (10.0, 0));
        assert_eq!(nice_step(0.06), (0.1, 1));
    }

    #[test]
    fn linear_axis_rounds_outwards_or_stays() {
        let axis = Axis::default();
        let round = Scale::new(&axis, Some((0.0, 5.9)), true, 5);
        assert_eq!((round.lo, round.hi), (0.0, 6.0));
        assert_eq!(labels(&round), ["0", "2", "4", "6"]);
        let exact = Scale::new(&axis, Some((0.3, 0.9)), false, 5);
        assert_eq!((exact.lo, exact.hi), (0.3, 0.9));
        assert_eq!(labels(&exact), ["0.4", "0.6", "0.8"]);
        let negative = Scale::new(&axis, Some((-3.0, 4.0)), true, 5);
        assert_eq!(labels(&negative), ["\u{2212}4", "\u{2212}2", "0", "2", "4"]);
        let whole = Scale::new(&Axis { whole: true, ..Axis::default() }, Some((0.0, 2.0)), true, 8);
        assert_eq!(labels(&whole), ["0", "1", "2"]);
    }

    #[test]
    fn odd_ranges_still_give_an_axis() {
        let axis = Axis::default();
        for data in [
            None,
            Some((5.0, 5.0)),
            Some((0.0, 0.0)),
            Some((1e16, 1e16 + 2.0)),
            Some((-1e100, 1e100)),
            Some((f64::NAN, 1.0)),
            Some((1e-300, 2e-300)),
            Some((0.0, 5e-324)),
        ] {
            for log in [false, true] {
                let scale = Scale::new(&Axis { log, ..axis.clone() }, data, true, 5).onto(0.0, 100.0);
                assert!(scale.lo < scale.hi, "{data:?} {log}: {scale:?}");
                assert!(!scale.ticks.is_empty() && scale.ticks.len() <= 2_000, "{data:?}: {}", scale.ticks.len());
                let middle = scale.at(scale.lo / 2.0 + scale.hi / 2.0).unwrap();
                assert!((0.0..=100.0).contains(&middle), "{data:?} {log}: {middle}");
            }
        }
    }

    #[test]
    fn logarithmic_axis_has_decades() {
        let axis = Axis { log: true, ..Axis::default() };
        let scale = Scale::new(&axis, Some((0.0012, 0.9)), true, 5).onto(0.0, 300.0);
        assert_eq!(labels(&scale), ["0.001", "0.01", "0.1", "1"]);
        assert!(scale.at(0.01).is_some_and(|p| (p - 100.0).abs() < 1e-9));
        assert!((scale.value(100.0) - 0.01).abs() < 1e-9);
        assert_eq!(scale.at(0.0), None);
        let narrow = Scale::new(&axis, Some((12.0, 80.0)), true, 5);
        assert_eq!(labels(&narrow), ["10", "20", "50", "100"]);
        let wide = Scale::new(&axis, Some((1e-20, 1e20)), true, 5);
        assert!(labels(&wide).len() <= 10, "{:?}", labels(&wide));
    }

    #[test]
    fn one_end_may_be_fixed() {
        let with = |log, ends, data| {
            let s = Scale::new(&Axis { log, ends, ..Axis::default() }, Some(data), true, 5);
            (s.lo, s.hi)
        };
        assert_eq!(with(false, (Some(0.3), None), (0.0, 5.9)), (0.3, 6.0));
        assert_eq!(with(false, (None, Some(5.5)), (0.1, 9.0)), (0.0, 5.5));
        assert_eq!(with(false, (Some(2.0), Some(3.0)), (0.0, 9.0)), (2.0, 3.0));
        assert_eq!(with(true, (None, Some(0.001)), (2e-5, 1.0)), (2e-5, 0.001));
        // All of the data lies beyond it, or it has no place on the axis.
        assert_eq!(with(false, (Some(100.0), None), (0.0, 50.0)), (100.0, 200.0));
        assert_eq!(with(false, (None, Some(-1.0)), (0.0, 50.0)), (-2.0, -1.0));
        assert_eq!(with(true, (Some(0.0), None), (1.0, 50.0)), (1.0, 50.0));
        // The data is as wide as the caller says.
        let wide = Axis { cover: Some((-3.0, 20.0)), ..Axis::default() };
        assert_eq!(extent(&wide, [1.0].into_iter()), Some((-3.0, 20.0)));
    }

    #[test]
    fn labels_of_decades_are_of_one_kind_and_never_lacking() {
        let axis = Axis { log: true, ..Axis::default() };
        let tail = Scale::new(&axis, Some((2e-6, 1.0)), true, 5);
        assert_eq!(labels(&tail), ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"]);
        let sizes = Axis { binary: true, ..axis.clone() };
        assert_eq!(labels(&Scale::new(&sizes, Some((15.0, 260.0)), false, 9)), ["16", "32", "64", "128", "256"]);
        assert_eq!(labels(&Scale::new(&sizes, Some((0.3, 1e4)), false, 5)), ["0.5", "4", "32", "256", "2048"]);
        assert_eq!(labels(&Scale::new(&sizes, Some((17.0, 30.0)), false, 5)), ["20", "30"]);
        assert!(!labels(&Scale::new(&sizes, Some((1e-99, 1e99)), false, 5)).is_empty());
        let low = Scale::new(&axis, Some((2e-5, 1e-3)), true, 5);
        assert_eq!(labels(&low), ["2×10⁻⁵", "5×10⁻⁵", "10⁻⁴", "2×10⁻⁴", "5×10⁻⁴", "10⁻³"]);
        let short = Scale::new(&axis, Some((0.28, 3.2)), false, 5);
        assert_eq!(labels(&short), ["0.3", "0.5", "0.7", "1", "2", "3"]);
        let narrow = Scale::new(&axis, Some((61.0, 78.0)), false, 5);
        assert_eq!(labels(&narrow), ["65", "70", "75"]);
    }

    #[test]
    fn fixed_ends_win_when_they_make_sense() {
        let axis = |range| Axis { range: Some(range), ..Axis::default() };
        assert_eq!(Scale::new(&axis((0.0, 1.5)), Some((0.0, 9.0)), true, 5).hi, 1.5);
        assert_eq!(Scale::new(&axis((3.0, 1.0)), Some((0.0, 9.0)), true, 5).hi, 10.0);
        assert_eq!(Scale::new(&axis((0.0, f64::NAN)), None, true, 5).hi, 1.0);
    }
}
