//! One session after another, until the input ends or the user does.
//!
//! A session is lost when its connection is, when the receiver refuses it, and when the receiver's user ends it. Media
//! and datagrams then begin anew as soon as there is a receiver again. Meanwhile an input that goes on by itself is read
//! and what is too old to be sent is dropped, so that each session begins with what is fresh.

use super::ending::{self, Ending, describe, ended};
use super::limits::ClassLimits;
use super::rate::Rates;
use super::source::{Attended, Source};
use super::{ModeChoice, PATIENCE, SendArgs, bytes, datagram, greet, listen, media, parse_mode};
use crate::exit::{Failure, Outcome, warning};
use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::line::{Line, Outage};
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog, lock};
use crate::overwrite::{Files, beside};
use crate::reload::Reload;
use crate::session::{Control, End, Hello, Mode, StreamName};
use crate::stats::{Reporter, StreamRow, unread_parity};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use crate::uri::{InputUri, PeerUri, prefer};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a stream waits for paths that are not confirmed or measured yet.
const WARM_UP: Duration = Duration::from_millis(1_500);

/// Input that is at hand says what it is within this time, before anything else is done.
const GLANCE: Duration = Duration::from_millis(200);

/// What a pump needs.
pub(super) struct Pump {
    pub link: Link,
    pub stop: Stop,
    pub progress: Progress,
    /// When the session began.
    pub before: StreamRow,
    pub latency: Duration,
    pub strip_null: bool,
    pub ordered: bool,
    pub limits: ClassLimits,
}

impl Pump {
    /// What this session has sent, as far as it was counted.
    pub fn sent(&self) -> End {
        let (row, before) = (self.progress.get(), self.before);
        End {
            interrupted: true,
            messages: row.messages - before.messages,
            frames: row.frames - before.frames,
            bytes: row.bytes - before.bytes,
        }
    }
}

/// Runs the command.
pub(super) async fn run(mut args: SendArgs) -> Outcome {
    let peer = PeerUri::parse(&args.peer)?;
    let uri = InputUri::parse(&args.input)?;
    args.stats.check()?;
    let mode = peer.mode.as_deref().map(parse_mode).transpose().map_err(Failure::usage)?;
    let mode = prefer("mode", args.mode, mode).unwrap_or(ModeChoice::Auto);
    if let (InputUri::Rtp { .. }, ModeChoice::Fixed(Mode::Datagram | Mode::File)) = (&uri, mode) {
        return Err(Failure::usage(
            "rtp:// takes a transport stream out of its packets; for --mode datagram use udp://",
        ));
    }
    args.policies.sends_film = matches!(mode, ModeChoice::Auto | ModeChoice::Fixed(Mode::Media));
    if let Some(flags) = args.for_media().filter(|_| !args.policies.sends_film) {
        return Err(Failure::usage(format!("{flags} for media; leave out that, or the mode")));
    }
    let mut source = Source {
        mode: None,
        latency: prefer("latency", args.latency, peer.latency),
        agreed: None,
        pace: (!args.no_pace).then_some(args.rate),
        opened: Instant::now(),
        begun: false,
        progress: Progress::default(),
        input: None,
    };
    if let ModeChoice::Fixed(mode) = mode {
        source.is(mode)?;
    }
    let rate_file = args.encoder.rate_file.as_deref();
    Files::of_session(&args.policies, &args.stats)
        .input(&uri)
        .writes("--rate-file", rate_file)
        .writes("--rate-file", rate_file.map(beside).as_deref())
        .check()?;
    let profile = args.policies.profile(&peer)?.name();
    let interrupt = Interrupt::beside_reload(args.policies.config.as_deref());
    let mut input = Input::open(&uri)?;
    if source.mode == Some(Mode::Media) {
        input.expect_media();
    }
    let reporter: SharedReporter = Arc::new(Mutex::new(Reporter::open(&args.stats, false)?));
    let mut sending = Sending {
        source: Source { input: Some(input), ..source },
        line: Line::open(&peer, &args.paths, &args.policies)?,
        until: args.duration.map(|d| Instant::now() + d),
        reached: false,
        outage: Outage::new(args.once),
        announced: false,
        rates: Rates::start(&args.encoder)?,
        streamid: prefer("streamid", args.streamid.clone(), peer.streamid.first().cloned()),
        monitor: None,
        args,
        profile,
        interrupt,
        reporter,
    };
    let _reload = Reload::start(sending.line.handle(), sending.args.policies.config.as_deref())?;
    sending.glance().await?;
    sending.run().await
}

/// How a session ended.
enum Next {
    /// It was lost; another one may begin.
    Again(Failure),
    /// That was all.
    Over(Ending),
}

