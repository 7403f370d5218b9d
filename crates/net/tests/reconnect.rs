//! A connection that comes back by itself, and a peer that is given up by time.

mod common;

use anabranch_net::{
    Backoff, ClientConfig, CloseReason, ConnectOptions, Endpoint, Error, ErrorKind, Event, ReconnectState,
    Reconnecting, SendError, SendOptions, ServerConfig, Trouble, now,
};
use common::{client, config, from, pair, relay, server_at, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A server on the address of an earlier one, whose driver may need a moment to let go of it.
async fn server_again(at: SocketAddr) -> Endpoint {
    loop {
        match Endpoint::server(ServerConfig::new(at, config("cmt"))) {
            Ok(server) => return server,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

#[tokio::test]
async fn messages_flow_again_after_the_peer_restarts() {
    let mut server = server_at("127.0.0.1:0");
    let at = server.listening()[0];
    let line = Reconnecting::new(client(), ConnectOptions::new(at, config("cmt")));
    let mut states = line.states();
    assert!(matches!(states.next().await, Some(ReconnectState::Connecting(None))));
    for round in 1..4u64 {
        let far = within(10, server.accept()).await.expect("accepted");
        assert!(matches!(within(5, states.next()).await, Some(ReconnectState::Connected(n)) if n == round));
        let word = format!("round {round}");
        line.send(SendOptions::default(), word.clone().into()).await.expect("sent");
        assert_eq!(within(5, far.recv()).await.unwrap().unwrap().payload.into_bytes(), word);
        far.send(SendOptions::default(), word.clone().into()).await.expect("answered");
        assert_eq!(within(5, line.recv()).await.unwrap().payload.into_bytes(), word);
        // One that goes with a word, and one that is gone without.
        server.close("restarting");
        server.wait_idle().await;
        drop((far, server));
        let lost = within(5, states.next()).await;
        assert!(
            matches!(lost, Some(ReconnectState::Connecting(Some(Trouble::Lost(CloseReason::PeerAborted(_)))))),
            "{lost:?}"
        );
        server = server_again(at).await;
    }
    let last = within(5, server.accept()).await.expect("accepted");
    let (number, near) = within(5, line.connection_after(3)).await.expect("connected");
    assert!(number == 4 && line.stop().is_some());
    assert_eq!(line.send(SendOptions::default(), "x".into()).await, Err(SendError::Closed(None)), "it is over");
    near.shutdown_within(Duration::from_secs(2)).await;
    assert!(line.connection().is_none() && matches!(line.state(), ReconnectState::Over(None)));
    drop(last);
}

/// Connections come and go while the reader is busy: what they brought is read in order, up to eight of them.
#[tokio::test]
async fn what_short_connections_brought_is_not_skipped() {
    for (connections, read_before, lost) in
        [(1u32, false, 0), (4, false, 0), (4, true, 0), (8, false, 0), (11, true, 2)]
    {
        let server = server_at("127.0.0.1:0");
        let mut backoff = Backoff::default();
        (backoff.first, backoff.longest) = (Duration::from_millis(5), Duration::from_millis(5));
        let options = ConnectOptions::new(server.listening()[0], config("cmt"));
        let line = Reconnecting::by(client(), backoff, move || {
            let options = options.clone();
            async move { Ok(options) }
        });
        let mut expected = Vec::new();
        let mut got = Vec::new();
        for k in 0..connections {
            let far = within(10, server.accept()).await.expect("accepted");
            for i in 0..3 {
                expected.push(format!("{k}.{i}"));
                far.send(SendOptions::default(), format!("{k}.{i}").into()).await.expect("taken");
            }
            if k == 0 && read_before {
                got.push(within(5, line.recv()).await.unwrap().payload.into_bytes());
            }
            assert_eq!(within(10, far.shutdown()).await, CloseReason::Shutdown, "{k} of {connections}");
        }
        let _last = within(10, server.accept()).await.expect("accepted");
        let (number, _) = within(10, line.connection_after(connections.into())).await.expect("connected");
        assert_eq!(number, u64::from(connections) + 1);
        // Those of the oldest connections have gone; not those of the one that is being read.
        let first = if lost == 0 { 0 } else { 3 };
        expected.drain(first..first + 3 * lost);
        while got.len() < expected.len() {
            got.push(within(5, line.recv()).await.unwrap().payload.into_bytes());
        }
        assert_eq!(got, expected, "{connections} connections, read before: {read_before}");
        let more = tokio::time::timeout(Duration::from_millis(50), line.recv()).await;
        assert!(more.is_err(), "{connections}: {more:?}");
    }
}

#[tokio::test]
async fn a_message_waits_for_the_peer_no_longer_than_its_deadline() {
    let line = Reconnecting::new(client(), ConnectOptions::new("127.0.0.1:9".parse().unwrap(), config("cmt")));
    let deadline = Some(now() + anabranch_net::Duration::from_millis(200));
    let began = Instant::now();
    let sent = within(5, line.send(SendOptions { deadline, ..SendOptions::default() }, "x".into())).await;
    assert_eq!(sent, Err(SendError::Expired));
    assert!(began.elapsed() >= Duration::from_millis(190));
}

/// Each try asks anew where to go; a mistake ends it at the first try alone.
#[tokio::test]
async fn options_are_asked_for_before_each_try_and_mistakes_are_reported() {
    let server = server_at("127.0.0.1:0");
    let at = server.listening()[0];
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let line = Reconnecting::by(client(), Backoff::default(), move || {
        let n = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match n {
                0 => Err(Error::Unresolved("no such name".into())),
                1 => Err(Error::Config("a mistake that was none".into())),
                _ => Ok(ConnectOptions::new(at, config("cmt"))),
            }
        }
    });
    let (number, _near) = within(5, line.connection_after(0)).await.expect("connected");
    assert_eq!((number, asked.load(Ordering::Relaxed)), (1, 3));

    let nowhere = ConnectOptions::over(vec![], config("cmt"));
    let line = Reconnecting::new(client(), nowhere);
    match within(5, line.connection_after(0)).await {
        Err(Some(Trouble::Failed(e))) => assert_eq!(e.kind(), ErrorKind::Usage),
        _ => panic!("a connection without a path"),
    }
}

/// The relay to the peer is gone: the peer is given up by time, and events do not pile up meanwhile.
#[tokio::test]
async fn a_silent_peer_is_given_up_by_time() {
    let server = server_at("127.0.0.1:0");
    let (relay, silent) = relay(server.listening()[0]);
    let client = client();
    let mut config = config("cmt");
    config.failure.peer_timeout = Some(anabranch_net::Duration::from_millis(2_500));
    // Messages that are given up before they leave ask for no answer.
    config.timers.heartbeat_interval = anabranch_net::Duration::from_millis(500);
    let options = ConnectOptions::new(relay, config);
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, far) = (near.expect("connected"), far.expect("accepted"));
    near.send(SendOptions::default(), "x".into()).await.unwrap();
    within(5, far.recv()).await.unwrap().unwrap();
    silent.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let mut sent = 0;
    let reason = loop {
        let deadline = Some(now() + anabranch_net::Duration::from_millis(20));
        match near.send(SendOptions { deadline, ..SendOptions::default() }, "x".into()).await {
            Ok(()) | Err(SendError::Expired) => sent += 1,
            Err(SendError::Closed(why)) => break why,
            Err(e) => panic!("{e}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(began.elapsed() < Duration::from_secs(10), "not given up: {:?}", near.stats());
    };
    assert_eq!(reason, Some(CloseReason::PeerGone));
    let took = began.elapsed();
    assert!((2_000..6_000).contains(&took.as_millis()), "{took:?}");
    let mut events = near.events();
    let all: Vec<Event> = std::iter::from_fn(|| events.try_next()).map(|e| e.event).collect();
    let events = all.iter().filter(|e| matches!(e, Event::Abandoned { .. })).count();
    assert!(sent > 50 && events as u128 <= took.as_millis() / 1_000 + 2, "{events} events for {sent} messages");
}

/// Why a second connection from one endpoint to one server is refused, and what to do instead.
#[tokio::test]
async fn a_second_connection_to_the_same_server() {
    let pair = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    let to = pair.server.listening()[0];
    let again = || ConnectOptions::over(vec![from("127.0.0.1", to)], config("cmt"));
    let e = pair.client.connect(again()).await.err().expect("refused");
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert!(e.to_string().contains("use streams of that one, or another endpoint"), "{e}");
    let other = Endpoint::client(ClientConfig::default()).unwrap();
    let (near, far) = within(10, async { tokio::join!(other.connect(again()), pair.server.accept()) }).await;
    assert!(near.is_ok() && far.is_some());
}
