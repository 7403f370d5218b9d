//! `anabranch send`: a stream to a peer.

mod bytes;
mod datagram;
mod ending;
mod media;

use crate::exit::{Failure, Outcome, warning};
use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog};
use crate::netargs::{PathArgs, PolicyArgs};
use crate::reload::Reload;
use crate::session::{Control, ControlError, Hello, Mode, StreamName, ppid};
use crate::stats::{Reporter, StatsArgs};
use crate::stop::{Cause, Stop};
use crate::transport::{self, Link};
use crate::units;
use crate::uri::{InputUri, PeerUri};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

pub use ending::{describe, ended};

/// Latency unless one is named.
pub const DEFAULT_LATENCY: Duration = Duration::from_millis(300);

/// Time for a clean end after the user has interrupted.
const PATIENCE: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
Examples:
  Live transport stream from an encoder, over two interfaces at once:
    anabranch send udp://:5001 anabranch://host:9899?latency=300 --path wlan0 --path wwan0
  From an encoder that sends MPEG-TS in RTP:
    anabranch send rtp://:5004 anabranch://host:9899?latency=300 --path wlan0 --path wwan0
  A recording at its own pace, statistics as JSON lines:
    anabranch send clip.ts anabranch://host:9899 --path 10.0.0.2 --path 10.1.0.2 --stats json
  A file, reliable and byte for byte:
    anabranch send backup.tar anabranch://host --mode file
  Through two relays of `anabranch emulate`:
    anabranch send clip.ts anabranch://127.0.0.1 \\
      --path 127.0.0.1,via=127.0.0.1:7001 --path 127.0.0.2,via=127.0.0.1:7002

Exit codes: 0 done; 1 the network or the peer failed; 2 wrong flags or files; 130 interrupted.";

/// Send a stream, datagrams or a file over several networks at once
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SendArgs {
    /// udp://[@]ADDRESS:PORT (@ and ?iface=NAME for multicast), rtp://[@]ADDRESS:PORT for MPEG-TS in RTP
    /// (?reorder=MS waits so long for missing packets; 30 unless named), file:PATH, or - for standard input
    pub input: String,
    /// anabranch://HOST:PORT[?latency=MS&profile=NAME&scheduler=NAME&mode=MODE&streamid=NAME]
    pub peer: String,
    /// What is carried: auto looks at the first bytes
    #[arg(long, value_name = "auto|media|datagram|file", value_parser = parse_mode)]
    pub mode: Option<ModeChoice>,
    /// Time from input to output; also how long media is worth sending. Bare numbers are milliseconds; default 300ms
    /// for media. Datagrams are given up after it, if it is named; else never
    #[arg(long, value_name = "TIME", value_parser = units::latency)]
    pub latency: Option<Duration>,
    /// Do not send null packets of a transport stream
    #[arg(long)]
    pub strip_null: bool,
    /// Deliver datagrams in order
    #[arg(long)]
    pub ordered: bool,
    /// Send a transport stream from a file or a pipe as fast as it comes, not at the pace of its own clock
    #[arg(long)]
    pub no_pace: bool,
    /// Pace of a recorded transport stream without a clock
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = units::bit_rate)]
    pub rate: u64,
    /// Name of this stream among several at the receiver, as ?streamid=NAME
    #[arg(long, value_name = "NAME")]
    pub streamid: Option<StreamName>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub duration: Option<Duration>,
    /// Paths.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Policies.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Statistics.
    #[command(flatten)]
    pub stats: StatsArgs,
}

/// A mode, or to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeChoice {
    /// By the first bytes.
    Auto,
    /// This one.
    Fixed(Mode),
}

fn parse_mode(text: &str) -> Result<ModeChoice, String> {
    match text {
        "auto" => Ok(ModeChoice::Auto),
        "media" => Ok(ModeChoice::Fixed(Mode::Media)),
        "datagram" => Ok(ModeChoice::Fixed(Mode::Datagram)),
        "file" => Ok(ModeChoice::Fixed(Mode::File)),
        _ => Err(format!("there is no mode `{text}`; there are auto, media, datagram and file")),
    }
}

/// How long a stream waits for paths that are not confirmed or measured yet.
const WARM_UP: Duration = Duration::from_millis(1_500);

