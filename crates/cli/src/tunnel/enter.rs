//! The side with the clients: begins the connection.

use super::flows::Flows;
use super::{Manner, TunnelArgs, unwrap, wrap};
use crate::exit::{Failure, Outcome, warning};
use crate::interrupt::Interrupt;
use crate::line::{Line, Outage};
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog, lock};
use crate::reload::Reload;
use crate::send::{describe, ended, greet};
use crate::session::{Control, End, Hello, Mode, ppid};
use crate::stats::{Reporter, unread_parity};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use crate::udp::{self, DATAGRAM_MAX};
use crate::uri::{PeerUri, udp_address};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

/// Clients at a time.
const CLIENTS: usize = 1_024;

/// Datagrams that may wait for the other side, and for how long those that are never given up do.
const HELD: usize = 1_024;
const WAITING: Duration = Duration::from_secs(1);

/// Time for a clean end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Clients by address and by flow.
struct Clients {
    flows: Flows<SocketAddr>,
    by_address: BTreeMap<SocketAddr, u32>,
    next: u32,
}

impl Clients {
    fn new(max: usize) -> Self {
        Clients { flows: Flows::new(max), by_address: BTreeMap::new(), next: 0 }
    }

    /// The flow of a client, a new one if need be.
    fn flow(&mut self, client: SocketAddr, now: Instant) -> u32 {
        if let Some(flow) = self.by_address.get(&client).copied()
            && self.flows.touch(flow, now).is_some()
        {
            return flow;
        }
        let flow = self.next;
        self.next = self.next.wrapping_add(1);
        for (_, gone) in self.flows.insert(flow, client, now) {
            self.by_address.remove(&gone);
        }
        self.by_address.insert(client, flow);
        flow
    }
}

/// Runs this side.
pub(super) async fn run(args: &TunnelArgs, listen: &str, peer: &str) -> Outcome {
    let peer = PeerUri::for_tunnel(peer)?;
    let address = udp_address(listen, true)?;
    let profile = args.policies.profile(&peer)?.name();
    let interrupt = Interrupt::beside_reload(args.policies.config.as_deref());
    let socket = Arc::new(udp::listen(address, None)?);
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    let line = Line::open(&peer, &args.paths, &args.policies)?;
    let _reload = Reload::start(line.handle(), args.policies.config.as_deref())?;
    let mut entrance = Entrance {
        args,
        profile,
        line,
        outage: Outage::new(args.once),
        socket,
        clients: Arc::new(Mutex::new(Clients::new(CLIENTS))),
        progress: Progress::default(),
        reporter,
        monitor: None,
        held: Held::default(),
    };
    let (cause, result) = loop {
        let stop = Stop::new(&interrupt, None);
        match entrance.session(&stop).await {
            (cause @ Some(Cause::Interrupted), _) => break (cause, Ok(())),
            (cause, ended @ Err(Failure::Usage(_))) => break (cause, ended),
            (cause, ended) if args.once => break (cause, ended),
            (cause, ended) => entrance.lost(cause, ended),
        }
    };
    entrance.line.stop();
    if let Some(monitor) = entrance.monitor.take() {
        monitor.finish("tunnel", describe(cause.as_ref(), result.as_ref().err()), None).await;
    }
    ended(cause, result)
}

struct Entrance<'a> {
    args: &'a TunnelArgs,
    profile: &'static str,
    line: Line,
    outage: Outage,
    socket: Arc<UdpSocket>,
    clients: Arc<Mutex<Clients>>,
    progress: Progress,
    reporter: SharedReporter,
    /// From the first session on.
    monitor: Option<Monitor>,
    held: Held,
}

