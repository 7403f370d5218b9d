//! What happened to the packets of a link.

/// A number of packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Tally {
    /// This and one packet of `size` bytes.
    #[must_use]
    pub const fn with(self, size: u32) -> Self {
        Tally { packets: self.packets + 1, bytes: self.bytes.saturating_add(size as u64) }
    }
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Tally) -> Self {
        Tally { packets: self.packets + other.packets, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// What remains of this without `other`, which is part of it.
    pub(super) const fn less(self, other: Tally) -> Self {
        Tally { packets: self.packets.saturating_sub(other.packets), bytes: self.bytes.saturating_sub(other.bytes) }
    }

    pub(crate) fn add(&mut self, size: u32) {
        *self = self.with(size);
    }
}

/// Frames of one link since its start: packets of which it is decided whether they get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frames {
    /// Packets that the link has sent, each counted once however often.
    pub sent: u64,
    /// Those of them that were lost at least once, whether sent again with success or not.
    pub erroneous: u64,
    /// Transmissions beyond the first.
    pub repeated: u64,
}

/// Counters of one link since its start. Bytes are sizes as given by the sender, without overhead.
///
/// At any moment `offered + duplicated = delivered + dropped() + held`; `offered` is what follows from the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Given to the link.
    pub offered: Tally,
    /// Handed out at the other end.
    pub delivered: Tally,
    /// Second copies made.
    pub duplicated: Tally,
    /// Marked by the queue in place of a drop.
    pub marked: Tally,
    /// Left with wrong bits. Where the link does not know how to damage them, such as in a link of numbers, they only count.
    pub damaged: Tally,
    /// Transmissions of what had been lost on the wire before.
    pub repeated: Tally,
    /// Left at last after at least one of those.
    pub repaired: Tally,
    /// Dropped because the queue was full, or by its discipline.
    pub dropped_queue: Tally,
    /// Dropped by the loss model.
    pub dropped_loss: Tally,
    /// Lost each time, as often as the link sends a packet again.
    pub dropped_repeats: Tally,
    /// Dropped because the link was down or went down.
    pub dropped_down: Tally,
    /// Dropped because they were larger than the link's MTU.
    pub dropped_mtu: Tally,
}

impl LinkCounters {
    /// Dropped for any reason.
    pub const fn dropped(&self) -> Tally {
        let lost = self.dropped_loss.plus(self.dropped_repeats);
        self.dropped_queue.plus(lost).plus(self.dropped_down).plus(self.dropped_mtu)
    }

    pub(super) fn of(&mut self, reason: super::DropReason) -> &mut Tally {
        match reason {
            super::DropReason::Queue => &mut self.dropped_queue,
            super::DropReason::Loss => &mut self.dropped_loss,
            super::DropReason::Repeats => &mut self.dropped_repeats,
            super::DropReason::Down => &mut self.dropped_down,
            super::DropReason::Mtu => &mut self.dropped_mtu,
        }
    }
}
