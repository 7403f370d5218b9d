//! How connections end: what the peer hears of it when the program is over a moment later.

mod common;

use anabranch_net::{CloseReason, ConnectOptions, SendOptions};
use common::{client, config, pair, server_at, within};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the program below finds its server.
const SERVER: &str = "ANABRANCH_TEST_SERVER";

/// Not a test by itself: a program that connects, asks, reads the answer, shuts down and is over at once, driver and all.
#[test]
fn a_short_program() {
    let Ok(to) = std::env::var(SERVER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let reason = runtime.block_on(async {
        let endpoint = client();
        let connection = endpoint.connect(ConnectOptions::new(to.parse().unwrap(), config("cmt"))).await.unwrap();
        connection.send(SendOptions::default(), "ask".into()).await.unwrap();
        connection.recv().await.unwrap().expect("an answer");
        connection.shutdown().await
    });
    std::process::exit(i32::from(reason != CloseReason::Shutdown));
}

/// `shutdown().await` is over when the last packet has been given to its socket: of 200 programs that end right after it
/// none leaves a server behind that waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_may_end_after_its_shutdown() {
    let server = server_at("127.0.0.1:0");
    let to = server.listening()[0].to_string();
    let mut left_behind = 0;
    for _ in 0..200 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_short_program"])
            .env(SERVER, &to)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let far = within(10, server.accept()).await.expect("accepted");
        within(10, far.recv()).await.unwrap().expect("a question");
        far.send(SendOptions::default(), "answer".into()).await.unwrap();
        let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
        let reason = tokio::time::timeout(Duration::from_secs(1), far.closed()).await;
        left_behind += u32::from(reason != Ok(CloseReason::Shutdown));
    }
    assert_eq!(left_behind, 0, "servers that waited on of 200");
}

/// A reason arrives although messages of the peer come while it waits to leave.
#[tokio::test(flavor = "multi_thread")]
async fn the_peer_hears_why_it_was_sent_away() {
    for n in 0..100 {
        let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
        let near = p.near.clone();
        let input = tokio::spawn(async move {
            while near.send(SendOptions::default(), vec![0; 40].into()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..n {
            within(10, p.far.recv()).await.unwrap().expect("an input");
        }
        let expected = if n % 2 == 0 { "kicked" } else { "the connection was dropped" };
        if n % 2 == 0 {
            p.far.abort("kicked");
        } else {
            drop(p.far);
        }
        let reason = within(5, p.near.closed()).await;
        assert_eq!(reason, CloseReason::PeerAborted(expected.to_owned()), "round {n}");
        within(5, input).await.unwrap();
    }
}
