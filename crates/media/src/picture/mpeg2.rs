//! MPEG-1 and MPEG-2: the picture type says what a picture needs (ISO/IEC 13818-2 §6.3.9), and the header of a group
//! whether its first B pictures need what was before it (§6.3.8).

use super::Picture;
use super::anchors::{Anchor, Anchors};
use crate::Class;

/// What the header of a group says of the B pictures that follow its I picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    /// They refer to what was before the group.
    Open,
    /// They do not.
    Closed,
    /// They do, but an edit has put something else there.
    Broken,
}

/// Follows the pictures of a stream.
#[derive(Debug, Default)]
pub(super) struct Mpeg2 {
    anchors: Anchors,
    /// A group begins with the next I picture.
    group: Option<Group>,
}

impl Mpeg2 {
    /// Takes in one access unit, as what lies between start codes.
    pub(super) fn unit<'a>(&mut self, number: u64, units: impl Iterator<Item = &'a [u8]>) -> Picture {
        let mut picture = Picture::default();
        for unit in units {
            self.group = group(unit).or(self.group);
            picture.class = class(unit);
            if picture.class.is_some() {
                break;
            }
        }
        match picture.class {
            Some(Class::I) => {
                self.anchors.put(number);
                match self.group.take() {
                    Some(Group::Closed) => self.anchors.older = Anchor::Nothing,
                    Some(Group::Broken) => self.anchors.older = Anchor::Missing,
                    Some(Group::Open) | None => {}
                }
            }
            Some(Class::P) => {
                self.anchors.need(false, number, &mut picture.needs);
                self.anchors.put(number);
            }
            Some(Class::B) => self.anchors.need(true, number, &mut picture.needs),
            None => {}
        }
        picture.finish()
    }
}

/// What a group header says (ISO/IEC 13818-2 §6.2.2.6). Zeros at its end are not here.
fn group(unit: &[u8]) -> Option<Group> {
    let [0xb8, behind @ ..] = unit else { return None };
    let flags = behind.get(3).copied().unwrap_or(0);
    Some(match (flags & 0x40 != 0, flags & 0x20 != 0) {
        (true, _) => Group::Closed,
        (false, true) => Group::Broken,
        (false, false) => Group::Open,
    })
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
