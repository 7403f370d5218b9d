//! Datagrams from the network.

use super::Chunk;
use crate::exit::Failure;
use crate::udp;
use bytes::Bytes;
use std::net::SocketAddr;
use tokio::sync::mpsc;

/// Listens on an address, or to a group.
pub(super) fn start(
    address: SocketAddr,
    interface: Option<&str>,
    tx: mpsc::Sender<Result<Chunk, Failure>>,
) -> Result<(), Failure> {
    let socket = udp::listen(address, interface)?;
    tokio::spawn(async move {
        let mut buffer = vec![0; udp::DATAGRAM_MAX];
        loop {
            let received = tokio::select! {
                r = socket.recv_from(&mut buffer) => r,
                () = tx.closed() => return,
            };
            let n = match received {
                Ok((n, _)) => n,
                Err(error) => {
                    // A listening socket has only passing errors, such as an ICMP message about an earlier packet.
                    tracing::debug!(%error, "receiving on {address}");
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    continue;
                }
            };
            let bytes = Bytes::copy_from_slice(buffer.get(..n).unwrap_or(&[]));
            if tx.send(Ok(Chunk { at: anabranch_net::now(), bytes })).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}
