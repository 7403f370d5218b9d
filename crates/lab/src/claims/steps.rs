//! A claim as steps: a number of ours each, and what the claim says of it.

use super::decide::Found;
use super::{Claim, Kind, OneOrMany, Sign, Test, Turn};
use crate::quantity::{Gap, How, Point, Quantity, Reader, values_of, words};
use crate::reference::{Elsewhere, Reference};
use crate::statistics::Estimator;

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
        Quantity { metric: c.metric.as_deref().unwrap_or_default(), average: &c.average, compare: c.compare.as_ref() }
    }

    /// The unit of the steps.
    fn unit(&self) -> Result<String, Gap> {
        if self.claim.kind == Kind::Ordering {
            return Ok("%".to_owned());
        }
        let own = self.reader.unit(self.quantity())?;
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
            Kind::NotTestable => Ok(Vec::new()),
        }
    }

    fn estimators(&self, at: &Point) -> Result<Vec<(String, Point, Estimator)>, Gap> {
        let quantity = |(what, p): (String, Point)| {
            let e = self.reader.quantity(self.quantity(), &p)?;
            Ok((what, p, e))
        };
        self.along(at).into_iter().map(quantity).collect()
    }

    /// What the values of others at some points come to, where they have them all.
    fn elsewhere<const N: usize>(&self, at: [&Point; N], factor: f64, f: impl Fn([f64; N]) -> f64) -> Vec<Elsewhere> {
        let one = |r: &Reference| {
            let mut values = [0.0; N];
            for (value, at) in values.iter_mut().zip(at) {
                *value = r.quantity(self.quantity(), at, self.reader.table())?.value;
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
        let fold = c.compare.as_ref().is_some_and(|c| c.how == How::Impact);
        let mut steps = Vec::new();
        for (i, (what, p)) in self.along(at).into_iter().enumerate() {
            let e = match self.reader.quantity(self.quantity(), &p) {
                Err(Gap::Runs { .. }) if self.partial => continue,
                other => other?,
            };
            let there = self.references.iter().filter_map(|r| r.quantity(self.quantity(), &p, self.reader.table()));
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
                _ => {
                    let strict = [c.above.map(Test::Above), c.below.map(Test::Below)];
                    let bounds = strict.into_iter().chain([c.at_least.map(Test::AtLeast), c.at_most.map(Test::AtMost)]);
                    bounds.flatten().for_each(add);
                }
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
            let gain = b.minus(a).ok_or_else(|| Gap::Zero(what.clone()))?;
            let one = Found::new(what, &gain, factor, if up { Test::Above(0.0) } else { Test::Below(0.0) });
            steps.push(one.beside(self.elsewhere([p, q], factor, |[a, b]| b - a)));
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
