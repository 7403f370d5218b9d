//! Places, who has them, and when a newcomer may have one that is taken.

use crate::monitor::{lock, quiet_for};
use crate::session::{Control, Mode, StreamName};
use crate::transport::Link;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A sender that said it is here but not what comes holds a place for so long against one that says both, which waits.
const HERE: Duration = Duration::from_secs(3);

/// The first of what was announced comes within so long: senders wait 1.5 s at most until their paths are measured.
const FIRST: Duration = Duration::from_secs(3);

/// A sender that has sent nothing for so long makes room for another.
const IDLE: Duration = Duration::from_secs(5);

/// A sender of a file that has sent nothing for so long makes room for another: its source may pause.
const FILE_IDLE: Duration = Duration::from_secs(30);

/// A peer from which nothing came for so long, not even an answer to a probe, may be replaced.
const SILENT: Duration = Duration::from_secs(3);

/// A peer may be replaced after this silence by a newcomer with its address and its stream id: most likely it is the
/// same sender, begun again.
const SAME: Duration = Duration::from_millis(200);

/// Times that an address wasted a place, as far as they count.
const WASTES: u32 = 5;

/// So long they count.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Addresses that are remembered.
const ADDRESSES: usize = 256;

/// Least time between two probes of one peer, ms: half of what the shortest silence takes.
const PROBES: u64 = 100;

/// A newcomer waits no longer for a place: it gives up itself after 10 s.
const CLAIM: Duration = Duration::from_secs(8);

/// Who asks for a place.
#[derive(Clone)]
pub struct Claim {
    /// Its connection.
    pub link: Link,
    /// Its stream.
    pub name: Option<StreamName>,
    /// What it will send; none before its hello.
    pub mode: Option<Mode>,
}

/// A peer that has a place.
pub struct Seat {
    link: Link,
    name: Option<StreamName>,
    since: Instant,
    mode: Mutex<Option<(Mode, Instant)>>,
    /// Milliseconds from `since` to the last message that counts, plus one; zero before the first.
    last: AtomicU64,
    over: AtomicBool,
    /// Milliseconds from `since` to the last probe.
    probed: AtomicU64,
    leave: watch::Sender<bool>,
}

/// What a newcomer can expect of a place that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yields {
    Now,
    /// Unless something comes meanwhile.
    In(Duration),
    /// Only when it is silent.
    Not,
}

impl Seat {
    fn new(claim: &Claim) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Seat {
            link: claim.link.clone(),
            name: claim.name.clone(),
            since: now,
            mode: Mutex::new(claim.mode.map(|m| (m, now))),
            last: AtomicU64::new(0),
            over: AtomicBool::new(false),
            probed: AtomicU64::new(0),
            leave: watch::Sender::new(false),
        })
    }

    /// Its stream.
    pub fn name(&self) -> Option<&StreamName> {
        self.name.as_ref()
    }

    /// It has said hello.
    pub fn begins(&self, mode: Mode) {
        *lock(&self.mode) = Some((mode, Instant::now()));
    }

    /// Something came that a place is for.
    pub fn heard(&self) {
        self.last.store(self.since.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
    }

    /// Has anything come?
    pub fn has_heard(&self) -> bool {
        self.last.load(Ordering::Relaxed) > 0
    }

    /// Nothing more will come: whoever asks may have the place.
    pub fn is_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns once another is to have the place.
    pub async fn leave(&self) {
        // The sender lives as long as `self`.
        let _ = self.leave.subscribe().wait_for(|leave| *leave).await;
    }

    /// [`leave`](Self::leave) for a session that may have no place.
    pub async fn leave_of(place: Option<&Place>) {
        match place {
            Some(place) => place.seat.leave().await,
            None => std::future::pending().await,
        }
    }

    fn idle(&self) -> Duration {
        let last = self.last.load(Ordering::Relaxed).saturating_sub(1);
        self.since.elapsed().saturating_sub(Duration::from_millis(last))
    }

    fn yields(&self, rules: Rules, newcomer_begins: bool) -> Yields {
        let mode = *lock(&self.mode);
        let after = |limit: Duration, passed: Duration| match limit.checked_sub(passed) {
            Some(rest) if !rest.is_zero() => Yields::In(rest),
            _ => Yields::Now,
        };
        match mode {
            _ if self.over.load(Ordering::Relaxed) => Yields::Now,
            // Two that wait for their input do not drive each other away.
            _ if !newcomer_begins => Yields::Not,
            None => after(HERE, self.since.elapsed()),
            Some((_, began)) if !self.has_heard() => after(FIRST, began.elapsed()),
            Some(_) if !rules.replaces => Yields::Not,
            Some((Mode::File, _)) if !rules.replaces_files || self.idle() < FILE_IDLE => Yields::Not,
            Some((Mode::Media | Mode::Datagram | Mode::Tunnel, _)) if self.idle() < IDLE => Yields::Not,
            Some(_) => Yields::Now,
        }
    }

    /// May it be replaced when nothing comes from it any more?
    fn may_be_silent(&self, rules: Rules) -> bool {
        match *lock(&self.mode) {
            Some((Mode::File, _)) => rules.replaces && rules.replaces_files || !self.has_heard(),
            Some(_) => rules.replaces || !self.has_heard(),
            None => true,
        }
    }

    /// True once in a while.
    fn may_probe(&self) -> bool {
        let now = self.since.elapsed().as_millis() as u64;
        let last = self.probed.load(Ordering::Relaxed);
        now >= last.saturating_add(PROBES)
            && self.probed.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Asks for a sign of life, and waits for it; true when none comes.
    async fn is_silent(&self, claim: &Claim) -> bool {
        let same = self.name == claim.name && self.link.address() == claim.link.address();
        let limit = if same { SAME.max(self.link.round_trip() * 4).min(SILENT) } else { SILENT };
        let link = self.link.clone();
        // However many ask, one probe in a while is answered for all of them, within the time that each listens.
        let probe = async {
            if !self.may_probe() {
                tokio::time::sleep(Duration::from_millis(PROBES)).await;
                if !self.may_probe() {
                    return;
                }
            }
            // A full send buffer is no reason to wait.
            let _ = tokio::time::timeout(limit, link.control(&Control::Probe)).await;
        };
        let (quiet, ()) = tokio::join!(quiet_for(&self.link, limit), probe);
        quiet
    }
}

/// Whether a session that something has come of may be replaced by another.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Number of places.
    pub places: usize,
    /// Of those, for one address.
    pub per_address: usize,
    /// Any that has fallen silent or idle.
    pub replaces: bool,
    /// Also in the middle of a file.
    pub replaces_files: bool,
}

