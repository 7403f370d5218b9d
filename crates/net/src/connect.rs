//! Beginning an association: the first path that answers carries the handshake, the others join.

use crate::clock;
use crate::config::ConnectOptions;
use crate::connection::Connection;
use crate::error::Error;
use crate::shared::{Entry, Owner, Shared};
use anabranch_engine::{AssocId, CloseReason, ConnectError, LocalId};
use anabranch_policy::Asks;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A path whose peer has not answered for this long gives way to the next one; in each further round twice as long.
/// INIT is repeated after one second (RFC 9260 §16), so one loss is survived.
const PATIENCE: Duration = Duration::from_millis(1_500);

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
    Refused(CloseReason),
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
    let mut round = 0;
    loop {
        let mut refused = None;
        for (i, first) in candidates.iter().enumerate().filter(|(_, c)| c.present) {
            let only = candidates.iter().filter(|c| c.present).count() == 1;
            let patience = if only { options.timeout } else { PATIENCE * (1 << u32::min(round, 8)) };
            let until = deadline.min(Instant::now() + patience);
            match attempt(shared, &options, &candidates, *first, until, deadline).await? {
                Attempt::Done(connection) => {
                    join_others(shared, &connection, &candidates, i);
                    return Ok(connection);
                }
                Attempt::Refused(reason) => {
                    let peer = shared.lock().shown(first.remote, options.peer_port);
                    refused = Some(Error::Refused { peer, reason });
                }
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
        round += 1;
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
        match missing {
            Some(e) if candidates.iter().all(|c| !c.present) => Err(e),
            _ => Ok(candidates),
        }
    })
}

/// One handshake over one path. It may take until `until`, or until `deadline` once the peer has answered.
async fn attempt(
    shared: &Arc<Shared>,
    options: &ConnectOptions,
    candidates: &[Candidate],
    over: Candidate,
    mut until: Instant,
    deadline: Instant,
) -> Result<Attempt, Error> {
    let connection = begin(shared, options, candidates, over)?;
    let id = connection.id();
    let signals = connection.signals().clone();
    loop {
        let changed = signals.changed.notified();
        {
            let core = shared.lock();
            core.check_running()?;
            let Some(entry) = core.connections.get(&id) else { return Ok(Attempt::Silent) };
            let connected = entry.connected;
            let closed = entry.closed.clone();
            let up = core.locals.get(over.local).is_some_and(|s| s.up);
            drop(core);
            match closed {
                // A peer that agreed and ended it at once is still a peer that agreed.
                _ if connected => return Ok(Attempt::Done(connection)),
                Some(CloseReason::NoAnswer | CloseReason::PeerGone) => return Ok(Attempt::Silent),
                Some(reason) => return Ok(Attempt::Refused(reason)),
                None if !up => return Ok(Attempt::Silent),
                None => {}
            }
        }
        if tokio::time::timeout_at(until.into(), changed).await.is_err() {
            // Half way through the handshake a change of path could leave the peer with an association that we
            // have forgotten: a peer that has answered gets the rest of the time.
            if until >= deadline || !has_answered(shared, id) {
                return Ok(Attempt::Silent);
            }
            until = deadline;
        }
    }
}

fn begin(
    shared: &Arc<Shared>,
    options: &ConnectOptions,
    candidates: &[Candidate],
    over: Candidate,
) -> Result<Connection, Error> {
    let mut config = options.association.clone();
    let asks = config.profile.asks();
    let begun = shared.act(|core| {
        if options.list_addresses {
            config.addresses.listed = core.locals.listed(candidates.iter().filter(|c| c.present).map(|c| c.local));
        }
        let id = core.engine.connect(clock::now(), config, over.local, over.remote, options.peer_port).map_err(
            |e| match e {
                ConnectError::Policy(e) => Error::Policy(e),
                ConnectError::Exists(_) => Error::AlreadyConnected(core.shown(over.remote, options.peer_port)),
            },
        )?;
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

fn has_answered(shared: &Shared, id: AssocId) -> bool {
    let core = shared.lock();
    core.engine.association(id).is_some_and(|a| a.paths().any(|(_, p)| p.counters.packets_received > 0))
}

/// Adds the paths that the handshake did not use.
fn join_others(shared: &Shared, connection: &Connection, candidates: &[Candidate], first: usize) {
    shared.act(|core| {
        let now = clock::now();
        for (_, c) in candidates.iter().enumerate().filter(|(i, _)| *i != first) {
            let up = core.locals.get(c.local).is_some_and(|s| s.up);
            let Some(mut a) = core.engine.association_mut(connection.id()) else { return };
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
            && let Some(trouble) = &side.trouble
        {
            troubles.push(format!("{}: {trouble}", side.name));
        }
    }
    let detail = if troubles.is_empty() { String::new() } else { format!(" ({})", troubles.join(", ")) };
    Error::Unreachable { peer: peers.join(", "), timeout: options.timeout, detail }
}
