//! One run: both ends over the emulated networks, the script in, what came out in time.

use super::files::Tape;
use super::plan::{LATENCY, RunPlan};
use super::script::{ORIGIN, Script, Timed};
use crate::exit::Failure;
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_emulator::{Emulator, EmulatorHandle, EmulatorStats, Sample};
use anabranch_media::truth::SequenceSet;
use anabranch_media::{ClockMode, HEADER_LEN, Inserted, MediaHeader, PlayoutBuffer, PlayoutConfig, PlayoutStats};
use anabranch_net::{
    AssocConfig, ClientConfig, CloseReason, ConnectOptions, Connection, ConnectionStats, Endpoint, Event, Local,
    Message, PathId, PathSpec, PathState, Profile, SendError, SendOptions, ServerConfig,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// From the moment that both ends are ready to the first byte of media.
const LEAD: Duration = Duration::from_millis(200);
/// From the last play-out to the end of a run.
const TAIL: Duration = Duration::from_millis(30);
/// Time for all paths to join.
const JOIN: std::time::Duration = std::time::Duration::from_secs(10);
/// Time for an orderly goodbye.
const GOODBYE: std::time::Duration = std::time::Duration::from_millis(500);
/// Messages taken at once.
const BATCH: usize = 64;
/// Payload protocol identifier of media messages: unspecified (RFC 9260 §14.4).
const PPID: u32 = 0;

/// What all runs share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Emulated networks as planned, or perfect ones.
    pub impaired: bool,
    /// Seed of all random streams.
    pub seed: u64,
}

/// How far a run is, for those who watch.
#[derive(Debug, Default)]
pub struct Live {
    /// Messages handed to the transport.
    pub sent: AtomicU64,
    /// Messages put out.
    pub played: AtomicU64,
    /// Frames decided, and those of them that are unusable.
    pub frames: AtomicU64,
    /// See `frames`.
    pub unusable: AtomicU64,
}

/// A message that arrived: when it had come in at the sender and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Since the start of the media.
    pub sent: Duration,
    /// From the sender's input to the receiver.
    pub delay: Duration,
}

/// Something that happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNote {
    /// Since the start of the media.
    pub at: Duration,
    /// In a few words.
    pub text: String,
    /// In two words, for a mark in a plot, when the path was left or came back.
    pub mark: Option<String>,
}

/// Everything that was seen of one run.
#[derive(Debug)]
pub struct Measured {
    /// Messages put out in time.
    pub played: SequenceSet,
    /// Counters of the play-out.
    pub playout: PlayoutStats,
    /// Every message that arrived for the first time, in the order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Messages that the transport did not take before their deadline.
    pub refused: u64,
    /// Sender's counters.
    pub sender: ConnectionStats,
    /// Emulator's counters at the end of the run.
    pub emulator: EmulatorStats,
    /// Emulator's counters over time, and where the media begins in its time.
    pub samples: Vec<Sample>,
    /// See `samples`.
    pub media_from: Instant,
    /// Path events since the media began.
    pub notes: Vec<PathNote>,
}

/// Both ends, connected.
struct Ends {
    emulator: EmulatorHandle,
    sender: Connection,
    receiver: Connection,
    // Endpoints run as long as they are held.
    _endpoints: [Endpoint; 2],
}

/// Relates the media clock to the one of the sockets.
#[derive(Clone, Copy)]
struct MediaClock {
    start: Instant,
}

impl MediaClock {
    fn now(self) -> Instant {
        ORIGIN + anabranch_net::now().since(self.start)
    }
    /// An instant of the media clock on the scale of the sockets.
    fn socket(self, media: Instant) -> Instant {
        self.start + media.since(ORIGIN)
    }
    fn timer(self, media: Instant) -> tokio::time::Instant {
        anabranch_net::to_std(self.socket(media)).into()
    }
}

