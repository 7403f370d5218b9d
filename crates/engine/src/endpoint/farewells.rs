//! Why associations were aborted, for peers that did not hear it: the ABORT leaves once, may be lost, and may be overtaken
//! by the answer to a packet that came while it waited to leave. That answer would be an ABORT without a reason (RFC 9260
//! §8.4), and the peer would never learn why.
//!
//! So for a few seconds packets with the tag of such an association are answered as it would have answered: with its
//! reason, under the peer's tag. Only for so many associations, and never with more bytes than came.

use anabranch_base::{Duration, Instant};
use anabranch_wire::CommonHeader;
use bytes::Bytes;
use std::collections::VecDeque;

/// A few round trips of any network, and several repetitions of a peer that was answered nothing.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Associations whose reasons are kept; the oldest go first.
const MOST: usize = 256;
/// Bytes of an ABORT without its causes.
const BARE: usize = 16;

struct Farewell {
    /// The tag of packets that come.
    tag: u32,
    /// The header of what leaves.
    back: CommonHeader,
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
    /// Nothing yet: the reason is longer than all that came.
    Nothing,
}

/// In the order in which they end.
#[derive(Default)]
pub(super) struct Farewells(VecDeque<Farewell>);

impl Farewells {
    /// An association with this tag was aborted at `now`, and its ABORT has these causes.
    pub fn note(&mut self, now: Instant, tag: u32, back: CommonHeader, causes: &Bytes) {
        self.expire(now);
        if causes.is_empty() || self.0.iter().any(|f| f.tag == tag) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Farewell { tag, back, causes: causes.clone(), until: now + KEPT_FOR, unanswered: 0 });
    }

    /// The answer to a packet of `len` bytes; none where no reason is known.
    pub fn answer(&mut self, now: Instant, header: &CommonHeader, len: usize) -> Option<Answer> {
        self.expire(now);
        let is_it = |f: &&mut Farewell| {
            f.tag == header.vtag && (f.back.src_port, f.back.dst_port) == (header.dst_port, header.src_port)
        };
        let f = self.0.iter_mut().find(is_it)?;
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
            f.note(at(0), 7, back(7), &vec![0; reason].into());
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
        let mut f = Farewells::default();
        for tag in 1..=MOST as u32 + 5 {
            f.note(at(tag.into()), tag, back(tag), &Bytes::from_static(b"causes"));
        }
        f.note(at(300), 5_000, back(5_000), &Bytes::new());
        f.note(at(300), 200, back(200), &Bytes::from_static(b"causes"));
        assert_eq!(f.0.len(), MOST);
        let mut known = |ms, h: &CommonHeader| f.answer(at(ms), h, 100).is_some();
        assert!(!known(301, &to_us(5)), "pushed out");
        assert!(!known(301, &to_us(5_000)), "it had no reason");
        assert!(known(301, &to_us(6)));
        assert!(!known(301, &CommonHeader { src_port: 3, ..to_us(6) }));
        assert!(!known(301, &CommonHeader { dst_port: 3, ..to_us(6) }));
        assert!(known(10_005, &to_us(6)) && !known(10_006, &to_us(6)), "10 s");
    }
}
