//! Metrics of parts of a run.

use super::run_one;
use crate::metrics::{FlowMetric, of_flows, of_links};
use crate::results::Row;
use crate::scenario::Scenario;

/// A film with a viewer over two paths, one of which is gone for a while; TCP, web transfers and datagrams beside it.
const MIXED: &str = r#"
name = "mixed"
duration = "12s"
events = ["4s-5s"]
KEYS
[topology]
kind = "disjoint-paths"
delay = "30ms"
limit = "25p"
path1 = { rate = "3mbit", up.loss = "3%", schedule = ["4s down", "5s up"] }
path2 = { rate = "2mbit", up = { loss = "4%", jitter = "20ms" } }
[[flow]]
name = "film"
transport = "sctp"
profile = "cmt-rtx-csi"
traffic = { kind = "video", rate = "1mbit" }
playout = "300ms"
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt"
traffic = { kind = "cbr", rate = "800kbit", size = 700 }
lifetime = "150ms"
[[flow]]
name = "cross"
transport = "tcp"
start = "200ms"
traffic = { kind = "cbr", rate = "800kbit", size = 900 }
[[flow]]
name = "web"
transport = "tcp"
traffic = "web"
[[flow]]
name = "noise"
transport = "udp"
start = "1s"
traffic = { kind = "cbr", rate = "600kbit", size = 500 }
"#;
const FLOWS: [&str; 5] = ["film", "main", "cross", "web", "noise"];

fn parse(keys: &str) -> Result<Scenario, String> {
    let text = MIXED.replacen("KEYS", keys, 1);
    Scenario::parse("mixed.toml", &text, &|_| Err(String::new())).map_err(|e| e.to_string())
}

fn list(metrics: &[String]) -> String {
    format!("metrics = [{}]", metrics.iter().map(|m| format!("\"{m}\"")).collect::<Vec<_>>().join(", "))
}

fn run(keys: &str) -> Row {
    let s = parse(keys).unwrap_or_else(|e| panic!("{e}"));
    run_one(&s.points().expect("points").remove(0), 1).expect("runs")
}

/// All metrics that any of the flows and cables can have, and a group's.
fn all_metrics() -> Vec<String> {
    let mut all = Vec::new();
    for metric in of_flows() {
        let of = FLOWS.iter().map(|f| format!("{f}.{metric}"));
        let had: Vec<String> = of.filter(|m| parse(&list(std::slice::from_ref(m))).is_ok()).collect();
        // Counters belong to policies, of which few are here.
        let counter = matches!(FlowMetric::named(&metric), Ok((FlowMetric::Counter(_), _)));
        assert!(!had.is_empty() || counter, "no flow has `{metric}`");
        all.extend(had);
    }
    let cables = of_links().flat_map(|m| ["path1", "path2"].map(|c| format!("{c}.{m}")));
    all.into_iter().chain(cables).chain(["*.jain", "*.delay-p99", "*.goodput"].map(str::to_owned)).collect()
}

/// With each metric the same in these phases behind it.
fn in_phases(metrics: &[String], phases: &[String]) -> String {
    let each = |m: &String| phases.iter().map(|p| format!("{m}@{p}")).collect::<Vec<_>>();
    let all: Vec<String> = metrics.iter().cloned().chain(metrics.iter().flat_map(each)).collect();
    list(&all)
}

fn phases(of: &[(String, String)]) -> String {
    format!("phases = {{ {} }}", of.iter().map(|(n, s)| format!("{n} = \"{s}\"")).collect::<Vec<_>>().join(", "))
}

#[test]
fn a_phase_as_long_as_the_run_has_the_metrics_of_the_run() {
    let metrics = all_metrics();
    assert!(metrics.len() > 150, "{}", metrics.len());
    let row = run(&format!("{}\nphases.all = \"0s-12s\"", in_phases(&metrics, &["all".to_owned()])));
    let (whole, phase) = row.values.split_at(metrics.len());
    let mut with_value = 0;
    for ((name, whole), phase) in metrics.iter().zip(whole).zip(phase) {
        assert_eq!(whole, phase, "{name}");
        with_value += usize::from(whole.is_some());
    }
    assert!(with_value * 10 > metrics.len() * 9, "{with_value} of {} have a value", metrics.len());
}

