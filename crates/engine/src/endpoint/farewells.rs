//! How associations ended, for packets of peers that do not know it yet. The last chunk leaves once, may be lost, and may
//! be overtaken by the answer to a packet that came while it was on its way, by a faster path most often. That answer would
//! be an ABORT without a reason (RFC 9260 §8.4): the peer would never learn why an association was aborted, and would take
//! one that ends with a SHUTDOWN COMPLETE for aborted.
//!
//! So for a few seconds packets with the tag of an aborted association are answered as it would have answered: with its
//! reason, under the peer's tag, and never with more bytes than came. What comes for one that was shut down gets no
//! answer, but that a repeated SHUTDOWN ACK gets its SHUTDOWN COMPLETE (§8.4 rule 5). Only for so many associations.

use crate::association::Goodbye;
use anabranch_base::{Duration, Instant};
use anabranch_wire::CommonHeader;
use bytes::Bytes;
use std::collections::VecDeque;

/// A few round trips of any network, and several repetitions of a peer that was answered nothing.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Associations of each kind that are kept; the oldest go first.
const MOST: usize = 256;
/// Bytes of an ABORT without its causes.
const BARE: usize = 16;

struct Farewell {
    /// The tag of packets that come.
    tag: u32,
    /// The header of what leaves.
    back: CommonHeader,
    /// Of the ABORT; none of one that was shut down.
    causes: Bytes,
    until: Instant,
    /// Bytes that came and were not answered with as many.
    unanswered: usize,
}

/// What a late packet is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// An ABORT with these causes.
    Abort(CommonHeader, Bytes),
    /// Nothing: the peer will hear of the end in another way, or the reason is longer than all that came until now.
    Nothing,
}

/// In the order in which they end; each kind by itself, so that many that end well do not push out a reason.
#[derive(Default)]
pub(super) struct Farewells {
    aborted: Kept,
    shut_down: Kept,
}

#[derive(Default)]
struct Kept(VecDeque<Farewell>);

impl Farewells {
    /// An association with this tag ended at `now`, and this was its last chunk.
    pub fn note(&mut self, now: Instant, tag: u32, back: CommonHeader, last: Goodbye<'_>) {
        let (kept, causes) = match last {
            Goodbye::Abort(causes) if causes.is_empty() => return,
            Goodbye::Abort(causes) => (&mut self.aborted, causes.clone()),
            Goodbye::ShutdownComplete => (&mut self.shut_down, Bytes::new()),
        };
        kept.note(now, Farewell { tag, back, causes, until: now + KEPT_FOR, unanswered: 0 });
    }

    /// The answer to a packet of `len` bytes; none where no association is known.
    pub fn answer(&mut self, now: Instant, header: &CommonHeader, len: usize) -> Option<Answer> {
        if self.shut_down.find(now, header).is_some() {
            return Some(Answer::Nothing);
        }
        let f = self.aborted.find(now, header)?;
        let needed = BARE + f.causes.len().next_multiple_of(4);
        f.unanswered += len;
        Some(match f.unanswered.checked_sub(needed) {
            Some(left) => {
                f.unanswered = left.min(needed);
                Answer::Abort(f.back, f.causes.clone())
            }
            None => Answer::Nothing,
        })
    }
}

impl Kept {
    fn note(&mut self, now: Instant, f: Farewell) {
        self.expire(now);
        if self.0.iter().any(|known| known.tag == f.tag) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(f);
    }

    /// Whose packet this is, by tag and ports.
    fn find(&mut self, now: Instant, header: &CommonHeader) -> Option<&mut Farewell> {
        self.expire(now);
        let ports = (header.dst_port, header.src_port);
        self.0.iter_mut().find(|f| f.tag == header.vtag && (f.back.src_port, f.back.dst_port) == ports)
    }

    fn expire(&mut self, now: Instant) {
        while self.0.front().is_some_and(|f| f.until <= now) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn back(tag: u32) -> CommonHeader {
        CommonHeader { src_port: 1, dst_port: 2, vtag: tag + 1_000 }
    }
    fn to_us(tag: u32) -> CommonHeader {
        CommonHeader { src_port: 2, dst_port: 1, vtag: tag }
    }

    #[test]
    fn never_more_leaves_than_came() {
        for (reason, packet) in (4..300).step_by(7).flat_map(|r| [28, 32, 100, 1_200].map(|p| (r, p))) {
            let mut f = Farewells::default();
            f.note(at(0), 7, back(7), Goodbye::Abort(&vec![0; reason].into()));
            let (mut came, mut left, mut answers) = (0, 0, 0);
            for n in 1..100 {
                came += packet;
                match f.answer(at(n), &to_us(7), packet) {
                    Some(Answer::Abort(h, causes)) => {
                        assert_eq!((h, causes.len()), (back(7), reason));
                        left += 16 + reason.next_multiple_of(4);
                        answers += 1;
                    }
                    Some(Answer::Nothing) => {}
                    None => panic!("forgotten"),
                }
                assert!(left <= came, "{left} of {came} bytes: a reason of {reason} to packets of {packet}");
            }
            assert!(answers > 7, "{answers} answers with {reason} bytes to packets of {packet}");
        }
    }

    #[test]
    fn only_whose_tag_and_ports_fit_only_for_a_while_and_only_the_newest() {
        let (mut f, causes) = (Farewells::default(), Bytes::from_static(b"causes"));
        for tag in 1..=MOST as u32 + 5 {
            f.note(at(tag.into()), tag, back(tag), Goodbye::Abort(&causes));
            f.note(at(tag.into()), tag + 10_000, back(tag + 10_000), Goodbye::ShutdownComplete);
        }
        f.note(at(300), 5_000, back(5_000), Goodbye::Abort(&Bytes::new()));
        f.note(at(300), 200, back(200), Goodbye::Abort(&causes));
        assert_eq!((f.aborted.0.len(), f.shut_down.0.len()), (MOST, MOST));
        let shut_down = f.answer(at(301), &to_us(10_007), 100);
        assert_eq!((shut_down, f.answer(at(301), &to_us(10_005), 100)), (Some(Answer::Nothing), None));
        let mut known = |ms, h: &CommonHeader| f.answer(at(ms), h, 100).is_some();
        assert!(!known(301, &to_us(5)), "pushed out");
        assert!(!known(301, &to_us(5_000)), "it had no reason");
        assert!(known(301, &to_us(6)));
        assert!(!known(301, &CommonHeader { src_port: 3, ..to_us(6) }));
        assert!(!known(301, &CommonHeader { dst_port: 3, ..to_us(6) }));
        assert!(known(10_005, &to_us(6)) && !known(10_006, &to_us(6)), "10 s");
    }
}
