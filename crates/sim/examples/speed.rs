//! What a simulated packet costs: nanoseconds of CPU per link transmission, TCP to TCP.
//!
//! ```text
//! cargo run --release -p anabranch-sim --example speed [-- CASE [ROUNDS]]
//! ```
//! The cases are run in turn, `ROUNDS` times (5), and the least of each is printed, so that what else the machine
//! does counts least. CPU time and memory are Linux's; elsewhere they are zero.

use anabranch_base::{Duration, Instant, RandomStream, Rate};
use anabranch_sim::network::{AgentId, LinkId, Network, Peer};
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::tcp::{Recovery, Supply, TcpConfig, TcpSink, TcpSource};
use anabranch_sim::{Limit, LinkConfig};

struct Case {
    name: &'static str,
    flows: u32,
    /// Does each flow have hosts of its own, behind one bottleneck? If not, all share one cable.
    hosts: bool,
    mbit: u64,
    seconds: u64,
}

const fn of(name: &'static str, flows: u32, hosts: bool) -> Case {
    Case { name, flows, hosts, mbit: 1_000, seconds: 10 }
}

const CASES: [Case; 12] = [
    of("cable", 1, false),
    Case { name: "cable-1h", flows: 1, hosts: false, mbit: 20, seconds: 3_600 },
    of("cable-10", 10, false),
    of("cable-100", 100, false),
    of("cable-300", 300, false),
    of("cable-1000", 1_000, false),
    of("dumbbell", 1, true),
    Case { name: "dumbbell-1h", flows: 1, hosts: true, mbit: 10, seconds: 3_600 },
    of("dumbbell-10", 10, true),
    of("dumbbell-100", 100, true),
    of("dumbbell-300", 300, true),
    of("dumbbell-1000", 1_000, true),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().filter(|w| w != "all");
    let rounds: u32 = arguments.next().and_then(|r| r.parse().ok()).unwrap_or(5);
    let cases: Vec<&Case> = CASES.iter().filter(|c| wanted.as_ref().is_none_or(|w| w == c.name)).collect();
    let mut least = vec![f64::MAX; cases.len()];
    let mut sent = vec![0; cases.len()];
    for _ in 0..rounds {
        for (i, case) in cases.iter().enumerate() {
            let mut network = build(case);
            let before = cpu_ns();
            network.run_until(Instant::ZERO + Duration::from_secs(case.seconds));
            let spent = cpu_ns() - before;
            sent[i] = transmissions(&network);
            least[i] = least[i].min(spent as f64 / sent[i] as f64);
        }
    }
    println!("case               flows  virtual s  transmissions  ns of CPU each");
    for ((case, least), sent) in cases.iter().zip(least).zip(sent) {
        println!("{:<18} {:>5} {:>10} {:>14} {least:>15.1}", case.name, case.flows, case.seconds, sent);
    }
    println!("peak memory: {} kB", peak_kb());
}

/// The bottleneck holds one round trip of 20 ms, and the windows together two.
fn build(case: &Case) -> Network<()> {
    let rate = Rate::from_bits_per_sec(case.mbit * 1_000_000);
    let segments = (rate.bytes_per_sec() / 50 / 1_040).max(20);
    let link = LinkConfig::fixed(Some(rate), Duration::from_millis(10)).with_limit(Limit::packets(segments));
    let topology = if case.hosts {
        let access = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000_000)), Duration::from_micros(100));
        let both = || (access.clone(), access.clone());
        let pairs = (0..case.flows).map(|_| (both(), both())).collect();
        Topology::shared_bottleneck((link.clone(), link), pairs, 1)
    } else {
        Topology::single_path((link.clone(), link))
    };
    let mut network = Network::new(&topology, 1).expect("the topology is sound");
    let window = (2 * segments as u32 / case.flows).max(4);
    let config = TcpConfig::ns2(Recovery::NewReno).with_window(window);
    let mut random = RandomStream::named(1, "clock");
    for flow in 1..=case.flows {
        let name = |end: &str| if case.hosts { format!("{end}{flow}") } else { end.to_owned() };
        let [from, to] = ["sender", "receiver"].map(|end| {
            let node = network.node(&name(end)).expect("the host is there");
            network.addresses(node)[0]
        });
        let peer = Peer { address: to, agent: AgentId(network.next_id().0 + 1) };
        let source = TcpSource::new(config, from, peer, Supply::Endless, &mut random);
        let start = Instant::ZERO + Duration::from_micros(u64::from(flow) * 1_000);
        network.add(Box::new(source), start);
        network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
    }
    network
}

fn transmissions(network: &Network<()>) -> u64 {
    let links = (0..network.links()).filter_map(|i| network.link(LinkId(i as u32)));
    links.map(|l| l.counters().delivered.packets).sum()
}

/// Time this thread has been on a CPU.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
