//! Captures of every kind, what ffmpeg prints, and logs of VMAF.

use super::capture::{Capture, Flow};
use super::decoded::{Measured, Parser, vmaf_scores};
use anabranch_wire::{Direction, LinkType, PcapngWriter};

const AT: u64 = 1_700_000_000_123_456_789;

/// A packet of a transport stream.
fn ts() -> Vec<u8> {
    let mut b = vec![0x47, 0x01, 0x00, 0x10];
    b.resize(188, 7);
    b
}

/// IPv4 and UDP around a payload, to 10.0.0.2 and a port.
fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut b = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39];
    let length = 28 + payload.len() as u16;
    b[2..4].copy_from_slice(&length.to_be_bytes());
    b.extend(port.to_be_bytes());
    b.extend((length - 20).to_be_bytes());
    b.extend([0, 0]);
    b.extend(payload);
    b
}

fn packets(file: &[u8]) -> Vec<(u64, u16, Vec<u8>)> {
    let mut reader = Capture::of(&file[..4]).expect("a capture").reading(file);
    let mut all = Vec::new();
    while let Some(p) = reader.next().expect("it can be read") {
        all.push((p.at.as_nanos(), p.link, p.bytes));
    }
    all
}

#[test]
fn our_own_pcapng_is_read() {
    let mut file = Vec::new();
    let mut w = PcapngWriter::new(&mut file, "test").unwrap();
    let on = w.add_interface("a", LinkType::RAW_IP).unwrap();
    w.packet(on, AT, Direction::In, b"first").unwrap();
    w.packet_with_comment(on, AT + 5, Direction::Out, b"second!", "why").unwrap();
    assert_eq!(packets(&file), [(AT, 101, b"first".to_vec()), (AT + 5, 101, b"second!".to_vec())]);
    // Cut short within the last packet.
    assert_eq!(packets(&file[..file.len() - 3]).len(), 1);
}

#[test]
fn pcap_of_both_orders_and_resolutions_is_read() {
    for (magic, big, nanos) in [
        ([0xd4, 0xc3, 0xb2, 0xa1], false, false),
        ([0xa1, 0xb2, 0xc3, 0xd4], true, false),
        ([0x4d, 0x3c, 0xb2, 0xa1], false, true),
    ] {
        let word = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let mut file = magic.to_vec();
        file.extend([0; 16]);
        file.extend(word(1));
        for v in [1_700_000_000, 123_456, 3, 3] {
            file.extend(word(v));
        }
        file.extend(b"abc");
        let part = if nanos { 123_456 } else { 123_456_000 };
        assert_eq!(packets(&file), [(1_700_000_000_000_000_000 + part, 1, b"abc".to_vec())]);
    }
}

#[test]
fn damaged_captures_are_an_error_or_an_end() {
    for file in [&[0x0a, 0x0d, 0x0d, 0x0a][..], &[0xd4, 0xc3, 0xb2, 0xa1, 1, 2]] {
        assert_eq!(packets(file).len(), 0);
    }
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1];
    file.resize(24, 0);
    file.extend([0xff; 16]);
    assert!(Capture::of(&file[..4]).unwrap().reading(&file[..]).next().is_err());
    let section = [0x0a, 0x0d, 0x0d, 0x0a, 5, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 0, 0, 0, 0];
    assert!(Capture::of(&section[..4]).unwrap().reading(&section[..]).next().is_err());
    assert_eq!(Capture::of(b"GGGG"), None);
}

#[test]
fn the_stream_is_taken_out_of_its_datagrams() {
    let (plain, mut rtp) = (datagram(5_000, &ts()), vec![0x80, 33, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
    rtp.extend(ts());
    let mut flow = Flow::new(None);
    assert_eq!(flow.stream(101, &datagram(5_000, b"something else")), None);
    assert_eq!(flow.stream(101, &plain), Some(&ts()[..]));
    assert_eq!(flow.stream(101, &datagram(5_002, &ts())), None, "another stream");
    assert_eq!(flow.stream(101, &datagram(5_000, &rtp)), Some(&ts()[..]), "in RTP");
    let ethernet: Vec<u8> = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], &plain].concat();
    assert_eq!(flow.stream(1, &ethernet), Some(&ts()[..]), "with a tag");
    let cooked: Vec<u8> = [&[0; 16][..], &plain].concat();
    assert_eq!(flow.stream(113, &cooked), Some(&ts()[..]));
    assert_eq!(Flow::new(Some(5_002)).stream(101, &plain), None);
    let mut fragment = plain.clone();
    fragment[6] = 0x20;
    assert_eq!(Flow::new(None).stream(101, &fragment), None);
    for cut in 0..plain.len() {
        let _ = Flow::new(None).stream(101, &plain[..cut]);
    }
}

#[test]
fn what_ffmpeg_prints_is_read() {
    let text = "frame:0    pts:93600   pts_time:1.04\n\
                frame:1    pts:97200   pts_time:1.08\nlavfi.psnr.mse_avg=0.000000\nlavfi.psnr.psnr_avg=inf\n\
                lavfi.ssim.All=1.000000\n\
                frame:2    pts:-3600   pts_time:-0.04\nlavfi.psnr.mse_avg=65.025\nlavfi.psnr.psnr_avg=30.00\n\
                lavfi.ssim.All=0.9\n";
    let mut parser = Parser::default();
    text.lines().for_each(|l| parser.take(l));
    let found = parser.finish();
    assert_eq!(found.len(), 2, "a picture before the first one that was received has no measures");
    assert_eq!(found[&97_200], Measured { psnr: f64::INFINITY, ssim: 1.0, vmaf: None });
    assert_eq!(found[&((1 << 33) - 3_600)].ssim, 0.9);
    let pictures = super::decoded::Pictures { by_pts: found, no_vmaf: None };
    // One of two pictures has a mean error of a thousandth.
    assert!((pictures.psnr().unwrap() - 33.0103).abs() < 1e-4);
    assert_eq!((pictures.ssim(), pictures.vmaf()), (Some(0.95), None));
}

#[test]
fn psnr_is_of_the_peak_that_the_video_has() {
    for bits in [8, 9, 10, 12, 14, 16] {
        // ffmpeg prints errors in samples of the video. Two pictures, of a thousandth and of a hundredth of the peak squared.
        let peak = f64::from((1u32 << bits) - 1).powi(2);
        let text = [(0, 30.0), (3_600, 20.0)].map(|(pts, psnr)| {
            let mse = peak * 10f64.powf(-psnr / 10.0);
            format!(
                "frame:0 pts:{pts}\nlavfi.psnr.mse_avg={mse:.6}\nlavfi.psnr.psnr_avg={psnr:.6}\nlavfi.ssim.All=0.9\n"
            )
        });
        let mut parser = Parser::default();
        text.concat().lines().for_each(|l| parser.take(l));
        let pictures = super::decoded::Pictures { by_pts: parser.finish(), no_vmaf: None };
        let expected = -10.0 * (0.0055f64).log10();
        assert!((pictures.psnr().unwrap() - expected).abs() < 1e-4, "{bits} bits: {:?}", pictures.psnr());
    }
}

#[test]
fn logs_of_vmaf_are_read() {
    let log = "[libvmaf @ 0x1] something\nFrame,integer_adm2,vmaf,integer_motion,\n0,1.0,97.5,0.0,\n1,0.9,42.25,1.5,\n";
    assert_eq!(vmaf_scores(log), [97.5, 42.25]);
    assert!(vmaf_scores("nothing").is_empty() && vmaf_scores("Frame,a,\n0,1,\n").is_empty());
}
