//! All paths fall silent under a live source: what its encoder hears, and what becomes of what it makes.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_sim::{Direction, Limit, Setting};

/// Frames of `packets` packets, worthless after `life`.
fn frame(b: &mut Bench, n: u32, packets: u32, life: Duration) {
    for k in 0..packets {
        let options = SendOptions { unordered: true, deadline: Some(b.now + life), ..SendOptions::default() };
        b.send(Side::Client, options, numbered(0, n * packets + k, 1_150));
    }
    b.run_for(ms(40));
    b.at_server.clear();
}

#[test]
fn an_encoder_hears_that_nothing_is_carried_and_what_is_late_is_counted() {
    for (profile, paths, life) in
        [("live", 1, 300), ("live", 2, 300), ("live", 1, 1_000), ("low-latency", 1, 300), ("cmt", 1, 400)]
    {
        let links = [(10, 20), (6, 50)].map(|(m, d)| (link(m, d).with_limit(Limit::packets(100)), link(m, d)));
        let mut b = Bench::connected(1, &assoc_config(profile), &links[..paths]);
        let mut n = 0;
        let mut frames = |b: &mut Bench, count: u32| {
            for _ in 0..count {
                frame(b, n, 8, ms(life));
                n += 1;
            }
        };
        frames(&mut b, 100);
        let rate = |b: &mut Bench| b.assoc(Side::Client).usable_rate().low.bytes_per_sec() as f64 * 8e-6;
        let given_up = |b: &mut Bench| {
            let s = b.assoc(Side::Client).stats();
            s.abandoned_unsent + s.abandoned_sent
        };
        let (before, lost) = (rate(&mut b), given_up(&mut b));
        assert!(before > 1.9, "{profile}: {before:.2} Mbit/s");
        let now = b.now;
        for (path, d) in (0..paths).flat_map(|p| Direction::BOTH.map(|d| (p, d))) {
            b.paths.get_mut(path).unwrap().apply(now, d, Setting::Down);
        }
        // 1.2 s: what was made in all but the last life of a message, and a little, is late.
        frames(&mut b, 30);
        assert_eq!(rate(&mut b), 0.0, "{profile}, {paths} paths");
        for seconds in 1..8u64 {
            let late = (1_200 + 1_000 * (seconds - 1)).saturating_sub(life + 200) / 40 * 8;
            let counted = given_up(&mut b) - lost;
            assert!(counted >= late, "{profile}, {paths} paths, {seconds} s: {counted} of {late}");
            assert_eq!(rate(&mut b), 0.0, "{profile}, {paths} paths, {seconds} s");
            frames(&mut b, 25);
        }
        let now = b.now;
        for (path, d) in (0..paths).flat_map(|p| Direction::BOTH.map(|d| (p, d))) {
            b.paths.get_mut(path).unwrap().apply(now, d, Setting::Up);
        }
        frames(&mut b, 250);
        let after = rate(&mut b);
        assert!(after > 1.9, "{profile}, {paths} paths: {after:.2} Mbit/s after it");
    }
}