/// What a pump needs.
struct Pump {
    link: Link,
    stop: Stop,
    progress: Progress,
    latency: Duration,
    strip_null: bool,
    ordered: bool,
}

/// Runs the command.
pub async fn run(args: SendArgs) -> Outcome {
    let peer = PeerUri::parse(&args.peer)?;
    let uri = InputUri::parse(&args.input)?;
    let plan = Plan::new(&args, &peer)?;
    if let (InputUri::Rtp { .. }, ModeChoice::Fixed(Mode::Datagram | Mode::File)) = (&uri, plan.mode) {
        return Err(Failure::usage(
            "rtp:// takes a transport stream out of its packets; for --mode datagram use udp://",
        ));
    }
    let interrupt = Interrupt::beside_reload(args.policies.config.as_deref());
    let mut input = Input::open(&uri)?;
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    let link = tokio::select! {
        link = transport::connect(&peer, &args.paths, &args.policies) => link?,
        () = interrupt.wait() => return Err(Failure::Interrupted),
    };
    let stop = Stop::new(&interrupt, args.duration);
    let watchdog = Watchdog::start(&link, args.policies.peer_timeout, &stop);
    let _reload = Reload::start(&link, &peer, &args.paths, &args.policies)?;
    let mut inbox = listen(&link, &stop);
    let (mode, latency) = match plan.agree(&mut input, &link, &stop, &mut inbox).await {
        Ok(Some(agreed)) => agreed,
        other => {
            let cause = stop.get();
            close(&link, &stop).await;
            return ended(cause, other.map(drop));
        }
    };
    crate::monitor::lock(&reporter).begin("send", mode.name(), link.peer().into(), latency.as_millis() as u64);
    let progress = Progress::default();
    let monitor = Monitor::start(&link, &reporter, &progress, args.stats.stats_interval);
    if mode == Mode::Media {
        // A stream begins at its full rate, and so has to find the paths measured.
        tokio::select! {
            _ = link.warm_up(WARM_UP) => {}
            _ = stop.wait() => {}
        }
        // Its beginning is what all that follows needs: what can be in time is kept.
        input.skip_old(latency).await;
    }
    if mode == Mode::Media
        && !args.no_pace
        && let Some(pace) = input.pace(args.rate)
    {
        input = input.paced(pace);
    }
    let (strip_null, ordered) = (args.strip_null, args.ordered);
    let pump = Pump { link: link.clone(), stop: stop.clone(), progress, latency, strip_null, ordered };
    let pumped = match mode {
        Mode::Media => media::pump(&pump, &mut input).await,
        Mode::Datagram => datagram::pump(&pump, &mut input).await,
        Mode::File | Mode::Tunnel => bytes::pump(&pump, &mut input).await,
    };
    let ending = ending::conclude(pumped, &pump, mode, &mut inbox).await;
    drop(watchdog);
    close(&link, &stop).await;
    monitor.finish("send", describe(ending.cause.as_ref(), ending.result.as_ref().err()), ending.done).await;
    if ending.result.is_ok() {
        ending::warn_of_loss(&pump.progress.get(), latency);
    }
    ended(ending.cause, ending.result)
}

/// Says goodbye; to a peer that is gone there is nobody to say it to.
async fn close(link: &Link, stop: &Stop) {
    if matches!(stop.get(), Some(Cause::Lost(_))) {
        link.end("gone").await;
    } else {
        link.close(PATIENCE).await;
    }
}

/// What the user wants, as far as it is known before the input has been seen.
struct Plan {
    mode: ModeChoice,
    latency: Option<Duration>,
    profile: &'static str,
    ordered: bool,
    timeout: Duration,
    streamid: Option<StreamName>,
}

impl Plan {
    fn new(args: &SendArgs, peer: &PeerUri) -> Result<Self, Failure> {
        let mode = match (&args.mode, &peer.mode) {
            (Some(m), _) => *m,
            (None, Some(text)) => parse_mode(text).map_err(Failure::usage)?,
            (None, None) => ModeChoice::Auto,
        };
        args.stats.check()?;
        let profile = args.policies.profile(peer)?.name();
        Ok(Plan {
            mode,
            latency: args.latency.or(peer.latency),
            profile,
            ordered: args.ordered,
            timeout: args.paths.connect_timeout,
            streamid: args.streamid.clone().or(peer.streamid.first().cloned()),
        })
    }