struct Sending {
    args: SendArgs,
    profile: &'static str,
    source: Source,
    line: Line,
    interrupt: Interrupt,
    /// End of `--duration`.
    until: Option<Instant>,
    /// There was a connection.
    reached: bool,
    outage: Outage,
    /// The user knows what is sent.
    announced: bool,
    reporter: SharedReporter,
    /// The encoder, which hears what the paths carry.
    rates: Rates,
    /// What the stream is called.
    streamid: Option<StreamName>,
    /// From the first session on.
    monitor: Option<Monitor>,
}

impl Sending {
    /// What is at hand tells what it is, so that files are known from the start.
    async fn glance(&mut self) -> Outcome {
        if self.source.mode.is_none() {
            let detect = self.source.input()?.detect();
            if let Ok(mode) = tokio::time::timeout(GLANCE, detect).await {
                self.source.is(mode?)?;
            }
        }
        Ok(())
    }

    /// Does the first loss end everything?
    fn once(&self) -> bool {
        self.args.once || self.source.mode == Some(Mode::File)
    }

    async fn run(mut self) -> Outcome {
        let ending = loop {
            let stop = self.stop();
            let link = match self.reach(&stop).await {
                Ok(link) => link,
                Err(ending) => break ending,
            };
            let stop = if self.reached { stop } else { self.stop_from_now() };
            match self.session(&link, &stop).await {
                Next::Again(why) => {
                    if let Some(monitor) = &self.monitor {
                        monitor.lost(&why);
                    }
                    self.outage.because(&why);
                }
                Next::Over(ending) => break ending,
            }
        };
        self.line.stop();
        self.rates.finish().await;
        let how = describe(ending.cause.as_ref(), ending.result.as_ref().err());
        let row = self.source.progress.get();
        if let Some(monitor) = self.monitor {
            monitor.finish("send", how, ending.done).await;
            if ending.result.is_ok() {
                ending::warn_of_loss(&row, self.source.agreed.unwrap_or_default(), &self.args.limits);
            }
        }
        ended(ending.cause, ending.result)
    }

    fn stop(&self) -> Stop {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        Stop::new(&self.interrupt, left)
    }

    /// The time counts from the first connection on.
    fn stop_from_now(&mut self) -> Stop {
        self.reached = true;
        self.until = self.args.duration.map(|d| Instant::now() + d);
        self.stop()
    }

    /// Waits for a connection.
    async fn reach(&mut self, stop: &Stop) -> Result<Link, Ending> {
        let over = |cause, result| Err(Ending { cause, result, done: None });
        loop {
            let once = self.once();
            let (line, source, outage) = (&mut self.line, &mut self.source, &mut self.outage);
            tokio::select! {
                biased;
                cause = stop.wait() => {
                    let result = match cause {
                        Cause::Time => Err(Failure::network(format!(
                            "the time is over, and there is no connection with {}", line.peer()
                        ))),
                        _ => Ok(()),
                    };
                    return over(Some(cause), result);
                }
                link = line.next(once, outage) => return link.or_else(|failure| over(None, Err(failure))),
                attended = source.attend() => match attended {
                    Attended::IsFile => {}
                    Attended::Ended(Ok(())) => {
                        let what = format!("the input has ended, and there is no connection with {}", line.peer());
                        return over(None, Err(Failure::network(what)));
                    }
                    Attended::Ended(failed) => return over(None, failed),
                }
            }
        }
    }

    /// One session over one connection.
    async fn session(&mut self, link: &Link, stop: &Stop) -> Next {
        let watchdog = Watchdog::start(link, self.args.policies.peer_timeout, stop);
        let mut inbox = listen(link, stop);
        let (mode, latency) = match self.agree(link, stop, &mut inbox).await {
            Ok(Some(agreed)) => agreed,
            other => {
                let ending = Ending { cause: stop.get(), result: other.map(drop), done: None };
                return self.finish(link, stop, ending, false).await;
            }
        };
        self.begin(link, mode, latency).await;
        let following = self.rates.follow(link, mode, &self.source.progress);
        self.warm_up(link, stop, mode, latency).await;
        let progress = self.source.progress.clone();
        let pump = Pump {
            link: link.clone(),
            stop: stop.clone(),
            before: progress.get(),
            progress,
            latency,
            strip_null: self.args.strip_null,
            ordered: self.args.ordered,
            limits: self.args.limits,
        };
        let pumped = match self.source.input() {
            Err(failure) => Err(failure),
            Ok(input) => match mode {
                Mode::Media => media::pump(&pump, input).await,
                Mode::Datagram => datagram::pump(&pump, input).await,
                Mode::File | Mode::Tunnel => bytes::pump(&pump, input).await,
            },
        };
        let all = pumped.is_ok() && stop.get().is_none();
        let conclude = ending::conclude(pumped, &pump, mode, &mut inbox);
        let ending = if all { conclude.await } else { self.source.beside(conclude).await };
        drop((watchdog, following));
        self.finish(link, stop, ending, all).await
    }

