//! `anabranch recv`: a stream from a peer.

mod body;
mod guest;
mod session;

use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::monitor::SharedReporter;
use crate::netargs::PolicyArgs;
use crate::output::Output;
use crate::stats::{Reporter, StatsArgs};
use crate::transport::Listener;
use crate::units;
use crate::uri::{OutputUri, PeerUri};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use guest::{Door, Guest, Guests};

const EXAMPLES: &str = "\
Examples:
  Wait for a sender, hand the stream to a player:
    anabranch recv anabranch://:9899 udp://127.0.0.1:5000
  The same into a file, with statistics:
    anabranch recv --listen :9899 out.ts --stats json
  To a multicast group, sender after sender:
    anabranch recv anabranch://:9899 'udp://@239.1.1.1:5000?ttl=4&iface=eth0' --keep
  To a player that wants MPEG-TS in RTP:
    anabranch recv anabranch://:9899 rtp://192.168.1.20:5004
  Into a decoder:
    anabranch recv --listen :9899 - | ffplay -

Exit codes: 0 done; 1 the network or the peer failed (the part received is kept); 2 wrong flags or files;
130 interrupted.";

/// Receive a stream, datagrams or a file
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RecvArgs {
    /// anabranch://[ADDRESS]:PORT[?latency=MS], unless --listen has it; then udp://ADDRESS:PORT (multicast with
    /// ?ttl=N&iface=NAME), rtp://ADDRESS:PORT for MPEG-TS in RTP (the same, and &pt=N for another payload type than 33,
    /// &ssrc=N), file:PATH, or - for standard output
    #[arg(value_name = "[LISTEN] OUTPUT", num_args = 1..=2, required = true)]
    pub places: Vec<String>,
    /// Where to wait for the sender: [ADDRESS]:PORT
    #[arg(long, value_name = "[ADDRESS]:PORT")]
    pub listen: Option<String>,
    /// At least this latency, whatever the sender asks for
    #[arg(long, value_name = "TIME", value_parser = units::latency)]
    pub latency: Option<Duration>,
    /// Go on with the next sender when one has ended, or when one has been silent for 3 s and another asks; the output
    /// continues
    #[arg(long)]
    pub keep: bool,
    /// Policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Statistics.
    #[command(flatten)]
    pub stats: StatsArgs,
}

impl RecvArgs {
    pub(crate) fn places(&self) -> Result<(PeerUri, OutputUri), Failure> {
        let (listen, output) = match (&self.listen, self.places.as_slice()) {
            (Some(listen), [output]) => (listen, output),
            (None, [listen, output]) => (listen, output),
            (Some(_), _) => return Err(Failure::usage("with --listen there is one more argument, the output")),
            (None, _) => return Err(Failure::usage("two places are needed: recv anabranch://:9899 OUTPUT")),
        };
        Ok((PeerUri::parse(listen)?, OutputUri::parse(output)?))
    }
}

/// Runs the command.
pub async fn run(args: RecvArgs) -> Outcome {
    let (at, uri) = args.places()?;
    let interrupt = Interrupt::install();
    let listener = Listener::open(&at, &args.policies)?;
    let mut output = Output::open(&uri)?;
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, uri == OutputUri::Stdout)?));
    tracing::info!("listening on {:?}, writing to {}", listener.addresses(), output.name());
    let mut guests = Guests::start(listener, Door { replaces: args.keep, output: output.file(), ..Door::default() });
    let outcome = serve(&args, &at, &interrupt, &mut guests, &mut output, &reporter).await;
    guests.settle().await;
    outcome
}

async fn serve(
    args: &RecvArgs,
    at: &PeerUri,
    interrupt: &Interrupt,
    guests: &mut Guests,
    output: &mut Output,
    reporter: &SharedReporter,
) -> Outcome {
    loop {
        let guest = tokio::select! {
            guest = guests.next() => guest.ok_or_else(|| Failure::network("the socket driver has stopped"))?,
            () = interrupt.wait() => return Err(Failure::Interrupted),
        };
        let wish = session::Wish {
            latency: args.latency.or(at.latency),
            interval: args.stats.stats_interval,
            peer_timeout: args.policies.peer_timeout,
        };
        let outcome = session::run(guest, &wish, interrupt, output, reporter).await;
        match outcome {
            Err(Failure::Network(what)) if args.keep => crate::exit::warning(&what),
            Ok(()) if args.keep => {}
            outcome => return outcome,
        }
    }
}
