//! Sequences of what users, interfaces, NATs and networks do, played: the random tests and the fuzz target share it.

use crate::common::*;
use crate::profiles::PROFILES;
use anabranch_base::{RandomStream, StreamId};
use anabranch_engine::{AssocConfig, Association, CloseReason, Endpoint, EndpointConfig, Event, LocalId, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_sim::{Direction, LossConfig, Setting};
use std::collections::{BTreeMap, BTreeSet};

pub const PATHS: usize = 3;

#[derive(Clone, Debug)]
pub enum Op {
    /// Streams 0 and 1 are ordered, 2 is not.
    Send {
        server: bool,
        stream: u16,
        len: usize,
        count: u8,
        life: Option<u16>,
    },
    Run(u16),
    Weather {
        path: usize,
        loss: u8,
        duplicate: u8,
        reorder: u8,
    },
    Cut {
        path: usize,
        forward: bool,
        backward: bool,
    },
    Restore(usize),
    InterfaceDown(usize),
    InterfaceUp(usize),
    NewPort(usize, u8),
    NewAddress(usize, u8),
    Read(bool),
    /// An end loses its memory and begins anew.
    Restart {
        server: bool,
    },
}

/// What was sent one way, and what of it arrived.
#[derive(Default)]
struct Books {
    next: [u32; 3],
    reliable: BTreeSet<(u16, u32)>,
    got: BTreeSet<(u16, u32)>,
    /// By stream and life: associations before and after a restart keep no order between them.
    newest: BTreeMap<(u16, usize), u32>,
    /// The first number of each stream in each life but the first.
    lives: Vec<[u32; 3]>,
}

impl Books {
    fn take(&mut self, messages: &mut Vec<anabranch_engine::Message>) {
        for m in messages.drain(..) {
            let id = number_of(&m);
            assert!(id.1 < self.next[usize::from(id.0)], "{id:?} was never sent");
            assert!(self.got.insert(id), "{id:?} arrived twice");
            if id.0 < 2 {
                let life = self.lives.partition_point(|first| first[usize::from(id.0)] <= id.1);
                let before = self.newest.insert((id.0, life), id.1);
                assert!(before < Some(id.1), "{id:?} after {before:?}");
            }
        }
    }
    /// A restart took what was on its way; it may still come, or not.
    fn forgive(&mut self) {
        let got = &self.got;
        self.reliable.retain(|id| got.contains(id));
        self.lives.push(self.next);
    }
    fn complete(&self) -> bool {
        self.reliable.is_subset(&self.got)
    }
}

struct World {
    b: Bench,
    to_server: Books,
    to_client: Books,
    config: AssocConfig,
    restarts: u64,
    /// Until the client is connected again the server may send into the void.
    reconnecting: bool,
    /// The server forgot its client, which has to notice.
    orphaned: bool,
}

impl World {
    fn new(profile: &str, seed: u64, parity: bool) -> World {
        let config = changed(assoc_config(profile), |c| {
            if parity {
                c.profile.set(Hook::Redundancy, "erasure:rate=0.5,latency=100").expect("registered");
                c.profile.set(Hook::Repair, "erasure").expect("registered");
            }
            c.limits.receive_buffer = 60_000;
            c.limits.send_buffer = 200_000;
            c.timers.heartbeat_interval = ms(5_000);
            // A sequence may leave everything cut for longer than any real blackout.
            c.failure.max_association_retrans = 30;
        });
        let links: Vec<_> = (0..PATHS as u64).map(|i| (link(8, 10 + 15 * i), link(8, 10 + 15 * i))).collect();
        let mut b = Bench::connected(seed, &config, &links);
        b.strict = true;
        World {
            b,
            to_server: Books::default(),
            to_client: Books::default(),
            config,
            restarts: 0,
            reconnecting: false,
            orphaned: false,
        }
    }

    fn alive(&self) -> bool {
        let over = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Closed(_)));
        !over(&self.b.client_events) && !over(&self.b.server_events)
    }

    fn restart(&mut self, server: bool) {
        self.restarts += 1;
        self.b.flush();
        let (now, entropy) = (self.b.now, Box::new(RandomStream::named(self.restarts, "restart")));
        self.to_server.forgive();
        self.to_client.forgive();
        let mut c = EndpointConfig::new(PORT, self.config.clone());
        c.accept = server;
        let fresh = Endpoint::new(c, entropy, now);
        if server {
            self.b.server = fresh;
            self.b.server_id = None;
            self.orphaned = true;
        } else {
            self.b.client = fresh;
            self.reconnect();
        }
    }

    fn reconnect(&mut self) {
        self.b.client_events.retain(|e| *e != Event::Connected);
        self.reconnecting = true;
        let config = self.config.clone();
        self.b.connect(&config);
    }

    /// What restarts leave behind: a client that must begin again, associations of a client that is no more.
    fn after_restarts(&mut self) {
        if self.restarts == 0 {
            return;
        }
        let aborted = |e: &Event| matches!(e, Event::Closed(CloseReason::PeerAborted(_)));
        if self.orphaned && self.b.client_events.iter().any(aborted) {
            self.orphaned = false;
            // It is there until what it has for its user is taken.
            if let Some(mut a) = self.b.client.association_mut(self.b.client_id) {
                self.b.at_client.extend(std::iter::from_fn(|| a.recv()));
            }
            while self.b.client.poll_event().is_some() {}
            self.b.client_events.retain(|e| !aborted(e));
            self.to_server.forgive();
            self.reconnect();
        }
        if self.reconnecting && self.b.client_events.contains(&Event::Connected) {
            self.reconnecting = false;
            self.to_client.forgive();
        }
        let ids: Vec<_> = self.b.server.associations().collect();
        // Of several the one that heard of the client last; the others wait for one that is no more.
        let newest = self.b.server_newest.filter(|id| ids.contains(id));
        self.b.server_id = newest.or(ids.last().copied());
        // The end of an association whose client is no more ends nothing that lives.
        if !ids.is_empty() {
            self.b.server_events.retain(|e| !matches!(e, Event::Closed(why) if *why != CloseReason::Shutdown));
        }
        for id in ids {
            if let Some(mut a) = self.b.server.association_mut(id).filter(|_| self.b.auto_read) {
                self.b.at_server.extend(std::iter::from_fn(|| a.recv()));
            }
        }
    }

    fn books(&mut self) {
        self.after_restarts();
        self.to_server.take(&mut self.b.at_server);
        self.to_client.take(&mut self.b.at_client);
        self.b.check();
    }

    fn run(&mut self, time: u64) {
        self.b.run_for(ms(time));
        self.books();
    }

    fn apply(&mut self, op: &Op) {
        let now = self.b.now;
        match *op {
            Op::Send { server, stream, len, count, life } => {
                let side = if server { Side::Server } else { Side::Client };
                let there = match side {
                    Side::Client => self.b.client.association(self.b.client_id).is_some(),
                    Side::Server => self.b.server_id.is_some_and(|id| self.b.server.association(id).is_some()),
                };
                for _ in 0..if there { count } else { 0 } {
                    let books = if server { &mut self.to_client } else { &mut self.to_server };
                    let number = books.next[usize::from(stream)];
                    let o = SendOptions {
                        stream: StreamId(stream),
                        unordered: stream == 2,
                        deadline: life.map(|l| now + ms(u64::from(l))),
                        ..SendOptions::default()
                    };
                    if !self.b.send(side, o, numbered(stream, number, len)) {
                        break;
                    }
                    let books = if server { &mut self.to_client } else { &mut self.to_server };
                    books.next[usize::from(stream)] += 1;
                    if life.is_none() {
                        books.reliable.insert((stream, number));
                    }
                }
            }
            Op::Run(t) => self.run(u64::from(t)),
            Op::Weather { path, loss, duplicate, reorder } => {
                for d in Direction::BOTH {
                    for set in [
                        Setting::Loss(LossConfig::bernoulli(f64::from(loss) / 100.0)),
                        Setting::Duplicate(f64::from(duplicate) / 100.0),
                        Setting::Reorder(f64::from(reorder) / 100.0),
                    ] {
                        self.b.paths.get_mut(path).expect("a path").apply(now, d, set);
                    }
                }
            }
            Op::Cut { path, forward, backward } => {
                self.b.set_up(path, Direction::Forward, !forward);
                self.b.set_up(path, Direction::Backward, !backward);
            }
            Op::Restore(path) => self.b.restore(path),
            Op::InterfaceDown(i) => self.client(|a| a.interface_down(now, LocalId(i as u16))),
            Op::InterfaceUp(i) => self.client(|a| a.interface_up(now, LocalId(i as u16))),
            // One at a time: of two within a round trip the server may keep the association of the first, too.
            Op::Restart { server } if !self.reconnecting && !self.orphaned => self.restart(server),
            Op::Restart { .. } => {}
            Op::NewPort(i, n) => self.b.nat[i].set_port(30_000 + u16::from(n)),
            Op::NewAddress(i, n) => self.b.nat[i] = ([203, 0, 113, n], 20_000 + i as u16).into(),
            Op::Read(on) => self.b.auto_read = on,
        }
    }

    fn client(&mut self, f: impl FnOnce(&mut Association)) {
        if let Some(mut a) = self.b.client.association_mut(self.b.client_id) {
            f(&mut a);
        }
    }

    /// Fair weather again.
    fn heal(&mut self) {
        for i in 0..PATHS {
            self.apply(&Op::Weather { path: i, loss: 0, duplicate: 0, reorder: 0 });
            self.b.restore(i);
            self.apply(&Op::InterfaceUp(i));
        }
        self.b.auto_read = true;
    }
}

