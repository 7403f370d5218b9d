//! Our side of the interoperation runs (`scripts/interop-usrsctp.sh`): the options, the content of the messages and
//! the result are those of `interop/usrsctp/peer.c`, which describes them.
//!
//! Beyond those: `--list` tells the peer all addresses in the handshake; `--paths HOST:PORT[,HOST:PORT]` names where each path of a client leads (a relay, say) instead of
//! `--peer` and `--udp`; `--profile NAME`; `--pcap FILE`; `--linger SECONDS` stays
//! that long after a shutdown; `--no-asconf`, `--no-pr`, `--extensions` and `--reset` as there.

use anabranch_net::{
    AssocConfig, ClientConfig, CloseReason, ConnectOptions, Connection, Duration, Endpoint, Event, Local, PathReason,
    PathSpec, Profile, SendOptions, ServerConfig, StreamId, Transport, now,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::process::exit;
use tokio::sync::watch;

/// Bytes of stream, number, flags and length at the start of each message.
const HEADER: usize = 16;
/// Flag of the last message.
const LAST: u32 = 1;

type Anything = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Copy, PartialEq)]
enum End {
    Shutdown,
    Abort,
    Wait,
}

struct Options {
    server: bool,
    local: Vec<IpAddr>,
    remotes: Vec<SocketAddr>,
    listen_udp: Option<u16>,
    port: u16,
    peer_port: u16,
    messages: u32,
    streams: u16,
    rate: f64,
    lifetime: Option<Duration>,
    end: End,
    seconds: u64,
    linger: u64,
    fast: Option<(u64, u64)>,
    gaps: bool,
    list: bool,
    no_asconf: bool,
    no_pr: bool,
    extensions: String,
    reset: bool,
    profile: String,
    pcap: Option<String>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Anything> {
        let server = words.next().ok_or("server or client?")? == "server";
        let mut flags = Vec::new();
        let mut values = BTreeMap::new();
        while let Some(word) = words.next() {
            if matches!(word.as_str(), "--gaps" | "--list" | "--no-asconf" | "--no-pr" | "--reset") {
                flags.push(word);
            } else {
                let value = words.next().ok_or(format!("{word} needs a value"))?;
                values.insert(word, value);
            }
        }
        let mut take = |name: &str| values.remove(name);
        let udp = take("--udp");
        let (listen_udp, peer_udp) = match udp.as_deref().map(|u| u.split_once(':').unwrap_or((u, "0"))) {
            Some((own, peer)) => (Some(own.parse()?), peer.parse()?),
            None => (None, 0),
        };
        let list = |text: String| text.split(',').map(str::parse).collect::<Result<Vec<IpAddr>, _>>();
        let peers = list(take("--peer").unwrap_or_default()).unwrap_or_default();
        let mut remotes: Vec<SocketAddr> = peers.into_iter().map(|a| SocketAddr::new(a, peer_udp)).collect();
        if let Some(paths) = take("--paths") {
            remotes = paths.split(',').map(str::parse).collect::<Result<_, _>>()?;
        }
        let range = |text: String| Some(text.split_once(':').map(|(a, b)| (a.parse().ok(), b.parse().ok())));
        let o = Options {
            server,
            local: list(take("--local").ok_or("--local is needed")?)?,
            remotes,
            listen_udp,
            port: take("--port").map_or(Ok(0), |p| p.parse())?,
            peer_port: take("--peer-port").map_or(Ok(0), |p| p.parse())?,
            messages: take("--messages").map_or(Ok(0), |p| p.parse())?,
            streams: take("--streams").map_or(Ok(1), |p| p.parse())?,
            rate: take("--rate").map_or(Ok(f64::INFINITY), |p| p.parse())?,
            lifetime: match take("--pr") {
                Some(pr) => {
                    let ms = pr.strip_prefix("ttl:").ok_or("this side knows --pr ttl:MS only")?;
                    Some(Duration::from_millis(ms.parse()?))
                }
                None => None,
            },
            end: match take("--end").as_deref() {
                Some("abort") => End::Abort,
                Some("wait") => End::Wait,
                _ => End::Shutdown,
            },
            seconds: take("--seconds").map_or(Ok(60), |p| p.parse())?,
            linger: take("--linger").map_or(Ok(0), |p| p.parse())?,
            fast: take("--rto").and_then(range).flatten().and_then(|(a, b)| a.zip(b)),
            gaps: flags.iter().any(|f| f == "--gaps"),
            list: flags.iter().any(|f| f == "--list"),
            no_asconf: flags.iter().any(|f| f == "--no-asconf"),
            no_pr: flags.iter().any(|f| f == "--no-pr"),
            extensions: take("--extensions").unwrap_or_default(),
            reset: flags.iter().any(|f| f == "--reset"),
            profile: take("--profile").unwrap_or("cmt".into()),
            pcap: take("--pcap"),
        };
        match values.keys().next() {
            Some(unknown) => Err(format!("{unknown} is no option").into()),
            None => Ok(o),
        }
    }

    fn transport(&self) -> Transport {
        if self.listen_udp.is_none() { Transport::RawIp } else { Transport::Udp }
    }

    fn association(&self) -> Result<AssocConfig, Anything> {
        let mut c = AssocConfig::new(Profile::named(&self.profile)?);
        c.outbound_streams = self.streams;
        c.dynamic_addresses = !self.no_asconf;
        c.partial_reliability = !self.no_pr;
        for name in self.extensions.split(',').filter(|e| !e.is_empty()) {
            match name {
                "idata" => c.interleaving = true,
                "reconf" => c.stream_reconfiguration = true,
                "nrsack" => c.nr_sack = true,
                _ => return Err(format!("there is no extension {name}").into()),
            }
        }
        if let Some((min, max)) = self.fast {
            c.rto_initial = Duration::from_millis(min);
            c.rto_max = Duration::from_millis(max);
            c.max_path_retrans = 2;
            c.heartbeat_interval = Duration::from_millis(500);
        }
        Ok(c)
    }

