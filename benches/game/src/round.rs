//! One game over one stack, with the idle emulator as a control beside it.

use crate::args::Args;
use crate::bridge::{self, Bridge};
use crate::play::{self, Server};
use crate::stack::{Result, Stack};
use crate::tally::{Class, Tally};
use anabranch_emulator::{ControlReport, Emulator, EmulatorConfig, EmulatorHandle, measure_control};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Between the last bot's arrival and the first message that counts: windows and estimators have settled.
const LEAD: Duration = Duration::from_secs(2);
/// What was made last may still come.
const TAIL: Duration = Duration::from_secs(3);
/// Packets of the control, a second.
const CONTROL: u32 = 100;
/// Header bytes of a datagram on the wire: IP and UDP.
const HEADERS: u64 = 28;
/// Threads that are the network's and the control's.
const NETWORK: [&str; 3] = ["emulator", "bridge", "control"];

pub struct Setting<'a> {
    pub args: &'a Args,
    pub loss: &'a str,
    pub seed: u64,
    pub bridge: Option<&'a Arc<Bridge>>,
}

/// What leads to the server.
#[derive(Clone, Copy, PartialEq)]
pub enum Links {
    One,
    Two,
    /// One, for IP packets.
    Bridged,
}

/// What one round, or several, came to.
#[derive(Default)]
pub struct Measured {
    pub tally: Tally,
    /// Bytes given to the links towards the server and from it, headers included.
    pub up: u64,
    pub down: u64,
    /// Seconds of processor time, the network's left out.
    pub cpu: f64,
    /// Why the control did not pass.
    pub failure: Option<String>,
}

impl Measured {
    pub fn add(&mut self, other: &Measured) {
        self.tally.add(&other.tally);
        self.up += other.up;
        self.down += other.down;
        self.cpu += other.cpu;
    }

    pub fn short(&self) -> String {
        let p99 = |class| self.tally.row(class, Duration::from_secs(1)).p99;
        let [input, state, chat] = Class::ALL.map(p99);
        format!("99 of 100 within {input:.0} ms (inputs), {state:.0} ms (states), {chat:.0} ms (chat)")
    }
}

pub fn play<S: Stack>(setting: &Setting<'_>, stack: S, links: Links) -> Result<Measured> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(game(setting, stack, links));
    // Tasks of the game end with it.
    runtime.shutdown_timeout(Duration::from_secs(2));
    measured
}

async fn game<S: Stack>(setting: &Setting<'_>, stack: S, links: Links) -> Result<Measured> {
    let rules = setting.args.rules;
    let tally = Arc::new(Tally::default());
    let (at, mut seats) = stack.open(rules).await?;
    let server = Server::new(rules, tally.clone());
    let (host, ticking) = (server.clone(), server.clone());
    tokio::spawn(async move {
        while let Some(seat) = seats.recv().await {
            let host = host.clone();
            tokio::spawn(async move { host.play(seat).await });
        }
    });
    tokio::spawn(async move { ticking.tick().await });

    let (emulator, ways) = lay(setting, at, links)?;
    let stack = Arc::new(stack);
    for (number, way) in (0..rules.bots).zip(ways) {
        let (stack, tally) = (stack.clone(), tally.clone());
        tokio::spawn(async move {
            match stack.join(rules, way).await {
                Ok(line) => play::bot(rules, &tally, number, line).await,
                Err(e) => eprintln!("bot {number}: {e}"),
            }
        });
    }
    let all_there = async {
        while server.players() < usize::from(rules.bots) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), all_there)
        .await
        .map_err(|_| format!("{} of {} bots could connect in 30 s", server.players(), rules.bots))?;
    sleep(LEAD).await;

    let span = Duration::from_secs(setting.args.seconds);
    let control = std::thread::Builder::new().name("control".into()).spawn(move || measure_control(span, CONTROL))?;
    let (cpu, before) = (processor_time(), wire(&emulator, links));
    tally.begin(span);
    sleep(span).await;
    let (after, cpu) = (wire(&emulator, links), processor_time() - cpu);
    sleep(TAIL).await;
    let control = control.join().map_err(|_| "the control panicked")??;
    let failure = failure(&control, &emulator);
    let left = usize::from(rules.bots) - server.players().min(rules.bots.into());
    if left > 0 {
        return Err(format!("{left} players were lost").into());
    }
    let measured = Measured { up: after.0 - before.0, down: after.1 - before.1, cpu, failure, ..Measured::default() };
    measured.tally.add(&tally);
    Ok(measured)
}

/// The links of all bots, and where each finds the server.
fn lay(setting: &Setting<'_>, server: SocketAddr, links: Links) -> Result<(EmulatorHandle, Vec<Vec<SocketAddr>>)> {
    let Args { rules, link, second, .. } = setting.args;
    let mut target = server;
    let mut more = String::new();
    if let (Links::Bridged, Some(bridge)) = (links, setting.bridge) {
        // What the emulator carries are whole IP packets there.
        (target, more) = (bridge.target()?, " overhead 0".into());
    }
    let path = |name: &str, i: u16, words: &str| {
        format!("name {name}{i} listen 127.0.0.1:0 to {target} {words} loss {}%{more}", setting.loss)
    };
    let mut texts: Vec<String> = (0..rules.bots).map(|i| path("first", i, link)).collect();
    if links == Links::Two {
        texts.extend((0..rules.bots).map(|i| path("second", i, second)));
    }
    let config = EmulatorConfig::from_texts(texts.iter().map(String::as_str))?.with_seed(setting.seed);
    let emulator = Emulator::start(config)?;
    let relays = emulator.local_addrs();
    let bots = usize::from(rules.bots);
    let ways = match (links, setting.bridge) {
        (Links::Bridged, Some(bridge)) => {
            bridge.lead(server.port(), relays);
            (0..rules.bots).map(|i| vec![SocketAddr::from((bridge::address_for(i), server.port()))]).collect()
        }
        _ => (0..bots).map(|i| relays.iter().skip(i).step_by(bots).copied().collect()).collect(),
    };
    Ok((emulator, ways))
}

/// Bytes on the wire so far, towards the server and from it.
fn wire(emulator: &EmulatorHandle, links: Links) -> (u64, u64) {
    let headers = if links == Links::Bridged { 0 } else { HEADERS };
    let stats = emulator.stats();
    stats.paths.iter().fold((0, 0), |(up, down), p| {
        let of = |t: anabranch_emulator::LinkCounters| t.offered.bytes + headers * t.offered.packets;
        (up + of(p.up), down + of(p.down))
    })
}

/// Why the round does not count.
fn failure(control: &ControlReport, emulator: &EmulatorHandle) -> Option<String> {
    let machine = emulator.stats().machine;
    let lost = machine.receive_drops.unwrap_or(0) + machine.send_errors + machine.overflow;
    control.failure().or_else(|| (lost > 0).then(|| format!("the machine lost {lost} packets of the links")))
}

/// Processor time of the threads there are, the network's left out, in seconds.
fn processor_time() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let of = |task: std::fs::DirEntry| {
        let read = |name| std::fs::read_to_string(task.path().join(name)).ok();
        if NETWORK.contains(&read("comm")?.trim()) {
            return None;
        }
        read("schedstat")?.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(of).sum::<u64>() as f64 / 1e9
}
