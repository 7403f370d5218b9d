//! The side of the servers: waits for connections, forwards each flow from a socket of its own.

use super::flows::Flows;
use super::{Manner, TunnelArgs, unwrap, wrap};
use crate::exit::{Failure, Outcome, warning};
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog, lock};
use crate::recv::{Door, Guest, Guests};
use crate::send::describe;
use crate::session::{Control, ppid};
use crate::stats::Reporter;
use crate::stop::{Cause, Stop};
use crate::transport::{Link, Listener};
use crate::udp::{self, DATAGRAM_MAX};
use crate::uri::{PeerUri, udp_address};
use anabranch_net::Message;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::task::{JoinHandle, JoinSet};

/// Other sides at a time.
const PEERS: usize = 64;

/// Flows of one other side.
const FLOWS: usize = 256;

/// Time for a clean end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs this side until the user ends it.
pub(super) async fn run(args: &TunnelArgs, accept: &str, forward: &str) -> Outcome {
    if !args.paths.paths.is_empty() {
        return Err(Failure::usage("--path goes with the side that connects; this one answers on the paths it learns"));
    }
    let at = PeerUri::parse(accept)?;
    let target = udp_address(forward, false)?;
    let interrupt = Interrupt::install();
    let listener = Listener::open(&at, &args.policies)?;
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    tracing::info!("listening on {:?}, forwarding to {target}", listener.addresses());
    let mut guests = Guests::start(listener, Door { places: PEERS, tunnels: true, ..Door::default() });
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            guest = guests.next() => {
                let Some(guest) = guest else { return Err(Failure::network("the socket driver has stopped")) };
                let session = Session {
                    stop: Stop::new(&interrupt, None),
                    reporter: Arc::new(Mutex::new(lock(&reporter).another())),
                    target,
                    interval: args.stats.stats_interval,
                    peer_timeout: args.policies.peer_timeout,
                    manner: Manner { latency: guest.hello.latency, ordered: args.ordered },
                    progress: Progress::default(),
                };
                sessions.spawn(session.run(guest));
            }
            Some(_) = sessions.join_next() => {}
            () = interrupt.wait() => break,
        }
    }
    while sessions.join_next().await.is_some() {}
    guests.settle().await;
    Err(Failure::Interrupted)
}

/// A flow: a socket towards the target, and the task that brings answers back.
struct Flow {
    socket: Arc<UdpSocket>,
    answers: JoinHandle<()>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

struct Session {
    stop: Stop,
    reporter: SharedReporter,
    target: SocketAddr,
    interval: Duration,
    peer_timeout: Duration,
    manner: Manner,
    progress: Progress,
}

impl Session {
    async fn run(self, guest: Guest) {
        let link = guest.link.clone();
        if let Err(failure) = link.control(&Control::Welcome(self.manner.latency)).await {
            return warning(&failure.to_string());
        }
        lock(&self.reporter).begin("tunnel", "tunnel", link.peer().into(), self.manner.latency.as_millis() as u64);
        let _watchdog = Watchdog::start(&link, self.peer_timeout, &self.stop);
        let monitor = Monitor::start(&link, &self.reporter, &self.progress, self.interval);
        let result = tokio::select! {
            biased;
            cause = self.stop.wait() => match cause {
                Cause::Lost(failure) => Err(failure),
                _ => Ok(()),
            },
            result = self.forward(&link) => result,
        };
        let cause = self.stop.get();
        match &cause {
            Some(Cause::Interrupted) => {
                let why = "interrupted".into();
                if let Err(failure) = link.control(&Control::Stop { failed: false, why }).await {
                    tracing::debug!("{failure}");
                }
                link.close(PATIENCE).await;
            }
            Some(_) => link.abort("gone"),
            // The other side has ended; it closes.
            None => {
                if !link.closed(PATIENCE).await {
                    link.close(PATIENCE).await;
                }
            }
        }
        if let Err(failure) = &result {
            warning(&failure.to_string());
        }
        monitor.finish("tunnel", describe(cause.as_ref(), result.as_ref().err()), None).await;
    }

    /// From the other side to the target, until the other side ends.
    async fn forward(&self, link: &Link) -> Outcome {
        let mut flows = Flows::new(FLOWS);
        loop {
            let message = match link.recv().await {
                Ok(Some(message)) => message,
                Ok(None) | Err(Failure::Interrupted) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            if message.ppid == ppid::CONTROL {
                if let Ok(Some(Control::End(_))) = Control::decode(&message.payload.into_bytes()) {
                    return Ok(());
                }
                continue;
            }
            self.pass_on(link, &mut flows, message).await;
        }
    }

    async fn pass_on(&self, link: &Link, flows: &mut Flows<Flow>, message: Message) {
        let Some((number, datagram)) = unwrap(message) else { return };
        let now = Instant::now();
        let socket = match flows.touch(number, now).map(|f| f.socket.clone()) {
            Some(socket) => socket,
            None => match udp::connected(self.target) {
                Ok(socket) => {
                    let socket = Arc::new(socket);
                    let answers = tokio::spawn(answer(socket.clone(), link.clone(), number, self.manner));
                    // Those that make room end when they are dropped.
                    drop(flows.insert(number, Flow { socket: socket.clone(), answers }, now));
                    socket
                }
                Err(failure) => return tracing::warn!("{failure}"),
            },
        };
        if let Err(error) = socket.send(&datagram).await {
            tracing::debug!(%error, target = %self.target, "a datagram was not taken");
        }
        self.progress.update(|row| {
            row.messages += 1;
            row.bytes += datagram.len() as u64;
        });
    }
}

/// Brings the target's answers back to the client.
async fn answer(socket: Arc<UdpSocket>, link: Link, flow: u32, manner: Manner) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(n) => {
                if link.send(manner.options(), wrap(flow, buffer.get(..n).unwrap_or(&[]))).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // Nobody listens at the target now; that may change.
                tracing::debug!(%error, "receiving from the target");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
