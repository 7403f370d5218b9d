//! What is written on each message, and how long each took from being made to being handed over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A player's input: the next one replaces it.
    Input,
    /// The state of the world: the next one replaces it.
    State,
    /// Chat: all of it, in order.
    Chat,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Input, Class::State, Class::Chat];
}

/// What each message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub class: Class,
    /// Number of the player that it is of.
    pub player: u16,
    /// Its number among those of the player and class.
    pub number: u32,
    /// When it was made, in nanoseconds of [`clock`].
    pub made: u64,
}

impl Head {
    pub const SIZE: usize = 15;

    /// The head of a message that is made now.
    pub fn now(class: Class, player: u16, number: u32) -> Head {
        Head { class, player, number, made: clock() }
    }

    /// The message: the head and a body.
    pub fn with(self, body: &[u8]) -> bytes::Bytes {
        let mut message = Vec::with_capacity(Self::SIZE + body.len());
        message.push(self.class as u8);
        message.extend(self.player.to_be_bytes());
        message.extend(self.number.to_be_bytes());
        message.extend(self.made.to_be_bytes());
        message.extend(body);
        message.into()
    }

    /// Reads a message; none where it is not one of the game.
    pub fn read(message: &[u8]) -> Option<(Head, &[u8])> {
        let (head, body) = message.split_first_chunk::<{ Self::SIZE }>()?;
        let [class, p1, p2, n1, n2, n3, n4, made @ ..] = *head;
        let head = Head {
            class: *Class::ALL.get(usize::from(class))?,
            player: u16::from_be_bytes([p1, p2]),
            number: u32::from_be_bytes([n1, n2, n3, n4]),
            made: u64::from_be_bytes(made),
        };
        Some((head, body))
    }
}

/// Nanoseconds since the program asked first: one clock for the server and all bots.
pub fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Of one class.
#[derive(Clone, Debug, Default)]
struct Counts {
    made: u64,
    /// Microseconds of each that was handed over.
    delays: Vec<u32>,
}

/// Counts messages that are made within a span of time.
#[derive(Debug, Default)]
pub struct Tally {
    from: AtomicU64,
    until: AtomicU64,
    classes: [Mutex<Counts>; 3],
    /// How old the newest state was that a bot had, each time it looked, in microseconds.
    ages: Mutex<Vec<u32>>,
    disorder: AtomicU64,
}

impl Tally {
    /// Counts what is made from now on, for so long.
    pub fn begin(&self, span: Duration) {
        self.until.store(clock() + span.as_nanos() as u64, Ordering::Relaxed);
        self.from.store(clock(), Ordering::Relaxed);
    }

    fn counts(&self, made: u64) -> bool {
        let from = self.from.load(Ordering::Relaxed);
        from > 0 && (from..self.until.load(Ordering::Relaxed)).contains(&made)
    }

    /// A message was made for so many receivers.
    pub fn made(&self, head: &Head, receivers: usize) {
        if self.counts(head.made) {
            lock(&self.classes[head.class as usize]).made += receivers as u64;
        }
    }

    /// It was handed over to one of them.
    pub fn handed_over(&self, head: &Head) {
        if self.counts(head.made) {
            let micros = (clock() - head.made) / 1_000;
            lock(&self.classes[head.class as usize]).delays.push(micros as u32);
        }
    }

    /// A bot looks at the newest state it has, which was made then.
    pub fn looked_at(&self, made: u64) {
        let now = clock();
        if self.counts(now) && made > 0 {
            lock(&self.ages).push(((now - made) / 1_000) as u32);
        }
    }

    /// Chat came out of order.
    pub fn out_of_order(&self) {
        self.disorder.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes over what another one counted.
    pub fn add(&self, other: &Tally) {
        for (own, others) in self.classes.iter().zip(&other.classes) {
            let (mut own, others) = (lock(own), lock(others));
            own.made += others.made;
            own.delays.extend(&others.delays);
        }
        lock(&self.ages).extend(lock(&other.ages).iter());
        self.disorder.fetch_add(other.disorder.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// How many messages of chat came before an earlier one of their player.
    pub fn disorder(&self) -> u64 {
        self.disorder.load(Ordering::Relaxed)
    }

    /// What became of a class; late is what took longer than `limit`.
    pub fn row(&self, class: Class, limit: Duration) -> Row {
        let counts = lock(&self.classes[class as usize]).clone();
        Row::of(counts.made, counts.delays, limit)
    }

    /// The age of the state that bots see; late is what is older than `limit`.
    pub fn ages(&self, limit: Duration) -> Row {
        let ages = lock(&self.ages).clone();
        Row::of(ages.len() as u64, ages, limit)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line of the table. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub made: u64,
    pub handed_over: u64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub longest: f64,
    /// Part of those made that came, but later than the limit.
    pub late: f64,
    /// Part of those made that never came.
    pub never: f64,
}

impl Row {
    fn of(made: u64, mut delays: Vec<u32>, limit: Duration) -> Row {
        delays.sort_unstable();
        let part = |n: usize| n as f64 / made.max(1) as f64;
        let at = |q: f64| {
            let place = (q * delays.len() as f64).ceil() as usize;
            delays.get(place.saturating_sub(1)).map_or(f64::NAN, |d| f64::from(*d) / 1_000.0)
        };
        let in_time = delays.partition_point(|d| u128::from(*d) <= limit.as_micros());
        Row {
            made,
            handed_over: delays.len() as u64,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            longest: at(1.0),
            late: part(delays.len() - in_time),
            never: part((made as usize).saturating_sub(delays.len())),
        }
    }

    /// What the columns of `Display` are.
    pub const HEADER: &str = "    made      p50      p99    p99.9  longest     late    never";
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { made, p50, p99, p999, longest, .. } = self;
        let (late, never) = (self.late * 100.0, self.never * 100.0);
        write!(f, "{made:>8} {p50:>8.1} {p99:>8.1} {p999:>8.1} {longest:>8.1} {late:>6.2} % {never:>6.2} %")
    }
}
