//! Peers that have not said hello yet: how many may wait, and who makes room.

use crate::monitor::lock;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Peers that may wait: with 16 KiB for each, 5 MB.
pub const WAITING: usize = 256;

/// An honest peer has said hello within this time: two round trips, and up to 1.5 s in which a sender measures its paths.
/// Who is younger is not sent away for being the oldest, or a flood of newcomers would send away whoever has a longer
/// round trip than the flood.
const YOUNG: Duration = Duration::from_secs(2);

/// How far a peer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has said nothing.
    Silent,
    /// It is here, and will say what comes later.
    Here,
    /// It has said hello and waits for a place.
    Hello,
}

/// Peers that wait, oldest first by number.
#[derive(Debug)]
pub struct Lobby {
    per_address: usize,
    waiting: Mutex<Waiting>,
    /// Counts the guests that have gone.
    gone: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    by_age: BTreeMap<u64, Waiter>,
    /// Keys by which strangers cannot know who goes next.
    lots: RandomState,
}

#[derive(Debug)]
struct Waiter {
    from: Option<IpAddr>,
    since: Instant,
    stage: Stage,
    leave: watch::Sender<bool>,
}

/// One peer that waits. It has left when this goes.
#[derive(Debug)]
pub struct Ticket {
    lobby: Arc<Lobby>,
    number: u64,
    leave: watch::Receiver<bool>,
}

impl Lobby {
    /// At most so many may wait from one address.
    pub fn new(per_address: usize) -> Arc<Self> {
        Arc::new(Lobby { per_address, waiting: Mutex::default(), gone: watch::Sender::new(0) })
    }

    /// Lets a peer in that has just come. Where there are too many, one makes room: from the same address when there are
    /// too many of those, else from the address with the most.
    pub fn enter(self: &Arc<Self>, ip: Option<IpAddr>, now: Instant) -> Ticket {
        let mut w = lock(&self.waiting);
        let of = |w: &Waiting, ip| w.by_age.values().filter(|p| p.from == ip).count();
        if of(&w, ip) >= self.per_address {
            w.send_away(ip, now);
        } else if w.by_age.len() >= WAITING {
            // The oldest of them where several have as many.
            let mut counts = BTreeMap::new();
            w.by_age.values().for_each(|p| *counts.entry(p.from).or_insert(0) += 1);
            let most = w.by_age.values().rev().max_by_key(|p| counts.get(&p.from).copied().unwrap_or(0));
            if let Some(most) = most.map(|p| p.from) {
                w.send_away(most, now);
            }
        }
        let number = w.next;
        w.next += 1;
        let (tx, leave) = watch::channel(false);
        w.by_age.insert(number, Waiter { from: ip, since: now, stage: Stage::Silent, leave: tx });
        Ticket { lobby: self.clone(), number, leave }
    }

