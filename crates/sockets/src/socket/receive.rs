//! `recvmsg`: messages and notifications in the order in which they came (RFC 6458 §4.1.8, §3.3).

use super::association::AssociationId;
use super::{Errno, SocketId, Stack, Style};
use anabranch_base::Instant;
use anabranch_engine::{Message, Part};
use bytes::Bytes;
use std::net::SocketAddr;

/// Something to be read from a socket.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// Messages wait in the engine.
    Messages(AssociationId),
    Notification(AssociationId, Bytes),
    /// Nothing more comes from this association.
    End(AssociationId),
}

/// What did not fit the buffer of the last call.
pub(super) struct Partial {
    from: AssociationId,
    info: Option<ReceivedInfo>,
    rest: Bytes,
    /// The end of the message is in `rest`.
    ends: bool,
}

impl Partial {
    /// Is it of this association?
    pub fn is_of(&self, a: AssociationId) -> bool {
        self.from == a
    }

    /// The association of a message that was not read to its end.
    pub fn unread(&self) -> Option<AssociationId> {
        self.info.map(|_| self.from)
    }
}

/// What goes with a message (`sctp_rcvinfo`, `sctp_sndrcvinfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedInfo {
    /// Number of the stream.
    pub stream: u16,
    /// Its number in the stream, as the chunk has it.
    pub ssn: u16,
    /// It came outside the order.
    pub unordered: bool,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// TSN of its first chunk.
    pub tsn: u32,
    /// Highest TSN in sequence when it was read.
    pub cum_tsn: u32,
    /// SCTP_CONTEXT.
    pub context: u32,
}

/// What is to be read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextInfo {
    /// Whose it is.
    pub association: AssociationId,
    /// None for a notification.
    pub info: Option<ReceivedInfo>,
    /// Bytes of it that are there.
    pub length: usize,
}

/// What a call got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes; empty at the end of the association.
    pub bytes: Bytes,
    /// Whose they are.
    pub association: Option<AssociationId>,
    /// The peer.
    pub from: Option<SocketAddr>,
    /// The message ends here (MSG_EOR).
    pub ends: bool,
    /// None for notifications, and at the end.
    pub info: Option<ReceivedInfo>,
    /// It is one (MSG_NOTIFICATION).
    pub notification: bool,
}

impl Received {
    const END: Received =
        Received { bytes: Bytes::new(), association: None, from: None, ends: false, info: None, notification: false };
}

impl super::Socket {
    /// Is there something of this association to be read yet?
    pub(super) fn holds(&self, id: AssociationId) -> bool {
        let of = |i: &Item| matches!(i, Item::Messages(a) | Item::Notification(a, _) | Item::End(a) if *a == id);
        self.partial.as_ref().is_some_and(|p| p.from == id) || self.inbox.iter().any(of)
    }
}

impl Stack {
    /// Reads at most `room` bytes of the next message or notification; `peek` leaves them there.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when nothing is there yet; the reason why the association of a one-to-one socket ended, once.
    pub fn receive(&mut self, now: Instant, id: SocketId, room: usize, peek: bool) -> Result<Received, Errno> {
        let r = self.receive_item(id, room, peek);
        self.settle(now);
        r
    }

    fn receive_item(&mut self, id: SocketId, room: usize, peek: bool) -> Result<Received, Errno> {
        if self.get(id)?.reading_ended {
            return Ok(Received::END);
        }
        if self.get(id)?.partial.is_none() {
            self.fetch(id)?;
        }
        let s = self.get_mut(id)?;
        let Some(p) = &mut s.partial else { return self.nothing_to_read(id) };
        let take = p.rest.len().min(room);
        let whole = take == p.rest.len();
        let (from, info) = (p.from, p.info);
        let ends = p.ends && whole;
        let bytes = if peek { p.rest.slice(..take) } else { p.rest.split_to(take) };
        if whole && !peek {
            s.partial = None;
        }
        let remote = self.associations.get(&from).map(|a| a.remote);
        Ok(Received { bytes, association: Some(from), from: remote, ends, info, notification: info.is_none() })
    }

    /// What the next call will get, where the program wants to know it (SCTP_RECVNXTINFO) and it is there.
    ///
    /// # Errors
    /// No such socket.
    pub fn next_info(&mut self, id: SocketId) -> Result<Option<NextInfo>, Errno> {
        if !self.get(id)?.options.next_info {
            return Ok(None);
        }
        if self.get(id)?.partial.is_none() {
            self.fetch(id)?;
        }
        let next = |p: &Partial| NextInfo { association: p.from, info: p.info, length: p.rest.len() };
        Ok(self.get(id)?.partial.as_ref().map(next))
    }

    /// Bytes of the next message or notification that are there.
    ///
    /// # Errors
    /// No such socket, or one that listens.
    pub fn next_length(&mut self, id: SocketId) -> Result<usize, Errno> {
        let s = self.get(id)?;
        if s.style == Style::OneToOne && s.backlog.is_some() {
            return Err(Errno::INVALID);
        }
        if s.partial.is_none() {
            self.fetch(id)?;
        }
        Ok(self.get(id)?.partial.as_ref().map_or(0, |p| p.rest.len()))
    }

