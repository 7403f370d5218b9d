//! Temporal units made by hand, so that each frame's class is known.

use super::*;
use proptest::prelude::*;

/// Bits, the highest of each byte first.
#[derive(Default)]
struct Writer(Vec<bool>);

impl Writer {
    fn put(&mut self, value: u32, count: u32) -> &mut Self {
        self.0.extend((0..count).rev().map(|i| value >> i & 1 == 1));
        self
    }

    /// A one, and zeros to the end of the byte.
    fn bytes(&self) -> Vec<u8> {
        let mut bits = self.0.clone();
        bits.push(true);
        bits.resize(bits.len().next_multiple_of(8), false);
        bits.chunks(8).map(|c| c.iter().fold(0, |b, bit| b << 1 | u8::from(*bit))).collect()
    }
}

fn obu(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut unit = vec![kind << 3 | 2];
    put_size(&mut unit, body.len());
    unit.extend(body);
    unit
}

pub(crate) fn delimiter() -> Vec<u8> {
    obu(2, &[])
}

/// A sequence header of the main profile without anything optional.
pub(crate) fn sequence_header() -> Vec<u8> {
    let mut w = Writer::default();
    w.put(0, 5).put(0, 2).put(0, 5).put(0, 12).put(0, 5);
    w.put(7, 4).put(7, 4).put(99, 8).put(63, 8).put(0, 1).put(0, 3);
    w.put(0, 4).put(0, 1).put(1, 1).put(1, 1);
    w.put(0, 3).put(0, 4).put(0, 2).put(0, 1).put(0, 1);
    obu(1, &w.bytes())
}

/// A frame, of which `len` bytes follow its header.
fn coded(kind: u32, shown: bool, refresh: u8, slot: u8, len: usize) -> Vec<u8> {
    let mut w = Writer::default();
    w.put(0, 1).put(kind, 2).put(u32::from(shown), 1);
    if !shown {
        w.put(1, 1);
    }
    let whole = kind == 0 && shown;
    if !whole {
        w.put(0, 1);
    }
    w.put(0, 3);
    if kind == 1 {
        w.put(7, 3);
    }
    if !whole {
        w.put(u32::from(refresh), 8);
    }
    if kind == 1 {
        (0..7).for_each(|_| {
            w.put(u32::from(slot), 3);
        });
    }
    let mut body = w.bytes();
    body.extend((0..len).map(|i| (i % 200) as u8 + 40));
    obu(6, &body)
}

/// A key frame that is shown.
pub(crate) fn key(len: usize) -> Vec<u8> {
    coded(0, true, 0, 0, len)
}

pub(crate) fn hidden_key(refresh: u8, len: usize) -> Vec<u8> {
    coded(0, false, refresh, 0, len)
}

fn intra(refresh: u8) -> Vec<u8> {
    coded(2, true, refresh, 0, 50)
}

pub(crate) fn inter(shown: bool, refresh: u8, slot: u8, len: usize) -> Vec<u8> {
    coded(1, shown, refresh, slot, len)
}

pub(crate) fn show(slot: u8) -> Vec<u8> {
    let mut w = Writer::default();
    obu(3, &w.put(1, 1).put(u32::from(slot), 3).bytes())
}

/// Start codes in front of each unit, and emulation prevention.
pub(crate) fn with_start_codes(units: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in units {
        out.extend([0, 0, 1]);
        let mut zeros = 0;
        for b in unit {
            if zeros >= 2 && *b <= 3 {
                out.push(3);
                zeros = 0;
            }
            zeros = if *b == 0 { zeros + 1 } else { 0 };
            out.push(*b);
        }
    }
    out
}

/// Classes as they show when temporal units come in pieces of `step` bytes.
fn live(units: &[Vec<Vec<u8>>], start_codes: bool, step: usize) -> Vec<Option<Class>> {
    let mut av1 = Av1::default();
    let class = |unit: &Vec<Vec<u8>>| {
        av1.start();
        let bytes = if start_codes { with_start_codes(unit) } else { unit.concat() };
        let found: Vec<Class> = bytes.chunks(step).filter_map(|c| av1.class(c)).collect();
        found.first().copied()
    };
    units.iter().map(class).collect()
}

#[test]
fn every_frame_of_a_temporal_unit_is_followed() {
    use Class::{B, I, P};
    for slot in 0..8u8 {
        let bit = 1 << slot;
        let units = [
            vec![delimiter(), sequence_header(), key(3_000)],
            // A key frame for later, and one frame more, which is shown.
            vec![delimiter(), hidden_key(bit, 5_000), inter(true, 0, 0, 300)],
            vec![delimiter(), show(slot)],
            // The key frame's slot gets another frame within the same temporal unit.
            vec![delimiter(), hidden_key(bit, 1_500), inter(false, bit, 0, 700), inter(true, 0, slot, 10)],
            vec![delimiter(), show(slot)],
            vec![delimiter(), inter(true, bit, slot, 100)],
            vec![delimiter(), intra(bit)],
            vec![delimiter(), intra(0)],
        ];
        let expected = [I, I, I, I, B, P, I, B].map(Some);
        for start_codes in [false, true] {
            for step in [1, 2, 3, 50, 184, 100_000] {
                assert_eq!(live(&units, start_codes, step), expected, "slot {slot}, {start_codes}, {step}");
            }
        }
        let mut pictures = Av1::default();
        let classes = units.iter().enumerate().map(|(i, u)| pictures.unit(i as u64, &u.concat()).class);
        assert_eq!(classes.collect::<Vec<_>>(), expected, "slot {slot}");
    }
}

