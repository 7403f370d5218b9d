//! The example's own lines.

use crate::line::{self, Bot, Player};
use crate::play::Rules;
use crate::stack::{Result, Stack};
use std::net::SocketAddr;
use tokio::sync::mpsc;

/// With this profile.
pub struct Anabranch(pub &'static str);

impl Stack for Anabranch {
    type Seat = Player;
    type Bot = Bot;

    async fn open(&self, rules: Rules) -> Result<(SocketAddr, mpsc::UnboundedReceiver<Player>)> {
        let endpoint = line::open(SocketAddr::from(([127, 0, 0, 1], 0)), line::association(self.0)?)?;
        let at = endpoint.listening()[0];
        let (seats, players) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(connection) = endpoint.accept().await {
                let _ = seats.send(Player { connection, lifetime: rules.lifetime.into() });
            }
        });
        Ok((at, players))
    }

    async fn join(&self, rules: Rules, server: Vec<SocketAddr>) -> Result<Bot> {
        Ok(Bot::new(&server, line::association(self.0)?, rules.lifetime.into())?)
    }
}
