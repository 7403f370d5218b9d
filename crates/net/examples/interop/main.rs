//! Our side of the interoperation runs (`scripts/interop-usrsctp.sh`): the options, the content of the messages and
//! the result are those of `interop/usrsctp/peer.c`, which describes them.
//!
//! Beyond those: `--list` lists all addresses to the peer in the handshake; `--paths HOST:PORT[,HOST:PORT]` names where
//! each path of a client leads (a relay, say) instead of `--peer` and `--udp`; `--profile NAME`; `--pcap FILE`;
//! `--linger SECONDS` stays that long after a shutdown; `--swap OWN,PEER` says where the path from the added address
//! leads.

mod content;
mod options;

use anabranch_net::{
    ClientConfig, CloseReason, ConnectOptions, Connection, Endpoint, Event, Events, Local, PathReason, PathSpec,
    SendOptions, ServerConfig, StreamId, now,
};
use content::{EPOCH, HEADER, LAST, Seen, length_of, message};
use options::{End, Options};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::process::exit;
use tokio::sync::watch;

type Anything = Box<dyn std::error::Error + Send + Sync>;

async fn open(o: &Options) -> Result<(Endpoint, Connection), Anything> {
    let pcap = o.pcap.as_ref().map(Into::into);
    if o.server {
        let listen = o.local.iter().map(|a| SocketAddr::new(*a, o.listen_udp.unwrap_or(0)));
        let mut c = ServerConfig::new(SocketAddr::new(o.local[0], 0), o.association()?);
        (c.transport, c.listen, c.port, c.pcap) = (o.transport(), listen.collect(), o.port, pcap);
        c.list_addresses = o.list;
        let endpoint = Endpoint::server(c)?;
        eprintln!("ready");
        let connection = endpoint.accept().await.ok_or("the endpoint has ended")?;
        return Ok((endpoint, connection));
    }
    let mut c = ClientConfig::default();
    (c.transport, c.port, c.pcap) = (o.transport(), (o.port != 0).then_some(o.port), pcap);
    let endpoint = Endpoint::client(c)?;
    let last = *o.remotes.last().ok_or("--peer or --paths is needed")?;
    let path =
        |(i, local): (usize, &IpAddr)| PathSpec::new(Local::Address(*local), o.remotes.get(i).copied().unwrap_or(last));
    let paths = o.local.iter().enumerate().map(path).collect();
    let mut options = ConnectOptions::over(paths, o.association()?);
    options.peer_port = o.peer_port;
    options.list_addresses = o.list;
    let connection = endpoint.connect(options).await?;
    Ok((endpoint, connection))
}

// ---- the run

async fn send_all(c: &Connection, o: &Options, epoch: u32) -> Result<u64, Anything> {
    let began = tokio::time::Instant::now();
    let mut sent = 0;
    for i in 0..o.messages {
        let (stream, number) = (i % u32::from(o.streams), i / u32::from(o.streams));
        if o.reset && i == o.messages / 2 {
            c.reset_streams(&[], true, false)?;
        }
        if let Some((own, peer)) = o.swap {
            swap(c, o, i, own, peer)?;
        }
        let options = SendOptions {
            stream: StreamId(stream as u16),
            deadline: o.lifetime.map(|l| now() + l),
            max_retransmissions: o.retransmissions,
            ..SendOptions::default()
        };
        let m = message(stream, number, epoch << EPOCH, length_of(stream, number).min(o.largest));
        match c.send(options, m.into()).await {
            Ok(()) => sent += 1,
            // Worthless before there was room: given up like those that were taken.
            Err(anabranch_net::SendError::Expired) => {}
            Err(e) => return Err(format!("message {i}: {e}").into()),
        }
        if o.rate.is_finite() {
            tokio::time::sleep_until(began + std::time::Duration::from_secs_f64(f64::from(i + 1) / o.rate)).await;
        }
    }
    c.send(SendOptions::default(), message(0, o.messages, epoch << EPOCH | LAST, HEADER).into()).await?;
    Ok(sent)
}

/// Our second address comes after a quarter of the messages, the first one goes after three quarters.
fn swap(c: &Connection, o: &Options, message: u32, own: IpAddr, peer: IpAddr) -> Result<(), Anything> {
    if message == o.messages / 4 {
        let port = o.remotes.first().map_or(0, SocketAddr::port);
        c.add_address(&PathSpec::new(Local::Address(own), SocketAddr::new(peer, port)))?;
    }
    if message == o.messages / 4 * 3 {
        // Impossible while the other one is not confirmed: then it stays.
        if let Err(e) = c.remove_address(o.local[0]) {
            eprintln!("interop: {e}");
        }
    }
    Ok(())
}

async fn receive_all(c: &Connection, gaps: bool, done: watch::Sender<bool>) -> (Seen, Option<CloseReason>) {
    let mut seen = Seen::default();
    loop {
        match c.recv().await {
            Ok(Some(m)) => seen.check(u32::from(m.stream.0), &m.payload.into_bytes(), gaps),
            Ok(None) => return (seen, None),
            Err(reason) => return (seen, Some(reason)),
        }
        done.send_replace(seen.expected.is_some());
    }
}

