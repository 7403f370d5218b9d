use super::*;
use crate::picture::av1::tests::{delimiter, hidden_key, inter, key, sequence_header, show};
use crate::ts::psi::tests::{packets, pat, pmt};
use crate::ts::tests::{TsBuilder, VIDEO_PID};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn drain(p: &mut Packetiser) -> Vec<OutMessage> {
    std::iter::from_fn(|| p.poll_message()).collect()
}

fn run(config: PacketiserConfig, pieces: &[&[u8]]) -> Vec<OutMessage> {
    let mut p = Packetiser::new(config);
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    for piece in pieces {
        p.push(now, piece);
        out.extend(drain(&mut p));
        now += MS;
    }
    let end = p.finish(now);
    out.extend(drain(&mut p));
    assert_eq!(end.messages, out.len() as u64);
    out
}

fn payloads(out: &[OutMessage]) -> Vec<u8> {
    out.iter().flat_map(|m| m.payload()).collect()
}

/// Checks what must hold for any input: numbers without gaps, frames that tile the sequence, sizes.
fn check(out: &[OutMessage], config: PacketiserConfig) {
    let mut frame = None::<(u32, u16)>;
    for (i, m) in out.iter().enumerate() {
        let h = m.header;
        assert_eq!(MediaHeader::decode(&m.message), Ok(h));
        assert_eq!(h.sequence, i as u32);
        assert!(m.message.len() <= config.max_message.max(HEADER_LEN + PACKET_LEN));
        match frame {
            Some((f, part)) if f == h.frame => assert_eq!(h.part, part + 1),
            Some((f, _)) => assert_eq!((h.frame, h.part), (f + 1, 0)),
            None => assert_eq!((h.frame, h.part), (0, 0)),
        }
        frame = Some((h.frame, h.part));
        assert!(h.class <= h.frame_class);
    }
}

#[test]
fn frames_are_cut_and_classified() {
    let mut ts = TsBuilder::new();
    ts.tables();
    for (kind, len) in [('I', 4_000), ('B', 1_000), ('P', 2_000)] {
        ts.video_frame(kind, len);
    }
    let out = run(PacketiserConfig::default(), &[ts.bytes()]);
    check(&out, PacketiserConfig::default());
    assert_eq!(payloads(&out), ts.bytes());
    let heads: Vec<_> = out
        .iter()
        .map(|m| (m.header.frame, m.header.part, m.header.parts, m.header.frame_class, m.header.class_known))
        .collect();
    use Class::{B, I, P};
    assert_eq!(
        heads,
        [
            (0, 0, 1, I, false), // tables before the first frame
            (1, 0, 0, I, true),
            (1, 1, 0, I, true),
            (1, 2, 0, I, true),
            (1, 3, 4, I, true),
            (2, 0, 1, B, true),
            (3, 0, 0, P, true),
            (3, 1, 2, P, true),
        ]
    );
    assert!(out.iter().all(|m| m.message.len() <= 18 + 1128));
}

#[test]
fn frames_behind_the_first_one_of_a_temporal_unit_are_followed() {
    use Class::{B, I, P};
    for slot in [1u8, 6] {
        let bit = 1 << slot;
        let units = [
            (vec![delimiter(), sequence_header(), key(3_000)], I),
            // The slot of a key frame that is to be shown later gets another frame right behind it, or does not.
            (vec![delimiter(), hidden_key(bit, 1_500), inter(false, bit, 0, 700), inter(true, 0, slot, 10)], I),
            (vec![delimiter(), show(slot)], B),
            (vec![delimiter(), inter(true, bit, slot, 500)], P),
            (vec![delimiter(), hidden_key(bit, 40_000), inter(true, 0, slot, 2_000)], I),
            (vec![delimiter(), show(slot)], I),
        ];
        let mut ts = TsBuilder::new();
        for (i, (unit, _)) in units.iter().enumerate() {
            let pes = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0][..], &unit.concat()].concat();
            for (n, payload) in pes.chunks(184).enumerate() {
                ts.packet(VIDEO_PID, (i * 5 + n) as u8 & 15, n == 0, payload, None);
            }
        }
        let tables =
            [packets(0, 0, &pat(0, &[(1, 0x1000)])), packets(0x1000, 0, &pmt(1, 0, VIDEO_PID, &[(6, VIDEO_PID)]))];
        let all = [&tables.concat().concat()[..], ts.bytes()].concat();
        for step in [188, 1_316, all.len()] {
            let pieces: Vec<&[u8]> = all.chunks(step).collect();
            let out = run(PacketiserConfig::default(), &pieces);
            let of = |frame: u32| out.iter().rfind(|m| m.header.frame == frame).map(|m| m.header.frame_class);
            // What comes before the first one is the tables'.
            let first = out.iter().find(|m| m.header.class_known).map_or(0, |m| m.header.frame);
            let found: Vec<Option<Class>> = (first..first + units.len() as u32).map(of).collect();
            assert_eq!(found, units.iter().map(|(_, class)| Some(*class)).collect::<Vec<_>>(), "slot {slot}, {step}");
        }
    }
}

