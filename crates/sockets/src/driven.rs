//! A host whose programs, packets and clock are read from bytes: the fuzz target `sockets` and the tests of what it
//! found share it.
//!
//! Programs open sockets of both styles on four addresses of one host, connect them to each other and to unused
//! addresses, set every option to anything; the network between them loses, repeats, delays and forges packets.

use crate::socket::{Departure, Errno, Reliability, SendRequest, Settings, SocketId, Stack, Style};
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_wire::Verify;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Addresses of the host, and one that no host has.
const ADDRESSES: [&str; 6] = ["127.0.0.1", "10.0.0.1", "10.0.0.2", "::1", "0.0.0.0", "192.0.2.9"];
const PORTS: [u16; 4] = [5_001, 5_002, 0, 7];
const SETTINGS: [&str; 16] = [
    "profile=cmt,nrsack_enable=1",
    "profile=live,pr_enable=1",
    "auth_enable=1,addip_enable=1",
    "reconfig_enable=1",
    "nrsack_enable=1",
    "as_kernels=0",
    "recvspace=3000",
    "sendspace=2000",
    "initial_cwnd=10,max_burst=0,ecn_enable=1",
    "sack_freq=1,sack_timeout=0",
    "pr_enable=0",
    "mtu=576",
    "path_max_retrans=0,association_max_retrans=1,pf_enable=1,pf_expose=2,ps_retrans=1",
    "rto_min=1,rto_initial=1,rto_max=1",
    "hb_interval=1,plpmtud_probe_interval=5000",
    "valid_cookie_life=0",
];
const LEVELS: [i32; 4] = [crate::abi::SOL_SCTP, crate::abi::SOL_SCTP, crate::abi::SOL_SCTP, libc::SOL_SOCKET];
const SOCKETS: usize = 12;
/// Packets on their way; the network drops what is more.
const ON_THE_WAY: usize = 400;

/// Takes the input apart; zeros behind its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn u8(&mut self) -> u8 {
        let Some((b, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *b
    }
    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (a, b) = self.0.split_at(n.min(self.0.len()));
        self.0 = b;
        a
    }
    fn address(&mut self) -> SocketAddr {
        let b = usize::from(self.u8());
        let ip = ADDRESSES[b % ADDRESSES.len()].parse().expect("an address");
        SocketAddr::new(ip, PORTS[b / ADDRESSES.len() % PORTS.len()])
    }
    fn addresses(&mut self) -> Vec<SocketAddr> {
        let n = self.u8() % 4;
        (0..n).map(|_| self.address()).collect()
    }
}

struct Driven {
    stack: Stack,
    now: Instant,
    sockets: Vec<SocketId>,
    wire: VecDeque<Departure>,
    /// Packets of before, to be changed and sent again.
    kept: VecDeque<Departure>,
    /// No packet was forged and no timer changed: what is closed must come to its end.
    orderly: bool,
    /// Bytes of messages that programs got.
    received: usize,
}

impl Driven {
    fn new(input: &mut Input<'_>) -> Driven {
        let mut settings = Settings::default();
        let set = input.u16();
        for (_, line) in SETTINGS.iter().enumerate().filter(|(i, _)| set >> i & 1 != 0) {
            for (name, value) in line.split(',').filter_map(|w| w.split_once('=')) {
                assert!(settings.set(name, value), "{name} is no setting");
            }
        }
        let mut made = 0;
        let entropy = Box::new(move || {
            made += 1;
            Box::new(RandomStream::named(made, "endpoint")) as Box<dyn anabranch_base::Entropy>
        });
        let mut stack = Stack::new(settings, entropy);
        for ip in &ADDRESSES[1..3] {
            stack.add_host_address(ip.parse().expect("an address"));
        }
        Driven {
            stack,
            now: Instant::ZERO,
            sockets: Vec::new(),
            wire: VecDeque::new(),
            kept: VecDeque::new(),
            orderly: true,
            received: 0,
        }
    }

    fn flush(&mut self) {
        let mut burst = 0;
        while let Some(d) = self.stack.poll_transmit() {
            burst += 1;
            assert!(burst < 20_000, "the packets never end");
            assert!(d.packet.len() <= 1_500, "a packet of {} bytes", d.packet.len());
            self.kept.truncate(31);
            self.kept.push_front(d.clone());
            if self.wire.len() < ON_THE_WAY {
                self.wire.push_back(d);
            }
        }
        for s in &self.sockets {
            let _ = self.stack.readiness(*s);
        }
    }

