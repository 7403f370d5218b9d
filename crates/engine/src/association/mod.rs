//! One association: its state, and the calls its endpoint makes.
//!
//! What it knows lies with owners, each in a folder whose fields are private to it; methods of [`Association`] lie with
//! the owner whose state they change most. Data flows one way: `receive`, an owner, `timers`, `transmit`.

mod acknowledger;
mod addresses;
mod control;
pub(crate) mod handshake;
pub(crate) mod path_table;
mod policies;
pub(crate) mod receive;
mod receiver;
mod sender;
mod settings;
mod stream_reset;
mod timers;
mod transmit;

pub(crate) use handshake::Identity;
use handshake::peer::PeerFeatures;
pub(crate) use handshake::state::State;
pub use handshake::state::{Phase, Stage};
use path_table::PathTable;
pub(crate) use policies::scratch::Workspace;
pub(crate) use policies::set::Policies;
use receiver::Receiver;
use sender::Sender;
pub use sender::undelivered::Undelivered;
pub use settings::Agreed;
pub use stream_reset::request::ReconfigError;

use crate::config::AssocConfig;
use crate::event::{CloseReason, Event};
use crate::lazy_box::LazyBox;
use crate::message::Message;
use crate::path::Path;
use crate::repair::{LostCopy, SentChunk};
use crate::stats::{AssocStats, PathStats, Tally};
use crate::transmit::Transmit;
use acknowledger::Acknowledger;
use addresses::asconf::Addresses;
pub use addresses::own::AddressError;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::asks::Counter;
use anabranch_policy::registry::Hook;
use control::ControlOut;
pub(crate) use control::Goodbye;
use handshake::Handshake;
pub use handshake::authentication::AuthKeyError;
use policies::views::Views;
use std::collections::VecDeque;
use std::sync::Arc;

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`] follows.
    #[error("the send buffer is full")]
    WouldBlock,
    /// There is no stream with this number: so many were agreed on, the smaller of ours and what the peer accepts.
    #[error(
        "there are {0} streams to send on, numbered from 0: the smaller of `limits.outbound_streams` and what the peer \
         accepts"
    )]
    InvalidStream(u16),
    /// A message has at least one byte (RFC 9260 §6.2).
    #[error("a message needs at least one byte")]
    Empty,
    /// Larger than the send buffer can ever hold, or than a packet where fragmentation is off.
    #[error("a message has at most {most} bytes here ({limit})")]
    TooLarge {
        /// The largest that is taken, bytes.
        most: u64,
        /// The setting that bounds it, or the packet, in words for a user.
        limit: &'static str,
    },
    /// The association is closing or closed.
    #[error("the association is closed")]
    Closed,
}

/// Reasons to wake up, for logs and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerReason {
    /// T1-init, T1-cookie, T2-shutdown or T5; a peer that is given up by time.
    Control,
    /// T4: ASCONF.
    Asconf,
    /// Re-configuration of streams.
    Reconfig,
    /// Delayed SACK.
    Sack,
    /// T3-rtx of a path.
    Retransmission(PathId),
    /// A probe before T3, or reordering that lasted too long.
    Loss(PathId),
    /// HEARTBEAT due or unanswered.
    Heartbeat(PathId),
    /// A path has been silent.
    Suspect(PathId),
    /// A probe of the path's largest packet is due or unanswered.
    PathMtu(PathId),
    /// The scheduler, the quality estimator or pacing asked to be woken.
    Policy,
    /// FORWARD-TSN again.
    ForwardTsn,
    /// One chunk to see whether the peer's window is still closed.
    WindowProbe,
}

/// An SCTP association over one or more paths.
pub struct Association {
    /// Shared by all associations that are configured alike.
    pub(crate) config: Arc<AssocConfig>,
    pub(crate) handshake: Handshake,
    peer: PeerFeatures,
    policies: Policies,
    views: Views,
    pub(crate) paths: PathTable,
    sender: Sender,
    receiver: Receiver,
    acknowledger: Acknowledger,
    control: ControlOut,
    addresses: Addresses,
    stream_reset: LazyBox<stream_reset::request::StreamReset>,
    events: VecDeque<Event>,
    stats: Tally,
    scratch: policies::scratch::Lent,
}

impl Association {
    /// Where the association is in its life.
    pub fn phase(&self) -> Phase {
        self.handshake.state().phase()
    }

    /// Where the association is in its life, by the names of RFC 9260 §4.
    pub fn stage(&self) -> Stage {
        self.handshake.state().stage()
    }

    /// The peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.handshake.peer_port()
    }

    /// What the peer said, or repeated, by the parameter `kind` of our list of
    /// [`own_parameters`](crate::config::Extensions::own_parameters); none before the handshake is that far.
    pub fn peer_parameter(&self, kind: u16) -> Option<&[u8]> {
        self.handshake.peer_said().iter().find(|p| p.kind == kind).and_then(|p| p.value.as_deref())
    }

    /// The next complete message, in delivery order.
    #[inline]
    pub fn recv(&mut self) -> Option<Message> {
        let (message, len, ends) = self.receiver.pop()?;
        self.stats.messages_received += u64::from(ends);
        self.stats.bytes_received += len as u64;
        self.maybe_update_window();
        Some(message)
    }

    /// Is there a message to [`recv`](Self::recv)?
    pub fn is_readable(&self) -> bool {
        self.receiver.is_readable()
    }

    /// Everything that was handed over has been acknowledged or given up.
    pub fn is_drained(&self) -> bool {
        self.sender.is_drained()
    }

    /// What fills the receive buffer: payload, and what it costs to hold it in small pieces, bytes.
    pub fn held_for_reading(&self) -> u64 {
        self.receiver.held_bytes() as u64
    }

    /// Gaps in the sequence of received TSNs: runs of missing ones below one that came.
    pub fn gaps(&self) -> usize {
        self.receiver.gaps()
    }

    /// Payload that is acknowledged and held nevertheless, because the peer may take the acknowledgement back, bytes.
    pub fn held_for_reneging(&self) -> u64 {
        self.sender.held_for_reneging()
    }

    /// Counters of the association.
    pub fn stats(&self) -> AssocStats {
        let makes = self.policies.ask(anabranch_policy::Asks::PARITY);
        AssocStats {
            parity_agreed: if makes { self.peer.makes_parity } else { self.peer.parity },
            unsent: self.sender.unsent_bytes(),
            outstanding: self.sender.outstanding_bytes(),
            abandoned: self.sender.abandoned(),
            usable_rate: self.sender.usable_rate(),
            ..self.stats.stats()
        }
    }

    /// What is known of a chunk that the peer has not acknowledged: why it left, and how often. For traces.
    pub fn sent_chunk(&self, tsn: Tsn) -> Option<SentChunk> {
        self.sender.sent_chunk(tsn)
    }

    /// From now on [`lost_copies`](Self::lost_copies) has what is taken for lost, or nothing again. Costs nothing while
    /// nothing is lost.
    pub fn note_losses(&mut self, wanted: bool) {
        self.sender.note_losses(wanted);
    }

    /// Transmissions that were taken for lost since the last call, oldest first, where
    /// [`note_losses`](Self::note_losses) asked for them; at most 65,536 are kept.
    pub fn lost_copies(&mut self) -> Vec<LostCopy> {
        self.sender.take_losses()
    }

    /// What the policies count, by their hooks and by name.
    pub fn policy_counters(&self) -> impl Iterator<Item = (Hook, Counter)> + '_ {
        self.policies.counters()
    }

    /// Paths in the order of their ids.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, PathStats)> + '_ {
        self.paths.iter().map(|p| (p.id(), self.path_stats(p)))
    }

    fn path_stats(&self, p: &Path) -> PathStats {
        PathStats {
            local: p.local().0,
            remote: p.remote(),
            state: self.config.failure.shown(p.state()),
            standby: p.access.is_standby(),
            cwnd: p.congestion.cwnd(),
            ssthresh: p.congestion.ssthresh(),
            in_flight: p.flight.bytes(),
            srtt: p.rtt.srtt(),
            rttvar: p.rtt.rttvar(),
            min_rtt: p.rtt.min_rtt(),
            last_rtt: p.rtt.last(),
            rto: self.views.rto(&self.paths, &self.policies, p.id()),
            packet_size: self.paths.packet_size(p.id()),
            discovery: p.mtu.discovery().map(|d| d.state()),
            delivery_rate: p.rate.delivery_rate(),
            capacity: p.capacity.rate(),
            one_way: p.one_way.least(),
            jitter: p.rtt.jitter(),
            frame_errors: p.access.frame_errors(),
            errors: p.health.errors(),
            counters: p.counters,
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if let Some(e) = self.events.pop_front() {
            if self.events.is_empty() {
                self.events = VecDeque::new();
            }
            return Some(e);
        }
        let abandoned = self.stats.abandoned_sent + self.stats.abandoned_unsent;
        if let Some(messages) = self.sender.newly_abandoned(abandoned) {
            return Some(Event::Abandoned { messages });
        }
        if self.receiver.is_newly_readable() {
            self.receiver.set_readable_known();
            return Some(Event::Readable);
        }
        if self.is_writable_again() {
            self.note_writable();
            return Some(Event::Writable);
        }
        None
    }

    /// Will [`Association::poll_event`] have something?
    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
            || self.sender.has_newly_abandoned(self.stats.abandoned_sent + self.stats.abandoned_unsent)
            || self.receiver.is_newly_readable()
            || self.is_writable_again()
    }

    /// The packet that comes next was marked on its way (ECN).
    pub(crate) fn set_packet_marked(&mut self, marked: bool) {
        self.acknowledger.set_packet_marked(marked);
    }

    /// A SACK waits for the next chance to leave.
    pub(crate) fn owes_sack(&self) -> bool {
        self.acknowledger.is_due()
    }

    /// Over; the user knows, and nothing is left to transmit.
    pub(crate) fn is_finished(&self) -> bool {
        self.handshake.state().phase() == Phase::Closed
            && self.control.is_empty()
            && self.events.is_empty()
            && !self.receiver.is_readable()
    }

    /// Over, but the packet that says so to the peer has not left yet.
    pub fn owes_goodbye(&self) -> bool {
        self.phase() == Phase::Closed && !self.control.is_empty()
    }

    /// Over: since when, and the last chunk, which waits to leave.
    pub(crate) fn goodbye(&self) -> Option<(Instant, Goodbye<'_>)> {
        Some((self.handshake.sent_at(), self.control.goodbye()?))
    }

    pub(crate) fn close(&mut self, why: CloseReason) {
        if self.handshake.state().phase() == Phase::Closed {
            return;
        }
        self.handshake.set_closed();
        self.acknowledger.stop();
        self.control.close();
        self.events.push_back(Event::Closed(why));
    }

    /// An event gives each path a fresh burst allowance (RFC 9260 §6.1 D).
    pub(crate) fn opportunity(&mut self) {
        self.sender.begin_opportunity(self.config.sending.max_burst, &self.policies, &mut self.paths);
    }

    /// From now on the receive buffer has so many bytes; a larger one is announced at once. What a smaller one has no
    /// room for any more is kept, and the window stays shut until it is read.
    pub fn set_receive_buffer(&mut self, bytes: usize) {
        let bytes = bytes.max(1_500);
        Arc::make_mut(&mut self.config).limits.receive_buffer = bytes;
        self.receiver.set_buffer(bytes);
        self.maybe_update_window();
    }

    /// Tells the peer when reading opened the window by a quarter of the buffer (RFC 9260 §6.2, silly window).
    fn maybe_update_window(&mut self) {
        let tells = self.acknowledger.has_any_data() && self.config.compatibility.window_updates;
        if tells && self.handshake.state().is_connected() && self.receiver.has_opened(self.paths.mtu()) {
            self.acknowledger.request();
        }
    }

    /// True when [`Association::poll_transmit`] may have something.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        transmit::poll(self, now, out)
    }
}
