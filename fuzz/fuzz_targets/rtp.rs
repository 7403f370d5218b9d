//! Any datagrams at any times into what takes a transport stream out of RTP: it never panics, what waits is bounded,
//! instants never fall, and what comes out is whole packets. What came out goes back in through the sender.
//!
//! The input is a list of datagrams: two bytes of length and shape, one of time, the bytes.
#![no_main]

use anabranch_base::{Duration, Instant};
use anabranch_media::rtp::{Recogniser, RtpReceiver, RtpSender, RtpSenderConfig, is_packets};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

const WINDOW: Duration = Duration::from_millis(30);

fuzz_target!(|input: &[u8]| {
    let mut receiver = RtpReceiver::new(WINDOW);
    let mut sender = RtpSender::new(RtpSenderConfig::default());
    let mut recognisers = [Recogniser::new(), Recogniser::of_rtp()];
    let (mut now, mut last, mut out, mut sent) = (Instant::from_millis(1), Instant::ZERO, 0, 0);
    let mut rest = input;
    while let [shape, len, time, behind @ ..] = rest {
        let (bytes, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        now += Duration::from_micros(u64::from(*time) * 500);
        let datagram = datagram(*shape, bytes);
        for recogniser in &mut recognisers {
            recogniser.push(&datagram);
        }
        receiver.push(now, datagram);
        assert!(receiver.deadline().is_none_or(|t| t > now && t <= now + WINDOW));
        while let Some(piece) = receiver.poll() {
            assert!(is_packets(&piece.bytes) && piece.at <= now && piece.at >= last);
            last = piece.at;
            out += piece.bytes.len();
            sender.push(piece.at, &piece.bytes);
            while let Some(packet) = sender.poll() {
                sent += packet.len() - 12;
            }
        }
    }
    assert_eq!((out, sender.left_out()), (sent, 0), "whole packets leave whole");
});

/// The bytes as they are, or so that they are nearly RTP with packets of a transport stream.
fn datagram(shape: u8, bytes: &[u8]) -> Bytes {
    let count = usize::from(shape & 3);
    if shape & 0xf0 != 0x80 || count == 0 {
        return Bytes::copy_from_slice(bytes);
    }
    let mut all = vec![0; 12 + count * 188];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    all.iter_mut().skip(12).step_by(188).for_each(|b| *b = 0x47);
    all[0] = 0x80;
    all[1] = 33;
    if shape & 4 != 0 {
        // One source.
        all[8..12].fill(7);
    }
    all.into()
}
