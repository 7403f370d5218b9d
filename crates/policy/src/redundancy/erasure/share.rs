//! How much parity there is of what is sent, over bit rates and sizes of frames.

use super::tests::{Board, ask, counted, policy};
use super::*;
use crate::testing::{Scene, ms};
use anabranch_base::{PathSet, Rate};

const CHUNK: u64 = 1_200;

/// A film of so many frames a second, each of which leaves at once by path 0, which loses `loss`, and is due before
/// anything could be sent again. As many sums leave by path 1 as are wanted. Bytes of parity for each byte of the film.
fn share_of(film: Rate, fps: u64, params: &str, loss: u32) -> f64 {
    let (mut s, mut p) = (Scene::new(2, 0), policy(params));
    for i in 0..2 {
        let path = s.rtt(i, 80);
        (path.mean_rtt, path.cwnd, path.capacity) = (ms(80), 100_000_000, Rate::from_bytes_per_sec(1 << 30));
    }
    (s.paths[0].loss, s.paths[0].in_flight, s.unsent) = (Ppm(loss), 1_000, 0);
    let frame = (film.bytes_per_sec() / fps).div_ceil(CHUNK);
    let mut number = 40u32;
    for _ in 0..fps {
        s.now += Duration::from_nanos(1_000_000_000 / fps);
        let now = s.now;
        s.chunks.retain(|c| c.last_sent.is_some_and(|t| now.since(t) < ms(80)));
        for _ in 0..frame {
            let mut c = ChunkView::waiting(Tsn(number));
            number += 1;
            (c.last_path, c.last_sent, c.queued_at, c.len) = (Some(PathId(0)), Some(now), now, CHUNK);
            (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
            c.deadline = Some(now + ms(100));
            p.sent(&SentPayload { chunk: &c, payload: &[], at: now });
            s.chunks.push(c);
        }
        while ask(&mut *p, &s, 1) == Some(Extra::Parity) {
            p.write(u64::from(number), 1_400, &Board).unwrap();
        }
    }
    counted(&*p, "parity-bytes") as f64 / counted(&*p, "data-bytes") as f64
}

/// Where one packet in five is lost more is wanted than may be, whatever the film's rate and the size of its frames.
#[test]
fn parity_has_its_rate_where_losses_call_for_it_and_never_more() {
    for mbit in [1, 3, 10, 30, 100] {
        for fps in [10, 25, 50] {
            for (params, rate) in [("", 0.1), ("rate=0.2", 0.2), ("rate=0.2,copies=1", 0.2), ("code=xor", 0.1)] {
                let share = share_of(Rate::from_bytes_per_sec(mbit * 125_000), fps, params, 200_000);
                let case = format!("{mbit} Mbit/s, {fps} frames, `{params}`: {share}");
                assert!(share <= rate, "{case}");
                assert!(share > rate * 0.8, "{case}");
            }
        }
    }
}

/// Where fewer are lost, what is made follows the losses and not what may be.
#[test]
fn parity_has_what_losses_call_for_where_that_is_less() {
    for mbit in [25, 100] {
        let shares = [1_000, 10_000, 30_000, 60_000].map(|loss| {
            let share = share_of(Rate::from_bytes_per_sec(mbit * 125_000), 25, "rate=1", loss);
            (f64::from(loss) / 1e6, share)
        });
        for (loss, share) in shares {
            // A sum has 1,012 bytes here for chunks of 1,200; two standard deviations of 128 chunks.
            let wanted = (loss + 2.0 * (loss * (1.0 - loss) / 128.0).sqrt()) * 1_030.0 / 1_200.0;
            assert!((0.6..1.5).contains(&(share / wanted)), "{mbit} Mbit/s, {loss} lost: {share} for {wanted}");
        }
    }
}
