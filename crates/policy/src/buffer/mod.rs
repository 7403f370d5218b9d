//! How the paths share the send buffer and the peer's receive buffer.

use crate::asks::every_policy;
use crate::registry::Policy;

/// What is asked about: one more packet of new data on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Active paths, this one among them.
    pub paths: u64,
    /// Payload outstanding on the path, bytes.
    pub on_path: u64,
    /// Payload outstanding on all paths, bytes.
    pub outstanding: u64,
    /// Payload of the packet at most, bytes.
    pub packet: u64,
    /// Our send buffer, bytes.
    pub send_buffer: u64,
    /// What the peer's receive buffer still takes, bytes.
    pub peer_rwnd: u64,
}

impl Share {
    /// A packet of 1,000 bytes on one of `paths`, on none of which anything is outstanding, between buffers of 20,000
    /// bytes, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_policy::buffer::Share;
    ///
    /// assert!(Share::of(2).fits_sender());
    /// let full = Share { on_path: 9_500, outstanding: 9_500, ..Share::of(2) };
    /// assert!(!full.fits_sender() && full.fits_receiver());
    /// ```
    pub const fn of(paths: u64) -> Self {
        Share { paths, on_path: 0, outstanding: 0, packet: 1_000, send_buffer: 20_000, peer_rwnd: 20_000 }
    }
    /// Is the packet within the path's part of our send buffer?
    pub fn fits_sender(&self) -> bool {
        self.on_path + self.packet <= self.send_buffer / self.paths.max(1)
    }
    /// Is it within the path's part of the peer's buffer?
    pub fn fits_receiver(&self) -> bool {
        self.on_path + self.packet <= (self.peer_rwnd + self.outstanding) / self.paths.max(1)
    }
}

/// Keeps one path from filling the buffers that the others need. A path with nothing outstanding may always send.
pub trait Buffer: Send {
    every_policy!(SHARE);
    /// May the packet leave?
    fn allows(&self, s: &Share) -> bool;
}

pub mod both_split;
pub mod receiver_split;
pub mod sender_split;
pub mod shared;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Buffer>] =
    &[shared::POLICY, sender_split::POLICY, receiver_split::POLICY, both_split::POLICY];

#[cfg(test)]
pub(crate) fn share(on_path: u64, outstanding: u64, peer_rwnd: u64) -> Share {
    Share { on_path, outstanding, peer_rwnd, ..Share::of(2) }
}
