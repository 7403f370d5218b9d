//! Packets in order.

use super::*;
use proptest::prelude::*;

/// Feeds packets by the instants (ms) at which they arrive, and gives out all.
fn fed(receiver: &mut RtpReceiver, arrivals: &[(u64, u32, u16)]) -> Vec<u32> {
    let mut out = Vec::new();
    for (at, ssrc, sequence) in arrivals {
        receiver.push(ms(*at), packet(*ssrc, *sequence));
        out.extend(numbers(&all(receiver)));
    }
    receiver.finish();
    out.extend(numbers(&all(receiver)));
    out
}

/// The numbers, a millisecond apart.
fn each_ms(from: u64, numbers: impl IntoIterator<Item = (u32, u16)>) -> Vec<(u64, u32, u16)> {
    numbers.into_iter().enumerate().map(|(i, (ssrc, n))| (from + i as u64, ssrc, n)).collect()
}

proptest! {
    /// Whatever comes within the window is put in order, whatever is missing is given up after it, and nothing comes
    /// twice; across the wrap of the numbers too.
    #[test]
    fn within_the_window_all_is_in_order(
        first in prop_oneof![any::<u16>(), 65_400u16..=65_535],
        window in 1u64..80,
        packets in proptest::collection::vec((0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64), 2..400),
        loss in 0.0..0.3f64,
        again in 0.0..0.3f64,
    ) {
        let mut arrivals = Vec::new();
        let mut sent = Vec::new();
        for (i, (delay, lost, twice)) in packets.iter().enumerate() {
            let n = first.wrapping_add(i as u16);
            let delay = (delay * window as f64) as u64;
            if i > 0 && *lost < loss {
                continue;
            }
            sent.push(u32::from(n));
            arrivals.push((i as u64 + delay, n));
            if *twice < again {
                arrivals.push((i as u64 + delay + (twice / again * 100.0) as u64, n));
            }
        }
        arrivals.sort_by_key(|(at, _)| *at);
        let mut r = RtpReceiver::new(millis(window));
        let (mut out, mut last) = (Vec::new(), Instant::ZERO);
        for (at, n) in &arrivals {
            // Timers are at the latest when the next packet is.
            r.push(ms(*at), packet(SSRC, *n));
            prop_assert!(r.deadline().is_none_or(|t| t > ms(*at) && t <= ms(*at) + millis(window)));
            for p in all(&mut r) {
                prop_assert!(p.at >= last && p.at <= ms(*at));
                last = p.at;
                out.push(number(&p.bytes));
            }
        }
        r.finish();
        out.extend(numbers(&all(&mut r)));
        prop_assert_eq!(&out, &sent);
        let s = r.stats().order;
        let span = u64::from((sent[sent.len() - 1] as u16).wrapping_sub(first)) + 1;
        prop_assert_eq!((s.packets, s.lost), (sent.len() as u64, span - sent.len() as u64));
        prop_assert_eq!(s.duplicates + s.late, (arrivals.len() - sent.len()) as u64);
        prop_assert_eq!((s.strays, s.restarts), (0, 0));
    }

    /// Delays beyond the window cost packets, never order.
    #[test]
    fn beyond_the_window_numbers_still_rise(
        first in any::<u16>(),
        window in 0u64..40,
        delays in proptest::collection::vec(0u64..120, 2..300),
    ) {
        let mut arrivals: Vec<_> =
            delays.iter().enumerate().map(|(i, d)| (i as u64 + d, SSRC, first.wrapping_add(i as u16))).collect();
        arrivals.sort_by_key(|(at, _, _)| *at);
        let out = fed(&mut RtpReceiver::new(millis(window)), &arrivals);
        let positions: Vec<u16> = out.iter().map(|n| (*n as u16).wrapping_sub(first)).collect();
        prop_assert!(positions.windows(2).all(|w| w[0] < w[1]), "{:?}", positions);
    }
}

#[test]
fn a_missing_packet_is_given_up_when_its_time_is_over() {
    for window in [1, 30, 500] {
        let mut r = RtpReceiver::new(millis(window));
        r.push(ms(0), packet(SSRC, 1));
        assert_eq!((numbers(&all(&mut r)), r.deadline()), (vec![], Some(ms(window))), "0 may still come");
        r.on_timeout(ms(window));
        assert_eq!((numbers(&all(&mut r)), r.deadline()), (vec![1], None));
        fed_live(&mut r, &[(window, 3), (window, 5)]);
        assert_eq!(r.deadline(), Some(ms(2 * window)));
        r.on_timeout(ms(2 * window - 1));
        assert_eq!(numbers(&all(&mut r)), []);
        r.on_timeout(ms(2 * window));
        assert_eq!((numbers(&all(&mut r)), r.deadline()), (vec![3, 5], None), "both gaps are as old");
        fed_live(&mut r, &[(1 + 2 * window, 4), (1 + 2 * window, 6)]);
        assert_eq!(numbers(&all(&mut r)), [6], "too late");
        let s = r.stats().order;
        assert_eq!((s.lost, s.late, s.packets), (2, 1, 4));
    }
}

fn fed_live(r: &mut RtpReceiver, arrivals: &[(u64, u16)]) {
    arrivals.iter().for_each(|(at, n)| r.push(ms(*at), packet(SSRC, *n)));
}

#[test]
fn what_others_overtook_has_their_instant() {
    let mut r = RtpReceiver::new(millis(30));
    fed_live(&mut r, &[(0, 65_535), (1, 1), (2, 2), (20, 0), (25, 65_533), (30, 3)]);
    let at: Vec<_> = all(&mut r).iter().map(|p| (number(&p.bytes), p.at)).collect();
    assert_eq!(at, [(65_533, ms(0)), (65_535, ms(0)), (0, ms(1)), (1, ms(1)), (2, ms(2)), (3, ms(30))]);
    assert_eq!((r.stats().order.reordered, r.stats().order.lost), (2, 1));
}

