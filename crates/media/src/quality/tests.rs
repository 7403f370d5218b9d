//! Streams that are damaged at known places, so that the answer is known in advance.

use super::*;
use crate::ts::tests::{TsBuilder, VIDEO_PID};
use crate::ts::{PACKET_LEN, Packet};
use crate::{Class, DEMO_CLIP};
use anabranch_base::Duration;

/// Frame of each packet of a stream; none for other packets and before the first frame.
fn frames_of(ts: &[u8], pid: u16) -> Vec<Option<usize>> {
    let mut frame = None;
    let place = |p: &[u8]| {
        let packet = Packet::new(p).expect("a packet");
        if packet.pid() != pid {
            return None;
        }
        if packet.payload_unit_start() {
            frame = Some(frame.map_or(0, |f: usize| f + 1));
        }
        frame
    };
    ts.chunks(PACKET_LEN).map(place).collect()
}

pub(super) fn recording(ts: &[u8]) -> Recording {
    let mut r = Recording::new();
    ts.chunks(1_000).for_each(|b| r.push(None, b));
    r.finish();
    r
}

/// The stream without the packets that `lost` says, by frame and the packet's number in it.
fn without(ts: &[u8], pid: u16, lost: impl Fn(usize, usize) -> bool) -> Vec<u8> {
    let frames = frames_of(ts, pid);
    let mut in_frame = 0;
    let mut last = None;
    let mut kept = Vec::new();
    for (packet, frame) in ts.chunks(PACKET_LEN).zip(frames) {
        if let Some(f) = frame {
            in_frame = if last == Some(f) { in_frame + 1 } else { 0 };
            last = frame;
            if lost(f, in_frame) {
                continue;
            }
        }
        kept.extend_from_slice(packet);
    }
    kept
}

/// '.' can be decoded, 'x' is not whole, 'r' may refer to one that cannot be decoded.
fn marks(found: &Comparison) -> String {
    let mark = |r: &FrameResult| match (r.state, r.decodable) {
        (FrameState::Whole, true) => '.',
        (FrameState::Whole, false) => 'r',
        _ => 'x',
    };
    found.results.iter().map(mark).collect()
}

fn stalls(sent: &Recording, received: &Recording, found: &Comparison) -> Vec<(u64, u64)> {
    let shown = Shown::of(sent, received, found, Duration::ZERO, Duration::from_millis(1));
    shown.stalls.iter().map(|s| (s.from.as_millis(), s.length.as_millis())).collect()
}

#[test]
fn the_clip_against_itself_is_whole() {
    let sent = recording(DEMO_CLIP);
    let found = Comparison::of(&sent, &recording(DEMO_CLIP)).unwrap();
    assert_eq!(found.frames, [4, 32, 60, 0]);
    assert_eq!((found.missing, found.damaged, found.undecodable), ([0; 4], [0; 4], [0; 4]));
    assert_eq!((found.packets_missing, found.strange, found.repeated, found.unknown), (0, 0, 0, 0));
    assert_eq!(found.decodable_share(), 1.0);
    let shown = Shown::of(&sent, &sent, &found, Duration::ZERO, Duration::from_millis(1));
    assert_eq!((shown.stalls.len(), shown.late, shown.length), (0, [0; 4], Duration::from_millis(3_840)));
    assert!(shown.frames.iter().all(|s| *s) && !shown.by_arrival);
    // Null packets that are gone are no loss.
    let nulls = |p: &&[u8]| Packet::new(p).is_some_and(|p| p.pid() != 0x1fff);
    let bare: Vec<u8> = DEMO_CLIP.chunks(PACKET_LEN).filter(nulls).flatten().copied().collect();
    assert_eq!(Comparison::of(&sent, &recording(&bare)).unwrap().packets_missing, 0);
}

