//! Datagrams from the network.

use super::{Chunk, plain};
use crate::exit::Failure;
use crate::udp;
use bytes::BytesMut;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long datagrams gather before they are read; shared by the reader and whoever knows what delay does no harm.
#[derive(Clone, Debug, Default)]
pub(super) struct Pause {
    micros: Arc<AtomicU64>,
    /// Datagrams gather now.
    gathers: Arc<AtomicBool>,
}

impl Pause {
    pub fn set(&self, pause: Duration) {
        self.micros.store(pause.as_micros() as u64, Ordering::Relaxed);
    }

    pub fn gathers(&self) -> bool {
        self.gathers.load(Ordering::Relaxed)
    }

    fn get(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// Listens on an address, or to a group.
pub(super) fn start(
    address: SocketAddr,
    interface: Option<&str>,
    pause: Pause,
    tx: mpsc::Sender<Result<Chunk, Failure>>,
) -> Result<(), Failure> {
    let mut socket = udp::Many::new(udp::listen(address, interface)?)
        .map_err(|e| Failure::network(format!("cannot listen on udp://{address}: {}", plain(&e))))?;
    tokio::spawn(async move {
        let mut datagrams = Vec::new();
        loop {
            let mut buffer = BytesMut::new();
            let received = tokio::select! {
                r = socket.recv(pause.get(), |datagram| {
                    buffer.extend_from_slice(datagram);
                    datagrams.push(datagram.len());
                }) => r,
                () = tx.closed() => return,
            };
            let since = match received {
                Ok(since) => since,
                Err(error) => {
                    // A listening socket has only passing errors, such as an ICMP message about an earlier packet.
                    tracing::debug!(%error, "receiving on {address}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            pause.gathers.store(socket.gathers(), Ordering::Relaxed);
            // They came between the two looks: on average in the middle.
            let at = anabranch_net::from_std(since + since.elapsed() / 2);
            if datagrams.is_empty() {
                // Time passes, which whoever waits for company may want to know.
                datagrams.push(0);
            }
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
