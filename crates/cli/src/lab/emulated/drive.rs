//! One run of a scenario through the emulator: sender, links and receiver in this process, on loopback.

use super::reports::report;
use crate::control::{self, Control};
use crate::exit::Failure;
use anabranch_base::Instant;
use anabranch_emulator::{Emulator, EmulatorConfig, PathConfig};
use anabranch_lab::run::{Emulated, EmulatedPath};
use anabranch_lab::scenario::Plan;
use anabranch_net::{
    Alarm, ClientConfig, ConnectOptions, Connection, Endpoint, Local, Message, PathSpec, SendError, ServerConfig,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Time for the connection.
const JOIN: std::time::Duration = std::time::Duration::from_secs(10);
/// Messages taken at once.
const BATCH: usize = 64;

/// A run that is over.
pub struct Ran {
    /// The values of the plan's metrics, in their order.
    pub values: Vec<Option<f64>>,
    /// What an idle emulator beside it saw.
    pub control: Control,
}

/// Relates the run's time, which is the emulator's, to that of the sockets.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn now(self) -> Instant {
        Instant::ZERO + anabranch_net::now().since(self.start)
    }
    fn socket(self, at: Instant) -> Instant {
        self.start + at.since(Instant::ZERO)
    }
    pub(super) async fn reach(self, at: Instant) {
        tokio::time::sleep_until(anabranch_net::to_std(self.socket(at)).into()).await;
    }
}

/// Carries out a run; takes as long as the scenario.
///
/// # Errors
/// A scenario that needs more than an emulator has; sockets; a connection that did not come about or did not last.
pub async fn run(plan: &Plan, seed: u64) -> Result<Ran, Failure> {
    let run = Emulated::new(plan, seed).map_err(Failure::usage)?;
    let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let server = Endpoint::server(ServerConfig::new(loopback, run.association().clone())).map_err(Failure::network)?;
    let target = *server.listening().first().ok_or_else(|| Failure::network("no socket to listen on"))?;
    let path = |p: &EmulatedPath| PathConfig {
        up: p.up.clone(),
        down: p.down.clone(),
        ..PathConfig::new(&p.name, loopback, target)
    };
    let config = EmulatorConfig::new(run.paths().iter().map(path).collect()).with_seed(seed);
    let client = Endpoint::client(ClientConfig::default()).map_err(Failure::network)?;
    let emulator = Emulator::start(config).map_err(Failure::network)?;
    let clock = Clock { start: anabranch_net::from_std(emulator.started_at()) };
    let paths = emulator.local_addrs().into_iter().enumerate().map(|(i, relay)| PathSpec::new(local(i), relay));
    let options = ConnectOptions::over(paths.collect(), run.association().clone());
    let end = Instant::ZERO + run.duration();
    let links = run.paths().to_vec();
    let run = RefCell::new(run);
    let flow = async {
        let (sender, receiver) =
            tokio::try_join!(async { client.connect(options).await.map_err(Failure::network) }, async {
                let accepted = tokio::time::timeout(JOIN, server.accept()).await;
                accepted.ok().flatten().ok_or_else(|| Failure::network("no connection came in"))
            },)?;
        let reports = async {
            report(&sender, &links, &emulator, clock, end).await;
            Ok(())
        };
        tokio::try_join!(send(&sender, &run, clock, end), receive(&receiver, &run, clock, end), reports)
    };
    let (control, _) = tokio::try_join!(control::beside(plan.duration.into()), flow)?;
    let values = run.borrow().values();
    Ok(Ran { values, control })
}

/// A local address for each path, so that each has a socket of its own, as with several interfaces.
pub(super) fn local(path: usize) -> Local {
    Local::Address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + u8::try_from(path).unwrap_or(u8::MAX - 1))))
}

async fn send(c: &Connection, run: &RefCell<Emulated>, clock: Clock, end: Instant) -> Result<(), Failure> {
    // The runtime's timers round up to milliseconds, which would be a part of each message's delay.
    let mut alarm = Alarm::new().map_err(Failure::network)?;
    loop {
        let now = clock.now();
        // A transfer without end has something due at any time.
        if now >= end {
            return Ok(());
        }
        let due = run.borrow_mut().due(now);
        let Some((options, payload)) = due else {
            let next = run.borrow().next_timeout().unwrap_or(end).min(end);
            alarm.set(Some(clock.socket(next)), anabranch_net::now());
            alarm.rung().await;
            continue;
        };
        let deadline = options.deadline.map(|d| clock.socket(d));
        let sent = c.send(anabranch_net::SendOptions { deadline, ..options }, payload);
        let Ok(sent) = tokio::time::timeout_at(anabranch_net::to_std(clock.socket(end)).into(), sent).await else {
            return Ok(());
        };
        match sent {
            // What found no room in time is as lost as what was given up later.
            Ok(()) | Err(SendError::Expired | SendError::WouldBlock) => {}
            Err(error) => return Err(Failure::network(error)),
        }
    }
}

async fn receive(c: &Connection, run: &RefCell<Emulated>, clock: Clock, end: Instant) -> Result<(), Failure> {
    let mut batch: Vec<Message> = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            received = c.recv_many(&mut batch, BATCH) => match received {
                Ok(n) if n > 0 => {
                    let now = clock.now();
                    let mut run = run.borrow_mut();
                    for m in batch.drain(..) {
                        run.delivered(now, m.ppid, m.stream, m.payload.len() as u64);
                    }
                }
                Ok(_) => return Err(Failure::network("the connection was shut down")),
                Err(reason) => return Err(Failure::network(format!("the connection is over: {reason}"))),
            },
            () = clock.reach(end) => return Ok(()),
        }
    }
}