    /// Leaves the receiver; decides whether that was all. `all` is the end of the input.
    async fn finish(&mut self, link: &Link, stop: &Stop, mut ending: Ending, all: bool) -> Next {
        let lost = matches!(stop.get(), Some(Cause::Lost(_)));
        let why = match (&ending.cause, &ending.result) {
            // What was lost after that is of no interest: goodbyes have little time.
            _ if self.once() || all || self.interrupt.has_come() => None,
            (Some(Cause::Interrupted | Cause::Time), _) | (_, Err(Failure::Usage(_))) => None,
            (Some(Cause::Lost(failure)), _) | (_, Err(failure)) => Some(failure.clone()),
            (Some(Cause::Peer(why)), Ok(())) => {
                Some(Failure::network(format!("{} has ended the session ({why})", link.peer())))
            }
            (None, Ok(())) => None,
        };
        let Some(why) = why else {
            if self.interrupt.has_come() && self.source.mode != Some(Mode::File) {
                ending = Ending { cause: Some(Cause::Interrupted), result: Ok(()), ..ending };
            }
            self.line.stop();
            if lost {
                link.end("gone").await;
            } else {
                link.close(PATIENCE).await;
            }
            return Next::Over(ending);
        };
        if lost {
            link.abort("gone");
        } else {
            self.source.beside(link.leave(PATIENCE)).await;
        }
        Next::Again(why)
    }

    /// Finds out what to send and agrees on it with the receiver; none when the user ends it before.
    async fn agree(
        &mut self,
        link: &Link,
        stop: &Stop,
        inbox: &mut mpsc::Receiver<Control>,
    ) -> Result<Option<(Mode, Duration)>, Failure> {
        let mark = self.source.input()?.file();
        link.introduce(self.streamid.as_ref()).await?;
        link.control(&Control::Here(mark)).await?;
        while self.source.mode.is_none() {
            tokio::select! {
                biased;
                mode = async { self.source.input()?.detect().await } => {
                    self.source.is(mode?)?;
                }
                cause = stop.wait() => return super::lost_or_none(cause),
            }
        }
        let mode = self.source.mode.unwrap_or(Mode::File);
        self.tell(mode)?;
        let hello = Hello { mode, latency: self.source.wish(mode), profile: self.profile.into() };
        let welcome = greet(link, hello, stop, inbox, self.args.paths.patience());
        Ok(self.source.beside(welcome).await?.map(|latency| (mode, latency)))
    }

    fn tell(&mut self, mode: Mode) -> Outcome {
        if std::mem::replace(&mut self.announced, true) {
            return Ok(());
        }
        let input = self.source.input()?;
        tracing::info!("sending {} as {}", input.name(), mode.name());
        if let Some(flags) = self.args.for_media().filter(|_| mode != Mode::Media) {
            warning(&format!("{flags} for media, and {} goes as {}: nothing changes", input.name(), mode.name()));
        }
        if mode == Mode::Datagram && !self.args.ordered && input.is_one_stream() {
            warning(&format!(
                "the pieces of {} may arrive in another order; --ordered keeps it, --mode file is byte for byte",
                input.name()
            ));
        }
        Ok(())
    }

    /// The receiver has agreed.
    async fn begin(&mut self, link: &Link, mode: Mode, latency: Duration) {
        self.source.agreed = Some(latency);
        self.outage.over(link.peer());
        if let Some(monitor) = &self.monitor {
            return monitor.follow(link, latency);
        }
        if let Some(hint) = link.media_hint(self.args.policies.media_hint.0) {
            tracing::info!("{} has read the media hint: {hint}", link.peer());
        }
        if let Some(what) = unread_parity(&link.stats()) {
            warning(&format!("{} {what}", link.peer()));
        }
        lock(&self.reporter).begin("send", mode.name(), link.peer().into(), latency.as_millis() as u64);
        let progress = &self.source.progress;
        progress.update(|row| row.connected = Some(true));
        self.monitor = Some(Monitor::start(link, &self.reporter, progress, self.args.stats.stats_interval));
    }

    /// A stream begins at its full rate, and so has to find the paths measured.
    async fn warm_up(&mut self, link: &Link, stop: &Stop, mode: Mode, latency: Duration) {
        if mode == Mode::Media {
            let warm = async {
                tokio::select! {
                    _ = link.warm_up(WARM_UP) => {}
                    _ = stop.wait() => {}
                }
            };
            self.source.beside(warm).await;
        }
        self.source.begun = true;
        self.source.run_at_pace(mode);
        if mode != Mode::File && (mode == Mode::Media || !latency.is_zero()) {
            let (age, progress) = (self.source.age(mode), self.source.progress.clone());
            // Its beginning is what all that follows needs: what can be in time is kept.
            if let Some(input) = &mut self.source.input {
                input.skip_old(age, &progress);
            }
        }
    }
}
