//! One sender, from its hello to its end.

use super::body::Body;
use super::guest::refuse;
use super::seats::{Place, Seat};
use super::{Guest, Slot};
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog};
use crate::send::{describe, ended};
use crate::session::{Control, Done, End, Mode, ppid};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use anabranch_net::{Alarm, Message, from_std, now, to_std};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Time the sender has to go after the last word.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time the sender has to end after our user wanted to.
const ASKED: Duration = Duration::from_millis(800);

/// An output that takes nothing is waited for no longer than this once the session has to end.
const BLOCKED: Duration = Duration::from_secs(1);

/// After the sender's last word, how long nothing may come before what is missing counts as lost.
const QUIET: Duration = Duration::from_secs(3);

/// Messages that are read in one go.
const TOGETHER: usize = 64;

/// What arrives so long before something is to be played waits unread until then.
const SOON: Duration = Duration::from_millis(5);

/// What the user of the receiver wants.
#[derive(Clone)]
pub(super) struct Wish {
    pub latency: Option<Duration>,
    pub interval: Duration,
    pub peer_timeout: Duration,
    /// Type of the parameter that carries the media hint.
    pub media_hint: Option<u16>,
}

/// How receiving ended.
enum Finish {
    /// The sender said that that was all, and all that will come is here.
    Complete(End),
    /// The sender is gone or did not end in time.
    Gone(Option<Failure>),
    /// Another sender has the place from now on.
    Replaced,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The sender's input is over.
    Complete,
    /// The sender's user wanted to end.
    Cut,
    /// The sender is gone.
    Lost,
    /// Another sender has its place.
    Replaced,
}

/// A session that is over.
pub(super) struct Over {
    pub slot: Slot,
    pub why: Why,
    pub mode: Mode,
    /// Something came.
    pub came: bool,
    pub peer: String,
    pub outcome: Outcome,
    /// To be given back after the slot.
    pub place: Place,
}

struct Session {
    link: Link,
    stop: Stop,
    interrupt: Interrupt,
    seat: Arc<Seat>,
    progress: Progress,
    slot: Slot,
    body: Body,
    end: Option<End>,
    /// The sender's user ended it, not the end of its input.
    cut: bool,
    last_news: Instant,
}

/// Receives from one sender. The totals are written in every case.
pub(super) async fn run(guest: Guest, wish: Wish, interrupt: Interrupt, slot: Slot, reporter: SharedReporter) -> Over {
    let Guest { link, hello, place } = guest;
    let (mode, peer) = (hello.mode, link.peer().to_owned());
    if mode != Mode::Media && slot.output.takes_media_only() {
        let why = format!("its output {} takes a transport stream, not {}s", slot.output.name(), mode.name());
        refuse(&link, &why).await;
        let outcome = Err(Failure::network(format!("{peer} was refused: {why}")));
        return Over { slot, why: Why::Lost, mode, came: false, peer, outcome, place };
    }
    let latency = hello.latency.max(wish.latency.unwrap_or_default());
    let name = place.seat.name().map(|n| n.as_str().to_owned());
    {
        let mut reporter = crate::monitor::lock(&reporter);
        reporter.name_stream(name);
        reporter.begin("recv", mode.name(), peer.clone(), latency.as_millis() as u64);
    }
    tracing::info!("{peer}: {} with profile {}", mode.name(), hello.profile);
    if let Some(hint) = link.media_hint(wish.media_hint) {
        tracing::info!("{peer}: its handshake says {hint}");
    }
    let stop = Stop::new(&interrupt, None);
    let progress = Progress::default();
    let watchdog = Watchdog::start(&link, wish.peer_timeout, &stop);
    let monitor = Monitor::start(&link, &reporter, &progress, wish.interval);
    let mut session = Session {
        link,
        stop: stop.clone(),
        interrupt,
        seat: place.seat.clone(),
        progress,
        slot,
        body: Body::new(mode, latency),
        end: None,
        cut: false,
        last_news: Instant::now(),
    };
    let must_go = must_go(stop.clone(), place.seat.clone());
    let finish = tokio::select! {
        finish = session.receive(latency) => finish,
        finish = must_go => Ok(finish),
    };
    // What is left has limits of its own.
    drop(watchdog);
    place.seat.is_over();
    let asked = stop.get().filter(|c| !matches!(c, Cause::Lost(_)));
    let why = match &finish {
        Ok(Finish::Replaced) => Why::Replaced,
        Ok(Finish::Complete(_)) if session.cut => Why::Cut,
        Ok(Finish::Complete(_)) => Why::Complete,
        Ok(Finish::Gone(_)) | Err(_) => Why::Lost,
    };
    let result = session.conclude(finish, asked.is_some(), mode).await;
    let how = match (&asked, &result, why) {
        (None, Ok(()), Why::Cut) => "interrupted by the sender".into(),
        (None, Ok(()), Why::Replaced) => "another sender has its place".into(),
        _ => describe(asked.as_ref(), result.as_ref().err()),
    };
    monitor.finish("recv", how, None).await;
    let Session { slot, seat, .. } = session;
    Over { slot, why, mode, came: seat.has_heard(), peer, outcome: ended(asked, result), place }
}

