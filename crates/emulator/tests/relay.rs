//! What the relay does to addresses, and what can be done to it while it runs.

use anabranch_emulator::{
    Direction, Emulator, EmulatorConfig, EmulatorError, EmulatorHandle, Frames, PathChange, parse_changes,
};
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

/// A socket on loopback, with its address.
fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn start(paths: &[String]) -> EmulatorHandle {
    Emulator::start(EmulatorConfig::from_texts(paths.iter().map(String::as_str)).unwrap()).unwrap()
}

/// The next datagram and its source.
fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 70_000];
    let (n, from) = socket.recv_from(&mut buffer).ok()?;
    Some((buffer[..n].to_vec(), from))
}

#[test]
fn the_target_sees_other_addresses_and_ports() {
    let (target, to) = socket();
    let emulator = start(&[format!("listen 127.0.0.1:0 to {to} from 127.0.0.3")]);
    let relay = emulator.local_addrs()[0];
    let senders = [socket(), socket()];
    let seen = senders.each_ref().map(|(sender, address)| {
        sender.send_to(b"there", relay).unwrap();
        let (bytes, from) = receive(&target).unwrap();
        assert_eq!(bytes, b"there");
        assert_eq!(from.ip().to_string(), "127.0.0.3");
        assert_ne!(from.port(), address.port());
        from
    });
    assert_ne!(seen[0], seen[1]);
    // Answers go back to whom they belong, from the address the sender knows.
    for (i, from) in seen.iter().enumerate() {
        target.send_to(format!("back {i}").as_bytes(), from).unwrap();
        assert_eq!(receive(&senders[i].0), Some((format!("back {i}").into_bytes(), relay)));
    }
    // A stranger cannot come in through the relay's port.
    senders[1].0.send_to(b"stranger", seen[0]).unwrap();
    assert_eq!(receive(&senders[0].0), None);
    let stats = emulator.stop();
    assert_eq!((stats.paths[0].clients, stats.paths[0].upstream.as_slice()), (2, seen.as_slice()));
    assert_eq!((stats.paths[0].up.delivered.packets, stats.paths[0].down.delivered.packets), (2, 2));
    assert_eq!(stats.paths[0].up.delivered.bytes, 10);
}

#[test]
fn ipv6_and_datagrams_of_any_size() {
    let Ok(target) = UdpSocket::bind("[::1]:0") else {
        eprintln!("SKIPPED ipv6: this machine has no [::1]");
        return;
    };
    target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let emulator = start(&[format!("listen [::1]:0 to {}", target.local_addr().unwrap())]);
    let sender = UdpSocket::bind("[::1]:0").unwrap();
    for size in [0, 1, 1_472, 60_000] {
        let bytes: Vec<u8> = (0..size).map(|i| i as u8).collect();
        sender.send_to(&bytes, emulator.local_addrs()[0]).unwrap();
        assert_eq!(receive(&target).unwrap().0, bytes);
    }
}

#[test]
fn new_ports_while_running() {
    let (target, to) = socket();
    let (sender, _) = socket();
    let emulator = start(&[format!("listen 127.0.0.1:0 to {to} at 300ms rebind")]);
    sender.connect(emulator.local_addrs()[0]).unwrap();
    let port = || {
        sender.send(b"x").unwrap();
        let (_, from) = receive(&target).unwrap();
        target.send_to(b"y", from).unwrap();
        assert_eq!(receive(&sender).unwrap().0, b"y");
        from.port()
    };
    let first = port();
    assert_eq!(port(), first);
    emulator.control(0, PathChange::Rebind).unwrap();
    let second = port();
    assert_ne!(second, first);
    sleep(Duration::from_millis(350));
    assert_ne!(port(), second);
}

#[test]
fn cut_restored_and_changed_by_hand() {
    let (target, to) = socket();
    let (sender, _) = socket();
    let emulator = start(&[format!("name a listen 127.0.0.1:0 to {to}"), format!("name b listen 127.0.0.1:0 to {to}")]);
    let send =
        |path: usize| sender.send_to(b"x", emulator.local_addrs()[path]).map(|_| receive(&target).is_some()).unwrap();
    assert!(send(0) && send(1));
    emulator.cut(emulator.path("b").unwrap()).unwrap();
    assert!(send(0) && !send(1));
    emulator.restore(1).unwrap();
    assert!(send(1));
    for change in parse_changes("up.loss 100%").unwrap() {
        emulator.control(0, change).unwrap();
    }
    assert!(!send(0) && send(1));
    assert!(matches!(emulator.cut(7), Err(EmulatorError::NoSuchPath(7))));
    let stats = emulator.stop();
    assert_eq!((stats.paths[0].up.dropped_loss.packets, stats.paths[1].up.dropped_down.packets), (1, 1));
}