impl Entrance<'_> {
    /// From the search for the other side to the end of the connection with it: why it ended, and how.
    async fn session(&mut self, stop: &Stop) -> (Option<Cause>, Outcome) {
        let link = tokio::select! {
            biased;
            cause = stop.wait() => return (Some(cause), Ok(())),
            link = self.line.next(self.args.once, &mut self.outage) => link,
            () = self.held.fill(&self.socket, self.args.latency, &self.progress) => return (None, Ok(())),
        };
        let link = match link {
            Ok(link) => link,
            Err(failure) => return (None, Err(failure)),
        };
        let before = self.progress.get();
        let result = self.carry(&link, stop).await;
        // Closing ends the connection, which says nothing any more about how the session ended.
        let cause = stop.get();
        let over = self.args.once || matches!(cause, Some(Cause::Interrupted));
        if over {
            self.line.stop();
        }
        if matches!(cause, Some(Cause::Lost(_))) {
            if over {
                link.end("gone").await
            } else {
                link.abort("gone")
            }
            return (cause, result);
        }
        let row = self.progress.get();
        let (messages, bytes) = (row.messages - before.messages, row.bytes - before.bytes);
        if let Err(failure) = link.control(&Control::End(End { interrupted: true, messages, frames: 0, bytes })).await {
            tracing::debug!("{failure}");
        }
        if over {
            link.close(PATIENCE).await
        } else {
            link.leave(PATIENCE).await
        }
        (cause, result)
    }

    /// Carries datagrams until the user or the peer ends it.
    async fn carry(&mut self, link: &Link, stop: &Stop) -> Outcome {
        let _watchdog = Watchdog::start(link, self.args.policies.peer_timeout, stop);
        let mut inbox = outwards(link, stop, &self.socket, &self.clients);
        let latency = self.args.latency;
        let hello = Hello { mode: Mode::Tunnel, latency, profile: self.profile.into() };
        if greet(link, hello, stop, &mut inbox, self.args.paths.patience()).await?.is_none() {
            return Ok(());
        }
        self.outage.over(link.peer());
        match &self.monitor {
            Some(monitor) => monitor.follow(link, latency),
            None => {
                if let Some(what) = unread_parity(&link.stats()) {
                    warning(&format!("{} {what}", link.peer()));
                }
                lock(&self.reporter).begin("tunnel", "tunnel", link.peer().into(), latency.as_millis() as u64);
                self.progress.update(|row| row.connected = Some(true));
                let interval = self.args.stats.stats_interval;
                self.monitor = Some(Monitor::start(link, &self.reporter, &self.progress, interval));
            }
        }
        let manner = Manner { latency, ordered: self.args.ordered };
        self.held.drop_old(latency, &self.progress);
        let way = Way { link, clients: &self.clients, manner, progress: &self.progress };
        let work = async {
            while let Some(d) = self.held.datagrams.pop_front() {
                way.inwards(d.from, &d.bytes).await?;
            }
            way.all_inwards(&self.socket).await
        };
        tokio::select! {
            biased;
            _ = stop.wait() => Ok(()),
            ended = work => ended,
        }
    }

    /// The other side is gone; why.
    fn lost(&mut self, cause: Option<Cause>, ended: Outcome) {
        let why = match (cause, ended) {
            (Some(Cause::Lost(failure)), _) | (_, Err(failure)) => failure,
            (Some(Cause::Peer(why)), _) => {
                Failure::network(format!("{} has ended the tunnel ({why})", self.line.peer()))
            }
            _ => Failure::network(format!("{} has ended the tunnel", self.line.peer())),
        };
        if let Some(monitor) = &self.monitor {
            monitor.lost(&why);
        }
        self.outage.because(&why);
    }
}

/// What a client sent while there was no session.
struct Datagram {
    at: Instant,
    from: SocketAddr,
    bytes: Vec<u8>,
}

/// Such datagrams, as long as they are worth sending.
#[derive(Default)]
struct Held {
    datagrams: VecDeque<Datagram>,
}

impl Held {
    /// Takes what clients send; what has waited for longer than `latency` goes. Never returns, and may be dropped at any
    /// time.
    async fn fill(&mut self, socket: &UdpSocket, latency: Duration, progress: &Progress) {
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            let (n, from) = receive(socket, &mut buffer).await;
            let bytes = buffer.get(..n).unwrap_or(&[]).to_vec();
            self.datagrams.push_back(Datagram { at: Instant::now(), from, bytes });
            self.drop_old(latency, progress);
        }
    }

    fn drop_old(&mut self, latency: Duration, progress: &Progress) {
        let limit = if latency.is_zero() { WAITING } else { latency };
        let old = |d: &Datagram| d.at.elapsed() > limit;
        while self.datagrams.len() > HELD || self.datagrams.front().is_some_and(old) {
            let Some(gone) = self.datagrams.pop_front() else { return };
            progress.update(|row| row.dropped_bytes += gone.bytes.len() as u64);
        }
    }
}

