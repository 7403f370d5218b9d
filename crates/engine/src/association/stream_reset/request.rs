//! Stream re-configuration as the side that asks (RFC 6525 §5.1, §5.2.7). One request is under way at a time; further
//! wishes wait. The side that answers is `answer`; what is asked for anew, `again` and `refused`.

use crate::association::Association;
use crate::association::control::What;
use crate::association::stream_reset::again::InVain;
use crate::association::stream_reset::refused::Waiting;
use crate::event::{Event, PathReason};
use crate::lazy_box::Empty;
use anabranch_base::{Instant, PathId, StreamId, Tsn};
use anabranch_wire::{Encode, Parameter, Params, reconfig_result as result};
use bytes::Bytes;
use std::collections::VecDeque;

/// Wishes that may wait.
const MAX_WISHES: usize = 16;
/// Streams that one request names at most: it has to fit a packet.
const MAX_NAMED: usize = 200;

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigError {
    /// The peer did not announce RE-CONFIG, or we did not.
    #[error("re-configuration was not agreed with the peer")]
    NotSupported,
    /// Not established, or closing.
    #[error("the association is not open")]
    Closed,
    /// A stream that does not exist, or more than a request can name.
    #[error("the streams do not exist or are too many")]
    InvalidStream,
    /// Neither our streams nor the peer's are to begin anew.
    #[error("neither the outgoing nor the incoming streams are to be reset")]
    NoSide,
    /// More streams than 65535.
    #[error("more streams than can be numbered")]
    TooMany,
    /// Too many requests wait already.
    #[error("too many requests wait")]
    Busy,
}

/// What is to be done. Empty lists of streams are all streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::association) enum Wish {
    /// Our streams, or those of the peer, or both. `response`: the peer's request that this one meets.
    Reset {
        outgoing: Option<Vec<StreamId>>,
        incoming: Option<Vec<StreamId>>,
        response: Option<u32>,
    },
    /// Everything, TSNs too.
    ResetTsns,
    Add {
        outgoing: u16,
        incoming: u16,
    },
}

#[derive(Debug)]
pub(in crate::association) struct Request {
    pub wish: Wish,
    /// Parameters as sent; a repetition is the same.
    pub params: Bytes,
    /// Numbers that are not answered yet.
    pub open: Vec<u32>,
    /// What a reset of ours names, extended.
    pub last_tsn: u64,
    /// When it left last.
    sent: Instant,
    deadline: Instant,
    attempts: u32,
    path: PathId,
    /// The peer has said "in progress": waiting is no error.
    in_progress: bool,
    /// How often the wish was refused before.
    pub(super) refused: u16,
    pub(super) in_vain: InVain,
}

/// State of both sides; of an association that may use it.
#[derive(Debug, Default)]
pub(crate) struct StreamReset {
    pub(super) next_request: u32,
    pub(super) request: Option<Box<Request>>,
    pub(super) wishes: VecDeque<Waiting>,
    /// The peer's next request number.
    pub(super) peer_next: u32,
    /// Numbers of the last requests with their answers, which are empty where a request of ours was the answer.
    pub(super) answered: VecDeque<(u32, Bytes)>,
    /// The packet at hand had its request already.
    pub(super) one_answered: bool,
}

impl Empty for StreamReset {
    const EMPTY: &'static Self = &StreamReset {
        next_request: 0,
        request: None,
        wishes: VecDeque::new(),
        peer_next: 0,
        answered: VecDeque::new(),
        one_answered: false,
    };
}

impl StreamReset {
    /// A packet came: one request in it is answered.
    pub fn begin_packet(&mut self) {
        self.one_answered = false;
    }