/// Carries out a run. Takes the length of the script, the latency and about a second.
///
/// # Errors
/// The sockets, or a connection that did not come about or did not last.
pub async fn run(
    plan: &RunPlan,
    script: &Arc<Script>,
    settings: Settings,
    tape: &Tape,
    live: &Live,
) -> Result<Measured, Failure> {
    let ends = Ends::open(plan, settings).await?;
    let clock = MediaClock { start: anabranch_net::now() + LEAD };
    let mut reception = Reception::new(tape, live);
    let (refused, ()) =
        tokio::try_join!(send(&ends.sender, script, clock, live), reception.receive(&ends.receiver, script, clock))?;
    let emulator_start = anabranch_net::from_std(ends.emulator.started_at());
    let measured = Measured {
        played: reception.played,
        playout: reception.buffer.stats(),
        arrivals: reception.arrivals,
        refused,
        sender: ends.sender.stats(),
        emulator: ends.emulator.stats(),
        samples: ends.emulator.samples(),
        media_from: Instant::ZERO + clock.start.since(emulator_start),
        notes: notes(&ends, clock),
    };
    ends.close().await;
    Ok(measured)
}

impl Ends {
    async fn open(plan: &RunPlan, settings: Settings) -> Result<Ends, Failure> {
        let mut config = AssocConfig::new(Profile::named(plan.profile).map_err(Failure::usage)?);
        config.seed = settings.seed;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let server = Endpoint::server(ServerConfig::new(SocketAddr::new(loopback, 0), config.clone()))
            .map_err(Failure::network)?;
        let address = *server.listening().first().ok_or_else(|| Failure::network("no socket to listen on"))?;
        let emulator = plan.emulator(address, settings.impaired, settings.seed).map_err(Failure::network)?;
        let emulator = Emulator::start(emulator).map_err(Failure::network)?;
        let paths = emulator.local_addrs().into_iter().enumerate().map(|(i, relay)| PathSpec::new(local(i), relay));
        let options = ConnectOptions::over(paths.collect(), config);
        let client = Endpoint::client(ClientConfig::default()).map_err(Failure::network)?;
        let sender = client.connect(options).await.map_err(Failure::network)?;
        let receiver = tokio::time::timeout(JOIN, server.accept());
        let receiver = receiver.await.ok().flatten().ok_or_else(|| Failure::network("no connection came in"))?;
        let ends = Ends { emulator, sender, receiver, _endpoints: [client, server] };
        ends.wait_for_paths(plan.networks.len()).await?;
        Ok(ends)
    }

    /// Media starts when every path works: what a run shows is not how paths join.
    async fn wait_for_paths(&self, wanted: usize) -> Result<(), Failure> {
        let ready = async {
            loop {
                let active =
                    |c: &Connection| c.stats().paths.iter().filter(|p| p.stats.state == PathState::Active).count();
                if active(&self.sender) >= wanted {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let late = |_| Failure::network(format!("not all {wanted} paths joined within {} s", JOIN.as_secs()));
        tokio::time::timeout(JOIN, ready).await.map_err(late)
    }

    /// The network of each path: the relay that it leads to tells.
    fn path_names(&self) -> BTreeMap<PathId, String> {
        let emulated = self.emulator.stats().paths;
        let name = |remote| emulated.iter().find(|p| p.listen == remote).map(|p| p.name.clone());
        self.sender.stats().paths.iter().filter_map(|p| Some((p.id, name(p.stats.remote)?))).collect()
    }

    async fn close(self) {
        // An orderly end is good manners; the measurement is over whether or not it comes in time.
        let _ = tokio::time::timeout(GOODBYE, self.sender.shutdown()).await;
        drop(self.emulator);
    }
}

/// A local address for each path, so that each has a socket of its own, as with several interfaces.
fn local(path: usize) -> Local {
    Local::Address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + u8::try_from(path).unwrap_or(u8::MAX - 1))))
}

/// Sends the script; returns how many messages were not taken before their deadline.
async fn send(connection: &Connection, script: &Script, clock: MediaClock, live: &Live) -> Result<u64, Failure> {
    let mut refused = 0;
    for Timed { at, message } in &script.messages {
        if clock.now() < *at {
            tokio::time::sleep_until(clock.timer(*at)).await;
        }
        let class = message.header.class;
        let options = SendOptions {
            stream: StreamId(class.index() as u16),
            unordered: true,
            ppid: PPID,
            deadline: Some(clock.socket(message.ingest + LATENCY)),
            class: class as u8,
            ..SendOptions::default()
        };
        match connection.send(options, message.message.clone()).await {
            Ok(()) => {}
            Err(SendError::Expired | SendError::WouldBlock) => refused += 1,
            Err(error) => return Err(Failure::network(error)),
        }
        live.sent.fetch_add(1, Ordering::Relaxed);
    }
    Ok(refused)
}