#[test]
fn audio_rides_along_and_raises_only_its_message() {
    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame('I', 500);
    ts.video_frame_with('B', 3_000, 8, |ts| {
        ts.null();
        ts.audio();
    });
    ts.video_frame('P', 500);
    let out = run(PacketiserConfig::default(), &[ts.bytes()]);
    check(&out, PacketiserConfig::default());
    assert_eq!(payloads(&out), ts.bytes());
    let b: Vec<_> = out.iter().filter(|m| m.header.frame == 2).collect();
    assert!(b.iter().all(|m| m.header.frame_class == Class::B));
    let classes: Vec<_> = b.iter().map(|m| m.header.class).collect();
    assert_eq!(classes, [Class::B, Class::I, Class::B, Class::B]);
    assert_eq!(b.last().map(|m| m.header.parts), Some(4));
}

#[test]
fn nulls_are_stripped_on_request_only() {
    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame_with('P', 3_000, 3, TsBuilder::null);
    ts.null();
    ts.video_frame('B', 300);
    let without: Vec<u8> =
        ts.bytes().chunks(188).filter(|p| Packet::new(p).unwrap().pid() != NULL_PID).flatten().copied().collect();
    assert!(without.len() < ts.bytes().len());
    assert_eq!(payloads(&run(PacketiserConfig::default(), &[ts.bytes()])), ts.bytes());
    let strip = PacketiserConfig { strip_null: true, ..Default::default() };
    assert_eq!(payloads(&run(strip, &[ts.bytes()])), without);
}

#[test]
fn scrambled_video_is_cut_but_has_no_class() {
    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame('P', 2_000);
    ts.video_frame('B', 2_000);
    let mut bytes = ts.bytes().to_vec();
    for p in bytes.chunks_mut(188) {
        if Packet::new(p).unwrap().pid() == VIDEO_PID {
            p[3] |= 0x80;
        }
    }
    let out = run(PacketiserConfig::default(), &[&bytes]);
    check(&out, PacketiserConfig::default());
    assert!(out.iter().all(|m| m.header.class == Class::I && !m.header.class_known));
    assert_eq!(out.last().map(|m| m.header.frame), Some(2));
}

