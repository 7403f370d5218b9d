//! Strangers at the door of `recv` and `tunnel --accept`, beside a real sender. The strangers here speak through the
//! engine; `scripts/strangers.sh` has some that do not.

mod common;

use anabranch_net::{AssocConfig, ClientConfig, ConnectOptions, Connection, Endpoint, Profile, SendOptions, StreamId};
use bytes::Bytes;
use common::*;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// One that speaks SCTP and says what it likes.
struct Stranger {
    connection: Connection,
    _endpoint: Endpoint,
}

impl Stranger {
    async fn new(port: u16) -> Option<Self> {
        let endpoint = Endpoint::client(ClientConfig::default()).unwrap();
        let config = AssocConfig::new(Profile::named("sctp").unwrap());
        let mut options = ConnectOptions::new(SocketAddr::from(([127, 0, 0, 1], port)), config);
        options.timeout = Duration::from_secs(5);
        let connection = endpoint.connect(options).await.ok()?;
        Some(Stranger { connection, _endpoint: endpoint })
    }

    async fn says(&self, ppid: u32, stream: u16, payload: Vec<u8>) {
        let options = SendOptions { stream: StreamId(stream), ppid, ..SendOptions::default() };
        let _ = self.connection.send(options, Bytes::from(payload)).await;
    }

    /// A control message by its number.
    async fn control(&self, kind: u8, value: &[u8]) {
        self.says(0x616e_6200, 3, [b"anb\x01".as_slice(), &[kind], value].concat()).await;
    }

    async fn hello(&self, mode: u8, latency: u32) {
        self.control(1, &[[mode].as_slice(), &latency.to_be_bytes(), b"x"].concat()).await;
    }

    async fn is_sent_away(&self, within: Duration) -> bool {
        tokio::time::timeout(within, self.connection.closed()).await.is_ok()
    }
}

/// Datagrams from a real sender, and how long until the file has them.
fn served(port: u16, out: &std::path::Path) -> Duration {
    let began = Instant::now();
    let count = || std::fs::read_to_string(out).map_or(0, |text| text.matches("real").count());
    let before = count();
    let to = format!("127.0.0.1:{port}");
    let mut s = start_with(&["send", "-", &to, "--mode", "datagram", "--ordered"], Stdio::piped());
    s.stdin().write_all(b"real").unwrap();
    while count() == before {
        assert!(began.elapsed() < LIMIT, "nothing comes out");
        std::thread::sleep(Duration::from_millis(10));
    }
    s.wait().check(0, None);
    began.elapsed()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn silent_ones_are_sent_away_and_lock_no_one_out() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    let runtime = runtime();
    let crowd: Vec<Stranger> = runtime.block_on(async {
        let mut all = Vec::new();
        for _ in 0..40 {
            all.extend(Stranger::new(port).await);
        }
        all
    });
    assert!(crowd.len() > 35, "{}", crowd.len());
    // One address has 32 seats in the waiting room; a real sender from the same address is heard all the same.
    let took = served(port, &out);
    assert!(took < Duration::from_secs(5), "{took:?}");
    runtime.block_on(async {
        for stranger in &crowd {
            assert!(stranger.is_sent_away(Duration::from_secs(20)).await);
        }
    });
    r.signal("INT");
    let r = r.wait();
    assert_eq!(r.code(), Some(130));
    assert!(r.stderr.lines().count() < 30, "one line a second: {}", r.stderr);
    same(&std::fs::read(&out).unwrap(), b"real");
}

#[test]
fn a_hello_without_a_stream_holds_the_place_for_three_seconds() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    let runtime = runtime();
    for mode in [1, 2, 3] {
        let stranger = runtime.block_on(async {
            let stranger = Stranger::new(port).await.unwrap();
            stranger.hello(mode, u32::MAX).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            stranger
        });
        let took = served(port, &out);
        assert!(took < Duration::from_secs(8), "mode {mode}: {took:?}");
        // Its place is gone; it would not be let in again before others.
        assert!(runtime.block_on(stranger.is_sent_away(Duration::from_secs(5))), "mode {mode}");
    }
    r.signal("INT");
    r.wait();
    same(&std::fs::read(&out).unwrap(), b"realrealreal");
}

