//! Values drawn once for each seed: `delay = "10ms..20ms per seed"`.
//!
//! The draw is uniform, from a random stream that has the name of the key: runs of one seed meet one value at all points
//! of a sweep, whatever else is drawn.

use super::names::cable_name;
use crate::document::{Node, Problem, Table, Value};
use anabranch_base::RandomStream;
use anabranch_sim::netem::units;

/// The end of a text of which something is drawn.
const PER_SEED: &str = " per seed";
/// Keys that hold names, files and remarks.
const NOT_VALUES: [&str; 4] = ["name", "note", "file", "text"];

/// Which values of the ranges are taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take {
    Lowest,
    /// Halfway, for what needs some value.
    Middle,
    Highest,
    /// Those of this seed.
    OfSeed(u64),
}

/// A value that was taken from its range.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// Where it is: `topology.path1.delay`. Of several ranges in one text the second has `.2` behind it, and so on.
    pub key: String,
    /// In seconds, bytes, bits a second, as a fraction of one or as a number.
    pub value: f64,
    /// The unit of that.
    pub unit: &'static str,
}

/// Is there a value to be drawn?
pub(super) fn any(table: &Table) -> bool {
    fn within(node: &Node) -> bool {
        match &node.value {
            Value::Text(text) => text.trim_end().ends_with(PER_SEED),
            Value::List(list) => list.iter().any(within),
            Value::Table(table) => any(table),
            _ => false,
        }
    }
    table.iter().any(|(key, node)| !NOT_VALUES.contains(&key) && within(node))
}

/// The keys of the network with a value in place of each range, and which values those are.
pub(super) fn take(network: &Table, take: Take) -> Result<(Table, Vec<Drawn>), Problem> {
    let mut table = network.clone();
    let mut drawn = Vec::new();
    if any(network) {
        let keys: Vec<String> = table.keys().map(str::to_owned).collect();
        for (key, node) in keys.iter().zip(table.values_mut()) {
            Taker { take, drawn: &mut drawn, may: matches!(key.as_str(), "topology" | "flow") }.node(key, node)?;
        }
    }
    Ok((table, drawn))
}

struct Taker<'d> {
    take: Take,
    drawn: &'d mut Vec<Drawn>,
    /// Are values of this part of the file drawn at all?
    may: bool,
}

