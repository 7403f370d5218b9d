//! "A message that fills a packet" does: what the association keeps free of each packet is known beforehand.

use super::build::scene;
use crate::node::SctpAgent;
use crate::scenario::{Scenario, Transport};
use anabranch_base::Instant;
use anabranch_engine::Association;
use anabranch_policy::registry::Profile;

/// A greedy flow for a second: what `look` finds of its sender's association, and the payload of a full message.
fn run<T>(flow: &str, look: impl FnOnce(&Association) -> T) -> (T, usize, Option<u64>) {
    let text = format!(
        "name = \"full\"\nduration = \"1s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"disjoint-paths\"\n\
         rate = \"4mbit\"\ndelay = \"10ms\"\nlimit = \"50p\"\npath1 = {{}}\npath2 = {{ delay = \"15ms\" }}\n[[flow]]\n\
         name = \"main\"\ntransport = \"sctp\"\n{flow}\n"
    );
    let s = Scenario::parse("full.toml", &text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{flow}: {e}"));
    let plan = s.points().expect("points").remove(0).plan;
    let Transport::Sctp(sctp) = &plan.flows[0].transport else { panic!("not sctp") };
    let (config, full) = sctp.config(1).expect("a configuration");
    let mut scene = scene(&plan, 1).expect("a scene");
    scene.network.run_until(Instant::ZERO + plan.duration);
    let agent = scene.network.agent::<SctpAgent>(scene.flows[0].sender).expect("a sender");
    let association = agent.association().unwrap_or_else(|| panic!("{flow}: no association"));
    (look(association), full as usize, config.sending.initial_window)
}

/// Every profile towards receivers that take parity, that do not, and of its own kind.
#[test]
fn a_full_message_is_the_largest_that_leaves_in_one_packet() {
    let mut less = 0;
    for profile in Profile::names() {
        for peer in ["", "peer = \"sctp\"", "peer = \"live-parity\""] {
            for more in ["", "packet-size = 600", "encapsulation = \"udp\"", "settings = { partial_reliability = 0 }"] {
                let flow = format!("profile = \"{profile}\"\n{peer}\n{more}\ninitial-window = \"4p\"");
                let (payload, full, window) = run(&flow, Association::max_payload);
                let searches = Profile::named(profile).expect("a profile").finds_packet_size();
                // Who looks for larger packets may have found some by then.
                assert!(if searches { payload >= full } else { payload == full }, "{flow}: {payload} {full}");
                assert_eq!(window, Some(4 * full as u64), "{flow}");
                less += usize::from(more.is_empty() && full < 1_452);
            }
        }
    }
    assert!(less > 0, "parity takes room somewhere");
}

/// A second packet for what did not fit the first would halve their size.
#[test]
fn greedy_flows_with_parity_send_full_packets() {
    let bytes = |flow: &str| {
        let each = |a: &Association| {
            a.paths().map(|(_, p)| p.counters).fold((0, 0), |n, c| (n.0 + c.bytes_sent, n.1 + c.packets_sent))
        };
        let ((bytes, packets), ..) = run(flow, each);
        bytes as f64 / packets as f64
    };
    for (profile, keys) in [
        ("live-parity", ""),
        ("cmt", "redundancy = \"erasure\"\nrepair = \"erasure\""),
        ("low-latency", "redundancy = \"erasure:rate=0.1\"\nrepair = \"erasure\""),
        ("live", "redundancy = \"erasure:copies=1\"\nrepair = \"erasure\""),
    ] {
        let (with, without) = (bytes(&format!("profile = \"{profile}\"\n{keys}")), bytes("profile = \"cmt\""));
        assert!(with > 0.93 * without, "{profile} {keys}: {with} and not {without} bytes a packet");
    }
}