/// Returns when the session has to end although it cannot: another sender is to have the place, the sender is lost or
/// our user does not want to wait, and the output takes nothing.
async fn must_go(stop: Stop, seat: Arc<Seat>) -> Finish {
    let lost = async {
        let failure = stop.lost().await;
        tokio::time::sleep(BLOCKED).await;
        failure
    };
    let asked = async {
        stop.wait().await;
        tokio::time::sleep(BLOCKED).await;
    };
    tokio::select! {
        biased;
        () = seat.leave() => Finish::Replaced,
        failure = lost => Finish::Gone(Some(failure)),
        () = asked => Finish::Gone(None),
    }
}

impl Session {
    async fn receive(&mut self, latency: Duration) -> Result<Finish, Failure> {
        if let Err(failure) = self.link.control(&Control::Welcome(latency)).await {
            return Ok(Finish::Gone(Some(failure)));
        }
        // Set when our user wants to end: the sender is asked to, and has until then.
        let mut until: Option<Instant> = None;
        let mut arrived = Vec::with_capacity(TOGETHER);
        let mut alarm = Alarm::new().map_err(Failure::network)?;
        self.slot.output.begin();
        loop {
            if let Some(end) = self.end
                && (self.body.is_complete(&end, self.last_news.elapsed() > QUIET)
                    || until.is_some() && self.body.has_all(&end))
            {
                return Ok(Finish::Complete(end));
            }
            let leftover = self.slot.leftover.as_ref().and_then(Body::next_timeout);
            let std = |t: Instant| from_std(t.into_std());
            let wake = [self.body.next_timeout(), leftover, until.map(std), self.quiet_at().map(std)];
            let wake = wake.into_iter().flatten().min();
            alarm.set(wake, now());
            // What arrives meanwhile waits for it: waking for each packet costs more than the packet.
            let rings_soon = wake.is_some_and(|at| at <= now() + SOON.into());
            tokio::select! {
                biased;
                failure = self.stop.lost() => return Ok(Finish::Gone(Some(failure))),
                _ = self.stop.wait(), if until.is_none() => {
                    until = Some(Instant::now() + ASKED);
                    let why = "interrupted".into();
                    if let Err(failure) = self.link.control(&Control::Stop { failed: false, why }).await {
                        return Ok(Finish::Gone(Some(failure)));
                    }
                }
                () = alarm.rung() => {
                    self.slot.play_leftover().await?;
                    self.link.recv_now(&mut arrived, TOGETHER);
                    if let Err(failure) = self.take_all(&mut arrived).await? {
                        return Ok(Finish::Gone(Some(failure)));
                    }
                    self.count();
                    if until.is_some_and(|t| t <= Instant::now()) {
                        return Ok(Finish::Gone(None));
                    }
                }
                read = self.link.recv_many(&mut arrived, TOGETHER), if !rings_soon => match read {
                    Ok(0) => return Ok(self.closed(None)),
                    Ok(_) => {
                        if let Err(failure) = self.take_all(&mut arrived).await? {
                            return Ok(Finish::Gone(Some(failure)));
                        }
                        self.count();
                    }
                    Err(failure) => return Ok(self.closed(Some(failure))),
                },
            }
        }
    }

