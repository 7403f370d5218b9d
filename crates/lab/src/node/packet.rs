//! What a simulated link carries for SCTP.
#![allow(clippy::vec_box, reason = "boxes go back on a link as they are")]

use anabranch_wire::PacketSlices;
use bytes::Bytes;
use core::cell::RefCell;

/// Most packets kept for the next ones.
const KEPT: usize = 4_096;

thread_local! {
    /// Packets that arrived or were lost, each in its box: a network is one thread's at a time.
    static POOL: RefCell<Vec<Box<PacketSlices>>> = const { RefCell::new(Vec::new()) };
}

/// An SCTP packet on its way: headers in a buffer of its own, payloads shared with the sender's messages.
///
/// Nothing of it is copied, and its buffers are used again once it is gone.
#[derive(Debug)]
pub struct SctpPacket {
    slices: Option<Box<PacketSlices>>,
    /// Among those of its sender.
    number: u32,
}

impl SctpPacket {
    /// Takes what `packet` holds, which it leaves empty and with buffers for the next one. It is the `number`-th of its
    /// sender.
    pub(super) fn take(packet: &mut PacketSlices, number: u32) -> Self {
        let mut own = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
        core::mem::swap(own.as_mut(), packet);
        SctpPacket { slices: Some(own), number }
    }

    pub(super) fn slices_mut(&mut self) -> Option<&mut PacketSlices> {
        self.slices.as_deref_mut()
    }

    /// Which one it is of those of its sender.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The packet's bytes, from the common header on, with its checksum: for captures.
    pub fn bytes(&self) -> Bytes {
        let mut out = Vec::new();
        self.slices.iter().for_each(|p| p.write_to(&mut out));
        Bytes::from(out)
    }
}

impl Clone for SctpPacket {
    fn clone(&self) -> Self {
        SctpPacket { slices: self.slices.clone(), number: self.number }
    }
}

impl PartialEq for SctpPacket {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Drop for SctpPacket {
    fn drop(&mut self) {
        let Some(mut own) = self.slices.take() else { return };
        own.clear();
        // While a thread ends its pool may be gone.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < KEPT {
                pool.push(own);
            }
        });
    }
}
