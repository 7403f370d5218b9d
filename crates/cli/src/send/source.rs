//! What is sent, and what becomes of it while there is no session.

use super::DEFAULT_LATENCY;
use crate::exit::{Failure, Outcome};
use crate::input::Input;
use crate::monitor::Progress;
use crate::session::Mode;
use std::time::{Duration, Instant};

/// A pipe waits so long for the first session; then it is read, and what is old dropped, as from a network.
const PIPE_WAITS: Duration = Duration::from_secs(3);

/// Datagrams that are never given up are held for so long without a session.
const HELD: Duration = Duration::from_secs(1);

/// The input and what is known of it.
pub(super) struct Source {
    /// Always there; taken for a moment where it changes its kind.
    pub input: Option<Input>,
    pub mode: Option<Mode>,
    /// What the user named.
    pub latency: Option<Duration>,
    /// The latency that the receiver agreed to, once there was a session.
    pub agreed: Option<Duration>,
    /// Pace of a recording without a clock, bits per second; none paces nothing.
    pub pace: Option<u64>,
    pub opened: Instant,
    /// There was a session.
    pub begun: bool,
    pub progress: Progress,
}

/// What became of an input that was not read for a while.
pub(super) enum Attended {
    /// It cannot be sent piece by piece.
    IsFile,
    Ended(Outcome),
}

impl Source {
    pub fn input(&mut self) -> Result<&mut Input, Failure> {
        self.input.as_mut().ok_or_else(|| Failure::network("the input is gone"))
    }

    /// It is known what is sent.
    ///
    /// # Errors
    /// Media that the user leaves no time.
    pub fn is(&mut self, mode: Mode) -> Result<Mode, Failure> {
        if mode == Mode::Media && self.latency.is_some_and(|l| l.as_millis() == 0) {
            return Err(Failure::usage(
                "a latency of 0 leaves media no time to arrive; name one, such as 300ms, or leave it out",
            ));
        }
        self.mode = Some(mode);
        Ok(mode)
    }

    /// The latency to ask for.
    pub fn wish(&self, mode: Mode) -> Duration {
        match mode {
            Mode::Media => self.latency.unwrap_or(DEFAULT_LATENCY),
            Mode::Datagram => self.latency.unwrap_or_default(),
            Mode::File | Mode::Tunnel => Duration::ZERO,
        }
    }

    /// What is older is not sent when a session begins.
    pub fn age(&self, mode: Mode) -> Duration {
        let latency = self.agreed.unwrap_or_else(|| self.wish(mode));
        if latency.is_zero() { HELD } else { latency }
    }

    /// From now on a transport stream runs at its own pace.
    pub fn run_at_pace(&mut self, mode: Mode) {
        let Some(rate) = self.pace.filter(|_| mode == Mode::Media) else { return };
        self.pace = None;
        if let Some(input) = self.input.take() {
            let pace = input.pace(rate);
            self.input = Some(match pace {
                Some(pace) => input.paced(pace),
                None => input,
            });
        }
    }

    /// Sees to the input while there is no session: finds out what it is, and lets what goes on by itself go on. May be
    /// dropped at any time.
    pub async fn attend(&mut self) -> Attended {
        match self.go_on().await {
            Ok(Some(attended)) => attended,
            Ok(None) => std::future::pending().await,
            Err(failure) => Attended::Ended(Err(failure)),
        }
    }

    async fn go_on(&mut self) -> Result<Option<Attended>, Failure> {
        let mode = match self.mode {
            Some(mode) => mode,
            None => {
                let mode = self.input()?.detect().await?;
                self.is(mode)?;
                if mode == Mode::File {
                    return Ok(Some(Attended::IsFile));
                }
                mode
            }
        };
        if mode == Mode::File || self.input()?.is_file() && !self.begun {
            return Ok(None);
        }
        if !self.input()?.goes_on() {
            if !self.begun {
                tokio::time::sleep_until((self.opened + PIPE_WAITS).into()).await;
            }
            self.run_at_pace(mode);
        }
        let (age, progress, hurries) = (self.age(mode), self.progress.clone(), self.latency.is_some());
        let input = self.input()?;
        // The pieces of a pipe wait for whoever takes them, unless they are worth nothing then.
        if input.goes_on() || mode == Mode::Datagram && hurries {
            return Ok(Some(Attended::Ended(input.hold(age, &progress).await)));
        }
        Ok(None)
    }

    /// [`attend`](Self::attend) beside something else, whose result it is; an end of the input is noticed later, when
    /// it is read.
    pub async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let attend = async {
            self.attend().await;
            std::future::pending::<()>().await
        };
        tokio::select! {
            biased;
            result = other => result,
            () = attend => std::future::pending().await,
        }
    }
}
