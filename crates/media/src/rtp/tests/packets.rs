//! Single packets, and what the first ones are.

use super::*;
use proptest::prelude::*;

fn pushed(recogniser: &mut Recogniser, datagrams: &[Bytes]) -> Option<Verdict> {
    datagrams.iter().find_map(|d| recogniser.push(d))
}

#[test]
fn three_packets_in_a_row_are_a_stream() {
    let three: Vec<Bytes> = (0..3).map(|i| packet(SSRC, 65_535u16.wrapping_add(i))).collect();
    for mut r in [Recogniser::new(), Recogniser::of_rtp()] {
        assert_eq!(pushed(&mut r, &three[..2]), None);
        assert_eq!(r.push(&three[1]), None, "a repetition is no evidence");
        assert_eq!(r.push(&three[2]), Some(Verdict::Stream));
    }
    let mut r = Recogniser::new();
    assert_eq!(pushed(&mut r, &[1, 20_000, 40_000].map(|n| packet(SSRC, n))), None, "numbers that are no series");
    let mut r = Recogniser::new();
    assert_eq!(pushed(&mut r, &[1, 2, 3].map(|s| packet(s, 7))), None, "three sources");
}

#[test]
fn rtcp_in_between_says_nothing() {
    let report: Bytes = [&[0x80, 200, 0, 6][..], &[0; 24]].concat().into();
    let with = [packet(SSRC, 1), report.clone(), packet(SSRC, 2), report, packet(SSRC, 3)];
    assert_eq!(pushed(&mut Recogniser::new(), &with), Some(Verdict::Stream));
}

#[test]
fn another_payload_type_is_a_stream_where_the_user_says_rtp() {
    let three: Vec<Bytes> = (0..3).map(|i| rtp(96, SSRC, i, &packets(7, 1))).collect();
    assert_eq!(pushed(&mut Recogniser::of_rtp(), &three), Some(Verdict::Stream));
    assert_eq!(pushed(&mut Recogniser::new(), &three), Some(Verdict::Rtp { payload_type: 96 }));
}

#[test]
fn what_is_no_stream_is_named() {
    let pictures: Vec<Bytes> = (0..3).map(|i| rtp(96, SSRC, i, &[0x41; 1_000])).collect();
    for mut r in [Recogniser::new(), Recogniser::of_rtp()] {
        assert_eq!(pushed(&mut r, &pictures), Some(Verdict::Rtp { payload_type: 96 }));
    }
    // Sound and pictures on one port, in turn.
    let both: Vec<Bytes> = (0..9).map(|i| rtp(96 + i % 2, (i % 2).into(), u16::from(i), &[0x41; 100])).collect();
    assert!(matches!(pushed(&mut Recogniser::new(), &both), Some(Verdict::Rtp { .. })));
    let plain: Vec<Bytes> = (0..3).map(|i| packets(7, i).into()).collect();
    assert_eq!(pushed(&mut Recogniser::new(), &plain[..1]), Some(Verdict::Plain));
    assert_eq!(pushed(&mut Recogniser::of_rtp(), &plain), Some(Verdict::Plain));
    assert_eq!(Recogniser::new().push(b"hello"), Some(Verdict::Other));
    let mut r = Recogniser::of_rtp();
    assert_eq!((0..40).find_map(|_| r.push(b"hello")), Some(Verdict::Other), "does not ask for ever");
}

#[test]
fn silence_settles_it() {
    let mut r = Recogniser::of_rtp();
    assert_eq!(r.push(&packet(SSRC, 1)), None);
    assert_eq!(r.so_far(), Verdict::Stream);
    let mut r = Recogniser::new();
    assert_eq!(r.push(&packet(SSRC, 1)), None);
    assert_eq!(r.so_far(), Verdict::Other);
}