    /// Takes the next item of the inbox into `partial`.
    fn fetch(&mut self, id: SocketId) -> Result<(), Errno> {
        loop {
            let Some(item) = self.get(id)?.inbox.front().cloned() else { return Ok(()) };
            match item {
                Item::Notification(from, rest) => {
                    let s = self.get_mut(id)?;
                    s.inbox.pop_front();
                    s.partial = Some(Partial { from, info: None, rest, ends: true });
                    return Ok(());
                }
                Item::Messages(from) => {
                    let context = self.get(id)?.options.context;
                    let Some(mut e) = self.engine_mut(from) else {
                        self.get_mut(id)?.inbox.pop_front();
                        continue;
                    };
                    let message = e.recv();
                    let cum_tsn = e.cumulative_tsn().0;
                    // After the last one nothing is readable, and the engine tells of the next when it was asked in vain.
                    let last = !e.is_readable() && e.recv().is_none();
                    drop(e);
                    if last {
                        self.get_mut(id)?.inbox.pop_front();
                    }
                    let Some(m) = message else { continue };
                    if m.part == Part::Abandoned {
                        if let Some(a) = self.associations.get_mut(&from) {
                            a.begun = None;
                        }
                        self.partial_delivery_aborted(id, from, m.stream.0, number_of(&m));
                        continue;
                    }
                    let info = Some(info_of(&m, cum_tsn, context));
                    if let Some(a) = self.associations.get_mut(&from) {
                        match m.part {
                            Part::More => a.begun = Some((m.stream.0, number_of(&m))),
                            Part::Last | Part::Abandoned => a.begun = None,
                            Part::Whole => {}
                        }
                    }
                    let ends = matches!(m.part, Part::Whole | Part::Last);
                    self.get_mut(id)?.partial = Some(Partial { from, info, rest: m.payload.into_bytes(), ends });
                    return Ok(());
                }
                // The rest of a message that was begun will not come.
                Item::End(a) if self.begun_is_cut_short(id, a) => {}
                // The end of a one-to-one socket stays.
                Item::End(_) if self.get(id)?.style == Style::OneToOne => return Ok(()),
                Item::End(a) => {
                    self.get_mut(id)?.inbox.pop_front();
                    self.forget_association(a);
                }
            }
        }
    }

    /// The association is over in the middle of a message: the program hears of that before it learns of the end. False
    /// when there is nothing to tell.
    fn begun_is_cut_short(&mut self, id: SocketId, a: AssociationId) -> bool {
        let begun = self.associations.get_mut(&a).and_then(|a| a.begun.take());
        begun.is_some_and(|(stream, number)| self.partial_delivery_aborted(id, a, stream, number))
    }

    fn partial_delivery_aborted(&mut self, id: SocketId, from: AssociationId, stream: u16, number: u32) -> bool {
        use crate::abi::notification::{kind, partial_delivery_aborted};
        let Some(s) = self.sockets.get_mut(&id) else { return false };
        let tells = s.options.tells(kind::PARTIAL_DELIVERY_EVENT);
        if tells {
            let bytes = partial_delivery_aborted(from.0, stream, number);
            s.inbox.push_front(Item::Notification(from, bytes.into()));
        }
        tells
    }

    /// Keeps an error for the next call, where the one that got it could not return it.
    ///
    /// # Errors
    /// No such socket.
    pub fn keep_error(&mut self, id: SocketId, error: Errno) -> Result<(), Errno> {
        self.get_mut(id)?.error = Some(error);
        Ok(())
    }

    /// Why there is nothing: not yet, never, or not any more.
    fn nothing_to_read(&mut self, id: SocketId) -> Result<Received, Errno> {
        let s = self.get_mut(id)?;
        if s.style == Style::OneToMany {
            return Err(s.error.take().unwrap_or(Errno::AGAIN));
        }
        if s.backlog.is_some() {
            return Err(Errno::NOT_CONNECTED);
        }
        if let Some(e) = s.error.take() {
            return Err(e);
        }
        let Some(a) = s.peer.and_then(|a| self.associations.get(&a)) else { return Err(Errno::NOT_CONNECTED) };
        match (&a.closed, a.peer_shut_down) {
            (None, false) => Err(Errno::AGAIN),
            _ => Ok(Received::END),
        }
    }
}

/// Its place in the stream, as `pdapi_seq` has it.
fn number_of(m: &Message) -> u32 {
    m.mid.map(|mid| mid.0).or(m.ssn.map(|s| s.0.into())).unwrap_or(0)
}

fn info_of(m: &Message, cum_tsn: u32, context: u32) -> ReceivedInfo {
    ReceivedInfo {
        stream: m.stream.0,
        // Of a MID the low half, as FreeBSD has it: the field has 16 bits.
        ssn: m.mid.map(|mid| mid.0 as u16).or(m.ssn.map(|s| s.0)).unwrap_or(0),
        unordered: m.ssn.is_none(),
        ppid: m.ppid,
        tsn: m.tsn.0,
        cum_tsn,
        context,
    }
}
