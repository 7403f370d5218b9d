//! The clock, and what is late by it: streams whose packets come at known times.

use super::tests::recording;
use super::*;
use crate::ts::tests::TsBuilder;
use crate::ts::{PACKET_LEN, PTS_CYCLE};
use anabranch_base::Duration;

const FRAME: u64 = 3_600;

/// A stream with a clock reference in front of each frame; by frame number, what its kind is and how the clock jumps.
fn stream(frames: usize, from: u64, kind: impl Fn(usize) -> char, jump: impl Fn(usize) -> (i64, bool)) -> Vec<u8> {
    let mut b = TsBuilder::new();
    let mut clock = from;
    b.tables();
    for i in 0..frames {
        let (by, marked) = jump(i);
        clock = clock.wrapping_add_signed(by);
        b.clock(clock, marked).video_frame(kind(i), 100);
        clock += FRAME;
    }
    b.bytes().to_vec()
}

/// The stream as it comes when frame `i` and its clock reference come at `at(i)`, nanoseconds.
fn coming(ts: &[u8], at: impl Fn(usize) -> i64) -> Recording {
    let mut r = Recording::new();
    let mut clocks = 0usize;
    for packet in ts.chunks(PACKET_LEN) {
        clocks += usize::from(packet[3] & 0x10 == 0);
        let i = clocks.saturating_sub(1);
        r.push(Some(Duration::from_nanos((1_000_000_000_000 + at(i)) as u64)), packet);
    }
    r.finish();
    r
}

/// Frames that are not shown, and the stalls in milliseconds.
fn unseen(sent: &Recording, received: &Recording, buffer: u64) -> (Vec<usize>, Vec<(u64, u64)>, Shown) {
    let found = Comparison::of(sent, received).unwrap();
    assert_eq!(found.undecodable, [0; 4]);
    let shown = Shown::of(sent, received, &found, Duration::from_millis(buffer), Duration::from_millis(100));
    assert!(shown.by_arrival);
    let unseen = shown.frames.iter().enumerate().filter(|(_, s)| !**s).map(|(i, _)| i).collect();
    let stalls = shown.stalls.iter().map(|s| (s.from.as_millis(), s.length.as_millis())).collect();
    (unseen, stalls, shown)
}

const MS: i64 = 1_000_000;

#[test]
fn clocks_that_differ_and_a_late_beginning_change_nothing() {
    const FRAMES: usize = 4_500;
    // 200 ms late by a buffer of 100 ms; the others by less.
    let late = |i: usize| match i {
        30 | 2_200 | 4_400 => 200 * MS,
        40 | 2_210 | 4_410 => 70 * MS,
        _ => 0,
    };
    // Time stamps begin at 0, and so that they wrap within the stream.
    for from in [0, PTS_CYCLE - 60 * 90_000] {
        let ts = stream(FRAMES, from, |_| 'I', |_| (0, false));
        let sent = recording(&ts);
        for ppm in [-1_000, -50, 0, 1_000] {
            for first in [0, 2_000] {
                let at = |i: usize| {
                    let due = i as i64 * 40 * MS;
                    due + due / 1_000_000 * ppm + late(i) + if i == 0 { first * MS } else { 0 }
                };
                let (unseen, stalls, shown) = unseen(&sent, &coming(&ts, at), 100);
                let mut expected = vec![30, 2_200, 4_400];
                if first == 2_000 {
                    expected.insert(0, 0);
                }
                assert_eq!(unseen, expected, "from {from}, {ppm} ppm, first {first} ms late");
                assert_eq!(shown.late, [expected.len() as u64, 0, 0, 0]);
                assert_eq!(stalls, [], "from {from}, {ppm} ppm, first {first} ms late");
            }
        }
    }
}

