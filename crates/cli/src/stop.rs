//! Why a running session is to end: one place that all its tasks watch.

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use std::time::Duration;
use tokio::sync::watch;

/// A reason to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A signal.
    Interrupted,
    /// The time set by the user is over.
    Time,
    /// The peer's user ended it.
    Peer(String),
    /// The peer cannot go on, or is gone.
    Lost(Failure),
}

/// Shared by the tasks of a session; cheap to clone.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Option<Cause>>);

impl Stop {
    /// Goes on until something happens, at the latest when the user interrupts or `duration` is over.
    pub fn new(interrupt: &Interrupt, duration: Option<Duration>) -> Self {
        let stop = Stop(watch::Sender::new(None));
        let (interrupt, held) = (interrupt.clone(), stop.clone());
        tokio::spawn(async move {
            let timer = async {
                match duration {
                    Some(d) => tokio::time::sleep(d).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = interrupt.wait() => held.set(Cause::Interrupted),
                () = timer => {
                    held.set(Cause::Time);
                    interrupt.wait().await;
                    held.set(Cause::Interrupted);
                }
                () = held.0.closed() => {}
            }
        });
        stop
    }

    /// Asks to end. The first reason stays, but a lost peer replaces any other.
    pub fn set(&self, cause: Cause) {
        self.0.send_if_modified(|now| {
            let replaces = match now {
                None => true,
                Some(Cause::Lost(_)) => false,
                Some(_) => matches!(cause, Cause::Lost(_)),
            };
            if replaces {
                *now = Some(cause);
            }
            replaces
        });
    }

    /// The reason, if there is one.
    pub fn get(&self) -> Option<Cause> {
        self.0.borrow().clone()
    }

    /// Returns once there is a reason.
    pub async fn wait(&self) -> Cause {
        self.matching(|_| true).await
    }

    /// Returns once the peer is lost.
    pub async fn lost(&self) -> Failure {
        match self.matching(|c| matches!(c, Cause::Lost(_))).await {
            Cause::Lost(failure) => failure,
            _ => Failure::Interrupted,
        }
    }

    async fn matching(&self, wanted: impl Fn(&Cause) -> bool) -> Cause {
        let mut rx = self.0.subscribe();
        // The sender lives as long as `self`.
        let found = rx.wait_for(|c| c.as_ref().is_some_and(&wanted)).await.map(|c| c.clone());
        match found {
            Ok(Some(cause)) => cause,
            _ => std::future::pending().await,
        }
    }
}