/// The receiving end.
struct Reception<'a> {
    buffer: PlayoutBuffer,
    played: SequenceSet,
    arrivals: Vec<Arrival>,
    tape: &'a Tape,
    live: &'a Live,
}

impl<'a> Reception<'a> {
    fn new(tape: &'a Tape, live: &'a Live) -> Self {
        let config = PlayoutConfig { clock: ClockMode::Shared, ..PlayoutConfig::new(LATENCY) };
        Reception { buffer: PlayoutBuffer::new(config), played: SequenceSet::new(), arrivals: Vec::new(), tape, live }
    }

    /// Receives and puts out until the last message is due.
    async fn receive(&mut self, connection: &Connection, script: &Script, clock: MediaClock) -> Result<(), Failure> {
        let over = script.last_due(LATENCY) + TAIL;
        let mut batch = Vec::with_capacity(BATCH);
        while clock.now() < over {
            let next = self.buffer.next_timeout().unwrap_or(over).min(over);
            tokio::select! {
                received = connection.recv_many(&mut batch, BATCH) => match received {
                    Ok(n) if n > 0 => batch.drain(..).for_each(|message| self.take(clock.now(), message)),
                    Ok(_) => return Err(ended(&CloseReason::Shutdown)),
                    Err(reason) => return Err(ended(&reason)),
                },
                () = tokio::time::sleep_until(clock.timer(next)) => {}
            }
            self.put_out(clock.now());
        }
        self.buffer.finish(Some(script.end));
        self.put_out(clock.now());
        Ok(())
    }

    fn take(&mut self, now: Instant, message: Message) {
        let message = message.payload.into_bytes();
        let Ok(header) = MediaHeader::decode(&message) else {
            tracing::warn!("a message that is no media was dropped");
            return;
        };
        let inserted = self.buffer.insert(now, header, message.slice(HEADER_LEN..));
        if matches!(inserted, Inserted::Accepted | Inserted::Late) {
            // The whole run fits into 32 bits of microseconds: the stamp needs no unwrapping.
            let sent = Instant::from_nanos(u64::from(header.timestamp) * 1_000);
            self.arrivals.push(Arrival { sent: sent.since(ORIGIN), delay: now.since(sent) });
        }
    }

    fn put_out(&mut self, now: Instant) {
        while let Some(item) = self.buffer.poll(now) {
            self.played.insert(item.header.sequence);
            self.tape.push(item.payload);
        }
        let stats = self.buffer.stats();
        self.live.played.store(stats.played, Ordering::Relaxed);
        // Tables in front of the first picture are no frame of video; they have no class.
        let [.., whole] = stats.frames.total;
        let [.., missing] = stats.frames.unusable;
        self.live.frames.store(stats.frames.frames() - (whole - missing), Ordering::Relaxed);
        self.live.unusable.store(stats.frames.frames_unusable(), Ordering::Relaxed);
    }
}

fn ended(reason: &CloseReason) -> Failure {
    Failure::network(format!("the connection is over: {reason}"))
}

/// What happened to the paths since the media began.
fn notes(ends: &Ends, clock: MediaClock) -> Vec<PathNote> {
    let mut events = ends.sender.events();
    let names = ends.path_names();
    let name = |path: PathId| names.get(&path).map_or("?", String::as_str);
    let mut notes = Vec::new();
    while let Some(seen) = events.try_next() {
        let at = seen.at.since(clock.start);
        let note = match seen.event {
            Event::PathChanged { path, from, to, reason } => PathNote {
                at,
                text: format!("{}: {from:?} to {to:?} ({})", name(path), reason.as_str()),
                mark: match (from, to) {
                    (PathState::Active, _) => Some(format!("{} left", name(path))),
                    (_, PathState::Active) => Some(format!("{} back", name(path))),
                    _ => None,
                },
            },
            Event::TakenOver { path, after } => {
                PathNote { at, text: format!("{}: taken over after {after}", name(path)), mark: None }
            }
            _ => continue,
        };
        if seen.at >= clock.start {
            notes.push(note);
        }
    }
    notes
}
