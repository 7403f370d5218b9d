//! A connection that comes back by itself: whenever it is lost, the peer is looked for until it is there again.

use crate::config::ConnectOptions;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::entropy::SystemEntropy;
use crate::error::{Error, ErrorKind, SendError};
use anabranch_base::Entropy;
use anabranch_engine::{CloseReason, Message, SendOptions};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

/// Within a try the INIT is repeated so often: a peer that comes back is found within a second.
const INIT_EVERY: Duration = Duration::from_secs(1);

/// A connection that lived for so long was a good one: after it the pauses begin anew.
const GOOD: Duration = Duration::from_secs(2);

/// So many connections that have ended are kept for what was not read from them; then the oldest goes.
const UNREAD: usize = 8;

/// Pauses between tries: the first one is doubled until the longest is reached. Up to a quarter of each is left out at
/// random, so that many clients of one server do not come back at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// After the loss of a connection that lived for two seconds or more.
    pub first: Duration,
    /// However often it failed.
    pub longest: Duration,
}

impl Default for Backoff {
    /// From 0.1 s to 1 s.
    fn default() -> Self {
        Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) }
    }
}

impl Backoff {
    /// The pause after `failures` failures in a row; `random` is any number.
    fn pause(&self, failures: u32, random: u32) -> Duration {
        let whole = self.first.saturating_mul(1 << failures.min(16)).min(self.longest);
        whole - whole / 4 * (random % 1_000) / 1_000
    }
}

/// Why there is no connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// There was one, and it ended so.
    Lost(CloseReason),
    /// The last try failed.
    Failed(Arc<Error>),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Lost(reason) => reason.fmt(f),
            Trouble::Failed(error) => error.fmt(f),
        }
    }
}

/// What a [`Reconnecting`] is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReconnectState {
    /// It looks for the peer; why, if something went wrong before.
    Connecting(Option<Trouble>),
    /// There is a connection; its number, counted from 1.
    Connected(u64),
    /// It was closed, or what was asked for can never work.
    Over(Option<Trouble>),
}

type Options = Pin<Box<dyn Future<Output = Result<ConnectOptions, Error>> + Send>>;

#[derive(Clone)]
struct Now {
    state: ReconnectState,
    /// The last one, which may have ended.
    connection: Option<Connection>,
    /// How many there were.
    count: u64,
}

/// A connection that comes back by itself. Clones are handles of the same one; when the last goes no further try is
/// made.
///
/// Each connection is a new association: what was under way when one was lost is lost with it, and stream sequence
/// numbers begin anew. A program that must know where a new one begins asks for them one by one
/// ([`connection_after`](Self::connection_after)); one that need not uses [`send`](Self::send) and
/// [`recv`](Self::recv).
///
/// A peer that was killed and started again is noticed at once, for its host answers that it knows nothing of us; one
/// that is silent after [`peer_timeout`](anabranch_engine::config::Failure::peer_timeout). Until then the association
/// stays, and goes on as soon as any path returns.
#[derive(Clone)]
pub struct Reconnecting {
    inner: Arc<Inner>,
}

struct Inner {
    now: watch::Sender<Now>,
    task: AbortHandle,
    reading: Mutex<Reading>,
    unread: Arc<Unread>,
}

/// Connections that ended with something unread, and their numbers, from the oldest.
#[derive(Default)]
struct Unread(Lock<VecDeque<(u64, Connection)>>);

impl Unread {
    fn keep(&self, number: u64, connection: Connection) {
        if connection.has_unread() {
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest = if list.len() < UNREAD { None } else { list.pop_front() };
            list.push_back((number, connection));
            drop(list);
            // The last handle of a connection locks the endpoint.
            drop(oldest);
        }
    }

    /// The oldest after connection `number`.
    fn take_after(&self, number: u64) -> Option<(u64, Connection)> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = list.iter().position(|(n, _)| *n > number)?;
        let read: Vec<_> = list.drain(..at).collect();
        let next = list.pop_front();
        drop(list);
        drop(read);
        next
    }
}

