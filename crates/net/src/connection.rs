//! The public connection: one association.

mod paths;

use crate::clock;
use crate::error::SendError;
use crate::events::Events;
use crate::shared::{Call, Core, Shared, Signals};
use crate::stats::ConnectionStats;
use anabranch_base::{Instant, StreamId};
use anabranch_engine::{AssocId, CloseReason, Message, Phase, ReconfigError, SendOptions, UsableRate};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Least pause between two tries for a message that still finds no room.
const RETRY: Duration = Duration::from_millis(1);

/// Pause between two looks for another rate, which the engine has at most every 100 ms.
const RATE_LOOK: Duration = Duration::from_millis(50);

/// One association with a peer. Clones are handles of the same one; when the last goes it is aborted, unless it has
/// been shut down.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    id: AssocId,
    signals: Arc<Signals>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, id: AssocId, signals: Arc<Signals>) -> Self {
        Connection { inner: Arc::new(Inner { shared, id, signals }) }
    }

    pub(crate) fn id(&self) -> AssocId {
        self.inner.id
    }

    pub(crate) fn signals(&self) -> &Arc<Signals> {
        &self.inner.signals
    }

    /// Hands a message over if there is room now.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is taken on an error.
    pub fn try_send(&self, options: SendOptions, payload: Bytes) -> Result<(), SendError> {
        self.offer(options, payload).map_err(|(why, _)| why)
    }

    /// Gives the payload back where it is not taken.
    fn offer(&self, options: SendOptions, payload: Bytes) -> Result<(), (SendError, Bytes)> {
        let i = &*self.inner;
        let now = clock::now();
        let mut core = i.shared.lock();
        let Some(mut a) = core.engine.association_mut(i.id) else {
            return Err((SendError::Closed(why_over(&core, i.id)), payload));
        };
        let alone = a.is_drained();
        let taken = a.offer(now, options, payload);
        drop(a);
        if let Err((why, payload)) = taken {
            return Err((self.refusal(&mut core, why), payload));
        }
        let call = !alone || core.send_at_once(now, &i.shared);
        let calls = std::mem::take(&mut core.calls);
        drop(core);
        calls.into_iter().for_each(Call::make);
        if call {
            i.shared.wake.notify_one();
        }
        Ok(())
    }

    /// An association that has just ended says why before the driver asks, who wakes those that this concerns.
    fn refusal(&self, core: &mut Core, why: anabranch_engine::SendError) -> SendError {
        if why == anabranch_engine::SendError::Closed {
            core.dispatch(clock::now(), &self.inner.shared);
        }
        SendError::from_engine(why, why_over(core, self.inner.id))
    }

    /// Hands a message over, waiting for room in the send buffer; no longer than its deadline.
    ///
    /// May be dropped at any time: the message is taken either whole or not at all.
    ///
    /// # Errors
    /// See [`SendError`]; never [`SendError::WouldBlock`].
    pub async fn send(&self, options: SendOptions, mut payload: Bytes) -> Result<(), SendError> {
        loop {
            let writable = self.inner.signals.writable.notified();
            match self.offer(options, payload) {
                Ok(()) => return Ok(()),
                Err((SendError::WouldBlock, back)) => payload = back,
                Err((why, _)) => return Err(why),
            }
            self.inner.shared.wake.notify_one();
            let earliest = tokio::time::Instant::now() + RETRY;
            match options.deadline {
                Some(at) => {
                    let at = tokio::time::Instant::from_std(clock::to_std(at));
                    tokio::time::timeout_at(at, writable).await.map_err(|_| SendError::Expired)?;
                }
                None => writable.await,
            }
            // Room for some is not yet room for a large one.
            if tokio::time::Instant::now() < earliest {
                tokio::time::sleep_until(earliest).await;
            }
        }
    }

    /// Hands messages over in order for as long as there is room, and sends what may leave at once from this thread: for
    /// streams that bring several at a time, as a live one does. Returns how many were taken from the front.
    ///
    /// # Errors
    /// Why the first of those that are left cannot be taken, unless it only has to wait for room.
    pub fn try_send_many(&self, messages: &mut VecDeque<(SendOptions, Bytes)>) -> Result<usize, SendError> {
        let i = &*self.inner;
        let now = clock::now();
        let mut core = i.shared.lock();
        let mut taken = 0;
        let mut refused = None;
        {
            let Some(mut a) = core.engine.association_mut(i.id) else {
                return Err(SendError::Closed(why_over(&core, i.id)));
            };
            while let Some((options, payload)) = messages.pop_front() {
                match a.offer(now, options, payload) {
                    Ok(()) => taken += 1,
                    Err((e, payload)) => {
                        messages.push_front((options, payload));
                        refused = Some(e);
                        break;
                    }
                }
            }
        }
        let call = taken > 0 && core.send_at_once(now, &i.shared);
        let refused = refused.map(|why| self.refusal(&mut core, why));
        let calls = std::mem::take(&mut core.calls);
        drop(core);
        calls.into_iter().for_each(Call::make);
        if call {
            i.shared.wake.notify_one();
        }
        match refused {
            Some(e) if e != SendError::WouldBlock => Err(e),
            _ => Ok(taken),
        }
    }

    /// As [`try_send_many`](Self::try_send_many), waiting for room until all are taken, for each no longer than its
    /// deadline. Returns how many were dropped because that passed.
    ///
    /// May be dropped at any time: what was not taken is left in `messages`.
    ///
    /// # Errors
    /// See [`SendError`]; what could not be taken is left, with the message that was refused in front.
    pub async fn send_many(&self, messages: &mut VecDeque<(SendOptions, Bytes)>) -> Result<usize, SendError> {
        self.try_send_many(messages)?;
        let mut expired = 0;
        while let Some((options, payload)) = messages.front() {
            match self.send(*options, payload.clone()).await {
                Ok(()) => {}
                Err(SendError::Expired) => expired += 1,
                Err(e) => return Err(e),
            }
            messages.pop_front();
            self.try_send_many(messages)?;
        }
        Ok(expired)
    }

    /// Drops the messages on `stream` of which nothing was sent yet: their number, and their bytes. What is left
    /// arrives as it would have, so a shutdown after this ends soon.
    pub fn discard_unsent(&self, stream: StreamId) -> (u64, u64) {
        let i = &*self.inner;
        let dropped = i.shared.lock().engine.association_mut(i.id).map(|mut a| a.discard_unsent(stream));
        i.shared.wake.notify_one();
        dropped.unwrap_or_default()
    }

    /// The next message in delivery order; none when the peer and we have shut down and all has been read.
    ///
    /// May be dropped at any time without losing a message.
    ///
    /// # Errors
    /// Why the connection ended, when it did not end gracefully. What had arrived before is delivered first.
    pub async fn recv(&self) -> Result<Option<Message>, CloseReason> {
        loop {
            let readable = self.inner.signals.readable.notified();
            if let Some(m) = self.try_recv() {
                return Ok(Some(m));
            }
            match self.close_reason() {
                None => readable.await,
                // It may have arrived between the two looks.
                Some(reason) => return self.try_recv().map_or_else(|| ended(reason), |m| Ok(Some(m))),
            }
        }
    }

    /// Appends up to `max` messages to `out`, waiting for the first. Returns how many; 0 after a graceful end.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn recv_many(&self, out: &mut Vec<Message>, max: usize) -> Result<usize, CloseReason> {
        if max == 0 {
            return Ok(0);
        }
        let Some(first) = self.recv().await? else { return Ok(0) };
        let before = out.len();
        out.push(first);
        self.read(max - 1, |m| out.push(m));
        Ok(out.len() - before)
    }

    /// Appends what has arrived already, at most `max` messages; how many.
    pub fn try_recv_many(&self, out: &mut Vec<Message>, max: usize) -> usize {
        let before = out.len();
        self.read(max, |m| out.push(m));
        out.len() - before
    }

    /// A message that has arrived already.
    pub fn try_recv(&self) -> Option<Message> {
        let mut message = None;
        self.read(1, |m| message = Some(m));
        message
    }

    /// Reads up to `max` messages, and calls the driver when that opened the window far enough to announce it.
    fn read(&self, max: usize, take: impl FnMut(Message)) {
        let i = &*self.inner;
        let mut core = i.shared.lock();
        let read = core.engine.read(i.id, max, take);
        if read > 0 && core.connections.get(&i.id).is_some_and(|e| e.closed.is_some() || e.ending.is_some()) {
            core.remember_stats(i.id);
        }
        let call = !core.engine.is_settled();
        drop(core);
        if call {
            i.shared.wake.notify_one();
        }
    }

    /// Everything that happened to the connection from its beginning, and what will.
    pub fn events(&self) -> Events {
        Events::new(self.inner.shared.clone(), self.inner.id)
    }

    /// Counters; the last ones when it is over.
    pub fn stats(&self) -> ConnectionStats {
        self.inner.shared.lock().connection_stats(self.inner.id)
    }

    /// What the paths carry within the deadline of messages, for an encoder that follows it; `changes` is 0 before
    /// anything is known.
    pub fn rate(&self) -> UsableRate {
        let core = self.inner.shared.lock();
        match core.engine.association(self.inner.id) {
            Some(a) => a.usable_rate(),
            None => core
                .connections
                .get(&self.inner.id)
                .map_or(UsableRate::default(), |e| e.last_stats.association.usable_rate),
        }
    }

    /// Bytes of a message that leaves in one packet, whatever path it takes now; 0 when it is over.
    pub fn max_payload(&self) -> usize {
        let core = self.inner.shared.lock();
        core.engine.association(self.inner.id).map_or(0, |a| a.max_payload())
    }

    /// What the peer said by the parameter `kind` of our list of own parameters
    /// ([`Extensions::own_parameters`](anabranch_engine::config::Extensions::own_parameters)), or repeated; none when it said
    /// nothing, before the handshake, and when the connection is over.
    pub fn peer_parameter(&self, kind: u16) -> Option<Vec<u8>> {
        let core = self.inner.shared.lock();
        core.engine.association(self.inner.id).and_then(|a| a.peer_parameter(kind)).map(<[u8]>::to_vec)
    }

    /// Streams that we send on, and that the peer does; none when it is over.
    pub fn streams(&self) -> (u16, u16) {
        let core = self.inner.shared.lock();
        core.engine.association(self.inner.id).map_or((0, 0), |a| a.streams())
    }

    /// Waits until [`rate`](Self::rate) is another one than `last`, which was answered before (or is
    /// `UsableRate::default()`); none once the connection is over. Changes are at least 100 ms apart.
    pub async fn rate_changed(&self, last: UsableRate) -> Option<UsableRate> {
        loop {
            let now = self.rate();
            if now.changes != last.changes {
                return Some(now);
            }
            if self.close_reason().is_some() {
                return None;
            }
            tokio::time::sleep(RATE_LOOK).await;
        }
    }

    /// Ends gracefully: what was handed over is delivered first. Waits until both sides have agreed.
    ///
    /// It is no half-close (RFC 9260 §9.2): neither side takes new messages from then on, and only what the peer had
    /// handed over before still comes; it can be read by another clone meanwhile, and afterwards. A peer that lives and
    /// does not read keeps this from ending: see [`shutdown_within`](Self::shutdown_within).
    pub async fn shutdown(&self) -> CloseReason {
        let i = &*self.inner;
        i.shared.act(|core| {
            if let Some(mut a) = core.engine.association_mut(i.id) {
                a.shutdown(clock::now());
            }
        });
        self.closed().await
    }

    /// As [`shutdown`](Self::shutdown), but aborts when that takes longer than `limit`.
    pub async fn shutdown_within(&self, limit: Duration) -> CloseReason {
        match tokio::time::timeout(limit, self.shutdown()).await {
            Ok(reason) => reason,
            Err(_) => {
                self.abort("the graceful end took too long");
                self.closed().await
            }
        }
    }

    /// Lets streams begin again with sequence number 0, see
    /// [`Association::reset_streams`](anabranch_engine::Association::reset_streams) (RFC 6525).
    ///
    /// # Errors
    /// See [`ReconfigError`].
    pub fn reset_streams(&self, streams: &[StreamId], outgoing: bool, incoming: bool) -> Result<(), ReconfigError> {
        let i = &*self.inner;
        i.shared.act(|core| match core.engine.association_mut(i.id) {
            Some(mut a) => a.reset_streams(clock::now(), streams, outgoing, incoming),
            None => Err(ReconfigError::Closed),
        })
    }

    /// Ends at once; what was not delivered is lost. The peer receives `reason`.
    pub fn abort(&self, reason: &str) {
        let i = &*self.inner;
        i.shared.act(|core| {
            if let Some(mut a) = core.engine.association_mut(i.id) {
                a.abort(clock::now(), reason.as_bytes());
            }
        });
    }

    /// Gives it a receive buffer of so many bytes, see
    /// [`Association::set_receive_buffer`](anabranch_engine::Association::set_receive_buffer).
    pub fn set_receive_buffer(&self, bytes: usize) {
        let i = &*self.inner;
        i.shared.act(|core| {
            if let Some(mut a) = core.engine.association_mut(i.id) {
                a.set_receive_buffer(bytes);
            }
        });
    }

    /// Waits for the end.
    pub async fn closed(&self) -> CloseReason {
        loop {
            let changed = self.inner.signals.changed.notified();
            if let Some(reason) = self.close_reason() {
                return reason;
            }
            changed.await;
        }
    }

    /// Why it is over; none while it lives.
    pub fn close_reason(&self) -> Option<CloseReason> {
        closed(&self.inner.shared.lock(), self.inner.id)
    }

    /// Has something arrived that was not read?
    pub(crate) fn has_unread(&self) -> bool {
        let core = self.inner.shared.lock();
        core.engine.association(self.inner.id).is_some_and(|a| a.is_readable())
    }

    /// True from the handshake until either side begins to end it.
    pub fn is_established(&self) -> bool {
        let core = self.inner.shared.lock();
        core.engine.association(self.inner.id).is_some_and(|a| a.phase() == Phase::Established)
    }

    /// Waits until every path has shown what it carries, at most for `limit`; true when all have. What is sent before
    /// may find less room than there is: a live stream that begins with its full rate is better off waiting. Profiles
    /// whose windows do not measure paths beforehand are ready once all paths are confirmed.
    pub async fn warm_up(&self, limit: Duration) -> bool {
        const LOOKS_EVERY: Duration = Duration::from_millis(5);
        let is_warm = || {
            let mut core = self.inner.shared.lock();
            core.engine.association_mut(self.inner.id).is_none_or(|mut a| a.warm_up(clock::now()))
        };
        let until = tokio::time::Instant::now() + limit;
        while !is_warm() {
            self.inner.shared.wake.notify_one();
            if tokio::time::Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        true
    }

    /// Now, on the scale of deadlines.
    pub fn now(&self) -> Instant {
        clock::now()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.act(|core| core.release(clock::now(), self.id));
    }
}

fn closed(core: &Core, id: AssocId) -> Option<CloseReason> {
    match core.connections.get(&id) {
        Some(entry) => entry.closed.clone(),
        None => Some(CloseReason::Aborted),
    }
}

/// Why nothing more is taken: the reason is known before the last packet has left, which is when the handles learn of it.
fn why_over(core: &Core, id: AssocId) -> Option<CloseReason> {
    closed(core, id).or_else(|| core.connections.get(&id)?.ending.as_ref().map(|(_, why)| why.clone()))
}

fn ended(reason: CloseReason) -> Result<Option<Message>, CloseReason> {
    match reason {
        CloseReason::Shutdown => Ok(None),
        other => Err(other),
    }
}
