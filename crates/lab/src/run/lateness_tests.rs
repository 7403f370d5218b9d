//! Messages with a deadline, over each transport.

use super::single_run::run_with_parts;
use crate::results::Row;
use crate::scenario::Scenario;

/// Messages of 500 bytes, each 10 ms, over a way of 100 ms.
const LINE: &str = r#"
name = "line"
duration = "10s"
bin = "500ms"
metrics = METRICS
[topology]
kind = "single-path"
rate = "2mbit"
delay = "100ms"
limit = "40p"
LINK
[[flow]]
name = "main"
traffic = { kind = "cbr", rate = "400kbit", size = 500 }
deadline = "150ms"
FLOW
"#;
const ALL: &str = "[\"main.unusable-packets\", \"main.late-messages\", \"main.late-bytes\", \"main.goodput\"]";

fn run(metrics: &str, link: &str, flow: &str) -> (Row, String) {
    let text = LINE.replace("METRICS", metrics).replace("LINK", link).replace("FLOW", flow);
    let s = Scenario::parse("line.toml", &text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
    let (row, beside) = run_with_parts(&s.points().expect("points").remove(0), 1).expect("runs");
    (row, beside.series)
}

/// Unusable packets, late messages, late bytes.
fn late(link: &str, flow: &str) -> [f64; 3] {
    let v = run(ALL, link, flow).0.values;
    [0, 1, 2].map(|i| v[i].expect("a value"))
}

const TRANSPORTS: [&str; 3] = ["transport = \"sctp\"", "transport = \"tcp\"", "transport = \"udp\""];

#[test]
fn what_a_line_brings_in_time_is_usable() {
    for transport in TRANSPORTS {
        // The first messages of a stream wait for its handshake.
        let begun = format!("{ALL}\nmeasure-from = \"3s\"");
        assert_eq!(run(&begun, "", transport).0.values[..3], [Some(0.0); 3], "{transport}");
    }
    assert_eq!(late("", TRANSPORTS[2]), [0.0; 3]);
    // A way longer than the deadline makes all of them late, and none lost.
    for transport in TRANSPORTS {
        let [unusable, late_, bytes] = late("up.delay = \"160ms\"", transport);
        assert_eq!((unusable, late_, bytes), (1.0, 1.0, 1.0), "{transport}");
    }
}

#[test]
fn what_never_comes_is_unusable_and_not_late() {
    let [unusable, late_, _] = late("up.loss = \"20%\"", TRANSPORTS[2]);
    assert!((unusable - 0.2).abs() < 0.04 && late_ == 0.0, "{unusable} {late_}");
    // What is repaired comes, late.
    for transport in &TRANSPORTS[..2] {
        let [unusable, late_, _] = late("up.loss = \"3%\"", transport);
        assert!(unusable > 0.02 && late_ > 0.02, "{transport}: {unusable} {late_}");
    }
}

/// Three times what the line carries.
#[test]
fn what_no_transport_asked_for_was_due_all_the_same() {
    let link = "up.rate = \"130kbit\"";
    for (transport, more) in
        [(TRANSPORTS[0], "send-buffer = \"8KB\""), (TRANSPORTS[1], "window = 4"), (TRANSPORTS[2], "")]
    {
        let [unusable, _, _] = late(link, &format!("{transport}\n{more}"));
        assert!(unusable > 0.6, "{transport}: {unusable}");
    }
}

#[test]
fn a_deadline_changes_nothing_that_is_sent() {
    for transport in TRANSPORTS {
        let link = "up.loss = \"3%\"";
        let text = |deadline: &str| {
            let plain = LINE.replace("deadline = \"150ms\"", deadline).replace("METRICS", "[\"main.goodput\"]");
            let text = plain.replace("LINK", link).replace("FLOW", transport);
            Scenario::parse("line.toml", &text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"))
        };
        let plain = super::run_one(&text("").points().expect("points").remove(0), 1).expect("runs");
        assert_eq!(run(ALL, link, transport).0.fingerprint, plain.fingerprint, "{transport}");
    }
}

#[test]
fn over_time_it_is_a_part_of_what_was_due() {
    for transport in TRANSPORTS {
        let series = format!("{ALL}\nseries = [\"main.unusable\", \"main.late\"]");
        let link = "schedule = [\"4s down\", \"5s up\"]";
        let (row, lines) = run(&series, link, transport);
        let of = |name: &str| -> Vec<Option<f64>> {
            let values = lines.lines().filter_map(|l| l.split_once(&format!(",main.{name},,")));
            values.map(|(_, v)| v.parse().ok()).collect()
        };
        let (unusable, late_) = (of("unusable"), of("late"));
        assert_eq!((unusable.len(), late_.len()), (20, 20), "{transport}: {lines}");
        // Fifty are due in a bin, but for the first: the first is due after 150 ms.
        let due: Vec<f64> = (0..20).map(|bin| if bin == 0 { 35.0 } else { 50.0 }).collect();
        let sum: f64 = unusable.iter().zip(&due).map(|(v, n)| v.expect("a value") * n).sum();
        let whole = row.values[0].expect("a value");
        assert!((sum / due.iter().sum::<f64>() - whole).abs() < 0.01, "{transport}: {sum} {whole}");
        // What is made while the line is down is due from 4.15 to 5.15 s.
        assert_eq!(unusable[9], Some(1.0), "{transport}");
        assert!(unusable[7] < Some(0.1) && unusable[18] < Some(0.1), "{transport}: {unusable:?}");
        assert!(late_.iter().zip(&unusable).all(|(l, u)| l <= u), "{transport}");
    }
}

#[test]
fn transfers_have_deadlines_of_their_own() {
    let web = "name = \"web\"\ntransport = \"tcp\"\ntraffic = \"web\"\ndeadline = \"500ms\"";
    let metrics = "[\"web.unusable-packets\", \"web.late-messages\", \"web.message-delay-max\"]";
    let v = run(metrics, "", &format!("transport = \"udp\"\n[[flow]]\n{web}")).0.values;
    let [unusable, late_, slow] = [0, 1, 2].map(|i| v[i].expect("a value"));
    assert!(unusable > 0.0 && unusable < 1.0 && late_ <= unusable && slow > 0.5, "{unusable} {late_} {slow}");
}

#[test]
fn messages_of_a_greedy_flow_are_made_when_they_are_taken() {
    let greedy = |deadline: &str| {
        let flow = format!(
            "transport = \"sctp\"\n[[flow]]\nname = \"all\"\ntransport = \"sctp\"\nsend-buffer = \"64KB\"\n{deadline}"
        );
        run("[\"all.unusable-packets\", \"all.late-bytes\"]", "", &flow).0.values
    };
    // They wait in the send buffer.
    assert!(greedy("deadline = \"150ms\"")[0] > Some(0.9));
    assert!(greedy("deadline = \"9s\"")[0] < Some(0.01));
}
