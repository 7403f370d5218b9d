//! Flows over Multipath TCP and over what is reconstructed on it, from whole runs.

use anabranch_lab::results::Row;
use anabranch_lab::run::run_one;
use anabranch_lab::scenario::Scenario;

const TWO: &str = r#"
name = "two"
duration = "30s"
metrics = [METRICS]
[topology]
kind = "disjoint-paths"
path1 = { rate = "4mbit", delay = "20ms", limit = "40p", up.loss = "0.5%" }
path2 = { rate = "2mbit", delay = "60ms", limit = "40p", up.loss = "0.5%" }
[[flow]]
name = "main"
transport = "TRANSPORT"
KEYS
"#;

fn scenario(transport: &str, keys: &str, metrics: &[&str]) -> Result<Scenario, String> {
    let quoted: Vec<String> = metrics.iter().map(|m| format!("\"main.{m}\"")).collect();
    let text = TWO.replace("METRICS", &quoted.join(", ")).replace("KEYS", keys).replace("TRANSPORT", transport);
    Scenario::parse("two.toml", &text, &|_| Err(String::new())).map_err(|e| e.to_string())
}

fn run(transport: &str, keys: &str, metrics: &[&str], seed: u64) -> (Row, Vec<f64>) {
    let s = scenario(transport, keys, metrics).expect("a scenario");
    let row = run_one(&s.points().expect("points").remove(0), seed).expect("runs");
    let values = row.values.iter().map(|v| v.expect("a value")).collect();
    (row, values)
}

#[test]
fn a_transfer_counts_its_subflows() {
    let metrics = [
        "goodput",
        "delay-p99",
        "retransmissions",
        "subflow1-retransmissions",
        "subflow2-retransmissions",
        "subflow1-packets",
        "subflow2-packets",
        "reorder-max",
        "window-stops",
    ];
    let (row, v) = run("mptcp", "coupling = \"none\"", &metrics, 1);
    assert!((3e6..5.8e6).contains(&v[0]), "{v:?}");
    assert!((0.04..1.0).contains(&v[1]), "{v:?}");
    assert!(v[2] > 20.0 && v[2] == v[3] + v[4], "{v:?}");
    // Of 1428 bytes each, but for repetitions, SYNs and what is on the way.
    let sent = (v[5] + v[6] - v[2]) * 1428.0 * 8.0 / 30.0;
    assert!((0.97..1.0).contains(&(v[0] / sent)), "{v:?}");
    assert!(v[7] > 1428.0 && v[7] <= 262_144.0, "{v:?}");
    assert_eq!(run("mptcp", "coupling = \"none\"", &metrics, 1), (row, v), "the same seed does the same");
    let (_, one) = run("mptcp", "paths = 1", &metrics[..1], 1);
    assert!(one[0] < 3.9e6, "{one:?}");
}

#[test]
fn messages_have_delays_and_deadlines() {
    let keys = "traffic = { kind = \"cbr\", rate = \"800kbit\", size = 500 }\ncoalesce = true\ndeadline = \"150ms\"";
    let metrics =
        ["goodput", "message-delay", "message-delay-p99", "in-order-delay", "late-messages", "unusable-packets"];
    let (_, v) = run("mptcp", keys, &metrics, 3);
    assert!((0.98..1.0).contains(&(v[0] / 800_000.0)), "{v:?}");
    // One way and the transmission at least; what is lost a round trip more.
    assert!(v[1] > 0.021 && v[3] <= v[1] && v[2] > 0.06 && v[2] < 1.5, "{v:?}");
    assert!(v[4] > 0.0 && v[4] < 0.2 && v[5] >= v[4], "{v:?}");
}

