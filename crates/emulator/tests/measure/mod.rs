//! Packets through an emulated path and, at the same time, through a plain one that shows what the
//! machine itself does to them.

use anabranch_emulator::{Emulator, EmulatorConfig, EmulatorHandle, EmulatorStats};
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Measurements run one at a time: they must not share the machine with each other.
static MACHINE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket on loopback, with its address.
fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// What became of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    /// Sent, since the start of the emulator.
    pub sent: Duration,
    /// Arrived, since the start of the emulator; `None` when lost.
    pub arrived: Option<Duration>,
}

impl Fate {
    /// Time on the way in milliseconds.
    pub fn delay_ms(&self) -> Option<f64> {
        Some((self.arrived? - self.sent).as_secs_f64() * 1e3)
    }
}

/// A finished measurement.
#[derive(Debug)]
pub struct Run {
    /// Packets of the emulated path, in the order sent.
    pub packets: Vec<Fate>,
    pub stats: EmulatorStats,
    /// Sent in this order, arrived in this order?
    pub in_order: bool,
    /// Largest delay error of the plain path.
    pub machine_error: Duration,
    /// 99th percentile of the plain path's delay error in milliseconds.
    pub machine_p99_ms: f64,
}

impl Run {
    pub fn delays_ms(&self) -> Vec<f64> {
        let mut delays: Vec<f64> = self.packets.iter().filter_map(Fate::delay_ms).collect();
        delays.sort_by(f64::total_cmp);
        delays
    }
    pub fn lost(&self) -> Vec<usize> {
        (0..self.packets.len()).filter(|i| self.packets[*i].arrived.is_none()).collect()
    }
}

/// The plain path's own loss and delay error.
const PLAIN_DELAY_MS: f64 = 30.0;

/// Sends `count` packets of `size` bytes, one each `gap`, over the path `link` and over a plain path
/// with a fixed delay. `None` when the plain path shows three times that the machine is not fit to
/// measure on just now; a line on standard error then says so, for all to see.
pub fn measure(test: &str, link: &str, count: usize, size: usize, gap: Duration) -> Option<Run> {
    let mut why = String::new();
    for _ in 0..3 {
        let [plain, mut run] = once(link, count, size, gap);
        let mut errors: Vec<f64> = plain.packets.iter().filter_map(Fate::delay_ms).collect();
        errors.iter_mut().for_each(|d| *d = (*d - PLAIN_DELAY_MS).abs());
        errors.sort_by(f64::total_cmp);
        let p99 = errors.get(errors.len() * 99 / 100).copied().unwrap_or(f64::INFINITY);
        let lost = plain.lost().len();
        if lost == 0 && p99 < 5.0 {
            run.machine_p99_ms = p99;
            run.machine_error = Duration::from_secs_f64(errors.last().copied().unwrap_or(0.0) / 1e3);
            return Some(run);
        }
        why = format!("machine lost {lost} of {count}, delay error p99 {p99:.3} ms, {:?}", run.stats.machine);
    }
    // Past the capture of the test harness: a skipped measurement must not look like a passed one.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: the control run failed: {why}");
    // Without a reader of what was skipped, a test that measured nothing has failed.
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{test}: not measured, and CI is set: {why}");
    None
}

fn once(link: &str, count: usize, size: usize, gap: Duration) -> [Run; 2] {
    let (plain_in, plain_to) = socket();
    let (tested_in, tested_to) = socket();
    let config = EmulatorConfig::from_texts([
        format!("name plain listen 127.0.0.1:0 to {plain_to} delay 30ms").as_str(),
        format!("name tested listen 127.0.0.1:0 to {tested_to} {link}").as_str(),
    ]);
    let emulator = Emulator::start(config.unwrap().with_seed(5)).unwrap();
    let start = emulator.started_at();
    let [plain_out, tested_out] = [connected(&emulator, 0), connected(&emulator, 1)];
    let (sent, plain, tested) = thread::scope(|scope| {
        let plain = scope.spawn(|| collect(&plain_in, start, count));
        let tested = scope.spawn(|| collect(&tested_in, start, count));
        let mut sent = Vec::with_capacity(count);
        let mut packet = vec![0; size];
        let begin = Instant::now();
        for i in 0..count {
            let due = begin + gap * i as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            packet[..4].copy_from_slice(&(i as u32).to_be_bytes());
            sent.push(start.elapsed());
            tested_out.send(&packet).unwrap();
            plain_out.send(&packet).unwrap();
        }
        (sent, plain.join().unwrap(), tested.join().unwrap())
    });
    let stats = emulator.stop();
    [plain, tested].map(|arrived| {
        let mut packets: Vec<Fate> = sent.iter().map(|sent| Fate { sent: *sent, arrived: None }).collect();
        for (i, at) in &arrived {
            packets[*i].arrived = Some(*at);
        }
        let in_order = arrived.is_sorted_by_key(|(i, _)| *i);
        Run { packets, stats: stats.clone(), in_order, machine_error: Duration::ZERO, machine_p99_ms: 0.0 }
    })
}

fn connected(emulator: &EmulatorHandle, path: usize) -> UdpSocket {
    let (out, _) = socket();
    out.connect(emulator.local_addrs()[path]).unwrap();
    out
}

/// Numbers and arrival times, until nothing came for a while.
fn collect(socket: &UdpSocket, start: Instant, count: usize) -> Vec<(usize, Duration)> {
    let mut got = Vec::with_capacity(count);
    let mut buffer = [0; 2_000];
    socket.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    while got.len() < count {
        let Ok(n) = socket.recv(&mut buffer) else { break };
        let at = start.elapsed();
        assert!(n >= 4);
        got.push((u32::from_be_bytes(buffer[..4].try_into().unwrap()) as usize, at));
    }
    got
}