#[test]
fn the_clips_references_are_those_it_was_made_with() {
    // Closed groups of 24 frames, I B B P in order of output, three reference frames (clips/README.md; x264's preset).
    let sent = recording(DEMO_CLIP);
    let needs = |i: usize| sent.frames()[i].picture.needs.units.clone();
    // Decoding order: I0 P1 B2 B3 P4 B5 B6 P7 B8 B9 P10 ...
    let nothing: [u64; 0] = [];
    assert_eq!((needs(0), needs(1), needs(24)), (nothing.to_vec(), vec![0], nothing.to_vec()));
    assert_eq!((needs(4), needs(7), needs(10)), (vec![0, 1], vec![0, 1, 4], vec![1, 4, 7]));
    assert!(needs(2).iter().all(|n| [0, 1].contains(n)) && needs(11).iter().all(|n| [1, 4, 7, 10].contains(n)));
    assert!(sent.frames().iter().all(|f| f.picture.needs.known && f.picture.class.is_some()));
}

#[test]
fn frames_that_are_lost_take_with_them_what_refers_to_them() {
    let sent = recording(DEMO_CLIP);
    let pid = sent.video_pid().unwrap();
    let lose = |frames: &[usize]| {
        let received = recording(&without(DEMO_CLIP, pid, |f, _| frames.contains(&f)));
        let found = Comparison::of(&sent, &received).unwrap();
        let stalls = stalls(&sent, &received, &found);
        (marks(&found), found, stalls)
    };
    let fine = |n: usize| ".".repeat(n);
    // A B picture: itself, and the one before it stands for 40 ms more.
    let (marks, found, stalls) = lose(&[2]);
    assert_eq!(marks, format!("..x{}", fine(93)));
    assert_eq!((found.missing, found.undecodable), ([0, 0, 1, 0], [0, 0, 1, 0]));
    assert_eq!(stalls, [(40, 40)]);
    // The I picture of the second group: its 24 frames, 960 ms.
    let (marks, found, stalls) = lose(&[24]);
    assert_eq!(marks, format!("{}x{}{}", fine(24), "r".repeat(23), fine(48)));
    assert_eq!((found.missing, found.undecodable), ([1, 0, 0, 0], [1, 8, 15, 0]));
    assert_eq!(stalls, [(960, 960)]);
    // The last P picture of the first group, and the two B pictures in front of it in order of output.
    let last = sent.frames().iter().take(24).rposition(|f| f.picture.class == Some(Class::P)).unwrap();
    let (marks, _, _) = lose(&[last]);
    assert_eq!(marks.matches('x').count() + marks.matches('r').count(), 24 - last);
    // Two frames that are lost whole and next to one another in order of output: one stall.
    let (_, found, stalls) = lose(&[2, 3]);
    assert_eq!((found.missing[2], stalls), (2, vec![(40, 80)]));
}

#[test]
fn one_packet_damages_its_frame_only() {
    let sent = recording(DEMO_CLIP);
    let pid = sent.video_pid().unwrap();
    // The packet in which frame 3 begins: what follows is still its own, and frame 2 is whole.
    for packet in [0, 5] {
        let received = recording(&without(DEMO_CLIP, pid, |f, n| f == 3 && n == packet));
        let found = Comparison::of(&sent, &received).unwrap();
        assert_eq!(found.damaged, [0, 0, 1, 0]);
        assert_eq!((found.missing, found.undecodable, found.video_missing), ([0; 4], [0, 0, 1, 0], 1));
        assert_eq!(found.results[3].arrived + 1, sent.frames()[3].packets);
    }
    // A flipped bit is a packet that did not come, and one that was never sent.
    let mut flipped = DEMO_CLIP.to_vec();
    let at = frames_of(DEMO_CLIP, pid).iter().position(|f| *f == Some(24)).unwrap();
    flipped[at * PACKET_LEN + 150] ^= 4;
    let found = Comparison::of(&sent, &recording(&flipped)).unwrap();
    assert_eq!((found.damaged, found.strange, found.packets_missing), ([1, 0, 0, 0], 1, 1));
}

