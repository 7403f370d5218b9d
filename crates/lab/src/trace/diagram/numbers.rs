//! What a flow counts: TSNs of chunks, or segments of TCP.

use crate::trace::line::Line;

/// The numbers of a flow, as the drawing shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numbers {
    /// TSNs, counted from this one.
    Tsns(u32),
    /// Segments of TCP, whole ones, counted from the SYN.
    Segments,
}

impl Numbers {
    /// Those of `flow`; none when it sent nothing new.
    pub fn of(lines: &[Line], flow: &str) -> Option<Numbers> {
        lines.iter().find_map(|l| match l {
            Line::Data { flow: f, tsn, segment, .. } if f == flow => {
                segment.map(|_| Numbers::Segments).or(tsn.first().copied().map(Numbers::Tsns))
            }
            _ => None,
        })
    }

    fn tsn(self, tsn: u32) -> f64 {
        let Numbers::Tsns(first) = self else { return f64::NAN };
        f64::from(tsn.wrapping_sub(first) as i32)
    }

    /// What was sent or lost with this line.
    pub fn carried(self, line: &Line) -> Vec<f64> {
        match line {
            Line::Data { tsn, segment, .. } | Line::Lost { tsn, segment, .. } => {
                tsn.iter().map(|n| self.tsn(*n)).chain(segment.map(|n| n as f64)).collect()
            }
            Line::Retransmission { tsn, segment, .. } => {
                tsn.map(|n| self.tsn(n)).into_iter().chain(segment.map(|n| n as f64)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The last of those that arrived without a gap, as this line tells the sender.
    pub fn acknowledged(self, line: &Line) -> Option<f64> {
        match line {
            Line::Sack { cumulative, .. } => Some(self.tsn(*cumulative)),
            Line::Ack { next, .. } => Some(*next as f64 - 1.0),
            _ => None,
        }
    }

    /// A name of one of them for the head of a column.
    pub const fn one(self) -> &'static str {
        match self {
            Numbers::Tsns(_) => "TSN",
            Numbers::Segments => "segment",
        }
    }

    /// What is sent, in the plural.
    pub const fn pieces(self) -> &'static str {
        match self {
            Numbers::Tsns(_) => "DATA chunks",
            Numbers::Segments => "segments",
        }
    }

    /// Title and vertical axis of the time sequence.
    pub const fn titles(self) -> (&'static str, &'static str) {
        match self {
            Numbers::Tsns(_) => ("TSNs over time", "TSN from the first"),
            Numbers::Segments => ("Segments over time", "segment from the SYN"),
        }
    }

    /// What is called in flight.
    pub const fn flight(self) -> &'static str {
        match self {
            Numbers::Tsns(_) => "Bytes in flight",
            Numbers::Segments => "Bytes sent and not acknowledged in order",
        }
    }

    /// From where they count, as a sentence.
    pub fn origin(self) -> String {
        match self {
            Numbers::Tsns(first) => format!("TSNs count from the first one, {first}."),
            Numbers::Segments => {
                "Numbers are of whole segments as the simulator's TCP counts them, not of bytes; the SYN is 0."
                    .to_owned()
            }
        }
    }

    /// How to read the time sequence.
    pub const fn legend(self) -> &'static str {
        match self {
            Numbers::Tsns(_) => {
                "Each mark is a DATA chunk on the path that carried it; an outline is a retransmission. Losses are those \
                 that really happened, at the time and place of the network, not what the sender made of them. The line \
                 is the cumulative TSN as the sender learns it."
            }
            Numbers::Segments => {
                "Each mark is a segment; an outline is a retransmission. Losses are those that really happened, at the \
                 time and place of the network, not what the sender made of them. The line is the last segment that \
                 arrived without a gap before it, as the sender learns it. Windows are segments times their size."
            }
        }
    }
}