/// Plays a sequence to its end; panics where the books do not agree.
pub fn play(profile: &str, seed: u64, ops: &[Op], both_shut_down: bool) {
    play_with(profile, seed, ops, both_shut_down, false);
}

/// [`play`] where both ends make parity and restore from it, or not.
pub fn play_with(profile: &str, seed: u64, ops: &[Op], both_shut_down: bool, parity: bool) {
    let mut w = World::new(profile, seed, parity);
    for op in ops {
        if !w.alive() {
            break;
        }
        w.apply(op);
        w.b.check();
        w.run(1);
    }
    if w.alive() {
        w.heal();
        for _ in 0..1_200 {
            w.run(500);
            let settled = !w.reconnecting && !w.orphaned;
            if !w.alive() || settled && w.to_server.complete() && w.to_client.complete() {
                break;
            }
        }
    }
    if !w.alive() {
        // The only honest end of a sequence without an end in it.
        let gone = Event::Closed(CloseReason::PeerGone);
        let unanswered = w.restarts > 0 && w.b.client_events.contains(&Event::Closed(CloseReason::NoAnswer));
        let honest = unanswered || w.b.client_events.contains(&gone) || w.b.server_events.contains(&gone);
        assert!(honest, "client {:?}\nserver {:?}", w.b.client_events.last(), w.b.server_events.last());
        return;
    }
    if std::env::var("SHOW").is_ok() {
        println!("at {:?}\nclient {:?}\nserver {:?}", w.b.now, w.b.client_events, w.b.server_events);
        for side in [Side::Client, Side::Server] {
            println!("{side:?} {:?}", w.b.assoc(side).stats());
            for (id, p) in w.b.assoc(side).paths() {
                println!("  {id:?} {p:?}");
            }
        }
        println!("{:?}", w.b.reasons());
    }
    assert!(
        w.to_server.complete(),
        "to the server: {:?} missing",
        w.to_server.reliable.difference(&w.to_server.got).next()
    );
    assert!(
        w.to_client.complete(),
        "to the client: {:?} missing",
        w.to_client.reliable.difference(&w.to_client.got).next()
    );
    let now = w.b.now;
    w.b.assoc(Side::Client).shutdown(now);
    if both_shut_down {
        w.b.assoc(Side::Server).shutdown(now);
    }
    w.b.run_for(ms(200_000));
    // What a restart from another address left at the server ends when its patience does.
    for _ in 0..if w.restarts > 0 { 40 } else { 0 } {
        w.run(100_000);
    }
    let ended = Event::Closed(CloseReason::Shutdown);
    assert!(w.b.client_events.contains(&ended), "{:?}", w.b.client_events);
    assert!(w.b.server_events.contains(&ended), "{:?}", w.b.server_events);
    assert_eq!(w.b.client.associations().count() + w.b.server.associations().count(), 0, "forgotten");
    assert_eq!((w.b.client.poll_timeout(), w.b.server.poll_timeout()), (None, None));
}

