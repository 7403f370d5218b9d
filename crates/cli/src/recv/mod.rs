//! `anabranch recv`: a stream from a peer.

mod body;
mod guest;
mod lobby;
mod seats;
mod session;
mod sinks;

use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::netargs::PolicyArgs;
use crate::session::Mode;
use crate::stats::{Reporter, StatsArgs};
use crate::transport::Listener;
use crate::units;
use crate::uri::{OutputUri, PeerUri, prefer};
use session::{Over, Why};
use sinks::{Sinks, Slot};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

pub use guest::{Door, DoorArgs, Guest, Guests};
pub use seats::{Rules, Seat};

const EXAMPLES: &str = "\
Examples:
  Wait for a sender, hand the stream to a player:
    anabranch recv anabranch://:9899 udp://127.0.0.1:5000
  The same into a file, with statistics:
    anabranch recv --listen :9899 out.ts --stats json
  To a multicast group, sender after sender, from one network only:
    anabranch recv anabranch://:9899 'udp://@239.1.1.1:5000?ttl=4&iface=eth0' --from 192.0.2.0/24
  To a player that wants MPEG-TS in RTP:
    anabranch recv anabranch://:9899 rtp://192.168.1.20:5004
  One session into a file, whatever becomes of it:
    anabranch recv --listen :9899 take-1.ts --once
  Four cameras at once, each into a file of its own:
    anabranch recv 'anabranch://:9899?streamid=a,b,c,d' 'camera-{streamid}.ts' --max-senders 4
  Into a decoder:
    anabranch recv --listen :9899 - | ffplay -

Exit codes: 0 done; 1 the network or the peer failed (the part received is kept); 2 wrong flags or files;
130 interrupted.";

/// Receive a stream, datagrams or a file
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RecvArgs {
    /// anabranch://[ADDRESS]:PORT[?latency=MS&streamid=NAME,…&mode=MODE], unless --listen has it; then
    /// udp://ADDRESS:PORT (multicast with ?ttl=N&iface=NAME), rtp://ADDRESS:PORT for MPEG-TS in RTP (the same, and &pt=N
    /// for another payload type than 33, &ssrc=N), file:PATH, or - for standard output. {streamid} in a file's name is
    /// the sender's stream id
    #[arg(value_name = "[LISTEN] OUTPUT", num_args = 1..=2, required = true)]
    pub places: Vec<String>,
    /// Where to wait for the sender: [ADDRESS]:PORT
    #[arg(long, value_name = "[ADDRESS]:PORT")]
    pub listen: Option<String>,
    /// At least this latency, whatever the sender asks for
    #[arg(long, value_name = "TIME", value_parser = units::latency)]
    pub latency: Option<Duration>,
    /// Go on with the next sender when one has ended, however it did; the output continues. To udp:// this is the
    /// default. A file or a pipe ends with a sender whose input was over; a sender that is lost or interrupted is waited
    /// for, unless it sent a file (--mode file)
    #[arg(long, conflicts_with = "once")]
    pub keep: bool,
    /// End after one session, however it ended
    #[arg(long)]
    pub once: bool,
    /// So many senders at a time, each with a stream id and an output of its own: {streamid} in the output
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub max_senders: u16,
    /// Who may come.
    #[command(flatten)]
    pub door: DoorArgs,
    /// Policies of the associations.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Statistics of the sessions.
    #[command(flatten)]
    pub stats: StatsArgs,
}

impl RecvArgs {
    /// The output as it is written, with {streamid}.
    fn output(&self) -> &str {
        self.places.last().map_or("", String::as_str)
    }

    pub(crate) fn places(&self) -> Result<(PeerUri, OutputUri), Failure> {
        let (listen, output) = match (&self.listen, self.places.as_slice()) {
            (Some(listen), [output]) => (listen, output),
            (None, [listen, output]) => (listen, output),
            (Some(_), _) => return Err(Failure::usage("with --listen there is one more argument, the output")),
            (None, _) => return Err(Failure::usage("two places are needed: recv anabranch://:9899 OUTPUT")),
        };
        let at = PeerUri::parse(listen)?;
        let uri = sinks::uri(output, at.streamid.first())?;
        Ok((at, uri))
    }
}

/// Runs the command.
pub async fn run(args: RecvArgs) -> Outcome {
    let (at, uri) = args.places()?;
    let named = at.mode.as_deref().map(mode).transpose()?;
    refuse_mode(named, &uri)?;
    let mut sinks = Sinks::new(&args, &at)?;
    sinks.check(&uri)?;
    let rules = Rules {
        places: args.max_senders.into(),
        per_address: args.max_senders.into(),
        replaces: !args.once,
        replaces_files: args.keep,
    };
    let mut door = Door::new(rules, &at, &args.door, false);
    door.wants_name = sinks.by_name();
    door.mode = named;
    let interrupt = Interrupt::prompt();
    let listener = Listener::open(&at, &args.policies, args.door.limits(rules.places))?;
    door.output = sinks.open(&uri)?;
    let reporter = Reporter::open(&args.stats, uri == OutputUri::Stdout)?;
    tracing::info!("listening on {:?}, writing to {}", listener.addresses(), sinks.name());
    let mut guests = Guests::start(listener, door);
    let wish = session::Wish {
        latency: prefer("latency", args.latency, at.latency),
        interval: args.stats.stats_interval,
        peer_timeout: args.policies.peer_timeout,
        media_hint: args.policies.media_hint.0,
    };
    let after = After { once: args.once, goes_on: args.keep || uri.is_live() || rules.places > 1 };
    let outcome = serve(&wish, after, &interrupt, &mut guests, &mut sinks, &reporter).await;
    guests.settle().await;
    outcome
}

