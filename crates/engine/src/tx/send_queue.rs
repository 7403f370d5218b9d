//! Messages not yet cut into chunks, per stream.

mod discard;

use super::by_stream::ByStream;
use super::turns::{Standing, Streams, Turns};
use crate::message::SendOptions;
use anabranch_base::{Instant, Mid, Ssn, StreamId};
use anabranch_policy::stream_scheduler::StreamScheduler;
use anabranch_policy::view::StreamView;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug)]
struct Queued {
    payload: Bytes,
    options: SendOptions,
    queued_at: Instant,
    message: u64,
}

#[derive(Debug, Default)]
struct OutStream {
    next_ssn: Ssn,
    /// Next MID where I-DATA is used, of ordered and of unordered messages.
    next_mid: [Mid; 2],
    queue: VecDeque<Queued>,
    /// Its priority or weight, where the user gave one.
    value: Option<u16>,
    standing: Standing,
}

impl OutStream {
    /// What a scheduler sees of its first message.
    fn head(&self) -> Option<StreamView> {
        self.queue.front().map(|q| self.view_of(q))
    }

    fn view_of(&self, q: &Queued) -> StreamView {
        StreamView {
            id: StreamId(q.options.stream.0),
            value: self.value,
            class: q.options.class,
            head_len: q.payload.len() as u64,
            head_deadline: q.options.deadline,
            head_queued: q.queued_at,
            head_order: q.message,
        }
    }

    /// A reset (RFC 6525 §5.1.2, RFC 8260 §2.3.2).
    fn begin_again(&mut self) {
        self.next_ssn = Ssn(0);
        self.next_mid = [Mid(0); 2];
    }
}

/// The message that is being cut: DATA fragments of one message carry consecutive TSNs (RFC 9260 §6.9), so no
/// other message may begin before it ends.
#[derive(Debug)]
struct Cutting {
    message: Queued,
    ssn: Ssn,
    mid: Mid,
    fsn: u32,
    offset: usize,
}

impl Cutting {
    /// The next piece of at most `max` bytes.
    fn cut(&mut self, max: usize) -> Fragment {
        let total = self.message.payload.len();
        let len = (total - self.offset).min(max);
        let fragment = Fragment {
            payload: self.message.payload.slice(self.offset..self.offset + len),
            options: self.message.options,
            ssn: self.ssn,
            mid: self.mid,
            fsn: self.fsn,
            message: self.message.message,
            queued_at: self.message.queued_at,
            begin: self.offset == 0,
            end: self.offset + len == total,
        };
        self.offset += len;
        self.fsn += 1;
        fragment
    }
    fn left(&self) -> u64 {
        (self.message.payload.len() - self.offset) as u64
    }
}

/// The streams as their turns see them: the first message of each, or what is left of one that has begun.
struct Shown<'a> {
    streams: &'a mut ByStream<OutStream>,
    begun: Option<&'a BTreeMap<u16, Cutting>>,
}

impl Streams for Shown<'_> {
    fn standing(&mut self, stream: u16) -> Option<&mut Standing> {
        self.streams.get_mut(stream).map(|s| &mut s.standing)
    }
    fn view(&self, stream: u16) -> Option<StreamView> {
        let s = self.streams.get(stream)?;
        match self.begun.and_then(|all| all.get(&stream)) {
            Some(c) => Some(StreamView { head_len: c.left(), ..s.view_of(&c.message) }),
            None => s.head(),
        }
    }
}

/// No new sequence numbers for these streams (RFC 6525 §5.1.2 A1), in order. None named is all.
#[derive(Debug)]
struct Paused {
    streams: Vec<StreamId>,
    held: VecDeque<Queued>,
}

impl Paused {
    fn covers(&self, stream: u16) -> bool {
        self.streams.is_empty() || self.streams.binary_search(&StreamId(stream)).is_ok()
    }
}

/// A piece that is ready for its TSN.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub payload: Bytes,
    pub options: SendOptions,
    pub ssn: Ssn,
    pub mid: Mid,
    pub fsn: u32,
    pub message: u64,
    pub queued_at: Instant,
    pub begin: bool,
    pub end: bool,
}