/// The clip's packets of the video without a payload, by their numbers.
fn without_payload(pid: u16) -> Vec<usize> {
    let is_it = |p: &[u8]| Packet::new(p).is_some_and(|p| p.pid() == pid && !p.has_payload());
    DEMO_CLIP.chunks(PACKET_LEN).enumerate().filter(|(_, p)| is_it(p)).map(|(i, _)| i).collect()
}

#[test]
fn packets_without_a_payload_are_of_no_frame() {
    let sent = recording(DEMO_CLIP);
    let bare = without_payload(sent.video_pid().unwrap());
    assert_eq!(bare.len(), 7);
    let each = bare.iter().map(|i| vec![*i]).chain([bare.clone()]);
    for lost in each {
        let kept = DEMO_CLIP.chunks(PACKET_LEN).enumerate().filter(|(i, _)| !lost.contains(i));
        let received = recording(&kept.flat_map(|(_, p)| p).copied().collect::<Vec<_>>());
        let found = Comparison::of(&sent, &received).unwrap();
        assert_eq!((found.damaged, found.undecodable), ([0; 4], [0; 4]), "{lost:?}");
        assert_eq!((found.packets_missing, found.video_missing), (lost.len() as u64, 0));
    }
    // Such a packet that says that a frame begins in it begins none.
    let mut marked = DEMO_CLIP.to_vec();
    bare.iter().for_each(|i| marked[i * PACKET_LEN + 1] |= 0x40);
    assert_eq!(recording(&marked).frames().len(), 96);
}

#[test]
fn of_a_packet_that_is_sent_twice_one_is_enough() {
    let mut b = TsBuilder::new();
    b.tables().video_frame('I', 2_000).video_frame('P', 2_000);
    let packets: Vec<&[u8]> = b.bytes().chunks(PACKET_LEN).collect();
    for twice in 2..packets.len() {
        let mut doubled = packets.clone();
        doubled.insert(twice, packets[twice]);
        let sent = recording(&doubled.concat());
        assert_eq!(sent.frames()[0].packets + sent.frames()[1].packets + 2, packets.len() as u32);
        for lost in [twice, twice + 1] {
            let mut received = doubled.clone();
            received.remove(lost);
            let found = Comparison::of(&sent, &recording(&received.concat())).unwrap();
            assert_eq!((found.undecodable, found.packets_missing), ([0; 4], 1), "{twice}, {lost}");
        }
    }
}

#[test]
fn a_recording_from_the_middle_on_begins_with_a_picture_that_needs_none() {
    let pid = recording(DEMO_CLIP).video_pid().unwrap();
    for begin in [1, 2, 5, 13, 23, 24, 25, 47, 72, 95] {
        let ts = without(DEMO_CLIP, pid, |f, _| f < begin);
        let sent = recording(&ts);
        let found = Comparison::of(&sent, &sent).unwrap();
        let lost = (24 - begin % 24) % 24;
        assert_eq!(marks(&found), format!("{}{}", "r".repeat(lost), ".".repeat(96 - begin - lost)), "from {begin} on");
        assert_eq!(found.before > 0, lost > 0, "{begin}");
        assert_eq!(found.undecodable.iter().sum::<u64>(), lost as u64);
    }
}

