//! The time that a sender's host takes for each packet, over whole runs.

use super::run_one;
use crate::scenario::Scenario;

fn values(text: &str, seed: u64) -> (u64, Vec<f64>) {
    let s = Scenario::parse("p.toml", text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
    let row = run_one(&s.points().expect("points").remove(0), seed).expect("runs");
    (row.fingerprint, row.values.into_iter().map(|v| v.expect("a value")).collect())
}

/// Two greedy TCP flows of one kind over a queue of 40 packets of 1.3 ms each; part of the second.
fn share(access: &str, keys: &str, seeds: u64) -> f64 {
    let flow = |n| {
        format!(
            "[[flow]]\nname = \"t{n}\"\ntransport = \"tcp\"\nrecovery = \"sack\"\nfrom = \"sender{n}\"\nto = \
             \"receiver{n}\"\nstart-within = \"1s\"\n{keys}\n"
        )
    };
    let text = format!(
        "name = \"phase\"\nduration = \"80s\"\nmeasure-from = \"20s\"\nmetrics = [\"t2.share\"]\n[topology]\nkind = \
         \"shared-bottleneck\"\npairs = 2\nbottleneck = {{ rate = \"9mbit\", delay = \"25ms\", limit = \"40p\" }}\n\
         access = {{ rate = \"100mbit\", delay = \"1ms\" }}\ncable = {{ sender2 = {{ delay = \"{access}\" }} }}\n{}{}",
        flow(1),
        flow(2)
    );
    (1..=seeds).map(|seed| values(&text, seed).1[0]).sum::<f64>() / seeds as f64
}

/// Floyd and Jacobson 1992: a fifth of a millisecond of access decides who has nearly all of a link.
#[test]
fn a_random_time_at_hosts_breaks_phase_effects() {
    let processed = "processing = \"10ms\"";
    for acknowledge in ["", "delayed-ack = \"0s\"\n"] {
        for access in ["1.2ms", "1.3ms"] {
            let without = share(access, acknowledge, 4);
            assert!(without > 0.85, "{access} {acknowledge}: {without}");
        }
        for access in ["0.9ms", "1.2ms", "1.3ms"] {
            let with = share(access, &format!("{acknowledge}{processed}"), 6);
            assert!((with - 0.5).abs() < 0.05, "{access} {acknowledge}: {with}");
        }
    }
}

/// Few packets wait for others, so each waits for half of the time in the mean, over every transport.
#[test]
fn every_transport_waits_at_its_senders_host() {
    let text = |flow: &str| {
        format!(
            "name = \"wait\"\nduration = \"60s\"\nmetrics = [\"main.delay\"]\n[topology]\nkind = \"disjoint-paths\"\nrate \
             = \"10mbit\"\ndelay = \"20ms\"\npath1 = {{}}\n[[flow]]\nname = \"main\"\ntraffic = {{ kind = \"cbr\", rate = \
             \"16kbit\", size = 100 }}\n{flow}\n"
        )
    };
    for flow in [
        "transport = \"udp\"",
        "transport = \"tcp\"",
        "transport = \"tcp\"\nrules = \"linux\"",
        "transport = \"mptcp\"",
        "transport = \"sctp\"",
        "transport = \"sctp\"\nprofile = \"low-latency\"",
    ] {
        let (plain, before) = values(&text(flow), 1);
        assert_eq!(values(&text(&format!("{flow}\nprocessing = \"0s\"")), 1), (plain, before.clone()), "{flow}");
        for ms in [4, 20] {
            let (print, after) = values(&text(&format!("{flow}\nprocessing = \"{ms}ms\"")), 1);
            let (more, half) = (1e3 * (after[0] - before[0]), f64::from(ms) / 2.0);
            assert!((more - half).abs() < 0.1 * half && print != plain, "{flow} {ms}: {more}");
        }
    }
}
