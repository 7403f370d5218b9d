//! The paths of an association: which there are, how they are probed, and what they carry.

pub(in crate::association) mod heartbeat;
pub(in crate::association) mod list;
pub(in crate::association) mod members;
pub(in crate::association) mod nonces;
pub(in crate::association) mod path_mtu;
mod peer_errors;
pub(in crate::association) mod silence;
pub(in crate::association) mod takeover;
mod train;
mod usable;

use crate::path::one_way::{self, Clocks};
use crate::path::{FirstWindow, Path, initial_window};
use anabranch_base::{Entropy, Instant, PathId, PathSet};
use anabranch_wire::COMMON_HEADER_LEN;
use core::ops::{Deref, Index, IndexMut};
use list::{PathList, Shown, Touched};
use nonces::Nonces;
use peer_errors::PeerErrors;
use std::net::SocketAddr;

/// The paths in the order of their ids, and what they share.
pub(crate) struct PathTable {
    list: PathList,
    /// The user's choice for new data (RFC 9260 §6.4).
    primary: PathId,
    /// Payload of the largest packet that every path in use takes, bytes.
    mtu: u64,
    /// Bytes that the header of an I-DATA chunk takes more than that of DATA; 0 where DATA is used.
    data_extra: usize,
    /// What messages leave free of a packet, bytes, so that parity over them fits one.
    spare: usize,
    /// Bytes of the largest packet of the association, unless a path is known to take another size.
    configured: usize,
    /// Bytes that every packet keeps free for an AUTH.
    reserved: usize,
    /// The initial window of the first path, bytes.
    initial_cwnd: u64,
    /// Errors in a row over all paths (§8.1).
    errors: PeerErrors,
    /// Nonces of HEARTBEATs.
    nonces: Nonces,
    /// The peer's clock beside ours.
    clocks: Clocks,
    /// Counts changes of addresses.
    addresses_changed: u32,
    /// New data waits for the first HEARTBEAT ACK of every path, see [`crate::AssocConfig::confirm_first`].
    confirming: bool,
    /// Paths that the quality estimator wants to take no part in sending.
    sidelined: PathSet,
    /// A path came, went or changed its state, and coupling has not been asked about that.
    uncoupled: bool,
}

impl PathTable {
    /// No path yet; the first one will be to `remote`. Packets have `configured` bytes at most.
    pub fn new(
        configured: usize,
        mtu: u64,
        window: Option<u64>,
        remote: SocketAddr,
        entropy: &mut dyn Entropy,
    ) -> PathTable {
        PathTable {
            list: PathList::EMPTY,
            primary: PathId(0),
            mtu,
            data_extra: 0,
            spare: 0,
            configured,
            reserved: 0,
            initial_cwnd: initial_window(window, mtu, remote),
            errors: PeerErrors::default(),
            nonces: Nonces::new(entropy),
            clocks: Clocks::default(),
            addresses_changed: 0,
            confirming: false,
            sidelined: PathSet::EMPTY,
            uncoupled: false,
        }
    }

    pub fn len(&self) -> usize {
        self.list.as_slice().len()
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<&Path> {
        self.list.as_slice().get(i).map(Box::deref)
    }

    /// A path to be changed in any way. Its view is made anew.
    #[inline]
    pub fn get_mut(&mut self, i: usize) -> Option<&mut Path> {
        self.list.get_mut(i)
    }

    /// A path of which no more than this will change in its view.
    #[inline]
    pub(in crate::association) fn get_for(&mut self, i: usize, shown: Shown) -> Option<&mut Path> {
        self.list.get_for(i, shown)
    }

    pub fn first(&self) -> Option<&Path> {
        self.get(0)
    }

    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Path> + Clone {
        self.list.iter()
    }

    /// All paths, to be changed in any way. Their views are made anew.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    /// All paths, to be changed where no view shows it.
    pub(in crate::association) fn iter_unseen(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.list.iter_unseen()
    }

    /// Which views are out of date.
    #[inline]
    pub(in crate::association) fn touched(&self) -> &Touched {
        self.list.touched()
    }

    /// The views are up to date.
    pub(in crate::association) fn note_shown(&mut self) {
        self.list.clear_touched();
    }

    /// Something that all views show has changed.
    pub(in crate::association) fn touch_all(&mut self) {
        self.list.touch_all();
    }

    /// Appends one.
    #[inline]
    fn push(&mut self, p: Path) {
        self.list.push(p);
        self.addresses_changed += 1;
    }

    /// The user's choice for new data (§6.4).
    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// New data goes to `path` while one path carries all. False when there is no such path.
    fn choose_primary(&mut self, path: PathId) -> bool {
        let known = path.index() < self.len();
        if known {
            self.primary = path;
        }
        known
    }

    /// The next usable path in the order of their ids, which takes the role of the primary one (RFC 7829 §5).
    fn after_primary(&self) -> Option<PathId> {
        let from_primary = |p: &PathId| p.0.wrapping_sub(self.primary.0);
        self.usable().iter().min_by_key(from_primary).filter(|p| *p != self.primary)
    }

    /// Bytes of the largest packet that every path takes, or every path in use.
    fn smallest_packet(&self, in_use_only: bool) -> usize {
        let paths = self.iter().filter(|p| !in_use_only || p.is_in_use());
        let smallest = paths.map(|p| p.mtu.packet_size(self.configured)).min();
        smallest.unwrap_or(self.configured) - self.reserved
    }

    /// Since when the peer, which owes an answer, has been silent on all paths: since the first packet left that it owes
    /// one for. Before that nothing was asked, however long ago it was heard of.
    fn silent_since(&self) -> Option<Instant> {
        let asked = self.errors.since()?;
        Some(self.iter().filter_map(|p| p.health.last_heard()).max().map_or(asked, |heard| heard.max(asked)))
    }

    /// Payload of the largest packet that every path in use takes, bytes.
    pub fn mtu(&self) -> u64 {
        self.mtu
    }

    fn set_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
        self.touch_all();
    }

