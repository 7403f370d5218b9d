//! The side of the servers: waits for connections, forwards each flow from a socket of its own.

use super::flows::{IDLE, Shared};
use super::{Manner, TunnelArgs, unwrap, wrap};
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog, lock};
use crate::recv::{Door, Guest, Guests, Rules, Seat};
use crate::send::describe;
use crate::session::{Control, ppid};
use crate::stats::Reporter;
use crate::stop::{Cause, Stop};
use crate::transport::{Link, Listener};
use crate::udp::{self, DATAGRAM_MAX};
use crate::uri::{PeerUri, udp_address};
use crate::warn;
use anabranch_net::Message;
use bytes::Bytes;
use nix::sys::resource::{Resource, getrlimit};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::task::{JoinHandle, JoinSet};

/// Other sides at a time.
const PEERS: usize = 64;

/// Of those, from one address.
const PER_ADDRESS: usize = 32;

/// Flows of one other side.
const FLOWS: usize = 256;

/// Flows of all of them, where the process may open as many files.
const FLOWS_MOST: usize = 4_096;

/// Descriptors that are not for flows: sockets of the endpoint, statistics, captures, what the runtime has.
const RESERVED: u64 = 64;

/// Time for a clean end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs this side until the user ends it.
pub(super) async fn run(args: &TunnelArgs, accept: &str, forward: &str) -> Outcome {
    if !args.paths.paths.is_empty() || args.paths.allow_missing {
        return Err(Failure::usage(
            "--path and --allow-missing go with the side that connects; this one answers on the paths it learns",
        ));
    }
    if args.paths.connect_timeout.is_some() {
        return Err(Failure::usage(
            "--connect-timeout goes with the side that connects; this one waits until it is ended",
        ));
    }
    let at = PeerUri::for_tunnel(accept)?;
    let target = udp_address(forward, false)?;
    let interrupt = Interrupt::prompt();
    let rules = Rules { places: PEERS, per_address: PER_ADDRESS, replaces: true, replaces_files: true };
    let door = Door::new(rules, &at, &args.door, true);
    let listener = Listener::open(&at, &args.policies, args.door.limits(PEERS))?;
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    tracing::info!("listening on {:?}, forwarding to {target}", listener.addresses());
    let mut guests = Guests::start(listener, door);
    let flows: SharedFlows = Arc::new(Mutex::new(Shared::new(FLOWS, flows_in_all())));
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
                    seat: guest.place.seat.clone(),
                    flows: flows.clone(),
                    number: lock(&flows).join(),
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

/// Flows of all the other sides.
type SharedFlows = Arc<Mutex<Shared<Flow>>>;

/// As many as the process may open files, less what is needed otherwise.
fn flows_in_all() -> usize {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(soft, _)| soft);
    usize::try_from(files.saturating_sub(RESERVED)).unwrap_or(FLOWS_MOST).clamp(8, FLOWS_MOST)
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
    seat: Arc<Seat>,
    flows: SharedFlows,
    /// Of this session among the flows.
    number: u32,
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(lock(&self.flows).leave(self.number));
    }
}

impl Session {
    async fn run(self, guest: Guest) {
        let link = guest.link.clone();
        if let Err(failure) = link.control(&Control::Welcome(self.manner.latency)).await {
            return warn::limited("tunnel", || failure.to_string());
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
            () = self.seat.leave() => {
                self.stop.set(Cause::Lost(Failure::network(format!("{}: another side has its place", link.peer()))));
                Ok(())
            }
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
            warn::limited("tunnel", || failure.to_string());
        }
        monitor.finish("tunnel", describe(cause.as_ref(), result.as_ref().err()), None).await;
    }

    /// From the other side to the target, until the other side ends.
    async fn forward(&self, link: &Link) -> Outcome {
        let mut sweep = tokio::time::interval(IDLE / 12);
        loop {
            let message = tokio::select! {
                message = link.recv() => message,
                _ = sweep.tick() => {
                    let gone = lock(&self.flows).expire(Instant::now());
                    drop(gone);
                    continue;
                }
            };
            let message = match message {
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
            self.pass_on(link, message).await;
        }
    }

    async fn pass_on(&self, link: &Link, message: Message) {
        let Some((number, datagram)) = unwrap(message.ppid, message.payload) else { return };
        self.seat.heard();
        let socket = match self.socket(link, number) {
            Ok(socket) => socket,
            Err(failure) => return warn::limited("flow", || failure.to_string()),
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

impl Session {
    /// The socket of a flow, a new one if need be.
    fn socket(&self, link: &Link, number: u32) -> Result<Arc<UdpSocket>, Failure> {
        let now = Instant::now();
        let mut flows = lock(&self.flows);
        if let Some(flow) = flows.touch(self.number, number, now) {
            return Ok(flow.socket.clone());
        }
        // Those that make room close before another is opened.
        drop(flows.make_room(self.number, now));
        let socket = Arc::new(udp::connected(self.target)?);
        let answers = tokio::spawn(answer(socket.clone(), link.clone(), number, self.manner));
        drop(flows.insert(self.number, number, Flow { socket: socket.clone(), answers }, now));
        Ok(socket)
    }
}

/// Brings the target's answers back to the client.
async fn answer(socket: Arc<UdpSocket>, link: Link, flow: u32, manner: Manner) {
    loop {
        match receive(&socket, flow).await {
            Ok(message) => {
                if link.send(manner.options(), message).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // The target's port is closed now; that may change.
                tracing::debug!(%error, "receiving from the target");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// The next answer, wrapped. The buffer is the thread's: one for each flow would be 64 KB times their number.
async fn receive(socket: &UdpSocket, flow: u32) -> io::Result<Bytes> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; DATAGRAM_MAX]);
    }
    loop {
        socket.readable().await?;
        let received = BUFFER
            .with_borrow_mut(|buffer| socket.try_recv(buffer).map(|n| wrap(flow, buffer.get(..n).unwrap_or(&[]))));
        match received {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            received => return received,
        }
    }
}
