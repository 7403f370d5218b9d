//! One sender, from its hello to its end.

use super::Guest;
use super::body::Body;
use super::guest::refuse;
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::monitor::{Monitor, Progress, SharedReporter, Watchdog};
use crate::output::Output;
use crate::send::{describe, ended};
use crate::session::{Control, Done, End, Mode, ppid};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use anabranch_net::{Alarm, Message, from_std, now};
use std::time::Duration;
use tokio::time::Instant;

/// Time the sender has to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// After the sender's last word, how long nothing may come before what is missing counts as lost.
const QUIET: Duration = Duration::from_secs(3);

/// Messages that are read in one go.
const TOGETHER: usize = 64;

/// What arrives so long before something is to be played waits unread until then.
const SOON: Duration = Duration::from_millis(3);

/// What the user of the receiver wants.
pub(super) struct Wish {
    pub latency: Option<Duration>,
    pub interval: Duration,
    pub peer_timeout: Duration,
}

/// How receiving ended.
enum Finish {
    /// The sender said that that was all, and all that will come is here.
    Complete(End),
    /// The sender is gone or did not end in time.
    Gone(Option<Failure>),
}

struct Session<'a> {
    link: Link,
    stop: Stop,
    progress: Progress,
    output: &'a mut Output,
    body: Body,
    end: Option<End>,
    /// The sender's user ended it, not the end of its input.
    cut: bool,
    last_news: Instant,
}

/// Receives from one sender. The totals are written in every case.
pub(super) async fn run(
    guest: Guest,
    wish: &Wish,
    interrupt: &Interrupt,
    output: &mut Output,
    reporter: &SharedReporter,
) -> Outcome {
    let link = guest.link.clone();
    if guest.hello.mode != Mode::Media && output.takes_media_only() {
        let why = format!("its output {} takes a transport stream, not {}s", output.name(), guest.hello.mode.name());
        refuse(&link, &why).await;
        return Err(Failure::network(format!("{} was refused: {why}", link.peer())));
    }
    let latency = guest.hello.latency.max(wish.latency.unwrap_or_default());
    output.begin()?;
    link.control(&Control::Welcome(latency)).await?;
    let mode = guest.hello.mode;
    let latency_ms = latency.as_millis() as u64;
    crate::monitor::lock(reporter).begin("recv", mode.name(), link.peer().into(), latency_ms);
    tracing::info!("{}: {} with profile {}", link.peer(), mode.name(), guest.hello.profile);
    let stop = Stop::new(interrupt, None);
    let progress = Progress::default();
    let watchdog = Watchdog::start(&link, wish.peer_timeout, &stop);
    let monitor = Monitor::start(&link, reporter, &progress, wish.interval);
    let mut session = Session {
        link: link.clone(),
        stop: stop.clone(),
        progress,
        output,
        body: Body::new(mode, latency),
        end: None,
        cut: false,
        last_news: Instant::now(),
    };
    let finish = session.receive().await;
    // What is left has limits of its own.
    drop(watchdog);
    let asked = stop.get().filter(|c| !matches!(c, Cause::Lost(_)));
    let result = session.conclude(finish, asked.is_some()).await;
    let how = match (&asked, &result) {
        (None, Ok(())) if session.cut => "interrupted by the sender".into(),
        _ => describe(asked.as_ref(), result.as_ref().err()),
    };
    monitor.finish("recv", how, None).await;
    ended(asked, result)
}

impl Session<'_> {
    async fn receive(&mut self) -> Result<Finish, Failure> {
        // Set when our user wants to end: the sender is asked to, and has until then.
        let mut until: Option<Instant> = None;
        let mut arrived = Vec::with_capacity(TOGETHER);
        let mut alarm = Alarm::new().map_err(Failure::network)?;
        loop {
            if let Some(end) = self.end
                && self.body.is_complete(&end, self.last_news.elapsed() > QUIET)
            {
                return Ok(Finish::Complete(end));
            }
            let std = |t: Instant| from_std(t.into_std());
            let wake = [self.body.next_timeout(), until.map(std), self.quiet_at().map(std)];
            let wake = wake.into_iter().flatten().min();
            alarm.set(wake, now());
            // What arrives meanwhile waits for it: waking for each packet costs more than the packet.
            let rings_soon = wake.is_some_and(|at| at <= now() + SOON.into());
            tokio::select! {
                biased;
                failure = self.stop.lost() => return Ok(Finish::Gone(Some(failure))),
                _ = self.stop.wait(), if until.is_none() => {
                    until = Some(Instant::now() + PATIENCE + self.body.latency());
                    let why = "interrupted".into();
                    self.link.control(&Control::Stop { failed: false, why }).await?;
                }
                () = alarm.rung() => {
                    self.link.recv_now(&mut arrived, TOGETHER);
                    for message in arrived.drain(..) {
                        self.take(message).await?;
                    }
                    self.body.on_timeout(self.output).await?;
                    self.count();
                    if until.is_some_and(|t| t <= Instant::now()) {
                        return Ok(Finish::Gone(None));
                    }
                }
                read = self.link.recv_many(&mut arrived, TOGETHER), if !rings_soon => match read {
                    Ok(0) => return Ok(self.closed(None)),
                    Ok(_) => {
                        for message in arrived.drain(..) {
                            self.take(message).await?;
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

    async fn take(&mut self, message: Message) -> Result<(), Failure> {
        self.last_news = Instant::now();
        if message.ppid != ppid::CONTROL {
            return self.body.take(message, self.output).await;
        }
        match Control::decode(&message.payload.into_bytes()) {
            Ok(Some(Control::End(end))) => {
                self.end = Some(end);
                self.cut = end.interrupted;
                self.body.on_end(&end);
            }
            Ok(other) => tracing::debug!(?other, "unexpected control message"),
            Err(e) => return Err(Failure::network(format!("{}: {e}", self.link.peer()))),
        }
        Ok(())
    }

    fn count(&self) {
        self.body.count(&self.progress);
    }

    /// Writes what is left and says goodbye.
    async fn conclude(&mut self, finish: Result<Finish, Failure>, asked: bool) -> Outcome {
        let written = match &finish {
            Ok(_) => match self.body.drain(self.output, self.end).await {
                Ok(()) => self.output.flush().await,
                Err(failure) => Err(failure),
            },
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
                if let Err(failure) = self.link.control(&Control::Done(self.done())).await {
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
        };
        // The sender closes; it has waited for our last word.
        if !self.link.closed(PATIENCE).await {
            self.link.close(PATIENCE).await;
        }
        result
    }

    async fn say_failed(&self, failure: &Failure) {
        let why = failure.to_string();
        if self.link.control(&Control::Stop { failed: true, why }).await.is_ok() && self.link.closed(PATIENCE).await {
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
        Failure::network(format!("{what}; the {} bytes received are in {}", self.output.bytes(), self.output.name()))
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
