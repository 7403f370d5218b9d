//! What goes wrong is said in one clear line and in time, and what had arrived is kept.

mod common;

use anabranch_net::{
    CloseReason, ConnectOptions, Duration as Span, Endpoint, Error, ErrorKind, Event, Local, PathSpec, SendError,
    SendOptions, ServerConfig, StreamId,
};
use common::{client, client_with, config, from, pair, relay, server_at, within};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = server_at("127.0.0.1:0");
    let taken = first.listening()[0];
    let e = Endpoint::server(ServerConfig::new(taken, config("cmt"))).err().expect("refused");
    assert_eq!(e.kind(), ErrorKind::Network);
    assert_eq!(
        e.to_string(),
        format!(
            "UDP port {} of 127.0.0.1 is in use by another program: stop that or choose another port",
            taken.port()
        )
    );
}

#[tokio::test]
async fn no_peer_answers() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let mut options = ConnectOptions::new(to, config("sctp"));
    options.timeout = Duration::from_millis(1_200);
    let began = Instant::now();
    let e = within(5, client().connect(options)).await.err().expect("no peer is there");
    assert!((1_200..2_500).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(e.to_string(), format!("{to} does not answer within 1.2 s"));
    assert_eq!(e.kind(), ErrorKind::Network);
}

/// The first paths lead nowhere; the handshake goes over the last, the others stay unconfirmed, and the server sees one
/// association.
#[tokio::test]
async fn the_next_path_is_tried_soon_when_the_first_is_silent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nowhere = silent.local_addr().unwrap();
    for (profile, silent_ones, least) in [("cmt", 1, 240), ("sctp", 1, 240), ("low-latency", 2, 740)] {
        let server = server_at("127.0.0.1:0");
        let to = server.listening()[0];
        let mut paths: Vec<_> = (1..=silent_ones).map(|n| from(&format!("127.0.0.{n}"), nowhere)).collect();
        paths.push(from("127.0.0.9", to));
        let began = Instant::now();
        let client = client();
        let options = ConnectOptions::over(paths, config(profile));
        let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
        let (near, far) = (near.expect("connected"), far.expect("accepted"));
        let took = began.elapsed().as_millis();
        assert!((least..least + 600).contains(&took), "{profile}, {silent_ones} silent: {took} ms");
        assert_eq!(near.remote_addresses()[..2], [to, nowhere], "{profile}");
        near.send(SendOptions::default(), "x".into()).await.unwrap();
        assert_eq!(within(5, far.recv()).await.unwrap().unwrap().payload.into_bytes(), "x");
        let more = tokio::time::timeout(Duration::from_millis(300), server.accept()).await;
        assert!(more.is_err(), "{profile}: one association");
    }
}

/// One INIT is lost. Profiles for networks that lose repeat it after half a second, the standard's after one.
#[tokio::test]
async fn a_lost_init_costs_half_a_second_with_profiles_for_losses() {
    for (profile, initial, least, most) in [
        ("low-latency", 1_000, 450, 950),
        ("live", 1_000, 450, 950),
        ("sctp", 1_000, 950, 1_800),
        ("live", 700, 650, 950),
    ] {
        let server = server_at("127.0.0.1:0");
        let (relay, silent) = relay(server.listening()[0]);
        silent.store(true, Ordering::Relaxed);
        let mut options = ConnectOptions::new(relay, config(profile));
        options.association.timers.rto_initial = Span::from_millis(initial);
        let began = Instant::now();
        let client = client();
        let speaks = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            silent.store(false, Ordering::Relaxed);
        };
        let (near, _, ()) = within(10, async { tokio::join!(client.connect(options), server.accept(), speaks) }).await;
        near.expect("connected");
        let took = began.elapsed().as_millis();
        assert!((least..most).contains(&took), "{profile}, {initial} ms: {took} ms");
    }
}

/// A path on which there is an association with the peer already takes no part in the race: an INIT would restart that.
#[tokio::test]
async fn a_race_leaves_another_association_alone() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    let to = p.server.listening()[0];
    let paths = vec![from("127.0.0.2", silent.local_addr().unwrap()), from("127.0.0.1", to)];
    let mut options = ConnectOptions::over(paths, config("cmt"));
    options.timeout = Duration::from_millis(900);
    let e = within(5, p.client.connect(options)).await.err().expect("none of its own");
    assert!(matches!(e, Error::Unreachable { .. }), "{e}");
    p.near.send(SendOptions::default(), "x".into()).await.unwrap();
    assert_eq!(within(5, p.far.recv()).await.unwrap().unwrap().payload.into_bytes(), "x");
}

