//! An upper bound on the number of frames that come whole and in time.
//!
//! Let all frames have the same latency L: frame i is made at r(i) and is of use until D(i) = r(i) + L, so frames that
//! are made later are due later. A link puts bytes on the wire at a rate that changes with time, and what leaves at time
//! s arrives at s + d(s) or later: d(s) is the delay without jitter's additions, and losses are not counted, so that a
//! link here does at least what it does there.
//!
//! Where a link keeps the order of packets and its delay falls, what is on the way then arrives by the time at which what
//! leaves then does. Let x(s) be the first such time at or after s, so that what leaves at s arrives at the smaller
//! of s + d(s) and x(s) or later; from here on s + d(s) means that.
//!
//! **Time of a byte.** Say that a byte leaves at the later of the moment at which its bit is on the wire and the moment
//! at which the span begins (between two changes of the link) in which its packet's last bit leaves. Then it arrives no
//! sooner than its time plus the delay of that span. Bytes that this moves lie in one packet at each change, and are
//! counted as that many bytes at the moment of the change, wherever the move can make a difference: where the
//! delay falls, or where what leaves begins to be of use.
//!
//! **Necessary.** Let S be the frames of which every byte came in time, and i <= j any two frames. The bytes of S's
//! frames from i to j all left at times s in [r(i), D(j)] with s + d(s) <= D(j). Let w(f) be the least number of bytes
//! that frame f takes on the wire (headers of its chunks, and its part of those of packets as full as can be). Hence
//!
//! > sum of w(f) over S between i and j  <=  C(i, j), the bytes that all links put on the wire at such times.
//!
//! **Separable.** A byte of frame f that leaves at s is of use only when r(f) <= s and s + d(s) <= r(f) + L, so only when
//! d(s) <= L. Take the rate as zero elsewhere. Let H(D) be the bytes that leave at any time with s + d(s) <= D, and
//! G(r) those that leave before r. A byte that leaves before r(i) and counts at all arrives by
//! s + L < r(i) + L <= D(j), so it is in H(D(j)). Therefore C(i, j) = H(D(j)) - G(r(i)).
//!
//! **One number.** For S among the first j frames let F(S) be the largest of G(r(i)) + sum of w(f) over S from i on, over
//! all i in S. The inequalities for S hold if and only if each time a frame j is added to the earlier ones of S
//! the new F, which is max(F, G(r(j))) + w(j), is at most H(D(j)): all inequalities that end in j say this together, and H
//! rises with j. So what the past means for the future is F alone, and the smaller the better, as max(F, G) + w rises
//! with F.
//!
//! **Optimal.** Let f(c) be the least F of any admissible choice of c frames among those looked at. By the last
//! paragraph a choice with the least F can be exchanged for any other one of the same number without making a later step
//! impossible, so f over c follows from f before by taking the frame or not, and the largest c that remains is the most
//! frames for which the inequalities hold: at least as many as any sender can have. (To drop the largest frame whenever
//! one does not fit would not do: one that was sent before a pause frees nothing behind it.)

use super::line::{Line, Span};
use super::{Film, Frame};
use anabranch_base::Duration;
use std::collections::VecDeque;

