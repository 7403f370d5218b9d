//! Links that repeat and report, as the sender and the metrics see them.

use super::build::{Scene, scene};
use super::run_one;
use crate::node::SctpAgent;
use crate::results::Row;
use crate::scenario::Scenario;
use anabranch_base::{Duration, Instant, Modulation, Technology};
use anabranch_engine::PathStats;
use anabranch_sim::Direction;
use anabranch_sim::Frames;
use anabranch_sim::network::LinkId;
use anabranch_sim::topology::CableId;

const TEXT: &str = r#"
name = "radio"
duration = "20s"
metrics = [
  "main.goodput", "path1.frame-errors", "path1.frame-repeats", "path1.arq-drops", "path1.loss-drops",
  "path1.utilisation", "path2.frame-errors", "path2.frame-repeats", "path2.loss-drops",
  "main.lost-arq-as-congestion", "main.lost-radio-as-congestion",
]
[topology]
kind = "disjoint-paths"
delay = "10ms"
limit = "50p"
path1 = { rate = "4mbit", up.loss = "20%", up.arq = 1, technology = "wimax", report = "100ms" }
path2 = { rate = "2mbit", up.loss = "1%", modulation = "bpsk", frame = "1000B", report = "250ms" }
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("radio.toml", text, &|_| Err(String::new())).expect("a scenario")
}

fn paths(scene: &Scene) -> Vec<PathStats> {
    let sender = scene.network.agent::<SctpAgent>(scene.flows[0].sender).expect("an agent");
    sender.association().expect("an association").paths().map(|(_, p)| p).collect()
}

fn frames(scene: &Scene, cable: u32) -> Frames {
    scene.network.link(LinkId::of(CableId(cable), Direction::Forward)).expect("a link").frames()
}

#[test]
fn reports_come_each_interval_and_say_what_the_link_has_counted() {
    let plan = scenario(TEXT).points().expect("points").remove(0).plan;
    let mut scene = scene(&plan, 1).expect("a scene");
    let mut before = [None, None];
    for ms in (50..=5_000).step_by(50) {
        scene.network.run_until(Instant::ZERO + Duration::from_millis(ms));
        for (i, every) in [(0, 100), (1, 250)] {
            let report = paths(&scene).get(i).and_then(|p| p.frame_errors);
            if ms % every != 0 {
                assert_eq!(report, before[i], "path {} at {ms} ms", i + 1);
                continue;
            }
            let (report, now) = (report.expect("a report"), frames(&scene, i as u32));
            assert_eq!((report.erroneous, report.total), (now.erroneous, now.sent), "path {} at {ms} ms", i + 1);
            before[i] = Some(report);
        }
    }
    let [one, two] = before.map(|r| r.expect("a report"));
    assert_eq!((one.technology, one.modulation, one.frame), (Technology::Wimax, Modulation::Qam16, 1_500));
    assert_eq!((two.technology, two.modulation, two.frame), (Technology::Unknown, Modulation::Bpsk, 1_000));
    assert!(one.total > 500 && one.erroneous > 50 && two.total > 100, "{one:?} {two:?}");
}

#[test]
fn who_asks_for_no_reports_gets_none_and_runs_alike() {
    let silent =
        TEXT.replace("report = \"100ms\"", "report = \"none\"").replace("report = \"250ms\"", "report = \"none\"");
    let run = |text: &str| run_one(&scenario(text).points().expect("points")[0], 1).expect("runs");
    assert_eq!(run(TEXT), run(&silent));
    let plan = scenario(&silent).points().expect("points").remove(0).plan;
    let mut scene = scene(&plan, 1).expect("a scene");
    scene.network.run_until(Instant::from_millis(2_000));
    assert!(paths(&scene).iter().all(|p| p.frame_errors.is_none()));
}

/// The true loss of a path is its last report, for a policy that is to know it.
#[test]
fn what_is_known_beforehand_is_not_counted_over() {
    let oracle = format!("{TEXT}retransmission = \"rtx_loss_rate:oracle=1\"\n");
    let plan = scenario(&oracle).points().expect("points").remove(0).plan;
    let mut scene = scene(&plan, 1).expect("a scene");
    scene.network.run_until(Instant::from_millis(2_000));
    let reports: Vec<u64> = paths(&scene).iter().filter_map(|p| Some(p.frame_errors?.total)).collect();
    assert_eq!(reports, [1_000_000_000; 2]);
}

#[test]
fn metrics_agree_with_what_the_losses_did() {
    let s = scenario(TEXT);
    let row: Row = run_one(&s.points().expect("points")[0], 1).expect("runs");
    let of = |name: &str| {
        let place = s.measures.iter().position(|m| m.name == name).expect("a metric");
        row.values[place].unwrap_or_else(|| panic!("{name} has a value"))
    };
    // Of some 5,000 packets, each bound four standard deviations away.
    assert!((of("path1.frame-errors") - 0.2).abs() < 0.023, "{}", of("path1.frame-errors"));
    assert!((of("path1.arq-drops") - 0.04).abs() < 0.011, "{}", of("path1.arq-drops"));
    // Each is repeated once, but for one that may be under way.
    assert!((of("path1.frame-repeats") - of("path1.frame-errors")).abs() < 1e-3);
    assert_eq!((of("path1.loss-drops"), of("path2.frame-repeats")), (0.0, 0.0));
    let close = of("path2.frame-errors") / of("path2.loss-drops");
    assert!((0.9..1.1).contains(&close), "of packets sent and of packets offered: {close}");
    // A repetition counts as it begins.
    assert!(of("path1.utilisation") < 1.001);
    // What a plain window takes for congestion was lost on the links, and for the larger part in spite of `arq`.
    let [arq, radio] = ["arq", "radio"].map(|truth| of(&format!("main.lost-{truth}-as-congestion")));
    assert!(arq > radio && radio > 10.0, "{arq} {radio}");
}