#[test]
fn a_target_that_is_not_there_yet() {
    let (gone, to) = socket();
    drop(gone);
    let emulator = start(&[format!("listen 127.0.0.1:0 to {to}")]);
    let (sender, _) = socket();
    sender.connect(emulator.local_addrs()[0]).unwrap();
    // The port is closed: the system answers with an ICMP error, which must neither reach the sender nor stop the
    // relay.
    for _ in 0..5 {
        sender.send(b"lost").unwrap();
        sleep(Duration::from_millis(5));
    }
    let target = UdpSocket::bind(to).unwrap();
    target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    sender.send(b"first").unwrap();
    assert_eq!(receive(&target).unwrap().0, b"first");
    assert_eq!(emulator.stop().machine.send_errors, 0);
}

#[test]
fn more_than_a_thousand_senders() {
    const SENDERS: usize = 1_100;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let (target, to) = socket();
    let emulator = start(&[format!("listen 127.0.0.1:0 to {to}")]);
    let senders: Vec<UdpSocket> = (0..SENDERS).map(|_| socket().0).collect();
    for (n, sender) in senders.iter().enumerate() {
        sender.send_to(&n.to_le_bytes(), emulator.local_addrs()[0]).unwrap();
        let (bytes, from) = receive(&target).unwrap();
        assert_eq!(bytes, n.to_le_bytes());
        target.send_to(&bytes, from).unwrap();
        assert_eq!(receive(sender).unwrap().0, bytes, "the answer of sender {n} finds it");
    }
    let stats = emulator.stop();
    assert_eq!((stats.paths[0].clients, stats.paths[0].refused), (SENDERS, 0));
}

#[test]
fn samples_over_time() {
    let (_target, to) = socket();
    let emulator = start(&[format!("listen 127.0.0.1:0 to {to}")]);
    let (sender, _) = socket();
    for _ in 0..40 {
        sender.send_to(&[0; 100], emulator.local_addrs()[0]).unwrap();
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(150));
    let samples = emulator.samples();
    assert!(samples.len() >= 5, "{}", samples.len());
    assert!(samples.windows(2).all(|w| w[0].at < w[1].at));
    let bytes: Vec<u64> = samples.iter().map(|s| s.paths[0].up.delivered.bytes).collect();
    assert!(bytes.is_sorted() && bytes.last() == Some(&4_000), "{bytes:?}");
    assert!(bytes.iter().any(|b| *b > 0 && *b < 4_000));
}

#[test]
fn addresses_that_cannot_be_had() {
    let (_taken, address) = socket();
    let fail = |text: &str| {
        let message = Emulator::start(EmulatorConfig::from_texts([text]).unwrap()).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    let message = fail(&format!("name wlan listen {address} to 127.0.0.1:9"));
    assert!(message.contains("`wlan`") && message.contains("in use"), "{message}");
    assert!(fail("listen 192.0.2.1:9000 to 127.0.0.1:9").contains("does not have that address"));
    assert!(fail("listen 127.0.0.1:0 to 127.0.0.1:9 from 192.0.2.1").contains("cannot send to"));
    let none = Emulator::start(EmulatorConfig::default()).unwrap_err();
    assert!(matches!(none, EmulatorError::Config(_)));
}

#[test]
fn frames_are_counted_with_errors_and_repetitions() {
    let (target, to) = socket();
    let (sender, _) = socket();
    // Everything is lost twice on the first path and never on the second.
    let lossy = format!("name a listen 127.0.0.1:0 to {to} up.loss 100% up.arq 1");
    let emulator = start(&[lossy, format!("name b listen 127.0.0.1:0 to {to}")]);
    let up = |path| emulator.frames(path, Direction::Forward);
    assert_eq!((up(0), up(2)), (Some(Frames::default()), None));
    for n in 1..=3 {
        sender.send_to(b"x", emulator.local_addrs()[0]).unwrap();
        sender.send_to(b"x", emulator.local_addrs()[1]).unwrap();
        assert!(receive(&target).is_some_and(|(bytes, _)| bytes == b"x"));
        let wait = std::time::Instant::now() + Duration::from_secs(2);
        while up(0).is_some_and(|f| f.sent < n) && std::time::Instant::now() < wait {
            sleep(Duration::from_millis(1));
        }
        assert_eq!(up(0), Some(Frames { sent: n, erroneous: n, repeated: n }));
        assert_eq!(up(1), Some(Frames { sent: n, ..Frames::default() }));
        assert_eq!(emulator.frames(0, Direction::Backward), Some(Frames::default()));
    }
}
