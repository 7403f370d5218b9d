//! Agents on hosts: a transport, a source, a sink.

use super::packet::Parcel;
use super::routes::Routes;
use super::{Address, AgentId, Line, Packet};
use crate::link::{FrameReports, Frames};
use anabranch_base::Instant;
use core::any::Any;

/// One end of a conversation, in the engine's own shape: inputs with their time, outputs asked for.
///
/// `X` is what packets of transports outside this crate carry.
pub trait Agent<X>: Any {
    /// Its start time has come. Called once, before anything else.
    fn start(&mut self, cx: &mut Context<'_, X>);

    /// A packet for it has arrived. What it leaves of it is dropped.
    fn receive(&mut self, cx: &mut Context<'_, X>, packet: &mut Packet<X>);

    /// The time named by [`next_timeout`](Self::next_timeout) has come.
    fn timeout(&mut self, cx: &mut Context<'_, X>);

    /// When to call [`timeout`](Self::timeout); asked after each of the calls above.
    fn next_timeout(&self) -> Option<Instant>;
}

/// What an agent may use while it is called.
pub struct Context<'a, X> {
    pub(super) now: Instant,
    pub(super) id: AgentId,
    pub(super) out: &'a mut Vec<Parcel<X>>,
    pub(super) spare: &'a mut Vec<Parcel<X>>,
    pub(super) beneath: Beneath<'a, X>,
}

/// The link layer beneath a host.
pub(super) struct Beneath<'a, X> {
    pub links: &'a mut [Line<X>],
    pub routes: &'a Routes,
}

impl<X> Context<'_, X> {
    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The agent that is called.
    pub fn id(&self) -> AgentId {
        self.id
    }

    /// Sends a packet from one of the host's addresses. It enters that address's link when the call returns.
    #[inline(always)]
    pub fn send(&mut self, packet: Packet<X>) {
        self.out.push(Parcel::of(packet, self.spare));
    }
}

impl<X: Clone + Send + 'static> Context<'_, X> {
    /// What the link layer says of the link that leaves from `address`, as a driver would: what kind of link it is, and
    /// its frames by now.
    pub fn frames(&mut self, address: Address) -> Option<(FrameReports, Frames)> {
        let link = &mut self.beneath.links.get_mut(self.beneath.routes.first(address)?.0 as usize)?.link;
        link.advance(self.now);
        Some((link.config().frames, link.frames()))
    }
}

/// Where a conversation goes: an address and the agent behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Peer {
    /// Address of the agent's host.
    pub address: Address,
    /// The agent.
    pub agent: AgentId,
}
