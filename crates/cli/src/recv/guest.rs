//! Peers that come in: they say hello, and are let in or sent away.

use crate::exit::warning;
use crate::filemark::FileMark;
use crate::monitor::{lock, quiet_for};
use crate::session::{Control, Hello, Mode, ppid};
use crate::transport::{Link, Listener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// Connections that may be waiting for their sender to have something to say.
const WAITING: u32 = 64;

/// A peer that has been silent for so long may be replaced: one that lives answers a heartbeat every second.
const SILENT: Duration = Duration::from_secs(3);

/// Time the one that is replaced has to go; what it sent is played out first.
const GOING: Duration = Duration::from_secs(5);

/// Time peers have to go after they were sent away.
const PARTING: Duration = Duration::from_secs(2);

/// Who is let in.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// So many at a time.
    pub places: usize,
    /// Tunnels, or all the others.
    pub tunnels: bool,
    /// Does a session that has fallen silent make room for a newcomer? One that has not begun always does.
    pub replaces: bool,
    /// The file that is written: it cannot be a sender's input.
    pub output: Option<FileMark>,
}

impl Default for Door {
    fn default() -> Self {
        Door { places: 1, tunnels: false, replaces: false, output: None }
    }
}

/// What those are told who still wait when it is over.
const ENDED: &str = "it has ended";

/// A peer that has said hello. Its place is free again when this goes.
pub struct Guest {
    /// The connection.
    pub link: Link,
    /// What it said.
    pub hello: Hello,
    _place: Place,
}

/// Lets peers in.
pub struct Guests {
    rx: mpsc::Receiver<Guest>,
    listener: Arc<Listener>,
    waiting: Arc<Semaphore>,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Guests {
    /// Begins to let peers in.
    pub fn start(listener: Listener, door: Door) -> Self {
        let (tx, rx) = mpsc::channel(1);
        let (closing, closes) = watch::channel(false);
        let (listener, waiting) = (Arc::new(listener), Arc::new(Semaphore::new(WAITING as usize)));
        let (entrance, seats) = (listener.clone(), waiting.clone());
        let host = Arc::new(Host { door, free: Arc::new(Semaphore::new(door.places)), owner: Mutex::default() });
        let task = tokio::spawn(async move {
            while let Some(link) = entrance.accept().await {
                let Ok(seat) = seats.clone().try_acquire_owned() else {
                    link.abort("too many connections");
                    continue;
                };
                let (host, tx, mut closes) = (host.clone(), tx.clone(), closes.clone());
                tokio::spawn(async move {
                    let _seat = seat;
                    let closing = async { closes.wait_for(|closes| *closes).await.map(drop) };
                    let guest = tokio::select! {
                        guest = host.welcome(&link) => guest,
                        _ = closing => return refuse(&link, ENDED).await,
                    };
                    let Some(guest) = guest else { return };
                    if tx.send(guest).await.is_err() {
                        refuse(&link, ENDED).await;
                    }
                });
            }
        });
        Guests { rx, listener, waiting, closing, task }
    }

    /// The next one.
    pub async fn next(&mut self) -> Option<Guest> {
        self.rx.recv().await
    }

    /// Lets nobody in any more, and waits until goodbyes have left.
    pub async fn settle(mut self) {
        self.task.abort();
        self.closing.send_replace(true);
        self.rx.close();
        while let Some(guest) = self.rx.recv().await {
            refuse(&guest.link, ENDED).await;
        }
        // Those that wait are told; they go by themselves or are sent away.
        let _ = tokio::time::timeout(PARTING * 2, self.waiting.acquire_many(WAITING)).await;
        self.listener.settle().await;
    }
}

/// The one that has a place where there is only one.
struct Owner {
    link: Link,
    /// Has it said hello?
    begun: bool,
}

struct Host {
    door: Door,
    free: Arc<Semaphore>,
    owner: Mutex<Option<Owner>>,
}

/// Free again when it goes.
struct Place {
    host: Arc<Host>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        *lock(&self.host.owner) = None;
    }
}

impl Host {
    /// Waits for the hello; a peer that cannot be served is told why.
    async fn welcome(self: &Arc<Self>, link: &Link) -> Option<Guest> {
        match self.hear(link).await {
            Ok(guest) => guest,
            Err(why) => {
                refuse(link, &why).await;
                None
            }
        }
    }

    /// None when the peer goes; an error says why it cannot be let in.
    async fn hear(self: &Arc<Self>, link: &Link) -> Result<Option<Guest>, String> {
        let mut place = None;
        loop {
            let message = match link.recv().await {
                Ok(Some(m)) if m.ppid == ppid::CONTROL => m,
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => return Ok(None),
            };
            match Control::decode(&message.payload.into_bytes()) {
                Ok(Some(Control::Here(_))) if self.door.tunnels => return Err(self.other()),
                Ok(Some(Control::Here(file))) => {
                    if file.is_some() && file == self.door.output {
                        return Err("its output is the very file that is to be sent".into());
                    }
                    place = Some(self.place(link).await?);
                }
                Ok(Some(Control::Hello(hello))) => {
                    if (hello.mode == Mode::Tunnel) != self.door.tunnels {
                        return Err(self.other());
                    }
                    let place = match place {
                        Some(place) => place,
                        None => self.place(link).await?,
                    };
                    if let Some(owner) = lock(&self.owner).as_mut() {
                        owner.begun = true;
                    }
                    return Ok(Some(Guest { link: link.clone(), hello, _place: place }));
                }
                Ok(_) => {}
                Err(e) => {
                    warning(&format!("{}: {e}", link.peer()));
                    return Err(e.to_string());
                }
            }
        }
    }

    fn other(&self) -> String {
        format!("this is `anabranch {}`", if self.door.tunnels { "tunnel" } else { "recv" })
    }

    /// A place for this peer, perhaps that of one that is silent.
    async fn place(self: &Arc<Self>, link: &Link) -> Result<Place, String> {
        let busy = || "it is busy with another peer".to_owned();
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let owner =
                    lock(&self.owner).as_ref().filter(|o| self.door.replaces || !o.begun).map(|o| o.link.clone());
                let owner = owner.ok_or_else(busy)?;
                if !quiet_for(&owner, SILENT).await {
                    return Err(busy());
                }
                owner.abort("silent, and replaced by another sender");
                let free = tokio::time::timeout(GOING + SILENT, self.free.clone().acquire_owned()).await;
                free.ok().and_then(Result::ok).ok_or_else(busy)?
            }
        };
        if self.door.places == 1 {
            *lock(&self.owner) = Some(Owner { link: link.clone(), begun: false });
        }
        Ok(Place { host: self.clone(), _permit: permit })
    }
}

pub(super) async fn refuse(link: &Link, why: &str) {
    if let Err(failure) = link.control(&Control::Refuse(why.into())).await {
        tracing::debug!("{failure}");
    }
    // The peer reads the reason and goes; otherwise it is sent away.
    if !link.closed(PARTING).await {
        link.abort(why);
    }
}
