//! SCTP right on IP, protocol 132. Needs the right CAP_NET_RAW: without it every test here says so and is left out.

mod common;

use anabranch_net::{
    CloseReason, ConnectOptions, Endpoint, Error, ErrorKind, PathSpec, PathState, SendOptions, ServerConfig, Transport,
};
use common::{Pair, bytes, client_with, config, has_ipv6, within};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

fn server_config(listen: &str, port: u16) -> ServerConfig {
    let address = SocketAddr::new(listen.parse().unwrap(), 0);
    let mut c = ServerConfig::new(address, config("cmt"));
    (c.transport, c.port) = (Transport::RawIp, port);
    c
}

/// A server; none when the right is missing.
fn server(name: &str, config: ServerConfig) -> Option<Endpoint> {
    match Endpoint::server(config) {
        Err(e @ Error::NoRight { right: "CAP_NET_RAW", .. }) => {
            assert_eq!(e.kind(), ErrorKind::Network);
            eprintln!("SKIPPED {name}: {e}");
            None
        }
        other => Some(other.expect("a server")),
    }
}

fn client(pcap: Option<PathBuf>) -> Endpoint {
    client_with(|c| (c.transport, c.pcap) = (Transport::RawIp, pcap)).expect("a client")
}

async fn pair(name: &str, listen: &str, to: &str, sources: &[&str], port: u16) -> Option<Pair> {
    let server = server(name, server_config(listen, port))?;
    assert_eq!(server.listening()[0].port(), port, "what is shown is the SCTP port");
    let client = client(None);
    let to = SocketAddr::new(to.parse().unwrap(), port);
    let mut options =
        ConnectOptions::over(sources.iter().map(|s| PathSpec::new(s.parse().unwrap(), to)).collect(), config("cmt"));
    options.peer_port = port;
    let accept = async { Ok(server.accept().await.expect("accepted")) };
    let (near, far) = within(10, async { tokio::try_join!(client.connect(options), accept) }).await.expect("connected");
    Some(Pair { client, server, near, far })
}

/// One message of many packets and one of a byte each way, then a graceful end.
async fn exchange(p: Pair) {
    let large = bytes(300_000, 1);
    for c in [&p.near, &p.far] {
        c.send(SendOptions::default(), large.clone().into()).await.unwrap();
        c.send(SendOptions::default(), "x".into()).await.unwrap();
    }
    for c in [&p.far, &p.near] {
        let mut got = Vec::new();
        for _ in 0..2 {
            got.push(within(20, c.recv()).await.unwrap().unwrap().payload.into_bytes());
        }
        assert!(got[0] == large && got[1] == "x");
    }
    let (a, b) = within(10, async { tokio::join!(p.near.shutdown(), p.far.closed()) }).await;
    assert_eq!((a, b), (CloseReason::Shutdown, CloseReason::Shutdown));
    let duplicates = p.far.stats().association.duplicates_received + p.near.stats().association.duplicates_received;
    assert_eq!(duplicates, 0, "no packet was read twice");
}

#[tokio::test]
async fn ipv4() {
    let Some(p) = pair("raw_ip ipv4", "127.0.0.1", "127.0.0.1", &["127.0.0.1"], 7_001).await else { return };
    let stats = p.near.stats();
    assert_eq!(stats.paths[0].stats.remote, "127.0.0.1:7001".parse().unwrap());
    assert_eq!(stats.paths[0].address.port(), p.client.port());
    exchange(p).await;
}

#[tokio::test]
async fn ipv6() {
    if !has_ipv6() {
        eprintln!("SKIPPED raw_ip ipv6: no IPv6 loopback");
        return;
    }
    let Some(p) = pair("raw_ip ipv6", "::1", "::1", &["::1"], 7_002).await else { return };
    exchange(p).await;
}

