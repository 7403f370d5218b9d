//! The side with the clients: begins the connection.

use super::flows::Flows;
use super::{Manner, TunnelArgs, unwrap, wrap};
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog, lock};
use crate::reload::Reload;
use crate::send::{describe, ended, greet};
use crate::session::{Control, End, Hello, Mode, ppid};
use crate::stats::Reporter;
use crate::stop::{Cause, Stop};
use crate::transport::{self, Link};
use crate::udp::{self, DATAGRAM_MAX};
use crate::uri::{PeerUri, udp_address};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

/// Clients at a time.
const CLIENTS: usize = 1_024;

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
    let peer = PeerUri::parse(peer)?;
    let address = udp_address(listen, true)?;
    args.policies.profile(&peer)?;
    let interrupt = Interrupt::beside_reload(args.policies.config.as_deref());
    let socket = Arc::new(udp::listen(address, None)?);
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    let link = tokio::select! {
        link = transport::connect(&peer, &args.paths, &args.policies) => link?,
        () = interrupt.wait() => return Err(Failure::Interrupted),
    };
    let _reload = Reload::start(&link, &peer, &args.paths, &args.policies)?;
    let stop = Stop::new(&interrupt, None);
    let clients = Arc::new(Mutex::new(Clients::new(CLIENTS)));
    let mut inbox = outwards(&link, &stop, &socket, &clients);
    let hello =
        Hello { mode: Mode::Tunnel, latency: args.latency, profile: args.policies.profile(&peer)?.name().into() };
    match greet(&link, hello, &stop, &mut inbox, args.paths.connect_timeout).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            link.close(PATIENCE).await;
            return ended(stop.get(), Ok(()));
        }
        Err(failure) => {
            link.close(PATIENCE).await;
            return Err(failure);
        }
    }
    lock(&reporter).begin("tunnel", "tunnel", link.peer().into(), args.latency.as_millis() as u64);
    let progress = Progress::default();
    let _watchdog = Watchdog::start(&link, args.policies.peer_timeout, &stop);
    let monitor = Monitor::start(&link, &reporter, &progress, args.stats.stats_interval);
    let manner = Manner { latency: args.latency, ordered: args.ordered };
    let inwards = inwards(&link, &socket, &clients, manner, &progress);
    let result = tokio::select! {
        biased;
        _ = stop.wait() => Ok(()),
        failure = inwards => Err(failure),
    };
    let cause = stop.get();
    if matches!(cause, Some(Cause::Lost(_))) {
        link.end("gone").await;
    } else {
        let row = progress.get();
        let end = End { interrupted: true, messages: row.messages, frames: 0, bytes: row.bytes };
        if let Err(failure) = link.control(&Control::End(end)).await {
            tracing::debug!("{failure}");
        }
        link.close(PATIENCE).await;
    }
    monitor.finish("tunnel", describe(cause.as_ref(), result.as_ref().err()), None).await;
    ended(cause, result)
}

/// From the clients to the other side; returns when that fails.
async fn inwards(
    link: &Link,
    socket: &UdpSocket,
    clients: &Mutex<Clients>,
    manner: Manner,
    progress: &Progress,
) -> Failure {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        let (n, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                // An answer to an earlier packet, such as "port unreachable".
                tracing::debug!(%error, "receiving from clients");
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
        };
        let flow = lock(clients).flow(from, Instant::now());
        let message = wrap(flow, buffer.get(..n).unwrap_or(&[]));
        match link.send(manner.options(), message).await {
            Ok(sent) => progress.update(|row| {
                row.messages += 1;
                row.bytes += n as u64;
                row.expired += u64::from(!sent);
            }),
            Err(failure) => return failure,
        }
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
            let Some((flow, datagram)) = unwrap(message) else { continue };
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