    fn arrive(&mut self, d: Departure, verify: Verify) {
        let from = SocketAddr::new(d.from, d.to.port());
        self.stack.arrive(self.now, d.to.ip(), from, &Bytes::from(d.packet), verify);
        self.flush();
    }

    /// Up to `n` packets arrive; a set bit of `fate` loses one, so repeats every eight.
    fn exchange(&mut self, n: usize, fate: u8) {
        for i in 0..n {
            let Some(d) = self.wire.pop_front() else { break };
            if fate >> (i % 8) & 1 == 0 {
                self.arrive(d, Verify::Checksum);
            }
        }
    }

    fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..100 {
            let Some(next) = self.stack.poll_timeout().filter(|t| *t <= until) else { break };
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.flush();
        }
        self.now = until;
    }

    fn add(&mut self, new: Option<SocketId>) {
        let Some(id) = new else { return };
        self.sockets.push(id);
        if self.sockets.len() > SOCKETS {
            let oldest = self.sockets.remove(0);
            self.stack.close(self.now, oldest).expect("it is ours");
        }
    }

    fn send(&mut self, id: SocketId, input: &mut Input<'_>) {
        let (what, len) = (input.u8(), usize::from(input.u16() % 9_000));
        let request = SendRequest {
            payload: Bytes::from(vec![what; len]),
            to: (what & 1 != 0).then(|| input.address()),
            association: (what & 2 != 0).then(|| i32::from(input.u8() % 8)),
            stream: (what & 4 != 0).then(|| u16::from(input.u8())),
            flags: (what & 8 != 0).then(|| input.u16()),
            ppid: None,
            context: (what & 32 != 0).then_some(7),
            reliability: (what & 16 != 0)
                .then(|| Reliability::of(u16::from(input.u8()), u32::from(input.u8())))
                .flatten(),
        };
        let sent = self.stack.send(self.now, id, &request);
        assert!(sent.is_err() || sent == Ok(len), "{sent:?} of {len}");
    }

    /// Something, or what the socket says itself with bytes changed.
    fn set_option(&mut self, id: SocketId, input: &mut Input<'_>) {
        let (level, option) = (LEVELS[usize::from(input.u8() % 4)], i32::from(input.u8()));
        let how = input.u8();
        let mut value = if how & 1 == 0 {
            input.take(usize::from(how)).to_vec()
        } else {
            self.stack.get_option(id, level, option, &[how; 160]).unwrap_or_default()
        };
        if how & 1 != 0 && !value.is_empty() {
            for _ in 0..=how >> 6 {
                let at = usize::from(input.u8()) % value.len();
                value[at] = input.u8();
            }
        }
        if self.stack.set_option(self.now, id, level, option, &value).is_ok() {
            self.orderly = false;
        }
    }

    fn forge(&mut self, input: &mut Input<'_>) {
        if self.kept.is_empty() {
            return;
        }
        let mut d = self.kept[usize::from(input.u8()) % self.kept.len()].clone();
        let how = input.u8();
        for _ in 0..how & 3 {
            let at = usize::from(input.u16()) % d.packet.len();
            d.packet[at] ^= input.u8();
        }
        if how & 4 != 0 {
            d.packet.truncate(usize::from(input.u16()));
        }
        if how & 8 != 0 {
            let n = usize::from(input.u8());
            d.packet.extend_from_slice(input.take(n));
        }
        if how & 16 != 0 {
            d.from = input.address().ip();
        }
        self.orderly &= how & 31 == 0;
        self.arrive(d, if how & 32 == 0 { Verify::Trusted } else { Verify::Checksum });
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (op, now) = (input.u8(), self.now);
        let stack = &mut self.stack;
        if op & 0x0f == 0 || self.sockets.is_empty() {
            let style = if op & 0x10 == 0 { Style::OneToOne } else { Style::OneToMany };
            let new = stack.socket(style, op & 0x20 != 0);
            return self.add(Some(new));
        }
        let at = usize::from(op >> 4) % self.sockets.len();
        let id = self.sockets[at];
        match op & 0x0f {
            1 => drop(stack.bind(now, id, input.address())),
            2 => {
                let list = input.addresses();
                let _ =
                    if input.u8() & 1 == 0 { stack.bind_more(now, id, &list) } else { stack.unbind(now, id, &list) };
            }
            3 => drop(stack.listen(now, id, i32::from(input.u8()) - 1)),
            4 => drop(stack.connect(now, id, &input.addresses())),
            5 => {
                let new = match input.u8() {
                    b if b < 128 => stack.accept(id).map(|(s, _)| s),
                    b => stack.peel_off(id, i32::from(b % 8)),
                };
                self.add(new.ok());
            }
            6 | 7 => self.send(id, input),
            8 | 9 => {
                let b = input.u8();
                for _ in 0..=b & 15 {
                    let room = usize::from(b) << 5;
                    match stack.receive(now, id, room, b & 16 != 0) {
                        Ok(r) => {
                            assert!(r.bytes.len() <= room, "more than there is room for");
                            self.received += if r.notification { 0 } else { r.bytes.len() };
                        }
                        Err(e) => assert!(e.0 > 0 && e != Errno::BAD_DESCRIPTOR, "{e}"),
                    }
                }
            }
            10 => self.set_option(id, input),
            11 => {
                let (level, option) = (LEVELS[usize::from(input.u8() % 4)], i32::from(input.u8()));
                let n = usize::from(input.u8());
                let _ = stack.get_option(id, level, option, input.take(n));
                let (_, _) = (stack.name(id), stack.peer_name(id));
            }
            12 => match input.u8() {
                b if b < 128 => drop(stack.shutdown(now, id, i32::from(b % 3))),
                _ => {
                    self.sockets.remove(at);
                    stack.close(now, id).expect("it is ours");
                }
            },
            13 => self.exchange(1 + usize::from(input.u8() % 32), input.u8()),
            14 => self.forge(input),
            _ => {
                let b = input.u8();
                self.advance(Duration::from_micros((u64::from(b & 0x0f) * 97) << (b >> 4)));
            }
        }
    }

    /// Closes everything; nothing may be left.
    fn end(mut self) {
        for id in std::mem::take(&mut self.sockets) {
            self.stack.close(self.now, id).expect("it is ours");
        }
        self.flush();
        for _ in 0..20_000 {
            self.exchange(ON_THE_WAY, 0);
            let Some(next) = self.stack.poll_timeout() else { break };
            self.advance(next.since(self.now) + Duration::from_millis(1));
        }
        let left = self.stack.left();
        assert!(!self.orderly || left.is_empty(), "left when all sockets are closed, at {:?}: {left:#?}", self.now);
    }
}

