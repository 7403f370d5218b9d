//! Any bytes as video of every coding: what reads references and classes from headers never panics, and says of no picture
//! that it needs one that is not before it.
//!
//! The input is a coding, then access units: two bytes of length each, the bytes.
#![no_main]

use anabranch_base::Instant;
use anabranch_media::classify::Classifier;
use anabranch_media::picture::{Pictures, av1_as_in_files};
use anabranch_media::quality::{Comparison, Recording};
use anabranch_media::ts::{Elementary, VideoCodec};
use anabranch_media::{Packetiser, PacketiserConfig};
use libfuzzer_sys::fuzz_target;

const CODINGS: [VideoCodec; 5] =
    [VideoCodec::H264, VideoCodec::H265, VideoCodec::Av1, VideoCodec::Mpeg2, VideoCodec::Other];

fuzz_target!(|input: &[u8]| {
    let Some((coding, mut rest)) = input.split_first() else { return };
    let coding = CODINGS[usize::from(*coding) % CODINGS.len()];
    let (mut pictures, mut classifier, mut number) = (Pictures::new(coding), Classifier::new(coding), 0);
    while let [high, low, behind @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (unit, behind) = behind.split_at(behind.len().min(len));
        rest = behind;
        let picture = pictures.push(unit);
        assert!(picture.needs.units.iter().all(|n| *n < number), "{picture:?} is number {number}");
        number += 1;
        assert!(av1_as_in_files(unit).len() <= 3 * unit.len() + 3);
        classifier.start();
        classifier.push(&[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0]);
        for c in unit.chunks(184) {
            classifier.push(c);
        }
    }
    // All of it as a stream: tables, packets, and a comparison with itself.
    let mut recording = Recording::new();
    recording.push(None, input);
    recording.finish();
    if let Ok(found) = Comparison::of(&recording, &recording) {
        assert_eq!((found.packets_missing, found.strange), (0, 0));
    }
    let mut video = Elementary::new();
    video.push(input);
    video.finish();
    let mut packetiser = Packetiser::new(PacketiserConfig::default());
    packetiser.push(Instant::from_millis(1), input);
    packetiser.finish(Instant::from_millis(2));
});
