//! Packets of a simulated network.

use super::{Address, AgentId, Peer};
use crate::fetch::fetch;
use crate::transport::mptcp::MptcpParcel;
use crate::transport::tcp::Segment;
use anabranch_base::Instant;

/// What the bits of RFC 3168 in the IP header say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender does not want marks.
    #[default]
    No,
    /// A queue may mark it: ECT(0).
    Able,
    /// A queue has marked it: CE.
    Marked,
}

/// A packet on its way.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet<X> {
    /// Address it left from.
    pub source: Address,
    /// Address it goes to.
    pub destination: Address,
    /// The agent it is for, at the destination.
    pub to: AgentId,
    /// The agent that sent it; the network fills it in.
    pub from: AgentId,
    /// Number of the packet in this network, from 0; the network fills it in.
    pub number: u64,
    /// Length in bytes, IP header included.
    pub size: u32,
    /// May queues mark it, and has one?
    pub ecn: Ecn,
    /// What it carries.
    pub body: Body<X>,
}

/// What a packet carries.
#[derive(Clone, PartialEq, Debug)]
pub enum Body<X> {
    /// A datagram of a traffic source: its number in the flow and when it left.
    Datagram {
        /// Number in the flow, from 0.
        number: u64,
        /// When it left.
        sent: Instant,
        /// How many of its bytes are headers.
        header: u32,
    },
    /// A segment of one of this crate's TCPs.
    Tcp(Segment),
    /// A segment of this crate's Multipath TCP.
    Mptcp(MptcpParcel),
    /// A packet of a transport outside this crate.
    Other(X),
    /// What a link has damaged; in a box of its own, since it is rare and packets are to stay small.
    Damaged(Box<Damaged<X>>),
}

/// A body that is not what it was.
#[derive(Clone, PartialEq, Debug)]
pub struct Damaged<X> {
    /// The body as its host had sent it.
    pub body: Body<X>,
    /// Bits that links have flipped, from the IP header's first on, each once.
    pub flips: Vec<u32>,
}

impl<X> Body<X> {
    /// What was sent, and the bits of the packet that are wrong.
    pub fn as_sent(&self) -> (&Body<X>, &[u32]) {
        match self {
            Body::Damaged(d) => (&d.body, &d.flips),
            whole => (whole, &[]),
        }
    }
}

impl<X> Packet<X> {
    /// A packet from `source` to `peer`.
    pub fn new(source: Address, peer: Peer, size: u32, body: Body<X>) -> Self {
        let Peer { address: destination, agent: to } = peer;
        Packet { source, destination, to, from: AgentId(0), number: 0, size, ecn: Ecn::No, body }
    }
}

/// A packet in a box of its own, which is what links pass on; the boxes serve again.
#[derive(Clone, Debug)]
pub struct Parcel<X>(Box<Slot<X>>);

/// A line of a cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Slot<X>(Option<Packet<X>>);

impl<X> Parcel<X> {
    /// The packet, until it has reached its agent.
    #[inline]
    pub fn packet(&self) -> Option<&Packet<X>> {
        self.0.0.as_ref()
    }

    /// Has the cache fetch the packet.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch::<1, _>(&*self.0);
    }

    /// Marks the packet if its sender wants marks; false otherwise.
    pub(super) fn mark(&mut self) -> bool {
        let able = self.packet_mut().filter(|p| p.ecn != Ecn::No);
        able.map(|p| p.ecn = Ecn::Marked).is_some()
    }

    /// Notes what a link has damaged. A bit that is flipped twice is right again.
    pub(super) fn flip(&mut self, flips: &[u32]) {
        let Some(packet) = self.packet_mut() else { return };
        let nothing = Body::Datagram { number: 0, sent: Instant::ZERO, header: 0 };
        let mut damaged = match core::mem::replace(&mut packet.body, nothing) {
            Body::Damaged(damaged) => damaged,
            body => Box::new(Damaged { body, flips: Vec::new() }),
        };
        for bit in flips {
            match damaged.flips.iter().position(|b| b == bit) {
                Some(again) => drop(damaged.flips.swap_remove(again)),
                None => damaged.flips.push(*bit),
            }
        }
        packet.body = if damaged.flips.is_empty() { damaged.body } else { Body::Damaged(damaged) };
    }

    #[inline]
    pub(super) fn packet_mut(&mut self) -> Option<&mut Packet<X>> {
        self.0.0.as_mut()
    }

    /// Puts a packet into a box that served before, or into a new one. Inlined, so that it is written there at once.
    #[inline(always)]
    pub(super) fn of(packet: Packet<X>, spare: &mut Vec<Parcel<X>>) -> Self {
        match spare.pop() {
            Some(mut parcel) => {
                parcel.0.0 = Some(packet);
                parcel
            }
            None => Parcel(Box::new(Slot(Some(packet)))),
        }
    }

    /// Drops the packet and keeps the box.
    #[inline]
    pub(super) fn empty(mut self, spare: &mut Vec<Parcel<X>>) {
        self.0.0 = None;
        spare.push(self);
    }
}
