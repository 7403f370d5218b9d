//! Connections as the commands use them: errors become failures with an exit code.

use crate::exit::Failure;
use crate::monitor::lock;
use crate::netargs::{PathArgs, PolicyArgs};
use crate::session::{CONTROL_STREAM, Control, StreamName, ppid};
use crate::uri::{self, PeerUri};
use anabranch_media::MediaHint;
use anabranch_net::{
    ClientConfig, CloseReason, ConnectOptions, Connection, ConnectionStats, Endpoint, Error, ErrorKind, Events, IpNet,
    Local, Message, PathSpec, SendError, SendOptions, ServerConfig, StreamId, Transport, UsableRate, WeakEndpoint,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

/// Reason that the peer gets when our user ends a session that cannot end gracefully in time.
const INTERRUPTED: &str = "interrupted by the user";

/// A capture on disk is complete up to this long ago.
const CAPTURE_LAG: Duration = Duration::from_millis(700);

/// Receive buffer of a peer that has not been let in: it has nothing to say but who it is.
const STRANGERS: usize = 16 << 10;

/// Associations beyond those that a listener has places for: they have been refused, or will be.
const SPARE: usize = 64;

/// Endpoints that are there. They say goodbye when an end takes too long.
static ENDPOINTS: Mutex<Vec<WeakEndpoint>> = Mutex::new(Vec::new());

/// An endpoint, kept while its connections live.
#[derive(Clone)]
pub struct Sockets {
    endpoint: Endpoint,
    captured: bool,
}

/// A connection with a peer; clones are the same one.
#[derive(Clone)]
pub struct Link {
    connection: Connection,
    sockets: Sockets,
    peer: String,
    /// Where it was when it came.
    address: Option<SocketAddr>,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        failed(&e)
    }
}

/// How to reach a peer over all paths the user named. Looks up its name, which takes time.
pub fn options(peer: &PeerUri, paths: &PathArgs, policies: &PolicyArgs) -> Result<ConnectOptions, Failure> {
    let association = policies.association(peer)?;
    let remotes = peer.resolve()?;
    let mut options = ConnectOptions::over(paths.specs(&remotes)?, association);
    options.timeout = paths.patience();
    options.allow_missing = paths.allow_missing;
    options.list_addresses = policies.list_addresses;
    if policies.transport(peer) == Transport::RawIp {
        options.peer_port = peer.port;
    }
    Ok(options)
}

/// A peer that could not be reached.
pub fn failed(e: &Error) -> Failure {
    match (e, e.kind()) {
        (Error::Unreachable { .. }, _) => {
            Failure::network(format!("{e}; check the address, and that `anabranch recv` or `tunnel` runs there"))
        }
        (_, ErrorKind::Network) => Failure::network(e),
        (_, ErrorKind::Usage) => Failure::usage(e),
    }
}

/// What a listener bears.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Networks that peers come from; empty for all.
    pub from: Vec<IpNet>,
    /// Associations at a time.
    pub associations: usize,
}

/// Where peers may come in.
pub struct Listener {
    sockets: Sockets,
    /// Receive buffer of those that are let in.
    receive_buffer: usize,
}

impl Listener {
    /// Listens on an address, or on all.
    pub fn open(at: &PeerUri, policies: &PolicyArgs, limits: Limits) -> Result<Self, Failure> {
        let mut association = policies.association(at)?;
        let receive_buffer = std::mem::replace(&mut association.limits.receive_buffer, STRANGERS);
        let mut config = match &at.host {
            Some(host) => ServerConfig::new(uri::resolve(host, at.port)?, association),
            None => ServerConfig::everywhere(at.port, association),
        };
        config.transport = policies.transport(at);
        if config.transport == Transport::RawIp {
            config.port = at.port;
        }
        config.list_addresses = policies.list_addresses;
        config.pcap.clone_from(&policies.pcap);
        config.from = limits.from;
        config.max_associations = limits.associations + SPARE;
        let sockets = Sockets::new(Endpoint::server(config)?, policies.pcap.is_some());
        Ok(Listener { sockets, receive_buffer })
    }