/// Operations of one sequence; more take long and find no more.
const MOST: usize = 60;

/// One operation from four bytes.
fn op(b: [u8; 4]) -> Op {
    let path = usize::from(b[1]) % PATHS;
    let number = u16::from_be_bytes([b[2], b[3]]);
    match b[0] % 16 {
        0..=4 => Op::Send {
            server: b[1] & 1 != 0,
            stream: u16::from(b[1] >> 1) % 3,
            len: 10 + usize::from(number) % if b[1] & 8 == 0 { 1_400 } else { 20_000 },
            count: 1 + b[0] / 9,
            life: (b[1] & 16 != 0).then(|| 1 + u16::from(b[1] >> 5) * 100),
        },
        5..=8 => Op::Run(1 + number % 2_000),
        9 => Op::Weather { path, loss: b[2] % 30, duplicate: b[3] % 30, reorder: b[1] % 30 },
        10 => Op::Cut { path, forward: b[2] & 1 != 0, backward: b[2] & 2 != 0 },
        11 => Op::Restore(path),
        12 => {
            if b[2] & 1 == 0 {
                Op::InterfaceDown(path)
            } else {
                Op::InterfaceUp(path)
            }
        }
        13 => {
            if b[2] & 1 == 0 {
                Op::NewPort(path, b[3])
            } else {
                Op::NewAddress(path, b[3])
            }
        }
        14 => Op::Read(b[1] & 1 != 0),
        _ => Op::Restart { server: b[1] & 1 != 0 },
    }
}

/// A sequence from bytes: profile, seed, who shuts down and whether there is parity, then four bytes for each operation.
pub fn play_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_at_checked(3) else { return };
    let ops: Vec<Op> = rest.as_chunks().0.iter().take(MOST).map(|b| op(*b)).collect();
    if std::env::var("SHOW").is_ok() {
        println!("{} {} {ops:#?}", PROFILES[usize::from(first[0]) % PROFILES.len()], first[1]);
    }
    let (profile, parity) = (PROFILES[usize::from(first[0]) % PROFILES.len()], first[2] & 2 != 0);
    play_with(profile, u64::from(first[1]), &ops, first[2] & 1 != 0, parity);
}