#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    streams: ByStream<OutStream>,
    turns: Turns,
    cutting: Option<Cutting>,
    /// With I-DATA: the message of each stream that is being cut, for as long the first of its stream. None with DATA.
    #[expect(clippy::box_collection, reason = "a pointer is all that it takes where nothing is interleaved")]
    interleaved: Option<Box<BTreeMap<u16, Cutting>>>,
    bytes: u64,
    messages: u64,
    waiting: u64,
    /// Streams that wait for the peer to agree to a reset, and what was handed over for them meanwhile.
    paused: Option<Box<Paused>>,
    /// Messages that may be dropped for room, the least important last: priority, message, stream.
    droppable: BTreeSet<(u32, u64, u16)>,
}

impl SendQueue {
    /// Payload bytes that have no TSN yet.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Messages of which no piece has a TSN yet.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }
    pub fn is_empty(&self) -> bool {
        self.cutting.is_none() && self.turns.is_empty() && self.paused.as_ref().is_none_or(|p| p.held.is_empty())
    }

    /// From now on messages for these streams wait; those before go on.
    pub fn pause(&mut self, streams: &[StreamId]) {
        if self.paused.is_none() {
            let mut streams = streams.to_vec();
            streams.sort_unstable();
            self.paused = Some(Box::new(Paused { streams, held: VecDeque::new() }));
        }
    }

    /// Has everything that was handed over for the paused streams got its TSN?
    pub fn is_drained(&self) -> bool {
        let Some(p) = &self.paused else { return true };
        let cut = self.cutting.as_ref().is_some_and(|c| p.covers(c.message.options.stream.0));
        let waits = |s: &StreamId| self.streams.get(s.0).is_some_and(|s| s.standing.waits());
        let all = p.streams.is_empty();
        !cut && if all { self.turns.is_empty() } else { !p.streams.iter().any(waits) }
    }

    /// The paused streams go on, with number 0 when they were `reset`.
    pub fn resume(&mut self, reset: bool) {
        let Some(paused) = self.paused.take() else { return };
        if reset {
            self.streams.iter_mut().filter(|(s, _)| paused.covers(*s)).for_each(|(_, s)| s.begin_again());
        }
        paused.held.into_iter().for_each(|q| self.enter(q));
    }

    /// All streams begin with number 0.
    pub fn reset_all(&mut self) {
        self.streams.iter_mut().for_each(|(_, s)| s.begin_again());
    }

    /// Has a message begun and not ended?
    pub fn is_cutting(&self) -> bool {
        self.cutting.is_some() || self.interleaved.as_ref().is_some_and(|c| !c.is_empty())
    }

    /// Messages of different streams may be cut at the same time (RFC 8260 §2.2.2). To be called before the first.
    pub fn interleave(&mut self, on: bool) {
        self.interleaved = on.then(Box::default);
    }

    /// Is the first message of a stream one that has begun?
    fn has_begun(&self, stream: u16) -> bool {
        self.interleaved.as_ref().is_some_and(|c| c.contains_key(&stream))
    }

    /// Appends a message; answers its number.
    #[inline]
    pub fn push(&mut self, now: Instant, options: SendOptions, payload: Bytes) -> u64 {
        let message = self.messages;
        self.messages += 1;
        self.waiting += 1;
        self.bytes += payload.len() as u64;
        let queued = Queued { payload, options, queued_at: now, message };
        if self.paused.is_some() {
            self.push_beside_paused(queued);
        } else {
            self.enter(queued);
        }
        message
    }

    #[inline(never)]
    fn push_beside_paused(&mut self, queued: Queued) {
        match self.paused.as_mut().filter(|p| p.covers(queued.options.stream.0)) {
            Some(p) => p.held.push_back(queued),
            None => self.enter(queued),
        }
    }

    /// Puts a message that is counted already behind the others of its stream.
    // Inlined, it is written in its place, see [`super::sorted::Sorted::push`].
    #[inline(always)]
    fn enter(&mut self, queued: Queued) {
        let options = &queued.options;
        if let Some(p) = options.discard_priority {
            self.droppable.insert((p, queued.message, options.stream.0));
        }
        let stream = options.stream.0;
        let begun = self.interleaved.as_ref().is_some_and(|c| c.contains_key(&stream));
        let s = self.streams.of(stream);
        s.queue.push_back(queued);
        if s.queue.len() == 1 && !begun {
            self.turns.show(stream, &mut s.standing, true);
        }
    }