    /// Returns once no guest waits.
    pub async fn empty(&self) {
        let mut gone = self.gone.subscribe();
        while !lock(&self.waiting).by_age.is_empty() {
            if gone.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Waiting {
    /// The oldest that has said nothing goes; who has said hello goes last. Those that are here and wait for their input
    /// go first once they are more than half, or there would be no time for newcomers to speak. Where even the oldest is
    /// young, any of them goes.
    fn send_away(&mut self, ip: Option<IpAddr>, now: Instant) {
        let of = |stage| self.by_age.iter().filter(move |(_, p)| p.from == ip && p.stage == stage);
        let all = self.by_age.values().filter(|p| p.from == ip).count();
        let order = match of(Stage::Here).count() * 2 > all {
            true => [Stage::Here, Stage::Silent, Stage::Hello],
            false => [Stage::Silent, Stage::Here, Stage::Hello],
        };
        let goes = order.into_iter().find_map(|stage| {
            let (oldest, waiter) = of(stage).next()?;
            let any =
                || of(stage).map(|(number, _)| *number).min_by_key(|number| self.lots.hash_one((number, self.next)));
            if now.saturating_duration_since(waiter.since) < YOUNG { any() } else { Some(*oldest) }
        });
        if let Some(waiter) = goes.and_then(|number| self.by_age.remove(&number)) {
            waiter.leave.send_replace(true);
        }
    }
}

impl Ticket {
    /// The peer has come so far.
    pub fn reaches(&self, stage: Stage) {
        if let Some(waiter) = lock(&self.lobby.waiting).by_age.get_mut(&self.number) {
            waiter.stage = stage;
        }
    }

    /// Returns once this peer has to make room.
    pub async fn leave(&self) {
        let mut leave = self.leave.clone();
        if leave.wait_for(|leave| *leave).await.is_err() {
            // Only the one that lets it go drops its sender.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.lobby.waiting).by_age.remove(&self.number);
        self.lobby.gone.send_modify(|n| *n += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, n]))
    }

    fn has_to_go(t: &Ticket) -> bool {
        *t.leave.borrow()
    }

    #[test]
    fn an_address_has_a_share_and_its_oldest_makes_room() {
        let (lobby, begin) = (Lobby::new(3), Instant::now());
        let later = begin + YOUNG;
        let mut of_one: Vec<Ticket> = (0..3).map(|_| lobby.enter(ip(1), begin)).collect();
        let other = lobby.enter(ip(2), begin);
        of_one.push(lobby.enter(ip(1), later));
        assert_eq!(of_one.iter().map(has_to_go).collect::<Vec<_>>(), [true, false, false, false]);
        of_one.remove(2);
        let last = lobby.enter(ip(1), later);
        assert!(!has_to_go(&last) && !has_to_go(&of_one[1]) && !has_to_go(&other), "there was room again");
    }

    #[test]
    fn a_full_room_takes_from_those_who_have_the_most() {
        let (lobby, begin) = (Lobby::new(WAITING), Instant::now());
        let honest = lobby.enter(ip(1), begin);
        let crowd: Vec<Ticket> = (0..400).map(|n| lobby.enter(ip(2), begin + YOUNG * n)).collect();
        assert!(!has_to_go(&honest));
        assert_eq!(crowd.iter().filter(|t| !has_to_go(t)).count(), WAITING - 1);
        assert!(has_to_go(&crowd[0]) && !has_to_go(&crowd[399]), "the oldest goes first");
    }

    #[test]
    fn who_has_spoken_stays_and_newcomers_have_time_to_speak() {
        let (lobby, begin) = (Lobby::new(8), Instant::now());
        let honest = lobby.enter(ip(1), begin);
        honest.reaches(Stage::Hello);
        let mut here: Vec<Ticket> = Vec::new();
        for _ in 0..50 {
            let t = lobby.enter(ip(1), begin);
            t.reaches(Stage::Here);
            here.push(t);
        }
        // However many are here, a newcomer stays while two more come.
        let newcomer = lobby.enter(ip(1), begin);
        let silent: Vec<Ticket> = (0..2).map(|_| lobby.enter(ip(1), begin)).collect();
        assert!(!has_to_go(&newcomer) && !has_to_go(&honest));
        let more: Vec<Ticket> = (0..100).map(|_| lobby.enter(ip(1), begin + YOUNG)).collect();
        assert!(!has_to_go(&honest), "those who say nothing go before one who has said hello");
        assert!(has_to_go(&newcomer) && silent.iter().all(has_to_go) && !has_to_go(&more[99]));
    }

    #[test]
    fn a_flood_of_newcomers_leaves_time_for_one_round_trip() {
        // While as many come as there is room for, the one that needs so long to speak stays in (31/32)^32 of all cases,
        // and in none if the oldest went.
        let stays = |newcomers: usize| {
            let one = || {
                let (lobby, now) = (Lobby::new(32), Instant::now());
                let before: Vec<Ticket> = (0..32).map(|_| lobby.enter(ip(1), now)).collect();
                let honest = lobby.enter(ip(1), now);
                let after: Vec<Ticket> = (0..newcomers).map(|_| lobby.enter(ip(1), now)).collect();
                drop((before, after));
                !has_to_go(&honest)
            };
            (0..400).filter(|_| one()).count()
        };
        // Means of 145 and 247 with deviations of 10.
        assert!((90..200).contains(&stays(32)), "{}", stays(32));
        assert!(stays(15) > 190, "{}", stays(15));
    }
}