/// All places.
pub struct Seats {
    rules: Rules,
    taken: Mutex<Vec<Arc<Seat>>>,
    freed: Notify,
    wasted: Mutex<Wasted>,
    queue: Mutex<Queue>,
    claims: AtomicU64,
}

/// Who said hello, sent nothing, and had to go: how often, and when last.
#[derive(Debug, Default)]
struct Wasted(BTreeMap<IpAddr, (u32, Instant)>);

impl Wasted {
    fn note(&mut self, ip: IpAddr, now: Instant) {
        self.0.retain(|_, (_, at)| now.duration_since(*at) < REMEMBERED);
        if self.0.len() < ADDRESSES || self.0.contains_key(&ip) {
            let (times, at) = self.0.entry(ip).or_insert((0, now));
            (*times, *at) = (*times + 1, now);
        }
    }

    /// How often it did lately.
    fn times(&self, ip: Option<IpAddr>, now: Instant) -> u32 {
        let times = ip.and_then(|ip| self.0.get(&ip)).filter(|(_, at)| now.duration_since(*at) < REMEMBERED);
        times.map_or(0, |(times, _)| (*times).min(WASTES))
    }
}

/// Claims that wait: first those from addresses that wasted no place, then the oldest. Whether each may have any place.
type Queue = BTreeMap<(u32, u64), bool>;

/// A claim that waits, until this goes.
struct Turn {
    seats: Arc<Seats>,
    key: (u32, u64),
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.seats.queue).remove(&self.key);
        self.seats.freed.notify_waiters();
    }
}

/// A place that is taken, until this goes.
pub struct Place {
    seats: Arc<Seats>,
    /// Who holds the place.
    pub seat: Arc<Seat>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.seats.taken).retain(|s| !Arc::ptr_eq(s, &self.seat));
        let wasted = *self.seat.leave.borrow() && !self.seat.has_heard() && lock(&self.seat.mode).is_some();
        if let Some(ip) = self.seat.link.address().filter(|_| wasted) {
            lock(&self.seats.wasted).note(ip, Instant::now());
        }
        self.seats.freed.notify_waiters();
    }
}

impl Seats {
    /// All of them free.
    pub fn new(rules: Rules) -> Arc<Self> {
        Arc::new(Seats {
            rules,
            taken: Mutex::default(),
            freed: Notify::new(),
            wasted: Mutex::default(),
            queue: Mutex::default(),
            claims: AtomicU64::new(0),
        })
    }

