//! Traces of whole scenarios: flows beside each other, and what only some of them have.

use super::*;
use crate::results::Row;
use crate::run::run_traced;
use crate::scenario::Scenario;
use std::path::Path;
use std::process::Command;

/// SCTP, two TCPs and datagrams over one bottleneck with a short queue.
const BESIDE: &str = r#"
name = "beside"
duration = "20s"
metrics = ["sack.retransmissions", "sack.timeouts", "sack.recoveries", "reno.retransmissions"]
[topology]
kind = "shared-bottleneck"
pairs = 4
bottleneck = { rate = "6mbit", delay = "20ms", limit = "15p", loss = "5%" }
access = { rate = "100mbit", delay = "2ms" }
[[flow]]
name = "sctp"
transport = "sctp"
profile = "sctp"
from = "sender1"
to = "receiver1"
start = "1s"
[[flow]]
name = "sack"
transport = "tcp"
recovery = "sack"
from = "sender2"
to = "receiver2"
[[flow]]
name = "reno"
transport = "tcp"
recovery = "reno"
from = "sender3"
to = "receiver3"
traffic = { kind = "bulk", total = "300KB" }
[[flow]]
name = "udp"
transport = "udp"
from = "sender4"
to = "receiver4"
traffic = { kind = "cbr", rate = "200kbit", size = "500B" }
"#;

fn traced(text: &str, dir: &Path) -> (Row, Vec<Line>) {
    let scenario = Scenario::parse("test.toml", text, &|_| Err(String::new())).unwrap();
    let point = scenario.points().unwrap().remove(0);
    let (row, files) = run_traced(&scenario, &point, 1, dir, Outputs::ALL).unwrap();
    let log = files.iter().find(|f| f.extension().is_some_and(|e| e == "jsonl")).unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    (row, text.lines().map(|l| serde_json::from_str(l).unwrap()).collect())
}

fn values(row: &Row) -> Vec<u64> {
    row.values.iter().map(|v| v.unwrap() as u64).collect()
}

#[test]
fn the_log_of_a_tcp_flow_is_what_its_sender_did() {
    let dir = tempfile::tempdir().unwrap();
    let (row, lines) = traced(BESIDE, dir.path());
    let [again, timeouts, recoveries, reno_again] = values(&row)[..] else { panic!("{row:?}") };
    let count = |f: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| f(l)).count() as u64;
    let sent_again =
        |of: &str| count(&|l| matches!(l, Line::Retransmission { flow, segment: Some(_), .. } if flow == of));
    assert!(again > 20 && recoveries > 5 && timeouts > 0 && reno_again > 0, "{row:?}");
    assert_eq!((sent_again("sack"), sent_again("reno")), (again, reno_again));
    let unexplained = |l: &Line| matches!(l, Line::Retransmission { flow, why: Why::Other, .. } if flow != "sctp");
    assert_eq!(count(&unexplained), 0, "losses explain each");

    // Windows change as often as losses were noticed.
    let changed = |to| count(&|l| matches!(l, Line::Path { flow, why, path: 0, .. } if flow == "sack" && *why == to));
    assert_eq!((changed(WindowChange::Timeout), changed(WindowChange::Reported)), (timeouts, recoveries));
    assert!(changed(WindowChange::Acknowledged) > 200);
    let repairing = |l: &&Line| matches!(l, Line::Path { flow, state, .. } if flow == "sack" && state == "repairing");
    assert!(lines.iter().filter(repairing).count() > 50);

    // Segments are whole, in order, and each is sent before it is acknowledged.
    let (mut next, mut acknowledged, mut in_flight) = (0, 0, 0);
    for line in &lines {
        match line {
            Line::Data { flow, segment, tsn, bytes, .. } if flow == "sack" => {
                assert_eq!((*segment, tsn.is_empty()), (Some(next), true));
                assert_eq!(*bytes, if next == 0 { 52 } else { 1_500 });
                next += 1;
            }
            Line::Ack { flow, next: n, sacked, .. } if flow == "sack" => {
                assert!(acknowledged <= *n && *n <= next, "{line:?}");
                assert!(sacked.iter().all(|b| *n < b.0 && b.0 <= b.1 && b.1 < next), "{line:?}");
                acknowledged = *n;
            }
            Line::Path { flow, in_flight: b, srtt, .. } if flow == "sack" => {
                in_flight = *b;
                assert!(acknowledged < 3 || (0.04..0.2).contains(srtt), "{line:?}");
            }
            _ => {}
        }
    }
    assert!(next > 500, "{next}");
    assert_eq!(in_flight, (next - acknowledged) * 1_448);
    let lost =
        |l: &&Line| matches!(l, Line::Lost { flow, segment: Some(_), tsn, .. } if flow == "sack" && tsn.is_empty());
    assert!(lines.iter().filter(lost).count() > 20);
}

