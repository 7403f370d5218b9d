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
    let expected: [&[u64]; 4] = [&[], &[0], &[0, 1], &[1]];
    assert_eq!(needs(VideoCodec::H264, &units), expected);
    // H.265 without any: IDR, TRAIL_R, TRAIL_N, TRAIL_R.
    let nal = |kind: u8| vec![0, 0, 1, kind << 1, 1, 0x80, 0xaa];
    assert_eq!(needs(VideoCodec::H265, &[nal(19), nal(1), nal(0), nal(1)]), expected);
}

/// Which access units need one that is not here; '!' also where the references are not known.
fn missing(codec: VideoCodec, units: &[Vec<u8>]) -> String {
    let mut pictures = Pictures::new(codec);
    let mark = |u: &Vec<u8>| match pictures.push(u).needs {
        Needs { missing: true, known: true, .. } => 'x',
        Needs { missing: true, known: false, .. } => '!',
        Needs { known: true, .. } => '.',
        _ => '?',
    };
    units.iter().map(mark).collect()
}

#[test]
fn mpeg2_from_the_middle_on() {
    let unit = |k: char| {
        let group = |flags: u8| vec![0, 0, 1, 0xb8, 0, 8, 0, flags];
        let (mut unit, kind) = match k {
            'C' => (group(0x40), 1),
            'O' => (group(0), 1),
            'X' => (group(0x20), 1),
            'I' => (Vec::new(), 1),
            'P' => (Vec::new(), 2),
            _ => (Vec::new(), 3),
        };
        unit.extend([0, 0, 1, 0, 0, kind << 3, 0xff, 0xff]);
        unit
    };
    // In decoding order; I pictures of closed groups, of open ones, of groups cut open, and without a group's header.
    for (units, expected) in [
        ("CBBPBB", "......"),
        ("OBBPBB", ".xx..."),
        ("IBBPBB", ".xx..."),
        ("XBBPBB", ".xx..."),
        ("PBBPBBOBBPBB", "xxx........."),
        ("BBPBBPBBOBBPBB", "xxxxx........."),
        ("BBCBBPBB", "xx......"),
        ("CPBBXBBPBB", ".....xx..."),
    ] {
        let all: Vec<Vec<u8>> = units.chars().map(unit).collect();
        assert_eq!(missing(VideoCodec::Mpeg2, &all), expected, "{units}");
    }
    // The B pictures of a closed group need the I picture alone, those of an open one also what was before it.
    let all: Vec<Vec<u8>> = "CPCBOB".chars().map(unit).collect();
    let expected: [&[u64]; 6] = [&[], &[0], &[], &[2], &[], &[2, 4]];
    assert_eq!(needs(VideoCodec::Mpeg2, &all), expected);
}

#[test]
fn without_parameter_sets_a_stream_begins_with_a_picture_that_needs_none() {
    // H.264: IDR, I, P, B as a reference, B and P without; H.265: IDR, CRA, TRAIL_R, RASL_R, TRAIL_N.
    let h264 = |k: char| match k {
        'D' => vec![0, 0, 1, 0x65, 0b1000_1000, 0x9a],
        'I' => vec![0, 0, 1, 0x41, 0b1011_0000, 0x9a],
        'P' => vec![0, 0, 1, 0x41, 0b1100_0000, 0x9a],
        'R' => vec![0, 0, 1, 0x41, 0b1010_0000, 0x9a],
        'B' => vec![0, 0, 1, 0x01, 0b1010_0000, 0x9a],
        _ => vec![0, 0, 1, 0x01, 0b1100_0000, 0x9a],
    };
    let h265 = |k: char| {
        let kind = match k {
            'D' => 19u8,
            'C' => 21,
            'P' => 1,
            'L' => 9,
            _ => 0,
        };
        vec![0, 0, 1, kind << 1, 1, 0x80, 0xaa]
    };
    for (units, expected) in [
        ("DPBB", ".???"),
        ("PBBPDPB", "!!!?.??"),
        // The B pictures that follow an I picture need the reference before it, too.
        ("IBBPBB", ".!!???"),
        ("IRBPBB", ".!????"),
        ("pppI", "!!!."),
        ("DpP", ".??"),
    ] {
        let all: Vec<Vec<u8>> = units.chars().map(h264).collect();
        assert_eq!(missing(VideoCodec::H264, &all), expected, "H.264 {units}");
    }
    for (units, expected) in [("DPBB", ".???"), ("PBCLLP", "!!.???"), ("CLLPB", ".!!??"), ("BBD", "!!.")] {
        let all: Vec<Vec<u8>> = units.chars().map(h265).collect();
        assert_eq!(missing(VideoCodec::H265, &all), expected, "H.265 {units}");
    }
}

#[test]
fn class_b_is_what_no_other_picture_needs_in_every_coding() {
    let class = |codec, unit: &[u8]| Pictures::new(codec).push(unit).class;
    for (header, slice, expected) in [
        (0x41u8, 0b1100_0000u8, Class::P),
        (0x01, 0b1100_0000, Class::B), // P
        (0x41, 0b1010_0000, Class::P),
        (0x01, 0b1010_0000, Class::B), // B
        (0x41, 0b1011_0000, Class::I),
        (0x01, 0b1011_0000, Class::B), // I
        (0x65, 0b1000_1000, Class::I),
    ] {
        let unit = [0, 0, 1, header, slice, 0x9a, 0x9a];
        assert_eq!(class(VideoCodec::H264, &unit), Some(expected), "{header:x} {slice:b}");
        let mut live = crate::classify::Classifier::new(VideoCodec::H264);
        live.start();
        let pes = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0][..], &unit].concat();
        assert_eq!(live.push(&pes), Some(expected), "{header:x} {slice:b}");
    }
    // TRAIL_N and TRAIL_R of H.265, whatever the slices are.
    for (kind, expected) in [(0u8, Class::B), (1, Class::P), (2, Class::B), (19, Class::I)] {
        assert_eq!(class(VideoCodec::H265, &[0, 0, 1, kind << 1, 1, 0x80, 0xaa]), Some(expected), "{kind}");
    }
}

#[test]
fn other_codings_say_nothing() {
    let mut pictures = Pictures::new(VideoCodec::Other);
    assert_eq!(
        pictures.push(&[0, 0, 1, 0x65, 0x88]),
        Picture { needs: Needs { known: false, missing: false, units: vec![] }, ..Picture::default() }
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