    /// Finds out what to send and agrees on it with the receiver; none when the user ends it before.
    async fn agree(
        &self,
        input: &mut Input,
        link: &Link,
        stop: &Stop,
        inbox: &mut mpsc::Receiver<Control>,
    ) -> Result<Option<(Mode, Duration)>, Failure> {
        link.introduce(self.streamid.as_ref()).await?;
        link.control(&Control::Here(input.file())).await?;
        let mode = match self.mode {
            ModeChoice::Fixed(mode) => {
                if mode == Mode::Media {
                    input.expect_media();
                }
                mode
            }
            ModeChoice::Auto => tokio::select! {
                mode = input.detect() => mode?,
                cause = stop.wait() => return lost_or_none(cause),
            },
        };
        tracing::info!("sending {} as {}", input.name(), mode.name());
        if mode == Mode::Datagram && !self.ordered && input.is_one_stream() {
            warning(&format!(
                "the pieces of {} may arrive in another order; --ordered keeps it, --mode file is byte for byte",
                input.name()
            ));
        }
        let latency = match mode {
            Mode::Media => self.latency.unwrap_or(DEFAULT_LATENCY),
            Mode::Datagram => self.latency.unwrap_or_default(),
            Mode::File | Mode::Tunnel => Duration::ZERO,
        };
        let hello = Hello { mode, latency, profile: self.profile.into() };
        Ok(greet(link, hello, stop, inbox, self.timeout).await?.map(|latency| (mode, latency)))
    }
}

/// Says hello and waits for the welcome; returns the latency that holds.
pub async fn greet(
    link: &Link,
    hello: Hello,
    stop: &Stop,
    inbox: &mut mpsc::Receiver<Control>,
    timeout: Duration,
) -> Result<Option<Duration>, Failure> {
    link.control(&Control::Hello(hello)).await?;
    loop {
        tokio::select! {
            biased;
            message = inbox.recv() => match message {
                Some(Control::Welcome(latency)) => return Ok(Some(latency)),
                Some(_) => {}
                None => return lost_or_none(stop.wait().await),
            },
            cause = stop.wait() => return lost_or_none(cause),
            () = tokio::time::sleep(timeout) => {
                return Err(Failure::network(format!(
                    "{} speaks SCTP but says nothing; check that it is `anabranch recv` or `tunnel`", link.peer()
                )));
            }
        }
    }
}

fn lost_or_none<T>(cause: Cause) -> Result<Option<T>, Failure> {
    match cause {
        Cause::Lost(failure) => Err(failure),
        _ => Ok(None),
    }
}

/// Reads what the receiver says, until the end of the connection.
fn listen(link: &Link, stop: &Stop) -> mpsc::Receiver<Control> {
    let (tx, rx) = mpsc::channel(8);
    let (link, stop) = (link.clone(), stop.clone());
    tokio::spawn(async move {
        let ended = loop {
            match link.recv().await {
                Ok(Some(m)) if m.ppid == ppid::CONTROL => match Control::decode(&m.payload.into_bytes()) {
                    Ok(Some(Control::Stop { failed: false, why })) => stop.set(Cause::Peer(why)),
                    Ok(Some(Control::Stop { failed: true, why })) => {
                        stop.set(Cause::Lost(Failure::network(format!("{}: the receiver failed: {why}", link.peer()))));
                    }
                    Ok(Some(Control::Refuse(why))) => {
                        stop.set(Cause::Lost(Failure::network(format!("{} refuses: {why}", link.peer()))));
                    }
                    Ok(Some(message)) => {
                        if tx.send(message).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(e @ (ControlError::Foreign | ControlError::Version(_) | ControlError::Damaged)) => {
                        break Failure::network(format!("{}: {e}", link.peer()));
                    }
                },
                Ok(Some(_)) => {}
                Ok(None) | Err(Failure::Interrupted) => {
                    break Failure::network(format!("{} has ended the session", link.peer()));
                }
                Err(failure) => break failure,
            }
        };
        stop.set(Cause::Lost(ended));
    });
    rx
}
