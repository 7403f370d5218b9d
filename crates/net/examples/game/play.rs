//! The game, whatever carries it: a server that has the world, and bots that play in it.

use super::tally::{Class, Head, Tally};
use bytes::Bytes;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// How the game is played.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub bots: u16,
    /// Inputs of each bot, and states for it, a second.
    pub rate: u32,
    /// How long an input or a state is worth anything.
    pub lifetime: Duration,
    /// How often each bot says something.
    pub chat_every: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { bots: 50, rate: 30, lifetime: Duration::from_millis(100), chat_every: Duration::from_secs(5) }
    }
}

impl Rules {
    /// Bytes of an input behind its head.
    const INPUT: usize = 25;
    /// Bytes of each player in a state.
    const PLAYER: usize = 20;

    pub fn tick(&self) -> Duration {
        Duration::from_secs(1) / self.rate.max(1)
    }

    /// From when on a message of the class is late.
    pub fn limit(&self, class: Class) -> Duration {
        match class {
            Class::Input | Class::State => self.lifetime,
            Class::Chat => Duration::from_secs(1),
        }
    }
}

/// One end of a player's connection.
pub trait Line: Send + Sync + 'static {
    /// Hands a message over. A game does not wait: an input or a state for which there is no room is not sent.
    fn send(&self, class: Class, message: Bytes);
    /// The next message; none when the player, or the server, is gone.
    fn recv(&self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The server's world and those that play in it.
pub struct Server<L> {
    rules: Rules,
    tally: Arc<Tally>,
    players: Mutex<Vec<Arc<L>>>,
    /// What each player did last.
    world: Mutex<Vec<u8>>,
}

impl<L: Line> Server<L> {
    pub fn new(rules: Rules, tally: Arc<Tally>) -> Arc<Self> {
        let world = Mutex::new(vec![0; usize::from(rules.bots) * Rules::PLAYER]);
        Arc::new(Server { rules, tally, players: Mutex::default(), world })
    }

    /// How many play.
    pub fn players(&self) -> usize {
        lock(&self.players).len()
    }

    /// Lets a player in, until the connection is over.
    pub async fn play(&self, line: L) {
        let line = Arc::new(line);
        lock(&self.players).push(line.clone());
        while let Some(message) = line.recv().await {
            let Some((head, body)) = Head::read(&message) else { continue };
            self.tally.handed_over(&head);
            match head.class {
                Class::Input => self.apply(head.player, body),
                Class::Chat => self.say(&head, body),
                Class::State => {}
            }
        }
        lock(&self.players).retain(|p| !Arc::ptr_eq(p, &line));
    }

    fn apply(&self, player: u16, input: &[u8]) {
        let at = usize::from(player) * Rules::PLAYER;
        if let Some(place) = lock(&self.world).get_mut(at..at + Rules::PLAYER) {
            place.iter_mut().zip(input).for_each(|(p, i)| *p = p.wrapping_add(*i));
        }
    }

    /// Tells all what one player says.
    fn say(&self, head: &Head, words: &[u8]) {
        let head = Head::now(Class::Chat, head.player, head.number);
        self.send_to_all(&head, head.with(words));
    }

    fn send_to_all(&self, head: &Head, message: Bytes) {
        let players = lock(&self.players).clone();
        self.tally.made(head, players.len());
        players.iter().for_each(|p| p.send(head.class, message.clone()));
    }

    /// Sends the state of the world to all players, each tick, for ever.
    pub async fn tick(&self) {
        let mut ticks = every(self.rules.tick(), Duration::ZERO);
        for number in 0.. {
            ticks.tick().await;
            let head = Head::now(Class::State, u16::MAX, number);
            let state = head.with(&lock(&self.world));
            self.send_to_all(&head, state);
        }
    }
}

/// Plays, until the line is over. Bots do not all send at the same instant.
pub async fn bot<L: Line>(rules: Rules, tally: &Tally, number: u16, line: L) {
    let newest = Mutex::new(0);
    let listening = async {
        let mut heard = vec![None; usize::from(rules.bots)];
        while let Some(message) = line.recv().await {
            let Some((head, _)) = Head::read(&message) else { continue };
            tally.handed_over(&head);
            match head.class {
                Class::State => {
                    // One that was overtaken is of no use.
                    let mut newest = lock(&newest);
                    *newest = head.made.max(*newest);
                }
                Class::Chat => {
                    let Some(last) = heard.get_mut(usize::from(head.player)) else { continue };
                    if last.replace(head.number).is_some_and(|last| last >= head.number) {
                        tally.out_of_order();
                    }
                }
                Class::Input => {}
            }
        }
    };
    let playing = async {
        let share = f64::from(number) / f64::from(rules.bots);
        let mut ticks = every(rules.tick(), rules.tick().mul_f64(share));
        let mut chat = every(rules.chat_every, rules.chat_every.mul_f64(share));
        let (mut inputs, mut said) = (0, 0);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    tally.looked_at(*lock(&newest));
                    let head = Head::now(Class::Input, number, inputs);
                    tally.made(&head, 1);
                    line.send(Class::Input, head.with(&[1; Rules::INPUT]));
                    inputs += 1;
                }
                _ = chat.tick() => {
                    let head = Head::now(Class::Chat, number, said);
                    tally.made(&head, 1);
                    line.send(Class::Chat, head.with(b"gg, well played. See you in the next round, same time?"));
                    said += 1;
                }
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = playing => {}
    }
}

fn every(period: Duration, after: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + after, period);
    // After a pause of the machine there is no burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