    /// Addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.sockets.endpoint.listening()
    }

    /// The next peer; none when the endpoint has stopped.
    pub async fn accept(&self) -> Option<Link> {
        let connection = self.sockets.endpoint.accept().await?;
        let address = connection.remote_addresses().first().copied();
        let peer = address.map_or("the peer".into(), |a| a.to_string());
        Some(Link { connection, sockets: self.sockets.clone(), peer, address })
    }

    /// Waits a moment until everything has been sent.
    pub async fn settle(&self) {
        self.sockets.settle().await;
    }

    /// The receive buffer of a peer that is let in.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }
}

impl Sockets {
    /// For connections that we begin.
    pub fn client(peer: &PeerUri, policies: &PolicyArgs) -> Result<Self, Failure> {
        let transport = policies.transport(peer);
        let mut config = ClientConfig::default();
        (config.transport, config.pcap) = (transport, policies.pcap.clone());
        Ok(Sockets::new(Endpoint::client(config)?, policies.pcap.is_some()))
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn new(endpoint: Endpoint, captured: bool) -> Self {
        let first = {
            let mut all = lock(&ENDPOINTS);
            all.retain(|e| e.upgrade().is_some());
            all.push(endpoint.downgrade());
            all.len() == 1
        };
        if first {
            tokio::spawn(async {
                crate::interrupt::overdue().await;
                for endpoint in lock(&ENDPOINTS).iter().filter_map(WeakEndpoint::upgrade) {
                    endpoint.close(INTERRUPTED);
                }
            });
        }
        Sockets { endpoint, captured }
    }

    /// Waits a moment until everything has been sent, and noted in the capture.
    async fn settle(&self) {
        if tokio::time::timeout(Duration::from_millis(500), self.endpoint.wait_idle()).await.is_err() {
            tracing::debug!("the socket driver is still busy");
        }
        if self.captured {
            tokio::time::sleep(CAPTURE_LAG).await;
        }
    }
}

impl Link {
    /// A connection as the commands use it.
    pub fn new(connection: Connection, sockets: Sockets, peer: String) -> Self {
        let address = connection.remote_addresses().first().copied();
        Link { connection, sockets, peer, address }
    }

    /// Whom it leads to.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The address it came from, or was asked at.
    pub fn address(&self) -> Option<IpAddr> {
        self.address.map(|a| a.ip())
    }

    /// The longest smoothed round trip of its paths that are known.
    pub fn round_trip(&self) -> Duration {
        let paths = self.connection.stats().paths;
        Duration::from_nanos(paths.iter().map(|p| p.stats.srtt.as_nanos()).max().unwrap_or(0))
    }

    /// It may send as much now as one that was let in may.
    pub fn let_in(&self, receive_buffer: usize) {
        self.connection.set_receive_buffer(receive_buffer);
    }

    /// Sends a message once there is room; false when its deadline passed before.
    pub async fn send(&self, options: SendOptions, payload: Bytes) -> Result<bool, Failure> {
        match self.connection.send(options, payload).await {
            Ok(()) => Ok(true),
            Err(SendError::Expired) => Ok(false),
            Err(SendError::Closed(Some(reason))) => Err(self.gone(&reason)),
            Err(e) => Err(Failure::network(format!("{}: {e}", self.peer))),
        }
    }

    /// Sends messages once there is room for them; returns how many were dropped because their deadline passed before.
    pub async fn send_many(&self, messages: &mut VecDeque<(SendOptions, Bytes)>) -> Result<usize, Failure> {
        self.connection.send_many(messages).await.map_err(|e| match e {
            SendError::Closed(Some(reason)) => self.gone(&reason),
            e => Failure::network(format!("{}: {e}", self.peer)),
        })
    }

    /// Sends a control message.
    pub async fn control(&self, message: &Control) -> Result<(), Failure> {
        let options = SendOptions {
            stream: CONTROL_STREAM,
            ppid: ppid::CONTROL,
            class: 0,
            immediate_ack: true,
            ..SendOptions::default()
        };
        self.send(options, message.encode()).await.map(drop)
    }

