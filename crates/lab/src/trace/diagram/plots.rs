//! The plots of a diagram. All share their time axis.

use super::numbers::Numbers;
use super::{Options, name};
use crate::trace::line::{Cause, Line, OnLink};
use anabranch_report::{Drawing, LinePlot, Plot};
use std::collections::BTreeMap;

/// Colours of the causes of losses and of the acknowledgements; paths have the first ones.
const RANDOM: usize = 3;
const QUEUE: usize = 4;
const OTHER: usize = 6;
const INK: usize = 7;
/// Colours that paths may have, without those above.
const PATHS: [usize; 4] = [0, 1, 2, 5];

type Curve = Vec<(f64, f64)>;

fn color(path: usize) -> usize {
    PATHS.get(path % PATHS.len()).copied().unwrap_or(0)
}

pub(super) fn all(lines: &[&Line], paths: &[String], flow: &str, numbers: Numbers, options: &Options) -> Vec<Drawing> {
    let range = range(lines, options);
    let mut all = vec![sequence(lines, paths, numbers, range), windows(lines, paths, range)];
    all.push(over_paths(numbers.flight(), "outstanding", "kB", lines, paths, range, |l| match l {
        Line::Path { in_flight, .. } => Some(*in_flight as f64 / 1e3),
        _ => None,
    }));
    all.push(times(lines, paths, range));
    all.extend(queues(lines, paths, flow, range));
    all
}

/// The times asked for, as far as something happened.
fn range(lines: &[&Line], options: &Options) -> (f64, f64) {
    let times = || lines.iter().filter_map(|l| super::about(l)).map(|a| a.0);
    let (low, high) = times().fold((f64::INFINITY, 0.0f64), |a, t| (a.0.min(t), a.1.max(t)));
    let from = if options.from > 0.0 { options.from } else { low.min(high) };
    let to = if options.to.is_finite() { options.to } else { high };
    if to > from { (from, to) } else { (from, from + 1e-3) }
}

fn base(title: &str, unit_name: &str, unit: &str, (from, to): (f64, f64)) -> LinePlot {
    LinePlot::new(title).x("time", "s").y(unit_name, unit).x_range(from, to).height(150.0)
}

fn sequence(lines: &[&Line], paths: &[String], numbers: Numbers, range: (f64, f64)) -> Drawing {
    let mut sent: BTreeMap<usize, Curve> = BTreeMap::new();
    let mut again: BTreeMap<usize, Curve> = BTreeMap::new();
    let mut lost: BTreeMap<&str, (usize, Curve)> = BTreeMap::new();
    let mut acknowledged: Curve = Vec::new();
    for line in lines {
        let carried = |t: &f64| numbers.carried(line).into_iter().map(|n| (*t, n)).collect::<Curve>();
        match line {
            Line::Data { t, path, .. } => sent.entry(*path).or_default().extend(carried(t)),
            Line::Retransmission { t, path, .. } => again.entry(*path).or_default().extend(carried(t)),
            Line::Lost { t, cause, tsn, segment, .. } if !tsn.is_empty() || segment.is_some() => {
                let color = match cause {
                    Cause::RandomLoss => RANDOM,
                    Cause::Queue => QUEUE,
                    _ => OTHER,
                };
                lost.entry(cause.word()).or_insert((color, Vec::new())).1.extend(carried(t));
            }
            Line::Sack { t, .. } | Line::Ack { t, .. } => {
                // Acknowledgements may overtake each other; what is acknowledged stays so.
                let before = acknowledged.last().map_or(f64::NEG_INFINITY, |a| a.1);
                acknowledged.extend(numbers.acknowledged(line).map(|n| (*t, n.max(before))));
            }
            _ => {}
        }
    }
    let (title, axis) = numbers.titles();
    let mut plot = base(title, axis, "", range).height(340.0).fit_y();
    plot = plot.series("acknowledged", acknowledged).steps().color(INK);
    for (path, curve) in sent {
        plot = plot.points(format!("{}: sent", name(paths, path)), curve).color(color(path));
    }
    for (path, curve) in again {
        plot = plot.points(format!("{}: sent again", name(paths, path)), curve).color(color(path)).hollow();
    }
    for (cause, (color, curve)) in lost {
        plot = plot.points(format!("lost: {cause}"), curve).color(color);
    }
    plot.draw()
}

