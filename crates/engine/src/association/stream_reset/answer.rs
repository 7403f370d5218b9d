//! Stream re-configuration as the side that answers (RFC 6525 §5.2).

use crate::association::Association;
use crate::association::control::{What, causes};
use crate::association::receiver::FinishedReset;
use crate::association::stream_reset::request::Wish;
use crate::event::Event;
use anabranch_base::{Instant, PathId, StreamId, Tsn};
use anabranch_wire::{Cause, Encode, Parameter, ReConfig, list_u16, reconfig_result as result};
use bytes::Bytes;

/// May these stand together in a chunk (§3.1)?
fn fit_together(all: &[Parameter<'_>]) -> bool {
    use Parameter::{AddIncoming, AddOutgoing, IncomingReset, OutgoingReset, ReconfigResponse, TsnReset};
    matches!(
        all,
        [OutgoingReset { .. }
            | IncomingReset { .. }
            | TsnReset { .. }
            | ReconfigResponse { .. }
            | AddOutgoing { .. }
            | AddIncoming { .. }]
            | [OutgoingReset { .. }, IncomingReset { .. } | ReconfigResponse { .. }]
            | [IncomingReset { .. } | ReconfigResponse { .. }, OutgoingReset { .. }]
            | [AddOutgoing { .. }, AddIncoming { .. }]
            | [AddIncoming { .. }, AddOutgoing { .. }]
            | [ReconfigResponse { .. }, ReconfigResponse { .. }]
    )
}

fn number_of(p: &Parameter<'_>) -> Option<u32> {
    match *p {
        Parameter::OutgoingReset { request, .. }
        | Parameter::IncomingReset { request, .. }
        | Parameter::TsnReset { request }
        | Parameter::AddOutgoing { request, .. }
        | Parameter::AddIncoming { request, .. } => Some(request),
        _ => None,
    }
}

impl Association {
    pub(in crate::association) fn on_re_config(&mut self, now: Instant, path: PathId, chunk: &ReConfig<'_>) {
        // One packet is answered by one (RFC 9260 §12.4).
        if core::mem::replace(&mut self.stream_reset.one_answered, true) {
            return;
        }
        let all: Vec<Parameter<'_>> = chunk.params.iter().take(3).filter_map(Result::ok).collect();
        if !fit_together(&all) {
            let error = causes(&[Cause::ProtocolViolation(b"parameters of RE-CONFIG")]);
            return self.control.push(path, What::Error(error));
        }
        for p in &all {
            if let Parameter::ReconfigResponse { response, result, tsns } = *p {
                self.on_reconfig_response(now, response, result, tsns);
            }
        }
        if all.iter().all(|p| number_of(p).is_none()) {
            return;
        }
        if self.acknowledger.has_any_data() {
            self.acknowledger.request();
        }
        let mut answer = Vec::new();
        for p in &all {
            if let Some(number) = number_of(p) {
                self.answer_request(now, number, p, &mut answer);
            }
        }
        if !answer.is_empty() {
            self.control.push(path, What::ReConfig { params: answer.into(), answer: true });
        }
        self.advance_reconfig(now);
    }

    /// Appends the answer to one request: the same as before to a repeated one (§5.2.1).
    fn answer_request(&mut self, now: Instant, number: u32, p: &Parameter<'_>, out: &mut Vec<u8>) {
        if let Some((_, before)) = self.stream_reset.answered.iter().find(|(n, _)| *n == number) {
            out.extend_from_slice(before);
            let meets = |w: &Wish| matches!(w, Wish::Reset { response: Some(n), .. } if *n == number);
            if self.stream_reset.request.as_ref().is_some_and(|r| meets(&r.wish)) {
                self.send_reconfig(now);
            }
            return;
        }
        let (what, tsns) = if number != self.stream_reset.peer_next {
            return respond(number, result::BAD_SEQUENCE, None, out);
        } else if self.receiver.defers_reset() && resets_theirs(p) {
            (Some(result::ALREADY_IN_PROGRESS), None)
        } else {
            self.carry_out(now, number, p)
        };
        if what == Some(BUSY) {
            // Not taken yet: it comes again under its number.
            return respond(number, result::IN_PROGRESS, None, out);
        }
        self.stream_reset.peer_next = number.wrapping_add(1);
        let mut answer = Vec::new();
        if let Some(what) = what {
            respond(number, what, tsns, &mut answer);
        }
        out.extend_from_slice(&answer);
        self.stream_reset.answered.truncate(MAX_REMEMBERED - 1);
        self.stream_reset.answered.push_front((number, answer.into()));
    }

    /// The result of one request; none when a request of ours is the answer.
    fn carry_out(&mut self, now: Instant, number: u32, p: &Parameter<'_>) -> (Option<u32>, Option<(Tsn, Tsn)>) {
        let listed = |list: &[u8]| list_u16(list).map(StreamId).collect::<Vec<_>>();
        match *p {
            Parameter::OutgoingReset { response, last_tsn, streams, .. } => {
                let streams = listed(streams);
                if streams.iter().any(|s| s.0 >= self.receiver.streams()) {
                    return (Some(result::WRONG_SSN), None);
                }
                self.met_by_peer(response);
                (Some(self.peer_resets(number, last_tsn, streams)), None)
            }
            Parameter::IncomingReset { streams, .. } => (self.peer_wants_reset(now, number, listed(streams)), None),
            Parameter::TsnReset { .. } => {
                if !self.stream_reset.is_idle() {
                    return (Some(result::DENIED), None);
                }
                if !self.sender.has_nothing_outstanding() || self.sender.is_cutting() {
                    return (Some(BUSY), None);
                }
                let tsns = self.reset_for_peer();
                (Some(result::PERFORMED), Some(tsns))
            }
            Parameter::AddOutgoing { streams, .. } => {
                let sum = u32::from(self.receiver.streams()) + u32::from(streams);
                if sum > u32::from(self.config.limits.max_streams) {
                    return (Some(result::DENIED), None);
                }
                self.receiver.set_streams(sum as u16);
                self.events.push_back(Event::StreamsAdded { outgoing: 0, incoming: streams });
                (Some(result::PERFORMED), None)
            }
            Parameter::AddIncoming { streams, .. } => {
                let sum = u32::from(self.sender.streams()) + u32::from(streams);
                if sum > u32::from(self.config.limits.max_streams) || streams == 0 {
                    return (Some(result::DENIED), None);
                }
                if !self.stream_reset.may_ask_for_peer() || self.stream_reset.adds_wait() {
                    return (Some(BUSY), None);
                }
                self.stream_reset.wishes.push_front(Wish::Add { outgoing: streams, incoming: 0 }.into());
                (Some(result::PERFORMED), None)
            }
            _ => (None, None),
        }
    }

    /// The peer's streams begin anew, now or when the last of their old data is here (§5.2.2).
    fn peer_resets(&mut self, request: u32, last: Tsn, streams: Vec<StreamId>) -> u32 {
        if !self.receiver.reset_streams(request, last, &streams) {
            return result::IN_PROGRESS;
        }
        self.events.push_back(Event::StreamsReset { streams, incoming: true });
        result::PERFORMED
    }

    /// The peer wants streams of ours to begin anew (§5.2.3).
    fn peer_wants_reset(&mut self, now: Instant, number: u32, streams: Vec<StreamId>) -> Option<u32> {
        if streams.iter().any(|s| s.0 >= self.sender.streams()) {
            return Some(result::WRONG_SSN);
        }
        let covers = |w: &Wish| match w {
            Wish::Reset { outgoing: Some(ours), .. } => {
                ours.is_empty() || !streams.is_empty() && streams.iter().all(|s| ours.contains(s))
            }
            _ => false,
        };
        if self.stream_reset.own_resets().any(covers) {
            return Some(result::NOTHING_TO_DO);
        }
        if !self.stream_reset.may_ask_for_peer() || !self.handshake.state().sends_data() {
            return Some(if self.handshake.state().sends_data() { BUSY } else { result::DENIED });
        }
        self.give_up_refused_reset();
        let wish = Wish::Reset { outgoing: Some(streams), incoming: None, response: Some(number) };
        self.stream_reset.wishes.push_front(wish.into());
        self.advance_reconfig(now);
        // What was handed over before goes first.
        self.stream_reset.request.is_none().then_some(result::IN_PROGRESS)
    }

    /// A deferred reset was carried out: the peer hears of it.
    #[inline(never)]
    pub(in crate::association) fn on_deferred_reset(&mut self, now: Instant, done: FinishedReset) {
        self.events.push_back(Event::StreamsReset { streams: done.streams, incoming: true });
        if done.broken {
            return self.broken_fragments(now);
        }
        let mut out = Vec::new();
        respond(done.request, result::PERFORMED, None, &mut out);
        let out = Bytes::from(out);
        if let Some((_, answer)) = self.stream_reset.answered.iter_mut().find(|(n, _)| *n == done.request) {
            *answer = out.clone();
        }
        let path = self.acknowledger.path();
        self.control.push(path, What::ReConfig { params: out, answer: false });
    }

    /// SSN/TSN reset on the answering side (§5.2.4): our next TSN, and the one the peer is to use. Nothing of ours is
    /// outstanding, so that nothing has to be taken for acknowledged (G3).
    fn reset_for_peer(&mut self) -> (Tsn, Tsn) {
        let theirs = Tsn(self.receiver.cum().0.wrapping_add(1).wrapping_add(1 << 31));
        self.begin_anew(theirs, None);
        (Tsn(self.sender.next_tsn() as u32), theirs)
    }

    fn settle_after_reset(&mut self) {
        for p in self.paths.iter_mut() {
            p.begin_anew();
        }
    }

    /// Both directions begin anew: the peer's data at `theirs`, ours at `ours` when that changes.
    pub(in crate::association) fn begin_anew(&mut self, theirs: Tsn, ours: Option<Tsn>) {
        self.receiver.begin_anew(theirs, self.peer.forward_tsn);
        self.policies.repair.begin_anew();
        if self.sender.begin_anew(ours) {
            self.settle_after_reset();
        }
        self.events.push_back(Event::AssociationReset);
    }
}

/// Requests of one chunk, whose answers are remembered.
const MAX_REMEMBERED: usize = 2;

/// Does the request concern what the peer sends?
fn resets_theirs(p: &Parameter<'_>) -> bool {
    matches!(p, Parameter::OutgoingReset { .. } | Parameter::TsnReset { .. })
}

/// Not a result: the request is to come again, under the same number.
const BUSY: u32 = u32::MAX;

fn respond(response: u32, result: u32, tsns: Option<(Tsn, Tsn)>, out: &mut Vec<u8>) {
    Parameter::ReconfigResponse { response, result, tsns }.encode(out);
}
