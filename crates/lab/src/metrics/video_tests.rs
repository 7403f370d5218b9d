use super::*;
use anabranch_base::RandomStream;
use anabranch_sim::traffic::{self, TrafficConfig};

const END: Instant = Instant::from_millis(3_600_000);

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Frames of `classes` every 100 ms, so many packets of 10 bytes each, with 300 ms until they are shown.
fn video(classes: &str, packets: u64) -> Video {
    let mut v = Video::new(Duration::from_millis(300), 10.0, 10);
    for (i, c) in classes.chars().enumerate() {
        let class = match c {
            'I' => FrameClass::I,
            'P' => FrameClass::P,
            _ => FrameClass::B,
        };
        v.frame(class, ms(i as u64 * 100), 10 * packets - 3);
    }
    v
}

#[test]
fn late_and_missing_packets_are_unusable() {
    let mut v = video("IPPI", 2);
    v.packet(0, ms(300));
    v.packet(1, ms(301));
    v.packet(2, ms(350));
    v.packet(2, ms(351));
    // One late, one missing; the frames at 200 and 300 ms are not due yet.
    let due: Vec<Due> = v.dues().filter(|d| d.at <= ms(450)).collect();
    let sum = |of: fn(&Due) -> u64| due.iter().map(of).sum::<u64>();
    assert_eq!((sum(|d| d.packets), sum(Due::unusable), sum(|d| d.late)), (4, 2, 1));
    let seen = v.viewed(Window::since(Instant::ZERO), ms(450));
    assert_eq!((seen.frames, seen.decodable), (2, 0));
    // Only what was made while it was measured counts.
    assert_eq!(v.viewed(Window::since(ms(100)), ms(450)).frames, 1);
}

/// What can be decoded when the frames of these numbers are lost: 1, 0, or - where it is not known.
fn decoded(classes: &str, lost: &[usize], ended: bool, until: Instant) -> String {
    let mut v = video(classes, 1);
    (0..classes.len()).filter(|i| !lost.contains(i)).for_each(|i| v.packet(i, ms(i as u64 * 100 + 50)));
    v.ended = ended;
    v.decodable(until).into_iter().map(|d| d.map_or('-', |d| if d { '1' } else { '0' })).collect()
}

#[test]
fn frames_need_their_anchors() {
    assert_eq!(decoded("IBPBPBIBP", &[], true, END), "111111111");
    // A B frame takes nothing with it.
    assert_eq!(decoded("IBPBPBIBP", &[3], true, END), "111011111");
    // A P frame takes all up to the next I, and the B frames on both sides.
    assert_eq!(decoded("IBPBPBIBP", &[2], true, END), "100000111");
    // An I frame also takes the B frames before it: groups are open.
    assert_eq!(decoded("IBPBPBIBP", &[6], true, END), "111110000");
    // Without an anchor before there is nothing to depend on.
    assert_eq!(decoded("BIB", &[], true, END), "011");
    // B frames wait for an anchor that may still come.
    assert_eq!(decoded("IBPBB", &[], false, END), "111--");
    assert_eq!(decoded("IBPBB", &[], true, END), "11111");
    assert_eq!(decoded("IBP", &[], true, ms(499)), "1-1");
}

#[test]
fn the_last_b_frames_of_a_closed_group_need_no_i_after_them() {
    let decoded = |lost: &[usize], until| {
        let mut v = video("IBPBIBP", 1).depending(Dependence::Display { closed: true });
        (0..7).filter(|i| !lost.contains(i)).for_each(|i| v.packet(i, ms(i as u64 * 100 + 50)));
        v.ended = true;
        v.decodable(until).into_iter().map(|d| d.map_or('-', |d| if d { '1' } else { '0' })).collect::<String>()
    };
    assert_eq!(decoded(&[], END), "1111111");
    assert_eq!(decoded(&[4], END), "1111000", "an I frame takes its own group and no other");
    assert_eq!(decoded(&[2], END), "1000111");
    assert_eq!(
        decoded(&[], ms(650)),
        "11111-1",
        "those before an I frame do not wait for it, those before a P frame do"
    );
    assert_eq!(decoded(&[3], END), "1110111");
}

