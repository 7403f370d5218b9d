//! An endpoint: finds the association of each packet, answers what belongs to none, keeps their timers.
//!
//! A driver's loop: hand in datagrams with [`Endpoint::handle`], hand in time with [`Endpoint::handle_timeout`],
//! then drain [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`], and sleep until [`Endpoint::poll_timeout`].

mod alarms;
mod arrival;
mod cookie_echo;
mod index;
mod init;
mod peer_key;
mod slots;
mod stateless;

use crate::association::{Association, Identity, Phase, State};
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
use index::{Index, Keys};
use peer_key::PeerKey;
use slots::Slots;
use smallvec::SmallVec;
use stateless::Replies;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
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

struct Slot {
    association: Association,
    /// What counts of it in `alarms`.
    timeout: Option<Instant>,
    ready: bool,
    eventful: bool,
    /// What stands for it in `by_peer`, and the count of address changes when that was made.
    hashes: SmallVec<[u32; 4]>,
    hashes_of: Option<u32>,
}

impl Slot {
    /// In its place at once: an association is too large to be moved about.
    #[inline]
    fn with(association: Association) -> Box<Slot> {
        let slot = Slot {
            association,
            timeout: None,
            ready: false,
            eventful: false,
            hashes: SmallVec::new(),
            hashes_of: None,
        };
        Box::write(Box::new_uninit(), slot)
    }

    /// There may be something to send, and an event.
    fn wake(&mut self, id: AssocId, ready: &mut VecDeque<AssocId>, eventful: &mut VecDeque<AssocId>) {
        if !self.ready {
            self.ready = true;
            ready.push_back(id);
        }
        self.announce(id, eventful);
    }

    /// There may be an event.
    fn announce(&mut self, id: AssocId, eventful: &mut VecDeque<AssocId>) {
        if !self.eventful && self.association.has_event() {
            self.eventful = true;
            eventful.push_back(id);
        }
    }

    /// It lives, and is known under the addresses that it has.
    fn is_listed(&self) -> bool {
        self.hashes_of == Some(self.association.paths.addresses_changed()) && self.association.phase() != Phase::Closed
    }

