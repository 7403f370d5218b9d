//! From datagrams to the transport stream: the header taken off, in order, with even times.

use super::packet::{Look, look};
use super::reorder::{Reorder, ReorderStats};
use super::steady::Steadier;
use anabranch_base::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;

/// Whole packets of the transport stream, as one datagram held them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// When they came, without the network's jitter.
    pub at: Instant,
    /// The packets.
    pub bytes: Bytes,
}

/// Counters of the stream and of what was no part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtpStats {
    /// Order, loss and repetition.
    pub order: ReorderStats,
    /// Datagrams that were no RTP with whole packets of a transport stream; RTCP does not count.
    pub ignored: u64,
}

/// Receives a transport stream in RTP. Feed it with [`push`](RtpReceiver::push), call
/// [`on_timeout`](RtpReceiver::on_timeout) at [`deadline`](RtpReceiver::deadline), and after each of both take pieces
/// until there is none.
pub struct RtpReceiver {
    /// Until the first RTP packet all else passes as it is.
    passes: bool,
    reorder: Reorder,
    steadier: Steadier,
    passing: VecDeque<Piece>,
    ignored: u64,
}

impl RtpReceiver {
    /// Waits for missing packets, and takes off jitter, up to `window`.
    pub fn new(window: Duration) -> Self {
        RtpReceiver {
            passes: false,
            reorder: Reorder::new(window),
            steadier: Steadier::new(window),
            passing: VecDeque::new(),
            ignored: 0,
        }
    }

    /// One that passes all as it is unless there is RTP.
    pub fn if_there_is_rtp(window: Duration) -> Self {
        RtpReceiver { passes: true, ..RtpReceiver::new(window) }
    }

    /// Takes in a datagram that arrived at `now`; instants never fall.
    pub fn push(&mut self, now: Instant, datagram: Bytes) {
        match look(&datagram) {
            Look::Stream { ssrc, sequence, payload, .. } => {
                self.passes = false;
                self.reorder.push(now, ssrc, sequence, datagram.slice(payload));
            }
            Look::Control if !self.passes => {}
            // Its number counts, or it would be waited for.
            Look::Other { ssrc, sequence, .. } if self.reorder.expects(ssrc, sequence) => {
                self.ignored += 1;
                self.reorder.push(now, ssrc, sequence, Bytes::new());
            }
            _ if self.passes => self.passing.push_back(Piece { at: now, bytes: datagram }),
            _ => self.ignored += 1,
        }
        self.reorder.on_timeout(now);
    }

    /// When [`on_timeout`](RtpReceiver::on_timeout) is due, if a packet is missing.
    pub fn deadline(&self) -> Option<Instant> {
        self.reorder.deadline()
    }

    /// Gives up what has been waited for long enough.
    pub fn on_timeout(&mut self, now: Instant) {
        self.reorder.on_timeout(now);
    }

    /// No more will come: what is here goes out without what is missing.
    pub fn finish(&mut self) {
        self.reorder.finish();
    }

    /// The next piece of the stream.
    pub fn poll(&mut self) -> Option<Piece> {
        if let Some(piece) = self.passing.pop_front() {
            return Some(piece);
        }
        loop {
            let (at, bytes) = self.reorder.poll()?;
            if !bytes.is_empty() {
                return Some(Piece { at: self.steadier.stamp(at, &bytes), bytes });
            }
        }
    }

    /// Counters of the stream and of what was no part of it.
    pub fn stats(&self) -> RtpStats {
        RtpStats { order: self.reorder.stats(), ignored: self.ignored }
    }
}