proptest! {
    #[test]
    fn headers_of_every_shape_come_off(
        csrcs in proptest::collection::vec(any::<u32>(), 0..16),
        extension in proptest::option::of((any::<u16>(), 0usize..40)),
        padding in proptest::option::of(1u8..=255),
        count in 1usize..8,
        marker in any::<bool>(),
        sequence in any::<u16>(),
        timestamp in any::<u32>(),
    ) {
        let payload = packets(count, 77);
        let words = extension.map(|(id, words)| (id, vec![0x47; words * 4]));
        let mut b = RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(PAYLOAD_TYPE).ssrc(SSRC).sequence_number(sequence).timestamp(timestamp).marker_bit(marker)
            .payload(&payload);
        for c in csrcs {
            b = b.add_csrc(c);
        }
        if let Some((id, words)) = &words {
            b = b.extension(*id, words);
        }
        if let Some(n) = padding {
            b = b.padding(n);
        }
        let packet: Bytes = b.write_vec().unwrap().into();
        let Look::Stream { payload_type, ssrc, sequence: s, payload: range } = look(&packet) else {
            return Err(TestCaseError::fail("not recognised"));
        };
        prop_assert_eq!((payload_type, ssrc, s), (PAYLOAD_TYPE, SSRC, sequence));
        prop_assert_eq!(&packet[range], &payload[..]);
        // Cut short anywhere it is something else, or fewer whole packets.
        for len in 0..packet.len() {
            if let Look::Stream { payload: range, .. } = look(&packet[..len]) {
                prop_assert!(is_packets(&packet[range]));
            }
        }
    }

    #[test]
    fn any_bytes_can_come(
        datagrams in proptest::collection::vec(
            (prop_oneof![Just(0u8), Just(0x80), Just(0xb1), any::<u8>()], proptest::collection::vec(any::<u8>(), 0..600), 0u64..40, any::<bool>()),
            0..100,
        ),
        window in 0u64..100,
    ) {
        let (mut strict, mut lenient) = (RtpReceiver::new(millis(window)), RtpReceiver::if_there_is_rtp(millis(window)));
        let (mut named, mut unnamed) = (Recogniser::of_rtp(), Recogniser::new());
        let mut at = ms(0);
        for (first, rest, pause, sync) in datagrams {
            let mut d = [&[first][..], &rest].concat();
            if sync {
                // Nearly right.
                d.iter_mut().skip(12).step_by(PACKET_LEN).for_each(|b| *b = 0x47);
                d.truncate(12 + d.len().saturating_sub(12) / PACKET_LEN * PACKET_LEN);
            }
            at += millis(pause);
            let d = Bytes::from(d);
            let _ = (named.push(&d), unnamed.push(&d), named.so_far(), unnamed.so_far());
            for r in [&mut strict, &mut lenient] {
                r.push(at, d.clone());
                while r.poll().is_some() {}
                prop_assert!(r.deadline().is_none_or(|t| t > at));
            }
        }
    }
}

#[test]
fn without_rtp_everything_passes_and_from_the_first_packet_nothing_else() {
    let mut r = RtpReceiver::if_there_is_rtp(millis(30));
    for (i, d) in [Bytes::from(packets(7, 0)), Bytes::from_static(b"anything")].into_iter().enumerate() {
        r.push(ms(i as u64), d.clone());
        assert_eq!(all(&mut r), [Piece { at: ms(i as u64), bytes: d }]);
    }
    r.push(ms(5), packet(SSRC, 5));
    r.push(ms(6), Bytes::from_static(b"anything"));
    r.push(ms(7), packets(1, 9).into());
    r.finish();
    assert_eq!(numbers(&all(&mut r)), [5]);
    assert_eq!(r.stats().ignored, 2);
}

#[test]
fn a_packet_of_the_stream_without_content_is_not_waited_for() {
    let mut r = RtpReceiver::new(millis(30));
    r.push(ms(0), packet(SSRC, 1));
    r.push(ms(1), rtp(PAYLOAD_TYPE, SSRC, 2, &[]));
    r.push(ms(2), rtp(96, SSRC, 3, &[1; 50]));
    r.push(ms(3), rtp(96, SSRC + 1, 900, &[1; 50]));
    r.push(ms(4), packet(SSRC, 4));
    r.on_timeout(ms(30));
    assert_eq!((numbers(&all(&mut r)), r.deadline()), (vec![1, 4], None));
    assert_eq!((r.stats().ignored, r.stats().order.lost), (3, 0));
}
