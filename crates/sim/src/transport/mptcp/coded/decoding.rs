//! Solves blocks of the connection's segments, or of symbols, at the receiver.

use super::{Coded, Group, MOST_RANKS, Ranks, coefficients, from_unit, unit};
use crate::transport::mptcp::{Assembly, Unit};
use anabranch_base::Instant;
use anabranch_code::Block;
use std::collections::VecDeque;

/// Blocks that may be open beyond the first that is not complete.
const MOST_OPEN: u32 = 4_096;

/// A block of which something has come.
#[derive(Debug, Default)]
struct Open {
    first: u64,
    units: u16,
    /// Segments of it that are there.
    known: u16,
    /// Once sums have come.
    block: Option<Block>,
    /// When the first of its packets that came had left.
    sent: Option<Instant>,
}

impl Open {
    fn rank(&self) -> u16 {
        self.block.as_ref().map_or(self.known, |b| b.rank() as u16)
    }
}

/// The blocks of a connection.
#[derive(Debug)]
pub(in crate::transport::mptcp) struct Decoding {
    /// Sources of a block at most.
    size: u16,
    /// Each segment belongs to the block of its number; else blocks are as their packets say.
    by_number: bool,
    /// Number of the first of `open`.
    first: u32,
    open: VecDeque<Open>,
    spare: Vec<Block>,
    /// Sums that came, and those that said something new.
    pub came: u64,
    pub useful: u64,
}

impl Decoding {
    pub fn new(size: u16, by_number: bool) -> Self {
        Decoding {
            size: size.max(1),
            by_number,
            first: 0,
            open: VecDeque::new(),
            spare: Vec::new(),
            came: 0,
            useful: 0,
        }
    }

    /// A packet with sums came; what follows from it goes to `assembly`, and to `new`. Says whether it said anything new.
    pub fn take(&mut self, coded: &Coded, sent: Instant, assembly: &mut Assembly, new: &mut Vec<Unit>) -> bool {
        let (mut index, mut useful) = (0, 0);
        for group in coded.groups.iter().filter(|g| g.count > 0) {
            let from = index;
            index += usize::from(group.count);
            self.came += u64::from(group.count);
            if !self.prepare(group, sent, assembly) {
                continue;
            }
            let Some(open) = self.open.get_mut((group.block - self.first) as usize) else { continue };
            let Some(block) = &mut open.block else { continue };
            for (i, sum) in coded.sums.iter().enumerate().take(index).skip(from) {
                useful += u64::from(block.add(coefficients(coded.seed, i, coded.binary, group.units), sum));
            }
            Decoding::deliver(open, assembly, new);
        }
        self.useful += useful;
        self.tidy(assembly);
        useful > 0
    }

    /// Segment `unit` came by itself.
    pub fn original(&mut self, unit: &Unit, content: u16, assembly: &mut Assembly, new: &mut Vec<Unit>) {
        let size = u64::from(self.size);
        let number = unit.number.saturating_sub(1);
        let block = u32::try_from(number / size).unwrap_or(u32::MAX);
        if self.open_at(block, number / size * size + 1).is_some() {
            let Some(open) = self.open.get_mut((block - self.first) as usize) else { return };
            open.known += 1;
            open.units = open.units.max((number % size + 1) as u16);
            let place = (number % size) as usize;
            if let Some(b) = &mut open.block {
                b.add(one_at(place), &super::unit(unit.bytes, content));
                Decoding::deliver(open, assembly, new);
            }
        }
        self.tidy(assembly);
    }

    /// The place of a block, with all before it; none where it is complete or too far away.
    fn open_at(&mut self, block: u32, first: u64) -> Option<&mut Open> {
        let place = block.checked_sub(self.first).filter(|n| *n < MOST_OPEN)? as usize;
        while self.open.len() <= place {
            self.open.push_back(Open::default());
        }
        let open = self.open.get_mut(place)?;
        open.first = first;
        Some(open)
    }

    /// Sees to it that sums of this group can be added; false where they say nothing.
    fn prepare(&mut self, group: &Group, sent: Instant, assembly: &mut Assembly) -> bool {
        let (size, by_number) = (self.size, self.by_number);
        if group.units > size || usize::from(group.count) > super::MOST_SYMBOLS {
            return false;
        }
        if group.last {
            assembly.ends_with(group.first + u64::from(group.units) - 1);
        }
        let spare = self.spare.pop();
        let Some(open) = self.open_at(group.block, group.first) else {
            self.spare.extend(spare);
            return false;
        };
        open.units = open.units.max(group.units);
        open.sent = Some(open.sent.map_or(sent, |before| before.min(sent)));
        if open.block.is_some() {
            self.spare.extend(spare);
            return true;
        }
        let mut block = match spare {
            Some(mut block) => {
                block.clear();
                block
            }
            None => Block::new(usize::from(size), 4),
        };
        if by_number {
            // What has come by itself is part of the sums.
            for place in 0..usize::from(size) {
                if let Some((bytes, content)) = assembly.value(open.first + place as u64) {
                    block.add(one_at(place), &unit(bytes, content));
                }
            }
        }
        open.block = Some(block);
        true
    }

    /// Whatever is solved and was not there is there now.
    fn deliver(open: &mut Open, assembly: &mut Assembly, new: &mut Vec<Unit>) {
        let Some(block) = &open.block else { return };
        for place in 0..usize::from(open.units) {
            let number = open.first + place as u64;
            if number < assembly.next() {
                continue;
            }
            let Some(Ok(symbol)) = block.solved(place).map(<[u8; 4]>::try_from) else { continue };
            let (bytes, content) = from_unit(symbol);
            if assembly.take(number, bytes, content, false) {
                open.known += 1;
                new.push(Unit { number, bytes, sent: open.sent.unwrap_or(Instant::ZERO) });
            }
        }
    }

    /// Blocks that are in order are forgotten.
    fn tidy(&mut self, assembly: &Assembly) {
        let size = u64::from(self.size);
        while let Some(open) = self.open.front() {
            let units = if self.by_number { size } else { u64::from(open.units) };
            if units == 0 || open.first == 0 || open.first + units > assembly.next() {
                break;
            }
            if let Some(block) = self.open.pop_front().and_then(|o| o.block) {
                self.spare.push(block);
            }
            self.first += 1;
        }
    }

    /// What an acknowledgement says of blocks.
    pub fn ranks(&self) -> Ranks {
        let mut of = [0; MOST_RANKS];
        of.iter_mut().zip(&self.open).for_each(|(to, open)| *to = open.rank());
        Ranks { first: self.first, of }
    }

    /// Sums that wait in blocks, those of segments that are there left out.
    pub fn waiting(&self) -> u64 {
        self.open.iter().map(|o| u64::from(o.rank().saturating_sub(o.known))).sum()
    }
}

/// One at this place.
fn one_at(place: usize) -> impl Iterator<Item = u8> {
    core::iter::repeat_n(0, place).chain(core::iter::once(1))
}
