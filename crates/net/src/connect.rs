//! Beginning an association: the first path that answers carries the handshake, the others join.

use crate::clock;
use crate::config::ConnectOptions;
use crate::connection::Connection;
use crate::error::Error;
use crate::shared::{Core, Entry, Owner, Shared};
use anabranch_base::Duration as Span;
use anabranch_engine::config::Timers;
use anabranch_engine::{AssocConfig, AssocId, CloseReason, ConnectError, LocalId};
use anabranch_policy::Asks;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So long after the INIT on one path the next path gets it too (RFC 8305 §5); after that it goes round them, each pause
/// twice the one before. It is the same INIT of one association: whatever is answered first carries the handshake, and
/// the peer keeps no state for the others.
const HEAD_START: Span = Span::from_millis(250);

/// The longest pause between INITs where there are several paths: each has its turn within a few seconds.
const LONGEST_PAUSE: Span = Span::from_secs(1);

/// Over one path, with the profiles that are made for losses (RFC 9260 §16 has a second).
const LOSSY_START: Span = Span::from_millis(500);

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(250);

/// One place to send from and to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    local: LocalId,
    remote: SocketAddr,
    /// Its interface was there when the connection was asked for.
    present: bool,
}

/// How an attempt ended.
enum Attempt {
    Done(Connection),
    Refused(SocketAddr, CloseReason),
    Silent,
}

pub(crate) async fn connect(shared: &Arc<Shared>, mut options: ConnectOptions) -> Result<Connection, Error> {
    let transport = shared.lock().transport;
    for p in &mut options.paths {
        p.remote = transport.normal(p.remote);
    }
    options.check(transport)?;
    let candidates = open_all(shared, &options)?;
    let deadline = Instant::now() + options.timeout;
    loop {
        let mut refused = None;
        for (i, first) in candidates.iter().enumerate().filter(|(_, c)| c.present) {
            let others = candidates.iter().enumerate().filter(|(k, c)| *k != i && c.present).map(|(_, c)| *c);
            match attempt(shared, &options, *first, &others.collect::<Vec<_>>(), deadline).await? {
                Attempt::Done(connection) => {
                    join_others(shared, &connection, &candidates);
                    return Ok(connection);
                }
                Attempt::Refused(peer, reason) => refused = Some(Error::Refused { peer, reason }),
                Attempt::Silent => {}
            }
            if Instant::now() >= deadline {
                return Err(refused.unwrap_or_else(|| unreachable(shared, &options, &candidates)));
            }
        }
        // One address refused and none accepted.
        if let Some(e) = refused {
            return Err(e);
        }
        // Interfaces that refuse to send fail at once: do not hurry from one to the next.
        tokio::time::sleep_until(deadline.min(Instant::now() + PAUSE).into()).await;
    }
}

fn open_all(shared: &Shared, options: &ConnectOptions) -> Result<Vec<Candidate>, Error> {
    shared.act(|core| {
        core.check_running()?;
        if core.closing {
            return Err(Error::Config("the endpoint was closed".into()));
        }
        let mut candidates = Vec::with_capacity(options.paths.len());
        let mut missing = None;
        for p in &options.paths {
            let present = match core.open_local(&p.local, p.remote, false) {
                Ok(local) => {
                    candidates.push(Candidate { local, remote: p.remote, present: true });
                    continue;
                }
                Err(e) if options.allow_missing && e.is_missing() => {
                    tracing::warn!(path = %p.local, "{e}; the path joins when it comes");
                    missing = Some(e);
                    false
                }
                Err(e) => return Err(e),
            };
            let local = core.open_local(&p.local, p.remote, true)?;
            candidates.push(Candidate { local, remote: p.remote, present });
        }
        // What was said when this was tried before may not hold any more.
        for c in &candidates {
            if let Some(side) = core.locals.get_mut(c.local) {
                side.trouble = side.trouble.take().filter(|t| t.remote != Some(c.remote));
            }
        }
        match missing {
            Some(e) if candidates.iter().all(|c| !c.present) => Err(e),
            _ => Ok(candidates),
        }
    })
}

