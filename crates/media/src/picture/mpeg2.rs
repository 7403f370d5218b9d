//! MPEG-1 and MPEG-2: the picture type says what a picture needs (ISO/IEC 13818-2 §6.3.9).

use super::Picture;
use crate::Class;

/// The last two pictures that others may refer to, the older one first.
#[derive(Debug, Default)]
pub(super) struct Mpeg2 {
    anchors: [Option<u64>; 2],
}

impl Mpeg2 {
    /// Takes in one access unit, as what lies between start codes.
    pub(super) fn unit<'a>(&mut self, number: u64, mut units: impl Iterator<Item = &'a [u8]>) -> Picture {
        let mut picture = Picture { class: units.find_map(class), ..Picture::default() };
        let [older, newer] = self.anchors;
        let needs = match picture.class {
            Some(Class::P) => [newer, None],
            Some(Class::B) => [older, newer],
            Some(Class::I) | None => [None, None],
        };
        needs.into_iter().flatten().for_each(|n| picture.needs.add(n, number));
        if matches!(picture.class, Some(Class::I | Class::P)) {
            self.anchors = [newer, Some(number)];
        }
        picture.finish()
    }
}

/// The class that a picture header shows (ISO/IEC 13818-2 §6.2.3).
pub(crate) fn class(unit: &[u8]) -> Option<Class> {
    match unit {
        [0, _, b, ..] => match b >> 3 & 7 {
            1 | 4 => Some(Class::I),
            2 => Some(Class::P),
            3 => Some(Class::B),
            _ => None,
        },
        _ => None,
    }
}
