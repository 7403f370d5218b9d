//! Queues that mark in place of drops, and what SCTP makes of it.

use anabranch_lab::results::Row;
use anabranch_lab::run::{run_one, run_traced};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::trace::Outputs;

const METRICS: [&str; 6] = [
    "main.goodput",
    "main.losses",
    "main.retransmissions",
    "main.recoveries",
    "path1.queue-drops",
    "path1.queue-marks",
];

/// Bulk over one path behind `queue`, where `flow` says more of the flow. The peer's window leaves at most 100 packets
/// to the queue, so that slow start alone overruns none of 200.
fn scenario(limit: &str, queue: &str, flow: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"marks\"\nduration = \"60s\"\nmetrics = {METRICS:?}\n\
         [topology]\nkind = \"disjoint-paths\"\n\
         path1 = {{ rate = \"10mbit\", delay = \"20ms\", limit = \"{limit}\", queue = \"{queue}\" }}\n\
         [[flow]]\nname = \"main\"\ntransport = \"sctp\"\nprofile = \"sctp\"\nreceive-buffer = \"192KB\"\n{flow}\n"
    );
    Scenario::parse("marks.toml", &text, &|_| Err(String::new())).map_err(|e| e.to_string())
}

fn run(limit: &str, queue: &str, flow: &str) -> Row {
    let points = scenario(limit, queue, flow).expect("a scenario").points().expect("a point");
    run_one(&points[0], 1).expect("a run")
}

/// A metric by its name.
fn of(row: &Row, name: &str) -> f64 {
    let at = METRICS.iter().position(|m| *m == name).expect("a metric");
    row.values[at].expect("a value")
}

/// Each discipline with its limit, and what makes it mark.
const QUEUES: [(&str, &str, &str); 3] = [
    ("200p", "red thresh=10 maxthresh=60 queue_in_bytes=false bytes=false", " ecn=true"),
    ("200p", "codel", " ecn=true"),
    ("40p", "drop-tail", " mark=30"),
];

#[test]
fn marks_cut_windows_and_nothing_is_sent_twice() {
    for (limit, queue, marking) in QUEUES {
        let dropping = run(limit, queue, "");
        let marked = run("200p", &format!("{queue}{marking}"), "ecn = true");
        println!("{queue}: {METRICS:?}\n  dropping {:?}\n  marking  {:?}", dropping.values, marked.values);
        assert!(of(&dropping, "main.retransmissions") > 5.0, "{queue}: {:?}", dropping.values);
        assert_eq!(of(&dropping, "path1.queue-marks"), 0.0, "{queue}");
        assert!(of(&marked, "path1.queue-marks") > 0.0, "{queue}: {:?}", marked.values);
        assert!(of(&marked, "main.recoveries") > 5.0, "{queue}: no window was cut: {:?}", marked.values);
        assert_eq!(of(&marked, "main.retransmissions"), 0.0, "{queue}: {:?}", marked.values);
        assert_eq!(of(&marked, "path1.queue-drops"), 0.0, "{queue}");
        assert!(of(&marked, "main.goodput") >= 0.98 * of(&dropping, "main.goodput"), "{queue}");
    }
}

#[test]
fn who_does_not_want_marks_gets_drops() {
    for (limit, queue, marking) in QUEUES {
        let plain = run(limit, queue, "");
        let refused = run(limit, &format!("{queue}{marking}"), "");
        assert_eq!(plain.fingerprint, refused.fingerprint, "{queue}");
        assert_eq!(of(&refused, "path1.queue-marks"), 0.0, "{queue}");
        // And the wish alone changes nothing of the network.
        let unmet = run(limit, queue, "ecn = true");
        assert_eq!(of(&unmet, "path1.queue-marks"), 0.0, "{queue}");
    }
}

#[test]
fn the_trace_shows_each_mark() {
    let dir = tempfile::tempdir().expect("a folder");
    let s = scenario("200p", "codel ecn=true", "ecn = true").expect("a scenario");
    let point = &s.points().expect("a point")[0];
    let outputs = Outputs { csv: true, ..Outputs::default() };
    let (row, files) = run_traced(&s, point, 1, dir.path(), outputs).expect("a run");
    let text = std::fs::read_to_string(&files[0]).expect("a trace");
    let mut rows = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let ecn = rows.next().expect("a head").iter().position(|c| *c == "ecn").expect("a column");
    let (mut data, mut sent, mut marked) = (0u64, 0u64, 0u64);
    for r in rows.filter(|r| r[2] == "path1.forward") {
        sent += u64::from(r[1] == "enqueued");
        data += u64::from(r[1] == "enqueued" && r[ecn] == "ect");
        marked += u64::from(r[1] == "dequeued" && r[ecn] == "ce");
        assert!(r[1] != "enqueued" || r[ecn] != "ce", "marked before the queue: {r:?}");
    }
    assert!(data > 10_000 && data < sent, "{data} of {sent}");
    assert!(marked > 5);
    let share = marked as f64 / sent as f64;
    assert!((share - of(&row, "path1.queue-marks")).abs() < 1e-9, "{marked} of {sent}: {:?}", row.values);
}

#[test]
fn what_does_not_fit_is_named() {
    let error = |queue: &str, flow: &str| scenario("200p", queue, flow).map(|_| ()).expect_err("a mistake");
    for (queue, flow, says) in [
        ("red enc=true", "", "`queue red` has no `enc`"),
        ("red ecn=perhaps", "", "`ecn` is true or false, not `perhaps`"),
        ("codel ecm=true", "", "`queue codel` takes target=, interval= and ecn=, not `ecm=`"),
        ("drop-tail ecn=true", "", "marks from a length on, such as mark=20"),
        ("drop-tail mark=some", "", "`mark` needs a number of packets, not `some`"),
        ("drop-tail mark=0", "", "mark must be at least one packet"),
        ("codel", "ecm = true", "unknown key `ecm`; did you mean `ecn`?"),
        ("codel", "ecn = 3", "ecn"),
        ("codel", "[[flow]]\nname = \"t\"\ntransport = \"tcp\"\necn = true", "`ecn` says nothing in a flow over tcp"),
    ] {
        let message = error(queue, flow);
        assert!(message.contains(says) && !message.contains('\n'), "{queue}, {flow}: {message}");
    }
}
