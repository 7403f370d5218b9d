//! Paths that live, but look as if they did not: how often path truth is wrong, and what that costs.

use crate::common::sampled::{Sample, all_cases};
use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::{Event, PathReason};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::{Jitter, LinkConfig, LossConfig};

/// The 3G path of Becke et al. 2013 §3.1, with the losses that users report, beside its WLAN: 160 ms with a standard deviation of
/// 50 ms and 1 % loss there, no added delay back. `reorders`: whether a late packet lets others pass.
fn p3(reorders: bool) -> [(LinkConfig, LinkConfig); 2] {
    let mobile = LinkConfig {
        jitter: Jitter::Normal(ms(50)),
        jitter_reorders: reorders,
        loss: LossConfig::bernoulli(0.01),
        ..link(4, 160)
    };
    let wlan = LinkConfig { jitter: Jitter::Normal(Duration::from_micros(1_333)), ..link(25, 31) };
    [(mobile, link(2, 0)), (wlan, link(6, 0))]
}

/// Paths that were left for their silence.
fn silences(b: &mut Bench) -> usize {
    let silent = |e: &Event| matches!(e, Event::PathChanged { reason: PathReason::Silent, .. });
    b.server_events.clear();
    b.client_events.drain(..).filter(silent).count()
}

/// False alarms in `time` of messages at `rate`, of which every one is checked, and what left by the 3G path, bytes.
fn alarms(profile: &str, reorders: bool, rate: u64, time: Duration) -> (usize, u64) {
    let [mobile, wlan] = p3(reorders);
    // Those who choose the quicker path would leave the mobile one alone beside the WLAN: it is further away for them.
    let chooses = ["live", "low-latency", "media"].contains(&profile);
    let second = if chooses { (link(25, 250), link(6, 0)) } else { wlan };
    let mut b = Bench::connected(5, &assoc_config(profile), &[mobile, second]);
    let mut flow = Flow::new(Side::Client, 0, 500);
    let gap = Duration::from_micros(1_000_000 / rate);
    let (mut wrong, end) = (0, b.now + time);
    while b.now < end {
        flow.stream(&mut b, gap, ms(10_000));
        wrong += silences(&mut b);
    }
    (wrong, b.path(Side::Client, 0).counters.data_sent)
}

/// An hour with and one without reordering, two of each where all cases are run; ANABRANCH_ALARM_HOURS for others.
///
/// In two hours each they are `most` at most, as docs/PATHS.md has it.
fn few_alarms(profile: &str, rate: u64, most: u64) {
    let usual = if all_cases() { 2 } else { 1 };
    let hours = std::env::var("ANABRANCH_ALARM_HOURS").ok().and_then(|h| h.parse().ok()).unwrap_or(usual);
    let mut all = 0;
    for reorders in [true, false] {
        let (n, sent) = alarms(profile, reorders, rate, ms(hours * 3_600_000));
        println!("{profile:12} reorders {reorders:5} {rate:4}/s: {n} alarms in {hours} h, {sent} bytes by 3G");
        assert!(sent / 500 >= hours * 3_600 * 4, "{profile}: hardly anything to be wrong about: {sent}");
        all += n as u64;
    }
    assert!(all < 2 * hours, "{profile}: {all} alarms in {hours} h each");
    assert!(hours > 2 || all <= most, "{profile}: {all} alarms, and docs/PATHS.md says {most}");
}

#[test]
fn fewer_than_one_false_alarm_an_hour() {
    let flows = [("cmt", 50, 0), ("confluent", 100, 0), ("thin", 25, 0)];
    flows.iter().for_each(|(p, rate, n)| few_alarms(p, *rate, *n));
}

#[test]
fn fewer_than_one_false_alarm_an_hour_where_the_quicker_path_is_chosen() {
    [("live", 50, 1), ("low-latency", 50, 0), ("media", 50, 1)]
        .iter()
        .for_each(|(p, rate, n)| few_alarms(p, *rate, *n));
}

/// Bytes that arrive in `time` when there is always more to send, and the false alarms on the way.
fn bulk(truth: bool, seed: u64, time: Duration) -> (u64, usize) {
    let mut profile = Profile::named("cmt").expect("registered");
    if !truth {
        profile.set(Hook::PathState, "potentially_failed").expect("registered");
    }
    let mut b = Bench::connected(
        seed,
        &anabranch_engine::AssocConfig::with(profile, anabranch_engine::Constants::RFC),
        &p3(true),
    );
    let (mut flow, end, mut wrong) = (Flow::new(Side::Client, 0, 1_100), b.now + time, 0);
    while b.now < end {
        flow.send_to(&mut b, u32::MAX);
        b.run_for(ms(20));
        flow.check(&mut b);
        wrong += silences(&mut b);
    }
    (u64::from(flow.got) * 1_100, wrong)
}

#[test]
fn false_alarms_cost_less_than_a_hundredth_of_goodput() {
    let time = ms(60_000);
    let (mut with, mut without, mut wrong) = (0, 0, 0);
    let mut sample = Sample::one_in(2);
    for seed in (0..4).filter(|_| sample.takes()) {
        let (bytes, n) = bulk(true, seed, time);
        with += bytes;
        wrong += n;
        without += bulk(false, seed, time).0;
    }
    println!(
        "bulk over the paths of Becke et al. 2013: {with} bytes with path truth, {without} without; {wrong} alarms"
    );
    assert!(with * 100 >= without * 99, "{with} of {without}");
}
