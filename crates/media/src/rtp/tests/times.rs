//! Jitter of the network, taken out.

use super::*;
use crate::ts::tests::{TsBuilder, VIDEO_PID};
use proptest::prelude::*;

/// A datagram each `MS`, of seven packets, the first with a clock reference: a constant rate.
const MS: u64 = 10;

fn datagram(clock_ms: u64) -> Vec<u8> {
    let mut ts = TsBuilder::new();
    ts.packet(VIDEO_PID, 0, false, &[], Some(clock_ms * 27_000 % crate::ts::PCR_CYCLE));
    (0..6).for_each(|_| {
        ts.null();
    });
    ts.bytes().to_vec()
}

/// The instants given to datagrams with these clocks and arrivals, µs after `ms(0)`.
fn stamps(window: u64, datagrams: &[(u64, u64)]) -> Vec<u64> {
    let mut s = Steadier::new(millis(window));
    let stamp = |&(clock, at): &(u64, u64)| {
        s.stamp(ms(0) + Duration::from_micros(at), &datagram(clock)).since(ms(0)).as_micros()
    };
    datagrams.iter().map(stamp).collect()
}

/// Datagram `i` comes so many µs late.
fn jittered(late: impl Fn(u64) -> u64, n: u64) -> Vec<(u64, u64)> {
    (0..n).map(|i| (500 + i * MS, i * MS * 1_000 + late(i))).collect()
}

#[test]
fn an_even_stream_keeps_its_instants() {
    let even = jittered(|_| 0, 300);
    assert_eq!(stamps(30, &even), even.iter().map(|(_, at)| *at).collect::<Vec<_>>());
}

#[test]
fn jitter_up_to_the_window_is_taken_out() {
    for window in [5, 30, 100] {
        // Every seventh is as quick as can be.
        let late = |i: u64| if i % 7 == 3 { 0 } else { i * 7_919 % (window * 1_000) };
        let got = stamps(window, &jittered(late, 400));
        for (i, at) in got.iter().enumerate().skip(11) {
            assert_eq!(*at, i as u64 * MS * 1_000, "window {window}, datagram {i}");
        }
        // The control: no window, no change.
        let (got, jittered) = (stamps(0, &jittered(late, 400)), jittered(late, 400));
        assert!(got.iter().zip(&jittered).all(|(got, (_, at))| got >= at), "never before its arrival");
    }
}

#[test]
fn a_pause_of_the_source_is_not_jitter() {
    for pause in [200, 900, 5_000] {
        let late = |i: u64| if i < 100 { 0 } else { pause * 1_000 };
        let arrivals = jittered(late, 300);
        let got = stamps(30, &arrivals);
        assert!(got.iter().zip(&arrivals).skip(101).all(|(got, (_, at))| got == at), "pause {pause}");
    }
}

#[test]
fn clocks_that_drift_are_followed() {
    // The encoder's clock is 100 ppm slow: in five minutes 30 ms would come together.
    let late = |i: u64| i * MS / 10;
    let arrivals = jittered(late, 30_000);
    let got = stamps(30, &arrivals);
    for (got, (_, at)) in got.iter().zip(&arrivals) {
        assert!(at - got <= 3_100, "30 s at 100 ppm are 3 ms: {} before {at}", at - got);
    }
}

proptest! {
    /// Whatever the clocks and arrivals are: at most the window earlier than the arrival, never later, never back.
    #[test]
    fn instants_stay_within_the_window(
        steps in proptest::collection::vec((prop_oneof![0u64..100, any::<u32>().prop_map(u64::from)], 0u64..200_000), 1..200),
        window in 0u64..100,
    ) {
        let (mut clock, mut at) = (0u64, 100_000);
        let datagrams: Vec<(u64, u64)> = steps.iter().map(|(c, a)| {
            clock = clock.wrapping_add(*c) % 100_000_000;
            at += a;
            (clock, at)
        }).collect();
        let mut last = 0;
        for (got, (_, at)) in stamps(window, &datagrams).into_iter().zip(&datagrams) {
            prop_assert!(got >= last && got <= *at && got + window * 1_000 >= *at);
            last = got;
        }
    }
}
