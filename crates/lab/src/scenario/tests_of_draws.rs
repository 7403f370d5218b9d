//! Values drawn once for each seed.

use super::*;
use crate::run::{resolved_point, run_one};
use serde_json::json;

const DRAWN: &str = r#"name = "d"
duration = "2s"
seeds = 4
metrics = ["main.goodput", "drawn.topology.path1.delay", "drawn.topology.path1.up.loss", "drawn.flow.main.start"]
[topology]
kind = "disjoint-paths"
path1 = { rate = "10mbit", delay = "10ms..20ms per seed", up.loss = "0%..2% burst 2..4 per seed", limit = "40p" }
[[flow]]
name = "main"
transport = "sctp"
start = "0ms..400ms per seed"
max-burst = "2..6 per seed"
receive-buffer = "64KB"
[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["32KB", "64KB..128KB per seed"]
"#;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("d.toml", text, &|name| Err(format!("cannot read `{name}`")))
}

fn mistake(from: &str, to: &str) -> String {
    assert!(DRAWN.contains(from), "{from}");
    read(&DRAWN.replacen(from, to, 1)).expect_err("a mistake").to_string()
}

fn drawn(p: &Point, seed: u64) -> Vec<Drawn> {
    p.of_seed(seed).expect("a plan").drawn.clone()
}

#[test]
fn one_seed_meets_one_value_at_all_points() {
    let points = read(DRAWN).and_then(|s| s.points()).unwrap_or_else(|e| panic!("{e}"));
    let keys = |p: &Point| drawn(p, 1).into_iter().map(|d| d.key).collect::<Vec<_>>();
    let of_both = [
        "flow.main.max-burst",
        "flow.main.start",
        "topology.path1.delay",
        "topology.path1.up.loss",
        "topology.path1.up.loss.2",
    ];
    assert_eq!(keys(&points[0]), of_both);
    assert_eq!(keys(&points[1])[1], "flow.main.receive-buffer");
    for seed in 1..20 {
        let [narrow, wide] = [0, 1].map(|i| drawn(&points[i], seed));
        assert!(narrow.iter().all(|d| wide.contains(d)), "{narrow:?} {wide:?}");
        let value = |key: &str| narrow.iter().find(|d| d.key == key).expect(key).value;
        let delay = value("topology.path1.delay");
        assert!((0.01..=0.02).contains(&delay) && (0.0..=0.02).contains(&value("topology.path1.up.loss")));
        assert!((2.0..=6.0).contains(&value("flow.main.max-burst")));
        // What is reported is what runs.
        let plan = points[0].of_seed(seed).expect("a plan");
        assert_eq!(plan.topology.cables[0].forward.delay.as_secs_f64(), delay);
        assert_eq!(plan.topology.cables[0].backward.delay.as_secs_f64(), delay);
        assert_eq!(plan.flows[0].start.as_secs_f64(), value("flow.main.start"));
        assert!((plan.topology.cables[0].forward.loss.mean() - value("topology.path1.up.loss")).abs() < 1e-9);
    }
    let delays: std::collections::BTreeSet<u64> =
        (1..20).map(|seed| (drawn(&points[0], seed)[2].value * 1e9) as u64).collect();
    assert!(delays.len() > 15, "{delays:?}");
    // A further value to draw shifts none of the others.
    let more = DRAWN.replace("rate = \"10mbit\"", "rate = \"9mbit..10mbit per seed\"");
    let more = read(&more).and_then(|s| s.points()).expect("points");
    assert!(drawn(&points[0], 3).iter().all(|d| drawn(&more[0], 3).contains(d)));
    // Nothing is drawn of a scenario without ranges.
    let plain = DRAWN.replace("10ms..20ms per seed", "10ms").replace("0%..2% burst 2..4 per seed", "1%");
    let plain = plain.replace("\"2..6 per seed\"", "4").replace("0ms..400ms per seed", "1ms");
    let plain = plain
        .replace("64KB..128KB per seed", "64KB")
        .replace(", \"drawn.topology.path1.delay\", \"drawn.topology.path1.up.loss\", \"drawn.flow.main.start\"", "");
    let point = read(&plain).and_then(|s| s.points()).expect("points").remove(0);
    assert!(matches!(point.of_seed(1), Ok(std::borrow::Cow::Borrowed(_))));
}