    /// Parity is made of messages: they leave it room.
    pub fn set_spare(&mut self, bytes: usize) {
        self.spare = bytes;
    }

    /// Messages interleave: the header of each chunk takes so many bytes more.
    pub fn set_data_extra(&mut self, bytes: usize) {
        self.data_extra = bytes;
    }

    /// Every packet keeps so many bytes free for an AUTH.
    pub fn reserve(&mut self, bytes: usize) {
        self.reserved = bytes;
    }

    /// Bytes of a chunk with such a payload, padding included.
    #[inline]
    pub fn chunk_len(&self, payload: usize) -> usize {
        anabranch_wire::data_chunk_len(payload) + self.data_extra
    }

    /// Largest packet for `path`, bytes.
    #[inline]
    pub fn packet_size(&self, path: PathId) -> usize {
        self.whole_packet(path) - self.reserved
    }

    /// Packet size with the AUTH chunk that every packet may get.
    #[inline]
    pub fn whole_packet(&self, path: PathId) -> usize {
        self.get(path.index()).map_or(self.configured, |p| p.mtu.packet_size(self.configured))
    }

    /// Those of the paths that take a packet with one chunk of so many payload bytes whole; all of them where none does.
    pub fn taking_whole(&self, candidates: PathSet, len: u64) -> PathSet {
        let packet = COMMON_HEADER_LEN + self.chunk_len(len as usize);
        let whole: PathSet = candidates.iter().filter(|id| self.packet_size(*id) >= packet).collect();
        if whole.is_empty() { candidates } else { whole }
    }

    /// The user has less to send than the paths would take.
    pub fn note_app_limited(&mut self, now: Instant) {
        self.note_unfilled(now, |p| {
            p.has_window(now) || p.congestion.paces() && p.congestion.has_room(p.flight.bytes())
        });
    }

    /// There has been something to send for long, and the scheduler keeps it off the paths that are open. One that only waits
    /// for its pace gets it in a moment.
    pub fn note_kept_off(&mut self, now: Instant) {
        self.note_unfilled(now, |p| p.has_window(now));
    }

    fn note_unfilled(&mut self, now: Instant, takes_more: impl Fn(&Path) -> bool) {
        for p in self.iter_unseen() {
            let bytes = p.flight.bytes();
            if !p.rate.is_app_limited(bytes) && takes_more(p) && !p.is_busy(now) {
                p.rate.app_limited(bytes);
            }
        }
    }

    /// So many packets may leave on each path in the opportunity at hand.
    pub fn allow_burst(&mut self, packets: u16) {
        self.iter_unseen().for_each(|p| p.congestion.allow_burst(packets));
    }

    /// The initial window of the first path, bytes.
    pub fn initial_cwnd(&self) -> u64 {
        self.initial_cwnd
    }

    /// Where the window of a path to `remote` begins.
    fn first_window(&self, window: Option<u64>, ssthresh: u64, remote: SocketAddr) -> FirstWindow {
        FirstWindow { cwnd: initial_window(window, self.mtu, remote), ssthresh }
    }

    /// To be called when the first path is another one, or packets have another size.
    fn note_initial_window(&mut self, window: Option<u64>) {
        if let Some(remote) = self.first().map(|p| p.remote()) {
            self.initial_cwnd = initial_window(window, self.mtu, remote);
        }
    }

    /// Differs whenever addresses have changed.
    pub fn addresses_changed(&self) -> u32 {
        self.addresses_changed
    }

    /// A path has another address.
    pub fn note_new_address(&mut self) {
        self.addresses_changed += 1;
    }

    /// Paths came, went or changed their state since coupling was asked.
    pub fn is_uncoupled(&self) -> bool {
        self.uncoupled
    }

    /// Coupling has been asked about the paths as they are.
    pub fn set_coupled(&mut self) {
        self.uncoupled = false;
    }

    /// Does new data wait for the first HEARTBEAT ACK of every path?
    pub fn is_confirming(&self) -> bool {
        self.confirming
    }

    /// The peer answers: no errors in a row.
    pub fn clear_peer_errors(&mut self) {
        self.errors.clear();
    }

    /// An unpredictable number for a HEARTBEAT.
    pub fn next_nonce(&mut self) -> u64 {
        self.nonces.next()
    }

    /// A SACK with a time stamp came back over `by`: when what it tells of had arrived, see [`one_way::stamped`].
    pub fn stamped(&mut self, now: Instant, by: PathId, stamp: u32) -> Instant {
        one_way::stamped(now, self.list.as_mut_slice(), &mut self.clocks, by, stamp)
    }
}

impl Index<usize> for PathTable {
    type Output = Path;
    fn index(&self, i: usize) -> &Path {
        &self.list.as_slice()[i]
    }
}

impl IndexMut<usize> for PathTable {
    fn index_mut(&mut self, i: usize) -> &mut Path {
        self.list.at_mut(i)
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