/// The next datagram of a client.
async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(buffer).await {
            Ok(received) => return received,
            Err(error) => {
                // An answer to an earlier packet, such as "port unreachable".
                tracing::debug!(%error, "receiving from clients");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// From the clients to the other side.
struct Way<'a> {
    link: &'a Link,
    clients: &'a Mutex<Clients>,
    manner: Manner,
    progress: &'a Progress,
}

impl Way<'_> {
    /// All that comes; returns when that fails.
    async fn all_inwards(&self, socket: &UdpSocket) -> Outcome {
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            let (n, from) = receive(socket, &mut buffer).await;
            self.inwards(from, buffer.get(..n).unwrap_or(&[])).await?;
        }
    }

    async fn inwards(&self, from: SocketAddr, datagram: &[u8]) -> Outcome {
        let flow = lock(self.clients).flow(from, Instant::now());
        let sent = self.link.send(self.manner.options(), wrap(flow, datagram)).await?;
        self.progress.update(|row| {
            row.messages += 1;
            row.bytes += datagram.len() as u64;
            row.expired += u64::from(!sent);
        });
        Ok(())
    }
}

/// From the other side to the clients; control messages go to the receiver returned.
fn outwards(
    link: &Link,
    stop: &Stop,
    socket: &Arc<UdpSocket>,
    clients: &Arc<Mutex<Clients>>,
) -> mpsc::Receiver<Control> {
    let (tx, rx) = mpsc::channel(8);
    let (link, stop, socket, clients) = (link.clone(), stop.clone(), socket.clone(), clients.clone());
    tokio::spawn(async move {
        let ended = loop {
            let message = match link.recv().await {
                Ok(Some(message)) => message,
                Ok(None) | Err(Failure::Interrupted) => {
                    break Failure::network(format!("{} has ended the tunnel", link.peer()));
                }
                Err(failure) => break failure,
            };
            if message.ppid == ppid::CONTROL {
                match Control::decode(&message.payload.into_bytes()) {
                    Ok(Some(Control::Stop { why, .. })) => stop.set(Cause::Peer(why)),
                    Ok(Some(Control::Refuse(why))) => {
                        stop.set(Cause::Lost(Failure::network(format!("{} refuses: {why}", link.peer()))));
                    }
                    Ok(Some(message)) => {
                        // Only the beginning waits for these.
                        let _ = tx.try_send(message);
                    }
                    Ok(None) => {}
                    Err(e) => break Failure::network(format!("{}: {e}", link.peer())),
                }
                continue;
            }
            let Some((flow, datagram)) = unwrap(message.ppid, message.payload) else { continue };
            let client = lock(&clients).flows.touch(flow, Instant::now()).copied();
            if let Some(client) = client
                && let Err(error) = socket.send_to(&datagram, client).await
            {
                tracing::debug!(%error, %client, "a datagram was not taken");
            }
        };
        // A far side that said why it ends is not lost when it then goes.
        if !matches!(stop.get(), Some(Cause::Peer(_))) {
            stop.set(Cause::Lost(ended));
        }
    });
    rx
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_a_flow() {
        let now = Instant::now();
        let client = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let mut c = Clients::new(2);
        assert_eq!([c.flow(client(1), now), c.flow(client(2), now), c.flow(client(1), now)], [0, 1, 0]);
        let later = now + Duration::from_secs(1);
        assert_eq!(c.flow(client(1), later), 0);
        assert_eq!(c.flow(client(3), later), 2, "client 2 makes room");
        assert_eq!(c.by_address.len(), 2);
        assert_eq!(c.flow(client(2), later), 3, "and comes back as another flow");
    }
}