    /// The connection is over; nothing more will come.
    fn closed(&mut self, failure: Option<Failure>) -> Finish {
        match (self.end, failure) {
            (Some(end), None) => Finish::Complete(end),
            (_, Some(Failure::Interrupted)) => {
                self.cut = true;
                Finish::Complete(End { interrupted: true, ..End::default() })
            }
            (_, failure) => Finish::Gone(failure),
        }
    }

    fn quiet_at(&self) -> Option<Instant> {
        self.end.filter(|_| self.body.may_lack()).map(|_| self.last_news + QUIET + Duration::from_millis(1))
    }

    async fn take_all(&mut self, messages: &mut Vec<Message>) -> Result<Outcome, Failure> {
        for message in messages.drain(..) {
            if let Err(failure) = self.take(message).await? {
                return Ok(Err(failure));
            }
        }
        self.body.on_timeout(&mut self.slot.output).await?;
        if self.body.has_put_out() {
            // What an earlier sender left would come between.
            self.slot.leftover = None;
        }
        Ok(Ok(()))
    }

    /// The outer error is the output's, the inner one the sender's.
    async fn take(&mut self, message: Message) -> Result<Outcome, Failure> {
        self.last_news = Instant::now();
        if message.ppid != ppid::CONTROL {
            if self.body.take(message, &mut self.slot.output).await? {
                self.seat.heard();
            }
            return Ok(Ok(()));
        }
        match Control::decode(&message.payload.into_bytes()) {
            Ok(Some(Control::End(end))) if self.end.is_none() => {
                self.end = Some(end);
                self.cut = end.interrupted;
                self.body.on_end(&end);
                self.seat.is_over();
            }
            Ok(other) => tracing::debug!(?other, "unexpected control message"),
            Err(e) => return Ok(Err(Failure::network(format!("{}: {e}", self.link.peer())))),
        }
        Ok(Ok(()))
    }

    fn count(&self) {
        self.body.count(&self.progress);
    }

    /// Writes what is left and says goodbye.
    async fn conclude(&mut self, finish: Result<Finish, Failure>, asked: bool, mode: Mode) -> Outcome {
        let written = match &finish {
            Ok(Finish::Replaced) => {
                self.leave_over();
                Ok(())
            }
            Ok(_) if asked => self.hurry().await,
            Ok(_) => self.play_out().await,
            // The failure may be the output's own.
            Err(_) => Ok(()),
        };
        self.count();
        let result = match (finish, written) {
            (Err(failure), _) | (Ok(_), Err(failure)) => {
                self.say_failed(&failure).await;
                return Err(failure);
            }
            (Ok(Finish::Complete(end)), Ok(())) => {
                if mode == Mode::File {
                    // An empty file replaces another one too.
                    self.slot.output.replace()?;
                }
                let done = Control::Done(self.done());
                if let Ok(Err(failure)) = timeout(PATIENCE, self.link.control(&done)).await {
                    tracing::debug!("{failure}");
                }
                // What is missing because our user wanted to end is no fault of the sender's.
                if asked { Ok(()) } else { self.verdict(&end) }
            }
            (Ok(Finish::Gone(_)), Ok(())) if asked => {
                self.link.abort("interrupted");
                Ok(())
            }
            (Ok(Finish::Gone(why)), Ok(())) => {
                self.link.abort("given up");
                Err(self.part_kept(why.map_or_else(
                    || format!("{} ended without saying that it was complete", self.link.peer()),
                    |f| f.to_string(),
                )))
            }
            // It has sent all it had, and that will be put out beside what comes next.
            (Ok(Finish::Replaced), Ok(())) if self.end.is_some() && mode != Mode::File => {
                let (link, done) = (self.link.clone(), Control::Done(self.done()));
                tokio::spawn(async move {
                    let _ = timeout(PATIENCE, link.control(&done)).await;
                    part(link).await;
                });
                return Ok(());
            }
            (Ok(Finish::Replaced), Ok(())) => {
                self.link.abort("another sender has its place");
                match mode {
                    // The rest of a file is not what another sender sends.
                    Mode::File if self.seat.has_heard() => Err(self.part_kept("another sender has its place".into())),
                    _ => Ok(()),
                }
            }
        };
        // The sender closes; it has waited for our last word. Whoever comes next does not wait for that.
        tokio::select! {
            () = self.seat.leave() => match self.end {
                Some(_) => drop(tokio::spawn(part(self.link.clone()))),
                None => self.link.abort("another sender has its place"),
            },
            () = async {
                if !self.link.closed(PATIENCE).await {
                    self.link.close(PATIENCE).await;
                }
            } => {}
        }
        result
    }

