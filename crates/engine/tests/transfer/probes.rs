//! While T3 is backed off fresh data leave as probes: what a burst of losses or darkness costs does not depend on how
//! far the back-off has come, and the bound is one packet per interval.

use crate::common::sampled::Sample;
use crate::common::*;
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_sim::{Limit, LinkConfig};
use anabranch_wire::kind;

const PROFILES: [&str; 2] = ["live", "low-latency"];

fn patient(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.failure.max_association_retrans = 10_000;
        c.failure.max_path_retrans = 10_000;
        c.limits.send_buffer = 64 << 20;
    })
}

/// Messages that carry the time at which they were handed over.
struct Stamped {
    sent: u64,
    /// How long each was on its way.
    took: Vec<Duration>,
    /// When each came.
    came: Vec<Instant>,
}

impl Stamped {
    fn new() -> Stamped {
        Stamped { sent: 0, took: vec![], came: vec![] }
    }
    fn send(&mut self, b: &mut Bench, len: usize) {
        let mut v = b.now.as_nanos().to_be_bytes().to_vec();
        v.resize(len, 0);
        // Unordered: a message late is no reason for others to be.
        let options = SendOptions { unordered: true, ..SendOptions::default() };
        assert!(b.send(Side::Client, options, v));
        self.sent += 1;
    }
    fn take(&mut self, b: &mut Bench) {
        let now = b.now;
        for m in b.at_server.drain(..) {
            let bytes = m.payload.into_bytes();
            let at = Instant::from_nanos(u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")));
            self.took.push(now.since(at));
            self.came.push(now);
        }
    }
    /// One message every `gap` for `time`.
    fn stream(&mut self, b: &mut Bench, gap: Duration, time: Duration, len: usize) {
        let (until, step) = (b.now + time, gap.min(ms(2)));
        let mut due = b.now;
        while b.now < until {
            if b.now >= due {
                self.send(b, len);
                due += gap;
            }
            b.run_for(step);
            self.take(b);
        }
    }
    fn drain(&mut self, b: &mut Bench, time: Duration) {
        let until = b.now + time;
        while b.now < until {
            b.run_for(ms(2));
            self.take(b);
        }
    }
    fn share(&mut self, of_thousand: usize) -> Duration {
        self.took.sort_unstable();
        let at = (self.took.len() * of_thousand).div_ceil(1_000).max(1) - 1;
        self.took[at]
    }
}

#[test]
fn darkness_is_over_two_round_trips_after_its_end() {
    let (mut late, mut sample) = (vec![], Sample::one_in(7));
    for profile in PROFILES {
        for delay in [5, 20, 60, 150] {
            for gap in [10, 40, 250] {
                for dark in [700, 2_000, 8_000, 30_000, 61_000] {
                    for len in [60, 900].into_iter().filter(|_| sample.takes()) {
                        let mut b =
                            Bench::connected(dark + delay, &patient(profile), &[(link(10, delay), link(10, delay))]);
                        b.strict = true;
                        let mut s = Stamped::new();
                        s.stream(&mut b, ms(gap), ms(2_000), len);
                        let srtt = b.path(Side::Client, 0).srtt;
                        b.filter = Some(Box::new(|_| false));
                        s.stream(&mut b, ms(gap), ms(dark), len);
                        b.filter = None;
                        let (end, before) = (b.now, s.came.len());
                        s.stream(&mut b, ms(gap), ms(4_000), len);
                        let took = s.came[before..].iter().find(|t| **t > end + ms(delay)).map(|t| t.since(end));
                        // The next probe leaves within two round trips or 50 ms, or with the next message.
                        let most = (srtt * 2 + srtt / 8).max(ms(50)).max(ms(gap)) + ms(delay + 40);
                        if took.is_none_or(|t| t > most) {
                            late.push(format!(
                                "{profile} {delay} ms, each {gap} ms {len} bytes, dark {dark}: {took:?}"
                            ));
                        }
                        s.stream(&mut b, ms(gap), ms(30_000), len);
                        b.run_for(ms(2_000));
                        s.take(&mut b);
                        assert_eq!(s.took.len() as u64, s.sent, "{profile} {delay} {gap} {dark} {len}");
                    }
                }
            }
        }
    }
    assert!(late.is_empty(), "{} late:\n{}", late.len(), late.join("\n"));
}

/// A message each `gap` ms over paths of `delay` ms that all go dark; packets with data that leave in `time` ms, once T3 has
/// expired on all of them.
fn sent_into_the_dark(profile: &str, paths: usize, delay: u64, gap: u64, time: u64) -> usize {
    let links: Vec<_> = (0..paths).map(|_| (link(10, delay), link(10, delay))).collect();
    let mut b = Bench::connected(3, &patient(profile), &links);
    b.strict = true;
    let mut s = Stamped::new();
    s.stream(&mut b, ms(gap), ms(1_000), 900);
    b.filter = Some(Box::new(|_| false));
    s.stream(&mut b, ms(gap), ms(10_000), 900);
    b.tap = Some(vec![]);
    s.stream(&mut b, ms(gap), ms(time), 900);
    b.tapped(Side::Client, kind::DATA).len()
}

#[test]
fn one_packet_per_interval_leaves_into_the_dark() {
    for profile in PROFILES {
        for paths in [1, 2] {
            for delay in [5, 40, 300] {
                let n = sent_into_the_dark(profile, paths, delay, 5, 20_000) as u64;
                let interval = (4 * delay).clamp(50, 1_000);
                let most = paths as u64 * (20_000 / interval + 20);
                assert!(n <= most, "{profile}, {paths} of {delay} ms: {n} packets, at most {most}");
                assert!(n >= 20_000 / interval / 2 / paths as u64, "{profile}, {paths} of {delay} ms: {n} packets");
            }
        }
    }
}

/// What the papers and the standard have is as it was: T3 alone.
#[test]
fn only_where_it_was_chosen() {
    for profile in ["sctp", "cmt-rtx-csi", "ns2-era", "ns2-era-cmt", "thin"] {
        let n = sent_into_the_dark(profile, 1, 40, 20, 10_000);
        assert!(n <= 4, "{profile}: {n}");
    }
}

/// Losses in bursts of `burst` packets, so many of a thousand in all, on the way of the data.
fn bursts(b: &mut Bench, per_mille: u64, burst: u64) {
    let (mut r, mut left) = (RandomStream::named(b.now.as_nanos(), "bursts"), 0);
    b.filter = Some(Box::new(move |l| {
        if l.from != Side::Client {
            return true;
        }
        if left == 0 && r.u64() % (1_000 * burst) < per_mille {
            left = burst;
        }
        let lost = left > 0;
        left -= u64::from(lost);
        !lost
    }));
}

#[test]
fn bursts_of_losses_back_off_to_no_cliff() {
    let mut bad = vec![];
    for profile in PROFILES {
        for gap in [10, 20, 50, 100, 250] {
            for (per_mille, burst) in [(20, 1), (50, 1), (20, 3), (20, 6)] {
                let mut b = Bench::connected(gap, &patient(profile), &[(link(10, 50), link(10, 50))]);
                bursts(&mut b, per_mille, burst);
                let mut s = Stamped::new();
                s.stream(&mut b, ms(gap), ms(1_500 * gap), 100);
                s.drain(&mut b, ms(5_000));
                assert_eq!(s.took.len() as u64, s.sent);
                let (p99, max) = (s.share(990), s.share(1_000));
                let (most_99, most) = match burst {
                    1 => (ms(300), ms(900)),
                    3 => (ms(400), ms(700)),
                    _ => (ms(600), ms(1_500)),
                };
                let what = format!("{profile} each {gap} ms, {per_mille} per mille by {burst}: p99 {p99}, max {max}");
                if p99 > most_99 || max > most {
                    bad.push(what);
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// How long after a short darkness the first packet arrives where a transfer had filled the window, and the round trip
/// before.
fn after_a_full_window(config: &AssocConfig, delay: u64, dark: u64) -> (Duration, Duration) {
    let short = || LinkConfig { limit: Limit::packets(20 + delay), ..link(8, delay) };
    let mut b = Bench::connected(dark + delay, config, &[(short(), short())]);
    b.strict = true;
    let unordered = SendOptions { unordered: true, ..SendOptions::default() };
    while b.send(Side::Client, unordered, vec![0; 1_100]) {}
    b.run_for(ms(3_000));
    let srtt = b.path(Side::Client, 0).srtt;
    b.filter = Some(Box::new(|_| false));
    b.run_for(ms(dark));
    b.filter = None;
    let end = b.now;
    // Not messages: what is repeated may have arrived without our hearing of it.
    let before = b.path(Side::Server, 0).counters.packets_received;
    while b.path(Side::Server, 0).counters.packets_received == before {
        assert!(b.now < end + ms(5_000), "nothing comes");
        b.run_for(ms(1));
    }
    (b.now - end, srtt)
}

/// T3 has not expired yet, and remembers RTO.Min or every spike; the window is full and nothing is heard.
#[test]
fn a_full_window_of_silence_is_probed_before_t3() {
    for profile in ["cmt", "media"] {
        let with = changed(patient(profile), |c| c.limits.send_buffer = 4 << 20);
        let without = changed(with.clone(), |c| c.profile.set(Hook::Timer, "rfc9260:resume=1").expect("registered"));
        let mut slower = 0;
        for delay in [10, 40, 100] {
            for dark in [300, 450, 600] {
                let (took, srtt) = after_a_full_window(&with, delay, dark);
                let most = (srtt * 2).max(ms(500)) + srtt + ms(60);
                assert!(took <= most, "{profile} {delay} {dark}: {took}, {srtt} round trip");
                slower += usize::from(after_a_full_window(&without, delay, dark).0 > took);
            }
        }
        assert!(slower >= 6, "{profile}: T3 alone is as quick in all but {slower} cases of nine");
    }
}
