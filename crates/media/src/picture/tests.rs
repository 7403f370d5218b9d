//! References where the answer is known without a decoder, and hostile streams. Real streams are in `tests/references.rs`.

use super::*;
use proptest::prelude::*;

/// What each access unit needs.
fn needs(codec: VideoCodec, units: &[Vec<u8>]) -> Vec<Vec<u64>> {
    let mut pictures = Pictures::new(codec);
    units.iter().map(|u| pictures.push(u).needs.units).collect()
}

#[test]
fn mpeg2_pictures_need_the_last_anchors() {
    let unit = |kind: u8| vec![0, 0, 1, 0, 0, kind << 3, 0xff, 0xff];
    // I P B B P B, in decoding order.
    let units: Vec<Vec<u8>> = [1, 2, 3, 3, 2, 3].map(unit).into();
    let expected: [&[u64]; 6] = [&[], &[0], &[0, 1], &[0, 1], &[1], &[1, 4]];
    assert_eq!(needs(VideoCodec::Mpeg2, &units), expected);
}

#[test]
fn what_cannot_be_followed_needs_the_reference_before_it() {
    // H.264 without parameter sets: IDR, P, B that nothing refers to, P.
    let slice = |header: u8, bits: u8| vec![0, 0, 1, header, bits, 0x9a, 0x9a];
    let units =
        [slice(0x65, 0b1000_1000), slice(0x41, 0b1100_0000), slice(0x01, 0b1010_0000), slice(0x41, 0b1100_0000)];
    let expected: [&[u64]; 4] = [&[], &[0], &[1], &[1]];
    assert_eq!(needs(VideoCodec::H264, &units), expected);
    // H.265 without any: IDR, TRAIL_R, TRAIL_N, TRAIL_R.
    let nal = |kind: u8| vec![0, 0, 1, kind << 1, 1, 0x80, 0xaa];
    assert_eq!(needs(VideoCodec::H265, &[nal(19), nal(1), nal(0), nal(1)]), expected);
}

#[test]
fn other_codings_say_nothing() {
    let mut pictures = Pictures::new(VideoCodec::Other);
    assert_eq!(
        pictures.push(&[0, 0, 1, 0x65, 0x88]),
        Picture { needs: Needs { known: false, units: vec![] }, ..Picture::default() }
    );
}

/// Bytes of which many mean something to one of the codings.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        0x67u8, 0x68, 0x65, 0x41, 0x01, 0x42, 0x44, 0x26, 0x02, 0x00, 0x0a, 0x12, 0x32, 0x80,
    ]);
    let byte = prop_oneof![known, Just(0u8), Just(0xff), any::<u8>()];
    let unit = (any::<bool>(), prop::collection::vec(byte, 0..60)).prop_map(|(start, mut unit)| {
        if start {
            unit.splice(0..0, [0, 0, 1]);
        }
        unit
    });
    prop::collection::vec(unit, 0..8).prop_map(|units| units.concat())
}

proptest! {
    #[test]
    fn hostile_streams_are_survived(units in prop::collection::vec(bytes(), 0..20), coding in 0usize..4) {
        let codings = [VideoCodec::H264, VideoCodec::H265, VideoCodec::Av1, VideoCodec::Mpeg2];
        for (number, needs) in needs(codings[coding], &units).iter().enumerate() {
            prop_assert!(needs.iter().all(|n| *n < number as u64), "{needs:?} of {number}");
        }
    }
}
