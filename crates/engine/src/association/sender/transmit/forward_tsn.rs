//! FORWARD-TSN and I-FORWARD-TSN (RFC 3758 §3.5, RFC 8260 §2.3.1).

use crate::association::Association;
use crate::association::sender::repaired::MOST_SETTLED;
use crate::association::transmit::start_packet;
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::{ForwardTsnOut, IForwardTsnOut, RepairedOut, Skipped};

/// Chunk header and new cumulative TSN.
const FORWARD_TSN_LEN: usize = 8;

impl Association {
    /// FORWARD-TSN, when the peer should skip what was given up (RFC 3758 §3.5), and REPAIRED, when it should count what it
    /// restored as received.
    pub(in crate::association) fn transmit_forward_tsn(&mut self, now: Instant, out: &mut Transmit) -> bool {
        (self.sender.forward_due || self.sender.settled.is_due()) && self.transmit_due_forward_tsn(now, out)
    }

    #[inline(never)]
    fn transmit_due_forward_tsn(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let point = self.sender.board.advance_ack_point(now);
        let skips = self.sender.forward_due && point > self.sender.board.cumulative() && self.peer.forward_tsn;
        if self.sender.forward_due && !skips {
            self.sender.forward_due = false;
            self.sender.forward_timer = None;
        }
        if !skips && !self.sender.settled.is_due() {
            return false;
        }
        let Some(path) = self.paths.usable().iter().next() else { return false };
        start_packet(self, path, out);
        if skips {
            self.push_forward_tsn(now, path, point, out);
        }
        let room = self.paths.packet_size(path).saturating_sub(out.packet.len());
        if self.sender.settled.is_due() && (!skips || room >= RepairedOut::len_with(MOST_SETTLED)) {
            let again = now + self.views.rto(&self.paths, &self.policies, path);
            out.packet.push(&RepairedOut { settled: true, tsns: &self.sender.settled.take(now, again) });
        }
        self.bundle_sack(now, path, out, 0);
        self.sent_packet(now, path, out);
        true
    }

    /// FORWARD-TSN in front of data that leave now, where it fits: the peer then has room for them (RFC 3758 §3.5 C3).
    pub(in crate::association) fn bundle_forward_tsn(
        &mut self,
        now: Instant,
        path: PathId,
        out: &mut Transmit,
        room_needed: usize,
    ) {
        if self.sender.forward_due && self.peer.forward_tsn {
            self.bundle_due_forward_tsn(now, path, out, room_needed);
        }
    }

    #[inline(never)]
    fn bundle_due_forward_tsn(&mut self, now: Instant, path: PathId, out: &mut Transmit, room_needed: usize) {
        let room = self.paths.packet_size(path).saturating_sub(out.packet.len() + room_needed);
        // Beside a full packet of data, which is most of them; and what it lists is not counted again for each packet.
        if room < FORWARD_TSN_LEN {
            return;
        }
        let point = self.sender.board.advance_ack_point(now);
        let passes = (self.sender.board.cumulative(), point);
        if self.sender.forward_needs.is_some_and(|(of, len)| of == passes && len > room) {
            return;
        }
        let len = if self.peer.interleaving {
            FORWARD_TSN_LEN + 8 * self.collect_skipped_interleaved(point).1.len()
        } else {
            self.collect_skipped(point);
            FORWARD_TSN_LEN + 4 * self.scratch.skipped.len()
        };
        self.sender.forward_needs = Some((passes, len));
        if point > self.sender.board.cumulative() && len <= room {
            self.push_forward_tsn(now, path, point, out);
        }
    }

    fn push_forward_tsn(&mut self, now: Instant, path: PathId, point: u64, out: &mut Transmit) {
        self.sender.forward_due = false;
        if self.peer.interleaving {
            let (point, entries) = self.collect_skipped_interleaved(point);
            out.packet.push(&IForwardTsnOut { new_cum: Tsn(point as u32), entries: &entries });
        } else {
            let point = self.collect_skipped(point);
            out.packet.push(&ForwardTsnOut { new_cum: Tsn(point as u32), streams: &self.scratch.skipped });
        }
        self.sender.forward_timer = Some(now + self.views.rto(&self.paths, &self.policies, path));
        self.sender.forward_sent = Some((self.sender.board.advance_ack_point(now), now, path));
    }

    /// What I-FORWARD-TSN lists: ordered and unordered messages of a stream, each once with the largest MID (RFC 8260
    /// §2.3.1), and the point up to which they fit.
    fn collect_skipped_interleaved(&self, point: u64) -> (u64, Vec<Skipped>) {
        let room = (self.paths.mtu() as usize - 8) / 8;
        let mut out: Vec<Skipped> = Vec::new();
        let mut reached = self.sender.board.cumulative();
        for (tsn, c) in self.sender.board.iter().take_while(|(t, _)| *t <= point) {
            let (stream, unordered, mid) = (c.header.stream, c.header.flags.unordered, c.mid);
            match out.binary_search_by_key(&(stream, unordered), |s| (s.stream, s.unordered)) {
                _ if c.arrived => {}
                Ok(i) => out[i].mid = out[i].mid.max(mid),
                Err(i) if out.len() < room => out.insert(i, Skipped { stream, unordered, mid }),
                Err(_) => break,
            }
            reached = tsn;
        }
        (reached, out)
    }

    /// Streams with skipped ordered messages, each once with its largest SSN (RFC 3758 §3.5 C4). What arrived and is
    /// only passed is not named: usrsctp throws away what is named and waits for its turn. When they would not fit the
    /// packet the point is lowered.
    fn collect_skipped(&mut self, point: u64) -> u64 {
        let room = (self.paths.mtu() as usize - 8) / 4;
        self.scratch.skipped.clear();
        let mut reached = self.sender.board.cumulative();
        for (tsn, c) in self.sender.board.iter().take_while(|(t, _)| *t <= point) {
            if !c.arrived && !c.header.flags.unordered {
                let (stream, ssn) = (c.header.stream, c.header.ssn);
                let skipped = &mut self.scratch.skipped;
                match skipped.binary_search_by_key(&stream, |(s, _)| *s) {
                    Ok(i) => skipped[i].1 = skipped[i].1.max(ssn),
                    Err(i) if skipped.len() < room => skipped.insert(i, (stream, ssn)),
                    Err(_) => return reached,
                }
            }
            reached = tsn;
        }
        reached
    }
}
