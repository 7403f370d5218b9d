//! The last pictures that others may refer to, for codings and headers that do not name what they refer to.

use super::Needs;

/// What a picture may refer to that does not say so itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Anchor {
    /// A picture in front of the stream's beginning.
    #[default]
    Missing,
    /// None: whatever was there before is not referred to any more.
    Nothing,
    /// The picture of this access unit.
    Unit(u64),
}

/// The last two pictures that others may refer to.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    pub(super) older: Anchor,
    pub(super) newer: Anchor,
}

impl Anchors {
    /// A picture that others may refer to.
    pub(super) fn put(&mut self, number: u64) {
        *self = Anchors { older: self.newer, newer: Anchor::Unit(number) };
    }

    /// A picture behind which none refers to what was before it.
    pub(super) fn put_first(&mut self, number: u64) {
        *self = Anchors { older: Anchor::Nothing, newer: Anchor::Unit(number) };
    }

    /// Picture `of` needs the newer one, or both.
    pub(super) fn need(&self, both: bool, of: u64, needs: &mut Needs) {
        for anchor in [Some(self.newer), both.then_some(self.older)].into_iter().flatten() {
            match anchor {
                Anchor::Unit(unit) => needs.add(unit, of),
                Anchor::Missing => needs.missing = true,
                Anchor::Nothing => {}
            }
        }
    }
}
