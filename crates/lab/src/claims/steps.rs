//! A claim as steps: a number of ours each, and what the claim says of it.

use super::decide::Found;
use super::{Claim, Constant, Kind, OneOrMany, Sign, Test, Turn};
use crate::numbers::number_text;
use crate::quantity::{Expression, Gap, How, Point, Quantity, Reader, Take, convert, number_of, values_of, words};
use crate::reference::{Elsewhere, Reference};
use crate::statistics::Measured;

/// The steps of a claim in one scenario, and the unit of their numbers.
///
/// `partial` leaves out what a form with fewer points has no runs for.
pub(super) fn steps(
    claim: &Claim,
    reader: &Reader<'_>,
    partial: bool,
    references: &[Reference],
) -> Result<(Vec<Found>, String), Gap> {
    let here = Here { claim, reader, partial, references };
    let unit = here.unit()?;
    let mut all = Vec::new();
    for at in here.places() {
        all.extend(here.at(&at)?);
    }
    Ok((all, unit))
}

struct Here<'a> {
    claim: &'a Claim,
    reader: &'a Reader<'a>,
    partial: bool,
    references: &'a [Reference],
}

impl Here<'_> {
    fn quantity(&self) -> Quantity<'_> {
        let c = self.claim;
        let metric = c.metric.as_deref().unwrap_or_default();
        Quantity { metric, average: &c.average, compare: c.compare.as_ref(), take: c.take() }
    }

    /// The unit of the steps.
    fn unit(&self) -> Result<String, Gap> {
        if matches!(self.claim.kind, Kind::Ordering | Kind::Formula) {
            return Ok("%".to_owned());
        }
        let own = if self.claim.kind == Kind::Variation { "" } else { self.reader.unit(self.quantity())? };
        Ok(self.claim.unit.clone().unwrap_or_else(|| own.to_owned()))
    }

    /// The points of `at`, once for each combination of `each`.
    fn places(&self) -> Vec<Point> {
        let mut places = vec![self.claim.at.clone()];
        for (key, values) in &self.claim.each {
            places = places
                .iter()
                .flat_map(|p| {
                    values.iter().map(|v| {
                        let mut p = p.clone();
                        p.insert(key.clone(), v.clone());
                        p
                    })
                })
                .collect();
        }
        places
    }

    /// The values along `over`; one empty entry without it.
    fn along(&self, at: &Point) -> Vec<(String, Point)> {
        let c = self.claim;
        let Some(over) = &c.over else { return vec![(words(at), at.clone())] };
        let values = if c.values.is_empty() { values_of(self.reader.table(), over) } else { c.values.clone() };
        values
            .into_iter()
            .map(|v| {
                let mut p = at.clone();
                p.insert(over.clone(), v);
                (words(&p), p)
            })
            .collect()
    }

    fn at(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        match self.claim.kind {
            Kind::Value | Kind::Bound | Kind::Equal | Kind::Signs => self.each_value(at),
            Kind::Ordering => self.ordering(at),
            Kind::Increasing | Kind::Decreasing | Kind::Shape => self.trend(at),
            Kind::ShrinkingGain => self.gains(at),
            Kind::Formula => self.formula(at),
            Kind::Inequality => self.inequality(at),
            Kind::Variation => self.variation(at),
            Kind::NotTestable => Ok(Vec::new()),
        }
    }

    fn estimators(&self, at: &Point) -> Result<Vec<(String, Point, Measured)>, Gap> {
        let quantity = |(what, p): (String, Point)| {
            let e = self.reader.quantity(self.quantity(), &p)?;
            Ok((what, p, e))
        };
        self.along(at).into_iter().map(quantity).collect()
    }

    /// What the values of others at some points come to, where they have them all.
    fn elsewhere<const N: usize>(&self, at: [&Point; N], factor: f64, f: impl Fn([f64; N]) -> f64) -> Vec<Elsewhere> {
        let q = self.quantity();
        if q.take != Take::Mean {
            return Vec::new();
        }
        let one = |r: &Reference| {
            let mut values = [0.0; N];
            for (value, at) in values.iter_mut().zip(at) {
                *value = r.quantity(q, at, self.reader.table())?.value;
            }
            let value = f(values);
            value.is_finite().then(|| Elsewhere { name: r.name.clone(), value, interval: None }.scaled(factor))
        };
        self.references.iter().filter_map(one).collect()
    }

    fn factor(&self) -> Result<f64, Gap> {
        self.reader.factor(self.quantity(), self.claim.unit.as_deref())
    }

    fn each_value(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let factor = self.factor()?;
        let fold = c.is_folded();
        let mut steps = Vec::new();
        for (i, (what, p)) in self.along(at).into_iter().enumerate() {
            let e = match self.reader.quantity(self.quantity(), &p) {
                Err(Gap::Runs { .. }) if self.partial => continue,
                other => other?,
            };
            let there = self.references.iter().filter(|_| c.take() == Take::Mean);
            let there = there.filter_map(|r| r.quantity(self.quantity(), &p, self.reader.table()));
            let elsewhere: Vec<Elsewhere> = there.map(|e| e.scaled(factor)).collect();
            let one = |test| Found::new(what.clone(), &e, factor, test).folded(fold).beside(elsewhere.clone());
            let mut add = |test| steps.push(one(test));
            match c.kind {
                Kind::Value => {
                    if let Some(printed) = c.printed.as_ref().and_then(|p| p.all().get(i)) {
                        let further = c.printed_runs.and_then(|runs| e.of_further(runs as usize));
                        let further = further.map(|s| s.scaled(factor));
                        steps.push(Found { further, ..one(Test::Is(*printed, c.tolerance)) });
                    }
                }
                Kind::Signs => match c.signs.get(i) {
                    Some(Sign::Positive) => add(Test::Above(0.0)),
                    Some(Sign::NotPositive) => add(Test::AtMost(0.0)),
                    None => {}
                },
                Kind::Equal => add(Test::Within(c.tolerance.unwrap_or(0.0))),
                _ => self.bounds().for_each(add),
            }
        }
        Ok(steps)
    }

    /// Relative differences, in per cent, between each group of `order` and the next.
    fn ordering(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let key = c.key.clone().unwrap_or_default();
        // Without a margin each is higher than the next; with one, even of 0, it is not lower by more than that.
        let test = c.margin.map_or(Test::Above(0.0), |m| Test::AtLeast(-m));
        let mut steps = Vec::new();
        for (what, p) in self.along(at) {
            let there = |v: &String| {
                let mut p = p.clone();
                p.insert(key.clone(), v.clone());
                p
            };
            let value = |v: &String| self.reader.quantity(self.quantity(), &there(v));
            for pair in c.order.windows(2) {
                let [high, low] = pair else { continue };
                for (a, b) in high.all().iter().flat_map(|a| low.all().iter().map(move |b| (a, b))) {
                    let gain = value(a)?.relative_to(&value(b)?).ok_or_else(|| Gap::Zero(what.clone()))?;
                    let elsewhere = self.elsewhere([&there(a), &there(b)], 100.0, |[a, b]| a / b - 1.0);
                    let one = Found::new(format!("{what}: {a} over {b}"), &gain, 100.0, test);
                    steps.push(one.beside(elsewhere));
                }
            }
        }
        Ok(steps)
    }

    fn trend(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let factor = self.factor()?;
        let all = self.estimators(at)?;
        let mut steps = Vec::new();
        for (i, pair) in all.windows(2).enumerate() {
            let [(from, p, a), (to, q, b)] = pair else { continue };
            let up = match c.kind {
                Kind::Increasing => true,
                Kind::Decreasing => false,
                _ => c.turns.get(i) != Some(&Turn::Down),
            };
            let what = format!("{from} to {}", self.tail(to));
            // What vanished at both cannot shrink any more.
            let distance = c.compare.as_ref().is_some_and(|c| c.how == How::Distance);
            if distance && [a, b].iter().all(|m| m.known().and_then(|k| k.exact()) == Some(0.0)) {
                continue;
            }
            let gain = b.minus(a).ok_or_else(|| Gap::Zero(what.clone()))?;
            let one = Found::new(what, &gain, factor, if up { Test::Above(0.0) } else { Test::Below(0.0) });
            // Of distances one is less than the other for sure where neither's sign could turn that round.
            let turned = a.clone().line(-1.0, 0.0).and_then(|a| b.minus(&a)).filter(|_| distance);
            let turned = turned.and_then(|sum| sum.known()).map(|k| k.scaled(factor));
            steps.push(Found { turned, ..one.beside(self.elsewhere([p, q], factor, |[a, b]| b - a)) });
        }
        Ok(steps)
    }

    fn gains(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let factor = self.factor()?;
        let all = self.estimators(at)?;
        let mut steps = Vec::new();
        for three in all.windows(3) {
            let [(from, p, a), (middle, q, b), (to, r, c)] = three else { continue };
            let (middle, to) = (self.tail(middle), self.tail(to));
            let from = self.tail(from);
            let place = if at.is_empty() { String::new() } else { format!("{}: ", words(at)) };
            let what = format!("{place}gain {middle} to {to} minus gain {from} to {middle}");
            let second = c.minus(b).zip(b.minus(a)).and_then(|(later, earlier)| later.minus(&earlier));
            let second = second.ok_or_else(|| Gap::Zero(what.clone()))?;
            let elsewhere = self.elsewhere([p, q, r], factor, |[a, b, c]| (c - b) - (b - a));
            steps.push(Found::new(what, &second, factor, Test::Below(0.0)).beside(elsewhere));
        }
        Ok(steps)
    }

    /// How far the metric is from what the formula gives, in per cent of that.
    fn formula(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let factor = self.factor()?;
        let own = self.reader.unit(self.quantity())?;
        let unit = c.unit.as_deref().unwrap_or(own);
        let keys = self.reader.table().keys.iter().map(String::as_str);
        let known: Vec<&str> = c.constants.keys().map(String::as_str).chain(keys).collect();
        let text = c.formula.as_deref().unwrap_or_default();
        let formula = Expression::parse(text, &known).map_err(|e| Gap::Formula(e.to_string()))?;
        let mut steps = Vec::new();
        for (what, p) in self.along(at) {
            let of = |name: &str| {
                let constant = c.constants.get(name).and_then(Constant::value);
                constant.or_else(|| p.get(name).and_then(|v| number_of(v)))
            };
            let wanted = formula.value(&of);
            if !wanted.is_finite() || wanted == 0.0 {
                return Err(Gap::Formula(format!("gives no number to compare with at {what}")));
            }
            let e = match self.reader.quantity(self.quantity(), &p) {
                Err(Gap::Runs { .. }) if self.partial => continue,
                other => other?,
            };
            let apart = e.line(factor / wanted, -1.0).ok_or_else(|| Gap::Zero(what.clone()))?;
            let elsewhere = self.elsewhere([&p], 100.0, |[a]| a * factor / wanted - 1.0);
            let what = format!("{what}: away from {} {unit}", number_text(wanted)).trim_end().to_owned();
            let test = Test::Within(c.tolerance.unwrap_or(0.0));
            steps.push(Found::new(what, &apart, 100.0, test).beside(elsewhere));
        }
        Ok(steps)
    }

    /// By how much the metric is above so many times the other one, seed by seed.
    fn inequality(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let q = self.quantity();
        let other = Quantity { metric: c.than.as_deref().unwrap_or_default(), ..q };
        let (factor, times) = (self.factor()?, c.factor.unwrap_or(1.0));
        let others = self.reader.factor(other, Some(self.reader.unit(q)?))?;
        let test = c.margin.map_or(Test::Above(0.0), |m| Test::AtLeast(-m));
        let mut steps = Vec::new();
        for (what, p) in self.along(at) {
            let both = self.reader.quantity(q, &p).and_then(|a| Ok((a, self.reader.quantity(other, &p)?)));
            let (a, b) = match both {
                Err(Gap::Runs { .. }) if self.partial => continue,
                other => other?,
            };
            let above = b.line(times * others, 0.0).and_then(|b| a.minus(&b)).ok_or_else(|| Gap::Zero(what.clone()))?;
            steps.push(Found::new(what, &above, factor, test));
        }
        Ok(steps)
    }

    /// The coefficient of variation over `over`, or what it comes to on both sides of a comparison.
    fn variation(&self, at: &Point) -> Result<Vec<Found>, Gap> {
        let c = self.claim;
        let bare = Quantity { compare: None, ..self.quantity() };
        let over = c.over.as_deref().unwrap_or_default();
        let place = if at.is_empty() { String::new() } else { format!("{}: ", words(at)) };
        let what = format!("{place}variation over {over}");
        let of = |at: &Point| {
            let parts = self.along(at).into_iter().map(|(_, p)| match self.reader.quantity(bare, &p) {
                Err(Gap::Runs { .. }) if self.partial => Ok(None),
                other => other.map(Some),
            });
            let parts: Vec<Measured> = parts.filter_map(Result::transpose).collect::<Result<_, _>>()?;
            Measured::variation(&parts).ok_or_else(|| Gap::Zero(what.clone()))
        };
        let e = match &c.compare {
            None => of(at)?,
            Some(c) => {
                let side = |value: &String| {
                    let mut at = at.clone();
                    at.insert(c.key.clone(), value.clone());
                    of(&at)
                };
                c.how.of(&side(&c.a)?, &side(&c.b)?).ok_or_else(|| Gap::Zero(what.clone()))?
            }
        };
        let factor = convert("", c.unit.as_deref().unwrap_or_default()).unwrap_or(1.0);
        let fold = c.is_folded();
        let one = |test| Found::new(what.clone(), &e, factor, test).folded(fold);
        Ok(self.bounds().map(one).collect())
    }

    fn bounds(&self) -> impl Iterator<Item = Test> {
        let c = self.claim;
        let strict = [c.above.map(Test::Above), c.below.map(Test::Below)];
        strict.into_iter().chain([c.at_least.map(Test::AtLeast), c.at_most.map(Test::AtMost)]).flatten()
    }

    /// What a place has that the one before it has not: the value of `over`.
    fn tail(&self, what: &str) -> String {
        let head = self.claim.over.as_ref().map(|k| format!("{k} ")).unwrap_or_default();
        let part = what.split(", ").find_map(|p| p.strip_prefix(&head));
        part.unwrap_or(what).to_owned()
    }
}

impl<T: Clone> OneOrMany<T> {
    /// The values as a list.
    pub fn to_vec(&self) -> Vec<T> {
        self.all().to_vec()
    }
}

#[cfg(test)]
mod tests;