#[test]
fn a_hello_and_an_end_do_not_end_it() {
    let (_dir, out) = scratch();
    std::fs::write(&out, b"old").unwrap();
    let port = port();
    let r = stays(port, out.to_str().unwrap(), &[]);
    let runtime = runtime();
    runtime.block_on(async {
        for mode in [1, 2] {
            let stranger = Stranger::new(port).await.unwrap();
            stranger.hello(mode, 0).await;
            stranger.control(5, &[0; 25]).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    same(&std::fs::read(&out).unwrap(), b"old");
    served(port, &out);
    assert_eq!(r.wait().code(), Some(0), "the real sender's end ends it");
    same(&std::fs::read(&out).unwrap(), b"real");
}

#[test]
fn an_absurd_latency_and_an_end_that_lies() {
    let (dir, out) = scratch();
    let stats = dir.path().join("stats");
    let port = port();
    let more = ["--keep", "-J", "--stats-file", stats.to_str().unwrap()];
    let r = receiver(port, out.to_str().unwrap(), &more);
    let runtime = runtime();
    // One media message (media/src/header.rs), due in 49 days; then nothing, or an end with absurd counts.
    let media = [[0xa1, 0x20, 0, 0, 0, 1].as_slice(), &[0; 12], &[0x47; 188]].concat();
    for (latency, ends) in [(50, true), (u32::MAX, false)] {
        runtime.block_on(async {
            let stranger = Stranger::new(port).await.unwrap();
            stranger.hello(1, latency).await;
            stranger.says(0x616e_6201, 0, media.clone()).await;
            if ends {
                stranger.control(5, &[0xff; 25]).await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            // It goes without a word from the second one: its endpoint is dropped, and that aborts.
        });
        let took = served(port, &out);
        assert!(took < Duration::from_secs(8), "latency {latency}: {took:?}");
    }
    let began = Instant::now();
    r.signal("TERM");
    assert_eq!(r.wait().code(), Some(130));
    assert!(began.elapsed() < Duration::from_millis(3_500), "{:?}", began.elapsed());
    let lost = rows(&std::fs::read_to_string(&stats).unwrap());
    let lost = lost.iter().filter_map(|r| r["lost"].as_u64().or(r["stream"]["lost"].as_u64())).max();
    assert!(lost.is_some_and(|n| n < 10), "{lost:?}");
}

#[test]
fn flows_of_strangers_do_not_use_up_the_descriptors() {
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("udp://{}", echo.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            if n > 1 {
                let _ = echo.send_to(&buffer[..n], from);
            }
        }
    });
    let (port, entry) = (port(), port());
    let listen = format!("anabranch://127.0.0.1:{port}");
    let args = ["tunnel", "--accept", &listen, "--forward", &target];
    // 200 files: 64 are kept for all else, the rest is for flows.
    let accept = start_in(&["sh", "-c", "ulimit -n 200; exec \"$@\"", "sh"], &args);
    listening(port);
    let runtime = runtime();
    let strangers: Vec<Stranger> = runtime.block_on(async {
        let mut all = Vec::new();
        for _ in 0..4 {
            let stranger = Stranger::new(port).await.unwrap();
            stranger.hello(4, 100).await;
            for flow in 0..300_u32 {
                stranger.says(0x616e_6205, 4, [flow.to_be_bytes().as_slice(), b"x"].concat()).await;
            }
            all.push(stranger);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        all
    });
    let _enter = start(&["tunnel", "--listen", &format!("udp://127.0.0.1:{entry}"), &listen]);
    listening(entry);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", entry)).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    client.send(b"hello").unwrap();
    let mut buffer = [0; 100];
    let n = client.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..n], b"hello");
    drop(strangers);
    accept.signal("INT");
    let a = accept.wait();
    assert_eq!(a.code(), Some(130));
    assert!(a.stderr.lines().count() < 20, "{}", a.stderr);
}