#[test]
fn a_tcp_flow_becomes_a_drawing_that_names_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (_, lines) = traced(BESIDE, dir.path());
    let draw = |flow: Option<&str>| {
        let options = diagram::Options { flow: flow.map(str::to_owned), ..Default::default() };
        let d = diagram::lay_out(&lines, &options).unwrap();
        (d.drawing().standalone(), d.page("0").to_html())
    };
    let (svg, html) = draw(Some("sack"));
    for word in [
        "Segments over time",
        "path 1: sent again",
        "path 1: ssthresh",
        "lost: queue full",
        "not acknowledged in order",
        "bottleneck.forward",
    ] {
        assert!(svg.contains(word), "{word}");
    }
    assert!(!svg.contains("TSN") && !svg.contains("no data") && html.contains("segments sent"));
    // The flow of SCTP comes first although it starts last.
    assert!(draw(None).0.contains("Flow sctp"));
    let udp =
        diagram::lay_out(&lines, &diagram::Options { flow: Some("udp".into()), ..Default::default() }).unwrap_err();
    assert_eq!(udp.to_string(), "no flow `udp` of SCTP or TCP sent data here; sack, reno, sctp did");
}

#[test]
fn a_queue_names_all_paths_on_its_link() {
    let dir = tempfile::tempdir().unwrap();
    let (_, lines) = traced(BESIDE, dir.path());
    let on = |name: &str| {
        let here = lines.iter().find_map(|l| match l {
            Line::Queue { link, paths, .. } if link == name => Some(paths.clone()),
            _ => None,
        });
        here.unwrap().into_iter().map(|p| (p.flow, p.path, p.way)).collect::<Vec<_>>()
    };
    let all = ["sctp", "sack", "reno", "udp"].map(|f| (f.to_owned(), 0, Way::Data));
    assert_eq!(on("bottleneck.forward"), all);
}

#[test]
fn what_is_sent_again_while_no_path_is_active_is_dormant() {
    let text = r#"
name = "dark"
duration = "20s"
metrics = ["main.dormant"]
[topology]
kind = "disjoint-paths"
delay = "10ms"
rate = "4mbit"
limit = "50p"
path1 = { schedule = ["2s down", "14s up"] }
path2 = { schedule = ["2s down", "14s up"] }
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt-rtx-csi"
"#;
    let dormant = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        let (row, lines) = traced(text, dir.path());
        let is = |l: &&Line| matches!(l, Line::Retransmission { decided_by: Some(d), .. } if d == "dormant");
        (row.values[0], lines.iter().filter(is).count())
    };
    let (counted, logged) = dormant(text);
    assert!(counted.unwrap() > 2.0 && logged as f64 == counted.unwrap(), "{counted:?} {logged}");
    // A policy without counters is logged all the same.
    let (_, logged) = dormant(&text.replace("cmt-rtx-csi", "cmt").replace("main.dormant", "main.retransmissions"));
    assert!(logged > 2, "{logged}");
}