/// Plays `data` and answers how many bytes of messages were received; panics where something does not hold.
pub fn drive(data: &[u8]) -> usize {
    let mut input = Input(data);
    let mut d = Driven::new(&mut input);
    for _ in 0..400 {
        if input.0.is_empty() {
            break;
        }
        d.step(&mut input);
        d.flush();
    }
    let received = d.received;
    d.end();
    received
}

#[cfg(test)]
mod tests {
    use super::drive;

    #[test]
    fn random_bytes() {
        let rounds: u64 = std::env::var("ANABRANCH_FUZZED").ok().and_then(|v| v.parse().ok()).unwrap_or(300);
        for n in 0..rounds {
            let mut r = anabranch_base::RandomStream::named(n, "sockets");
            let bytes: Vec<u8> = (0..800).map(|_| r.below(256) as u8).collect();
            drive(&bytes);
        }
    }

    /// `ANABRANCH_CALLS=FILE` plays that one alone.
    #[test]
    fn seeds() {
        if let Some(file) = std::env::var_os("ANABRANCH_CALLS") {
            drive(&std::fs::read(file).expect("a file"));
            return;
        }
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/sockets");
        let mut n = 0;
        for entry in std::fs::read_dir(dir).expect("seeds") {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            drive(&std::fs::read(&path).expect("a file"));
            n += 1;
        }
        assert!(n > 0);
    }

    /// What the random bytes hardly reach: two sockets that find each other, talk and part, are in orderly hands.
    #[test]
    fn two_sockets_meet() {
        // Server: socket, bind to 127.0.0.1:5001, listen. Client: socket, connect, packets, accept, send, packets.
        let calls: [&[u8]; 9] = [
            &[0, 0],
            &[0x00],
            &[0x01, 0],
            &[0x03, 9],
            &[0x00],
            &[0x14, 1, 0],
            &[0x0d, 31, 0],
            &[0x05, 0],
            &[0x16, 0, 0, 200, 0x0d, 31, 0, 0x28, 0x0f],
        ];
        assert_eq!(drive(&calls.concat()), 200);
    }
}