/// How many of the frames, made in this order, could at most be whole in time.
///
/// Work grows with the number of frames times how many of them are in doubt together.
pub fn possible(film: &Film, lines: &[Line]) -> usize {
    let latency = film.latency.as_nanos();
    let pieces: Vec<Piece> = lines.iter().flat_map(|l| pieces(l, film)).collect();
    let overhead = lines.iter().map(|l| l.overhead).min().unwrap_or(0);
    // The least F for `kept` frames, and for each one more.
    let (mut kept, mut least) = (0, VecDeque::from([0_u128]));
    for frame in &film.frames {
        let made = frame.at.as_nanos();
        let before: u128 = pieces.iter().map(|p| p.before(made)).sum();
        let by: u128 = pieces.iter().map(|p| p.arrived(made.saturating_add(latency))).sum();
        // Of choices that leave nothing to be done, the one with the most frames is the best for all that comes.
        while least.get(1).is_some_and(|f| *f <= before) {
            least.pop_front();
            kept += 1;
        }
        let work = least_work(film, frame, overhead);
        let with = |f: u128| Some(f.max(before) + work).filter(|f| *f <= by);
        if let Some(f) = least.back().copied().and_then(with) {
            least.push_back(f);
        }
        for c in (1..least.len()).rev() {
            let taken = least.get(c - 1).copied().and_then(with);
            if let (Some(f), Some(slot)) = (taken, least.get_mut(c)) {
                *slot = f.min(*slot);
            }
        }
    }
    kept + least.len() - 1
}

/// Bytes times 10^9 that a frame takes on the wire at least.
pub(super) fn least_work(film: &Film, frame: &Frame, overhead: u32) -> u128 {
    let c = &film.carriage;
    let chunks: u64 = c.chunks(frame).sum();
    let (headers, room) = (u128::from(c.packet), u128::from(c.limit.saturating_sub(c.packet).max(1)));
    u128::from(chunks) * 1_000_000_000 * (room + headers + u128::from(overhead)) / room
}

/// Bytes that leave at a rate between two times and take this long, or are all there at the same time if that is sooner;
/// or that all leave at one time.
pub(super) struct Piece {
    pub from: u64,
    pub until: u64,
    pub delay: u64,
    /// By then all have arrived.
    pub by: u64,
    /// Bytes per second.
    pub rate: u64,
    /// Bytes times 10^9 at once.
    pub lump: u128,
}

impl Piece {
    /// Bytes times 10^9 that leave before `r`.
    fn before(&self, r: u64) -> u128 {
        let lump = if self.from < r { self.lump } else { 0 };
        lump + u128::from(self.rate) * u128::from(self.until.min(r).saturating_sub(self.from))
    }

    /// Those that have arrived by `d`.
    fn arrived(&self, d: u64) -> u128 {
        let last = if d >= self.by { Some(u64::MAX) } else { d.checked_sub(self.delay) };
        let Some(last) = last else { return 0 };
        let lump = if self.from <= last { self.lump } else { 0 };
        lump + u128::from(self.rate) * u128::from(self.until.min(last).saturating_sub(self.from))
    }
}

pub(super) fn pieces(line: &Line, film: &Film) -> Vec<Piece> {
    let delay = |s: &Span| {
        let own = if line.skips { Duration::ZERO } else { s.jitter.shortest(s.delay) };
        (own + line.beside).as_nanos()
    };
    let most = film.latency.as_nanos();
    let packet = (u128::from(film.carriage.limit) + u128::from(line.overhead)) * 1_000_000_000;
    let mut before: Option<(&Span, bool)> = None;
    let mut all = Vec::new();
    for (i, s) in line.spans.iter().enumerate() {
        let later = line.spans.get(i + 1..).unwrap_or_default().iter();
        let by = later.map(|l| l.from.saturating_add(delay(l))).min();
        let by = by.filter(|_| !line.reorders && !line.skips).unwrap_or(u64::MAX);
        // What leaves earlier than that comes too late, whenever it is due.
        let since = if delay(s) <= most { s.from } else { s.from.max(by.saturating_sub(most)) };
        let of_use = s.up && !s.deaf && since < s.until;
        // A packet that began to leave in the span before, which was up (a link that goes down drops it), or in this
        // one when that was of no use yet.
        let moved = since > s.from || before.is_some_and(|(b, used)| b.up && (!used || delay(b) > delay(s)));
        if of_use {
            let lump = if moved { packet } else { 0 };
            all.push(Piece { from: since, until: s.until, delay: delay(s), by, rate: s.rate, lump });
        }
        before = Some((s, of_use));
    }
    all
}
