//! The bench itself: two endpoints, their paths, and what happens between them.

use super::*;

pub struct Bench {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    pub paths: Paths<Bytes>,
    pub client_id: AssocId,
    pub server_id: Option<AssocId>,
    /// The association at the server that came up or began anew last.
    pub server_newest: Option<AssocId>,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    pub at_client: Vec<Message>,
    pub at_server: Vec<Message>,
    /// Messages are read as they come; false leaves them to the test.
    pub auto_read: bool,
    /// Every packet: time, side that sent it, path, bytes.
    pub tap: Option<Vec<(Instant, Side, usize, Bytes)>>,
    /// Every packet that a link delivered, likewise.
    pub arrived: Option<Vec<(Instant, Side, usize, Bytes)>>,
    /// Decides the fate of each packet before its link does.
    pub filter: Option<Filter>,
    /// Changes packets before their links carry them.
    pub forger: Option<Forger>,
    /// Queues that mark what may be marked: true for the packets to be marked.
    pub marker: Option<Filter>,
    /// Packets that left so that a queue may mark them.
    pub markable: u64,
    /// Marked packets on their way.
    marked: Vec<Bytes>,
    /// The client's interfaces as the server sees them now.
    pub nat: Vec<SocketAddr>,
    /// Packets to a client address that no longer exists.
    pub to_nowhere: u64,
    /// Largest packet that may leave, bytes.
    pub largest: usize,
    /// Packets that left so that IP may divide them; links of a smaller MTU carry them.
    pub divisible: u64,
    /// They are divided on their way, and so arrive.
    pub divides: bool,
    /// Checks the engine's invariants on the way, every few milliseconds.
    pub strict: bool,
    checked_at: Instant,
    /// Packets of one instant.
    packets: u64,
    packets_at: Instant,
    transmit: Transmit,
    buffer: Vec<u8>,
}

impl Bench {
    pub fn new(seed: u64, config: &AssocConfig) -> Bench {
        Bench::pair(seed, config, config)
    }

    /// Two ends that differ.
    pub fn pair(seed: u64, config: &AssocConfig, server: &AssocConfig) -> Bench {
        let entropy = |name: &str| Box::new(RandomStream::named(seed, name));
        let mut server = EndpointConfig::new(PORT, server.clone());
        server.accept = true;
        let now = Instant::from_millis(1_000);
        let client = Endpoint::new(EndpointConfig::new(PORT, config.clone()), entropy("client"), now);
        let server = Endpoint::new(server, entropy("server"), now);
        Bench {
            now,
            client,
            server,
            paths: Paths::new(seed),
            client_id: AssocId(0),
            server_id: None,
            server_newest: None,
            client_events: vec![],
            server_events: vec![],
            at_client: vec![],
            at_server: vec![],
            auto_read: true,
            tap: None,
            arrived: None,
            filter: None,
            forger: None,
            marker: None,
            markable: 0,
            marked: vec![],
            nat: (0..8).map(nat_addr).collect(),
            to_nowhere: 0,
            largest: 1_200,
            divisible: 0,
            divides: true,
            strict: false,
            checked_at: Instant::ZERO,
            packets: 0,
            packets_at: Instant::ZERO,
            transmit: Transmit::default(),
            buffer: Vec::new(),
        }
    }

    /// Connects over paths with these links (forward, backward).
    pub fn connected(seed: u64, config: &AssocConfig, links: &[(LinkConfig, LinkConfig)]) -> Bench {
        Bench::connected_pair(seed, config, config, links)
    }

    /// A connected pair whose two ends differ.
    pub fn connected_pair(
        seed: u64,
        config: &AssocConfig,
        server: &AssocConfig,
        links: &[(LinkConfig, LinkConfig)],
    ) -> Bench {
        let mut b = Bench::pair(seed, config, server);
        for (i, (f, r)) in links.iter().enumerate() {
            b.add_path(&format!("path{i}"), f.clone(), r.clone());
        }
        b.connect(config);
        b.run_for(ms(3_000));
        // Lossy links take longer.
        while !b.client_events.contains(&Event::Connected) && b.now < Instant::from_millis(60_000) {
            b.run_for(ms(1_000));
        }
        assert!(b.client_events.contains(&Event::Connected), "not connected: {:?}", b.client_events);
        b
    }

    /// Adds a path whose links may damage packets.
    pub fn add_path(&mut self, name: &str, forward: LinkConfig, backward: LinkConfig) {
        let added = self.paths.add(name, forward, backward);
        let path = self.paths.get_mut(added).expect("a path");
        Direction::BOTH.into_iter().for_each(|d| path.link_mut(d).set_flip(flip));
    }

