//! Links of a scenario: losses in series.

use super::*;
use anabranch_sim::{LinkConfig, LossConfig};

/// A scenario with these keys of `[topology]` and these lines at its end.
fn text(topology: &str, rest: &str) -> String {
    format!(
        "name = \"l\"\nduration = \"5s\"\nmetrics = [\"main.goodput\"]\n[topology]\n{topology}\n\
         [[flow]]\nname = \"main\"\ntransport = \"sctp\"\n{rest}"
    )
}

fn read(topology: &str, rest: &str) -> Result<Scenario, ScenarioError> {
    let files = |name: &str| match name {
        "losses.txt" => Ok("0010\n".to_owned()),
        other => Err(format!("cannot read `{other}`")),
    };
    Scenario::parse("l.toml", &text(topology, rest), &files)
}

fn plan(topology: &str, rest: &str) -> Plan {
    read(topology, rest).and_then(|s| s.points()).expect("a scenario").remove(0).plan
}

/// The links of `path1`, up and down.
fn path1(link: &str) -> [LinkConfig; 2] {
    let cable = plan(&format!("kind = \"single-path\"\n{link}"), "").topology.cables.remove(0);
    [cable.forward, cable.backward]
}

fn mistake(topology: &str, rest: &str) -> String {
    read(topology, rest).expect_err("a mistake").to_string()
}

#[test]
fn losses_may_come_in_series() {
    let losses = |link: &str| path1(link).map(|l| l.loss);
    let (random, bursts) = (LossConfig::bernoulli(0.01), LossConfig::bursts(0.02, 5.0));
    let both = LossConfig::Series(vec![random.clone(), bursts.clone()]);
    assert_eq!(losses("loss = [\"1%\", \"2% burst 5\"]"), [both.clone(), both.clone()]);
    assert_eq!(losses("loss = \"1% and 2% burst 5\""), [both.clone(), both.clone()]);
    assert_eq!(losses("loss = [\"1%\"]"), [random.clone(), random.clone()]);
    // A direction's own holds in place of what is said of both.
    assert_eq!(losses("loss = \"1%\"\nup.loss = [\"1%\", \"2% burst 5\"]"), [both.clone(), random.clone()]);
    assert_eq!(losses("loss = [\"1%\", { file = \"losses.txt\" }]\ndown.loss = \"1%\"")[1], random);
    let [up, down] = losses("loss = \"2%\"\nup.loss = [{ file = \"losses.txt\" }, \"1%\"]");
    // What is recorded draws nothing, and comes last.
    let LossConfig::Series(of) = &up else { panic!("{up:?}") };
    assert!(of[0] == random && matches!(&of[1], LossConfig::Trace(t) if t.lost.len() == 4) && of.len() == 2, "{up:?}");
    assert_eq!(down, LossConfig::bernoulli(0.02));
    let [up, down] = losses("loss = { file = \"losses.txt\" }\nup.loss = \"none\"");
    assert!(up.is_none() && matches!(down, LossConfig::Trace(_)), "{up:?} {down:?}");
    // Changes have the words of the text.
    let [up, _] = path1("up.loss = \"1%\"\nschedule = [\"2s up.loss 1% and 2% burst 5\"]");
    assert_eq!(up.schedule.changes()[0].set, anabranch_sim::Setting::Loss(both));
    // A sweep may set the list.
    let sweep = "[[sweep]]\nname = \"s\"\nsets = \"topology.up.loss\"\nvalues = [\"a\", \"b\"]\nas = [\"1%\", [\"1%\", \"2%\"]]";
    let points = read("kind = \"single-path\"", sweep).and_then(|s| s.points()).expect("a scenario");
    let models: Vec<usize> = points.iter().map(|p| p.plan.topology.cables[0].forward.loss.models().len()).collect();
    assert_eq!(models, [1, 2]);
}

#[test]
fn a_mistake_among_losses_has_its_own_line() {
    let error = |list: &str| mistake(&format!("kind = \"single-path\"\nloss = [\n\"1%\",\n{list}\n]"), "");
    let of = |line: usize, what: &str| format!("l.toml:{line}: [topology]: `loss`: {what}");
    assert_eq!(error("\"2% brust 5\","), of(8, "unknown word `brust`; did you mean `burst`?"));
    assert!(error("\"2\",").starts_with(&of(8, "`2`: `loss` needs a share")), "{}", error("\"2\","));
    assert_eq!(error("2,"), of(8, "needs texts such as \"1%\", or { file = \"losses.txt\" }"));
    assert_eq!(
        error("{ file = \"losses.txt\", repaet = true },"),
        "l.toml:8: [topology]: unknown key `repaet`; did you mean `repeat`?"
    );
    let empty = mistake("kind = \"single-path\"\nup.loss = []", "");
    assert_eq!(empty, "l.toml:6: [topology]: `up.loss`: needs one loss or more in its list, or \"none\"");
    let list = mistake("kind = \"single-path\"\ndelay = [\"1ms\"]", "");
    assert_eq!(list, "l.toml:6: [topology]: `delay`: needs a text or a whole number");
}
