//! Marked packets that came, until the sender says that it knows (draft-stewart-tsvwg-sctpecn; RFC 3168).
//!
//! The receiver repeats an ECNE in front of each SACK until a CWR shows that the sender knows.

use super::Acknowledger;
use anabranch_base::Tsn;
use anabranch_wire::Ecne;

/// ECNE with its chunk header, bytes.
const ECNE_LEN: usize = 12;

/// Marks that the sender has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    lowest: Tsn,
    highest: Tsn,
    packets: u32,
}

impl Acknowledger {
    /// The packet that comes next was marked on its way, or was not.
    pub fn set_packet_marked(&mut self, marked: bool) {
        self.packet_marked = marked;
    }

    /// Was the packet at hand marked? Once.
    pub fn take_packet_marked(&mut self) -> bool {
        core::mem::take(&mut self.packet_marked)
    }

    /// A packet with DATA, the lowest of them `tsn`, was marked on its way.
    pub fn note_mark(&mut self, tsn: Tsn) {
        let m = self.marks.get_or_insert(Marks { lowest: tsn, highest: tsn, packets: 0 });
        m.packets = m.packets.saturating_add(1);
        if tsn.at_or_before(m.lowest) {
            m.lowest = tsn;
        }
        if m.highest.at_or_before(tsn) {
            m.highest = tsn;
        }
    }

    /// CWR: the sender reacted to all up to this TSN.
    pub fn on_cwr(&mut self, tsn: Tsn) {
        if let Some(m) = &mut self.marks {
            if m.highest.at_or_before(tsn) {
                self.marks = None;
            } else if m.lowest.at_or_before(tsn) {
                (m.lowest, m.packets) = (m.highest, 1);
            }
        }
    }

    /// What goes in front of a SACK.
    pub(super) fn echo(&self) -> Option<Ecne> {
        self.marks.map(|m| Ecne { tsn: m.lowest, marked: m.packets })
    }

    /// Bytes of [`Acknowledger::echo`].
    pub(super) fn echo_len(&self) -> usize {
        if self.marks.is_some() { ECNE_LEN } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_some_marks_leaves_the_newest() {
        let mut a = Acknowledger::default();
        for tsn in [10, 12, 11] {
            a.note_mark(Tsn(tsn));
        }
        assert_eq!(a.echo(), Some(Ecne { tsn: Tsn(10), marked: 3 }));
        a.on_cwr(Tsn(9));
        assert_eq!(a.echo(), Some(Ecne { tsn: Tsn(10), marked: 3 }));
        a.on_cwr(Tsn(11));
        assert_eq!(a.echo(), Some(Ecne { tsn: Tsn(12), marked: 1 }));
        a.on_cwr(Tsn(12));
        assert_eq!((a.echo(), a.echo_len()), (None, 0));
    }
}
