//! Reads the class of a frame from the first bytes of its pictures.
//!
//! One PES packet of the video PID is one frame. Its class is that of its first slice:
//!
//! | coding | I | P | B |
//! |---|---|---|---|
//! | H.264 (§7.4.3) | IDR pictures, and slice types I and SI that others refer to | P, SP and B that others refer to (`nal_ref_idc` > 0) | every other picture to which none refers (`nal_ref_idc` 0) |
//! | H.265 (table 7-1) | IRAP, NAL types 16..=23, and I slices that others refer to | the rest | sub-layer non-reference pictures (even types below 16: TRAIL_N, TSA_N, STSA_N, RADL_N, RASL_N) of the highest temporal layer |
//! | AV1 (§5.9.2) | key frames, and intra-only frames that refresh a slot | the rest | shown frames that refresh no slot, and frames of slots that are shown |
//! | MPEG-1, MPEG-2 | I | P | B |
//!
//! A temporal unit of AV1 has the class of its first frame: what is not shown comes first and others refer to it.
//! Class B means in every coding that losing the picture costs no other one, whatever its slices are called: a B picture
//! that others refer to is put with P, and a P picture to which none refers, as encoders with temporal layers and
//! without B pictures make them, is put with B.

use crate::Class;
use crate::picture::{Av1, H265, mpeg2_class};
use crate::ts::{PES_START_LEN, VideoCodec};
use h264_reader::annexb::AnnexBReader;
use h264_reader::nal::{Nal, RefNal, UnitType};
use h264_reader::push::NalFragmentHandler;
use h264_reader::rbsp::BitRead;

/// Elementary stream bytes that are searched for a slice before the frame counts as unclassified. Parameter
/// sets and user data in front of the first slice rarely reach 2 kB.
const SEARCH_MAX: usize = 32 * 1024;

/// Bytes of a NAL unit that are looked at; a slice type ends within the first dozen.
const NAL_PREFIX: usize = 32;

/// Bytes of a parameter set of H.265 that are looked at: all, as a rule.
const PARAMETERS_PREFIX: usize = 1024;

/// Finds the class of one frame after the other.
pub struct Classifier {
    codec: VideoCodec,
    reader: AnnexBReader<Pictures>,
    av1: Av1,
    /// First bytes of the PES packet until the length of its header is known.
    head: Vec<u8>,
    /// Header bytes still to be skipped, once known.
    skip: Option<usize>,
    searched: usize,
    searching: bool,
    /// Frames of AV1 are followed to the end of the temporal unit.
    following: bool,
}

impl Classifier {
    /// A classifier for video of this coding.
    pub fn new(codec: VideoCodec) -> Self {
        Classifier {
            codec,
            reader: AnnexBReader::for_fragment_handler(Pictures {
                codec,
                h265: H265::default(),
                nal: Vec::with_capacity(NAL_PREFIX),
                class: None,
            }),
            av1: Av1::default(),
            head: Vec::with_capacity(PES_START_LEN),
            skip: None,
            searched: 0,
            searching: false,
            following: false,
        }
    }

    /// The coding that was given.
    pub fn codec(&self) -> VideoCodec {
        self.codec
    }

    /// A new frame begins with the next payload.
    pub fn start(&mut self) {
        // What is left of the last frame ends here; parameter sets stay.
        self.reader.reset();
        let pictures = self.reader.fragment_handler_mut();
        pictures.nal.clear();
        pictures.class = None;
        self.av1.start();
        self.following = self.codec == VideoCodec::Av1;
        self.head.clear();
        self.skip = None;
        self.searched = 0;
        self.searching = self.codec != VideoCodec::Other;
    }

    /// Looks at the next payload of the video PID. Returns the class once, when it becomes known. What follows in the frame
    /// is to be handed in too: later frames may depend on it.
    pub fn push(&mut self, payload: &[u8]) -> Option<Class> {
        if !(self.searching || self.following) {
            return None;
        }
        let mut rest = payload;
        if self.skip.is_none() {
            let (head, tail) = rest.split_at(rest.len().min(PES_START_LEN - self.head.len()));
            self.head.extend_from_slice(head);
            rest = tail;
            let head = self.head.first_chunk::<PES_START_LEN>()?;
            if head[..3] != [0, 0, 1] {
                (self.searching, self.following) = (false, false);
                return None;
            }
            self.skip = Some(usize::from(head[8]));
        }
        if let Some(skip) = &mut self.skip {
            let n = rest.len().min(*skip);
            *skip -= n;
            rest = rest.get(n..).unwrap_or(&[]);
        }
        let class = if self.following {
            self.av1.class(rest).filter(|_| self.searching)
        } else {
            self.reader.push(rest);
            self.reader.fragment_handler_ref().class
        };
        self.searched = self.searched.saturating_add(rest.len());
        self.searching &= class.is_none() && self.searched < SEARCH_MAX;
        class
    }

