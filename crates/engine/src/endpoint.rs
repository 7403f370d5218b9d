//! An endpoint: finds the association of each packet, answers what belongs to none, keeps their timers.
//!
//! A driver's loop: hand in datagrams with [`Endpoint::handle`], hand in time with [`Endpoint::handle_timeout`],
//! then drain [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`], and sleep until [`Endpoint::poll_timeout`].

mod alarms;
mod arrival;
mod cookie_echo;
mod farewells;
mod guard;
mod index;
mod init;
mod lookup;
mod peer_key;
mod slot;
mod slots;
mod stateless;
mod timeouts;

use crate::association::{Association, Identity, Phase, Policies, State};
use crate::auth::AuthParams;
use crate::config::{AssocConfig, EndpointConfig};
use crate::cookie::CookieJar;
use crate::event::Event;
use crate::message::Message;
use crate::path::LocalId;
use crate::transmit::Transmit;
use alarms::Alarms;
use anabranch_base::{Entropy, Instant, Tsn};
use anabranch_policy::registry::{PolicyError, PolicySet};
use farewells::Farewells;
pub use guard::AssocMut;
use index::{Index, Keys};
use peer_key::PeerKey;
use slot::Slot;
use slots::Slots;
use stateless::Replies;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// An association of an endpoint; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssocId(pub u64);

/// Why an association could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The profile does not fit.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is an association with this peer; the peer would take another for a restart (RFC 9260 §5.2.2).
    #[error("there is an association with this peer already")]
    Exists(AssocId),
}

/// See the module's description.
pub struct Endpoint {
    config: EndpointConfig,
    /// For accepted associations.
    accepted: Arc<AssocConfig>,
    entropy: Box<dyn Entropy>,
    jar: CookieJar,
    slots: Slots,
    keys: Keys,
    by_tag: Index,
    by_peer: Index,
    alarms: Alarms,
    /// Whom the latest packet was for, while its tag finds it.
    latest: Option<AssocId>,
    /// Room to write a cookie and the parameters of an INIT ACK.
    rooms: [Vec<u8>; 2],
    /// Room for the list of those whose time has come.
    due: Vec<AssocId>,
    ready: VecDeque<AssocId>,
    eventful: VecDeque<AssocId>,
    replies: Replies,
    farewells: Farewells,
    /// The next packet was marked on its way.
    marked: bool,
}

impl Endpoint {
    /// A new endpoint. `entropy` must be unpredictable on a real network.
    pub fn new(config: EndpointConfig, mut entropy: Box<dyn Entropy>, now: Instant) -> Self {
        let jar = CookieJar::new(entropy.as_mut(), now);
        Endpoint {
            accepted: Arc::new(config.association.clone()),
            config,
            entropy,
            keys: Keys::new(&jar.derived()),
            jar,
            slots: Slots::default(),
            by_tag: Index::default(),
            by_peer: Index::default(),
            alarms: Alarms::default(),
            latest: None,
            rooms: [Vec::new(), Vec::new()],
            due: Vec::new(),
            ready: VecDeque::new(),
            eventful: VecDeque::new(),
            replies: Replies::default(),
            farewells: Farewells::default(),
            marked: false,
        }
    }

    /// Peers may begin associations with these settings from now on, or none may.
    pub fn set_accept(&mut self, association: Option<AssocConfig>) {
        self.config.accept = association.is_some();
        if let Some(a) = association {
            self.accepted = Arc::new(a);
        }
    }

    /// Our SCTP port.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// Begins an association over its first path. Further paths join by [`Association::add_path`].
    ///
    /// # Errors
    /// A profile that cannot be built, or a peer with which there is an association.
    pub fn connect(
        &mut self,
        now: Instant,
        config: impl Into<Arc<AssocConfig>>,
        local: LocalId,
        remote: SocketAddr,
        peer_port: u16,
    ) -> Result<AssocId, ConnectError> {
        if let Some(id) = self.of_peer(&PeerKey::new(local, remote, peer_port)) {
            return Err(ConnectError::Exists(id));
        }
        let config = config.into();
        config.check()?;
        let policies = Policies::of_profile(&config)?;
        Ok(self.connect_as(now, config, policies, local, remote, peer_port))
    }

    /// Is there an association with this address and SCTP port of a peer from `local`? Another INIT from there would
    /// restart it.
    pub fn is_taken(&self, local: LocalId, remote: SocketAddr, peer_port: u16) -> bool {
        self.of_peer(&PeerKey::new(local, remote, peer_port)).is_some()
    }

    /// Connects with policies that were built elsewhere; the profile of `config` is not looked at.
    pub fn connect_with(
        &mut self,
        now: Instant,
        config: impl Into<Arc<AssocConfig>>,
        policies: PolicySet,
        local: LocalId,
        remote: SocketAddr,
        peer_port: u16,
    ) -> AssocId {
        let config = config.into();
        let policies = Policies::of_user(policies, &config.timers);
        self.connect_as(now, config, policies, local, remote, peer_port)
    }