    /// What has no TSN yet, by message: its number, its options, and its payload or the rest of it.
    pub fn for_each_left(&self, mut f: impl FnMut(u64, &SendOptions, Bytes)) {
        let cut = self.cutting.iter().chain(self.interleaved.iter().flat_map(|all| all.values()));
        cut.for_each(|c| f(c.message.message, &c.message.options, c.message.payload.slice(c.offset..)));
        let held = self.paused.iter().flat_map(|p| &p.held);
        let waiting = self.streams.iter().flat_map(|s| &s.queue).chain(held);
        waiting.for_each(|q| f(q.message, &q.options, q.payload.clone()));
    }

    /// Does anything wait on `stream` that has no TSN yet?
    pub fn holds(&self, stream: StreamId) -> bool {
        let cut = self.cutting.as_ref().is_some_and(|c| c.message.options.stream == stream);
        let held = self.paused.as_ref().is_some_and(|p| p.held.iter().any(|q| q.options.stream == stream));
        cut || held || self.streams.get(stream.0).is_some_and(|s| s.standing.waits())
    }

    /// Gives a stream its priority or weight for schedulers that look at it.
    pub fn set_value(&mut self, stream: StreamId, value: Option<u16>) {
        let s = self.streams.of(stream.0);
        s.value = value;
        if s.standing.waits() {
            self.turns.show(stream.0, &mut s.standing, true);
        }
    }

    /// Another scheduler decides from now on.
    pub fn rearrange(&mut self) {
        self.turns.rearrange(self.streams.iter_mut().map(|(i, s)| (i, &mut s.standing)));
    }

    /// Is this message of `stream` half cut?
    pub fn is_cutting_message(&self, stream: u16, message: u64) -> bool {
        let of_stream = self.interleaved.as_ref().and_then(|c| c.get(&stream));
        self.cutting.as_ref().or(of_stream).is_some_and(|c| c.message.message == message)
    }

    /// Drops the rest of a message that is being cut: its sent fragments were given up.
    pub fn drop_rest_of(&mut self, stream: u16, message: u64) {
        if !self.is_cutting_message(stream, message) {
            return;
        }
        if let Some(c) = self.cutting.take() {
            self.bytes -= c.left();
        } else if let Some(c) = self.interleaved.as_mut().and_then(|all| all.remove(&stream)) {
            self.bytes -= c.left();
            self.show_head(stream);
        }
    }

    /// Hands the next piece of at most `max` bytes to `take`; answers whether there was one. `expired` is asked once per
    /// message before its first piece; a message it gives up never gets a TSN nor an SSN (RFC 3758 §4.1 TR3) and is
    /// counted in the answer.
    // A piece is large: returned, it would be copied on every step of its way to the scoreboard.
    #[inline]
    pub fn next(
        &mut self,
        max: usize,
        scheduler: &mut dyn StreamScheduler,
        mut expired: impl FnMut(&StreamView, u64, &SendOptions, &Bytes) -> bool,
        mut take: impl FnMut(Fragment),
    ) -> (bool, u64) {
        if self.interleaved.is_some() {
            return self.next_interleaved(max, scheduler, &mut expired, &mut take);
        }
        let mut given_up = 0;
        while self.cutting.is_none() {
            let mut shown = Shown { streams: &mut self.streams, begun: None };
            let Some(stream) = self.turns.next(&mut shown, scheduler) else { return (false, given_up) };
            let Some(s) = self.streams.get_mut(stream) else { break };
            let head = s.queue.pop_front();
            let given_up_now = head.as_ref().is_some_and(|h| expired(&s.view_of(h), h.message, &h.options, &h.payload));
            self.turns.show(stream, &mut s.standing, !s.queue.is_empty());
            let Some(head) = head else { continue };
            self.waiting -= 1;
            if let Some(p) = head.options.discard_priority {
                self.droppable.remove(&(p, head.message, head.options.stream.0));
            }
            if given_up_now {
                self.bytes -= head.payload.len() as u64;
                given_up += 1;
                continue;
            }
            let ssn = s.next_ssn;
            if !head.options.unordered {
                s.next_ssn = ssn.next();
            }
            if head.payload.len() <= max {
                take(self.whole(head, ssn, scheduler));
                return (true, given_up);
            }
            self.cutting = Some(Cutting { message: head, ssn, mid: Mid(0), fsn: 0, offset: 0 });
        }
        (self.cut(max, scheduler, &mut take), given_up)
    }