#[test]
fn a_clock_that_jumps_begins_anew() {
    const FRAMES: usize = 2_400;
    let late = |i: usize| if matches!(i, 700 | 1_250 | 2_300) { 300 * MS } else { 0 };
    for (by, marked) in [
        (20 * 90_000, false),
        (-20 * 90_000, false),
        (-7 * 90_000, true),
        (-1_500_000, false),
        (-100_000, false),
        (1_200_000_000, false),
        (45_000, true),
        (0, true),
    ] {
        let ts = stream(FRAMES, 77, |_| 'I', |i| if i % 1_200 == 1_199 { (by, marked) } else { (0, false) });
        let sent = recording(&ts);
        let received = coming(&ts, |i| i as i64 * 40 * MS + late(i));
        let (unseen, stalls, _) = unseen(&sent, &received, 100);
        assert_eq!((unseen, stalls), (vec![700, 1_250, 2_300], vec![]), "by {by}");
    }
}

#[test]
fn a_path_that_becomes_slower_stalls_once() {
    // From frame 500 on everything comes later: the picture stands for as long as that is more than the buffer, once, also
    // while the clock follows half a minute later; and nothing is dropped. A path that becomes faster shows nothing.
    for (by, buffer) in [(500, 0), (500, 300), (2_000, 100), (120, 100), (-500, 0), (-500, 200)] {
        let from = if by > 0 { 500 } else { 1_500 };
        let ts = stream(2_500, 5, |_| 'I', |_| (0, false));
        let sent = recording(&ts);
        let received = coming(&ts, |i| i as i64 * 40 * MS + if i >= from { by * MS } else { 0 });
        let (unseen, stalls, _) = unseen(&sent, &received, buffer);
        // Frames are to be shown 40 ms behind the clock.
        let more = u64::try_from(by).unwrap_or(0).saturating_sub(buffer + 40);
        let expected = if more >= 100 { vec![(20_000, more)] } else { vec![] };
        assert_eq!((unseen, stalls), (vec![], expected), "{by} ms, buffer {buffer} ms");
    }
}

#[test]
fn late_frames_are_counted_by_class() {
    // Groups of I P B B P B B, of which some frames come 300 ms late. What refers to a late frame is ready as late.
    let kind = |i: usize| ['I', 'P', 'B', 'B', 'P', 'B', 'B'][i % 7];
    let ts = stream(700, 0, kind, |_| (0, false));
    let sent = recording(&ts);
    for (late, expected) in [
        (vec![9], [0, 0, 1, 0]),
        (vec![9, 13, 27], [0, 0, 3, 0]),
        // The last P picture of a group, and the two B pictures that need it.
        (vec![11], [0, 1, 2, 0]),
        (vec![11, 25, 40], [0, 2, 5, 0]),
        // An I picture, and its whole group, of which the last one takes its place.
        (vec![14], [1, 2, 3, 0]),
        (vec![], [0; 4]),
    ] {
        let received = coming(&ts, |i| i as i64 * 40 * MS + if late.contains(&i) { 300 * MS } else { 0 });
        let (unseen, _, shown) = unseen(&sent, &received, 0);
        assert_eq!(shown.late, expected, "{late:?}: {unseen:?}");
        assert_eq!(shown.late.iter().sum::<u64>() as usize, unseen.len());
    }
}

#[test]
fn clock_references_that_were_lost_are_none() {
    let ts = stream(2_000, 0, |_| 'I', |_| (0, false));
    let sent = recording(&ts);
    // All, all but one of two hundred, and those of the first minute.
    for (keep, by_arrival) in [
        (&(|_| true) as &dyn Fn(usize) -> bool, true),
        (&|i| i % 200 == 7, true),
        (&|i| i > 1_500, true),
        (&|_| false, false),
    ] {
        let mut received = Recording::new();
        let mut clocks = 0usize;
        for packet in ts.chunks(PACKET_LEN) {
            let is_clock = packet[3] & 0x10 == 0;
            clocks += usize::from(is_clock);
            let i = clocks.saturating_sub(1);
            if !is_clock || keep(i) {
                received.push(Some(Duration::from_nanos(1_000_000_000_000 + i as u64 * 40_000_000)), packet);
            }
        }
        received.finish();
        let found = Comparison::of(&sent, &received).unwrap();
        assert_eq!(found.undecodable, [0; 4], "a packet without a payload is of no frame");
        let shown = Shown::of(&sent, &received, &found, Duration::ZERO, Duration::from_millis(100));
        assert_eq!((shown.by_arrival, shown.late, shown.stalls.len()), (by_arrival, [0; 4], 0));
    }
}