    /// What has not been put out is for the session that comes next.
    fn leave_over(&mut self) {
        let mut body = std::mem::replace(&mut self.body, Body::new(Mode::File, Duration::ZERO));
        body.finish(self.end);
        body.count(&self.progress);
        self.slot.leftover = Some(body);
    }

    /// Puts out what is left, each message at its instant, unless the user does not want to wait for that.
    async fn play_out(&mut self) -> Outcome {
        self.body.finish(self.end);
        let (interrupt, seat) = (self.interrupt.clone(), self.seat.clone());
        let play = async {
            while !self.body.is_played_out() {
                match self.body.next_timeout() {
                    Some(at) => tokio::time::sleep_until(to_std(at).into()).await,
                    None => tokio::task::yield_now().await,
                }
                self.body.on_timeout(&mut self.slot.output).await?;
            }
            self.slot.output.flush().await
        };
        tokio::select! {
            result = play => return result,
            () = seat.leave() => {}
            () = interrupt.wait() => return self.hurry().await,
        }
        self.leave_over();
        Ok(())
    }

    /// Puts out what is left at once, as far as the output takes it.
    async fn hurry(&mut self) -> Outcome {
        let write = async {
            self.body.finish(self.end);
            self.body.put_out_now(&mut self.slot.output).await?;
            self.slot.output.flush().await
        };
        timeout(BLOCKED / 3, write).await.unwrap_or(Ok(()))
    }

    async fn say_failed(&self, failure: &Failure) {
        let stop = Control::Stop { failed: true, why: failure.to_string() };
        let said = timeout(PATIENCE, self.link.control(&stop)).await;
        if matches!(said, Ok(Ok(()))) && self.link.closed(PATIENCE).await {
            return;
        }
        self.link.abort("the receiver failed");
    }

    fn verdict(&self, end: &End) -> Outcome {
        match self.body.missing(end) {
            Some(what) => Err(self.part_kept(what)),
            None => Ok(()),
        }
    }

    fn part_kept(&self, what: String) -> Failure {
        let output = &self.slot.output;
        Failure::network(format!("{what}; the {} bytes received are in {}", output.bytes(), output.name()))
    }

    fn done(&self) -> Done {
        let row = self.progress.get();
        Done {
            messages: row.messages,
            bytes: row.bytes,
            frames: row.frames,
            frames_unusable: row.frames_unusable,
            late: row.late,
            lost: row.lost,
        }
    }
}

/// Lets a sender that was served go by itself, beside the one that has its place.
async fn part(link: Link) {
    if !link.closed(PATIENCE).await {
        link.abort("another sender has its place");
    }
}