/// A wildcard answers from the address it was asked at: the client takes nothing from another.
#[tokio::test]
async fn a_wildcard_answers_from_where_it_was_asked() {
    let name = "raw_ip a_wildcard_answers_from_where_it_was_asked";
    let Some(p) = pair(name, "0.0.0.0", "127.0.0.9", &["127.0.0.1"], 7_003).await else { return };
    assert_eq!(p.far.stats().paths[0].local, "127.0.0.9");
    exchange(p).await;
}

#[tokio::test]
async fn an_unbound_client_reaches_a_wildcard_on_the_same_machine() {
    let name = "raw_ip an_unbound_client_reaches_a_wildcard_on_the_same_machine";
    let Some(p) = pair(name, "0.0.0.0", "127.0.0.1", &["*"], 7_004).await else { return };
    exchange(p).await;
}

#[tokio::test]
async fn two_paths_join_and_carry() {
    let sources = ["127.0.0.1", "127.0.0.2"];
    let Some(p) = pair("raw_ip two_paths", "127.0.0.1", "127.0.0.1", &sources, 7_005).await else { return };
    let active = || p.near.stats().paths.iter().filter(|p| p.stats.state == PathState::Active).count();
    within(10, async {
        while active() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let remotes: Vec<_> = p.far.stats().paths.iter().map(|p| p.stats.remote.ip().to_string()).collect();
    assert_eq!(remotes, sources);
    for _ in 0..50 {
        p.near.send(SendOptions::default(), bytes(20_000, 3).into()).await.unwrap();
    }
    for _ in 0..50 {
        within(20, p.far.recv()).await.unwrap().unwrap();
    }
    assert!(p.near.stats().paths.iter().all(|p| p.stats.counters.packets_sent > 50));
    exchange(p).await;
}

/// The kernel keeps no SCTP ports apart: we do.
#[tokio::test]
async fn a_port_serves_one_endpoint() {
    let Some(first) = server("raw_ip a_port_serves_one_endpoint", server_config("127.0.0.1", 7_006)) else { return };
    let e = Endpoint::server(server_config("127.0.0.1", 7_006)).err().expect("in use");
    assert_eq!(
        e.to_string(),
        "SCTP port 7006 of 127.0.0.1 is in use by another program: stop that or choose another port"
    );
    assert!(Endpoint::server(server_config("127.0.0.1", 7_007)).is_ok());
    drop(first);
}

/// Two endpoints on one machine, each with its own port, do not end each other's associations.
#[tokio::test]
async fn packets_for_other_ports_are_not_answered() {
    let name = "raw_ip packets_for_other_ports_are_not_answered";
    let Some(a) = pair(name, "127.0.0.1", "127.0.0.1", &["127.0.0.1"], 7_008).await else { return };
    let Some(b) = pair(name, "127.0.0.1", "127.0.0.1", &["127.0.0.1"], 7_009).await else { return };
    exchange(a).await;
    exchange(b).await;
}

#[tokio::test]
async fn captures_hold_plain_ip() {
    let name = "raw_ip captures_hold_plain_ip";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("raw.pcapng");
    let Some(server) = server(name, server_config("127.0.0.1", 7_010)) else { return };
    let client = client(Some(file.clone()));
    let mut options = ConnectOptions::new("127.0.0.1:0".parse().unwrap(), config("cmt"));
    options.peer_port = 7_010;
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    exchange(Pair { client: client.clone(), server, near: near.unwrap(), far: far.unwrap() }).await;
    within(10, client.wait_idle()).await;
    if std::process::Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("SKIPPED {name}: no tshark");
        return;
    }
    let run = |filter: &str| {
        let mut c = std::process::Command::new("tshark");
        c.args(["-o", "sctp.checksum:CRC 32c", "-o", "ip.check_checksum:TRUE", "-Y", filter, "-r"]);
        let out = c.arg(&file).output().unwrap();
        String::from_utf8_lossy(&out.stdout).lines().count()
    };
    assert!(run("sctp.dstport == 7010 && ip.proto == 132 && sctp.chunk_type == 0") > 200);
    assert_eq!(run("udp || _ws.malformed || sctp.checksum.status != \"Good\" || ip.checksum.status == \"Bad\""), 0);
}
