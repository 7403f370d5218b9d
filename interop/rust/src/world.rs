//! Both ends, the network between them, and what each has to send.

use crate::content::{Label, Seen, message};
use crate::network::Network;
use crate::ours::Ours;
use crate::peer::{Note, Outgoing, Peer, Setup};
use anabranch_base::{Duration, Instant};

/// Lengths of messages, bytes: smaller than a packet, just as large, and of many.
const MIXED: [usize; 11] = [20, 21, 60, 100, 333, 1_000, 1_172, 1_173, 1_500, 4_000, 30_000];

/// What an end sends: messages on `streams` streams in turn, those on the last `unordered` of them out of order.
#[derive(Clone, Debug)]
pub struct Flow {
    pub messages: u32,
    pub streams: u16,
    pub unordered: u16,
    /// Length of all; else mixed.
    pub length: Option<usize>,
    /// A message so often; as fast as they are taken when none.
    pub every: Option<Duration>,
    pub lifetime: Option<Duration>,
    pub retransmissions: Option<u16>,
    pub generation: u32,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            messages: 500,
            streams: 6,
            unordered: 2,
            length: None,
            every: None,
            lifetime: None,
            retransmissions: None,
            generation: 0,
        }
    }
}

impl Flow {
    /// Message `i`: no two streams have the same lengths in the same order.
    fn outgoing(&self, i: u32) -> Outgoing {
        let stream = (i % u32::from(self.streams)) as u16;
        let unordered = stream >= self.streams - self.unordered;
        let number = i / u32::from(self.streams);
        let length = self.length.unwrap_or(MIXED[(i as usize * 7 + usize::from(stream)) % MIXED.len()]);
        let payload = message(Label { stream, number, generation: self.generation, unordered }, length);
        Outgoing { stream, unordered, payload, lifetime: self.lifetime, retransmissions: self.retransmissions }
    }
}

#[derive(Default)]
struct Sending {
    flow: Option<Flow>,
    next: u32,
    due: Option<Instant>,
}

/// End 0 is ours, end 1 theirs.
pub struct World<T> {
    pub now: Instant,
    pub setup: Setup,
    pub ours: Ours,
    pub theirs: T,
    pub network: Network,
    pub seen: [Seen; 2],
    pub notes: [Vec<Note>; 2],
    pub given: [u64; 2],
    /// What arrives is not read.
    pub idle: [bool; 2],
    sending: [Sending; 2],
    lives: u64,
}

impl<T: Peer> World<T> {
    /// Both ends, one of which opens.
    pub fn new(setup: Setup, network: Network, we_open: bool) -> Self {
        World::with(setup, network, we_open, !we_open)
    }

    pub fn with(setup: Setup, network: Network, we_open: bool, they_open: bool) -> Self {
        let now = Instant::from_millis(1);
        World {
            now,
            ours: Ours::new(&setup, we_open, 0, now),
            theirs: T::new(&setup, they_open, 0, now),
            setup,
            network,
            seen: Default::default(),
            notes: Default::default(),
            given: [0; 2],
            idle: [false; 2],
            sending: Default::default(),
            lives: 0,
        }
    }

    /// Connected, without a fault on the way.
    pub fn connected(setup: Setup, network: Network, we_open: bool) -> Self {
        let mut w = World::new(setup, network, we_open);
        let connected = w.run(Duration::from_secs(30), |w| w.both(|n| *n == Note::Connected));
        assert!(connected, "{} and we do not connect: {:?}", T::NAME, w.notes);
        w
    }

    /// An end that lost its memory opens anew; what was on its way is lost.
    pub fn restart(&mut self, end: usize) {
        self.lives += 1;
        self.network.clear();
        match end {
            0 => self.ours = Ours::new(&self.setup, true, self.lives, self.now),
            _ => self.theirs = T::new(&self.setup, true, self.lives, self.now),
        }
    }

    /// Hands an end what it has to send from now on.
    pub fn send(&mut self, end: usize, flow: Flow) {
        self.sending[end] = Sending { flow: Some(flow), next: 0, due: Some(self.now) };
    }

    /// Did each of both ends report such a thing?
    pub fn both(&self, such: impl Fn(&Note) -> bool) -> bool {
        self.notes.iter().all(|n| n.iter().any(&such))
    }

    /// All was handed over and has arrived.
    pub fn transferred(&self) -> bool {
        let handed = self.sending.iter().all(|s| s.flow.is_none());
        handed && self.seen[1].received == self.given[0] && self.seen[0].received == self.given[1]
    }

    /// Until `done`, for `limit` at most; was it done?
    pub fn run(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let due = |s: &Sending| s.flow.as_ref().and(s.due);
            // A stack without room is asked again after a while: none tells when there is.
            let next = [
                self.network.next(),
                self.ours.timeout(),
                self.theirs.timeout(),
                due(&self.sending[0]),
                due(&self.sending[1]),
            ];
            let Some(next) = next.into_iter().flatten().min().filter(|n| *n <= end) else {
                self.now = end;
                return false;
            };
            // A timer that stays due must not stop the clock.
            self.now = next.max(self.now + Duration::from_micros(1));
            while let Some((to, packet)) = self.network.arrived(self.now) {
                match to {
                    0 => self.ours.input(self.now, packet),
                    _ => self.theirs.input(self.now, packet),
                }
                self.settle();
            }
            if self.ours.timeout().is_some_and(|t| t <= self.now) {
                self.ours.on_timeout(self.now);
            }
            if self.theirs.timeout().is_some_and(|t| t <= self.now) {
                self.theirs.on_timeout(self.now);
            }
        }
    }

    /// Everything that both ends can do now.
    fn settle(&mut self) {
        offer(&mut self.ours, &mut self.sending[0], &mut self.given[0], self.now);
        offer(&mut self.theirs, &mut self.sending[1], &mut self.given[1], self.now);
        if !self.idle[0] {
            while let Some((stream, ppid, m)) = self.ours.receive() {
                self.seen[0].check(stream, ppid, &m);
            }
        }
        if !self.idle[1] {
            while let Some((stream, ppid, m)) = self.theirs.receive() {
                self.seen[1].check(stream, ppid, &m);
            }
        }
        self.ours.notes(&mut self.notes[0]);
        self.theirs.notes(&mut self.notes[1]);
        let mut out = Vec::new();
        self.ours.outputs(self.now, &mut out);
        out.drain(..).for_each(|p| self.network.carry(self.now, 0, p));
        self.theirs.outputs(self.now, &mut out);
        out.drain(..).for_each(|p| self.network.carry(self.now, 1, p));
    }

    /// Nothing doubled, out of order or changed on either side.
    pub fn assert_clean(&self) {
        self.seen[0].assert_clean("we");
        self.seen[1].assert_clean(T::NAME);
    }
}

/// Hands over what is due and fits.
fn offer(peer: &mut impl Peer, s: &mut Sending, given: &mut u64, now: Instant) {
    let Some(flow) = &s.flow else { return };
    while s.due.is_some_and(|d| d <= now) && s.next < flow.messages {
        if !peer.send(now, &flow.outgoing(s.next)) {
            s.due = Some(now + Duration::from_millis(5));
            return;
        }
        *given += 1;
        s.next += 1;
        if let Some(every) = flow.every {
            s.due = s.due.map(|d| d + every);
        }
    }
    if s.next == flow.messages {
        s.flow = None;
    }
}