    /// A message that needs no cutting.
    #[inline]
    fn whole(&mut self, m: Queued, ssn: Ssn, scheduler: &mut dyn StreamScheduler) -> Fragment {
        let len = m.payload.len() as u64;
        self.bytes -= len;
        scheduler.taken(m.options.stream, len);
        let Queued { payload, options, queued_at, message } = m;
        Fragment { payload, options, ssn, mid: Mid(0), fsn: 0, message, queued_at, begin: true, end: true }
    }

    #[inline(never)]
    fn cut(&mut self, max: usize, scheduler: &mut dyn StreamScheduler, take: &mut dyn FnMut(Fragment)) -> bool {
        let Some(cutting) = self.cutting.as_mut() else { return false };
        let fragment = cutting.cut(max);
        self.bytes -= fragment.payload.len() as u64;
        scheduler.taken(fragment.options.stream, fragment.payload.len() as u64);
        if fragment.end {
            self.cutting = None;
        }
        take(fragment);
        true
    }

    /// The next piece where I-DATA is used: the scheduler is asked for each piece, whatever is half cut.
    #[inline(never)]
    fn next_interleaved(
        &mut self,
        max: usize,
        scheduler: &mut dyn StreamScheduler,
        expired: &mut dyn FnMut(&StreamView, u64, &SendOptions, &Bytes) -> bool,
        take: &mut dyn FnMut(Fragment),
    ) -> (bool, u64) {
        let mut given_up = 0;
        loop {
            let mut shown = Shown { streams: &mut self.streams, begun: self.interleaved.as_deref() };
            let Some(stream) = self.turns.next(&mut shown, scheduler) else { break };
            let Some(view) = shown.view(stream) else { break };
            if !self.has_begun(stream) {
                let Some(head) = self.take_head(stream) else { break };
                if expired(&view, head.message, &head.options, &head.payload) {
                    self.bytes -= head.payload.len() as u64;
                    given_up += 1;
                    self.show_head(stream);
                    continue;
                }
                self.begin(stream, head);
            }
            let Some(c) = self.interleaved.as_mut().and_then(|all| all.get_mut(&stream)) else { break };
            let fragment = c.cut(max);
            self.bytes -= fragment.payload.len() as u64;
            scheduler.taken(view.id, fragment.payload.len() as u64);
            if fragment.end {
                self.interleaved.as_mut().and_then(|all| all.remove(&stream));
            }
            self.show_head(stream);
            take(fragment);
            return (true, given_up);
        }
        (false, given_up)
    }

    /// Gives a message its MID (RFC 8260 §2.1) and begins to cut it.
    fn begin(&mut self, stream: u16, message: Queued) {
        let Some(s) = self.streams.get_mut(stream) else { return };
        let next = &mut s.next_mid[usize::from(message.options.unordered)];
        let mid = *next;
        *next = mid.next();
        let cutting = Cutting { message, ssn: Ssn(mid.0 as u16), mid, fsn: 0, offset: 0 };
        if let Some(all) = self.interleaved.as_mut() {
            all.insert(stream, cutting);
        }
    }

    fn take_head(&mut self, stream: u16) -> Option<Queued> {
        let head = self.streams.get_mut(stream)?.queue.pop_front()?;
        self.waiting -= 1;
        if let Some(p) = head.options.discard_priority {
            self.droppable.remove(&(p, head.message, stream));
        }
        Some(head)
    }

    /// What `stream` has to send is something else than before, or less of it.
    fn show_head(&mut self, stream: u16) {
        let begun = self.has_begun(stream);
        if let Some(s) = self.streams.get_mut(stream) {
            self.turns.show(stream, &mut s.standing, begun || !s.queue.is_empty());
        }
    }

    fn queued(&self, stream: u16, message: u64) -> Option<(usize, &Queued)> {
        let q = &self.streams.get(stream)?.queue;
        let i = q.binary_search_by_key(&message, |m| m.message).ok()?;
        q.get(i).map(|m| (i, m))
    }
}

#[cfg(test)]
#[path = "send_queue_tests.rs"]
mod tests;