#[test]
fn a_stream_that_begins_in_the_middle_needs_what_was_before_it() {
    let frame = |slot: u8| vec![delimiter(), inter(true, 1u8 << slot, slot, 100)];
    let entry = vec![delimiter(), sequence_header(), hidden_key(0b10, 100), inter(true, 0, 0, 10)];
    let units = [
        frame(0),
        // A key frame that is shown later: what is shown before it refers to what is not here.
        entry,
        vec![delimiter(), inter(true, 0b100, 3, 10)],
        vec![delimiter(), inter(true, 0b1000, 1, 10)],
        vec![delimiter(), show(1)],
        vec![delimiter(), inter(true, 0, 7, 10)],
        vec![delimiter(), sequence_header(), key(100)],
        frame(5),
    ];
    let mut av1 = Av1::default();
    let found: Vec<(bool, Vec<u64>)> = units
        .iter()
        .enumerate()
        .map(|(i, u)| {
            let needs = av1.unit(i as u64, &u.concat()).needs;
            (needs.missing, needs.units)
        })
        .collect();
    // Without a sequence header nothing is known of the first one, and what the second one refers to may be it.
    let expected: [(bool, &[u64]); 8] = [
        (true, &[]),
        (false, &[0]),
        (false, &[1]),
        (false, &[1]),
        (false, &[1]),
        (false, &[1]),
        (false, &[]),
        (false, &[6]),
    ];
    assert_eq!(found, expected.map(|(missing, units)| (missing, units.to_vec())));
    // From the temporal unit of that key frame on everything is known.
    let mut av1 = Av1::default();
    let missing: Vec<bool> =
        units[1..].iter().enumerate().map(|(i, u)| av1.unit(i as u64, &u.concat()).needs.missing).collect();
    assert_eq!(missing, [true, true, false, false, false, false, false]);
}

#[test]
fn beginnings_are_known() {
    let (d, s) = (delimiter(), sequence_header());
    let metadata = obu(5, &[4; 40]);
    for (units, expected) in [
        (vec![d.clone(), s.clone(), key(500)], Begins::Av1),
        (vec![s.clone(), key(500)], Begins::Av1),
        (vec![d.clone(), s.clone(), metadata, key(500)], Begins::Av1),
        (vec![d.clone(), inter(true, 1, 0, 500)], Begins::Unit),
        (vec![inter(true, 1, 0, 500)], Begins::Unit),
        (vec![d.clone(), s.clone(), inter(true, 1, 0, 500)], Begins::Other),
        (vec![d.clone(), d.clone()], Begins::Other),
        (vec![obu(9, &[1, 2, 3])], Begins::Other),
    ] {
        assert_eq!(begins_av1(&units.concat(), true), expected, "{units:02x?}");
        assert_eq!(begins_av1(&with_start_codes(&units), true), expected, "{units:02x?} with start codes");
    }
    // With less of it the answer is the same one, or none yet.
    let whole = [d, s.clone(), key(100)].concat();
    for cut in 0..whole.len() {
        assert!(matches!(begins_av1(&whole[..cut], false), Begins::More | Begins::Av1), "{cut}");
    }
    assert_eq!(begins_av1(&whole[..20], false), Begins::Av1, "a key frame's first bits are enough");
    // One bit more or less, and it is no sequence header.
    for at in 2..s.len() {
        let mut longer = s.clone();
        longer[1] += 1;
        longer.insert(at, 0x5a);
        assert_ne!(begins_av1(&[longer, key(10)].concat(), true), Begins::Av1, "{at}");
    }
}

#[test]
fn start_codes_and_sizes_are_one_stream() {
    let units = [delimiter(), sequence_header(), key(700), inter(false, 1, 2, 40), inter(true, 3, 2, 300)];
    let plain = units.concat();
    assert_eq!(as_in_files(&plain), plain);
    assert_eq!(as_in_files(&with_start_codes(&units)), plain);
    // Without sizes, as start codes make them needless.
    let bare = |unit: &Vec<u8>| {
        let size = unit[1..].iter().position(|b| b & 128 == 0).unwrap() + 1;
        [&[unit[0] & !2], &unit[1 + size..]].concat()
    };
    let bare: Vec<Vec<u8>> = units.iter().map(bare).collect();
    assert_eq!(as_in_files(&with_start_codes(&bare)), plain);
}

proptest! {
    #[test]
    fn any_unit_can_be_put_into_a_file(bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..300)) {
        prop_assert!(as_in_files(&bytes).len() <= 3 * bytes.len() + 3);
    }

    #[test]
    fn pieces_and_the_whole_show_one_thing(
        frames in prop::collection::vec((0u32..3, any::<bool>(), any::<u8>(), 0u8..8, 0usize..600), 1..12),
        step in 1usize..400,
    ) {
        let mut units = vec![vec![delimiter(), sequence_header(), key(20)]];
        let frame = |(kind, shown, refresh, slot, len): &(u32, bool, u8, u8, usize)| {
            coded(*kind, *shown, *refresh, *slot, *len)
        };
        units.extend(frames.chunks(2).map(|two| two.iter().map(frame).collect()));
        let at_once = live(&units, false, usize::MAX);
        prop_assert!(at_once.iter().all(Option::is_some));
        prop_assert_eq!(&live(&units, false, step), &at_once);
        prop_assert_eq!(&live(&units, true, step), &at_once);
    }
}
