//! What a stack has to bring to be played over.

use crate::play::{Line, Rules};
use crate::tally::Class;
use bytes::Bytes;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A transport with the game's classes on it.
pub trait Stack: Send + Sync + 'static {
    /// A player, as the server has it.
    type Seat: Line;
    /// The server, as a bot has it.
    type Bot: Line;

    /// A server on loopback: its address, and the players that come.
    fn open(
        &self,
        rules: Rules,
    ) -> impl Future<Output = Result<(SocketAddr, mpsc::UnboundedReceiver<Self::Seat>)>> + Send;

    /// A bot that reaches the server at one of these addresses, or at all of them.
    fn join(&self, rules: Rules, server: Vec<SocketAddr>) -> impl Future<Output = Result<Self::Bot>> + Send;
}

/// A line whose work is done by tasks of its own.
pub struct Queued {
    outbox: Box<dyn Fn(Class, Bytes) + Send + Sync>,
    inbox: Mutex<mpsc::UnboundedReceiver<Bytes>>,
    /// What lives as long as the line.
    _kept: Option<Arc<dyn Send + Sync>>,
}

impl Queued {
    pub fn new(
        outbox: impl Fn(Class, Bytes) + Send + Sync + 'static,
        inbox: mpsc::UnboundedReceiver<Bytes>,
        kept: Option<Arc<dyn Send + Sync>>,
    ) -> Queued {
        Queued { outbox: Box::new(outbox), inbox: Mutex::new(inbox), _kept: kept }
    }
}

impl Line for Queued {
    fn send(&self, class: Class, message: Bytes) {
        (self.outbox)(class, message);
    }

    async fn recv(&self) -> Option<Bytes> {
        self.inbox.lock().await.recv().await
    }
}