#[test]
fn the_first_packet_may_have_overtaken_others() {
    for before in [1u16, 5, 128, 129] {
        let mut r = RtpReceiver::new(millis(30));
        let out = fed(&mut r, &[(0, SSRC, 50), (29, SSRC, 50u16.wrapping_sub(before)), (29, SSRC, 51)]);
        let lower = (before <= 128).then_some(u32::from(50u16.wrapping_sub(before)));
        assert_eq!(out, lower.into_iter().chain([50, 51]).collect::<Vec<_>>(), "{before}");
    }
    let mut r = RtpReceiver::new(millis(30));
    assert_eq!(fed(&mut r, &[(0, SSRC, 50), (30, SSRC, 51), (31, SSRC, 49)]), [50, 51]);
}

#[test]
fn a_window_of_nothing_waits_for_nothing() {
    assert_eq!(fed(&mut RtpReceiver::new(millis(0)), &each_ms(0, [1, 3, 2, 4].map(|n| (SSRC, n)))), [1, 3, 4]);
}

#[test]
fn waiting_is_bounded_by_numbers_and_bytes() {
    let mut r = Reorder::new(millis(1_000));
    r.push(ms(0), SSRC, 0, Bytes::from_static(b"x"));
    for n in 2..3_000 {
        r.push(ms(1), SSRC, n, Bytes::from_static(b"x"));
        assert!(r.waiting().0 < 1_024);
    }
    let mut r = Reorder::new(millis(1_000));
    r.push(ms(0), SSRC, 0, Bytes::from_static(b"x"));
    let big = Bytes::from(vec![0; 60_000]);
    let mut out = 0;
    for n in 2..500 {
        r.push(ms(1), SSRC, n * 2, big.clone());
        assert!(r.waiting().1 <= 4 << 20);
        out += std::iter::from_fn(|| r.poll()).count();
    }
    assert!(out > 400, "{out}");
}

#[test]
fn another_source_takes_over_with_its_third_packet() {
    for first in [0, 1, 300, 40_000, 65_534] {
        let old = [10, 11, 13].map(|n| (SSRC, n));
        let new = [0, 1, 2, 3].map(|i: u16| (7, i.wrapping_add(first)));
        let mut r = RtpReceiver::new(millis(1_000));
        let out = fed(&mut r, &each_ms(0, old.into_iter().chain(new)));
        let expected: Vec<u32> = [10, 11, 13].into_iter().chain(new.iter().map(|(_, n)| u32::from(*n))).collect();
        assert_eq!((out, r.stats().order.restarts), (expected, 1), "{first}");
    }
}

#[test]
fn numbers_that_jump_are_followed() {
    for jump in [2_000u16, 20_000, 32_768, 50_000, 64_000] {
        let new: Vec<u16> = [1, 0, 2, 3].map(|i: u16| (100 + i).wrapping_add(jump)).into();
        let mut r = RtpReceiver::new(millis(30));
        let out = fed(&mut r, &each_ms(0, [98, 99].into_iter().chain(new).map(|n| (SSRC, n))));
        let expected =
            (98..100).chain((100..104).map(|n: u16| n.wrapping_add(jump))).map(u32::from).collect::<Vec<_>>();
        assert_eq!((out, r.stats().order.restarts), (expected, 1), "{jump}");
    }
}

#[test]
fn a_stream_that_begins_a_little_before_is_followed() {
    for back in [1u16, 100, 1_000] {
        let (old, new) = (1_000..2_000, (2_000 - back)..2_100);
        let out =
            fed(&mut RtpReceiver::new(millis(30)), &each_ms(0, old.clone().chain(new.clone()).map(|n| (SSRC, n))));
        // At once after 32 packets, or as soon as they are new.
        let dropped = usize::from(back).min(31);
        let expected: Vec<u32> = old.chain(new.skip(dropped)).map(u32::from).collect();
        assert_eq!(out, expected, "{back}");
    }
}

#[test]
fn after_silence_whatever_comes_is_the_stream() {
    for (ssrc, n) in [(SSRC, 5), (SSRC, 30_000), (9, 11)] {
        let mut arrivals = each_ms(0, (0..11).map(|n| (SSRC, n)));
        arrivals.push((1_100, ssrc, n));
        let mut r = RtpReceiver::new(millis(30));
        assert_eq!(fed(&mut r, &arrivals).last(), Some(&u32::from(n)), "{ssrc} {n}");
        assert_eq!(r.stats().order.restarts, 1);
    }
    let mut r = RtpReceiver::new(millis(30));
    assert_eq!(fed(&mut r, &[(0, SSRC, 1), (5_000, SSRC, 2)]), [1, 2]);
    assert_eq!(r.stats().order.restarts, 0, "a pause is no other stream");
}

#[test]
fn a_second_sender_on_the_port_does_not_get_in_between() {
    let arrivals = (0..300u16).flat_map(|n| [(SSRC, n), (9, n.wrapping_mul(7)), (SSRC + 1, 40_000 + n)]);
    let mut r = RtpReceiver::new(millis(30));
    assert_eq!(fed(&mut r, &each_ms(0, arrivals)), (0..300).collect::<Vec<u32>>());
    assert_eq!((r.stats().order.restarts, r.stats().order.lost), (0, 0));
    assert!(r.stats().order.strays >= 590);
}