#[tokio::test]
async fn a_peer_that_accepts_nothing_refuses() {
    // A client endpoint on a known SCTP port answers INIT with ABORT. It listens once it has a socket.
    let a = client_with(|c| c.port = Some(7)).unwrap();
    let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut silent = ConnectOptions::new(probe.local_addr().unwrap(), config("sctp"));
    silent.timeout = Duration::from_millis(300);
    let mut buffer = [0; 2_000];
    let (gone, came) = tokio::join!(
        a.connect(silent),
        tokio::task::spawn_blocking(move || probe.recv_from(&mut buffer).map(|(_, from)| from))
    );
    assert!(gone.is_err());
    let mut options = ConnectOptions::new(came.unwrap().unwrap(), config("sctp"));
    options.peer_port = 7;
    let e = within(5, client().connect(options)).await.err().expect("refused");
    assert!(matches!(e, Error::Refused { .. }), "{e}");
}

/// What the system said about one address is not said of another, nor of the same one once it is silent.
#[tokio::test]
async fn the_reason_of_an_earlier_failure_does_not_stay() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let forbidden: SocketAddr = "255.255.255.255:9899".parse().unwrap();
    let client = client();
    for (to, detail) in [(forbidden, " (*: Permission denied)"), (silent, ""), (forbidden, " (*: Permission denied)")] {
        let mut options = ConnectOptions::new(to, config("sctp"));
        options.timeout = Duration::from_millis(200);
        let e = within(5, client.connect(options)).await.err().expect("no peer is there");
        assert_eq!(e.to_string(), format!("{to} does not answer within 0.2 s{detail}"));
    }
    let server = server_at("127.0.0.1:0");
    let there = client.connect(ConnectOptions::new(server.listening()[0], config("sctp")));
    within(5, there).await.expect("connected");
}

#[tokio::test]
async fn usage_errors_say_what_is_wrong() {
    let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let refused = async |local: Local| {
        let options = ConnectOptions::over(vec![PathSpec::new(local, to)], config("sctp"));
        within(5, client().connect(options)).await.err().expect("refused")
    };
    let e = refused(Local::Interface("wlan77".into())).await;
    assert!(e.to_string().starts_with("there is no interface wlan77; there are: "), "{e}");
    assert_eq!(e.kind(), ErrorKind::Usage);
    let e = refused(Local::Address("198.51.100.77".parse().unwrap())).await;
    assert_eq!(e.to_string(), "no interface of this machine has the address 198.51.100.77");
    assert_eq!(e.kind(), ErrorKind::Usage);
    let e = client_with(|c| c.pcap = Some("/nonexistent/x.pcapng".into())).err().unwrap();
    assert!(e.to_string().starts_with("cannot write the capture /nonexistent/x.pcapng: "), "{e}");
}

/// With leave to, an interface that is not there does not keep the others from working.
#[tokio::test]
async fn a_missing_interface_may_be_waited_for() {
    let server = server_at("127.0.0.1:0");
    let to = server.listening()[0];
    let paths = vec![PathSpec::new(Local::Interface("wlan77".into()), to), from("127.0.0.1", to)];
    let mut options = ConnectOptions::over(paths, config("cmt"));
    let e = within(5, client().connect(options.clone())).await.err().expect("refused");
    assert!(matches!(e, Error::NoInterface { .. }), "{e}");
    options.allow_missing = true;
    let client = client();
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    near.send(SendOptions::default(), "x".into()).await.unwrap();
    assert!(within(5, far.recv()).await.unwrap().is_some());
    assert_eq!(near.stats().paths.len(), 2);
}