    fn has(&self, key: &PeerKey) -> bool {
        let a = &self.association;
        a.paths
            .iter()
            .any(|p| !p.access.is_disowned() && PeerKey::new(p.local(), p.remote(), a.handshake.peer_port()) == *key)
    }
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
        let policies = config.profile.build(config.seed)?;
        let id = self.connect_with(now, config, policies, local, remote, peer_port);
        if let Some(s) = self.slots.get_mut(&id) {
            s.association.set_own_policies(false);
        }
        Ok(id)
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
        let a = Association::new(config.into(), policies, identity, self.entropy.as_mut(), State::CookieWait);
        let mut slot = Slot::with(a);
        slot.association.set_own_policies(true);
        slot.association.start(now);
        self.insert(slot)
    }

    fn insert(&mut self, slot: Box<Slot>) -> AssocId {
        let tag = slot.association.handshake.local_tag();
        let id = self.slots.insert(slot);
        self.note_tag(tag, id);
        self.wake(id);
        id
    }

    /// The association whose tag this is.
    fn of_tag(&self, tag: u32) -> Option<AssocId> {
        let is_it = |at| self.slots.at(at).is_some_and(|s| s.association.handshake.local_tag() == tag);
        Some(self.slots.id_at(self.by_tag.find(self.keys.of_tag(tag), is_it)?))
    }

    fn note_tag(&mut self, tag: u32, id: AssocId) {
        self.latest = None;
        if let Some(before) = self.of_tag(tag) {
            self.by_tag.remove(self.keys.of_tag(tag), before.place());
        }
        self.by_tag.insert(self.keys.of_tag(tag), id.place());
    }

    /// The association that is known under this address.
    fn of_peer(&self, key: &PeerKey) -> Option<AssocId> {
        let is_it = |at| self.slots.at(at).is_some_and(|s| s.has(key));
        Some(self.slots.id_at(self.by_peer.find(self.keys.of_peer(key), is_it)?))
    }

    /// Makes an association known under the addresses of all its paths, and one that is over under none: what still
    /// comes for it is out of the blue. What another holds stays with it: a peer that lists the address of another
    /// gains nothing.
    #[cold]
    fn index_addresses(&mut self, id: AssocId) {
        self.latest = None;
        let Some(s) = self.slots.get_mut(&id) else { return };
        for hash in s.hashes.drain(..) {
            self.by_peer.remove(hash, id.place());
        }
        if s.association.phase() == Phase::Closed {
            self.by_tag.remove(self.keys.of_tag(s.association.handshake.local_tag()), id.place());
            return;
        }
        s.hashes_of = Some(s.association.paths.addresses_changed());
        for i in 0..s.association.paths.len() {
            let Some(s) = self.slots.get(&id) else { return };
            let Some(p) = s.association.paths.get(i) else { return };
            if p.access.is_disowned() {
                continue;
            }
            let key = PeerKey::new(p.local(), p.remote(), s.association.handshake.peer_port());
            if self.of_peer(&key).is_none() {
                let hash = self.keys.of_peer(&key);
                self.by_peer.insert(hash, id.place());
                if let Some(s) = self.slots.get_mut(&id) {
                    s.hashes.push(hash);
                }
            }
        }
    }

    fn new_tag(&mut self) -> u32 {
        loop {
            let t = self.entropy.u32();
            if t != 0 && self.of_tag(t).is_none() {
                return t;
            }
        }
    }

    /// An association, to look at.
    pub fn association(&self, id: AssocId) -> Option<&Association> {
        self.slots.get(&id).map(|s| &s.association)
    }

    /// An association, to act on. Its timers are looked at again when the guard goes.
    pub fn association_mut(&mut self, id: AssocId) -> Option<AssocMut<'_>> {
        self.slots.work_on(&id).is_some().then_some(AssocMut { endpoint: self, id, touched: false })
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

    fn forget(&mut self, id: AssocId) {
        let Some(s) = self.slots.remove(&id) else { return };
        self.latest = None;
        for hash in s.hashes {
            self.by_peer.remove(hash, id.place());
        }
        self.by_tag.remove(self.keys.of_tag(s.association.handshake.local_tag()), id.place());
        self.settle_alarms();
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

    /// An association wants to be woken at `next`, which was `noted`.
    #[inline]
    fn retime(&mut self, id: AssocId, next: Option<Instant>, noted: Option<Instant>) {
        // A timer that moved away, as T3 does with each acknowledgement, is found out when the old time comes.
        let sooner = match (next, noted) {
            (Some(next), Some(noted)) => next < noted,
            (next, noted) => next != noted,
        };
        if sooner {
            self.note_timeout(id, next);
        }
    }

    fn note_timeout(&mut self, id: AssocId, next: Option<Instant>) {
        let Some(s) = self.slots.get_mut(&id) else { return };
        s.timeout = next;
        let slots = &self.slots;
        match next {
            Some(t) => {
                self.alarms.push(t, id, slots.len(), |t, id| slots.get(&id).is_some_and(|s| s.timeout == Some(t)));
            }
            None => self.settle_alarms(),
        }
    }

    fn settle_alarms(&mut self) {
        let slots = &self.slots;
        self.alarms.settle(|t, id| slots.get(&id).is_some_and(|s| s.timeout == Some(t)));
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

    /// When [`Endpoint::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.jar.rotate_if_due(now, self.entropy.as_mut());
        // Each association once: one that asks for the same instant again is served in the next call.
        let mut due = core::mem::take(&mut self.due);
        while let Some((t, id)) = self.alarms.pop_due(now) {
            if let Some(s) = self.slots.get_mut(&id).filter(|s| s.timeout == Some(t)) {
                s.timeout = None;
                due.push(id);
            }
        }
        for id in due.drain(..) {
            let Some(s) = self.slots.get_mut(&id) else { continue };
            let fires = s.association.next_timeout().is_some_and(|t| t <= now);
            if fires && let Some(s) = self.slots.work_on(&id) {
                s.association.handle_timeout(now);
            }
            if let Some(s) = self.slots.get(&id) {
                let (next, noted) = (s.association.next_timeout(), s.timeout);
                self.retime(id, next, noted);
            }
            if fires {
                self.wake(id);
            }
        }
        self.due = due;
        self.settle_alarms();
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

/// Guard of [`Endpoint::association_mut`].
pub struct AssocMut<'a> {
    endpoint: &'a mut Endpoint,
    id: AssocId,
    touched: bool,
}

impl AssocMut<'_> {
    /// [`Association::recv`]; where there is nothing to be read, nothing has changed either.
    pub fn recv(&mut self) -> Option<Message> {
        let m = self.endpoint.slots.get_mut(&self.id)?.association.recv();
        self.touched |= m.is_some();
        m
    }
}

impl Deref for AssocMut<'_> {
    type Target = Association;
    fn deref(&self) -> &Association {
        // As below.
        match self.endpoint.slots.get(&self.id) {
            Some(s) => &s.association,
            None => unreachable!("the guard holds the endpoint"),
        }
    }
}

impl DerefMut for AssocMut<'_> {
    fn deref_mut(&mut self) -> &mut Association {
        self.touched = true;
        // The guard borrows the endpoint: the slot that was there when it was made is still there.
        match self.endpoint.slots.get_mut(&self.id) {
            Some(s) => &mut s.association,
            None => unreachable!("the guard holds the endpoint"),
        }
    }
}

impl Drop for AssocMut<'_> {
    fn drop(&mut self) {
        if self.touched {
            self.endpoint.wake(self.id);
        }
    }
}