    /// The current frame may still turn out to have a class.
    pub fn is_searching(&self) -> bool {
        self.searching
    }
}

/// Collects the first bytes of each NAL unit (or MPEG-2 start code) until one shows the class.
struct Pictures {
    codec: VideoCodec,
    h265: H265,
    nal: Vec<u8>,
    class: Option<Class>,
}

impl NalFragmentHandler for Pictures {
    fn nal_fragment(&mut self, bufs: &[&[u8]], end: bool) {
        if self.class.is_some() {
            return;
        }
        let before = self.nal.len();
        for b in bufs {
            let parameters =
                self.codec == VideoCodec::H265 && self.nal.first().or(b.first()).is_some_and(|h| h >> 2 == 16);
            let most = if parameters { PARAMETERS_PREFIX } else { NAL_PREFIX };
            let room = most.saturating_sub(self.nal.len());
            self.nal.extend_from_slice(b.get(..room).unwrap_or(b));
        }
        if self.nal.len() > before || end {
            let more = !end && self.nal.len() < NAL_PREFIX;
            self.class = match self.codec {
                VideoCodec::H264 => h264_class(&self.nal, end),
                VideoCodec::H265 => self.h265.class(&self.nal, more),
                VideoCodec::Mpeg2 => mpeg2_class(&self.nal),
                VideoCodec::Av1 | VideoCodec::Other => None,
            };
        }
        if end {
            self.nal.clear();
        }
    }
}