    /// Numbers begin at the Initial TSN (RFC 6525 §4.1).
    pub fn new(initial: Tsn) -> Self {
        StreamReset { next_request: initial.0, ..StreamReset::default() }
    }
    /// The peer's numbers begin at its Initial TSN.
    pub fn peer_starts_at(&mut self, initial: Tsn) {
        self.peer_next = initial.0;
    }
    /// The re-configuration timer.
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().map(|r| r.deadline).or_else(|| self.asks_again_at())
    }
    /// No data gets a TSN until the TSNs have begun anew (§5.1.4 C2).
    pub fn suspends_data(&self) -> bool {
        self.wishes.front().is_some_and(|w| w.wish == Wish::ResetTsns)
            || self.request.as_ref().is_some_and(|r| r.wish == Wish::ResetTsns)
    }
    fn number(&mut self) -> u32 {
        let n = self.next_request;
        self.next_request = n.wrapping_add(1);
        n
    }
    pub(in crate::association) fn is_idle(&self) -> bool {
        self.request.is_none() && self.wishes.is_empty()
    }
}

impl Association {
    /// Lets streams begin again with sequence number 0: ours, those of the peer, or both; no stream named is all of
    /// them. Messages handed over before keep their place, later ones wait for the peer's answer; it comes as
    /// [`Event::StreamsReset`] or [`Event::ReconfigFailed`]. A peer that has a request of its own under way is asked
    /// again, some ten times in five minutes.
    ///
    /// # Errors
    /// See [`ReconfigError`].
    pub fn reset_streams(
        &mut self,
        now: Instant,
        streams: &[StreamId],
        outgoing: bool,
        incoming: bool,
    ) -> Result<(), ReconfigError> {
        if !(outgoing || incoming) {
            return Err(ReconfigError::NoSide);
        }
        let exist = |most: u16| streams.iter().all(|s| s.0 < most);
        let known = (!outgoing || exist(self.sender.streams())) && (!incoming || exist(self.receiver.streams()));
        if !known || streams.len() > MAX_NAMED {
            return Err(ReconfigError::InvalidStream);
        }
        let list = |wanted: bool| wanted.then(|| streams.to_vec());
        self.wish(now, Wish::Reset { outgoing: list(outgoing), incoming: list(incoming), response: None })
    }

    /// Lets all streams of both sides and the TSNs begin anew. Data waits until all before it is acknowledged and the
    /// peer has answered: [`Event::AssociationReset`].
    ///
    /// # Errors
    /// See [`ReconfigError`].
    pub fn reset_association(&mut self, now: Instant) -> Result<(), ReconfigError> {
        self.wish(now, Wish::ResetTsns)
    }

    /// Asks for so many more streams to send on and to receive on; the answer is [`Event::StreamsAdded`].
    ///
    /// # Errors
    /// See [`ReconfigError`].
    pub fn add_streams(&mut self, now: Instant, outgoing: u16, incoming: u16) -> Result<(), ReconfigError> {
        let fits = |have: u16, more: u16| have.checked_add(more).is_some();
        if !fits(self.sender.streams(), outgoing) || !fits(self.receiver.streams(), incoming) {
            return Err(ReconfigError::TooMany);
        }
        if outgoing == 0 && incoming == 0 {
            return Err(ReconfigError::InvalidStream);
        }
        self.wish(now, Wish::Add { outgoing, incoming })
    }

    /// Streams that we send on, and that the peer does.
    pub fn streams(&self) -> (u16, u16) {
        (self.sender.streams(), self.receiver.streams())
    }

    fn wish(&mut self, now: Instant, wish: Wish) -> Result<(), ReconfigError> {
        if !self.handshake.state().is_connected() || !self.handshake.state().takes_user_data() {
            return Err(ReconfigError::Closed);
        }
        if !self.peer.reconfig {
            return Err(ReconfigError::NotSupported);
        }
        if self.stream_reset.wishes.len() >= MAX_WISHES {
            return Err(ReconfigError::Busy);
        }
        self.stream_reset.wishes.push_back(wish.into());
        self.advance_reconfig(now);
        Ok(())
    }