    async fn open(&self) -> Result<(Endpoint, Connection), Anything> {
        let pcap = self.pcap.as_ref().map(Into::into);
        if self.server {
            let listen = self.local.iter().map(|a| SocketAddr::new(*a, self.listen_udp.unwrap_or(0)));
            let mut c = ServerConfig::new(SocketAddr::new(self.local[0], 0), self.association()?);
            (c.transport, c.listen, c.port, c.pcap) = (self.transport(), listen.collect(), self.port, pcap);
            c.list_addresses = self.list;
            let endpoint = Endpoint::server(c)?;
            eprintln!("ready");
            let connection = endpoint.accept().await.ok_or("the endpoint has ended")?;
            return Ok((endpoint, connection));
        }
        let port = (self.port != 0).then_some(self.port);
        let endpoint =
            Endpoint::client(ClientConfig { transport: self.transport(), port, pcap, ..ClientConfig::default() })?;
        let last = *self.remotes.last().ok_or("--peer or --paths is needed")?;
        let path = |(i, local): (usize, &IpAddr)| {
            PathSpec::new(Local::Address(*local), self.remotes.get(i).copied().unwrap_or(last))
        };
        let paths = self.local.iter().enumerate().map(path).collect();
        let mut options = ConnectOptions::over(paths, self.association()?);
        options.peer_port = self.peer_port;
        options.list_addresses = self.list;
        let connection = endpoint.connect(options).await?;
        Ok((endpoint, connection))
    }
}

// ---- content

fn length_of(stream: u32, number: u32) -> usize {
    const LENGTHS: [usize; 11] = [16, 17, 60, 100, 333, 500, 1000, 1173, 1500, 4000, 31];
    LENGTHS[(stream * 3 + number) as usize % LENGTHS.len()]
}

fn message(stream: u32, number: u32, flags: u32, length: usize) -> Vec<u8> {
    let mut m = Vec::with_capacity(length);
    for field in [stream, number, flags, length as u32] {
        m.extend(field.to_be_bytes());
    }
    let mut x = (stream + 1).wrapping_mul(2_654_435_761) ^ number.wrapping_add(1).wrapping_mul(40_503) ^ length as u32;
    m.resize_with(length.max(HEADER), || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    });
    m
}

#[derive(Debug, Default)]
struct Seen {
    next: BTreeMap<u32, u32>,
    received: u64,
    doubled: u64,
    disordered: u64,
    corrupt: u64,
    bytes: u64,
    expected: Option<u32>,
}

impl Seen {
    /// Judges a message; `gaps`: numbers may be left out, because the sender gives messages up.
    fn check(&mut self, stream: u32, m: &[u8], gaps: bool) {
        let field = |i: usize| m.get(i * 4..i * 4 + 4).map_or(0, |b| u32::from_be_bytes(b.try_into().unwrap()));
        let (number, flags) = (field(1), field(2));
        if field(0) != stream || m.len() < HEADER || message(stream, number, flags, m.len()) != m {
            self.corrupt += 1;
        } else if flags == LAST {
            self.expected = Some(number);
        } else {
            self.bytes += m.len() as u64;
            let next = self.next.entry(stream).or_default();
            if number + 1 == *next {
                self.doubled += 1;
            } else if number < *next || (number > *next && !gaps) {
                self.disordered += 1;
            }
            if number >= *next {
                self.received += 1;
                *next = number + 1;
            }
        }
    }
}

// ---- the run

async fn send_all(c: &Connection, o: &Options) -> Result<u64, Anything> {
    let began = tokio::time::Instant::now();
    let mut sent = 0;
    for i in 0..o.messages {
        let (stream, number) = (i % u32::from(o.streams), i / u32::from(o.streams));
        if o.reset && i == o.messages / 2 {
            c.reset_streams(&[], true, false)?;
        }
        let options = SendOptions {
            stream: StreamId(stream as u16),
            deadline: o.lifetime.map(|l| now() + l),
            ..SendOptions::default()
        };
        let m = message(stream, number, 0, length_of(stream, number));
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
    c.send(SendOptions::default(), message(0, o.messages, LAST, HEADER).into()).await?;
    Ok(sent)
}

async fn receive_all(c: &Connection, gaps: bool, done: watch::Sender<bool>) -> (Seen, Option<CloseReason>) {
    let mut seen = Seen::default();
    loop {
        match c.recv().await {
            Ok(Some(m)) => seen.check(u32::from(m.stream.0), &m.payload.into_bytes(), gaps),
            Ok(None) => return (seen, None),
            Err(reason) => return (seen, Some(reason)),
        }
        if seen.expected.is_some() {
            done.send_replace(true);
        }
    }
}

async fn run(o: &Options) -> Result<(), Anything> {
    let (endpoint, c) = o.open().await?;
    let began = now();
    let (done, mut is_done) = watch::channel(false);
    let end = async {
        let sent = send_all(&c, o).await;
        if sent.is_ok() && o.end != End::Wait && is_done.wait_for(|d| *d).await.is_ok() {
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
        }
        sent
    };
    let (sent, (seen, _)) = tokio::join!(end, receive_all(&c, o.gaps, done));
    let sent = sent.unwrap_or_else(|e| {
        eprintln!("interop: {e}");
        0
    });
    let reason = c.closed().await;
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
         \"paths_back\":{back},\"paths\":{},\"resets\":{resets},\"peer_resets\":{peer_resets},\"end\":\"{end}\",\"error\":0,\"seconds\":{:.2},\"reason\":\"{reason}\"}}",
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
