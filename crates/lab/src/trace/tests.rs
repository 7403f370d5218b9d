use super::*;
use crate::metrics::Record;
use crate::node::{Application, Delivery, End, Pairs, SctpAgent, SctpConfig, SctpPacket};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Profile;
use anabranch_sim::network::{AgentId, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Bulk, TrafficConfig};
use anabranch_sim::{LinkConfig, LossConfig};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Two lossy paths with small queues between two hosts, five seconds of bulk with RTX-CSI.
pub(super) fn run(dir: Option<&Path>) -> (Network<SctpPacket>, u64) {
    let mut t = Topology::new();
    let (a, b) = (t.host("a"), t.host("b"));
    for (name, ms) in [("upper", 20), ("lower", 40)] {
        let l = LinkConfig::fixed(Some(Rate::from_bits_per_sec(4_000_000)), Duration::from_millis(ms));
        t.cable(name, a, b, l.clone().with_loss(LossConfig::bernoulli(0.02)), l);
    }
    let mut network = Network::new(&t, 1).unwrap();
    let pairs = Pairs::of(network.addresses(a), network.addresses(b));
    let mut association = AssocConfig::new(Profile::named("cmt-rtx-csi").unwrap());
    association.mtu.packet_size = 1_480;
    association.limits.receive_buffer = 128 << 10;
    association.extensions.dynamic_addresses = false;
    let config = |end, peer| SctpConfig {
        end,
        association: association.clone(),
        pairs: pairs.clone(),
        peer: AgentId(peer),
        overhead: 20,
        seed: 7,
        flow: "main".into(),
    };
    let record = Record::shared(Instant::ZERO, Duration::from_secs(1));
    let traffic = TrafficConfig::Bulk(Bulk::endless(1_452));
    let server = SctpAgent::new(config(End::Server, 1), record.clone());
    let app = Application::new(traffic.build(7, "main"), Delivery::default());
    let client = SctpAgent::new(config(End::Client, 0), record.clone()).sending(app);
    let receiver = network.add(Box::new(server), Instant::ZERO);
    let sender = network.add(Box::new(client), Instant::ZERO);
    let tracer = dir.map(|dir| {
        let flow = TracedFlow::new(&network, ("main", "sctp"), (sender, receiver), pairs.iter().collect())
            .choosing(&association.profile);
        let run = TracedRun { scenario: "two-paths".into(), point: "loss 2%".into(), seed: 1 };
        let tracer = Tracer::create(dir, "run", Outputs::ALL, &t, &run, vec![flow]).unwrap();
        network.observe(Box::new(tracer.watcher()));
        network.agent_mut::<SctpAgent>(sender).unwrap().watch(tracer.probe("main").unwrap());
        tracer
    });
    network.run_until(Instant::ZERO + Duration::from_secs(5));
    if let Some(tracer) = tracer {
        assert_eq!(tracer.finish().unwrap().len(), 4);
    }
    let fingerprint = record.borrow().fingerprint();
    (network, fingerprint)
}

