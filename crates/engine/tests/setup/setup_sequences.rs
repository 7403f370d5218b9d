//! Setup and end in any order: chunks of the handshake and of the end, cookies new and old, from several addresses,
//! between calls of the user. Nothing panics, nothing piles up, and what is reported to the user makes sense.

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_base::{RandomStream, Tsn};
use anabranch_engine::{AssocConfig, AssocId, Association, Event, ListedAddress, LocalId, SendOptions};
use anabranch_wire::{
    AbortOut, CookieEcho, Heartbeat, InitFields, InitOut, Parameter, Shutdown, ShutdownComplete, kind,
};
use std::collections::BTreeMap;

struct World {
    r: Raw,
    random: RandomStream,
    /// Cookies of INIT ACKs, with the tag and address that go with them.
    cookies: Vec<(u32, u8, Vec<u8>)>,
    /// INITs that the endpoint sent.
    inits: Vec<(u8, Sent)>,
    tags: Vec<u32>,
    reports: BTreeMap<AssocId, Vec<Event>>,
    /// Begun by the endpoint.
    called: Vec<AssocId>,
    seen_events: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let addresses =
            (0..2).map(|i| ListedAddress { local: LocalId(i), ip: [198, 51, 100, i as u8].into() }).collect();
        let config =
            changed(assoc_config(["sctp", "cmt", "live"][(seed % 3) as usize]), |c| c.addresses.listed = addresses);
        World {
            r: Raw::with(&config, |_| {}),
            random: RandomStream::named(seed, "setup"),
            cookies: vec![],
            inits: vec![],
            tags: vec![1, PEER_TAG],
            reports: BTreeMap::new(),
            called: vec![],
            seen_events: 0,
        }
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        let i = self.random.below(list.len().max(1) as u64) as usize;
        list.get(i).cloned()
    }

    fn some_list(&mut self) -> Vec<u8> {
        let n = self.random.below(3) as u8;
        listing(&(0..n).map(|i| peer(1 + (i + self.random.below(3) as u8) % 4).ip()).collect::<Vec<_>>())
    }

    fn step(&mut self, config: &AssocConfig) {
        let at = 1 + self.random.below(3) as u8;
        let local = LocalId(self.random.below(2) as u16);
        (self.r.from, self.r.to) = (peer(at), local);
        let peer_tag = PEER_TAG + self.random.below(3) as u32;
        let tags = self.tags.clone();
        let tag = self.pick(&tags).unwrap_or(1);
        let ids: Vec<AssocId> = self.r.endpoint.associations().collect();
        let id = self.pick(&ids);
        match self.random.below(18) {
            0..3 => {
                let params = self.some_list();
                let fields = InitFields { initial_tsn: Tsn(self.random.below(9) as u32), ..init_fields(peer_tag) };
                self.r.give_tagged(0, &[&init(fields, &params)]);
            }
            3..6 => {
                let all = self.cookies.clone();
                if let Some((tag, at, cookie)) = self.pick(&all) {
                    self.r.from = peer(at);
                    let echo = bytes(&CookieEcho { cookie: &cookie });
                    self.r.give_tagged(tag, &[&echo, &data(Tsn(self.random.below(9) as u32), 0, b"x")]);
                }
            }
            6 => {
                self.called.extend(self.r.endpoint.connect(self.r.now, config.clone(), local, peer(at), PEER_PORT));
                self.r.drain();
            }
            7 => {
                let all = self.inits.clone();
                if let Some((at, sent)) = self.pick(&all) {
                    let params = [bytes(&Parameter::Cookie(b"theirs")), self.some_list()].concat();
                    let tag = init_of(&sent).0.tag;
                    self.r.from = peer(at);
                    let ack = InitOut { ack: true, fields: init_fields(peer_tag), params: &params };
                    self.r.give_tagged(tag, &[&bytes(&ack)]);
                }
            }
            8 => self.r.give_tagged(tag, &[&chunk(kind::COOKIE_ACK, 0, &[])]),
            9 => self.r.give_tagged(tag, &[&bytes(&Shutdown { cum_tsn: Tsn(self.random.below(9) as u32) })]),
            10 => self.r.give_tagged(tag, &[&chunk(kind::SHUTDOWN_ACK, 0, &[])]),
            11 => {
                let reflected = self.random.chance(0.5);
                let tag = if reflected { peer_tag } else { tag };
                let end = match self.random.chance(0.5) {
                    true => bytes(&AbortOut { tag_reflected: reflected, causes: &[] }),
                    false => bytes(&ShutdownComplete { tag_reflected: reflected }),
                };
                self.r.give_tagged(tag, &[&end]);
            }
            12 => self.r.give_tagged(tag, &[&chunk(kind::ERROR, 0, &[0, 3, 0, 8, 0, 0, 0, 1])]),
            13 => self.r.give_tagged(tag, &[&bytes(&Heartbeat::new(&[1; 9])), &data(Tsn(1), 0, b"y")]),
            14 => {
                if let Some(id) = id {
                    let now = self.r.now;
                    let what = self.random.below(4);
                    if let Some(mut a) = self.r.endpoint.association_mut(id) {
                        match what {
                            0 => a.shutdown(now),
                            1 => a.abort(now, b"enough"),
                            2 => drop(a.recv()),
                            _ => drop(a.send(now, SendOptions::default(), vec![1; 500].into())),
                        }
                    }
                    self.r.drain();
                }
            }
            15 | 16 => {
                // A setup chunk with some bytes changed, under a tag that may be right.
                let all = self.cookies.clone();
                let (tag, mut chunk) = match (self.random.below(3), self.pick(&all)) {
                    (0, Some((tag, _, cookie))) => (tag, bytes(&CookieEcho { cookie: &cookie })),
                    (1, _) => {
                        let params = [bytes(&Parameter::Cookie(b"theirs")), self.some_list()].concat();
                        (tag, bytes(&InitOut { ack: true, fields: init_fields(peer_tag), params: &params }))
                    }
                    _ => (0, init(init_fields(peer_tag), &self.some_list())),
                };
                for _ in 0..1 + self.random.below(4) {
                    let at = self.random.below(chunk.len() as u64) as usize;
                    chunk[at] = self.random.below(256) as u8;
                }
                self.r.give_tagged(tag, &[&chunk]);
            }
            _ => {
                let time = [1, 50, 1_100, 70_000][self.random.below(4) as usize];
                self.r.run_for(ms(time));
            }
        }
        self.learn();
    }

    /// Notes what the endpoint sent and reported, and checks it.
    fn learn(&mut self) {
        for s in self.r.take() {
            let at = s.remote.ip().to_string().rsplit('.').next().and_then(|n| n.parse().ok()).expect("a peer of ours");
            match s.kinds()[0] {
                kind::INIT => {
                    self.tags.push(init_of(&s).0.tag);
                    self.inits.push((at, s));
                }
                kind::INIT_ACK => {
                    let tag = init_of(&s).0.tag;
                    self.tags.push(tag);
                    self.cookies.push((tag, at, cookie_of(&s)));
                }
                _ => {}
            }
        }
        for list in [self.tags.len(), self.cookies.len(), self.inits.len()] {
            assert!(list < 100_000);
        }
        self.tags.drain(..self.tags.len().saturating_sub(8));
        self.cookies.drain(..self.cookies.len().saturating_sub(8));
        self.inits.drain(..self.inits.len().saturating_sub(4));
        for (id, e) in &self.r.events[self.seen_events..] {
            let reports = self.reports.entry(*id).or_default();
            assert!(
                !reports.iter().any(|e| matches!(e, Event::Closed(_))),
                "{e:?} after the end of {id:?}: {reports:?}"
            );
            let connected = reports.contains(&Event::Connected);
            match e {
                Event::Connected => assert!(!connected, "connected twice: {reports:?}"),
                Event::Restarted | Event::PeerShutdown | Event::Readable => {
                    assert!(connected, "{e:?} before: {reports:?}")
                }
                _ => {}
            }
            reports.push(e.clone());
        }
        self.seen_events = self.r.events.len();
        for id in self.r.endpoint.associations() {
            if let Some(Err(why)) = self.r.endpoint.association(id).map(Association::check_invariants) {
                panic!("{id:?}: {why}");
            }
        }
        // Each that a peer began holds a pair of its own: four addresses of the peer by two of ours. Those that are
        // over hold none.
        let live = |id: &AssocId| self.r.phase(*id) != anabranch_engine::Phase::Closed && !self.called.contains(id);
        let live = self.r.endpoint.associations().filter(live);
        assert!(live.count() <= 8);
    }
}

#[test]
fn any_order_is_survived() {
    let mut restarts = 0;
    let mut ends = 0;
    for seed in 0..600 {
        let mut w = World::new(seed);
        let config = changed(assoc_config("sctp"), |c| c.addresses.listed = vec![]);
        for _ in 0..300 {
            w.step(&config);
        }
        restarts += w.r.events.iter().filter(|(_, e)| *e == Event::Restarted).count();
        ends += w.r.events.iter().filter(|(_, e)| matches!(e, Event::Closed(_))).count();
        // A stranger is served as if nothing had happened.
        (w.r.from, w.r.to) = (peer(77), LocalId(0));
        w.r.take();
        w.r.handshake(PEER_TAG, &[]);
    }
    assert!(restarts > 50 && ends > 50, "the test does what it says: {restarts} restarts, {ends} ends");
}
