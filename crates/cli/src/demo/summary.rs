//! `summary.json`: what scripts read. Fields are only ever added.

use super::outcome::Outcome;
use super::plan::{BEST_PROFILE, LATENCY, NETWORKS};
use crate::control::Control;
use serde::Serialize;

/// Version of the format; it rises when a field changes its meaning.
const VERSION: u32 = 1;

/// The control, before the runs and beside them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Controls {
    /// The idle emulator's figures; `ok` and `reason` cover the measurements beside the runs too.
    #[serde(flatten)]
    pub overall: Control,
    /// Figures of another idle emulator, measured while the runs were going on, one for each group of runs.
    pub beside_runs: Vec<Control>,
}

impl Controls {
    /// Judges both kinds together.
    pub fn new(idle: Control, beside_runs: Vec<Control>) -> Self {
        let reason = idle.reason.clone().or_else(|| {
            beside_runs.iter().find_map(|c| c.reason.as_ref()).map(|reason| format!("beside the runs, {reason}"))
        });
        let overall = Control { ok: reason.is_none(), reason, ..idle };
        Controls { overall, beside_runs }
    }
}

/// An emulated network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Its name.
    pub name: &'static str,
    /// The link in the words of `anabranch emulate`.
    pub link: String,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Of the format.
    pub version: u32,
    /// Of the program.
    pub anabranch: &'static str,
    /// The command line.
    pub command: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Seconds of media asked for.
    pub seconds: u32,
    /// From input to output.
    pub latency_ms: u64,
    /// False when the networks were perfect.
    pub impairments: bool,
    /// The networks.
    pub networks: Vec<NetworkSummary>,
    /// Is the machine fit?
    pub control: Controls,
    /// Profile of the run `best`, and of the runs over one network.
    pub best: &'static str,
    /// The runs; none when the control failed before them.
    pub runs: Vec<Outcome>,
    /// What it comes to, in a sentence.
    pub verdict: String,
}

/// How a demo came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// As it should.
    Pass,
    /// Better, but by less than it should.
    Weak,
    /// Not as it should.
    Fail,
    /// Nothing to compare.
    None,
}

/// What the demo was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The command line.
    pub command: String,
    /// See [`Summary::seed`].
    pub seed: u64,
    /// See [`Summary::seconds`].
    pub seconds: u32,
    /// See [`Summary::impairments`].
    pub impairments: bool,
}

impl Summary {
    /// Puts everything together.
    pub fn new(asked: Asked, control: Controls, runs: Vec<Outcome>) -> Self {
        let link = |n: &super::plan::Network| NetworkSummary { name: n.name, link: n.words(asked.impairments) };
        let mut summary = Summary {
            version: VERSION,
            anabranch: env!("CARGO_PKG_VERSION"),
            command: asked.command,
            seed: asked.seed,
            seconds: asked.seconds,
            latency_ms: LATENCY.as_millis(),
            impairments: asked.impairments,
            networks: NETWORKS.iter().map(link).collect(),
            control,
            best: BEST_PROFILE,
            runs,
            verdict: String::new(),
        };
        summary.verdict = summary.judge().1;
        summary
    }

    /// The run with this name.
    pub fn run(&self, name: &str) -> Option<&Outcome> {
        self.runs.iter().find(|r| r.name == name)
    }

    /// The better one of the runs over one network.
    fn better_single(&self) -> Option<&Outcome> {
        let alone = NETWORKS.iter().filter_map(|n| self.run(n.name));
        alone.min_by_key(|r| r.frames_unusable)
    }

