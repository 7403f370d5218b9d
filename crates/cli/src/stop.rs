//! Why a running session is to end: one place that all its tasks watch.

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

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
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cause: watch::Sender<Option<Cause>>,
    /// Listens to the user.
    listener: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Stop {
    /// Goes on until something happens, at the latest when the user interrupts or `duration` is over.
    pub fn new(interrupt: &Interrupt, duration: Option<Duration>) -> Self {
        let cause = watch::Sender::new(None);
        let (interrupt, sender) = (interrupt.clone(), cause.clone());
        let listener = tokio::spawn(async move {
            let timer = async {
                match duration {
                    Some(d) => tokio::time::sleep(d).await,
                    None => std::future::pending().await,
                }
            };
            let cause = tokio::select! {
                () = interrupt.wait() => Cause::Interrupted,
                () = timer => Cause::Time,
            };
            set(&sender, cause);
        });
        Stop(Arc::new(Inner { cause, listener: listener.abort_handle() }))
    }

    /// Asks to end. The first reason stays, but a lost peer replaces any other.
    pub fn set(&self, cause: Cause) {
        set(&self.0.cause, cause);
    }

    /// The reason, if there is one.
    pub fn get(&self) -> Option<Cause> {
        self.0.cause.borrow().clone()
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
        let mut rx = self.0.cause.subscribe();
        // The sender lives as long as `self`.
        let found = rx.wait_for(|c| c.as_ref().is_some_and(&wanted)).await.map(|c| c.clone());
        match found {
            Ok(Some(cause)) => cause,
            _ => std::future::pending().await,
        }
    }
}

fn set(sender: &watch::Sender<Option<Cause>>, cause: Cause) {
    sender.send_if_modified(|now| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays_unless_the_peer_is_lost() {
        let stop = Stop::new(&Interrupt::never(), None);
        assert_eq!(stop.get(), None);
        stop.set(Cause::Peer("tired".into()));
        stop.set(Cause::Time);
        assert_eq!(stop.wait().await, Cause::Peer("tired".into()));
        let gone = Failure::network("gone");
        stop.set(Cause::Lost(gone.clone()));
        stop.set(Cause::Interrupted);
        assert_eq!((stop.get(), stop.lost().await), (Some(Cause::Lost(gone.clone())), gone));
    }

    #[tokio::test]
    async fn time_is_over() {
        let stop = Stop::new(&Interrupt::never(), Some(Duration::from_millis(5)));
        assert_eq!(stop.wait().await, Cause::Time);
    }
}