#[test]
fn runs_and_the_manifest_say_what_was_drawn() {
    let s = read(DRAWN).expect("a scenario");
    let units: Vec<&str> = s.measures.iter().map(|m| m.unit.as_ref()).collect();
    assert_eq!(units[1..], ["s", "", "s"]);
    let points = s.points().expect("points");
    let row = run_one(&points[0], 2).expect("a run");
    let want: Vec<f64> = ["topology.path1.delay", "topology.path1.up.loss", "flow.main.start"]
        .map(|key| drawn(&points[0], 2).iter().find(|d| d.key == key).expect(key).value)
        .to_vec();
    let got: Vec<f64> = row.values[1..].iter().map(|v| v.expect("a value")).collect();
    assert_eq!(got, want);
    assert!(row.values[0].is_some_and(|v| v > 0.0));
    let other = run_one(&points[0], 3).expect("a run");
    assert_ne!((row.values[1], row.fingerprint), (other.values[1], other.fingerprint));
    let all = resolved_point(&points[0]).expect("parameters");
    let range = |from: f64, to: f64| json!({ "kind": "per-seed", "from": from, "to": to });
    assert_eq!(all["topology.path1.down.delay"], range(0.01, 0.02));
    assert_eq!(all["flow.main.start"], range(0.0, 0.4));
    assert_eq!(all["flow.main.max-burst"], json!({ "kind": "per-seed", "from": 2, "to": 6 }));
    assert_eq!(all["topology.path1.up.rate"], json!(10_000_000));
}

#[test]
fn mistakes_of_ranges_have_their_line() {
    let of = |range: &str| mistake("10ms..20ms per seed", range);
    assert_eq!(
        of("20ms..10ms per seed"),
        "d.toml:7: `topology.path1.delay`: `20ms..10ms`: the first value must not be above the second"
    );
    assert!(of("10ms per seed").contains("`10ms`: needs a range before `per seed`, such as 10ms..20ms"));
    assert!(of("10ms..2mbit per seed").contains("needs two values of one kind, such as 10ms..20ms"));
    let kind = of("1mbit..2mbit per seed");
    assert!(kind.starts_with("d.toml:7: [topology.path1]: `delay` needs a time"), "{kind}");
    let plain = of("10ms..20ms");
    assert!(plain.starts_with("d.toml:7: [topology.path1]: `delay` needs a time"), "{plain}");
    let high = mistake("0ms..400ms per seed", "0s..3s per seed");
    assert_eq!(
        high,
        "d.toml:11: flow `main`: `start`: must come before the end, `duration` (at the highest value of each range)"
    );
    let run = mistake("duration = \"2s\"", "duration = \"2s..3s per seed\"");
    assert_eq!(run, "d.toml:2: `duration`: is one value for all seeds; those of [topology] and of flows are drawn");
    let metric = mistake("\"drawn.topology.path1.delay\"", "\"drawn.topology.path1.dealy\"");
    assert!(
        metric.contains("no value of `topology.path1.dealy` is drawn; did you mean `topology.path1.delay`?"),
        "{metric}"
    );
    let unfit = "traffic = { kind = \"vbr\", rate = \"1mbit\", min-size = \"100..300 per seed\", max-size = \"100..300 per seed\", \
                 interval = \"20ms\" }\nmax-burst";
    let unfit = mistake("max-burst", unfit);
    assert!(unfit.starts_with("d.toml:12: flow `main`: `traffic`: ") && unfit.contains("(with seed "), "{unfit}");
}

#[test]
fn sweeps_and_free_cables_have_their_own_names() {
    let text = r#"name = "d"
duration = "2s"
metrics = ["main.goodput", "drawn.topology.cable.sender-receiver.delay", "drawn.topology.cable.sender-receiver.loss.2"]
[topology]
kind = "free"
hosts = ["sender", "receiver"]
cable = [{ from = "sender", to = "receiver", rate = "1mbit", loss = ["1%", "1%..2% per seed"] }]
[[flow]]
name = "main"
transport = "sctp"
[[sweep]]
name = "far"
values = ["near", "far"]
as = [{}, { "topology.cable.sender-receiver.delay" = "50ms..90ms per seed" }]
"#;
    let points = read(text).and_then(|s| s.points()).unwrap_or_else(|e| panic!("{e}"));
    let values = |i: usize| run_one(&points[i], 1).expect("a run").values;
    assert!(values(0)[1].is_none() && values(0)[2].is_some() && values(1)[1].is_some_and(|v| v > 0.05));
}