#[test]
fn a_phase_has_the_metrics_of_a_run_that_is_measured_in_it() {
    let mut metrics = all_metrics();
    // This one begins with the run, or the phase.
    metrics.retain(|m| !m.ends_with(".convergence"));
    let row = run(&format!("{}\nphases.some = \"3007ms-9s\"", in_phases(&metrics, &["some".to_owned()])));
    let measured = run(&format!("{}\nmeasure-from = \"3007ms\"\nmeasure-to = \"9s\"", list(&metrics)));
    assert_eq!(row.fingerprint, measured.fingerprint, "measuring changes nothing");
    let phase = row.values.iter().skip(metrics.len());
    for (name, (phase, measured)) in metrics.iter().zip(phase.zip(&measured.values)) {
        assert_eq!(phase, measured, "{name}");
    }
}

/// Sums of what happened: over phases that follow each other they are those of the run.
const COUNTS: [&str; 9] =
    ["messages", "losses", "retransmissions", "spurious", "timeouts", "recoveries", "decisions", "dormant", "repairs"];
const OF_FILM: [&str; 5] = ["frames", "underflows", "underflow-time", "repairs-timer", "lost-radio-as-unnamed"];

#[test]
fn phases_that_follow_each_other_add_up_to_the_run() {
    let mut metrics: Vec<String> = FLOWS.iter().flat_map(|f| COUNTS.map(|m| format!("{f}.{m}"))).collect();
    metrics.extend(OF_FILM.map(|m| format!("film.{m}")));
    metrics.retain(|m| parse(&list(std::slice::from_ref(m))).is_ok());
    let rates = ["film.goodput", "main.goodput", "path2.utilisation"].map(str::to_owned);
    metrics.extend(rates.clone());
    // In milliseconds: even and odd ones, at what happens each 10 or 40 ms, and many short ones.
    let cuts: [&[u64]; 4] =
        [&[6_000], &[1_234, 4_000, 5_000], &[4_400, 4_440, 4_480, 8_000], &[2_000, 3_001, 3_002, 3_003, 7_777, 11_999]];
    let mut spans: Vec<Vec<(String, u64, u64)>> = Vec::new();
    for (i, cuts) in cuts.iter().enumerate() {
        let edges: Vec<u64> = [0].into_iter().chain(cuts.iter().copied()).chain([12_000]).collect();
        spans.push(edges.windows(2).enumerate().map(|(k, e)| (format!("p{i}-{k}"), e[0], e[1])).collect());
    }
    let all: Vec<(String, String)> =
        spans.iter().flatten().map(|(name, from, to)| (name.clone(), format!("{from}ms-{to}ms"))).collect();
    let names: Vec<String> = all.iter().map(|p| p.0.clone()).collect();
    // A flow that has not started has nothing in a phase before that, which is no mistake unless it is so at all points.
    let each = |m: &String| names.iter().map(|p| format!("{m}@{p}")).collect::<Vec<_>>();
    let asked: Vec<String> = metrics.iter().cloned().chain(metrics.iter().flat_map(each)).collect();
    let s = parse(&format!("{}\n{}", list(&asked), phases(&all))).unwrap_or_else(|e| panic!("{e}"));
    let row = run_one(&s.points().expect("points").remove(0), 1).expect("runs");
    let value = |name: &str| row.values[s.measures.iter().position(|m| m.name == name).expect("asked")];
    let mut counted = 0;
    for name in &metrics {
        let whole = value(name).unwrap_or_else(|| panic!("{name}"));
        let rate = rates.contains(name);
        for partition in &spans {
            let part = |(phase, from, to): &(String, u64, u64)| {
                let v = value(&format!("{name}@{phase}")).unwrap_or(0.0);
                if rate { v * (to - from) as f64 / 12_000.0 } else { v }
            };
            let sum: f64 = partition.iter().map(part).sum();
            let exact = !rate && !name.ends_with("-time");
            assert!(if exact { sum == whole } else { (sum - whole).abs() <= 1e-9 * whole }, "{name}: {sum} {whole}");
        }
        counted += usize::from(whole > 0.0);
    }
    assert!(counted * 10 > metrics.len() * 8, "{counted} of {} are not zero", metrics.len());
}

#[test]
fn a_group_is_those_of_it_that_have_started() {
    let row = run("metrics = [\"*.jain@early\", \"film.share@early\", \"main.goodput@late\", \"web.goodput@late\"]\n\
         phases = { early = \"0s-190ms\", late = \"6s-6001ms\" }");
    let of_three = row.values[0].expect("three have started");
    assert!((1.0 / 3.0 - 1e-9..=1.0).contains(&of_three), "{of_three}");
    assert!(row.values[1].is_some_and(|v| (0.0..=1.0).contains(&v)) && row.values[3].is_some());
}