#[test]
fn mistakes_are_one_line() {
    for (keys, says) in [
        ("coupling = \"lai\"", "`coupling`: is one of none, lia, olia, balia, not `lai`"),
        ("scheduler = \"blest\"", "`scheduler`: is one of min-rtt, round-robin, not `blest`"),
        ("receive-buffer = \"1KB\"", "`receive-buffer`: is 1024, and must lie between a segment of 1428 bytes and 4GB"),
        ("recovery = \"tahoe\"", "`recovery`: is newreno, sack or rack in a flow over mptcp"),
        ("paths = 0", "`paths`: must lie between 1 and 2, the paths between its hosts"),
        ("paths = 9", "`paths`: must lie between 1 and 2, the paths between its hosts"),
        ("congestion = \"cubic\"", "`congestion` says nothing in a flow over mptcp: remove it"),
        ("profile = \"cmt\"", "`profile` says nothing in a flow over mptcp: remove it"),
        ("deadline = \"1s\"", "`deadline`: bulk over mptcp is a stream without messages: choose cbr or another"),
    ] {
        let e = scenario("mptcp", keys, &["goodput"]).expect_err(keys);
        assert!(e.contains(says) && e.lines().count() == 1, "{e}");
    }
    let e = scenario("mptcp", "", &["losses"]).expect_err("a metric of others");
    assert!(e.contains("is over mptcp, and only sctp or udp has that"), "{e}");
    let e = scenario("mptcp", "traffic = \"web\"", &["goodput"]).expect_err("transfers");
    assert!(e.contains("web") && e.lines().count() == 1, "{e}");
}

/// Each names its key, in the line of which it is, and says what would do.
#[test]
fn mistakes_in_what_is_coded_name_their_key() {
    let beyond = |key: &str, least: u8| {
        [-1, 256, 70_000, i64::MAX]
            .map(|n| (format!("{key} = {n}"), format!("`{key}`: is {n}, and must lie between {least} and 255")))
    };
    let mut cases: Vec<_> = ["generation", "block"].into_iter().flat_map(|key| beyond(key, 1)).collect();
    cases.extend(beyond("margin", 0));
    cases.extend([0, 83, 1_421, 5_000_000_000].map(|n: i64| {
        let says = format!("`symbol`: is {n}, and must lie between 84 and 1420, for segments of 1428 bytes");
        (format!("symbol = {n}"), says)
    }));
    cases.push((
        "generation = 64\nreceive-buffer = \"64KB\"".into(),
        "`generation`: is 64 segments of 1428 bytes, and a receive buffer of 65536 bytes holds 45".into(),
    ));
    for (keys, says) in cases {
        let transport = if keys.starts_with("generation") { "nc-mptcp" } else { "fmtcp" };
        let e = scenario(transport, &keys, &["goodput"]).expect_err(&keys);
        assert!(e.contains(&says) && e.starts_with("two.toml:12: ") && e.lines().count() == 1, "{e}");
    }
    for (transport, keys) in [
        ("nc-mptcp", "generation = 1"),
        ("nc-mptcp", "generation = 45\nreceive-buffer = \"64KB\""),
        ("nc-mptcp", "receive-buffer = \"2KB\""),
        ("fmtcp", "symbol = 84\nblock = 255\nmargin = 0"),
        ("fmtcp", "symbol = 1420"),
    ] {
        assert_eq!(scenario(transport, keys, &["goodput"]).err(), None, "{keys}");
    }
}

#[test]
fn coded_transports_count_their_sums() {
    let metrics =
        ["goodput", "message-delay-p99", "coded-symbols", "coded-needed", "retransmissions", "reorder-max", "spurious"];
    let keys = "traffic = { kind = \"cbr\", rate = \"800kbit\", size = 1400 }";
    for transport in ["nc-mptcp", "fmtcp"] {
        let (row, v) = run(transport, keys, &metrics, 2);
        assert!((0.97..1.0).contains(&(v[0] / 800_000.0)), "{transport}: {v:?}");
        assert!(v[1] > 0.03, "{transport}: {v:?}");
        assert!(v[2] >= v[3] && v[3] > 0.0, "{transport}: {v:?}");
        assert_eq!(run(transport, keys, &metrics, 2), (row, v), "the same seed does the same");
    }
}