    pub fn connect(&mut self, config: &AssocConfig) {
        let id = self.client.connect(self.now, config.clone(), LocalId(0), server_addr(0), PORT).expect("a profile");
        self.client_id = id;
        let now = self.now;
        for i in 1..self.paths.len() {
            if let Some(mut a) = self.client.association_mut(id) {
                a.add_path(now, LocalId(i as u16), server_addr(i));
            }
        }
    }

    /// Is the client ready to send with its full rate?
    pub fn is_warm(&mut self) -> bool {
        let now = self.now;
        let warm = self.assoc(Side::Client).warm_up(now);
        self.flush();
        warm
    }

    pub fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    pub fn id(&self, side: Side) -> AssocId {
        match side {
            Side::Client => self.client_id,
            Side::Server => self.server_id.expect("accepted"),
        }
    }

    pub fn assoc(&mut self, side: Side) -> anabranch_engine::AssocMut<'_> {
        let id = self.id(side);
        if self.endpoint(side).association(id).is_none() {
            panic!("{side:?} has no association at {:?}: {:?} {:?}", self.now, self.client_events, self.server_events);
        }
        self.endpoint(side).association_mut(id).expect("alive")
    }

    pub fn send(&mut self, side: Side, options: SendOptions, payload: impl Into<Bytes>) -> bool {
        let now = self.now;
        self.assoc(side).send(now, options, payload.into()).is_ok()
    }

    /// Sends everything that both sides have ready.
    pub fn flush(&mut self) {
        for side in [Side::Client, Side::Server] {
            loop {
                let now = self.now;
                let mut t = core::mem::take(&mut self.transmit);
                let some = self.endpoint(side).poll_transmit(now, &mut t);
                if some {
                    self.buffer.clear();
                    t.packet.write_to(&mut self.buffer);
                    assert_eq!(self.buffer.len(), t.packet.len());
                    assert!(self.buffer.len() <= self.largest, "packet of {} bytes", self.buffer.len());
                    let bytes = Bytes::copy_from_slice(&self.buffer);
                    let path = match side {
                        Side::Client => Some(usize::from(t.local.0)),
                        Side::Server => (0..self.paths.len()).find(|&i| self.nat[i] == t.remote),
                    };
                    let Some(path) = path else {
                        self.to_nowhere += 1;
                        self.transmit = t;
                        continue;
                    };
                    let direction = if side == Side::Client { Direction::Forward } else { Direction::Backward };
                    if let Some(tap) = &mut self.tap {
                        tap.push((now, side, path, bytes.clone()));
                    }
                    self.packets = if self.packets_at == now { self.packets + 1 } else { 0 };
                    self.packets_at = now;
                    assert!(self.packets < 1_000_000, "the packets never end: {side:?} sends {:?}", kinds(&bytes));
                    let leaving = Leaving { now, from: side, path, bytes: &bytes };
                    if self.filter.as_mut().is_none_or(|f| f(&leaving)) {
                        self.divisible += u64::from(t.may_divide);
                        self.markable += u64::from(t.may_be_marked);
                        if t.may_be_marked && self.marker.as_mut().is_some_and(|m| m(&leaving)) {
                            self.marked.push(bytes.clone());
                        }
                        let forged = self.forger.as_mut().and_then(|f| f(&leaving));
                        let bytes = forged.unwrap_or(bytes);
                        // What is divided passes wherever its pieces do.
                        let size = if t.may_divide && self.divides { bytes.len().min(500) } else { bytes.len() };
                        self.paths.send(now, path, direction, size as u32, bytes);
                    }
                }
                self.transmit = t;
                if !some {
                    break;
                }
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((i, direction, bytes)) = self.paths.poll(self.now) {
            let now = self.now;
            if let Some(log) = &mut self.arrived {
                let from = if direction == Direction::Forward { Side::Client } else { Side::Server };
                log.push((now, from, i, bytes.clone()));
            }
            if let Some(i) = self.marked.iter().position(|m| m.as_ptr() == bytes.as_ptr()) {
                self.marked.swap_remove(i);
                let side = if direction == Direction::Forward { Side::Server } else { Side::Client };
                self.endpoint(side).next_is_marked();
            }
            match direction {
                Direction::Forward => self.server.handle(now, LocalId(0), self.nat[i], &bytes, Verify::Checksum),
                Direction::Backward => {
                    self.client.handle(now, LocalId(i as u16), server_addr(i), &bytes, Verify::Checksum);
                }
            }
            self.flush();
        }
    }

    fn collect(&mut self) {
        while let Some((_, e)) = self.client.poll_event() {
            self.client_events.push(e);
        }
        while let Some((id, e)) = self.server.poll_event() {
            if self.server_id.is_none() {
                self.server_id = Some(id);
            }
            if matches!(e, Event::Connected | Event::Restarted) {
                self.server_newest = Some(id);
            }
            self.server_events.push(e);
        }
        if !self.auto_read {
            return;
        }
        let cid = self.client_id;
        if let Some(mut a) = self.client.association_mut(cid) {
            while let Some(m) = a.recv() {
                self.at_client.push(m);
            }
        }
        if let Some(sid) = self.server_id
            && let Some(mut a) = self.server.association_mut(sid)
        {
            while let Some(m) = a.recv() {
                self.at_server.push(m);
            }
        }
    }

    /// When anything happens next.
    pub fn next_event(&self) -> Option<Instant> {
        [self.paths.next_event(), self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    /// One step of virtual time, not beyond `until`; false when nothing happens before.
    pub fn step(&mut self, until: Instant) -> bool {
        self.flush();
        self.collect();
        self.flush();
        let Some(next) = self.next_event().filter(|t| *t <= until) else { return false };
        self.now = self.now.max(next);
        self.deliver();
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            if self.endpoint(side).poll_timeout().is_some_and(|t| t <= now) {
                self.endpoint(side).handle_timeout(now);
            }
        }
        if self.strict && self.now.since(self.checked_at) >= ms(5) {
            self.checked_at = self.now;
            self.check();
        }
        true
    }

    /// Every association's invariants.
    pub fn check(&self) {
        for (name, e) in [("client", &self.client), ("server", &self.server)] {
            for id in e.associations() {
                if let Some(Err(why)) = e.association(id).map(Association::check_invariants) {
                    panic!("{name} at {:?}: {why}", self.now);
                }
            }
        }
    }

    /// A packet that no link carries: arrives at `side` on `path` now, its checksum not looked at.
    pub fn inject(&mut self, side: Side, path: usize, bytes: &[u8]) {
        let (now, bytes) = (self.now, Bytes::copy_from_slice(bytes));
        match side {
            Side::Server => self.server.handle(now, LocalId(0), self.nat[path], &bytes, Verify::Trusted),
            Side::Client => self.client.handle(now, LocalId(path as u16), server_addr(path), &bytes, Verify::Trusted),
        }
    }

    /// Injects a packet whose checksum is verified.
    pub fn inject_summed(&mut self, side: Side, path: usize, bytes: &[u8]) {
        let (now, bytes) = (self.now, Bytes::copy_from_slice(bytes));
        match side {
            Side::Server => self.server.handle(now, LocalId(0), self.nat[path], &bytes, Verify::Checksum),
            Side::Client => self.client.handle(now, LocalId(path as u16), server_addr(path), &bytes, Verify::Checksum),
        }
    }

    /// Takes a path down in both directions.
    pub fn cut(&mut self, path: usize) {
        let now = self.now;
        self.paths.get_mut(path).expect("a path").cut(now);
    }

    /// Takes it up again.
    pub fn restore(&mut self, path: usize) {
        let now = self.now;
        self.paths.get_mut(path).expect("a path").restore(now);
    }

    /// One direction of a path, down or up.
    pub fn set_up(&mut self, path: usize, direction: Direction, up: bool) {
        let now = self.now;
        let set = if up { Setting::Up } else { Setting::Down };
        self.paths.get_mut(path).expect("a path").apply(now, direction, set);
    }

    /// What was tapped of `side` with a chunk of type `chunk`.
    pub fn tapped(&self, side: Side, chunk: u8) -> Vec<&(Instant, Side, usize, Bytes)> {
        let all = self.tap.as_deref().unwrap_or_default();
        all.iter().filter(|(_, s, _, b)| *s == side && kinds(b).contains(&chunk)).collect()
    }

    pub fn events(&self, side: Side) -> &[Event] {
        match side {
            Side::Client => &self.client_events,
            Side::Server => &self.server_events,
        }
    }

    /// The state of a path.
    pub fn path(&mut self, side: Side, path: usize) -> PathStats {
        self.assoc(side).paths().nth(path).expect("a path").1
    }

    /// Why each side wants to wake up next.
    pub fn reasons(&self) -> Vec<(Instant, TimerReason)> {
        let of = |e: &Endpoint| e.associations().filter_map(|id| e.association(id)?.poll_timeout()).collect::<Vec<_>>();
        [of(&self.client), of(&self.server)].concat()
    }

    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        self.run_until(until, |_| false);
        self.now = until;
    }

    /// Runs until `done` or `until`; true when done.
    pub fn run_until(&mut self, until: Instant, mut done: impl FnMut(&Bench) -> bool) -> bool {
        let (mut steps, mut last) = (0u32, self.now);
        while self.step(until) {
            steps = if self.now == last { steps + 1 } else { 0 };
            last = self.now;
            assert!(steps < 100_000, "time stands still at {:?}: {:?}", self.now, self.reasons());
            if done(self) {
                return true;
            }
        }
        done(self)
    }
}

/// Flips bits of a packet that a link damages.
fn flip(packet: &mut Bytes, bits: &[u32]) {
    let mut bytes = packet.to_vec();
    anabranch_sim::damage::flip(&mut bytes, bits);
    *packet = Bytes::from(bytes);
}