    /// Begins the next request when it may begin: nothing else is under way, and what stands before it has its TSNs.
    #[inline(never)]
    pub(in crate::association) fn advance_reconfig(&mut self, now: Instant) {
        if self.stream_reset.request.is_some() || !self.handshake.state().sends_data() {
            return;
        }
        let Some(waiting) = self.stream_reset.wishes.front() else { return };
        // Where the association is to end, it is tried once more at once.
        if waiting.is_early(now) && !self.handshake.state().is_ending() {
            return;
        }
        let may_begin = match &waiting.wish {
            Wish::Reset { outgoing: Some(streams), .. } => self.sender.pause(streams),
            Wish::ResetTsns => self.sender.has_nothing_outstanding(),
            _ => true,
        };
        if !may_begin {
            return;
        }
        let Some(Waiting { wish, refused, .. }) = self.stream_reset.wishes.pop_front() else { return };
        self.request(now, wish, refused, InVain::default());
    }

    /// Sends a request with the next numbers.
    pub(in crate::association) fn request(&mut self, now: Instant, wish: Wish, refused: u16, in_vain: InVain) {
        let (params, open) = self.encode_wish(&wish);
        let path = self.paths.usable().iter().next().unwrap_or(self.handshake.path());
        let (params, in_progress) = (params.into(), false);
        let last_tsn = self.sender.next_tsn() - 1;
        let (sent, deadline, attempts) = (now, now, 0);
        let request =
            Request { wish, params, open, last_tsn, sent, deadline, attempts, path, in_progress, refused, in_vain };
        self.stream_reset.request = Some(Box::new(request));
        self.send_reconfig(now);
    }

    fn encode_wish(&mut self, wish: &Wish) -> (Vec<u8>, Vec<u32>) {
        let (mut out, mut open) = (Vec::new(), Vec::new());
        let list = |s: &[StreamId]| s.iter().flat_map(|s| s.0.to_be_bytes()).collect::<Vec<u8>>();
        let last_tsn = Tsn((self.sender.next_tsn() - 1) as u32);
        let c = &mut self.stream_reset;
        let mut put = |c: &mut StreamReset, of: &dyn Fn(u32, &mut Vec<u8>)| {
            let request = c.number();
            of(request, &mut out);
            open.push(request);
        };
        match wish {
            Wish::Reset { outgoing, incoming, response } => {
                if let Some(s) = outgoing {
                    let (streams, response) = (list(s), response.unwrap_or(c.peer_next.wrapping_sub(1)));
                    put(c, &|request, o| {
                        Parameter::OutgoingReset { request, response, last_tsn, streams: &streams }.encode(o);
                    });
                }
                if let Some(s) = incoming {
                    let streams = list(s);
                    put(c, &|request, o| Parameter::IncomingReset { request, streams: &streams }.encode(o));
                }
            }
            Wish::ResetTsns => put(c, &|request, o| Parameter::TsnReset { request }.encode(o)),
            Wish::Add { outgoing, incoming } => {
                if *outgoing > 0 {
                    put(c, &|request, o| Parameter::AddOutgoing { request, streams: *outgoing }.encode(o));
                }
                if *incoming > 0 {
                    put(c, &|request, o| Parameter::AddIncoming { request, streams: *incoming }.encode(o));
                }
            }
        }
        (out, open)
    }

    /// Sends the request under way, by another path than before when it is a repetition.
    pub(in crate::association) fn send_reconfig(&mut self, now: Instant) {
        let usable = self.paths.usable();
        let Some(r) = self.stream_reset.request.as_mut() else { return };
        if r.attempts > 0 {
            let next = usable.iter().find(|p| p.index() > r.path.index()).or_else(|| usable.iter().next());
            r.path = next.unwrap_or(r.path);
        }
        r.leaves(&self.sender);
        let (path, attempts, params) = (r.path, r.attempts, r.params.clone());
        r.attempts = r.attempts.saturating_add(1);
        let wait = self.config.timers.doubled(self.views.rto(&self.paths, &self.policies, path), attempts);
        if let Some(r) = self.stream_reset.request.as_mut() {
            (r.sent, r.deadline) = (now, now + wait);
        }
        self.control.push(path, What::ReConfig { params, answer: false });
    }