/// In decoding order the anchors of a B frame are in front of it.
#[test]
fn traces_in_decoding_order_have_no_anchor_behind() {
    let decoded = |classes: &str, closed, lost: &[usize]| {
        let mut v = video(classes, 1).depending(Dependence::Decoding { closed });
        (0..classes.len()).filter(|i| !lost.contains(i)).for_each(|i| v.packet(i, ms(i as u64 * 100 + 50)));
        v.decodable(ms(650)).into_iter().map(|d| if d == Some(true) { '1' } else { '0' }).collect::<String>()
    };
    for (classes, closed, lost, expected) in [
        ("IPBPBIPB", false, &[][..], "11111111"),
        // A P frame takes the B frames on both sides, which are behind it, and the B frame before it none.
        ("IPBPBIPB", false, &[3], "11100111"),
        ("IPBPBIPB", false, &[1], "10000111"),
        // The first B frame of an open group needs the last anchor of the one before.
        ("IPBIBPB", false, &[1], "1001011"),
        ("IPBIBPB", true, &[1], "1001111"),
        ("IPBIBPB", true, &[3], "1110000"),
        ("IPBIBPB", false, &[2, 4], "1101011"),
        // In front of the film there is nothing.
        ("IBPB", false, &[], "1011"),
        ("IBPB", true, &[], "1111"),
    ] {
        assert_eq!(decoded(classes, closed, lost), expected, "{classes} closed {closed} without {lost:?}");
    }
}

/// A trace that is played again and again goes on to say what its frames need.
#[test]
fn a_repeated_trace_names_what_its_frames_need() {
    let text = "I 7 needs none\nP 7 needs 1\nB 7 needs 1 2\nP 7 needs 2\nB 7 needs 1 6\n";
    let needs = traffic::VideoTrace::parse(text, 10.0, true).unwrap().needs.unwrap();
    let decoded = |lost: &[usize]| {
        let mut v = video("IPBPBIPBPB", 1).depending(Dependence::Named(needs.clone()));
        (0..10).filter(|i| !lost.contains(i)).for_each(|i| v.packet(i, ms(i as u64 * 100 + 50)));
        v.decodable(END).into_iter().map(|d| if d == Some(true) { '1' } else { '0' }).collect::<String>()
    };
    // The last frame needs one that is not in the trace.
    assert_eq!(decoded(&[]), "1111011110");
    assert_eq!(decoded(&[6]), "1111010000");
    assert_eq!(decoded(&[7, 8]), "1111011000");
    assert_eq!(decoded(&[5]), "1111000000");
}

/// Frames that cannot be decoded leave the last one on the screen, which is less right with each.
#[test]
fn the_quality_of_what_is_shown_falls_with_its_age() {
    let quality = |lost: &[usize]| {
        let mut v = video(&"I".repeat(8), 1);
        (0..8).filter(|i| !lost.contains(i)).for_each(|i| v.packet(i, ms(i as u64 * 100 + 50)));
        v.ended = true;
        v.viewed(Window::since(Instant::ZERO), END).quality
    };
    assert_eq!(quality(&[]), 8.0 * 35.0);
    assert_eq!(quality(&[3]), 7.0 * 35.0 + 28.0);
    assert_eq!(quality(&[1, 2, 3, 4, 5, 6]), 2.0 * 35.0 + 28.0 + 25.0 + 23.0 + 22.0 + 18.0 + 18.0);
    assert_eq!(quality(&[0, 1]), 6.0 * 35.0 + 2.0 * 18.0, "no picture yet");
    // What was shown before the measuring began has its age.
    let mut v = video("IIII", 1);
    v.packet(0, ms(50));
    v.packet(3, ms(350));
    v.ended = true;
    assert_eq!(v.viewed(Window::since(ms(200)), END).quality, 25.0 + 35.0);
}