impl Taker<'_> {
    /// `path` leads to the value.
    fn node(&mut self, path: &str, node: &mut Node) -> Result<(), Problem> {
        let at = node.at.clone();
        match &mut node.value {
            Value::Table(table) => {
                let keys: Vec<String> = table.keys().map(str::to_owned).collect();
                let values = keys.iter().zip(table.values_mut());
                for (key, inner) in values.filter(|(key, _)| !NOT_VALUES.contains(&key.as_str())) {
                    self.node(&format!("{path}.{key}"), inner)?;
                }
                Ok(())
            }
            Value::List(list) => list.iter_mut().enumerate().try_for_each(|(i, one)| {
                let named = one.as_table().and_then(|t| match path {
                    "topology.cable" => cable_name(t),
                    _ => t.text("name").map(str::to_owned),
                });
                self.node(&format!("{path}.{}", named.unwrap_or_else(|| (i + 1).to_string())), one)
            }),
            Value::Text(text) => {
                let Some(ranges) = text.trim_end().strip_suffix(PER_SEED) else { return Ok(()) };
                let wrong = |what: String| Problem::of_key("", path, &at, what);
                if !self.may {
                    return Err(wrong("is one value for all seeds; those of [topology] and of flows are drawn".into()));
                }
                let taken = self.text(path, ranges).map_err(wrong)?;
                node.value = taken;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The text with values in place of ranges.
    fn text(&mut self, path: &str, text: &str) -> Result<Value, String> {
        let mut words: Vec<String> = Vec::new();
        let (mut count, mut alone) = (0, None);
        for word in text.split_whitespace() {
            // `p=1%..2%`
            let (name, body) = word.rsplit_once('=').map_or(("", word), |(name, body)| (name, body));
            let Some((low, high)) = body.split_once("..") else {
                words.push(word.to_owned());
                continue;
            };
            count += 1;
            let range = Range::new(low, high).map_err(|e| format!("`{body}`: {e}"))?;
            let key = if count == 1 { path.to_owned() } else { format!("{path}.{count}") };
            let share = match self.take {
                Take::Lowest => 0.0,
                Take::Middle => 0.5,
                Take::Highest => 1.0,
                Take::OfSeed(seed) => RandomStream::named(seed, &format!("drawn.{key}")).unit(),
            };
            let (taken, value) = range.at(share);
            self.drawn.push(Drawn { key, value, unit: range.kind.unit() });
            words.push(if name.is_empty() { taken.clone() } else { format!("{name}={taken}") });
            alone = name.is_empty().then_some((range.kind, value));
        }
        match (alone, words.len()) {
            _ if count == 0 => Err(format!("`{text}`: needs a range before `per seed`, such as 10ms..20ms")),
            (Some((Kind::Whole, value)), 1) => Ok(Value::Integer(value as i64)),
            (Some((Kind::Real, value)), 1) => Ok(Value::Float(value)),
            _ => Ok(Value::Text(words.join(" "))),
        }
    }
}

/// What a range is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// In nanoseconds.
    Time,
    /// In bits a second.
    Rate,
    /// In percent.
    Share,
    Bytes,
    Packets,
    /// Whole numbers.
    Whole,
    Real,
}

impl Kind {
    fn unit(self) -> &'static str {
        match self {
            Kind::Time => "s",
            Kind::Rate => "bit/s",
            Kind::Bytes => "byte",
            Kind::Share | Kind::Packets | Kind::Whole | Kind::Real => "",
        }
    }

    /// The value of a text of this kind.
    fn read(self, text: &str) -> Option<f64> {
        let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
        match self {
            Kind::Time => units::time(text).ok().map(|t| t.as_nanos() as f64),
            Kind::Rate => Some(units::rate(text).ok()??.bytes_per_sec() as f64 * 8.0),
            Kind::Share => units::share(text).ok().map(|s| s * 100.0),
            Kind::Bytes => units::bytes(text).ok().map(|n| n as f64),
            Kind::Packets => whole(text.strip_suffix('p')?),
            Kind::Whole => whole(text),
            Kind::Real => text.parse().ok().filter(|n: &f64| n.is_finite()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Range {
    kind: Kind,
    low: f64,
    high: f64,
}

impl Range {
    fn new(low: &str, high: &str) -> Result<Self, String> {
        use Kind as K;
        let of = |kind: K| Some(Range { kind, low: kind.read(low)?, high: kind.read(high)? });
        let kinds = [K::Whole, K::Real, K::Share, K::Packets, K::Time, K::Rate, K::Bytes];
        let range = kinds.into_iter().find_map(of).ok_or(
            "needs two values of one kind, such as 10ms..20ms, 1mbit..2mbit, 1%..3%, 32KB..64KB, 40p..60p or 1..8",
        )?;
        if range.low > range.high {
            return Err("the first value must not be above the second".to_owned());
        }
        Ok(range)
    }

    /// The value at this share of the way from the lowest to the highest: as text, and as a number.
    fn at(&self, share: f64) -> (String, f64) {
        let between = self.low + share * (self.high - self.low);
        // Each whole number of a range is as likely as the others.
        let whole = || (self.low + (share * (self.high - self.low + 1.0)).floor()).min(self.high);
        match self.kind {
            Kind::Time => (format!("{}ns", between.round()), between.round() / 1e9),
            Kind::Rate => {
                let bits = (between / 8.0).round().max(1.0) * 8.0;
                (format!("{bits}bit"), bits)
            }
            Kind::Share => {
                let percent = (between * 1e6).round() / 1e6;
                (format!("{percent}%"), percent / 100.0)
            }
            Kind::Bytes => (format!("{}B", whole()), whole()),
            Kind::Packets => (format!("{}p", whole()), whole()),
            Kind::Whole => (whole().to_string(), whole()),
            Kind::Real => (between.to_string(), between),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(low: &str, high: &str) -> [String; 3] {
        [0.0, 0.5, 1.0].map(|share| Range::new(low, high).expect("a range").at(share).0)
    }

    #[test]
    fn every_kind_of_value_has_ranges() {
        assert_eq!(at("10ms", "0.02s"), ["10000000ns", "15000000ns", "20000000ns"]);
        assert_eq!(at("0", "20us"), ["0ns", "10000ns", "20000ns"]);
        assert_eq!(at("800kbit", "2mbit"), ["800000bit", "1400000bit", "2000000bit"]);
        assert_eq!(at("0.1%", "0.3%"), ["0.1%", "0.2%", "0.3%"]);
        assert_eq!(at("1KB", "1026"), ["1024B", "1025B", "1026B"]);
        assert_eq!(at("40p", "60p"), ["40p", "50p", "60p"]);
        assert_eq!(at("1", "2"), ["1", "2", "2"]);
        assert_eq!(at("1.5", "2"), ["1.5", "1.75", "2"]);
        for (low, high) in [("10ms", "1mbit"), ("1", "ms"), ("", "2"), ("1%", "2"), ("1mbps", "2mbps")] {
            assert!(Range::new(low, high).expect_err(low).starts_with("needs two values of one kind"), "{low}..{high}");
        }
        assert_eq!(Range::new("20ms", "10ms").expect_err("falls"), "the first value must not be above the second");
    }

    #[test]
    fn whole_numbers_are_equally_likely_and_times_even() {
        let range = Range::new("1", "4").expect("a range");
        let mut found = [0; 4];
        (0..4_000).for_each(|seed| {
            found[range.at(RandomStream::named(seed, "drawn.x").unit()).1 as usize - 1] += 1;
        });
        // Four standard deviations of a count.
        assert!(found.iter().all(|n: &i32| (n - 1_000).abs() < 110), "{found:?}");
        let time = Range::new("10ms", "20ms").expect("a range");
        let draws = (0..4_000).map(|seed| time.at(RandomStream::named(seed, "drawn.x").unit()).1);
        let mean = draws.sum::<f64>() / 4_000.0;
        assert!((mean - 0.015).abs() < 4.0 * 0.01 / (12.0_f64 * 4_000.0).sqrt(), "{mean}");
    }
}
