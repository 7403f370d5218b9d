//! Causes of transmissions and of losses, from whole runs.

use crate::results::Row;
use crate::run::run_one;
use crate::scenario::Scenario;

const THIN: &str = r#"
name = "thin"
duration = "600s"
metrics = [METRICS]
[topology]
kind = "single-path"
rate = "10mbit"
delay = "50ms"
up.loss = "5%"
LINK
[[flow]]
name = "game"
transport = "sctp"
profile = "PROFILE"
traffic = { kind = "cbr", rate = "3200bit", size = 100 }
"#;

fn run(profile: &str, link: &str, metrics: &[&str]) -> (Row, Vec<Option<f64>>) {
    let quoted: Vec<String> = metrics.iter().map(|m| format!("\"game.{m}\"")).collect();
    let text = THIN.replace("METRICS", &quoted.join(", ")).replace("PROFILE", profile).replace("LINK", link);
    let s = Scenario::parse("thin.toml", &text, &|_| Err(String::new())).expect("a scenario");
    let row = run_one(&s.points().expect("points").remove(0), 1).expect("runs");
    let values = row.values.clone();
    (row, values)
}

#[test]
fn causes_add_up_and_change_nothing() {
    let (plain, _) = run("thin", "", &["goodput", "retransmissions"]);
    let causes = ["reports", "timer", "probe", "bundled", "copy", "moved"].map(|c| format!("repairs-{c}"));
    let mut metrics = vec!["repairs", "repair1", "repair2", "retransmissions"];
    metrics.extend(causes.iter().map(String::as_str));
    metrics.extend(["causes-right", "lost-radio-as-congestion", "lost-arrived-as-congestion"]);
    let (row, v) = run("thin", "", &metrics);
    assert_eq!(row.fingerprint, plain.fingerprint, "measuring changes nothing");
    let v: Vec<f64> = v.iter().map(|v| v.expect("a value")).collect();
    let [all, first, second, retransmissions] = v[..4] else { unreachable!() };
    assert_eq!(all, v[4..10].iter().sum::<f64>(), "{v:?}");
    assert_eq!(all, retransmissions, "this profile sends no copies");
    assert!(first > 80.0 && second >= 1.0 && first + second <= all, "{v:?}");
    // Its policy takes every loss for congestion, and the link's queue never overflows.
    let [right, radio, arrived] = v[10..] else { unreachable!() };
    assert_eq!(right, 0.0);
    assert!(radio > 80.0 && arrived < radio / 5.0, "{v:?}");
}

#[test]
fn delays_of_repairs_are_those_of_messages_that_were_lost() {
    let metrics = ["repair1-delay", "repair1-delay-max", "repair2-delay", "repairs-delay-max", "delay-max", "delay"];
    let (_, v) = run("thin", "", &metrics);
    let v: Vec<f64> = v.iter().map(|v| v.expect("a value")).collect();
    // One round trip and one way at least; what was lost twice takes longer; the longest of all is one of them.
    assert!(v[0] > 0.15 && v[2] > v[0] && v[1] <= v[3], "{v:?}");
    assert_eq!(v[3], v[4]);
    assert!(v[5] > 0.05 && v[5] < 0.08, "{v:?}");
}

#[test]
fn a_queue_that_overflows_is_distinguished_from_a_link_that_loses() {
    let metrics = ["causes-right", "lost-queue-as-congestion", "lost-radio-as-congestion"];
    let text = THIN
        .replace("rate = \"10mbit\"", "rate = \"2mbit\"")
        .replace("\"3200bit\", size = 100", "\"3mbit\", size = 1000");
    let quoted: Vec<String> = metrics.iter().map(|m| format!("\"game.{m}\"")).collect();
    let text =
        text.replace("METRICS", &quoted.join(", ")).replace("PROFILE", "sctp").replace("LINK", "limit = \"20p\"");
    let text = text.replace("600s", "20s").replace("up.loss = \"5%\"", "");
    let s = Scenario::parse("thin.toml", &text, &|_| Err(String::new())).expect("a scenario");
    let v = run_one(&s.points().expect("points").remove(0), 1).expect("runs").values;
    assert_eq!((v[2], v[0].is_some_and(|r| r > 0.9)), (Some(0.0), true), "{v:?}");
    assert!(v[1].is_some_and(|n| n > 10.0), "{v:?}");
}
