//! `phases`: parts of a run that metrics can be asked for, `main.goodput@jump`; and `measure-from` and `measure-to`, the
//! part that all others are of.

use super::units::Span;
use crate::document::{Part, Problem, Table};
use crate::metrics::Window;
use anabranch_base::Duration;
use anabranch_sim::netem::nearest;
use std::collections::BTreeMap;

/// The phases that metrics are asked for, in the order in which they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Asked(Vec<String>);

impl Asked {
    /// The number of the window of a metric's phase among those of a plan, 0 being the part of the run that is measured.
    ///
    /// # Errors
    /// The scenario has no such phase.
    pub fn window(&mut self, base: &Table, phase: Option<&str>) -> Result<usize, String> {
        let Some(phase) = phase else { return Ok(0) };
        let known: Vec<&str> = base.table("phases").map(|t| t.keys().collect()).unwrap_or_default();
        if !known.contains(&phase) {
            return Err(match nearest(phase, known.iter().copied()) {
                Some(near) => format!("no phase is called `{phase}`; did you mean `{near}`?"),
                None if known.is_empty() => format!("the scenario needs `phases`, such as {{ {phase} = \"5s-10s\" }}"),
                None => format!("no phase is called `{phase}`; there are {}", known.join(", ")),
            });
        }
        let place = self.0.iter().position(|p| p == phase).unwrap_or_else(|| {
            self.0.push(phase.to_owned());
            self.0.len() - 1
        });
        Ok(place + 1)
    }
}

/// What the file says of them.
pub(super) struct Said {
    pub duration: Duration,
    pub from: Option<Duration>,
    pub to: Option<Duration>,
    pub phases: BTreeMap<String, Span>,
}

impl Said {
    /// The windows of the metrics, by their numbers, with the names of phases.
    pub fn windows(&self, whole: Part<'_>, asked: &Asked) -> Result<Vec<(String, Window)>, Problem> {
        let from = self.from.unwrap_or(Duration::ZERO);
        if from >= self.duration {
            return Err(whole.at("measure-from", "must come before the end, `duration`"));
        }
        let to = self.to.unwrap_or(self.duration);
        if to > self.duration {
            return Err(whole.at("measure-to", "comes after the end, `duration`"));
        }
        if to <= from {
            return Err(whole.at("measure-to", "must come after `measure-from`"));
        }
        for (name, span) in &self.phases {
            let wrong = |what: &str| Err(whole.at(&format!("phases.{name}"), what));
            // The sign before a phase and the dots of metrics must be found again.
            if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) {
                return wrong("the name of a phase needs letters, digits, `-` and `_`");
            }
            if span.from == span.until {
                return wrong("begins where it ends: there is nothing to measure");
            }
            if span.until > self.duration {
                return wrong("ends after the run, `duration`");
            }
        }
        let mut all = vec![("".to_owned(), Window::new(from, to, self.duration))];
        for name in &asked.0 {
            let gone = || whole.wrong(format!("the phase `{name}` is missing, of which metrics are asked"));
            let span = self.phases.get(name).ok_or_else(gone)?;
            all.push((name.clone(), Window::new(span.from, span.until, self.duration)));
        }
        Ok(all)
    }
}
