//! `dcsctp` as an end.

use crate::content::PPID;
use crate::ours::PORT;
use crate::peer::{Note, Outgoing, Peer, Setup};
use anabranch_base::{Duration, Instant};
use bytes::Bytes;
use dcsctp::api as dc;

pub struct Dcsctp {
    pub socket: Box<dyn dc::DcSctpSocket>,
    out: Vec<Bytes>,
    notes: Vec<Note>,
    messages: u64,
}

fn time(now: Instant) -> dc::SocketTime {
    dc::SocketTime::zero() + std::time::Duration::from_nanos(now.as_nanos())
}

fn ids(streams: &[dc::StreamId]) -> Vec<u16> {
    streams.iter().map(|s| s.0).collect()
}

impl Dcsctp {
    /// Did both sides agree on I-DATA?
    pub fn interleaves(&self) -> bool {
        self.socket.get_metrics().is_some_and(|m| m.uses_message_interleaving)
    }

    fn drain(&mut self) {
        while let Some(e) = self.socket.poll_event() {
            let note = match e {
                dc::SocketEvent::SendPacket(p) => {
                    self.out.push(p.into());
                    continue;
                }
                dc::SocketEvent::OnConnected() => Note::Connected,
                dc::SocketEvent::OnConnectionRestarted() => Note::Restarted,
                dc::SocketEvent::OnClosed() => Note::Closed("closed".into()),
                dc::SocketEvent::OnAborted(kind, text) => Note::Closed(format!("aborted: {kind:?} {text}")),
                dc::SocketEvent::OnError(kind, text) => Note::Complaint(format!("{kind:?} {text}")),
                dc::SocketEvent::OnStreamsResetPerformed(s) => Note::Reset { incoming: false, streams: ids(&s) },
                dc::SocketEvent::OnIncomingStreamReset(s) => Note::Reset { incoming: true, streams: ids(&s) },
                dc::SocketEvent::OnStreamsResetFailed(_) => Note::ResetFailed,
                dc::SocketEvent::OnLifecycleMessageExpired(_) | dc::SocketEvent::OnLifecycleMessageMaybeExpired(_) => {
                    Note::Abandoned(1)
                }
                _ => continue,
            };
            self.notes.push(note);
        }
    }
}

impl Peer for Dcsctp {
    const NAME: &'static str = "dcsctp";

    fn new(setup: &Setup, opens: bool, _life: u64, now: Instant) -> Self {
        let options = dc::Options {
            local_port: PORT,
            remote_port: PORT,
            mtu: 1_200,
            enable_message_interleaving: setup.interleaving,
            max_receiver_window_buffer_size: setup.receive_buffer,
            zero_checksum_alternate_error_detection_method: if setup.zero_checksum {
                dc::ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS
            } else {
                dc::ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE
            },
            ..dc::Options::default()
        };
        let mut socket = dcsctp::new_socket("them", &options);
        socket.advance_time(time(now));
        if opens {
            socket.connect();
        }
        Dcsctp { socket, out: Vec::new(), notes: Vec::new(), messages: 0 }
    }
    fn input(&mut self, now: Instant, packet: Bytes) {
        self.socket.advance_time(time(now));
        self.socket.handle_input(&packet);
    }
    fn send(&mut self, now: Instant, m: &Outgoing) -> bool {
        self.socket.advance_time(time(now));
        let options = dc::SendOptions {
            unordered: m.unordered,
            lifetime: m.lifetime.map(|l| std::time::Duration::from_nanos(l.as_nanos())),
            max_retransmissions: m.retransmissions,
            lifecycle_id: dc::LifecycleId::new(self.messages + 1),
        };
        let message = dc::Message::new(dc::StreamId(m.stream), dc::PpId(PPID), m.payload.to_vec());
        let taken = self.socket.send(message, &options).is_ok();
        self.messages += u64::from(taken);
        taken
    }
    fn outputs(&mut self, now: Instant, out: &mut Vec<Bytes>) {
        self.socket.advance_time(time(now));
        self.drain();
        out.append(&mut self.out);
    }
    fn receive(&mut self) -> Option<(u16, u32, Bytes)> {
        let m = self.socket.get_next_message()?;
        Some((m.stream_id.0, m.ppid.0, m.payload.into()))
    }
    fn notes(&mut self, out: &mut Vec<Note>) {
        self.drain();
        out.append(&mut self.notes);
    }
    fn timeout(&self) -> Option<Instant> {
        let at = self.socket.poll_timeout();
        let ns = (at - dc::SocketTime::zero()).as_nanos();
        (at != dc::SocketTime::infinite_future()).then(|| Instant::ZERO + Duration::from_nanos(ns as u64))
    }
    fn on_timeout(&mut self, now: Instant) {
        self.socket.advance_time(time(now));
    }
    fn shutdown(&mut self, now: Instant) {
        self.socket.advance_time(time(now));
        self.socket.shutdown();
    }
    fn abort(&mut self, now: Instant) {
        self.socket.advance_time(time(now));
        self.socket.close();
    }
    fn reset(&mut self, _now: Instant, streams: &[u16]) {
        let streams: Vec<_> = streams.iter().map(|s| dc::StreamId(*s)).collect();
        self.socket.reset_streams(&streams).expect("agreed");
    }
}