    fn connect_as(
        &mut self,
        now: Instant,
        config: Arc<AssocConfig>,
        policies: Policies,
        local: LocalId,
        remote: SocketAddr,
        peer_port: u16,
    ) -> AssocId {
        let tag = self.new_tag();
        let identity = Identity {
            local_port: self.config.port,
            peer_port,
            local_tag: tag,
            peer_tag: 0,
            local_initial: Tsn(self.entropy.u32()),
            local_auth: AuthParams::new(self.entropy.as_mut()),
            local,
            remote,
        };
        let a = Association::new(config, policies, identity, self.entropy.as_mut(), State::CookieWait);
        let mut slot = Slot::with(a);
        slot.association.start(now);
        self.insert(slot)
    }

    /// An association, to look at.
    pub fn association(&self, id: AssocId) -> Option<&Association> {
        self.slots.get(&id).map(|s| &s.association)
    }

    /// An association, to act on. Its timers are looked at again when the guard goes.
    pub fn association_mut(&mut self, id: AssocId) -> Option<AssocMut<'_>> {
        self.slots.work_on(&id).is_some().then_some(AssocMut::new(self, id))
    }

    /// Ids of all associations.
    pub fn associations(&self) -> impl Iterator<Item = AssocId> + '_ {
        self.slots.keys()
    }

    /// Keeps the indices true after anything happened to an association.
    ///
    /// Its timers are looked at when it has nothing more to transmit, which every driver asks before it sleeps.
    fn wake(&mut self, id: AssocId) {
        let Some(s) = self.slots.get_mut(&id) else { return };
        s.wake(id, &mut self.ready, &mut self.eventful);
        if !s.is_listed() {
            self.index_addresses(id);
        }
    }

    /// The next packet to send, built into `out`; false when there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        if self.ready.is_empty() && self.replies.is_empty() { false } else { self.transmit(now, out) }
    }

    // Into each loop that drains it: a packet costs the simulator 3 % less so.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        if !self.replies.is_empty() && self.replies.pop(out) {
            return true;
        }
        while let Some(&id) = self.ready.front() {
            let (mut made, mut finished) = (false, false);
            if let Some(s) = self.slots.work_on(&id) {
                made = s.association.poll_transmit(now, out);
                if made && !s.association.is_spent(now) {
                    return true;
                }
                s.ready = false;
                // Sending makes events too: messages given up, paths taken over.
                s.announce(id, &mut self.eventful);
                finished = s.association.is_finished();
                let (next, noted) = (s.association.next_timeout(), s.timeout);
                self.retime(id, next, noted);
            }
            self.ready.pop_front();
            if finished {
                self.forget(id);
            }
            if made {
                return true;
            }
        }
        false
    }

    /// Nothing to transmit and no event: nothing happened since [`Endpoint::poll_transmit`] and
    /// [`Endpoint::poll_event`] last had nothing. A driver that asks this need not drain both once more to know.
    pub fn is_settled(&self) -> bool {
        self.ready.is_empty() && self.eventful.is_empty() && self.replies.is_empty()
    }

    /// Reads up to `most` messages of an association in delivery order; how many there were.
    ///
    /// Like [`Association::recv`] through [`Endpoint::association_mut`], but that there is something to
    /// transmit afterwards only when the window has to be announced or the association may be over.
    pub fn read(&mut self, id: AssocId, most: usize, mut take: impl FnMut(Message)) -> usize {
        let Some(s) = self.slots.get_mut(&id) else { return 0 };
        let a = &mut s.association;
        let owed = a.owes_sack();
        let mut n = 0;
        while n < most
            && let Some(m) = a.recv()
        {
            take(m);
            n += 1;
        }
        if a.owes_sack() != owed || a.phase() == Phase::Closed {
            self.wake(id);
        }
        n
    }

    /// May [`Endpoint::poll_event`] have one?
    #[inline]
    pub fn has_event(&self) -> bool {
        !self.eventful.is_empty()
    }

    /// The next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(AssocId, Event)> {
        if self.eventful.is_empty() { None } else { self.take_event() }
    }

    fn take_event(&mut self) -> Option<(AssocId, Event)> {
        while let Some(&id) = self.eventful.front() {
            let mut finished = false;
            if let Some(s) = self.slots.get_mut(&id) {
                if let Some(e) = s.association.poll_event() {
                    // The last one, most often. One that may be over is forgotten when its last event has been seen.
                    if !s.association.has_event() && s.association.phase() != Phase::Closed {
                        s.eventful = false;
                        self.eventful.pop_front();
                    }
                    return Some((id, e));
                }
                s.eventful = false;
                finished = s.association.is_finished();
            }
            self.eventful.pop_front();
            if finished {
                self.forget(id);
            }
        }
        None
    }
}
