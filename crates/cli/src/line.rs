//! The way to a peer that is kept open: a connection comes back by itself, and the user reads one line when it is lost
//! and one when it is back.

use crate::exit::{Failure, notice, warning};
use crate::monitor::lock;
use crate::netargs::{PathArgs, PolicyArgs};
use crate::transport::{self, Link, Sockets};
use crate::uri::PeerUri;
use anabranch_net::{Backoff, ConnectOptions, Error, ReconnectState, Reconnecting, Trouble};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A peer that has not answered for so long is worth a word.
const WORRY: Duration = Duration::from_secs(3);

/// See the module's description.
pub struct Line {
    reconnecting: Reconnecting,
    sockets: Sockets,
    place: Arc<Place>,
    /// How many connections were taken.
    taken: u64,
}

/// Where to, by which paths, with what.
pub struct Place {
    peer: PeerUri,
    policies: PolicyArgs,
    /// SIGHUP changes them.
    paths: Mutex<PathArgs>,
}

impl Line {
    /// Begins to look for the peer.
    ///
    /// # Errors
    /// What the user named makes no sense.
    pub fn open(peer: &PeerUri, paths: &PathArgs, policies: &PolicyArgs) -> Result<Self, Failure> {
        policies.association(peer)?;
        let sockets = Sockets::client(peer, policies)?;
        let place =
            Arc::new(Place { peer: peer.clone(), policies: policies.clone(), paths: Mutex::new(paths.clone()) });
        let (endpoint, options) = (sockets.endpoint().clone(), place.clone());
        let reconnecting = Reconnecting::by(endpoint, Backoff::default(), move || {
            let place = options.clone();
            async move {
                // Looking up a name blocks.
                let options = tokio::task::spawn_blocking(move || place.options()).await;
                options.unwrap_or_else(|e| Err(Error::Unresolved(e.to_string())))
            }
        });
        Ok(Line { reconnecting, sockets, place, taken: 0 })
    }

    /// The next connection. With `once` the first try that fails is the last, and so is the connection.
    pub async fn next(&mut self, once: bool, outage: &mut Outage) -> Result<Link, Failure> {
        let (mut states, mut said) = (self.reconnecting.states(), false);
        let found = loop {
            tokio::select! {
                biased;
                found = self.reconnecting.connection_after(self.taken) => break found,
                state = states.next() => match state {
                    Some(ReconnectState::Connecting(Some(Trouble::Failed(e)))) if once => {
                        self.reconnecting.stop();
                        return Err(transport::failed(&e));
                    }
                    Some(ReconnectState::Connecting(Some(Trouble::Failed(e)))) => {
                        outage.because(&transport::failed(&e));
                    }
                    _ => {}
                },
                () = tokio::time::sleep(WORRY), if !once && !said => {
                    said = true;
                    outage.unless_said(&format!("{} does not answer", self.peer()));
                }
            }
        };
        match found {
            Ok((number, connection)) => {
                self.taken = number;
                if once {
                    self.reconnecting.stop();
                }
                Ok(Link::new(connection, self.sockets.clone(), self.peer()))
            }
            Err(Some(Trouble::Failed(e))) => Err(transport::failed(&e)),
            Err(_) => Err(Failure::network(format!("{}: there is no connection", self.peer()))),
        }
    }

    /// Whom it leads to.
    pub fn peer(&self) -> String {
        self.place.peer.place()
    }

    /// Looks for the peer no more. A connection that is there stays.
    pub fn stop(&self) {
        self.reconnecting.stop();
    }

    /// The connection there is now, if any, as [`Line::handle`] shows it to others.
    pub fn handle(&self) -> Handle {
        Handle { reconnecting: self.reconnecting.clone(), sockets: self.sockets.clone(), place: self.place.clone() }
    }
}

/// Another view of a [`Line`], for whoever changes its paths.
#[derive(Clone)]
pub struct Handle {
    reconnecting: Reconnecting,
    sockets: Sockets,
    place: Arc<Place>,
}

impl Handle {
    /// The connection there is now.
    pub fn link(&self) -> Option<Link> {
        let connection = self.reconnecting.connection()?;
        Some(Link::new(connection, self.sockets.clone(), self.place.peer.place()))
    }

    /// Whom it leads to.
    pub fn peer(&self) -> &PeerUri {
        &self.place.peer
    }

    /// The paths as they were named last.
    pub fn paths(&self) -> PathArgs {
        lock(&self.place.paths).clone()
    }

    /// Other paths from now on, for connections to come.
    pub fn set_paths(&self, paths: PathArgs) {
        *lock(&self.place.paths) = paths;
    }
}

impl Place {
    /// For one try; the host's name is looked up anew.
    fn options(&self) -> Result<ConnectOptions, Error> {
        let paths = lock(&self.paths).clone();
        transport::options(&self.peer, &paths, &self.policies).map_err(|failure| match failure {
            Failure::Usage(what) => Error::Config(what),
            other => Error::Unresolved(other.to_string()),
        })
    }
}

/// The time without a session: what the user has read about it.
pub struct Outage {
    since: Option<Instant>,
    said: Vec<String>,
    /// Nothing is printed: the first loss is the end.
    silent: bool,
}

impl Outage {
    /// Begins now; says nothing when `silent`.
    pub fn new(silent: bool) -> Self {
        Outage { since: Some(Instant::now()), said: Vec::new(), silent }
    }

    /// Why there is no session; said unless it was during this outage.
    pub fn because(&mut self, why: &Failure) {
        let why = why.to_string();
        self.since.get_or_insert_with(Instant::now);
        if !self.silent && !self.said.contains(&why) && self.said.len() < 16 {
            warning(&format!("{why}; trying again until it works"));
            self.said.push(why);
        }
    }

    /// [`because`](Self::because), unless something was said already.
    pub fn unless_said(&mut self, why: &str) {
        if self.said.is_empty() {
            self.because(&Failure::network(why));
        }
    }

    /// A session begins: says so when there was anything to say before.
    pub fn over(&mut self, peer: &str) {
        if let Some(since) = self.since.take()
            && !self.said.is_empty()
        {
            notice(&format!("connected with {peer} after {:.1} s", since.elapsed().as_secs_f64()));
        }
        self.said.clear();
    }
}
