//! Any UDP, both ways.

mod common;

use common::*;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

fn client(tunnel: u16) -> UdpSocket {
    let s = UdpSocket::bind("127.0.0.1:0").unwrap();
    s.connect(("127.0.0.1", tunnel)).unwrap();
    s.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    s
}

#[test]
fn datagrams_of_several_clients_and_their_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("udp://{}", server.local_addr().unwrap());
    thread::spawn(move || {
        // Answers with the datagram turned round.
        let mut buffer = vec![0; 70_000];
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            buffer[..n].reverse();
            let _ = server.send_to(&buffer[..n], from);
        }
    });
    let (port, entry) = (port(), port());
    let accept = start(&["tunnel", "--accept", &format!("anabranch://127.0.0.1:{port}"), "--forward", &target]);
    listening(port);
    let listen = format!("udp://127.0.0.1:{entry}");
    let enter = start(&["tunnel", "--listen", &listen, &format!("anabranch://127.0.0.1:{port}"), "-J"]);
    listening(entry);
    let clients = [client(entry), client(entry), client(entry)];
    let mut buffer = vec![0; 70_000];
    let mut bytes = 0;
    for (i, size) in [0, 1, 4, 188, 1_172, 1_173, 8_000, 65_000].into_iter().enumerate() {
        for (j, c) in clients.iter().enumerate() {
            let mut datagram = noise(size, (i * 3 + j) as u64 + 1);
            c.send(&datagram).unwrap();
            let n = c.recv(&mut buffer).unwrap();
            datagram.reverse();
            same(&buffer[..n], &datagram);
            bytes += size;
        }
    }
    // A second way in, at the same time.
    let entry = common::port();
    let listen = format!("udp://127.0.0.1:{entry}");
    let other = start(&["tunnel", "--listen", &listen, &format!("anabranch://127.0.0.1:{port}"), "--ordered"]);
    listening(entry);
    let c = client(entry);
    c.send(b"abc").unwrap();
    let n = c.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..n], b"cba");
    other.signal("INT");
    other.wait().check(130, None);
    enter.signal("INT");
    let e = enter.wait();
    e.check(130, None);
    let totals = rows(&e.out()).pop().unwrap();
    assert_eq!((&totals["stream"]["messages"], &totals["stream"]["bytes"]), (&24.into(), &bytes.into()));
    accept.signal("INT");
    accept.wait().check(130, None);
}

#[test]
fn the_far_side_ends() {
    let (port, entry) = (port(), port());
    let accept =
        start(&["tunnel", "--accept", &format!("anabranch://127.0.0.1:{port}"), "--forward", "udp://127.0.0.1:9"]);
    listening(port);
    let enter = start(&[
        "tunnel",
        "--listen",
        &format!("udp://127.0.0.1:{entry}"),
        &format!("anabranch://127.0.0.1:{port}"),
        "--once",
    ]);
    listening(entry);
    // The target's port is closed; that ends nothing.
    let c = client(entry);
    for _ in 0..5 {
        c.send(b"lost").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    accept.signal("INT");
    accept.wait().check(130, None);
    let e = enter.wait();
    e.check(0, None);
    assert!(e.out().contains("ended by the peer (interrupted)"), "{}", e.out());
}
