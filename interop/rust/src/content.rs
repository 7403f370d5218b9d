//! What the messages say, and what a receiver makes of them.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of stream, number, generation, flags and length at the start of each message.
pub const HEADER: usize = 20;
/// Payload protocol identifier of all messages, one that all stacks carry (WebRTC binary).
pub const PPID: u32 = 53;
const UNORDERED: u32 = 1;

/// Which message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub stream: u16,
    /// Its place among those of its stream and generation.
    pub number: u32,
    /// How often the stream had been reset before.
    pub generation: u32,
    pub unordered: bool,
}

/// The message of this label: the header, and a filling that follows from it.
pub fn message(l: Label, length: usize) -> Bytes {
    let flags = if l.unordered { UNORDERED } else { 0 };
    let mut m = Vec::with_capacity(length.max(HEADER));
    for field in [u32::from(l.stream), l.number, l.generation, flags, length as u32] {
        m.extend(field.to_be_bytes());
    }
    let mut x = u32::from(l.stream).wrapping_mul(2_654_435_761) ^ l.number.wrapping_mul(40_503) ^ l.generation;
    m.resize_with(length.max(HEADER), || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    });
    m.into()
}

/// What one end has received.
#[derive(Debug, Default)]
pub struct Seen {
    numbers: BTreeMap<(u16, u32), BTreeSet<u32>>,
    last: BTreeMap<u16, (u32, u32)>,
    pub received: u64,
    pub doubled: u64,
    pub disordered: u64,
    pub corrupt: u64,
    pub bytes: u64,
}

impl Seen {
    /// Judges a message that came on `stream` with `ppid`.
    pub fn check(&mut self, stream: u16, ppid: u32, m: &[u8]) {
        let field = |i: usize| m.get(i * 4..i * 4 + 4).map_or(0, |b| u32::from_be_bytes(b.try_into().expect("four")));
        let unordered = field(3) & UNORDERED != 0;
        let label = Label { stream: field(0) as u16, number: field(1), generation: field(2), unordered };
        if label.stream != stream || ppid != PPID || m.len() < HEADER || message(label, m.len()) != m {
            self.corrupt += 1;
            return;
        }
        if !self.numbers.entry((stream, label.generation)).or_default().insert(label.number) {
            self.doubled += 1;
            return;
        }
        let at = (label.generation, label.number);
        if !unordered {
            if self.last.get(&stream).is_some_and(|last| at <= *last) {
                self.disordered += 1;
            }
            self.last.insert(stream, at);
        }
        self.received += 1;
        self.bytes += m.len() as u64;
    }

    /// Nothing twice, changed or out of order.
    pub fn assert_clean(&self, who: &str) {
        let wrong = (self.doubled, self.disordered, self.corrupt);
        assert_eq!(wrong, (0, 0, 0), "{who} got messages doubled, out of order, changed");
    }
}