/// Until the peer has lost its memory and goes on under this connection, as it does under one that we opened.
async fn begun_anew(events: &mut Events) {
    while let Some(e) = events.next().await {
        if e.event == Event::Restarted {
            return;
        }
    }
    std::future::pending().await
}

/// Sends everything, and ends when that is ours to do.
async fn send_and_end(
    c: &Connection,
    o: &Options,
    epoch: u32,
    mut is_done: watch::Receiver<bool>,
) -> Result<u64, Anything> {
    let sent = send_all(c, o, epoch).await?;
    if o.end == End::Wait || is_done.wait_for(|d| *d).await.is_err() {
        return Ok(sent);
    }
    match o.end {
        End::Abort => {
            // Both ends shall have all by then: the last message may overtake those of other streams.
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let waiting = || c.stats().association.unsent + c.stats().association.outstanding;
            while waiting() > 0 && c.close_reason().is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            c.abort("interop");
        }
        _ => drop(c.shutdown().await),
    }
    Ok(sent)
}

/// Both directions, until the connection is over: what was sent and what has come since the peer last began anew, which
/// adds to `restarts`.
async fn exchange(c: &Connection, o: &Options, restarts: &mut u32) -> (u64, Seen) {
    let (done, is_done) = watch::channel(false);
    let end = async {
        let mut events = c.events();
        loop {
            tokio::select! {
                sent = send_and_end(c, o, o.epoch + *restarts, is_done.clone()) => break sent,
                () = begun_anew(&mut events) => *restarts += 1,
            }
        }
    };
    let (sent, (seen, _)) = tokio::join!(end, receive_all(c, o.gaps, done));
    let sent = sent.unwrap_or_else(|e| {
        eprintln!("interop: {e}");
        0
    });
    (sent, seen)
}

async fn run(o: &Options) -> Result<(), Anything> {
    let (endpoint, mut c) = open(o).await?;
    eprintln!("open");
    let began = now();
    let mut restarts = 0;
    let (sent, seen, reason) = loop {
        let (sent, seen) = exchange(&c, o, &mut restarts).await;
        let reason = c.closed().await;
        if reason != CloseReason::PeerRestarted {
            break (sent, seen, reason);
        }
        // The peer has lost its memory: what it begins with us is another connection.
        restarts += 1;
        c = endpoint.accept().await.ok_or("the endpoint has ended")?;
    };
    let end = match &reason {
        CloseReason::Shutdown => "shutdown",
        CloseReason::Aborted | CloseReason::PeerAborted(_) => "abort",
        _ => "lost",
    };
    let (mut lost, mut back, mut confirmed) = (0, 0, BTreeSet::new());
    let (mut resets, mut peer_resets) = (0, 0);
    let mut events = c.events();
    while let Some(e) = events.next().await {
        match e.event {
            Event::PathChanged { reason: PathReason::Answered, .. } => back += 1,
            Event::PathChanged { path, reason: PathReason::Confirmed, .. } => drop(confirmed.insert(path)),
            Event::PathChanged { .. } => lost += 1,
            Event::StreamsReset { incoming: false, .. } => resets += 1,
            Event::StreamsReset { incoming: true, .. } => peer_resets += 1,
            _ => {}
        }
    }
    let expected = seen.expected.map_or(-1, i64::from);
    let missing = if expected < 0 { -1 } else { expected - seen.received as i64 };
    let stats = c.stats().association;
    println!(
        "{{\"stack\":\"anabranch\",\"sent\":{sent},\"received\":{},\"expected\":{expected},\"lost\":{missing},\
         \"doubled\":{},\"disordered\":{},\"corrupt\":{},\"bytes\":{},\"abandoned\":{},\"paths_lost\":{lost},\
         \"paths_back\":{back},\"paths\":{},\"resets\":{resets},\"peer_resets\":{peer_resets},\"restarts\":{restarts},\"end\":\"{end}\",\"error\":0,\"seconds\":{:.2},\"reason\":\"{reason}\"}}",
        seen.received,
        seen.doubled,
        seen.disordered,
        seen.corrupt,
        seen.bytes,
        u64::from(o.messages) - sent + stats.abandoned_unsent + stats.abandoned_sent,
        confirmed.len(),
        (now() - began).as_secs_f64(),
    );
    drop(c);
    // Our last packet may be lost: whoever repeats what it answered gets it again.
    tokio::time::sleep(std::time::Duration::from_secs(if o.end == End::Shutdown { o.linger } else { 0 })).await;
    tokio::time::timeout(std::time::Duration::from_secs(2), endpoint.wait_idle()).await.ok();
    Ok(())
}

#[tokio::main]
async fn main() {
    let o = Options::read(std::env::args().skip(1)).unwrap_or_else(|e| {
        eprintln!("interop: {e}");
        exit(2)
    });
    match tokio::time::timeout(std::time::Duration::from_secs(o.seconds), run(&o)).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => {
            eprintln!("interop: {e}");
            exit(1)
        }
        Err(_) => {
            println!("{{\"stack\":\"anabranch\",\"end\":\"timeout\"}}");
            exit(3)
        }
    }
}