/// Windows as steps, thresholds dashed.
fn windows(lines: &[&Line], paths: &[String], range: (f64, f64)) -> Drawing {
    let mut all: BTreeMap<usize, (Curve, Curve)> = BTreeMap::new();
    for line in lines {
        if let Line::Path { t, path, cwnd, ssthresh, .. } = line {
            let curves = all.entry(*path).or_default();
            curves.0.push((*t, *cwnd as f64 / 1e3));
            curves.1.push((*t, ssthresh.map_or(f64::NAN, |s| s as f64 / 1e3)));
        }
    }
    let mut plot = base("Congestion windows", "window", "kB", range).height(190.0);
    for (path, (cwnd, ssthresh)) in all {
        let name = name(paths, path);
        plot = plot.series(format!("{name}: cwnd"), cwnd).steps().color(color(path));
        if ssthresh.iter().any(|s| s.1.is_finite()) {
            plot = plot.series(format!("{name}: ssthresh"), ssthresh).steps().dashed().color(color(path));
        }
    }
    plot.draw()
}

fn over_paths(
    title: &str,
    axis: &str,
    unit: &str,
    lines: &[&Line],
    paths: &[String],
    range: (f64, f64),
    value: impl Fn(&Line) -> Option<f64>,
) -> Drawing {
    let mut all: BTreeMap<usize, Curve> = BTreeMap::new();
    for line in lines {
        if let Line::Path { t, path, .. } = line
            && let Some(v) = value(line)
        {
            all.entry(*path).or_default().push((*t, v));
        }
    }
    let plot = base(title, axis, unit, range);
    all.into_iter().fold(plot, |p, (path, c)| p.series(name(paths, path), c).steps().color(color(path))).draw()
}

/// Smoothed round-trip times as lines, timeouts dashed.
fn times(lines: &[&Line], paths: &[String], range: (f64, f64)) -> Drawing {
    let mut all: BTreeMap<usize, (Curve, Curve)> = BTreeMap::new();
    for line in lines {
        if let Line::Path { t, path, srtt, rto, .. } = line {
            let curves = all.entry(*path).or_default();
            // Zero says that there is no sample yet.
            curves.0.push((*t, if *srtt > 0.0 { srtt * 1e3 } else { f64::NAN }));
            curves.1.push((*t, rto * 1e3));
        }
    }
    let mut plot = base("Round-trip times and timeouts", "time", "ms", range).log_y();
    for (path, (srtt, rto)) in all {
        let name = name(paths, path);
        plot = plot.series(format!("{name}: smoothed"), srtt).steps().color(color(path));
        plot = plot.series(format!("{name}: timeout"), rto).steps().dashed().color(color(path));
    }
    plot.draw()
}

/// The queues on the flow's way that were the longest; of a log without the ways, of all.
fn queues(lines: &[&Line], paths: &[String], flow: &str, range: (f64, f64)) -> Option<Drawing> {
    const MOST: usize = 6;
    let mut all: BTreeMap<&str, (&[OnLink], Curve)> = BTreeMap::new();
    for line in lines {
        if let Line::Queue { t, link, paths, packets, .. } = line {
            all.entry(link).or_insert((paths, Vec::new())).1.push((*t, *packets as f64));
        }
    }
    let known = all.values().any(|q| !q.0.is_empty());
    let longest = |c: &Curve| c.iter().map(|p| p.1).fold(0.0, f64::max);
    let mut all: Vec<_> = all.into_iter().filter(|q| !known || q.1.0.iter().any(|p| p.flow == flow)).collect();
    all.sort_by(|a, b| longest(&b.1.1).total_cmp(&longest(&a.1.1)).then(a.0.cmp(b.0)));
    all.truncate(MOST);
    if all.is_empty() {
        return None;
    }
    let plot = base("Queues on its way that were the longest", "packets", "", range);
    let label = |link: &str, on: &[OnLink]| {
        let mine: Vec<String> = on.iter().filter(|p| p.flow == flow).map(|p| name(paths, p.path)).collect();
        if mine.is_empty() { link.to_owned() } else { format!("{link} ({})", mine.join(", ")) }
    };
    Some(all.into_iter().fold(plot, |p, (link, (on, c))| p.series(label(link, on), c).steps()).draw())
}