#[test]
fn without_parameter_sets_a_picture_needs_the_reference_before_it() {
    let mut b = TsBuilder::new();
    b.tables();
    "IPBBPBBIPB".chars().for_each(|k| {
        b.video_frame(k, 600);
    });
    let ts = b.bytes().to_vec();
    let sent = recording(&ts);
    assert!(sent.frames().iter().all(|f| f.picture.class.is_some()));
    assert!(sent.frames().iter().all(|f| f.picture.class == Some(Class::I) || !f.picture.needs.known));
    let lost = |frames: &[usize]| {
        let found = Comparison::of(&sent, &recording(&without(&ts, VIDEO_PID, |f, _| frames.contains(&f)))).unwrap();
        assert_eq!(found.unknown, 8);
        marks(&found)
    };
    assert_eq!(lost(&[]), "..........");
    assert_eq!(lost(&[2]), "..x.......", "nothing refers to a B picture");
    assert_eq!(lost(&[1]), ".xrrrrr...", "everything up to the next I picture");
    assert_eq!(lost(&[8]), "........xr");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let sent = recording(DEMO_CLIP);
    let mut b = TsBuilder::new();
    b.tables().video_frame('I', 5_000);
    let other = recording(b.bytes());
    assert_eq!(Comparison::of(&sent, &other), Err(CompareError::Strangers));
    assert_eq!(Comparison::of(&recording(&[7; 5_000]), &sent), Err(CompareError::NoVideo));
    // Nothing at all came: that is a result.
    let nothing = Comparison::of(&sent, &Recording::new()).unwrap();
    assert_eq!((nothing.undecodable, nothing.decodable_share()), ([4, 32, 60, 0], 0.0));
}

/// The clip, each packet at the time at which a constant rate of 8 Mbit/s brings it, later by what `late` says of its frame.
fn timed(pid: u16, late: impl Fn(usize) -> u64) -> Recording {
    let mut r = Recording::new();
    let mut at = Duration::ZERO;
    for (i, (packet, frame)) in DEMO_CLIP.chunks(PACKET_LEN).zip(frames_of(DEMO_CLIP, pid)).enumerate() {
        let due = Duration::from_secs(100) + Duration::from_nanos(i as u64 * PACKET_LEN as u64 * 1_000);
        at = at.max(due + Duration::from_millis(frame.map_or(0, &late)));
        r.push(Some(at), packet);
    }
    r.finish();
    r
}

#[test]
fn frames_that_come_late_stall_the_picture() {
    let sent = recording(DEMO_CLIP);
    let pid = sent.video_pid().unwrap();
    let in_time = timed(pid, |_| 0);
    let found = Comparison::of(&sent, &in_time).unwrap();
    let shortest = Duration::from_millis(20);
    let shown = Shown::of(&sent, &in_time, &found, Duration::ZERO, shortest);
    assert_eq!((shown.by_arrival, shown.late, shown.stalls.len()), (true, [0; 4], 0), "{:?}", shown.stalls);
    // From frame 48 on everything comes 2 s later; then the picture goes on as fast as frames come.
    let late = timed(pid, |f| if f >= 48 { 2_000 } else { 0 });
    let found = Comparison::of(&sent, &late).unwrap();
    assert_eq!(found.undecodable, [0; 4]);
    let shown = Shown::of(&sent, &late, &found, Duration::ZERO, Duration::from_millis(200));
    assert_eq!(shown.stalls.len(), 1, "{:?}", shown.stalls);
    let stall = shown.stalls[0];
    assert_eq!(stall.from, Duration::from_millis(48 * 40));
    assert!((Duration::from_millis(1_400)..Duration::from_millis(2_000)).contains(&stall.length), "{:?}", stall.length);
    // A player that waits for longer sees none of it.
    let patient = Shown::of(&sent, &late, &found, Duration::from_secs(2), shortest);
    assert_eq!((patient.late, patient.stalls.len()), ([0; 4], 0));
    // One B frame that comes behind its time is not seen.
    let one = timed(pid, |f| if (50..54).contains(&f) { 700 } else { 0 });
    let found = Comparison::of(&sent, &one).unwrap();
    let shown = Shown::of(&sent, &one, &found, Duration::ZERO, shortest);
    assert_eq!(shown.late.iter().sum::<u64>() as usize, shown.frames.iter().filter(|s| !**s).count());
    assert!(shown.longest() > Duration::from_millis(100));
}
