//! `sctp-proto` as an end.
//!
//! It has streams both ways at once, as WebRTC's data channels do: a stream that the other end resets ends here too.
//! Its reliability belongs to a stream, not to a message.

use crate::content::PPID;
use crate::ours::PORT;
use crate::peer::{Note, Outgoing, Peer, Setup};
use anabranch_base::{Duration, Instant};
use bytes::Bytes;
use sctp_proto as sp;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

pub struct SctpProto {
    began: std::time::Instant,
    endpoint: sp::Endpoint,
    association: Option<(sp::AssociationHandle, sp::Association)>,
    streams: Vec<u16>,
    ready: VecDeque<(u16, u32, Bytes)>,
    notes: Vec<Note>,
    send_buffer: usize,
}

fn remote() -> SocketAddr {
    ([192, 0, 2, 1], PORT).into()
}

impl SctpProto {
    fn time(&self, now: Instant) -> std::time::Instant {
        self.began + std::time::Duration::from_nanos(now.as_nanos())
    }

    fn stream(&mut self, id: u16) -> Option<sp::Stream<'_>> {
        let a = &mut self.association.as_mut()?.1;
        if a.stream(id).is_err() {
            a.open_stream(id, sp::PayloadProtocolIdentifier::Binary).ok()?;
        }
        if !self.streams.contains(&id) {
            self.streams.push(id);
        }
        a.stream(id).ok()
    }

    /// Takes over what it has to tell: messages before the events that end their streams.
    fn drain(&mut self) {
        let Some((_, a)) = &mut self.association else { return };
        loop {
            while let Some(s) = a.accept_stream() {
                let id = s.stream_identifier();
                if !self.streams.contains(&id) {
                    self.streams.push(id);
                }
            }
            for id in &self.streams {
                let Ok(mut s) = a.stream(*id) else { continue };
                while let Ok(Some(chunks)) = s.read() {
                    let mut m = vec![0; chunks.len()];
                    chunks.read(&mut m).expect("room for all");
                    let ppid = if chunks.ppi == sp::PayloadProtocolIdentifier::Binary { PPID } else { 0 };
                    self.ready.push_back((*id, ppid, m.into()));
                }
            }
            let Some(e) = a.poll() else { break };
            match e {
                sp::Event::Connected => self.notes.push(Note::Connected),
                sp::Event::AssociationLost { reason } | sp::Event::HandshakeFailed { reason } => {
                    self.notes.push(Note::Closed(reason.to_string()));
                }
                sp::Event::Stream(sp::StreamEvent::Finished { id }) => {
                    self.notes.push(Note::Reset { incoming: true, streams: vec![id] });
                }
                sp::Event::Stream(sp::StreamEvent::ResetComplete { id }) => {
                    self.notes.push(Note::Reset { incoming: false, streams: vec![id] });
                }
                sp::Event::Stream(sp::StreamEvent::ResetFailed { .. }) => self.notes.push(Note::ResetFailed),
                _ => {}
            }
        }
    }
}

impl Peer for SctpProto {
    const NAME: &'static str = "sctp-proto";

    fn new(setup: &Setup, opens: bool, _life: u64, _now: Instant) -> Self {
        let transport = || {
            let t = sp::TransportConfig::default().with_max_receive_buffer_size(setup.receive_buffer as u32);
            Arc::new(t.with_local_port(PORT).with_remote_port(PORT))
        };
        let mut config = sp::EndpointConfig::new();
        config.max_payload_size(1_200 - 28);
        let mut server = sp::ServerConfig::new();
        server.transport = transport();
        let mut peer = SctpProto {
            began: std::time::Instant::now(),
            endpoint: sp::Endpoint::new(Arc::new(config), Some(Arc::new(server))),
            association: None,
            streams: Vec::new(),
            ready: VecDeque::new(),
            notes: Vec::new(),
            send_buffer: 1 << 20,
        };
        if opens {
            let mut client = sp::ClientConfig::new();
            client.transport = transport();
            peer.association = Some(peer.endpoint.connect(client, remote()).expect("the first"));
        }
        peer
    }
    fn input(&mut self, now: Instant, packet: Bytes) {
        let at = self.time(now);
        match self.endpoint.handle(at, remote(), None, None, packet) {
            Some((h, sp::DatagramEvent::NewAssociation(a))) => self.association = Some((h, a)),
            Some((_, sp::DatagramEvent::AssociationEvent(e))) => {
                if let Some((_, a)) = &mut self.association {
                    a.handle_event(e);
                }
            }
            None => {}
        }
    }
    fn send(&mut self, _now: Instant, m: &Outgoing) -> bool {
        let room = self.send_buffer;
        let Some(mut s) = self.stream(m.stream) else { return false };
        let (kind, value) = match (m.lifetime, m.retransmissions) {
            (Some(l), _) => (sp::ReliabilityType::Timed, l.as_millis() as u32),
            (None, Some(n)) => (sp::ReliabilityType::Rexmit, u32::from(n)),
            (None, None) => (sp::ReliabilityType::Reliable, 0),
        };
        s.set_reliability_params(m.unordered, kind, value).expect("open");
        s.buffered_amount().expect("open") + m.payload.len() <= room
            && s.write_sctp(&m.payload, sp::PayloadProtocolIdentifier::Binary).is_ok()
    }
    fn outputs(&mut self, now: Instant, out: &mut Vec<Bytes>) {
        let at = self.time(now);
        self.drain();
        // What it tells its endpoint is that the association is over, as soon as it wants to shut down: its endpoint
        // would then know no more whose the answer is. Both live as long as the test.
        let mut take = |t: sp::Transmit| {
            if let sp::Payload::RawEncode(packets) = t.payload {
                out.extend(packets);
            }
        };
        while let Some(t) = self.endpoint.poll_transmit() {
            take(t);
        }
        if let Some((_, a)) = &mut self.association {
            while let Some(t) = a.poll_transmit(at) {
                take(t);
            }
        }
    }
    fn receive(&mut self) -> Option<(u16, u32, Bytes)> {
        self.drain();
        self.ready.pop_front()
    }
    fn notes(&mut self, out: &mut Vec<Note>) {
        self.drain();
        out.append(&mut self.notes);
    }
    fn timeout(&self) -> Option<Instant> {
        let at = self.association.as_ref()?.1.poll_timeout()?;
        let ns = at.saturating_duration_since(self.began).as_nanos();
        Some(Instant::ZERO + Duration::from_nanos(ns as u64))
    }
    fn on_timeout(&mut self, now: Instant) {
        let at = self.time(now);
        if let Some((_, a)) = &mut self.association {
            a.handle_timeout(at);
        }
    }
    fn shutdown(&mut self, _now: Instant) {
        self.association.as_mut().expect("there is one").1.shutdown().expect("established");
    }
    fn abort(&mut self, _now: Instant) {
        unreachable!("sctp-proto cannot be asked to send ABORT");
    }
    fn reset(&mut self, _now: Instant, streams: &[u16]) {
        for id in streams {
            self.stream(*id).expect("open").close().expect("agreed");
        }
    }
}