#[tokio::test]
async fn a_peer_that_is_dropped_aborts() {
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    p.near.send(SendOptions::default(), "last words".into()).await.unwrap();
    within(5, async {
        while p.near.stats().association.unsent + p.near.stats().association.outstanding > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    drop((p.near, p.client));
    let reason = within(5, p.far.closed()).await;
    assert!(matches!(&reason, CloseReason::PeerAborted(why) if why.contains("dropped")), "{reason:?}");
    // What had arrived is still there to be read.
    assert_eq!(p.far.recv().await.unwrap().unwrap().payload.into_bytes(), "last words");
    assert_eq!(p.far.recv().await, Err(reason.clone()));
    assert_eq!(p.far.send(SendOptions::default(), "x".into()).await, Err(SendError::Closed(Some(reason))));
}

/// A sender that does not pause meets the end before anyone has waited for it; the reason is known by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_sender_learns_why_the_connection_is_over() {
    for _ in 0..20 {
        let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
        let near = p.near.clone();
        let busy = tokio::task::spawn_blocking(move || {
            let until = Instant::now() + Duration::from_secs(5);
            while Instant::now() < until {
                match near.try_send(SendOptions::default(), "x".into()) {
                    Ok(()) | Err(SendError::WouldBlock) => {}
                    Err(e) => return e,
                }
            }
            panic!("it does not end")
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop((p.far, p.server));
        let e = busy.await.unwrap();
        assert!(matches!(&e, SendError::Closed(Some(CloseReason::PeerAborted(_)))), "{e}");
    }
}

/// A peer that vanishes without a packet: a relay between them falls silent.
#[tokio::test]
async fn a_peer_that_falls_silent_is_gone() {
    let server = server_at("127.0.0.1:0");
    let (relay, silent) = relay(server.listening()[0]);
    let client = client();
    let mut association = config("sctp");
    association.failure.max_association_retrans = 2;
    association.timers.heartbeat_interval = Span::from_millis(200);
    let options = ConnectOptions::new(relay, association);
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    near.send(SendOptions::default(), "x".into()).await.unwrap();
    assert!(within(5, far.recv()).await.unwrap().is_some());
    silent.store(true, Ordering::Relaxed);
    near.send(SendOptions::default(), "y".into()).await.unwrap();
    assert_eq!(within(40, near.recv()).await, Err(CloseReason::PeerGone));
    let mut events = near.events();
    let mut last = None;
    while let Some(e) = events.next().await {
        last = Some(e.event);
    }
    assert_eq!(last, Some(Event::Closed(CloseReason::PeerGone)));
}

#[tokio::test]
async fn messages_that_cannot_be_sent_are_refused() {
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    let stream = |n| SendOptions { stream: StreamId(n), ..SendOptions::default() };
    assert_eq!(p.near.send(stream(0), "".into()).await, Err(SendError::Empty));
    assert_eq!(p.near.send(stream(64), "x".into()).await, Err(SendError::InvalidStream(64)));
    let e = p.near.send(stream(0), vec![0; 5 << 20].into()).await.expect_err("too large");
    assert_eq!(e.to_string(), "a message has at most 4194304 bytes here (`limits.send_buffer`)");
}

/// The receiver does not read: the sender waits for room, and no longer than the deadline.
#[tokio::test]
async fn a_full_buffer_holds_senders_until_their_deadline() {
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    let big = bytes::Bytes::from(vec![0; 100_000]);
    let fill = async {
        loop {
            let options = SendOptions { deadline: None, ..SendOptions::default() };
            if tokio::time::timeout(Duration::from_millis(500), p.near.send(options, big.clone())).await.is_err() {
                return;
            }
        }
    };
    within(20, fill).await;
    while p.near.try_send(SendOptions::default(), big.clone()).is_ok() {}
    assert_eq!(p.near.try_send(SendOptions::default(), big.clone()), Err(SendError::WouldBlock));
    let deadline = Some(p.near.now() + Span::from_millis(100));
    let late = p.near.send(SendOptions { deadline, ..SendOptions::default() }, big.clone());
    assert_eq!(within(2, late).await, Err(SendError::Expired));
    // Once the receiver reads there is room again.
    let far = p.far.clone();
    tokio::spawn(async move { while let Ok(Some(_)) = far.recv().await {} });
    within(20, p.near.send(SendOptions::default(), big)).await.unwrap();
}

#[tokio::test]
async fn a_closed_endpoint_ends_everything() {
    let p = pair("127.0.0.1:0", &["127.0.0.1"]).await;
    p.server.close("maintenance");
    assert_eq!(within(5, p.far.closed()).await, CloseReason::Aborted);
    let reason = within(5, p.near.closed()).await;
    assert!(matches!(&reason, CloseReason::PeerAborted(why) if why.contains("maintenance")), "{reason:?}");
    assert!(within(5, p.server.accept()).await.is_none());
    within(5, p.server.wait_idle()).await;
}

/// The connection is never accepted: it waits, and the endpoint's end is its end.
#[tokio::test]
async fn what_was_never_accepted_is_aborted_with_the_endpoint() {
    let server = server_at("127.0.0.1:0");
    let near = within(5, client().connect(ConnectOptions::new(server.listening()[0], config("sctp")))).await.unwrap();
    drop(server);
    let reason = within(5, near.closed()).await;
    assert!(matches!(reason, CloseReason::PeerAborted(_)), "{reason:?}");
}
