//! In which unit a formula is, by the units of its names.

use super::expression::{Expression, Function, Node, Operator};
use std::collections::BTreeMap;

/// A unit as a product of powers: `bit/s` is bit by one and s by minus one. None of them is a number, a count or a share.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Powers(BTreeMap<String, i32>);

/// What a part of a formula is measured in.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Dimension {
    /// A number without a metric, which takes the unit of what it is added to.
    Number,
    Of(Powers),
    /// What has no unit by these rules, as the root of a time.
    Unclear,
}

impl Powers {
    fn of(unit: &str) -> Self {
        let mut all = Powers::default();
        let (above, below) = unit.split_once('/').unwrap_or((unit, ""));
        for (part, power) in [(above, 1), (below, -1)] {
            if !part.is_empty() {
                *all.0.entry(part.to_owned()).or_default() += power;
            }
        }
        all.0.retain(|_, power| *power != 0);
        all
    }

    fn times(mut self, other: &Powers, sign: i32) -> Self {
        for (part, power) in &other.0 {
            *self.0.entry(part.clone()).or_default() += sign * power;
        }
        self.0.retain(|_, power| *power != 0);
        self
    }

    /// As it is written where one of these units has it; for a product that has no name none.
    fn name(&self) -> Option<&'static str> {
        ["", "bit/s", "s", "byte", "dB"].into_iter().find(|unit| Powers::of(unit) == *self)
    }

    fn words(&self) -> String {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|(part, power)| if *power == 1 { part.clone() } else { format!("{part}^{power}") })
            .collect();
        if words.is_empty() { "a number".to_owned() } else { format!("`{}`", words.join(" ")) }
    }
}

/// The unit of a formula; none for one that has no name of its own, such as bytes squared.
///
/// # Errors
/// It adds or compares what is measured in different units; in words.
pub fn unit_of(e: &Expression, of: &dyn Fn(&str) -> String) -> Result<Option<&'static str>, String> {
    Ok(match dimension(&e.root, of)? {
        Dimension::Number => Some(""),
        Dimension::Of(powers) => powers.name(),
        Dimension::Unclear => None,
    })
}

fn dimension(node: &Node, of: &dyn Fn(&str) -> String) -> Result<Dimension, String> {
    use Dimension::{Number, Of, Unclear};
    Ok(match node {
        Node::Number(_) => Number,
        Node::Name(name) => Of(Powers::of(&of(name))),
        Node::Negative(one) => dimension(one, of)?,
        Node::Two(operator, a, b) => {
            let (a, b) = (dimension(a, of)?, dimension(b, of)?);
            match operator {
                Operator::Add | Operator::Subtract => alike(a, b)?,
                Operator::Multiply | Operator::Divide => {
                    let sign = if *operator == Operator::Multiply { 1 } else { -1 };
                    match (a, b) {
                        (Unclear, _) | (_, Unclear) => Unclear,
                        (Number, Number) => Number,
                        (Number, Of(b)) => Of(Powers::default().times(&b, sign)),
                        (Of(a), Number) => Of(a),
                        (Of(a), Of(b)) => Of(a.times(&b, sign)),
                    }
                }
                Operator::Power => plain(&[a, b]),
            }
        }
        Node::Call(function, each) => {
            let each = each.iter().map(|n| dimension(n, of)).collect::<Result<Vec<_>, _>>()?;
            match function {
                Function::Min | Function::Max => each.into_iter().try_fold(Number, alike)?,
                Function::Sqrt | Function::Ln | Function::Exp => plain(&each),
            }
        }
    })
}

/// Of numbers and shares alone it is one again.
fn plain(each: &[Dimension]) -> Dimension {
    let number = |d: &Dimension| matches!(d, Dimension::Number) || *d == Dimension::Of(Powers::default());
    if each.iter().all(number) { Dimension::Of(Powers::default()) } else { Dimension::Unclear }
}

fn alike(a: Dimension, b: Dimension) -> Result<Dimension, String> {
    use Dimension::{Number, Of, Unclear};
    match (a, b) {
        (Unclear, _) | (_, Unclear) => Ok(Unclear),
        (Number, other) | (other, Number) => Ok(other),
        (Of(a), Of(b)) if a == b => Ok(Of(a)),
        (Of(a), Of(b)) => Err(format!("{} and {} cannot be added or compared", a.words(), b.words())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(text: &str) -> Result<Option<&'static str>, String> {
        let units = [("rate", "bit/s"), ("time", "s"), ("size", "byte"), ("count", ""), ("level", "dB")];
        let names: Vec<&str> = units.iter().map(|u| u.0).collect();
        let e = Expression::parse(text, &names).unwrap_or_else(|e| panic!("{text}: {e}"));
        unit_of(&e, &|name| units.iter().find(|u| u.0 == name).map_or("", |u| u.1).to_owned())
    }

    #[test]
    fn units_follow_the_formula() {
        for (text, want) in [
            ("rate / rate", Some("")),
            ("rate / count", Some("bit/s")),
            ("3 * time", Some("s")),
            ("1 / count", Some("")),
            ("1 - count", Some("")),
            ("time - 0.03", Some("s")),
            ("max(time, 0.03) + time", Some("s")),
            ("rate * time / rate", Some("s")),
            ("-level", Some("dB")),
            ("(rate - rate) / max(rate, 1)", Some("")),
            ("sqrt(count ^ 2)", Some("")),
            ("1 + 2", Some("")),
            // These have no name here.
            ("size / time", None),
            ("1 / time", None),
            ("rate * time", None),
            ("sqrt(time)", None),
            ("time ^ 2 + size", None),
        ] {
            assert_eq!(unit(text), Ok(want), "{text}");
        }
        for (text, said) in [
            ("rate + time", "`bit s^-1` and `s` cannot be added or compared"),
            ("rate - count", "`bit s^-1` and a number cannot be added or compared"),
            ("min(size, time)", "`byte` and `s` cannot be added or compared"),
            ("rate * time + size", "`bit` and `byte` cannot be added or compared"),
        ] {
            assert_eq!(unit(text), Err(said.to_owned()), "{text}");
        }
    }
}