/// The class that a (possibly cut) H.264 NAL unit shows.
fn h264_class(nal: &[u8], complete: bool) -> Option<Class> {
    if nal.is_empty() {
        return None;
    }
    let nal = RefNal::new(nal, &[], complete);
    let header = nal.header().ok()?;
    match header.nal_unit_type() {
        UnitType::SliceLayerWithoutPartitioningIdr => return Some(Class::I),
        UnitType::SliceLayerWithoutPartitioningNonIdr | UnitType::SliceDataPartitionALayer => {}
        _ => return None,
    }
    let mut bits = nal.rbsp_bits();
    bits.read_ue("first_mb_in_slice").ok()?;
    match bits.read_ue("slice_type").ok()? {
        10.. => None,
        _ if header.nal_ref_idc() == 0 => Some(Class::B),
        2 | 4 | 7 | 9 => Some(Class::I),
        _ => Some(Class::P),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pes(header_data: usize, es: &[u8]) -> Vec<u8> {
        let mut b = vec![0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, header_data as u8];
        b.extend(vec![0xff; header_data]);
        b.extend(es);
        b
    }

    /// Class found when the PES packet arrives in pieces of `step` bytes.
    fn class(codec: VideoCodec, es: &[u8], step: usize) -> Option<Class> {
        let mut c = Classifier::new(codec);
        c.start();
        let pes = pes(10, es);
        let found: Vec<Class> = pes.chunks(step).filter_map(|p| c.push(p)).collect();
        assert!(found.len() <= 1, "found once");
        found.first().copied()
    }

    fn h264(nal: &[u8]) -> Vec<u8> {
        // Delimiter, then user data with something like a start code escaped in it, then the slice.
        let mut es = vec![0, 0, 0, 1, 0x09, 0xf0, 0, 0, 1, 0x06, 5, 3, 0, 0, 3, 1, 0x80, 0, 0, 1];
        es.extend(nal);
        es.extend([0x9a; 40]);
        es
    }

    #[test]
    fn h264_slice_types() {
        // first_mb 0 is '1'; then slice_type: 0 '1', 1 '010', 2 '011', 5 '00110', 6 '00111', 7 '0001000'.
        for (nal, expected) in [
            ([0x41, 0b1100_0000], Some(Class::P)),
            ([0x01, 0b1010_0000], Some(Class::B)),
            ([0x61, 0b1010_0000], Some(Class::P)), // B that others refer to
            ([0x41, 0b1011_0000], Some(Class::I)),
            ([0x41, 0b1001_1000], Some(Class::P)),
            ([0x01, 0b1100_0000], Some(Class::B)), // P, B and I to which none refers
            ([0x01, 0b1001_1000], Some(Class::B)),
            ([0x01, 0b1011_0000], Some(Class::B)),
            ([0x01, 0b1001_1100], Some(Class::B)),
            ([0x41, 0b1000_1000], Some(Class::I)),
            ([0x65, 0b1000_1000], Some(Class::I)),
            ([0x41, 0b1000_0101], None), // slice_type 10 or above does not exist
            ([0x0c, 0xff], None),
        ] {
            for step in [1, 2, 7, 184] {
                assert_eq!(class(VideoCodec::H264, &h264(&nal), step), expected, "{nal:x?} in {step}");
            }
        }
    }

    #[test]
    fn h265_types() {
        for (kind, expected) in [
            (0u8, Class::B),
            (1, Class::P),
            (2, Class::B),
            (8, Class::B),
            (9, Class::P),
            (16, Class::I),
            (19, Class::I),
            (21, Class::I),
        ] {
            let es = [0, 0, 0, 1, 32 << 1, 1, 0xcc, 0, 0, 1, kind << 1, 1, 0x80, 0xaa];
            assert_eq!(class(VideoCodec::H265, &es, 3), Some(expected), "NAL type {kind}");
        }
    }

    #[test]
    fn a_slice_header_of_h265_is_waited_for() {
        /// Bits as text, to whole bytes.
        fn bytes(bits: &str) -> Vec<u8> {
            let bits: Vec<u8> = bits.bytes().map(|b| b - b'0').collect();
            bits.chunks(8).map(|c| c.iter().enumerate().fold(0, |b, (i, bit)| b | bit << (7 - i))).collect()
        }
        let ue = |v: u32| format!("{:0>width$b}", v + 1, width = 2 * (v + 1).ilog2() as usize + 1);
        // TRAIL_R with I, P and B slices, TRAIL_N, and an IDR picture with one flag more.
        for (kind, slice, expected) in [
            (1u8, 2, Class::I),
            (1, 1, Class::P),
            (1, 0, Class::P),
            (0, 2, Class::B),
            (0, 1, Class::B),
            (19, 2, Class::I),
        ] {
            for id in [0, 1, 6, 30, 63] {
                for extra in [0, 7] {
                    let mut es = vec![0, 0, 0, 1, 34 << 1, 1];
                    es.extend(bytes(&format!("{}{}00{extra:03b}11", ue(id), ue(0))));
                    es.extend([0x80, 0, 0, 1, kind << 1, 1]);
                    let reserved = if kind >= 16 { "0" } else { "" };
                    let flags = "1".repeat(extra);
                    es.extend(bytes(&format!("1{reserved}{}{flags}{}1", ue(id), ue(slice))));
                    es.extend([0x9a; 40]);
                    for step in 1..=es.len() + 20 {
                        let found = class(VideoCodec::H265, &es, step);
                        assert_eq!(found, Some(expected), "type {kind}, slice {slice}, set {id}, {extra}, {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_slice_header_of_h264_is_waited_for() {
        // first_mb_in_slice 4094 is 11 zeros and 12 bits more; then the types I, P and B.
        for (bits, length, expected) in [(0b011u32, 3, Class::I), (0b1, 1, Class::P), (0b010, 3, Class::P)] {
            let code = 4095u32 << (32 - 23) | bits << (32 - 23 - length);
            let nal = [&[0x41][..], &code.to_be_bytes(), &[0xff]].concat();
            for step in 1..100 {
                assert_eq!(class(VideoCodec::H264, &h264(&nal), step), Some(expected), "{bits:b} in {step}");
            }
        }
    }

    #[test]
    fn mpeg2_picture_types() {
        for (bits, expected) in [(1u8, Class::I), (2, Class::P), (3, Class::B)] {
            let es = [0, 0, 1, 0xb8, 1, 2, 3, 4, 0, 0, 1, 0, 0, bits << 3, 0xff, 0xff];
            assert_eq!(class(VideoCodec::Mpeg2, &es, 5), Some(expected));
        }
    }

    #[test]
    fn gives_up_without_a_slice() {
        let mut c = Classifier::new(VideoCodec::H264);
        c.start();
        assert!(c.is_searching());
        assert_eq!(c.push(&pes(0, &[0x55; 100])), None);
        for _ in 0..400 {
            assert_eq!(c.push(&[0x55; 184]), None);
        }
        assert!(!c.is_searching());
        c.start();
        assert_eq!(c.push(&[1; 184]), None, "no PES start code");
        assert!(!c.is_searching());
        let mut other = Classifier::new(VideoCodec::Other);
        other.start();
        assert!(!other.is_searching());
    }

    proptest! {
        #[test]
        fn hostile_pictures_are_survived(
            chunks in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(3), any::<u8>()], 0..184), 0..30),
            codec in 0usize..5,
        ) {
            let codecs = [VideoCodec::H264, VideoCodec::H265, VideoCodec::Mpeg2, VideoCodec::Av1, VideoCodec::Other];
            let mut c = Classifier::new(codecs[codec]);
            c.start();
            c.push(&pes(5, &[0, 0, 1]));
            for chunk in &chunks {
                c.push(chunk);
            }
        }
    }
}