fn lines(dir: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(dir.join("run.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn watching_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(None).1, run(Some(dir.path())).1);
}

fn sacks_sent(network: &Network<SctpPacket>) -> u64 {
    network.agent::<SctpAgent>(AgentId(0)).unwrap().association().unwrap().stats().sacks_sent
}

#[test]
fn the_log_tells_what_the_engine_and_the_links_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (network, _) = run(Some(dir.path()));
    let lines = lines(dir.path());
    let count = |f: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| f(l)).count() as u64;
    let association = network.agent::<SctpAgent>(AgentId(1)).unwrap().association().unwrap();
    let stats = association.stats();
    assert!(matches!(&lines[0], Line::Run { seed: 1, flows, .. } if flows[0].paths.len() == 2));

    // Retransmissions, why, and what decided.
    assert!(stats.retransmissions > 20, "{}", stats.retransmissions);
    assert_eq!(count(&|l| matches!(l, Line::Retransmission { .. })), stats.retransmissions);
    let decided = |which: &str| count(&|l| matches!(l, Line::Retransmission { decided_by: Some(d), .. } if d == which));
    let counted = |name: &str| association.policy_counters().find(|(_, c)| c.0 == name).unwrap().1.1;
    let stages: u64 =
        ["cwnd", "ssthresh", "timeouts", "age", "draw"].map(|s| counted(&format!("stage-{s}"))).iter().sum();
    let all = ["cwnd", "ssthresh", "timeouts", "age", "draw", "alone"].map(decided);
    assert_eq!(all.iter().sum::<u64>(), stats.retransmissions);
    // However often it was asked about a chunk that had to wait, each packet counts once.
    assert_eq!(stages + counted("alone"), stats.retransmissions);
    assert!(decided("cwnd") > 0 && decided("cwnd") == counted("stage-cwnd"));
    assert!(lines.iter().all(|l| !matches!(l, Line::Retransmission { why: Why::Other, .. })), "losses explain each");

    // Who chose the path of new data, and from what.
    let mut chosen = BTreeMap::new();
    for line in &lines {
        if let Line::Data { path, decided_by, open, rooms, .. } = line {
            assert!(open.contains(path) && rooms.len() == 2 && rooms[*path].1 < rooms[*path].0, "{line:?}");
            let by = decided_by.as_deref().unwrap();
            assert_eq!(by == "alone", open.len() == 1, "{line:?}");
            *chosen.entry(by.to_owned()).or_insert(0) += 1;
        }
    }
    let scheduler = association.config().profile.spec(anabranch_policy::registry::Hook::PathScheduler);
    assert!(chosen.len() == 2 && chosen["alone"] > 50 && chosen[&scheduler] > 50, "{chosen:?}");
    let Line::Run { flows, .. } = &lines[0] else { panic!("the first line") };
    assert_eq!((&flows[0].path_scheduler, flows[0].retransmission.as_deref()), (&Some(scheduler), Some("rtx_csi")));

    // Losses with their true cause, at the link that the packet was on.
    for (place, link, path) in [("upper.forward", 0, 0), ("lower.forward", 2, 1)] {
        let counters = network.link(anabranch_sim::network::LinkId(link)).unwrap().counters();
        let here = |c: Cause| {
            count(
                &|l| matches!(l, Line::Lost { place: p, cause, path: on, .. } if p == place && *cause == c && *on == path),
            )
        };
        assert_eq!(here(Cause::RandomLoss), counters.dropped_loss.packets);
        assert_eq!(here(Cause::Queue), counters.dropped_queue.packets);
    }

    // What was taken for lost, what for, and what it was.
    let taken: u64 = association.paths().map(|(_, p)| p.counters.lost_by_report + p.counters.lost_by_timeout).sum();
    assert_eq!(count(&|l| matches!(l, Line::Judged { named: Some(n), .. } if n == "congestion")), taken);
    for line in &lines {
        if let Line::Judged { tsn, path, cause: Some(cause), .. } = line {
            let dropped = |l: &Line| matches!(l, Line::Lost { tsn: t, path: p, cause: c, .. } if t.contains(tsn) && p == path && c == cause);
            assert!(lines.iter().any(dropped), "{line:?}");
        }
    }
    assert!(count(&|l| matches!(l, Line::Judged { cause: Some(Cause::RandomLoss), .. })) > 10);

    // The last state noted is the last state there was.
    for (id, path) in association.paths() {
        let last = lines.iter().rev().find_map(|l| match l {
            Line::Path { path: p, cwnd, in_flight, .. } if *p == id.index() => Some((*cwnd, *in_flight)),
            _ => None,
        });
        assert_eq!(last, Some((path.cwnd, path.in_flight)));
    }
    // The way back loses nothing; a few are on it at the end.
    let on_the_way = sacks_sent(&network) - count(&|l| matches!(l, Line::Sack { .. }));
    assert!(on_the_way < 30, "{on_the_way}");
    assert!(count(&|l| matches!(l, Line::Queue { packets, .. } if *packets > 2)) > 10);
    for line in &lines {
        if let Line::Queue { link, paths, .. } = line {
            let path = usize::from(link.starts_with("lower"));
            let way = if link.ends_with("forward") { Way::Data } else { Way::Back };
            assert_eq!(*paths, [OnLink { flow: "main".into(), path, way }], "{link}");
        }
    }
}

#[test]
fn every_packet_can_be_followed_through_the_table() {
    let dir = tempfile::tempdir().unwrap();
    run(Some(dir.path()));
    let text = std::fs::read_to_string(dir.path().join("run.csv")).unwrap();
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some("time,event,place,from,to,size,kind,flow,path,number,tsn,cause,ecn"));
    let mut stories: BTreeMap<u64, Vec<(f64, String)>> = BTreeMap::new();
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(fields.len(), 13, "{row}");
        stories.entry(fields[9].parse().unwrap()).or_default().push((fields[0].parse().unwrap(), fields[1].to_owned()));
    }
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for story in stories.values_mut() {
        story.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(story.is_sorted_by(|a, b| a.0 <= b.0));
        let events: Vec<&str> = story.iter().map(|e| e.1.as_str()).collect();
        let whole = ["sent", "enqueued", "dequeued", "arrived", "received"];
        let prefix = events.iter().zip(whole).all(|(a, b)| *a == b || *a == "dropped");
        assert!(prefix, "{events:?}");
        *ends.entry((*events.last().unwrap()).to_owned()).or_default() += 1;
    }
    assert!(ends["received"] > 3_000 && ends["dropped"] > 20, "{ends:?}");
}

#[test]
fn captures_are_real_packets() {
    let dir = tempfile::tempdir().unwrap();
    let (network, _) = run(Some(dir.path()));
    let tshark = |host: &str, filter: &str| {
        let file = dir.path().join(format!("run-{host}.pcapng"));
        let mut command = Command::new("tshark");
        command
            .args([
                "-o",
                "sctp.checksum:CRC 32c",
                "-o",
                "ip.check_checksum:TRUE",
                "-Y",
                filter,
                "-T",
                "fields",
                "-e",
                "frame.number",
                "-r",
            ])
            .arg(file);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).lines().count() as u64)
    };
    let Some(data) = tshark("a", "sctp.chunk_type == 0") else {
        eprintln!("SKIPPED captures_are_real_packets: tshark is not installed");
        return;
    };
    assert!(data > 1_500, "{data}");
    for host in ["a", "b"] {
        assert_eq!(tshark(host, "_ws.malformed || !sctp || ip.checksum.status == \"Bad\""), Some(0));
        assert_eq!(tshark(host, "sctp.checksum.status != \"Good\""), Some(0));
    }
    assert_eq!(tshark("b", "sctp.chunk_type == 3"), Some(sacks_sent(&network)));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let run = TracedRun::default();
    let error = Tracer::create(&file, "run", Outputs::ALL, &Topology::new(), &run, Vec::new()).err().unwrap();
    assert!(error.to_string().starts_with(&format!("cannot write {}: ", file.display())), "{error}");
}
