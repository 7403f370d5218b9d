//! `anabranch send`: a stream to a peer.

mod bytes;
mod datagram;
mod ending;
mod limits;
mod media;
mod rate;
mod sending;
mod source;

use crate::exit::{Failure, Outcome};
use crate::netargs::{PathArgs, PolicyArgs};
use crate::session::{Control, ControlError, Hello, Mode, StreamName, ppid};
use crate::stats::StatsArgs;
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use crate::units;
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
  Until the receiver ends or is lost for the first time, for scripts:
    anabranch send udp://:5001 anabranch://host:9899 --once
  An encoder that follows what the paths carry (docs/USE.md):
    anabranch send udp://:5001 anabranch://host --path wlan0 --path wwan0 --on-rate 'python3 obs_rate.py'
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
    /// anabranch://HOST:PORT[?latency=MS&profile=NAME&scheduler=NAME&mode=MODE&streamid=NAME&transport=NAME]; a flag of
    /// that name wins
    pub peer: String,
    /// What is carried: auto looks at the first bytes
    #[arg(long, value_name = "auto|media|datagram|file", value_parser = parse_mode)]
    pub mode: Option<ModeChoice>,
    /// Time from input to output; also how long media is worth sending. Bare numbers are milliseconds; default 300ms
    /// for media. Datagrams are given up after it, if it is named; else never
    #[arg(long, value_name = "TIME", value_parser = units::latency)]
    pub latency: Option<Duration>,
    /// Limits of the frames of each class.
    #[command(flatten)]
    pub limits: limits::ClassLimits,
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
    /// End after this time, counted from the first connection, or from the start as long as there is none
    #[arg(long, value_name = "TIME", value_parser = units::patience)]
    pub duration: Option<Duration>,
    /// End when the receiver cannot be reached, ends or is lost. Without it media and datagrams are sent again as soon as
    /// there is a receiver; a file, which cannot be resumed, always ends
    #[arg(long)]
    pub once: bool,
    /// Paths of the association.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Policies of the association.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Where to report what the paths carry.
    #[command(flatten)]
    pub encoder: rate::RateArgs,
    /// Statistics of the session.
    #[command(flatten)]
    pub stats: StatsArgs,
}

impl SendArgs {
    /// The flags that say something of media alone, with the verb that follows them.
    fn for_media(&self) -> Option<String> {
        let flags: Vec<&str> =
            self.strip_null.then_some("--strip-null").into_iter().chain(self.limits.flags()).collect();
        let verb = if flags.len() > 1 { "are" } else { "is" };
        (!flags.is_empty()).then(|| format!("{} {verb}", flags.join(" and ")))
    }
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

/// Runs the command.
pub async fn run(args: SendArgs) -> Outcome {
    sending::run(args).await
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
