//! Links that damage packets: SCTP's checksum rejects what is wrong, TCP's and UDP's hosts drop it, and nothing wrong is
//! ever delivered.

use anabranch_lab::results::Row;
use anabranch_lab::run::{run_one, run_traced};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::trace::Outputs;

const METRICS: [&str; 5] =
    ["main.rejected", "main.retransmissions", "main.goodput", "path1.damaged", "path1.loss-drops"];

fn scenario(corrupt: &str, flow: &str, metrics: &[&str]) -> Scenario {
    let text = format!(
        "name = \"damage\"\nduration = \"20s\"\nmetrics = {metrics:?}\n\
         [topology]\nkind = \"disjoint-paths\"\n\
         path1 = {{ rate = \"10mbit\", delay = \"20ms\", limit = \"60p\"{corrupt} }}\n\
         [[flow]]\nname = \"main\"\n{flow}\n"
    );
    Scenario::parse("damage.toml", &text, &|_| Err(String::new())).expect("a scenario")
}

fn run(corrupt: &str, flow: &str, metrics: &[&str]) -> Row {
    run_one(&scenario(corrupt, flow, metrics).points().expect("a point")[0], 1).expect("a run")
}

const SCTP: &str = "transport = \"sctp\"\nprofile = \"sctp\"";

#[test]
fn what_is_damaged_is_rejected_and_sent_again() {
    let of = |corrupt: &str, flow: &str| -> Vec<f64> {
        run(corrupt, flow, &METRICS).values.into_iter().map(|v| v.expect("a value")).collect()
    };
    for flow in [SCTP, "transport = \"tcp\""] {
        let whole = of("", flow);
        assert_eq!((whole[0], whole[3]), (0.0, 0.0), "{flow}");
        let v = of(", up.corrupt = \"1%\"", flow);
        println!("{flow}: {METRICS:?} {v:?}, whole {whole:?}");
        assert!((0.005..0.02).contains(&v[3]), "{flow}: {v:?}");
        assert!(v[0] >= 10.0 && v[1] > 5.0, "{flow}: {v:?}");
        assert_eq!(v[4], 0.0, "{flow}: nothing was lost otherwise");
        assert!(v[2] > 0.0 && v[2] < whole[2], "{flow}: {v:?}");
    }
}

/// A damaged packet came, and yet its chunks did not.
#[test]
fn what_is_damaged_is_no_packet_that_arrived() {
    let metrics = ["main.rejected", "main.lost-damaged-as-congestion", "main.lost-arrived-as-congestion"];
    for (corrupt, at_least) in [("2%", 20.0), ("10%", 20.0), ("bits 1e-6", 5.0)] {
        let v = run(&format!(", up.corrupt = \"{corrupt}\""), SCTP, &metrics).values;
        let [rejected, damaged, arrived] = v[..] else { panic!("{v:?}") };
        assert!(rejected >= Some(at_least) && damaged >= Some(at_least), "{corrupt}: {v:?}");
        assert!(arrived <= damaged.map(|d| d / 4.0), "{corrupt}: {v:?}");
    }
}

#[test]
fn every_model_and_direction_can_be_asked_for() {
    for corrupt in [", corrupt = \"bits 1e-6\"", ", corrupt = \"blocks\"", ", down.corrupt = \"blocks 50% 50%\""] {
        let rejected = run(corrupt, SCTP, &METRICS).values[0].expect("a value");
        assert!(rejected > 0.0, "{corrupt}");
    }
    let udp = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1mbit\", size = 500 }";
    let v = run(", up.corrupt = \"10%\"", udp, &["main.rejected", "main.losses", "main.messages"]).values;
    let v: Vec<f64> = v.into_iter().map(|v| v.expect("a value")).collect();
    assert!(v[0] > 400.0 && (v[0] - v[1]).abs() <= 2.0, "what is dropped is missing: {v:?}");
}

#[test]
fn captures_show_packets_as_they_came() {
    let scenario = scenario(", up.corrupt = \"2%\"", SCTP, &METRICS);
    let point = &scenario.points().expect("a point")[0];
    let dir = tempfile::tempdir().expect("a directory");
    let outputs = Outputs { pcap: true, ..Outputs::default() };
    let (row, files) = run_traced(&scenario, point, 1, dir.path(), outputs).expect("a run");
    let rejected = row.values[0].expect("a value");
    let mut wrong = std::collections::BTreeSet::new();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "pcapng")) {
        let bytes = std::fs::read(file).expect("a capture");
        // Packets of IP with SCTP in them, wherever they are in the file: the block's length says how long.
        let mut at = 0;
        while let Some(block) = bytes.get(at..) {
            let Some(head) = block.first_chunk::<28>() else { break };
            let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
            if word(0) == 6 {
                let packet = &block[28..28 + word(20) as usize];
                let sctp = packet.get(20..).unwrap_or(&[]);
                if packet[9] == 132 && anabranch_wire::Packet::parse(sctp, anabranch_wire::Verify::Checksum).is_err() {
                    wrong.insert(packet.to_vec());
                }
            }
            at += word(4) as usize;
        }
    }
    // A bit of the IP header is no matter of SCTP's checksum.
    assert!(wrong.len() as f64 > 0.8 * rejected && wrong.len() as f64 <= rejected, "{} of {rejected}", wrong.len());
}