fn mode(text: &str) -> Result<Mode, Failure> {
    let one = <Mode as clap::ValueEnum>::from_str(text, false);
    one.map_err(|_| Failure::usage(format!("there is no mode `{text}`; there are media, datagram and file")))
}

/// A mode that the output has no place for.
fn refuse_mode(mode: Option<Mode>, output: &OutputUri) -> Outcome {
    let (scheme, fits) = match output {
        OutputUri::Udp { .. } => ("udp", "media and datagrams; a file is written to a file or to -"),
        OutputUri::Rtp { .. } => ("rtp", "media"),
        OutputUri::File(_) | OutputUri::Stdout => return Ok(()),
    };
    let refused = match mode {
        Some(Mode::File) => true,
        Some(Mode::Datagram) => matches!(output, OutputUri::Rtp { .. }),
        Some(Mode::Media | Mode::Tunnel) | None => false,
    };
    let name = mode.map_or("", Mode::name);
    if refused { Err(Failure::usage(format!("mode={name}: an output {scheme}:// is for {fits}"))) } else { Ok(()) }
}

async fn serve(
    wish: &session::Wish,
    after: After,
    interrupt: &Interrupt,
    guests: &mut Guests,
    sinks: &mut Sinks,
    reporter: &Reporter,
) -> Outcome {
    let mut sessions: JoinSet<Over> = JoinSet::new();
    let mut interrupted = false;
    // Of sessions that failed while all were asked to end.
    let mut failed = None;
    loop {
        tokio::select! {
            biased;
            () = interrupt.wait(), if !interrupted => interrupted = true,
            Some(over) = sessions.join_next() => {
                let over = over.map_err(|e| Failure::network(format!("a session failed: {e}")))?;
                let next = after.look(&over);
                sinks.give_back(over.slot);
                drop(over.place);
                match (next, over.outcome) {
                    (_, Err(failure @ Failure::Usage(_))) if interrupted => failed = Some(failure),
                    // The others end too, each in its own time.
                    _ if interrupted => {}
                    (Next::End, outcome) => return outcome,
                    (Next::GoOn(Some(what)), _) => crate::warn::limited("ended", || what),
                    (Next::GoOn(None), _) => {}
                }
            }
            guest = guests.next(), if !interrupted => {
                let guest = guest.ok_or_else(|| Failure::network("the socket driver has stopped"))?;
                match sinks.take(guest.place.seat.name()) {
                    Ok(slot) => {
                        let reporter = Arc::new(Mutex::new(reporter.another()));
                        sessions.spawn(session::run(guest, wish.clone(), interrupt.clone(), slot, reporter));
                    }
                    Err(failure) => {
                        crate::warn::limited("output", || failure.to_string());
                        tokio::spawn(async move { guest::refuse(&guest.link, "it cannot open its output").await });
                    }
                }
            }
        }
        // Running sessions notice by themselves.
        if interrupted && sessions.is_empty() {
            return Err(failed.unwrap_or(Failure::Interrupted));
        }
    }
}

/// What a session's end means for the receiver.
#[derive(Clone, Copy, Debug)]
struct After {
    /// One session is all.
    once: bool,
    /// There is always a next one.
    goes_on: bool,
}

enum Next {
    End,
    /// With a line for the user, perhaps.
    GoOn(Option<String>),
}

impl After {
    fn look(self, over: &Over) -> Next {
        let replaced_unheard = over.why == Why::Replaced && !over.came;
        match &over.outcome {
            Err(Failure::Usage(_) | Failure::Interrupted) => return Next::End,
            _ if replaced_unheard => return Next::GoOn(None),
            _ if self.once => return Next::End,
            Err(failure) if self.goes_on => return Next::GoOn(Some(failure.to_string())),
            Ok(()) if self.goes_on => return Next::GoOn(None),
            // Whole or not, there is no second part.
            _ if over.mode == Mode::File && over.why != Why::Replaced => return Next::End,
            _ => {}
        }
        let peer = &over.peer;
        match (&over.outcome, over.why) {
            (_, Why::Complete) if over.came => Next::End,
            (_, Why::Complete) => Next::GoOn(Some(format!("{peer} has sent nothing; waiting for another sender"))),
            (Err(failure), _) => Next::GoOn(Some(format!("{failure}; waiting for the sender to come back"))),
            (_, Why::Replaced) => Next::GoOn(Some(format!("{peer} was silent; another sender goes on"))),
            (_, _) => Next::GoOn(Some(format!("{peer} was interrupted; waiting for the sender to come back"))),
        }
    }
}
