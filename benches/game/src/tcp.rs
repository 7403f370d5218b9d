//! The game over TCP: one connection for everything, without Nagle's algorithm. An input or a state that has waited for
//! longer than its lifetime before it could be written is left out, as a game that minds its delay would do it.

use crate::play::Rules;
use crate::stack::{Queued, Result, Stack};
use crate::tally::{Class, Head, clock};
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Listens at the address of the TUN interface, see `bridge.rs`.
pub struct Tcp;

impl Stack for Tcp {
    type Seat = Queued;
    type Bot = Queued;

    async fn open(&self, rules: Rules) -> Result<(SocketAddr, mpsc::UnboundedReceiver<Queued>)> {
        let listener = TcpListener::bind((Ipv4Addr::from(crate::bridge::OWN), 0)).await?;
        let at = listener.local_addr()?;
        let (seats, players) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(line) = line(stream, rules) {
                    let _ = seats.send(line);
                }
            }
        });
        Ok((at, players))
    }

    async fn join(&self, rules: Rules, server: Vec<SocketAddr>) -> Result<Queued> {
        line(TcpStream::connect(server[0]).await?, rules)
    }
}

fn line(stream: TcpStream, rules: Rules) -> Result<Queued> {
    stream.set_nodelay(true)?;
    let (from, to) = stream.into_split();
    let (outbox, waiting) = mpsc::unbounded_channel();
    let (arrived, inbox) = mpsc::unbounded_channel();
    tokio::spawn(write(to, waiting, rules));
    tokio::spawn(read(from, arrived));
    let send = move |_, message| {
        let _ = outbox.send(message);
    };
    Ok(Queued::new(send, inbox, None))
}

/// Each message behind its length.
async fn write(mut to: OwnedWriteHalf, mut waiting: mpsc::UnboundedReceiver<Bytes>, rules: Rules) {
    let mut bytes = Vec::new();
    while let Some(message) = waiting.recv().await {
        let late = Head::read(&message).is_some_and(|(head, _)| {
            head.class != Class::Chat && clock() - head.made > rules.lifetime.as_nanos() as u64
        });
        if late {
            continue;
        }
        bytes.clear();
        bytes.extend((message.len() as u16).to_be_bytes());
        bytes.extend(&message);
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(from: OwnedReadHalf, arrived: mpsc::UnboundedSender<Bytes>) {
    let mut from = BufReader::new(from);
    while let Ok(size) = from.read_u16().await {
        let mut message = vec![0; size.into()];
        if from.read_exact(&mut message).await.is_err() || arrived.send(message.into()).is_err() {
            return;
        }
    }
}