#[test]
fn captures_of_tcp_and_udp_are_read_as_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (row, lines) = traced(BESIDE, dir.path());
    let tshark = |host: &str, filter: &str| {
        let file = dir.path().join(format!("beside-seed1-{host}.pcapng"));
        let mut command = Command::new("tshark");
        for option in ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.check_checksum:TRUE"] {
            command.args(["-o", option]);
        }
        let output = command.args(["-Y", filter, "-r"]).arg(file).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).lines().count() as u64)
    };
    if tshark("sender2", "tcp").is_none() {
        eprintln!("SKIPPED captures_of_tcp_and_udp_are_read_as_what_they_are: tshark is not installed");
        return;
    }
    let count = |host: &str, filter: &str| tshark(host, filter).unwrap();
    for host in ["sender2", "receiver2", "sender3", "receiver3", "sender4", "receiver4"] {
        let transport = if host.ends_with('4') { "udp" } else { "tcp" };
        let wrong =
            format!("_ws.malformed || !{transport} || ip.checksum.status == 0 || {transport}.checksum.status == 0");
        assert_eq!(count(host, &wrong), 0, "{host}");
        assert!(count(host, transport) > 100, "{host}");
    }
    // Bytes follow from segments without a hole, and what was sent again is known as such.
    let log = |f: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| f(l)).count() as u64;
    assert_eq!(count("sender2", "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment"), 0);
    assert_eq!(count("sender2", "tcp.analysis.retransmission || tcp.analysis.out_of_order"), values(&row)[0]);
    assert_eq!(
        count("sender2", "tcp.len == 1448"),
        log(&|l| match l {
            Line::Data { flow, segment, .. } => flow == "sack" && *segment != Some(0),
            Line::Retransmission { flow, .. } => flow == "sack",
            _ => false,
        })
    );
    assert_eq!(
        count("sender2", "tcp.flags.ack == 1 && tcp.len == 0"),
        1 + log(&|l| matches!(l, Line::Ack { flow, next, .. } if flow == "sack" && *next > 1))
    );
    assert!(count("sender2", "tcp.options.sack.count > 0") > 20 && count("receiver2", "tcp.flags.syn == 1") == 2);
    assert!(count("receiver3", "tcp.flags.fin == 1") > 0);
    assert!(count("receiver4", "udp.length == 508 && ip.len == 528") > 100);
}

/// The table of frames adds up to what is measured of them.
#[test]
fn the_table_of_frames_is_what_a_viewer_saw() {
    for loss in ["0%", "2%", "8%"] {
        let text = format!(
            r#"
name = "film"
duration = "10s"
measure-from = "0s"
metrics = ["film.frames", "film.whole-frames", "film.decodable-frames", "film.unusable-packets"]
topology = {{ kind = "single-path", rate = "4mbit", delay = "40ms", loss = "{loss}" }}
[[flow]]
name = "film"
transport = "udp"
playout = "200ms"
traffic = {{ kind = "video", rate = "2mbit" }}
"#
        );
        let scenario = Scenario::parse("film.toml", &text, &|_| Err(String::new())).unwrap();
        let point = scenario.points().unwrap().remove(0);
        let dir = tempfile::tempdir().unwrap();
        let frames = Outputs { frames: true, ..Outputs::default() };
        let (row, files) = run_traced(&scenario, &point, 1, dir.path(), frames).unwrap();
        assert_eq!(files, [dir.path().join("film-seed1-frames.csv")]);
        let text = std::fs::read_to_string(&files[0]).unwrap();
        let (head, lines) = text.split_once('\n').unwrap();
        assert_eq!(head, "flow,frame,class,time,bytes,packets,came,in-time,whole,decodable");
        let rows: Vec<Vec<&str>> = lines.lines().map(|l| l.split(',').collect()).collect();
        // What is due behind the end is measured as nothing.
        let number = |r: &[&str], i: usize| r[i].parse::<f64>().unwrap();
        let due: Vec<&Vec<&str>> = rows.iter().filter(|r| number(r, 3) + 0.2 <= 10.0).collect();
        let part = |of: usize| of as f64 / due.len() as f64;
        let whole = part(due.iter().filter(|r| r[5] == r[7]).count());
        let known: Vec<_> = due.iter().filter(|r| !r[9].is_empty()).collect();
        let decodable = known.iter().filter(|r| r[9] == "1").count() as f64 / known.len() as f64;
        let missing: f64 = due.iter().map(|r| number(r, 5) - number(r, 7)).sum();
        let unusable = missing / due.iter().map(|r| number(r, 5)).sum::<f64>();
        let measured: Vec<f64> = row.values.iter().map(|v| v.unwrap()).collect();
        assert_eq!(measured[0], due.len() as f64, "{loss}");
        for (table, measured) in [whole, decodable, unusable].into_iter().zip(&measured[1..]) {
            assert!((table - measured).abs() < 1e-9, "{loss}: {table} {measured}");
        }
        assert!(rows.iter().all(|r| (r[5] == r[6]) != r[8].is_empty()));
        assert_eq!(loss == "0%", whole == 1.0);
    }
}
