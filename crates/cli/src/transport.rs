//! Connections as the commands use them: errors become failures with an exit code.

use crate::exit::Failure;
use crate::netargs::{PathArgs, PolicyArgs};
use crate::session::{CONTROL_STREAM, Control, ppid};
use crate::uri::{self, PeerUri};
use anabranch_net::{
    ClientConfig, CloseReason, ConnectOptions, Connection, ConnectionStats, Endpoint, Error, ErrorKind, Events, Local,
    Message, PathSpec, SendError, SendOptions, ServerConfig, StreamId, Transport, UsableRate,
};
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;

/// What the other side is told when our user ends a session that cannot end gracefully in time.
const INTERRUPTED: &str = "interrupted by the user";

/// A capture on disk is complete up to this long ago.
const CAPTURE_LAG: Duration = Duration::from_millis(700);

/// An endpoint, kept while its connections live.
#[derive(Clone)]
struct Sockets {
    endpoint: Endpoint,
    captured: bool,
}

/// A connection with a peer; clones are the same one.
#[derive(Clone)]
pub struct Link {
    connection: Connection,
    sockets: Sockets,
    peer: String,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        match e.kind() {
            ErrorKind::Network => Failure::network(e),
            ErrorKind::Usage => Failure::usage(e),
        }
    }
}

/// Reaches a peer over all paths the user named.
pub async fn connect(peer: &PeerUri, paths: &PathArgs, policies: &PolicyArgs) -> Result<Link, Failure> {
    let association = policies.association(peer)?;
    let remote = peer.resolve()?;
    let mut options = ConnectOptions::over(paths.specs(remote)?, association);
    options.timeout = paths.connect_timeout;
    options.allow_missing = paths.allow_missing;
    options.list_addresses = policies.list_addresses;
    let transport = policies.transport(peer);
    if transport == Transport::RawIp {
        options.peer_port = peer.port;
    }
    let endpoint =
        Endpoint::client(ClientConfig { transport, pcap: policies.pcap.clone(), ..ClientConfig::default() })?;
    let connection = endpoint.connect(options).await.map_err(|e| match e {
        Error::Unreachable { .. } => {
            Failure::network(format!("{e}; check the address, and that `anabranch recv` or `tunnel` runs there"))
        }
        e => e.into(),
    })?;
    let sockets = Sockets { endpoint, captured: policies.pcap.is_some() };
    Ok(Link { connection, sockets, peer: peer.place() })
}

/// Where peers may come in.
pub struct Listener(Sockets);

impl Listener {
    /// Listens on an address, or on all.
    pub fn open(at: &PeerUri, policies: &PolicyArgs) -> Result<Self, Failure> {
        let association = policies.association(at)?;
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
        Ok(Listener(Sockets { endpoint: Endpoint::server(config)?, captured: policies.pcap.is_some() }))
    }

    /// Addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.endpoint.listening()
    }

    /// The next peer; none when the endpoint has stopped.
    pub async fn accept(&self) -> Option<Link> {
        let connection = self.0.endpoint.accept().await?;
        let peer = connection.remote_addresses().first().map_or("the peer".into(), SocketAddr::to_string);
        Some(Link { connection, sockets: self.0.clone(), peer })
    }

    /// Waits a moment until everything has been sent.
    pub async fn settle(&self) {
        self.0.settle().await;
    }
}

impl Sockets {
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
    /// Whom it leads to.
    pub fn peer(&self) -> &str {
        &self.peer
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

    /// Drops what waits on `stream` and was not sent yet: messages and bytes.
    pub fn discard_unsent(&self, stream: StreamId) -> (u64, u64) {
        self.connection.discard_unsent(stream)
    }

    /// The next message; none after a graceful end. [`Failure::Interrupted`] when the peer's user ended it.
    pub async fn recv(&self) -> Result<Option<Message>, Failure> {
        self.connection.recv().await.map_err(|reason| match &reason {
            CloseReason::PeerAborted(why) if why == INTERRUPTED => Failure::Interrupted,
            _ => self.gone(&reason),
        })
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

    /// Counters.
    pub fn stats(&self) -> ConnectionStats {
        self.connection.stats()
    }

    /// See [`Connection::rate_changed`].
    pub async fn rate_changed(&self, last: UsableRate) -> Option<UsableRate> {
        self.connection.rate_changed(last).await
    }

    /// See [`Connection::warm_up`].
    pub async fn warm_up(&self, limit: Duration) -> bool {
        self.connection.warm_up(limit).await
    }

    /// Ends gracefully, or at once when that takes longer than `limit`.
    pub async fn close(&self, limit: Duration) {
        if tokio::time::timeout(limit, self.connection.shutdown()).await.is_err() {
            self.abort(INTERRUPTED);
        }
        self.sockets.settle().await;
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
