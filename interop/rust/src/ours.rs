//! Our engine as an end.

use crate::content::PPID;
use crate::peer::{Note, Outgoing, Peer, Setup};
use anabranch_base::{Instant, RandomStream, StreamId};
use anabranch_engine::{
    AssocConfig, AssocId, AssocMut, Endpoint, EndpointConfig, Event, LocalId, OwnParameter, SendOptions, Transmit,
};
use anabranch_policy::registry::Profile;
use anabranch_wire::Verify;
use bytes::Bytes;
use std::net::SocketAddr;

/// SCTP port of all ends: that of WebRTC, which sctp-proto uses by default.
pub const PORT: u16 = 5_000;
/// DTLS below SCTP (RFC 9653 §6).
const DTLS: u32 = 1;

pub struct Ours {
    pub endpoint: Endpoint,
    pub id: Option<AssocId>,
    transmit: Transmit,
    /// First sequence numbers after a reset, as they came.
    pub sequence: Vec<(u16, Option<u16>)>,
}

fn remote() -> SocketAddr {
    ([198, 51, 100, 1], PORT).into()
}

impl Ours {
    pub fn config(setup: &Setup) -> AssocConfig {
        let mut c = AssocConfig::new(Profile::named(setup.profile).expect("registered"));
        c.extensions.interleaving = setup.interleaving;
        c.extensions.error_detection = setup.zero_checksum.then_some(DTLS);
        c.limits.receive_buffer = setup.receive_buffer;
        c.extensions.stream_reconfiguration = true;
        // The media hint: strangers skip it without a word in INIT, and those here do so in every test.
        c.extensions.own_parameters = vec![OwnParameter::said(0xbf43, vec![1, 3, 0, 1, 2])];
        c
    }

    pub fn association(&mut self) -> Option<AssocMut<'_>> {
        self.id = self.id.or_else(|| self.endpoint.associations().last());
        self.endpoint.association_mut(self.id?)
    }
}

impl Peer for Ours {
    const NAME: &'static str = "anabranch";

    fn new(setup: &Setup, opens: bool, life: u64, now: Instant) -> Self {
        let mut c = EndpointConfig::new(PORT, Ours::config(setup));
        c.accept = !opens;
        let entropy = RandomStream::named(setup.seed + 1_000 * life, "interop");
        let endpoint = Endpoint::new(c, Box::new(entropy), now);
        let mut ours = Ours { endpoint, id: None, transmit: Transmit::to_be_written(), sequence: Vec::new() };
        if opens {
            let id = ours.endpoint.connect(now, Ours::config(setup), LocalId(0), remote(), PORT);
            ours.id = Some(id.expect("the first"));
        }
        ours
    }
    fn input(&mut self, now: Instant, packet: Bytes) {
        self.endpoint.handle(now, LocalId(0), remote(), &packet, Verify::Checksum);
    }
    fn send(&mut self, now: Instant, m: &Outgoing) -> bool {
        let options = SendOptions {
            stream: StreamId(m.stream),
            unordered: m.unordered,
            ppid: PPID,
            deadline: m.lifetime.map(|l| now + l),
            max_retransmissions: m.retransmissions,
            ..SendOptions::default()
        };
        self.association().is_some_and(|mut a| a.send(now, options, m.payload.clone()).is_ok())
    }
    fn outputs(&mut self, now: Instant, out: &mut Vec<Bytes>) {
        while self.endpoint.poll_transmit(now, &mut self.transmit) {
            let mut bytes = Vec::new();
            self.transmit.packet.write_to(&mut bytes);
            out.push(bytes.into());
        }
    }
    fn receive(&mut self) -> Option<(u16, u32, Bytes)> {
        let m = self.association()?.recv()?;
        self.sequence.push((m.stream.0, m.ssn.map(|s| s.0)));
        Some((m.stream.0, m.ppid, m.payload.into_bytes()))
    }
    fn notes(&mut self, out: &mut Vec<Note>) {
        while let Some((_, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected => out.push(Note::Connected),
                Event::Restarted => out.push(Note::Restarted),
                Event::Abandoned { messages } => out.push(Note::Abandoned(messages)),
                Event::StreamsReset { streams, incoming } => {
                    out.push(Note::Reset { incoming, streams: streams.iter().map(|s| s.0).collect() });
                }
                Event::ReconfigFailed { .. } => out.push(Note::ResetFailed),
                Event::Closed(reason) => out.push(Note::Closed(reason.to_string())),
                _ => {}
            }
        }
    }
    fn timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
    fn on_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
    fn shutdown(&mut self, now: Instant) {
        self.association().expect("there is one").shutdown(now);
    }
    fn abort(&mut self, now: Instant) {
        self.association().expect("there is one").abort(now, b"interop");
    }
    fn reset(&mut self, now: Instant, streams: &[u16]) {
        let streams: Vec<_> = streams.iter().map(|s| StreamId(*s)).collect();
        self.association().expect("there is one").reset_streams(now, &streams, true, false).expect("agreed");
    }
}
