//! Bytes go both ways unharmed, over each family and over several paths.

mod common;

use anabranch_net::{
    CloseReason, ConnectOptions, Connection, Endpoint, OwnParameter, PathState, SendOptions, ServerConfig,
};
use bytes::Bytes;
use common::{Pair, bytes, has_ipv6, pair, within};
use std::time::Duration;

const SIZE: usize = 5_000_000;

/// Sends `all` in messages of mixed sizes.
async fn send_all(c: &Connection, all: &[u8]) {
    let all = Bytes::copy_from_slice(all);
    let mut at = 0;
    let mut len = 1;
    while at < all.len() {
        let end = (at + len).min(all.len());
        c.send(SendOptions::default(), all.slice(at..end)).await.expect("sent");
        at = end;
        len = (len * 7 + 13) % 9_000 + 1;
    }
}

async fn receive(c: &Connection, n: usize) -> Vec<u8> {
    let mut got = Vec::with_capacity(n);
    let mut messages = Vec::new();
    while got.len() < n {
        if c.recv_many(&mut messages, 64).await.expect("no error") == 0 {
            break;
        }
        for m in messages.drain(..) {
            m.payload.pieces().for_each(|p| got.extend_from_slice(p));
        }
    }
    got
}

async fn both_ways(p: &Pair) {
    let (up, down) = (bytes(SIZE, 1), bytes(SIZE, 2));
    let (_, _, got_up, got_down) = within(60, async {
        tokio::join!(send_all(&p.near, &up), send_all(&p.far, &down), receive(&p.far, SIZE), receive(&p.near, SIZE))
    })
    .await;
    assert!(got_up == up, "{} bytes of {}", got_up.len(), up.len());
    assert!(got_down == down, "{} bytes of {}", got_down.len(), down.len());
}

async fn end(p: Pair) {
    let (a, b) = within(10, async { tokio::join!(p.near.shutdown(), p.far.closed()) }).await;
    assert_eq!((a, b), (CloseReason::Shutdown, CloseReason::Shutdown));
    assert_eq!(p.far.recv().await, Ok(None));
    let stats = p.near.stats();
    assert_eq!(stats.association.bytes_sent, SIZE as u64);
    assert_eq!(p.far.stats().association.bytes_received, SIZE as u64);
    drop((p.near, p.far));
    within(5, async { tokio::join!(p.client.wait_idle(), p.server.wait_idle()) }).await;
}

#[tokio::test]
async fn ipv4() {
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    both_ways(&p).await;
    end(p).await;
}

#[tokio::test]
async fn ipv6() {
    if !has_ipv6() {
        eprintln!("SKIPPED ipv6: no IPv6 loopback");
        return;
    }
    let p = pair("[::1]:0", &["::1"]).await;
    both_ways(&p).await;
    end(p).await;
}

#[tokio::test]
async fn two_paths_share_the_load() {
    let p = pair("127.0.0.1:0", &["127.0.0.1", "127.0.0.2"]).await;
    within(5, async {
        while p.near.stats().paths.iter().filter(|q| q.stats.state == PathState::Active).count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    both_ways(&p).await;
    for (who, c) in [("client", &p.near), ("server", &p.far)] {
        let paths = c.stats().paths;
        assert_eq!(paths.len(), 2, "{who}");
        for q in paths {
            assert!(q.stats.counters.data_sent > SIZE as u64 / 10, "{who}: {q:?}");
        }
    }
    end(p).await;
}

/// A wildcard socket answers from the address it was asked at; two of them are two paths.
#[tokio::test]
async fn a_wildcard_server_has_paths_to_each_of_its_addresses() {
    let server = common::server_at("0.0.0.0:0");
    let port = server.listening()[0].port();
    let to = |ip: &str| std::net::SocketAddr::new(ip.parse().unwrap(), port);
    let paths = vec![common::from("127.0.0.1", to("127.0.0.1")), common::from("127.0.0.1", to("127.0.0.3"))];
    let options = anabranch_net::ConnectOptions::over(paths, common::config("cmt"));
    let client = common::client();
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let p = Pair { client, server, near: near.unwrap(), far: far.unwrap() };
    within(5, async {
        while p.near.stats().paths.iter().filter(|q| q.stats.state == PathState::Active).count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    both_ways(&p).await;
    let mut at: Vec<String> = p.far.stats().paths.iter().map(|q| q.address.ip().to_string()).collect();
    at.sort();
    assert_eq!(at, ["127.0.0.1", "127.0.0.3"]);
    end(p).await;
}

/// A game looks each tick and does not wait.
#[tokio::test]
async fn a_program_may_look_in_place_of_waiting() {
    let server = common::server_at("127.0.0.1:0");
    assert!(server.try_accept().is_none(), "there is no player yet");
    let near = common::client();
    let options = anabranch_net::ConnectOptions::new(server.listening()[0], common::config("low-latency"));
    let near = within(5, near.connect(options)).await.expect("connected");
    near.try_send(SendOptions::default(), Bytes::from_static(b"here I am")).expect("room");
    let (mut players, mut heard) = (Vec::new(), Vec::new());
    let ticks = async {
        while heard.is_empty() {
            players.extend(server.try_accept());
            heard.extend(players.iter().filter_map(Connection::try_recv));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(5, ticks).await;
    assert_eq!(heard[0].payload.pieces().next().map(|p| &p[..]), Some(&b"here I am"[..]));
    assert!(players.len() == 1 && server.try_accept().is_none());
}

/// Parameters of one's own reach the peer with the handshake, and come back from one that knows them.
#[tokio::test]
async fn each_side_hears_what_the_other_says_as_they_meet() {
    const KIND: u16 = 0xbf43;
    let with = |list: &[OwnParameter]| {
        let mut c = common::config("media");
        c.extensions.own_parameters = list.to_vec();
        c
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Endpoint::server(ServerConfig::new(listen, with(&[OwnParameter::known(KIND)]))).expect("a server");
    let ours = with(&[OwnParameter::said(KIND, vec![1, 3, 0, 1, 2])]);
    let client = common::client();
    let options = ConnectOptions::new(server.listening()[0], ours);
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, far) = (near.expect("connected"), far.expect("accepted"));
    for c in [&near, &far] {
        assert_eq!(c.peer_parameter(KIND), Some(vec![1, 3, 0, 1, 2]));
        assert_eq!(c.peer_parameter(KIND + 1), None);
        assert!(c.streams().0 >= 5, "{:?}", c.streams());
    }
}
