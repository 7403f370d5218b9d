//! Packets that leave.

use super::*;
use proptest::prelude::*;
use rtp_types::RtpPacket;

struct Sent {
    sequence: u16,
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

fn sent(sender: &mut RtpSender) -> Vec<Sent> {
    let mut all = Vec::new();
    while let Some(packet) = sender.poll() {
        let p = RtpPacket::parse(packet).unwrap();
        assert_eq!((p.payload_type(), p.ssrc(), p.csrc().count(), p.extension()), (33, SSRC, 0, None));
        all.push(Sent {
            sequence: p.sequence_number(),
            timestamp: p.timestamp(),
            marker: p.marker_bit(),
            payload: p.payload().to_vec(),
        });
    }
    all
}

fn sender(sequence: u16, timestamp: u32) -> RtpSender {
    RtpSender::new(RtpSenderConfig { ssrc: SSRC, sequence, timestamp, ..RtpSenderConfig::default() })
}

#[test]
fn at_most_seven_packets_each() {
    for n in 1..=40 {
        let mut s = sender(0, 0);
        s.push(ms(0), &packets(n, 1));
        let lens: Vec<usize> = sent(&mut s).iter().map(|p| p.payload.len() / PACKET_LEN).collect();
        assert_eq!((lens.iter().sum::<usize>(), lens.len()), (n, n.div_ceil(7)));
        assert!(lens.iter().all(|l| (1..=7).contains(l)));
    }
}

#[test]
fn time_stamps_are_the_instants_of_play_out() {
    let mut s = sender(0, u32::MAX - 90_000 * 10 - 89);
    let mut stamps = Vec::new();
    // One that would fall stays, and the counter wraps.
    for at in [0, 1, 1_000, 999, 2_000, 60_000] {
        s.push(ms(at), &packets(1, 1));
        stamps.extend(sent(&mut s).iter().map(|p| p.timestamp));
    }
    assert_eq!(stamps, [u32::MAX - 89, 0, 89_910, 89_910, 179_910, 5_399_910]);
}

#[test]
fn the_marker_says_that_another_stream_begins() {
    let mut s = sender(65_534, 0);
    let mut seen = Vec::new();
    for begins in [false, false, true, false, false] {
        if begins {
            s.begin();
        }
        s.push(ms(0), &packets(1, 1));
        seen.extend(sent(&mut s).iter().map(|p| (p.sequence, p.marker)));
    }
    assert_eq!(seen, [(65_534, true), (65_535, false), (0, true), (1, false), (2, false)]);
}

#[test]
fn bytes_that_are_no_packets_are_left_out() {
    let mut s = sender(0, 0);
    let stream: Vec<u8> = (0..20).flat_map(|n| packets(1, n)).collect();
    s.push(ms(0), &[1; 100]);
    for piece in stream.chunks(500) {
        s.push(ms(0), piece);
    }
    let out: Vec<u8> = sent(&mut s).into_iter().flat_map(|p| p.payload).collect();
    assert!(is_packets(&out));
    assert_eq!(out, stream);
    assert_eq!(s.left_out(), 100);
}

proptest! {
    /// What leaves here comes back as it was.
    #[test]
    fn what_is_sent_is_received(
        sizes in proptest::collection::vec((1usize..20, 0u64..50), 1..100),
        sequence in any::<u16>(),
        timestamp in any::<u32>(),
    ) {
        let (mut s, mut r) = (sender(sequence, timestamp), RtpReceiver::new(millis(30)));
        let (mut stream, mut out, mut at) = (Vec::new(), Vec::new(), 0);
        for (i, (n, pause)) in sizes.iter().enumerate() {
            at += pause;
            let bytes = packets(*n, i as u32);
            s.push(ms(at), &bytes);
            while let Some(packet) = s.poll() {
                r.push(ms(at), Bytes::copy_from_slice(packet));
            }
            out.extend(all(&mut r).iter().flat_map(|p| p.bytes.to_vec()));
            stream.extend(bytes);
        }
        r.finish();
        out.extend(all(&mut r).iter().flat_map(|p| p.bytes.to_vec()));
        prop_assert_eq!(out, stream);
    }

    /// Any bytes in any pieces: only whole packets leave, in order.
    #[test]
    fn any_bytes_can_be_sent(
        pieces in proptest::collection::vec(prop_oneof![
            proptest::collection::vec(prop_oneof![Just(0x47u8), any::<u8>()], 0..700),
            (1usize..12).prop_map(|n| packets(n, n as u32)),
        ], 0..20),
    ) {
        let mut s = sender(0, 0);
        let mut len = 0;
        for (i, piece) in pieces.iter().enumerate() {
            s.push(ms(i as u64), piece);
            for p in sent(&mut s) {
                prop_assert!(is_packets(&p.payload) && p.payload.len() <= 7 * PACKET_LEN);
                len += p.payload.len() as u64;
            }
        }
        s.begin();
        prop_assert_eq!(len + s.left_out(), pieces.concat().len() as u64);
    }
}