#[test]
fn unknown_bytes_are_frames_of_one_message_in_one_class() {
    let bytes: Vec<u8> = (0..5_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let out = run(PacketiserConfig::default(), &[&bytes[..10], &bytes[10..]]);
    check(&out, PacketiserConfig::default());
    assert_eq!(payloads(&out), bytes);
    assert!(out.iter().all(|m| m.header.class == Class::I && m.header.parts == 1));
}

#[test]
fn waiting_is_bounded() {
    let mut p = Packetiser::new(PacketiserConfig::default());
    assert_eq!(p.deadline(), None);
    let t0 = Instant::from_millis(100);
    p.push(t0, b"hello");
    assert_eq!(p.deadline(), Some(t0 + MS * 10));
    p.on_timeout(t0 + MS * 9);
    assert!(p.poll_message().is_none(), "early calls do nothing");
    p.on_timeout(t0 + MS * 10);
    assert_eq!(p.poll_message().unwrap().payload(), b"hello"[..]);
    assert_eq!(p.deadline(), None);

    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame('P', 700);
    let mut p = Packetiser::new(PacketiserConfig::default());
    p.push(t0, ts.bytes());
    assert_eq!(drain(&mut p).len(), 1, "tables; the picture may go on");
    let deadline = p.deadline().unwrap();
    assert_eq!(deadline, t0 + MS * 10);
    p.on_timeout(deadline);
    let m = p.poll_message().unwrap();
    assert_eq!((m.header.parts, m.header.frame_class, m.ingest), (0, Class::P, t0));
    assert_eq!(m.header.timestamp, 100_000);
    p.push(deadline, TsBuilder::new().video_frame('B', 100).bytes());
    assert_eq!(p.stats().unmarked_ends, 1);
}

#[test]
fn sound_alone_does_not_stay_in_one_frame() {
    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame('I', 300);
    let mut p = Packetiser::new(PacketiserConfig::default());
    p.push(Instant::ZERO, ts.bytes());
    for ms in 0..2_000 {
        p.push(Instant::from_millis(ms), TsBuilder::new().audio().bytes());
    }
    p.finish(Instant::from_millis(2_000));
    let out = drain(&mut p);
    check(&out, PacketiserConfig::default());
    let in_frame = out.iter().filter(|m| m.header.frame == 1).count();
    assert!((165..175).contains(&in_frame), "one second of packets, got {in_frame} messages");
    assert!(out.iter().rev().take(100).all(|m| m.header.parts == 1 && !m.header.class_known));
}

#[test]
fn a_class_that_shows_late_does_not_hold_back_a_full_message() {
    let mut ts = TsBuilder::new();
    ts.tables();
    ts.video_frame_after('B', 4_000, 2_000); // 2 kB of user data in front of the slice
    let mut p = Packetiser::new(PacketiserConfig::default());
    p.push(Instant::ZERO, &ts.bytes()[..188 * 9]);
    let out = drain(&mut p);
    assert_eq!(out.last().map(|m| (m.header.frame, m.header.class_known)), Some((1, false)));
    p.push(Instant::ZERO, &ts.bytes()[188 * 9..]);
    p.finish(Instant::ZERO);
    let out = drain(&mut p);
    assert_eq!(out.last().map(|m| (m.header.frame_class, m.header.class_known)), Some((Class::B, true)));
}

/// Pieces that look like transport streams more or less.
pub(crate) fn any_input() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        3 => (0usize..3, 0usize..5_000, 0usize..4).prop_map(|(kind, len, extra)| {
            let mut ts = TsBuilder::new();
            if extra == 0 {
                ts.tables();
            }
            ts.video_frame_with(['I', 'P', 'B'][kind], len, 2 + extra, |ts| {
                ts.audio();
                ts.null();
            });
            ts.bytes().to_vec()
        }),
        1 => proptest::collection::vec(prop_oneof![Just(0x47u8), any::<u8>()], 0..600),
        1 => (1usize..190).prop_map(|n| TsBuilder::new().video_frame('P', 400).bytes()[..n].to_vec()),
    ];
    proptest::collection::vec(piece, 0..12)
}

proptest! {
    #[test]
    fn any_input_comes_out_byte_for_byte(
        pieces in any_input(),
        cut in 1usize..3_000,
        max_message in 0usize..1_500,
        timeouts: u64,
    ) {
        let bytes = pieces.concat();
        let config = PacketiserConfig { max_message, ..Default::default() };
        let mut p = Packetiser::new(config);
        let mut out = Vec::new();
        let mut now = Instant::ZERO;
        for (i, piece) in bytes.chunks(cut).enumerate() {
            p.push(now, piece);
            if timeouts >> (i % 64) & 1 == 1 {
                now += MS * 10;
                p.on_timeout(now);
                prop_assert!(p.deadline().is_none_or(|d| d > now));
            }
            out.extend(drain(&mut p));
        }
        p.finish(now);
        out.extend(drain(&mut p));
        prop_assert_eq!(payloads(&out), bytes);
        check(&out, config);
    }
}

#[test]
fn a_frame_s_messages_follow_from_its_length() {
    for max_message in [100, 400, 1_172, 1_300, 2_000] {
        let config = PacketiserConfig { max_message, ..PacketiserConfig::default() };
        for len in [1, 150, 180, 1_100, 1_128, 1_129, 5_000, 60_000] {
            let mut ts = TsBuilder::new();
            ts.tables();
            let tables = ts.bytes().len();
            ts.video_frame('P', len);
            let frame = ts.bytes().len() - tables;
            // The tables come first and are frames of their own.
            let out = run(config, &[&ts.bytes()[..tables], &ts.bytes()[tables..]]);
            let lens: Vec<usize> = out.iter().filter(|m| m.header.class_known).map(|m| m.message.len()).collect();
            let full = config.full_payload();
            let listed: Vec<usize> =
                (0..frame.div_ceil(full)).map(|i| PacketiserConfig::message_len(full.min(frame - i * full))).collect();
            assert_eq!(lens, listed, "{max_message} {len}");
        }
    }
}
