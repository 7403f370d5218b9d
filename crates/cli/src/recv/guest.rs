//! Peers that come in: they say hello, and are let in or sent away.

use super::lobby::{Lobby, Stage, Ticket, WAITING};
use super::seats::{Claim, Place, Rules, Seat, Seats};
use crate::filemark::FileMark;
use crate::session::{Control, Hello, Mode, StreamName, ppid};
use crate::transport::{Limits, Link, Listener};
use crate::uri::PeerUri;
use crate::warn;
use anabranch_net::IpNet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Who has been let in by the handshake says something within so long.
const SPEAKS: Duration = Duration::from_secs(5);

/// Time peers have to go after they were sent away.
const PARTING: Duration = Duration::from_secs(1);

/// Who may come.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Who may come")]
pub struct DoorArgs {
    /// Only peers from these networks, such as 192.0.2.0/24,2001:db8::/32 or single addresses; packets of others are not
    /// looked at. Holds for every path of a peer
    #[arg(long, value_name = "NETWORK[,…]", value_delimiter = ',', value_parser = network)]
    pub from: Vec<IpNet>,
    /// So many connections from one address may wait before they say what they send; another one makes room for the
    /// next. 256 may wait in all, and where more come the address with the most makes room [default: 256]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=WAITING as i64))]
    pub waiting_per_address: Option<u16>,
}

fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is no network; write for example 192.0.2.0/24, 2001:db8::/32 or 192.0.2.7"))
}

impl DoorArgs {
    /// Did the user name any?
    pub fn is_named(&self) -> bool {
        !self.from.is_empty() || self.waiting_per_address.is_some()
    }

    /// Limits of a listener with so many places.
    pub fn limits(&self, places: usize) -> Limits {
        Limits { from: self.from.clone(), associations: places + WAITING }
    }
}

/// Who is let in.
#[derive(Clone, Debug)]
pub struct Door {
    /// Places, and whose make room.
    pub rules: Rules,
    /// Connections from one address that may wait.
    pub waiting_per_address: usize,
    /// Tunnels, or all the others.
    pub tunnels: bool,
    /// Streams with these names only; empty for all.
    pub names: Vec<StreamName>,
    /// Only streams that have a name.
    pub wants_name: bool,
    /// Only what is sent this way.
    pub mode: Option<Mode>,
    /// The file that is written: it cannot be a sender's input.
    pub output: Option<FileMark>,
}

impl Door {
    /// For `tunnel --accept`, or for `recv`, with what the user has named.
    pub fn new(rules: Rules, at: &PeerUri, args: &DoorArgs, tunnels: bool) -> Self {
        let waiting_per_address = args.waiting_per_address.map_or(WAITING, Into::into);
        let names = at.streamid.clone();
        Door { rules, waiting_per_address, tunnels, names, wants_name: false, mode: None, output: None }
    }
}

/// Reason given to those who still wait when it is over.
const ENDED: &str = "it has ended";

/// A peer that has said hello. Its place is free again when this goes.
pub struct Guest {
    /// The connection.
    pub link: Link,
    /// What it said.
    pub hello: Hello,
    /// Its place.
    pub place: Place,
}

/// Lets peers in.
pub struct Guests {
    rx: mpsc::Receiver<Guest>,
    listener: Arc<Listener>,
    lobby: Arc<Lobby>,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Guests {
    /// Begins to let peers in.
    pub fn start(listener: Listener, door: Door) -> Self {
        let (tx, rx) = mpsc::channel(1);
        let (closing, closes) = watch::channel(false);
        let listener = Arc::new(listener);
        let lobby = Lobby::new(door.waiting_per_address);
        let (entrance, waiting) = (listener.clone(), lobby.clone());
        let host = Arc::new(Host { seats: Seats::new(door.rules), door, receive_buffer: listener.receive_buffer() });
        let task = tokio::spawn(async move {
            while let Some(link) = entrance.accept().await {
                let ticket = waiting.enter(link.address(), std::time::Instant::now());
                tokio::spawn(host.clone().meet(link, ticket, tx.clone(), closes.clone()));
            }
        });
        Guests { rx, listener, lobby, closing, task }
    }

    /// The next one.
    pub async fn next(&mut self) -> Option<Guest> {
        self.rx.recv().await
    }

    /// Lets no guest in any more, and waits until goodbyes have left.
    pub async fn settle(mut self) {
        self.task.abort();
        self.closing.send_replace(true);
        self.rx.close();
        let waiting = async {
            while let Some(guest) = self.rx.recv().await {
                refuse(&guest.link, ENDED).await;
            }
            // Those that wait were refused; they go by themselves or are sent away.
            self.lobby.empty().await;
        };
        tokio::select! {
            _ = tokio::time::timeout(PARTING * 2, waiting) => {}
            () = crate::interrupt::overdue() => {}
        }
        self.listener.settle().await;
    }
}

struct Host {
    door: Door,
    seats: Arc<Seats>,
    receive_buffer: usize,
}

impl Host {
    async fn meet(
        self: Arc<Self>,
        link: Link,
        ticket: Ticket,
        tx: mpsc::Sender<Guest>,
        mut closes: watch::Receiver<bool>,
    ) {
        let closing = async { closes.wait_for(|closes| *closes).await.map(drop) };
        let guest = tokio::select! {
            guest = self.hear(&link, &ticket) => guest,
            () = ticket.leave() => {
                warn::limited("room", || {
                    format!("{} has said nothing yet and makes room for another; many wait, see --from", link.peer())
                });
                return link.abort("too many wait; make room");
            }
            _ = closing => return refuse(&link, ENDED).await,
        };
        match guest {
            Ok(Some(guest)) => {
                link.let_in(self.receive_buffer);
                if tx.send(guest).await.is_err() {
                    refuse(&link, ENDED).await;
                }
            }
            Ok(None) => {}
            // A refused peer that does not go still has to make room.
            Err(why) => tokio::select! {
                () = refuse(&link, &why) => {}
                () = ticket.leave() => link.abort(&why),
            },
        }
    }