/// One handshake, over `first` and soon over the others too. It may take until `deadline`.
async fn attempt(
    shared: &Arc<Shared>,
    options: &ConnectOptions,
    first: Candidate,
    others: &[Candidate],
    deadline: Instant,
) -> Result<Attempt, Error> {
    let connection = begin(shared, options, first, others)?;
    let id = connection.id();
    let signals = connection.signals().clone();
    loop {
        let changed = signals.changed.notified();
        {
            let mut core = shared.lock();
            core.check_running()?;
            let Some(entry) = core.connections.get(&id) else { return Ok(Attempt::Silent) };
            let connected = entry.connected;
            let closed = entry.closed.clone();
            let answering = entry.last_stats.paths.iter().find(|p| p.stats.counters.packets_received > 0);
            let answering = answering.map(|p| p.stats.remote);
            let up = core.locals.get(first.local).is_some_and(|s| s.up);
            match closed {
                // A peer that agreed and ended it at once is still a peer that agreed.
                _ if connected => {
                    if let Some(mut a) = core.engine.association_mut(id) {
                        a.set_rto_initial(options.association.timers.rto_initial);
                    }
                    drop(core);
                    return Ok(Attempt::Done(connection));
                }
                Some(CloseReason::NoAnswer | CloseReason::PeerGone) => return Ok(Attempt::Silent),
                Some(reason) => {
                    let peer = answering.unwrap_or_else(|| core.shown(first.remote, options.peer_port));
                    return Ok(Attempt::Refused(peer, reason));
                }
                // The next one begins at once. Half way through the handshake that could leave the peer with an
                // association that we have forgotten.
                None if !up && !has_answered(&core, id) => return Ok(Attempt::Silent),
                None => {}
            }
        }
        if tokio::time::timeout_at(deadline.into(), changed).await.is_err() {
            return Ok(Attempt::Silent);
        }
    }
}

fn begin(
    shared: &Arc<Shared>,
    options: &ConnectOptions,
    first: Candidate,
    others: &[Candidate],
) -> Result<Connection, Error> {
    let mut config = options.association.clone();
    let asks = config.profile.asks();
    hurry(&mut config, others.len());
    let begun = shared.act(|core| {
        if options.list_addresses {
            let all = std::iter::once(&first).chain(others);
            config.addresses.listed = core.locals.listed(all.map(|c| c.local));
        }
        let now = clock::now();
        let id =
            core.engine.connect(now, config, first.local, first.remote, options.peer_port).map_err(|e| match e {
                ConnectError::Policy(e) => Error::Policy(e),
                ConnectError::Exists(_) => Error::AlreadyConnected(core.shown(first.remote, options.peer_port)),
            })?;
        for c in others {
            // There an INIT would restart the association that there is; the path may join this one later.
            if core.engine.is_taken(c.local, c.remote, options.peer_port) {
                continue;
            }
            let up = core.locals.get(c.local).is_some_and(|s| s.up);
            if let Some(mut a) = core.engine.association_mut(id)
                && a.add_path(now, c.local, c.remote).is_some()
                && !up
            {
                a.interface_down(now, c.local);
            }
        }
        if asks.any(Asks::LINK_REPORTS) {
            core.link_layer.want(shared);
        }
        let entry = Entry::new(Owner::Handle);
        let signals = entry.signals.clone();
        core.connections.insert(id, entry);
        Ok::<_, Error>((id, signals))
    });
    let (id, signals) = begun?;
    Ok(Connection::new(shared.clone(), id, signals))
}

/// Timeouts of the handshake, which only `connect` knows to be one of a race or over networks that lose. What the user
/// has set shorter stays, and so does what was set at all where there is one path.
fn hurry(config: &mut AssocConfig, others: usize) {
    let lossy = config.profile.is_ours();
    let timers = &mut config.timers;
    if others > 0 {
        timers.rto_initial = timers.rto_initial.min(HEAD_START);
        timers.max_init_timeout.get_or_insert(LONGEST_PAUSE);
    } else if lossy && timers.rto_initial == Timers::default().rto_initial {
        timers.rto_initial = LOSSY_START;
    }
}

fn has_answered(core: &Core, id: AssocId) -> bool {
    core.engine.association(id).is_some_and(|a| a.paths().any(|(_, p)| p.counters.packets_received > 0))
}

/// Adds the paths that had no part in the handshake.
fn join_others(shared: &Shared, connection: &Connection, candidates: &[Candidate]) {
    shared.act(|core| {
        let now = clock::now();
        for c in candidates {
            let up = core.locals.get(c.local).is_some_and(|s| s.up);
            let Some(mut a) = core.engine.association_mut(connection.id()) else { return };
            if a.paths().any(|(_, p)| p.local == c.local.0 && p.remote == c.remote) {
                continue;
            }
            if a.add_path(now, c.local, c.remote).is_some() && !up {
                a.interface_down(now, c.local);
            }
        }
    });
}

fn unreachable(shared: &Shared, options: &ConnectOptions, candidates: &[Candidate]) -> Error {
    let mut peers: Vec<String> = Vec::new();
    let mut troubles: Vec<String> = Vec::new();
    let core = shared.lock();
    for c in candidates {
        let peer = core.shown(c.remote, options.peer_port).to_string();
        if !peers.contains(&peer) {
            peers.push(peer);
        }
        if let Some(side) = core.locals.get(c.local)
            && let Some(trouble) = side.trouble.as_ref().filter(|t| t.concerns(c.remote))
        {
            troubles.push(format!("{}: {}", side.name, trouble.what));
        }
    }
    let detail = if troubles.is_empty() { String::new() } else { format!(" ({})", troubles.join(", ")) };
    Error::Unreachable { peer: peers.join(", "), timeout: options.timeout, detail }
}
