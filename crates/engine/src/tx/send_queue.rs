//! Messages not yet cut into chunks, per stream.

use super::by_stream::ByStream;
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
    /// The same of I-DATA, ordered and unordered messages apart.
    next_mid: [Mid; 2],
    queue: VecDeque<Queued>,
    /// Its priority or weight, where the user gave one.
    value: Option<u16>,
}

impl OutStream {
    /// What a scheduler sees of its first message.
    fn head(&self) -> Option<StreamView> {
        let q = self.queue.front()?;
        Some(StreamView {
            id: StreamId(q.options.stream.0),
            value: self.value,
            class: q.options.class,
            head_len: q.payload.len() as u64,
            head_deadline: q.options.deadline,
            head_queued: q.queued_at,
            head_order: q.message,
        })
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

/// No new sequence numbers for these streams (RFC 6525 §5.1.2 A1). None named is all.
#[derive(Debug)]
struct Paused {
    streams: Vec<StreamId>,
    held: VecDeque<Queued>,
}

impl Paused {
    fn covers(&self, stream: u16) -> bool {
        self.streams.is_empty() || self.streams.contains(&StreamId(stream))
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
    ready: Vec<StreamView>,
    cutting: Option<Cutting>,
    /// With I-DATA: the message of each stream that is being cut, shown in `ready` until its end. None with DATA.
    interleaved: Option<BTreeMap<u16, Cutting>>,
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
        self.cutting.is_none() && self.ready.is_empty() && self.paused.as_ref().is_none_or(|p| p.held.is_empty())
    }

    /// From now on messages for these streams wait; those before go on.
    pub fn pause(&mut self, streams: &[StreamId]) {
        if self.paused.is_none() {
            self.paused = Some(Box::new(Paused { streams: streams.to_vec(), held: VecDeque::new() }));
        }
    }

    /// Has everything that was handed over for the paused streams got its TSN?
    pub fn is_drained(&self) -> bool {
        let Some(p) = &self.paused else { return true };
        let cutting = self.cutting.as_ref().map(|c| c.message.options.stream.0);
        !self.ready.iter().map(|v| v.id.0).chain(cutting).any(|s| p.covers(s))
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

    /// Messages of different streams may be cut at the same time (RFC 8260 §2.2.2). To be told before the first.
    pub fn interleave(&mut self, on: bool) {
        self.interleaved = on.then(BTreeMap::new);
    }

    /// Is the head that `ready` shows of a stream a message that has begun?
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
        let begun = self.interleaved.as_ref().is_some_and(|c| c.contains_key(&options.stream.0));
        let s = self.streams.of(options.stream.0);
        s.queue.push_back(queued);
        if s.queue.len() == 1
            && !begun
            && let Some(v) = s.head()
        {
            self.ready.push(v);
        }
    }

    /// What has no TSN yet, by message: its number, its options, and its payload or the rest of it.
    pub fn for_each_left(&self, mut f: impl FnMut(u64, &SendOptions, Bytes)) {
        let cut = self.cutting.iter().chain(self.interleaved.iter().flat_map(BTreeMap::values));
        cut.for_each(|c| f(c.message.message, &c.message.options, c.message.payload.slice(c.offset..)));
        let held = self.paused.iter().flat_map(|p| &p.held);
        let waiting = self.streams.iter().flat_map(|s| &s.queue).chain(held);
        waiting.for_each(|q| f(q.message, &q.options, q.payload.clone()));
    }

    /// Does anything wait on `stream` that has no TSN yet?
    pub fn holds(&self, stream: StreamId) -> bool {
        let cut = self.cutting.as_ref().is_some_and(|c| c.message.options.stream == stream);
        let held = self.paused.as_ref().is_some_and(|p| p.held.iter().any(|q| q.options.stream == stream));
        cut || held || self.ready.iter().any(|v| v.id == stream)
    }

    /// Gives a stream its priority or weight for schedulers that look at it.
    pub fn set_value(&mut self, stream: StreamId, value: Option<u16>) {
        self.streams.of(stream.0).value = value;
        self.ready.iter_mut().filter(|v| v.id == stream).for_each(|v| v.value = value);
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

    /// Takes the next piece of at most `max` bytes. `expired` is asked once per message before its first piece;
    /// a message it gives up never gets a TSN nor an SSN (RFC 3758 §4.1 TR3) and is counted in the answer.
    #[inline]
    pub fn next(
        &mut self,
        now: Instant,
        max: usize,
        scheduler: &mut dyn StreamScheduler,
        mut expired: impl FnMut(&StreamView, u64, &SendOptions, &Bytes) -> bool,
    ) -> (Option<Fragment>, u64) {
        if self.interleaved.is_some() {
            return self.next_interleaved(now, max, scheduler, &mut expired);
        }
        let mut given_up = 0;
        while self.cutting.is_none() {
            if self.ready.is_empty() {
                return (None, given_up);
            }
            let id = if self.ready.len() == 1 { self.ready[0].id } else { scheduler.next(now, &self.ready) };
            // A scheduler that names a stream with nothing to send is answered with the first one.
            let i = self.ready.iter().position(|v| v.id == id).unwrap_or(0);
            let Some(s) = self.streams.get_mut(self.ready[i].id.0) else { break };
            let head = s.queue.pop_front();
            let given_up_now =
                head.as_ref().is_some_and(|h| expired(&self.ready[i], h.message, &h.options, &h.payload));
            match s.head() {
                Some(next) => self.ready[i] = next,
                None => drop(self.ready.remove(i)),
            }
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
                return (Some(self.whole(head, ssn, scheduler)), given_up);
            }
            self.cutting = Some(Cutting { message: head, ssn, mid: Mid(0), fsn: 0, offset: 0 });
        }
        (self.cut(max, scheduler), given_up)
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
    fn cut(&mut self, max: usize, scheduler: &mut dyn StreamScheduler) -> Option<Fragment> {
        let fragment = self.cutting.as_mut()?.cut(max);
        self.bytes -= fragment.payload.len() as u64;
        scheduler.taken(fragment.options.stream, fragment.payload.len() as u64);
        if fragment.end {
            self.cutting = None;
        }
        Some(fragment)
    }

    /// The same with I-DATA: the scheduler is asked for each piece, whatever is half cut.
    #[inline(never)]
    fn next_interleaved(
        &mut self,
        now: Instant,
        max: usize,
        scheduler: &mut dyn StreamScheduler,
        expired: &mut dyn FnMut(&StreamView, u64, &SendOptions, &Bytes) -> bool,
    ) -> (Option<Fragment>, u64) {
        let mut given_up = 0;
        while !self.ready.is_empty() {
            let id = if self.ready.len() == 1 { self.ready[0].id } else { scheduler.next(now, &self.ready) };
            let i = self.ready.iter().position(|v| v.id == id).unwrap_or(0);
            let (view, stream) = (self.ready[i], self.ready[i].id.0);
            if !self.has_begun(stream) {
                let Some(head) = self.take_head(stream) else {
                    self.ready.remove(i);
                    continue;
                };
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
            let left = c.left();
            self.bytes -= fragment.payload.len() as u64;
            scheduler.taken(view.id, fragment.payload.len() as u64);
            if fragment.end {
                self.interleaved.as_mut().and_then(|all| all.remove(&stream));
                self.show_head(stream);
            } else if let Some(v) = self.ready.get_mut(i) {
                v.head_len = left;
            }
            return (Some(fragment), given_up);
        }
        (None, given_up)
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

    /// Shows the first message that waits on `stream` in place of what was shown.
    fn show_head(&mut self, stream: u16) {
        let head = self.streams.get(stream).and_then(OutStream::head);
        let at = self.ready.iter().position(|v| v.id.0 == stream);
        match (head, at) {
            (Some(head), Some(at)) => self.ready[at] = head,
            (None, Some(at)) => drop(self.ready.remove(at)),
            _ => {}
        }
    }

    fn queued(&self, stream: u16, message: u64) -> Option<(usize, &Queued)> {
        let q = &self.streams.get(stream)?.queue;
        let i = q.binary_search_by_key(&message, |m| m.message).ok()?;
        q.get(i).map(|m| (i, m))
    }

    /// Drops messages of a lower priority than `than` (a larger number; none is above all), the lowest and newest
    /// first, until `bytes` are free; each is handed to `dropped` with its number. Nothing when they do not suffice.
    pub fn discard_below(
        &mut self,
        than: Option<u32>,
        bytes: u64,
        dropped: &mut dyn FnMut(u64, &SendOptions, Bytes),
    ) -> bool {
        let (mut victims, mut free) = (Vec::new(), 0);
        for &(p, message, stream) in self.droppable.iter().rev() {
            if free >= bytes || than.is_some_and(|than| p <= than) {
                break;
            }
            free += self.queued(stream, message).map_or(0, |(_, m)| m.payload.len() as u64);
            victims.push((p, message, stream));
        }
        if free < bytes {
            return false;
        }
        for (p, message, stream) in victims {
            self.droppable.remove(&(p, message, stream));
            let Some((i, _)) = self.queued(stream, message) else { continue };
            let Some(s) = self.streams.get_mut(stream) else { continue };
            let Some(m) = s.queue.remove(i) else { continue };
            let head = s.head();
            self.bytes -= m.payload.len() as u64;
            self.waiting -= 1;
            dropped(m.message, &m.options, m.payload);
            if i == 0
                && !self.has_begun(stream)
                && let Some(at) = self.ready.iter().position(|v| v.id.0 == stream)
            {
                match head {
                    Some(next) => self.ready[at] = next,
                    None => drop(self.ready.remove(at)),
                }
            }
        }
        true
    }

    /// Drops what waits on `stream`; a message that is being cut goes on. Each is told to `dropped` with its length.
    pub fn discard(&mut self, stream: StreamId, dropped: &mut dyn FnMut(&SendOptions, u64)) {
        let Some(s) = self.streams.get_mut(stream.0) else { return };
        for m in s.queue.drain(..) {
            if let Some(p) = m.options.discard_priority {
                self.droppable.remove(&(p, m.message, stream.0));
            }
            self.bytes -= m.payload.len() as u64;
            self.waiting -= 1;
            dropped(&m.options, m.payload.len() as u64);
        }
        if !self.has_begun(stream.0) {
            self.ready.retain(|v| v.id != stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct First;
    impl StreamScheduler for First {
        fn next(&mut self, _: Instant, ready: &[StreamView]) -> StreamId {
            ready.iter().min_by_key(|v| v.head_order).map_or(StreamId(0), |v| v.id)
        }
    }
    fn opts(stream: u16) -> SendOptions {
        SendOptions { stream: StreamId(stream), ..SendOptions::default() }
    }
    fn drain(q: &mut SendQueue, max: usize) -> Vec<(u16, u16, usize, bool, bool)> {
        let mut out = vec![];
        while let (Some(f), _) = q.next(Instant::ZERO, max, &mut First, |_, _, _, _| false) {
            out.push((f.options.stream.0, f.ssn.0, f.payload.len(), f.begin, f.end));
        }
        out
    }

    #[test]
    fn fragments_stay_together_and_ssns_count_per_stream() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, opts(1), Bytes::from(vec![0; 250]));
        q.push(Instant::ZERO, opts(2), Bytes::from(vec![0; 10]));
        q.push(Instant::ZERO, opts(1), Bytes::from(vec![0; 10]));
        assert_eq!(q.bytes(), 270);
        assert_eq!(
            drain(&mut q, 100),
            [
                (1, 0, 100, true, false),
                (1, 0, 100, false, false),
                (1, 0, 50, false, true),
                (2, 0, 10, true, true),
                (1, 1, 10, true, true)
            ]
        );
        assert!(q.is_empty() && q.bytes() == 0);
    }

    #[test]
    fn an_expired_message_takes_no_ssn() {
        let mut q = SendQueue::default();
        for _ in 0..3 {
            q.push(Instant::ZERO, opts(0), Bytes::from_static(b"x"));
        }
        let (f, n) = q.next(Instant::ZERO, 100, &mut First, |_, m, _, _| m < 2);
        assert_eq!((f.map(|f| (f.ssn, f.message)), n), (Some((Ssn(0), 2)), 2));
        assert!(q.is_empty());
    }

    #[test]
    fn what_is_discarded_leaves_other_streams_and_what_is_being_cut_alone() {
        let mut q = SendQueue::default();
        for stream in [1, 2, 1, 1] {
            q.push(Instant::ZERO, opts(stream), Bytes::from(vec![0; 150]));
        }
        let (f, _) = q.next(Instant::ZERO, 100, &mut First, |_, _, _, _| false);
        assert!(f.is_some_and(|f| f.begin && f.options.stream.0 == 1));
        let mut dropped = 0;
        q.discard(StreamId(1), &mut |_, bytes| dropped += bytes);
        q.discard(StreamId(7), &mut |_, _| unreachable!("nothing is there"));
        assert_eq!((dropped, q.bytes(), q.waiting()), (300, 200, 1));
        assert_eq!(drain(&mut q, 200), [(1, 0, 50, false, true), (2, 0, 150, true, true)]);
        // The stream goes on with the next number.
        q.push(Instant::ZERO, opts(1), Bytes::from_static(b"x"));
        assert_eq!(drain(&mut q, 200), [(1, 1, 1, true, true)]);
    }

    #[test]
    fn the_rest_of_a_given_up_message_is_dropped() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, opts(0), Bytes::from(vec![0; 250]));
        let (f, _) = q.next(Instant::ZERO, 100, &mut First, |_, _, _, _| false);
        assert!(f.is_some_and(|f| f.begin));
        q.drop_rest_of(0, 0);
        assert!(q.is_empty() && q.bytes() == 0);
    }
}
