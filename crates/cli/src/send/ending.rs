//! How sending ends: the receiver learns that there is no more, and says what it wrote.

use super::PATIENCE;
use super::limits::ClassLimits;
use super::sending::Pump;
use crate::exit::{Failure, Outcome, warning};
use crate::session::{Control, Done, End, Mode};
use crate::stats::StreamRow;
use crate::stop::Cause;
use std::time::Duration;
use tokio::sync::mpsc;

/// How a session ended.
pub(super) struct Ending {
    /// Who wanted it to; none when the input ended, or the connection was lost while all was well.
    pub cause: Option<Cause>,
    /// Did what was to be sent arrive?
    pub result: Outcome,
    /// What the receiver wrote, if it said so.
    pub done: Option<Done>,
}

/// Tells the receiver that that was all, and waits until it has written everything.
pub(super) async fn conclude(
    pumped: Result<End, Failure>,
    pump: &Pump,
    mode: Mode,
    inbox: &mut mpsc::Receiver<Control>,
) -> Ending {
    let (end, failed) = match pumped {
        Ok(end) => (end, None),
        // The input failed: what was sent before is brought to a clean end.
        Err(failure @ Failure::Usage(_)) => (pump.sent(), Some(failure)),
        Err(failure) => return Ending { cause: pump.stop.get(), result: Err(failure), done: None },
    };
    let (answer, cause) = match pump.link.control(&Control::End(end)).await {
        Ok(()) => answer(pump, mode, inbox).await,
        Err(failure) => (Err(failure), pump.stop.get()),
    };
    let done = answer.as_ref().ok().copied().flatten();
    let result = match (failed, answer) {
        (Some(failure), _) => Err(failure),
        (None, Err(failure)) => Err(failure),
        (None, Ok(_)) if mode == Mode::File => whole(end, done, cause.as_ref(), pump.link.peer()),
        (None, Ok(_)) => Ok(()),
    };
    Ending { cause, result, done }
}

/// Waits for the receiver's last word. `None` when an end was asked for and it did not come in time.
async fn answer(
    pump: &Pump,
    mode: Mode,
    inbox: &mut mpsc::Receiver<Control>,
) -> (Result<Option<Done>, Failure>, Option<Cause>) {
    let asked = pump.stop.get();
    let limit = async {
        match mode {
            _ if asked.is_some() => tokio::time::sleep(PATIENCE + pump.latency).await,
            // An interrupt while waiting for the rest to arrive.
            Mode::File | Mode::Datagram | Mode::Tunnel => {
                pump.stop.wait().await;
                tokio::time::sleep(PATIENCE).await;
            }
            Mode::Media => tokio::time::sleep(pump.latency + PATIENCE * 3).await,
        }
    };
    let done = async {
        loop {
            match inbox.recv().await {
                Some(Control::Done(done)) => return Ok(Some(done)),
                Some(_) => {}
                None => return Err(pump.stop.lost().await),
            }
        }
    };
    let answer = tokio::select! {
        biased;
        done = done => done,
        failure = pump.stop.lost() => Err(failure),
        () = limit => Ok(None),
    };
    match answer {
        // Closing ends the connection, which says nothing any more about how the session ended.
        Ok(Some(done)) => (Ok(Some(done)), pump.stop.get().filter(|c| !matches!(c, Cause::Lost(_)))),
        Ok(None) => match pump.stop.get() {
            None => (Err(unsaid(pump.link.peer())), None),
            cause => (Ok(None), cause),
        },
        // A receiver whose user ends it goes when its patience is over, perhaps before ours is.
        Err(_) if matches!(asked, Some(Cause::Peer(_))) => (Ok(None), asked),
        Err(failure) => (Err(failure), pump.stop.get()),
    }
}

/// A file is only handed over when all of it is written, whoever wanted to end before.
fn whole(end: End, done: Option<Done>, cause: Option<&Cause>, peer: &str) -> Outcome {
    if !end.interrupted && done.is_some_and(|d| d.bytes >= end.bytes) {
        return Ok(());
    }
    let written = done.map_or(String::new(), |d| format!("; it has written {} bytes", d.bytes));
    let what = match cause {
        // The exit code says so.
        Some(Cause::Interrupted) => return Ok(()),
        Some(Cause::Peer(why)) => format!("{peer} ended the session before the whole file had come ({why}){written}"),
        Some(Cause::Time) => format!("the time is over before the whole file has been sent to {peer}{written}"),
        Some(Cause::Lost(_)) | None if done.is_some() => format!("{peer} has not got the whole file{written}"),
        Some(Cause::Lost(_)) | None => return Err(unsaid(peer)),
    };
    Err(Failure::network(what))
}

fn unsaid(peer: &str) -> Failure {
    Failure::network(format!("{peer} did not say that everything was written"))
}

/// A stream of which most never left is no failure of the network, but hardly what the user wanted.
pub(super) fn warn_of_loss(row: &StreamRow, latency: Duration, limits: &ClassLimits) {
    // Without a latency nothing comes too late: what was taken back at an interrupt is no loss.
    if !latency.is_zero() && row.abandoned * 2 > row.messages {
        let why = why_given_up(row, latency, limits);
        warning(&format!("{} of {} messages were given up: {why}", row.abandoned, row.messages));
    }
}

/// What kept most of them from being sent.
fn why_given_up(row: &StreamRow, latency: Duration, limits: &ClassLimits) -> String {
    let ms = latency.as_millis();
    if row.in_the_dark * 2 > row.abandoned {
        return format!("no path worked within the latency of {ms} ms of when they came");
    }
    if row.limited >= row.abandoned {
        let flags = limits.flags().collect::<Vec<_>>().join(" and ");
        return format!("they could not be sent within the limits of {flags}");
    }
    format!(
        "they could not be sent within the latency of {ms} ms; the stream came faster than the paths carry, or they take longer than that"
    )
}

/// How the session ended, in a few words.
pub fn describe(cause: Option<&Cause>, failure: Option<&Failure>) -> String {
    match (cause, failure) {
        (_, Some(failure)) | (Some(Cause::Lost(failure)), None) => failure.to_string(),
        (Some(Cause::Interrupted), None) => "interrupted".into(),
        (Some(Cause::Time), None) => "time is over".into(),
        (Some(Cause::Peer(why)), None) => format!("ended by the peer ({why})"),
        (None, None) => "done".into(),
    }
}

/// What to return.
pub fn ended(cause: Option<Cause>, result: Outcome) -> Outcome {
    result?;
    match cause {
        Some(Cause::Interrupted) => Err(Failure::Interrupted),
        Some(Cause::Lost(failure)) => Err(failure),
        Some(Cause::Time | Cause::Peer(_)) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_that_of_most_messages() {
        let limits = ClassLimits { class_lifetime: Some([Some(Duration::ZERO); 3]), ..ClassLimits::default() };
        let dark = "no path worked";
        let classes = "within the limits of --class-lifetime";
        let slow = "within the latency of 300 ms; the stream came faster";
        for (abandoned, in_the_dark, limited, want) in [
            (100, 0, 0, slow),
            (100, 50, 0, slow),
            (100, 51, 0, dark),
            (100, 100, 100, dark),
            (100, 0, 99, slow),
            (100, 0, 100, classes),
            (100, 10, 140, classes),
        ] {
            let row = StreamRow { messages: 150, abandoned, in_the_dark, limited, ..StreamRow::default() };
            let why = why_given_up(&row, Duration::from_millis(300), &limits);
            assert!(why.contains(want), "{abandoned} {in_the_dark} {limited}: {why}");
        }
    }
}