    /// Names the stream that comes, before anything else is said.
    pub async fn introduce(&self, name: Option<&StreamName>) -> Result<(), Failure> {
        match name {
            Some(name) => self.control(&Control::Stream(name.clone())).await,
            None => Ok(()),
        }
    }

    /// Drops what waits on `stream` and was not sent yet: messages and bytes.
    pub fn discard_unsent(&self, stream: StreamId) -> (u64, u64) {
        self.connection.discard_unsent(stream)
    }

    /// The next message; none after a graceful end. [`Failure::Interrupted`] when the peer's user ended it.
    pub async fn recv(&self) -> Result<Option<Message>, Failure> {
        self.connection.recv().await.map_err(|reason| self.ended(&reason))
    }

    fn ended(&self, reason: &CloseReason) -> Failure {
        match reason {
            CloseReason::PeerAborted(why) if why == INTERRUPTED => Failure::Interrupted,
            _ => self.gone(reason),
        }
    }

    /// Appends what has arrived, at most `most` messages, waiting for the first; how many, 0 after a graceful end.
    pub async fn recv_many(&self, into: &mut Vec<Message>, most: usize) -> Result<usize, Failure> {
        self.connection.recv_many(into, most).await.map_err(|reason| self.ended(&reason))
    }

    /// Appends what has arrived already, at most `most` messages.
    pub fn recv_now(&self, into: &mut Vec<Message>, most: usize) -> usize {
        self.connection.try_recv_many(into, most)
    }

    /// One more path.
    pub fn add_path(&self, path: &PathSpec) -> Result<(), Failure> {
        self.connection.add_path(path).map(drop).map_err(Failure::from)
    }

    /// No path any more that leaves from here.
    pub fn leave_paths(&self, local: &Local) {
        if !self.connection.leave_paths(local) {
            tracing::debug!(%local, "there is no such path");
        }
    }

    /// Everything that happens to it.
    pub fn events(&self) -> Events {
        self.connection.events()
    }

    /// Current counters.
    pub fn stats(&self) -> ConnectionStats {
        self.connection.stats()
    }

    /// See [`Connection::rate_changed`].
    pub async fn rate_changed(&self, last: UsableRate) -> Option<UsableRate> {
        self.connection.rate_changed(last).await
    }

    /// See [`Connection::max_payload`].
    pub fn max_payload(&self) -> usize {
        self.connection.max_payload()
    }

    /// See [`Connection::streams`].
    pub fn streams(&self) -> (u16, u16) {
        self.connection.streams()
    }

    /// What the peer said of its payload as the association began, or repeated of ours.
    pub fn media_hint(&self, kind: Option<u16>) -> Option<MediaHint> {
        MediaHint::decode(&self.connection.peer_parameter(kind?)?)
    }

    /// See [`Connection::warm_up`].
    pub async fn warm_up(&self, limit: Duration) -> bool {
        self.connection.warm_up(limit).await
    }

    /// Ends gracefully, or at once when that takes longer than `limit`.
    pub async fn close(&self, limit: Duration) {
        self.leave(limit).await;
        self.sockets.settle().await;
    }

    /// Ends gracefully, or at once after `limit`, when others use the endpoint afterwards.
    pub async fn leave(&self, limit: Duration) {
        if tokio::time::timeout(limit, self.connection.shutdown()).await.is_err() {
            self.abort(INTERRUPTED);
        }
    }

    /// Ends at once.
    pub fn abort(&self, reason: &str) {
        self.connection.abort(reason);
    }

    /// Ends at once, and waits a moment until that has been sent.
    pub async fn end(&self, reason: &str) {
        self.abort(reason);
        self.sockets.settle().await;
    }

    /// Waits until it is over, but no longer than `limit`; true when it is.
    pub async fn closed(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.connection.closed()).await.is_ok()
    }

    fn gone(&self, reason: &CloseReason) -> Failure {
        Failure::network(format!("{}: {reason}", self.peer))
    }
}
