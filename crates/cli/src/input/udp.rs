//! Datagrams from the network.

use super::{Chunk, plain};
use crate::exit::Failure;
use crate::udp;
use bytes::BytesMut;
use std::net::SocketAddr;
use tokio::sync::mpsc;

/// Listens on an address, or to a group.
pub(super) fn start(
    address: SocketAddr,
    interface: Option<&str>,
    tx: mpsc::Sender<Result<Chunk, Failure>>,
) -> Result<(), Failure> {
    let mut socket = udp::Many::new(udp::listen(address, interface)?)
        .map_err(|e| Failure::network(format!("cannot listen on udp://{address}: {}", plain(&e))))?;
    tokio::spawn(async move {
        let mut datagrams = Vec::new();
        loop {
            let mut buffer = BytesMut::new();
            let received = tokio::select! {
                r = socket.recv(|datagram| {
                    buffer.extend_from_slice(datagram);
                    datagrams.push(datagram.len());
                }) => r,
                () = tx.closed() => return,
            };
            if let Err(error) = received {
                // A listening socket has only passing errors, such as an ICMP message about an earlier packet.
                tracing::debug!(%error, "receiving on {address}");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
            let at = anabranch_net::now();
            let mut all = buffer.freeze();
            for len in datagrams.drain(..) {
                if tx.send(Ok(Chunk { at, bytes: all.split_to(len) })).await.is_err() {
                    return;
                }
            }
        }
    });
    Ok(())
}
