//! What must hold after every call, whatever the peer and the network did. For tests and fuzzing.

use crate::association::{Association, Phase};
use crate::path::PathTimer;
use crate::tx::scoreboard::ChunkState;
use std::collections::{BTreeMap, BTreeSet};

impl Association {
    /// Checks that the books agree with each other: flights with the scoreboard, sums with what they sum up, timers
    /// with what they watch. O(outstanding chunks).
    ///
    /// # Errors
    /// A description of what does not hold.
    #[doc(hidden)]
    pub fn check_invariants(&self) -> Result<(), String> {
        self.sender.board.check()?;
        self.check_flights()?;
        self.check_bounds()?;
        if self.phase() == Phase::Closed {
            return Ok(());
        }
        for p in self.paths.iter() {
            if p.flight.bytes() > 0 && !p.timers.runs(PathTimer::T3) {
                return Err(format!("{:?}: {} bytes in flight and no T3", p.id(), p.flight.bytes()));
            }
            if p.congestion.cwnd() < self.paths.mtu() {
                return Err(format!("{:?}: a window of {} bytes, below one packet", p.id(), p.congestion.cwnd()));
            }
        }
        if self.sender.board.reneged() > 0
            && self.paths.iter().all(|p| !p.timers.runs(PathTimer::T3))
            && !self.sender.board.has_marked()
        {
            return Err("withdrawn acknowledgements and no T3 anywhere".to_owned());
        }
        Ok(())
    }

    /// What a peer can make us hold has an end.
    fn check_bounds(&self) -> Result<(), String> {
        let held = self.receiver.held_bytes();
        if held > 2 * self.config.limits.receive_buffer + usize::from(u16::MAX) {
            return Err(format!(
                "{held} bytes received are held, the buffer has {}",
                self.config.limits.receive_buffer
            ));
        }
        let queues =
            [self.control.len(), self.sender.copies_due.len() / 100, self.sender.gaps.len() / 100, self.paths.len()];
        if queues.iter().any(|n| *n > 400) {
            return Err(format!("too much is queued: {queues:?}"));
        }
        Ok(())
    }

    fn check_flights(&self) -> Result<(), String> {
        let mut bytes = vec![0u64; self.paths.len()];
        let mut serials: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (tsn, c) in self.sender.board.iter() {
            for l in c.copies.iter() {
                let (Some(sum), Some(p)) = (bytes.get_mut(l.path.index()), self.paths.get(l.path.index())) else {
                    return Err(format!("TSN {tsn}: a live copy on {:?}, which does not exist", l.path));
                };
                *sum += c.len();
                serials.entry(l.path.index()).or_default().insert(l.tx_seq);
                if p.flight.packet(l.tx_seq).is_none_or(|k| k.live == 0) {
                    return Err(format!("TSN {tsn}: its packet {} of {:?} is not in flight", l.tx_seq, l.path));
                }
            }
            if c.state != ChunkState::Outstanding && c.copies.len() > 0 {
                return Err(format!("TSN {tsn}: {:?} with live copies", c.state));
            }
        }
        for (p, sum) in self.paths.iter().zip(&bytes) {
            let packets = serials.get(&p.id().index()).map_or(0, BTreeSet::len);
            if p.flight.bytes() != *sum || p.flight.packets() as usize != packets {
                let (b, n) = (p.flight.bytes(), p.flight.packets());
                return Err(format!(
                    "{:?}: {b} bytes in {n} packets in flight, {sum} in {packets} on the board",
                    p.id()
                ));
            }
        }
        Ok(())
    }
}
