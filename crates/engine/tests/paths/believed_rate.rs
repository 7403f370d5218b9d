//! What a path is believed to carry that bursts keep busy, beside one on which each packet takes its own time.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_sim::{Direction, Jitter, Limit, LinkConfig, Setting};

/// Bursts each 25 ms, worthless after 200 ms, over two paths by profile `live`, whose packets each take a time of their own
/// with these standard deviations, in microseconds: of the first, over 20 seconds behind the
/// first five, the mean of what it is believed to carry, in parts of what it carries of payload, and its mean round trip
/// beyond its delay, in ms.
fn believed(mbits: [u64; 2], delays: [u64; 2], varies: [u64; 2], packets: u32, seed: u64) -> (f64, f64) {
    let varied = |i: usize, micros| LinkConfig {
        jitter: Jitter::Normal(Duration::from_micros(micros)),
        jitter_reorders: true,
        ..link(mbits[i], delays[i])
    };
    let back = LinkConfig::fixed(None, Duration::ZERO);
    let links = [0, 1].map(|i| (varied(i, varies[i]).with_limit(Limit::packets(40)), back.clone()));
    let mut b = Bench::connected(seed, &assoc_config("live"), &links);
    let (bursts, from) = (1_000, 200);
    let (mut rates, mut rtts) = (0.0, 0.0);
    for burst in 0..bursts {
        for n in 0..packets {
            let options = SendOptions { unordered: true, deadline: Some(b.now + ms(200)), ..SendOptions::default() };
            b.send(Side::Client, options, numbered(0, burst * packets + n, 1_150));
        }
        b.run_for(ms(25));
        if burst >= from {
            let p = b.path(Side::Client, 0);
            rates += p.capacity.bytes_per_sec() as f64;
            rtts += p.srtt.as_secs_f64() * 1e3;
        }
    }
    let n = f64::from(bursts - from);
    // Headers of UDP and SCTP, 56 bytes of 1,214.
    (rates / n / (mbits[0] as f64 * 125_000.0 * 1_158.0 / 1_214.0), rtts / n - delays[0] as f64)
}

#[test]
fn a_path_that_bursts_fill_is_not_believed_to_carry_more() {
    let (mut bad, mut rates, mut queues) = (vec![], vec![], vec![]);
    for (mbits, delays, varies, packets) in [
        ([6, 4], [30, 160], [1_300, 50_000], 20),
        ([6, 4], [30, 160], [1_300, 50_000], 24),
        ([6, 4], [30, 150], [2_500, 40_000], 20),
        ([6, 4], [60, 180], [1_300, 50_000], 20),
        ([10, 4], [20, 160], [1_300, 50_000], 32),
        ([4, 6], [40, 160], [1_300, 50_000], 14),
    ] {
        for seed in 1..=4 {
            let (rate, queue) = believed(mbits, delays, varies, packets, seed);
            let got = format!(
                "{mbits:?} Mbit/s, {delays:?} ms, {varies:?} us, {packets} packets: {rate:.3} of its rate, {queue:.0} ms"
            );
            println!("{got}");
            rates.push(rate);
            queues.push(queue);
            if !(0.97..1.10).contains(&rate) {
                bad.push(got);
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (rate, queue) = (mean(&rates), mean(&queues));
    assert!(rate < 1.05 && queue < 15.0, "{rate:.3} of the rate and {queue:.0} ms of queue in the mean");
}

/// A path of 10 Mbit/s whose rate is known becomes longer while a source offers less, in bursts of `burst` packets of which
/// one comes each `gap` microseconds: what the path is believed to carry 10 to 20 seconds later, when
/// the shortest round trip of the time before is forgotten, Mbit/s, least and most.
fn after_it_became_longer(gap: u64, burst: u32, delays: [u64; 2]) -> (f64, f64) {
    let links = [(link(10, delays[0]).with_limit(Limit::packets(200)), LinkConfig::fixed(None, Duration::ZERO))];
    let mut b = Bench::connected(1, &assoc_config("live"), &links);
    let offer = |b: &mut Bench, gap: u64, burst: u32, millis: u64, seen: &mut Vec<f64>| {
        for n in 0..(millis * 1_000 / gap / u64::from(burst)) as u32 {
            for k in 0..burst {
                let options =
                    SendOptions { unordered: true, deadline: Some(b.now + ms(400)), ..SendOptions::default() };
                b.send(Side::Client, options, numbered(0, n * burst + k, 1_150));
            }
            b.run_for(Duration::from_micros(gap) * u64::from(burst));
            b.at_server.clear();
            seen.push(b.path(Side::Client, 0).capacity.bytes_per_sec() as f64 * 8e-6);
        }
    };
    let mut seen = Vec::new();
    offer(&mut b, 680, 1, 3_000, &mut seen);
    offer(&mut b, gap, burst, 3_000, &mut seen);
    let now = b.now;
    b.paths.get_mut(0).unwrap().apply(now, Direction::Forward, Setting::Delay(ms(delays[1])));
    offer(&mut b, gap, burst, 10_000, &mut seen);
    seen.clear();
    offer(&mut b, gap, burst, 10_000, &mut seen);
    (seen.iter().copied().fold(f64::MAX, f64::min), seen.iter().copied().fold(0.0, f64::max))
}

/// More is in flight on a longer path without any queue there.
#[test]
fn a_path_that_became_longer_carries_what_it_did() {
    for (gap, burst, delays) in [
        (2_400, 1, [20, 120]),
        (1_600, 1, [20, 80]),
        (1_370, 1, [20, 60]),
        (2_083, 12, [20, 80]),
        (3_125, 8, [20, 120]),
        (1_600, 4, [40, 300]),
    ] {
        let (least, most) = after_it_became_longer(gap, burst, delays);
        assert!(
            least > 9.2 && most < 10.5,
            "a packet each {gap} us, {burst} at once, {delays:?} ms: {least:.2} to {most:.2} Mbit/s"
        );
    }
}

/// Frames of whatever rate: what a source sends and what its path could carry beyond it is what its encoder hears.
#[test]
fn an_encoder_of_few_frames_hears_of_the_room_there_is() {
    for profile in ["live", "cmt"] {
        for (every, packets) in
            [(200, 20), (200, 60), (100, 10), (100, 30), (66, 8), (66, 12), (66, 20), (50, 10), (40, 6)]
        {
            let links = [(link(10, 10).with_limit(Limit::packets(200)), link(10, 10).with_limit(Limit::packets(200)))];
            let mut b = Bench::connected(1, &assoc_config(profile), &links);
            let offered = f64::from(packets) * 1_150.0 * 8e-3 / every as f64;
            for frame in 0..12_000 / every as u32 {
                for n in 0..packets {
                    let options =
                        SendOptions { unordered: true, deadline: Some(b.now + ms(400)), ..SendOptions::default() };
                    b.send(Side::Client, options, numbered(0, frame * packets + n, 1_150));
                }
                b.run_for(ms(every));
                b.at_server.clear();
            }
            let low = b.assoc(Side::Client).usable_rate().low.bytes_per_sec() as f64 * 8e-6;
            let (least, given_up) = (offered.min(6.0) * 1.05, b.assoc(Side::Client).stats().abandoned_unsent);
            assert!(
                low > least && low < 10.0 && given_up == 0,
                "{profile}, {packets} packets each {every} ms, {offered:.2} Mbit/s: {low:.2}, {given_up} given up"
            );
        }
    }
}
