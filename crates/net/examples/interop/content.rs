//! What the messages say, and how they are judged.

use std::collections::BTreeMap;

/// Bytes of stream, number, flags and length at the start of each message.
pub const HEADER: usize = 16;
/// Flag of the last message. The other bits say how often its sender has begun anew.
pub const LAST: u32 = 1;
/// Bits of the flags below that number.
pub const EPOCH: u32 = 8;

pub fn length_of(stream: u32, number: u32) -> usize {
    const LENGTHS: [usize; 11] = [16, 17, 60, 100, 333, 500, 1000, 1173, 1500, 4000, 31];
    LENGTHS[(stream * 3 + number) as usize % LENGTHS.len()]
}

pub fn message(stream: u32, number: u32, flags: u32, length: usize) -> Vec<u8> {
    let mut m = Vec::with_capacity(length);
    for field in [stream, number, flags, length as u32] {
        m.extend(field.to_be_bytes());
    }
    let mut x = (stream + 1).wrapping_mul(2_654_435_761) ^ number.wrapping_add(1).wrapping_mul(40_503) ^ length as u32;
    m.resize_with(length.max(HEADER), || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    });
    m
}

#[derive(Debug, Default)]
pub struct Seen {
    pub next: BTreeMap<u32, u32>,
    pub received: u64,
    pub doubled: u64,
    pub disordered: u64,
    pub corrupt: u64,
    pub bytes: u64,
    pub expected: Option<u32>,
    /// Of the sender: what it sent before it began anew does not count.
    pub epoch: u32,
}

impl Seen {
    /// Judges a message; `gaps`: numbers may be left out, because the sender gives messages up.
    pub fn check(&mut self, stream: u32, m: &[u8], gaps: bool) {
        let field = |i: usize| m.get(i * 4..i * 4 + 4).map_or(0, |b| u32::from_be_bytes(b.try_into().unwrap()));
        let (number, flags) = (field(1), field(2));
        if field(0) != stream || m.len() < HEADER || message(stream, number, flags, m.len()) != m {
            self.corrupt += 1;
            return;
        }
        let epoch = flags >> EPOCH;
        if epoch > self.epoch {
            *self = Seen { epoch, corrupt: self.corrupt, ..Seen::default() };
        }
        if epoch < self.epoch {
            // On its way when its sender lost its memory.
        } else if flags & LAST != 0 {
            self.expected = Some(number);
        } else {
            self.bytes += m.len() as u64;
            let next = self.next.entry(stream).or_default();
            if number + 1 == *next {
                self.doubled += 1;
            } else if number < *next || (number > *next && !gaps) {
                self.disordered += 1;
            }
            if number >= *next {
                self.received += 1;
                *next = number + 1;
            }
        }
    }
}