    /// The timer: once more the same, and an error of path and association (§5.1.1), unless the peer only asked for
    /// patience (§5.2.7 H2). Or the end of a pause.
    pub(in crate::association) fn on_reconfig_timer(&mut self, now: Instant) {
        let Some(r) = self.stream_reset.request.as_mut() else {
            self.stream_reset.end_pause();
            return self.advance_reconfig(now);
        };
        if !core::mem::take(&mut r.in_progress) {
            let (path, sent) = (r.path, r.sent);
            self.path_error(now, path, PathReason::Timeout);
            self.association_error(now, sent);
        }
        if self.phase() != crate::association::Phase::Closed && !self.ask_again(now) {
            self.send_reconfig(now);
        }
    }

    /// A response to one of our requests (§5.2.7).
    pub(in crate::association) fn on_reconfig_response(
        &mut self,
        now: Instant,
        number: u32,
        what: u32,
        tsns: Option<(Tsn, Tsn)>,
    ) {
        let Some(r) = self.stream_reset.request.as_ref().filter(|r| r.open.contains(&number)) else { return };
        let wait = self.views.rto(&self.paths, &self.policies, r.path);
        let waits = what == result::IN_PROGRESS || self.asks_as_before(number, what);
        let Some(r) = self.stream_reset.request.as_mut() else { return };
        if waits {
            r.waits();
            (r.in_progress, r.deadline, r.attempts) = (true, now + wait, 1);
            return;
        }
        r.open.retain(|n| *n != number);
        let (wish, mine, refused) = (r.wish.clone(), part_of(&r.params, number), r.refused);
        if r.open.is_empty() {
            self.stream_reset.request = None;
        }
        if !self.asks_later(now, what, (&wish, mine), refused, wait) {
            let done = matches!(what, result::NOTHING_TO_DO | result::PERFORMED);
            self.settle_part(&wish, mine, done, what, tsns);
        }
        self.advance_reconfig(now);
        self.opportunity();
    }

    /// The peer's reset was the answer to our wish for it (§5.2.2 E1). Of other requests of ours the number tells only
    /// that the peer has seen them: it is there even when the reset answers nothing (§4.1).
    pub(in crate::association) fn met_by_peer(&mut self, number: u32) {
        let Some(r) = self.stream_reset.request.as_mut() else { return };
        let wished = matches!(r.wish, Wish::Reset { .. }) && part_of(&r.params, number) == Some(Part::Incoming);
        if wished {
            r.open.retain(|n| *n != number);
            if r.open.is_empty() {
                self.stream_reset.request = None;
            }
        }
    }

    /// One of our requests has come to its end.
    fn settle_part(&mut self, wish: &Wish, part: Option<Part>, done: bool, what: u32, tsns: Option<(Tsn, Tsn)>) {
        match (wish, part) {
            (Wish::Reset { outgoing: Some(s), .. }, Some(Part::Outgoing)) => {
                self.sender.resume(done);
                if done {
                    self.events.push_back(Event::StreamsReset { streams: s.clone(), incoming: false });
                }
            }
            (Wish::ResetTsns, _) if done => match tsns {
                Some((theirs, ours)) => self.begin_anew(theirs, Some(ours)),
                None => return self.events.push_back(Event::ReconfigFailed { result: what }),
            },
            (Wish::Add { outgoing, .. }, Some(Part::Outgoing)) if done => {
                self.sender.add_streams(*outgoing);
                self.events.push_back(Event::StreamsAdded { outgoing: *outgoing, incoming: 0 });
            }
            _ => {}
        }
        if !done {
            self.events.push_back(Event::ReconfigFailed { result: what });
        }
    }
}

/// Which of the parameters of a request had this number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::association) enum Part {
    Outgoing,
    Incoming,
}

pub(in crate::association) fn part_of(params: &[u8], number: u32) -> Option<Part> {
    Params::new(params).iter().flatten().find_map(|p| match p {
        Parameter::OutgoingReset { request, .. } | Parameter::AddOutgoing { request, .. } if request == number => {
            Some(Part::Outgoing)
        }
        Parameter::IncomingReset { request, .. } | Parameter::AddIncoming { request, .. } if request == number => {
            Some(Part::Incoming)
        }
        _ => None,
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
