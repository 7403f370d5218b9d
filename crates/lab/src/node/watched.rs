//! The simulator's own receivers, with what they deliver noted.

use super::Messages;
use crate::metrics::SharedRecord;
use anabranch_base::Instant;
use anabranch_sim::network::{Agent, Body, Context, Packet};
use anabranch_sim::transport::DatagramSink;
use anabranch_sim::transport::mptcp::MptcpSink;
use anabranch_sim::transport::tcp::{Segment, TcpSink};

/// A receiver that notes what it delivers.
pub struct Watched<A> {
    inner: A,
    record: SharedRecord,
    delivered: u64,
    /// What is carried are these; TCP and Multipath TCP alone.
    messages: Option<Messages>,
}

impl<A> Watched<A> {
    /// Notes what `inner` delivers in `record`.
    pub fn new(inner: A, record: SharedRecord) -> Self {
        Watched { inner, record, delivered: 0, messages: None }
    }

    /// Notes when `messages` are complete, too.
    #[must_use]
    pub fn carrying(self, messages: Option<Messages>) -> Self {
        Watched { messages, ..self }
    }

    /// The receiver.
    pub fn inner(&self) -> &A {
        &self.inner
    }
}

impl<X: 'static> Agent<X> for Watched<TcpSink> {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        self.inner.start(cx);
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let now = cx.now();
        let data = match &packet.body {
            Body::Tcp(Segment::Data(d)) if d.bytes > 0 => Some(*d),
            _ => None,
        };
        Agent::<X>::receive(&mut self.inner, cx, packet);
        let total = self.inner.delivered();
        let more = total - core::mem::replace(&mut self.delivered, total);
        // Only its first arrival counts.
        let data = data.filter(|_| self.inner.is_fresh());
        if more > 0 || data.is_some() {
            let mut record = self.record.borrow_mut();
            if let Some(d) = &data {
                record.travelled(d.sent, now);
            }
            if more > 0 {
                record.delivered(0, more, now);
                record.stream(more, now);
            }
            if let (Some(messages), Some(d)) = (&mut self.messages, &data) {
                messages.segment(now, d, &self.inner, &mut record);
            }
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        self.inner.timeout(cx);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Agent::<X>::next_timeout(&self.inner)
    }
}

impl<X: 'static> Agent<X> for Watched<MptcpSink> {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        self.inner.start(cx);
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let now = cx.now();
        Agent::<X>::receive(&mut self.inner, cx, packet);
        let total = self.inner.delivered();
        let more = total - core::mem::replace(&mut self.delivered, total);
        // Only what comes for the first time counts.
        let new = self.inner.arrived();
        if new.is_empty() {
            return;
        }
        let mut record = self.record.borrow_mut();
        new.iter().for_each(|unit| record.travelled(unit.sent, now));
        record.held(self.inner.held(), now);
        if more > 0 {
            record.delivered(0, more, now);
            record.stream(more, now);
        }
        if let Some(messages) = &mut self.messages {
            messages.units(now, new, self.inner.assembly().next(), &mut record);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        self.inner.timeout(cx);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Agent::<X>::next_timeout(&self.inner)
    }
}

impl<X: 'static> Agent<X> for Watched<DatagramSink> {
    fn start(&mut self, cx: &mut Context<'_, X>) {
        self.inner.start(cx);
    }

    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>) {
        let now = cx.now();
        let sent = if let Body::Datagram { sent, number, .. } = packet.body { Some((sent, number)) } else { None };
        let before = self.inner.counters().received;
        Agent::<X>::receive(&mut self.inner, cx, packet);
        let now_there = self.inner.counters().received;
        let more = now_there.bytes - before.bytes;
        // Only its first arrival counts.
        if let Some((sent, number)) = sent.filter(|_| now_there.packets > before.packets) {
            let mut record = self.record.borrow_mut();
            record.travelled(sent, now);
            record.delivered(0, more, now);
            record.packet(number, now);
        }
    }

    fn timeout(&mut self, cx: &mut Context<'_, X>) {
        self.inner.timeout(cx);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Agent::<X>::next_timeout(&self.inner)
    }
}
