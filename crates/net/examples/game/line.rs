//! The game's messages over anabranch: what each class asks for, how players come in, and how bots come back.

use super::play::Line;
use super::tally::Class;
use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Connection, Duration, Endpoint, Error, Local, PathSpec, Profile,
    Reconnecting, SendError, SendOptions, ServerConfig, StreamId, now,
};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Chat has a stream of its own: it waits for its own losses alone.
const CHAT: StreamId = StreamId(1);

/// What a message of the class asks for.
fn options(class: Class, lifetime: Duration) -> SendOptions {
    match class {
        // The next one replaces it: whatever comes first is handed over first, and after its time it is not sent any more.
        Class::Input | Class::State => {
            SendOptions { unordered: true, deadline: Some(now() + lifetime), class: 2, ..SendOptions::default() }
        }
        // All of it, in order, and before the others where a path is full.
        Class::Chat => SendOptions { stream: CHAT, class: 0, ..SendOptions::default() },
    }
}

/// How both ends are set up.
pub fn association(profile: &str) -> Result<AssocConfig, Error> {
    let mut association = AssocConfig::new(Profile::named(profile)?);
    // A player that answers nothing for so long is gone.
    association.failure.peer_timeout = Some(Duration::from_secs(10));
    Ok(association)
}

/// The server's endpoint; players come from its `accept`.
pub fn open(listen: SocketAddr, association: AssocConfig) -> Result<Endpoint, Error> {
    Endpoint::server(ServerConfig::new(listen, association))
}

/// A player, as the server has it.
pub struct Player {
    pub connection: Connection,
    pub lifetime: Duration,
}

impl Line for Player {
    fn send(&self, class: Class, message: Bytes) {
        if let Err(SendError::WouldBlock) = self.connection.try_send(options(class, self.lifetime), message)
            && class == Class::Chat
        {
            // All of the send buffer is chat that this player does not take.
            self.connection.abort("you do not keep up");
        }
    }

    async fn recv(&self) -> Option<Bytes> {
        self.connection.recv().await.ok().flatten().map(|message| message.payload.into_bytes())
    }
}

/// A bot's connection, which comes back by itself.
pub struct Bot {
    pub line: Reconnecting,
    pub lifetime: Duration,
}

impl Bot {
    /// Connects over one path for each address by which the server can be reached. Each bot has an endpoint of its own, as
    /// each player's machine has.
    pub fn new(server: &[SocketAddr], association: AssocConfig, lifetime: Duration) -> Result<Bot, Error> {
        let several = server.len() > 1;
        let path = |(i, server): (usize, &SocketAddr)| {
            // A player names its interfaces here, `Local::Interface("wlan0".into())`; on loopback addresses do.
            let own = IpAddr::V4(Ipv4Addr::new(127, 0, 0, i as u8 + 1));
            PathSpec::new(if several { Local::Address(own) } else { Local::Any }, *server)
        };
        let options = ConnectOptions::over(server.iter().enumerate().map(path).collect(), association);
        Ok(Bot { line: Reconnecting::new(Endpoint::client(ClientConfig::default())?, options), lifetime })
    }
}

impl Line for Bot {
    fn send(&self, class: Class, message: Bytes) {
        // Without a connection there is nothing to send to: the next input will find one.
        if let Some(connection) = self.line.connection() {
            let _ = connection.try_send(options(class, self.lifetime), message);
        }
    }

    async fn recv(&self) -> Option<Bytes> {
        self.line.recv().await.map(|message| message.payload.into_bytes())
    }
}
