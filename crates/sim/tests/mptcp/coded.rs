//! FMTCP and NC-MPTCP as reconstructed: what they send for what they deliver, and what they spare.

use super::{at, both, connect, link, sink, source};
use anabranch_base::Duration;
use anabranch_sim::link::Schedule;
use anabranch_sim::transport::mptcp::{Coding, FmtcpConfig, MptcpConfig, NcConfig};
use anabranch_sim::transport::tcp::Supply;
use anabranch_sim::{LinkConfig, LossConfig};

const FMTCP: Coding = Coding::Fmtcp(FmtcpConfig::DEFAULT);
const NC: Coding = Coding::Nc(NcConfig::DEFAULT);

fn config(coding: Coding) -> MptcpConfig {
    MptcpConfig { coding, ..MptcpConfig::rfc() }
}

fn lossy(kbit: u64, ms: u64, loss: f64) -> (LinkConfig, LinkConfig) {
    let mut way = both(link(kbit, ms, 60));
    way.0.loss = LossConfig::bernoulli(loss);
    way
}

/// A block of K symbols is sent in K sums and the margin, and what is lost more: with a margin of ten for 64 symbols at
/// least 15.6 % more sums than symbols, and by loss p a part of 1/(1 - p).
#[test]
fn fmtcp_sends_a_block_and_its_margin() {
    for (loss, margin) in [(0.0, 10), (0.0, 3), (0.02, 10)] {
        let own = FmtcpConfig { margin, ..FmtcpConfig::DEFAULT };
        let ways = vec![lossy(8_000, 20, loss), lossy(8_000, 20, loss)];
        let mut network = connect(config(Coding::Fmtcp(own)), Supply::Endless, ways, 1);
        network.run_until(at(60));
        let (sent, (came, useful)) = (source(&network).counters().sums as f64, sink(&network).sums());
        let delivered = sink(&network).delivered() as f64 / 160.0;
        let per_symbol = sent / delivered;
        let expected = (1.0 + f64::from(margin) / 64.0) / (1.0 - loss);
        println!(
            "loss {loss}, margin {margin}: {per_symbol:.3} sums a symbol, {expected:.3} expected; {came} came, {useful} useful"
        );
        assert!((per_symbol / expected - 1.0).abs() < 0.08, "{per_symbol} and {expected}");
        // What is useful are the symbols, those of blocks that are not solved yet included.
        assert!((useful as f64 / delivered - 1.0).abs() < 0.02, "{useful} and {delivered}");
        let a = sink(&network).assembly();
        assert_eq!(a.digest(), a.expected_digest());
    }
}

/// Where nothing is lost NC-MPTCP's sums are its part of the data: all of them say something new, and both paths are used.
#[test]
fn nc_mptcp_without_loss_wastes_nothing() {
    let ways = vec![both(link(8_000, 20, 60)), both(link(4_000, 30, 60))];
    let mut nc = config(NC);
    nc.receive_buffer = 4 << 20;
    let mut network = connect(nc, Supply::Endless, ways, 1);
    network.run_until(at(100));
    let (came, useful) = sink(&network).sums();
    let rate = sink(&network).delivered() as f64 * 8.0 / 100.0;
    println!("{rate:.0} bit/s, {came} sums came, {useful} useful");
    assert!(useful as f64 > 0.9 * came as f64, "{came} {useful}");
    assert!(rate > 0.75 * 12e6 * 1_428.0 / 1_500.0, "{rate}");
    let a = sink(&network).assembly();
    assert_eq!(a.digest(), a.expected_digest());
}

/// A path that dies takes nothing with it: sums over the others make up for what it held.
#[test]
fn a_path_that_dies() {
    for dead in [0, 1] {
        let mut ways = vec![both(link(4_000, 20, 60)); 3];
        let outage = Schedule::outage(Duration::from_secs(20), Duration::from_secs(500));
        (ways[dead].0.schedule, ways[dead].1.schedule) = (outage.clone(), outage);
        let mut network = connect(config(FMTCP), Supply::Endless, ways, 5);
        network.run_until(at(30));
        let before = sink(&network).delivered();
        network.run_until(at(90));
        let rate = (sink(&network).delivered() - before) as f64 * 8.0 / 60.0;
        println!("FMTCP without path {dead}: {rate:.0} bit/s of 8000000");
        assert!(rate > 0.6 * 8e6, "{dead}: {rate}");
        let a = sink(&network).assembly();
        assert_eq!(a.digest(), a.expected_digest());
    }
}