#[test]
fn decodable_frames_follow_the_closed_form() {
    // Packets arrive with r each; 10, 4 and 2 packets in I, P and B; G(12,3), open.
    let (r, groups) = (0.98f64, 20_000);
    let (n_i, n_p, n_b) = (10, 4, 2);
    let anchor = |k: i32| r.powi(n_i + k * n_p);
    let between = anchor(1) + anchor(2) + anchor(3) + anchor(3) * r.powi(n_i);
    let expected = ((0..=3).map(anchor).sum::<f64>() + 2.0 * between * r.powi(n_b)) / 12.0;
    let mut random = RandomStream::named(1, "packets");
    let shares: Vec<f64> = (0..groups / 50)
        .map(|_| {
            let mut v = Video::new(Duration::from_millis(300), 25.0, 10);
            for n in 0..50 * 12 + 1u64 {
                let class = traffic::Video::STANDARD.class(n);
                let packets = [n_i, n_p, n_b][class as usize] as u64;
                let at = ms(40 * n);
                v.frame(class, at, packets * 10);
                for p in v.came.len() - packets as usize..v.came.len() {
                    if random.chance(r) {
                        v.packet(p, at);
                    }
                }
            }
            // The last I is only there for the B frames before it.
            let all = v.decodable(END);
            all[..600].iter().filter(|d| **d == Some(true)).count() as f64 / 600.0
        })
        .collect();
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let error = (shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    assert!(error < 0.004, "the test is too coarse: {error}");
    assert!((mean - expected).abs() < 4.0 * error, "{mean} and not {expected}, standard error {error}");
}

/// Underflows and their time when frame `i`, of ten per second, is whole at `times[i]` ms.
fn underflows(times: &[u64], ended: bool, from: u64, until: u64) -> (u64, f64) {
    let mut v = video(&"I".repeat(times.len()), 1);
    times.iter().enumerate().filter(|(_, t)| **t > 0).for_each(|(i, t)| v.packet(i, ms(*t)));
    v.ended = ended;
    let seen = v.viewed(Window::since(ms(from)), ms(until));
    (seen.underflows, (seen.underflow_time * 1e6).round() / 1e6)
}

#[test]
fn the_buffer_runs_empty_and_is_filled_again() {
    // One second of video is there at 950 ms; frame i comes at 50 + 100 i.
    let steady: Vec<u64> = (0..40).map(|i| 50 + 100 * i).collect();
    assert_eq!(underflows(&steady, false, 0, 3_999), (0, 0.0));
    // From frame 20 on all come 2 s late. The 20 frames that are there last from 950 to 2950 ms; frame 29, which
    // makes it a second again, comes at 4950 ms.
    let late: Vec<u64> = (0..40).map(|i| 50 + 100 * i + if i >= 20 { 2_000 } else { 0 }).collect();
    assert_eq!(underflows(&late, false, 0, 5_900), (1, 2.0));
    assert_eq!(underflows(&late, false, 0, 3_450), (1, 0.5));
    // One that began before it was measured counts with its rest only.
    assert_eq!(underflows(&late, false, 3_950, 5_900), (0, 1.0));
    // At the end of the video there is nothing more to come.
    assert_eq!(underflows(&steady, true, 0, 9_000), (0, 0.0));
    assert_eq!(underflows(&steady, false, 0, 9_000), (1, 9.0 - 4.95));
    // A lost frame is passed over.
    let mut lost = steady.clone();
    lost[15] = 0;
    assert_eq!(underflows(&lost, false, 0, 3_999), (0, 0.0));
}

#[test]
fn packets_of_a_source_are_found_by_number_and_by_bytes() {
    let config = TrafficConfig::Video(traffic::Video { sigma: 0.0, ..traffic::Video::STANDARD });
    let shared = Arc::new(Mutex::new(Video::new(Duration::from_millis(300), 25.0, 1_000)));
    let mut packets = Packets::new(config.build(1, "v"), Cut::plain(1_000), Some(shared.clone()));
    let sizes: Vec<u64> = (0..17).filter_map(|_| packets.next(Instant::ZERO)).map(|e| e.size).collect();
    // 60,000 bytes in 19 parts: I 15,789 bytes, then a B of 3,158 of which one packet was taken.
    assert_eq!((sizes[14], sizes[15], sizes[16]), (1_000, 789, 1_000));
    let mut v = shared.lock().unwrap().clone();
    assert_eq!(v.frames.iter().map(|f| f.packets).collect::<Vec<_>>(), [16, 4]);
    v.stream(15_788, ms(1));
    assert_eq!((v.frames[0].arrived, v.frames[0].whole), (15, None));
    v.stream(1, ms(2));
    assert_eq!((v.frames[0].arrived, v.frames[0].whole), (16, Some(ms(2))));
    v.stream(1_000, ms(3));
    v.packet(17, ms(4));
    assert_eq!(v.frames[1].arrived, 2);
}