    /// A place, if one is free and no other claim waits for it.
    pub fn take(self: &Arc<Self>, claim: &Claim) -> Option<Place> {
        self.try_take(claim, None).ok()
    }

    /// A place, perhaps that of one that is silent, idle or over.
    pub async fn claim(self: &Arc<Self>, claim: &Claim) -> Result<Place, String> {
        let until = Instant::now() + CLAIM;
        let times = lock(&self.wasted).times(claim.link.address(), Instant::now());
        let turn = Turn { seats: self.clone(), key: (times, self.claims.fetch_add(1, Ordering::Relaxed)) };
        lock(&self.queue).insert(turn.key, true);
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            let (rival, why) = match self.try_take(claim, Some(turn.key)) {
                Ok(place) => return Ok(place),
                Err(rival) => rival,
            };
            if Instant::now() >= until {
                return Err(why);
            }
            let Some(rival) = rival else {
                // Others were here before.
                let _ = tokio::time::timeout_at(until, freed).await;
                continue;
            };
            let goes = match rival.yields(self.rules, claim.mode.is_some()) {
                Yields::Now => true,
                Yields::In(rest) => tokio::select! {
                    silent = rival.is_silent(claim) => {
                        if !silent {
                            tokio::select! { () = tokio::time::sleep(rest) => {}, () = &mut freed => {} }
                        }
                        silent
                    }
                    () = &mut freed => false,
                },
                Yields::Not if rival.may_be_silent(self.rules) && rival.is_silent(claim).await => true,
                Yields::Not => return Err(why),
            };
            if goes {
                rival.leave.send_replace(true);
                // It finishes what it is about; the place is free when it has.
                let _ = tokio::time::timeout_at(until, freed).await;
            }
        }
    }

    /// A place, or who is in the way and what to say then; `None` when others have waited for longer.
    fn try_take(
        self: &Arc<Self>,
        claim: &Claim,
        turn: Option<(u32, u64)>,
    ) -> Result<Place, (Option<Arc<Seat>>, String)> {
        let mut taken = lock(&self.taken);
        let namesake = taken.iter().find(|s| claim.name.is_some() && s.name == claim.name && self.rules.places > 1);
        let before = {
            let mut queue = lock(&self.queue);
            if let Some(any) = turn.and_then(|key| queue.get_mut(&key)) {
                *any = namesake.is_none();
            }
            queue.iter().filter(|(key, any)| **any && turn.is_none_or(|turn| **key < turn)).count()
        };
        if let (Some(rival), Some(name)) = (namesake, &claim.name) {
            let why = format!("a sender with the stream id {} is there already", name.as_str());
            return Err((Some(rival.clone()), why));
        }
        let address = claim.link.address();
        let of = |ip: Option<IpAddr>| taken.iter().filter(|s| s.link.address() == ip).count();
        let full = taken.len() >= self.rules.places;
        let rival = if of(address) >= self.rules.per_address {
            taken.iter().filter(|s| s.link.address() == address).max_by_key(|s| s.rank())
        } else if full {
            taken.iter().max_by_key(|s| (of(s.link.address()), s.rank()))
        } else {
            None
        };
        let busy = || "it is busy with another peer".to_owned();
        match rival {
            Some(rival) => Err((Some(rival.clone()), busy())),
            None if taken.len() + before >= self.rules.places => Err((None, busy())),
            None => {
                let seat = Seat::new(claim);
                taken.push(seat.clone());
                Ok(Place { seats: self.clone(), seat })
            }
        }
    }
}

impl Seat {
    /// The higher, the sooner it goes.
    fn rank(&self) -> (bool, bool, Duration) {
        (self.over.load(Ordering::Relaxed), !self.has_heard(), self.idle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wastes_places_lets_others_go_first() {
        let (mut w, now) = (Wasted::default(), Instant::now());
        let ip = |n: u32| IpAddr::from(n.to_be_bytes());
        assert_eq!(w.times(Some(ip(1)), now), 0);
        w.note(ip(1), now);
        assert_eq!((w.times(Some(ip(1)), now), w.times(Some(ip(2)), now)), (1, 0));
        (0..100).for_each(|_| w.note(ip(1), now));
        assert_eq!(w.times(Some(ip(1)), now), WASTES);
        assert_eq!(w.times(Some(ip(1)), now + REMEMBERED), 0, "forgotten");
        (0..10_000).for_each(|n| w.note(ip(n), now));
        assert!(w.0.len() <= ADDRESSES);
    }
}