/// Where [`Reconnecting::recv`] is.
#[derive(Default)]
struct Reading {
    from: Option<Connection>,
    number: u64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reconnecting {
    /// Connects with the same options again and again. Must be called within a tokio runtime.
    pub fn new(endpoint: Endpoint, options: ConnectOptions) -> Self {
        Self::by(endpoint, Backoff::default(), move || {
            let options = options.clone();
            async move { Ok(options) }
        })
    }

    /// Asks for the options anew before each try: for names that may come to mean another address.
    ///
    /// A mistake ([`ErrorKind::Usage`]) that the first try shows ends it; whatever happens later does not. From the
    /// second try on interfaces may be missing. [`ConnectOptions::timeout`] bounds one try.
    pub fn by<F>(endpoint: Endpoint, backoff: Backoff, mut options: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<ConnectOptions, Error>> + Send + 'static,
    {
        let state = ReconnectState::Connecting(None);
        let now = watch::Sender::new(Now { state, connection: None, count: 0 });
        let unread = Arc::<Unread>::default();
        let work = keep(endpoint, backoff, Box::new(move || Box::pin(options())), now.clone(), unread.clone());
        let task = tokio::spawn(work).abort_handle();
        Reconnecting { inner: Arc::new(Inner { now, task, reading: Mutex::default(), unread }) }
    }

    /// The connection there is now.
    pub fn connection(&self) -> Option<Connection> {
        let last = self.inner.now.borrow().connection.clone();
        last.filter(|connection| connection.close_reason().is_none())
    }

    /// Waits for a connection with a higher number than this; the first has 1.
    ///
    /// # Errors
    /// It is over; why, if that is not because it was closed.
    pub async fn connection_after(&self, number: u64) -> Result<(u64, Connection), Option<Trouble>> {
        let mut rx = self.inner.now.subscribe();
        let ready = |now: &Now| now.count > number || matches!(now.state, ReconnectState::Over(_));
        // The sender lives as long as `self`.
        let Ok(now) = rx.wait_for(ready).await else { return Err(None) };
        match (&now.state, &now.connection) {
            (ReconnectState::Over(why), _) => Err(why.clone()),
            (_, Some(connection)) => Ok((now.count, connection.clone())),
            (_, None) => Err(None),
        }
    }

    /// What it is doing.
    pub fn state(&self) -> ReconnectState {
        self.inner.now.borrow().state.clone()
    }

    /// Its states from now on.
    pub fn states(&self) -> ReconnectStates {
        ReconnectStates { rx: self.inner.now.subscribe(), begun: false }
    }

    /// Gives a message to the connection, waiting for one, but no longer than the message's deadline.
    ///
    /// A message that was taken is lost when its connection is: what must not get lost needs an answer from the peer.
    ///
    /// # Errors
    /// See [`SendError`]; [`SendError::Closed`] only when it is over.
    pub async fn send(&self, options: SendOptions, payload: Bytes) -> Result<(), SendError> {
        let mut seen = 0;
        loop {
            let next = self.connection_after(seen);
            let next = match options.deadline {
                Some(at) => {
                    let at = tokio::time::Instant::from_std(crate::clock::to_std(at));
                    tokio::time::timeout_at(at, next).await.map_err(|_| SendError::Expired)?
                }
                None => next.await,
            };
            let (number, connection) = next.map_err(|_| SendError::Closed(None))?;
            match connection.send(options, payload.clone()).await {
                Err(SendError::Closed(_)) => seen = number,
                done => return done,
            }
        }
    }

    /// The next message, whichever connection it comes by, in their order. None when it is over.
    ///
    /// May be dropped at any time without losing a message. Several callers at a time take turns. What had arrived by
    /// connections that came and went while this was not called is kept, of the last eight of them.
    pub async fn recv(&self) -> Option<Message> {
        let mut reading = self.inner.reading.lock().await;
        loop {
            let connection = match &reading.from {
                Some(connection) => connection.clone(),
                None => {
                    let (number, connection) = self.next_to_read(reading.number).await?;
                    *reading = Reading { from: Some(connection.clone()), number };
                    connection
                }
            };
            if let Ok(Some(message)) = connection.recv().await {
                return Some(message);
            }
            reading.from = None;
        }
    }

    /// What was left unread by connections after this one; else the one there is.
    async fn next_to_read(&self, number: u64) -> Option<(u64, Connection)> {
        if let Some(earlier) = self.inner.unread.take_after(number) {
            return Some(earlier);
        }
        let next = self.connection_after(number).await.ok();
        // Several may have come and gone before this task had its turn.
        match self.inner.unread.take_after(number) {
            Some(earlier) => Some(earlier),
            None => next,
        }
    }

    /// Makes no further try. The connection there is stays: it is handed back, to be shut down or used up.
    pub fn stop(&self) -> Option<Connection> {
        let last = self.connection();
        self.inner.task.abort();
        self.inner.now.send_modify(|now| now.state = ReconnectState::Over(None));
        last
    }
}

/// The states of a [`Reconnecting`], each change one event. Of changes that come faster than they are read only the
/// newest state is seen; its number tells how many connections there were.
pub struct ReconnectStates {
    rx: watch::Receiver<Now>,
    begun: bool,
}

impl ReconnectStates {
    /// The state at first, then the next one. None after [`ReconnectState::Over`].
    pub async fn next(&mut self) -> Option<ReconnectState> {
        if std::mem::replace(&mut self.begun, true) {
            if matches!(self.rx.borrow().state, ReconnectState::Over(_)) && !self.rx.has_changed().unwrap_or(false) {
                return None;
            }
            self.rx.changed().await.ok()?;
        }
        Some(self.rx.borrow_and_update().state.clone())
    }
}

/// Connects, again and again.
async fn keep(
    endpoint: Endpoint,
    backoff: Backoff,
    mut options: Box<dyn FnMut() -> Options + Send>,
    now: watch::Sender<Now>,
    unread: Arc<Unread>,
) {
    let (mut failures, mut first) = (0, true);
    loop {
        let tried = match options().await {
            Ok(options) => endpoint.connect(once_more(options, first)).await,
            Err(e) => Err(e),
        };
        match tried {
            Ok(connection) => {
                let began = Instant::now();
                now.send_modify(|now| {
                    now.count += 1;
                    now.state = ReconnectState::Connected(now.count);
                    now.connection = Some(connection.clone());
                });
                let reason = connection.closed().await;
                let number = now.borrow().count;
                unread.keep(number, connection);
                if began.elapsed() >= GOOD {
                    failures = 0;
                }
                now.send_modify(|now| now.state = ReconnectState::Connecting(Some(Trouble::Lost(reason))));
            }
            Err(e) => {
                let hopeless = first && e.kind() == ErrorKind::Usage;
                let trouble = Trouble::Failed(Arc::new(e));
                if hopeless {
                    now.send_modify(|now| now.state = ReconnectState::Over(Some(trouble)));
                    return;
                }
                now.send_if_modified(|now| note(now, trouble));
            }
        }
        first = false;
        tokio::time::sleep(backoff.pause(failures, SystemEntropy.u32())).await;
        failures = failures.saturating_add(1);
    }
}

/// The options of one try.
fn once_more(mut options: ConnectOptions, first: bool) -> ConnectOptions {
    options.allow_missing |= !first;
    options.association.timers.max_init_timeout.get_or_insert(INIT_EVERY.into());
    options
}

/// Notes why the last try failed; true when that is news.
fn note(now: &mut Now, trouble: Trouble) -> bool {
    let is_news = match &now.state {
        ReconnectState::Connecting(Some(before)) => before.to_string() != trouble.to_string(),
        _ => true,
    };
    now.state = ReconnectState::Connecting(Some(trouble));
    is_news
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_differ() {
        let backoff = Backoff::default();
        let millis = |n, random| backoff.pause(n, random).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5, u32::MAX].map(|n| millis(n, 0)), [100, 200, 400, 800, 1_000, 1_000, 1_000]);
        for n in 0..6 {
            let (least, most) = (millis(n, 999), millis(n, 0));
            assert!(least >= most * 3 / 4 && least < most, "{n}: {least} to {most}");
        }
        let flat = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(1) };
        assert_eq!(flat.pause(0, 0), Duration::from_secs(1), "the longest holds");
    }
}
