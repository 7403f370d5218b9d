//! Peers that come in: they say hello, and are let in or sent away.

use crate::exit::warning;
use crate::session::{Control, Hello, Mode, ppid};
use crate::transport::{Link, Listener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

/// Connections that may be waiting for their sender to have something to say.
const WAITING: usize = 64;

/// A peer that has said hello. Its place is free again when this goes.
pub struct Guest {
    /// The connection.
    pub link: Link,
    /// What it said.
    pub hello: Hello,
    _place: OwnedSemaphorePermit,
}

/// Lets peers in.
pub struct Guests {
    rx: mpsc::Receiver<Guest>,
    listener: Arc<Listener>,
    task: JoinHandle<()>,
}

impl Guests {
    /// Takes up to `places` peers at a time, tunnels or all the others.
    pub fn start(listener: Listener, places: usize, tunnels: bool) -> Self {
        let (tx, rx) = mpsc::channel(1);
        let listener = Arc::new(listener);
        let door = listener.clone();
        let task = tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(places));
            let waiting = Arc::new(Semaphore::new(WAITING));
            while let Some(link) = door.accept().await {
                let Ok(seat) = waiting.clone().try_acquire_owned() else {
                    link.abort("too many connections");
                    continue;
                };
                let (places, tx) = (places.clone(), tx.clone());
                tokio::spawn(async move {
                    let guest = welcome(link, &places, tunnels).await;
                    drop(seat);
                    if let Some(guest) = guest {
                        // Whoever takes guests may have gone.
                        let _ = tx.send(guest).await;
                    }
                });
            }
        });
        Guests { rx, listener, task }
    }

    /// The next one.
    pub async fn next(&mut self) -> Option<Guest> {
        self.rx.recv().await
    }

    /// Lets nobody in any more, and waits until goodbyes have left.
    pub async fn settle(&self) {
        self.task.abort();
        self.listener.settle().await;
    }
}

/// Waits for the hello; a peer that cannot be served is told why.
async fn welcome(link: Link, places: &Arc<Semaphore>, tunnels: bool) -> Option<Guest> {
    let hello = loop {
        let message = match link.recv().await {
            Ok(Some(m)) if m.ppid == ppid::CONTROL => m,
            Ok(Some(_)) => continue,
            Ok(None) | Err(_) => return None,
        };
        match Control::decode(&message.payload.into_bytes()) {
            Ok(Some(Control::Hello(hello))) => break hello,
            Ok(_) => {}
            Err(e) => {
                warning(&format!("{}: {e}", link.peer()));
                refuse(&link, &e.to_string()).await;
                return None;
            }
        }
    };
    if (hello.mode == Mode::Tunnel) != tunnels {
        let here = if tunnels { "tunnel" } else { "recv" };
        refuse(&link, &format!("this is `anabranch {here}`")).await;
        return None;
    }
    match places.clone().try_acquire_owned() {
        Ok(place) => Some(Guest { link, hello, _place: place }),
        Err(_) => {
            refuse(&link, "it is busy with another peer").await;
            None
        }
    }
}

async fn refuse(link: &Link, why: &str) {
    if let Err(failure) = link.control(&Control::Refuse(why.into())).await {
        tracing::debug!("{failure}");
    }
    // The peer reads the reason and goes; otherwise it is sent away.
    if !link.closed(Duration::from_secs(2)).await {
        link.abort(why);
    }
}