    /// The judgement and a sentence that says why.
    pub fn judge(&self) -> (Judgement, String) {
        if let (true, Some(reason)) = (self.impairments || self.runs.is_empty(), &self.control.overall.reason) {
            return (Judgement::Fail, format!("control failed: {reason}"));
        }
        if !self.impairments {
            return match self.runs.iter().find(|r| !r.identical) {
                Some(r) => (Judgement::Fail, format!("run {}: the received file differs from the sent one", r.name)),
                None => (Judgement::Pass, "every received file equals the sent one, byte for byte".into()),
            };
        }
        let (Some(best), Some(single)) = (self.run("best"), self.better_single()) else {
            return (Judgement::None, "no comparison: the run best or a network alone is missing".into());
        };
        let judgement = match best.frames_unusable {
            n if n >= single.frames_unusable => Judgement::Fail,
            n if n * 2 > single.frames_unusable => Judgement::Weak,
            _ => Judgement::Pass,
        };
        let text = format!(
            "both networks together (best) left {} of {} frames unusable; the better one alone ({}) left {}",
            best.frames_unusable, best.frames, single.name, single.frames_unusable
        );
        (judgement, text)
    }

    /// As JSON, with a newline at the end.
    ///
    /// # Errors
    /// None with these types.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(p99: f64) -> Control {
        Control {
            ok: p99 < 5.0,
            reason: (p99 >= 5.0).then(|| "delays are off".to_owned()),
            packets: 12_001,
            packets_lost: 0,
            machine_loss: 0.0,
            delay_error_p50_ms: 0.1,
            delay_error_p99_ms: p99,
            delay_error_max_ms: 9.0,
        }
    }

    fn run(name: &str, unusable: u64, identical: bool) -> Outcome {
        Outcome { name: name.into(), frames: 375, frames_unusable: unusable, identical, ..Outcome::default() }
    }

    fn judged(impairments: bool, control: Controls, runs: Vec<Outcome>) -> (Judgement, String) {
        let asked = Asked { command: "anabranch demo".into(), seed: 1, seconds: 15, impairments };
        Summary::new(asked, control, runs).judge()
    }

    fn fit() -> Controls {
        Controls::new(control(0.4), vec![control(1.0), control(1.2)])
    }

    #[test]
    fn best_is_judged_by_the_better_network() {
        let of =
            |best| judged(true, fit(), vec![run("wlan", 200, false), run("3g", 370, false), run("best", best, false)]);
        assert_eq!(of(100).0, Judgement::Pass);
        assert_eq!(of(101).0, Judgement::Weak);
        assert_eq!(of(200).0, Judgement::Fail);
        assert!(of(3).1.contains("3 of 375") && of(3).1.contains("(wlan) left 200"), "{}", of(3).1);
        assert_eq!(judged(true, fit(), vec![run("best", 3, false)]).0, Judgement::None);
    }

    #[test]
    fn a_control_that_failed_anywhere_spoils_the_figures() {
        let beside = Controls::new(control(0.4), vec![control(1.0), control(7.0)]);
        assert!(!beside.overall.ok);
        let (judgement, text) = judged(true, beside, vec![run("wlan", 200, false), run("best", 3, false)]);
        assert_eq!((judgement, text.as_str()), (Judgement::Fail, "control failed: beside the runs, delays are off"));
        let before = Controls::new(control(7.0), Vec::new());
        assert_eq!(judged(true, before, Vec::new()).1, "control failed: delays are off");
    }

    #[test]
    fn without_impairments_only_the_bytes_count() {
        let busy = || Controls::new(control(7.0), vec![control(7.0)]);
        assert_eq!(judged(false, busy(), vec![run("wlan", 0, true), run("best", 0, true)]).0, Judgement::Pass);
        let (judgement, text) = judged(false, fit(), vec![run("wlan", 0, true), run("best", 1, false)]);
        assert_eq!(judgement, Judgement::Fail);
        assert!(text.contains("run best"), "{text}");
    }

    #[test]
    fn the_format_keeps_its_names() {
        let asked = Asked { command: "anabranch demo".into(), seed: 1, seconds: 15, impairments: true };
        let summary = Summary::new(asked, fit(), vec![run("best", 3, false)]);
        let json: serde_json::Value = serde_json::from_str(&summary.to_json().unwrap()).unwrap();
        assert_eq!((&json["version"], &json["best"]), (&1.into(), &"live".into()));
        assert_eq!(json["control"]["ok"], true);
        assert_eq!(json["runs"][0]["frames_unusable_by_class"]["B"], 0);
        assert!(json["runs"][0].get("curves").is_none());
    }
}