    /// None when the peer goes; an error says why it cannot be let in.
    async fn hear(&self, link: &Link, ticket: &Ticket) -> Result<Option<Guest>, String> {
        let mut claim = Claim { link: link.clone(), name: None, mode: None };
        let mut place: Option<Place> = None;
        let silent = tokio::time::sleep(SPEAKS);
        tokio::pin!(silent);
        let mut spoken = false;
        loop {
            let message = tokio::select! {
                biased;
                // Another begins at once, and this one may when it has something to say.
                () = Seat::leave_of(place.as_ref()) => {
                    place = None;
                    continue;
                }
                () = &mut silent, if !spoken => return Err("nothing was said for too long".into()),
                message = link.recv() => match message {
                    Ok(Some(m)) if m.ppid == ppid::CONTROL => m,
                    Ok(Some(_)) => return Err("the stream begins before it was let in".into()),
                    Ok(None) | Err(_) => return Ok(None),
                },
            };
            match Control::decode(&message.payload.into_bytes()) {
                Ok(Some(Control::Stream(name))) if claim.name.is_none() => claim.name = Some(name),
                Ok(Some(Control::Here(_))) if self.door.tunnels => return Err(self.other()),
                Ok(Some(Control::Here(file))) => {
                    if file.is_some() && file == self.door.output {
                        return Err("its output is the very file that is to be sent".into());
                    }
                    self.knows(&claim)?;
                    spoken = true;
                    ticket.reaches(Stage::Here);
                    if place.is_none() {
                        place = self.seats.take(&claim);
                    }
                }
                Ok(Some(Control::Hello(hello))) => {
                    self.takes(hello.mode)?;
                    self.knows(&claim)?;
                    claim.mode = Some(hello.mode);
                    ticket.reaches(Stage::Hello);
                    let place = match place.take() {
                        Some(place) => place,
                        None => self.seats.claim(&claim).await?,
                    };
                    place.seat.begins(hello.mode);
                    return Ok(Some(Guest { link: link.clone(), hello, place }));
                }
                Ok(_) => {}
                Err(e) => {
                    warn::limited("foreign", || format!("{}: {e}", link.peer()));
                    return Err(e.to_string());
                }
            }
        }
    }

    /// Is this a stream that is waited for?
    fn knows(&self, claim: &Claim) -> Result<(), String> {
        match &claim.name {
            None if self.door.wants_name || !self.door.names.is_empty() => {
                Err("it wants a stream id: anabranch://HOST:PORT?streamid=NAME".into())
            }
            Some(name) if !self.door.names.is_empty() && !self.door.names.contains(name) => {
                Err(format!("it does not wait for the stream id {}", name.as_str()))
            }
            _ => Ok(()),
        }
    }

    fn takes(&self, mode: Mode) -> Result<(), String> {
        match self.door.mode {
            _ if (mode == Mode::Tunnel) != self.door.tunnels => Err(self.other()),
            Some(only) if only != mode => Err(format!("it takes mode {} only", only.name())),
            _ => Ok(()),
        }
    }

    fn other(&self) -> String {
        format!("this is `anabranch {}`", if self.door.tunnels { "tunnel" } else { "recv" })
    }
}

/// Tells a peer why it cannot stay.
pub(super) async fn refuse(link: &Link, why: &str) {
    let said = async {
        if let Err(failure) = link.control(&Control::Refuse(why.into())).await {
            tracing::debug!("{failure}");
        }
    };
    // The peer reads the reason and goes; otherwise it is sent away.
    let _ = tokio::time::timeout(PARTING, said).await;
    if !link.closed(PARTING).await {
        link.abort(why);
    }
}
