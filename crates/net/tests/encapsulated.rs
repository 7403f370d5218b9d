//! What UDP and IP show of our packets, and what we make of theirs (RFC 6951).

mod common;

use anabranch_net::{AssocConfig, ConnectOptions, Connection, Endpoint, PathMtuDiscovery, SendOptions, ServerConfig};
use anabranch_wire::{Packet, Verify, kind};
use common::*;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn connected(
    client: &Endpoint,
    server: &Endpoint,
    to: SocketAddr,
    config: AssocConfig,
) -> (Connection, Connection) {
    let options = ConnectOptions::new(to, config);
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    (near.expect("connected"), far.expect("accepted"))
}

/// Shows: ext/E1, ext/E2.
#[tokio::test]
async fn packets_leave_between_the_ports_that_were_chosen_with_a_checksum_and_nothing_else() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let udp_port = free_port();
    let client = client_with(|c| c.udp_port = udp_port).unwrap();
    let mut options = ConnectOptions::new(peer.local_addr().unwrap(), config("sctp"));
    options.timeout = Duration::from_millis(200);
    assert!(within(5, client.connect(options)).await.is_err());
    let mut buffer = [0; 2_000];
    let (n, from) = peer.recv_from(&mut buffer).unwrap();
    assert_eq!(from.port(), udp_port);
    let p = Packet::parse(&buffer[..n], Verify::Checksum).expect("summed, and a whole packet");
    let init = p.chunks().next().expect("INIT").expect("well formed");
    assert_eq!((init.kind, 12 + init.whole.len()), (kind::INIT, n));
}

/// Nothing listens yet: ICMP says so at once, and it means nothing.
///
/// Shows: ext/E5.
#[tokio::test]
async fn a_port_that_icmp_calls_unreachable_may_answer_later() {
    let to = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let witness = UdpSocket::bind("127.0.0.1:0").unwrap();
    witness.connect(to).unwrap();
    witness.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    witness.send(b"?").unwrap();
    assert_eq!(witness.recv(&mut [0; 8]).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused, "ICMP comes");
    let client = client();
    let connecting = tokio::spawn(async move { client.connect(ConnectOptions::new(to, config("sctp"))).await });
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(!connecting.is_finished());
    let server = server_at(&to.to_string());
    let near = within(10, connecting).await.unwrap().expect("connected");
    // One that is dropped aborts.
    let _far = within(5, server.accept()).await.unwrap();
    assert!(near.is_established());
}

/// One packet as a relay saw it: chunk types and the bits of the IP header.
type Seen = (Vec<u8>, Option<EcnCodepoint>);

/// Reads one datagram with its ECN bits.
fn read(
    socket: &UdpSocket,
    state: &UdpSocketState,
    buffer: &mut [u8],
) -> Option<(usize, SocketAddr, Option<EcnCodepoint>)> {
    let mut metas = [RecvMeta::default()];
    let n = state.recv(socket.into(), &mut [IoSliceMut::new(buffer)], &mut metas).ok()?;
    let m = metas.first().filter(|_| n == 1)?;
    Some((m.len, m.addr, m.ecn))
}

/// Passes single packets on, both ways; what may be marked comes out marked. Ends with the process.
fn marking_relay(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<Seen>>>) {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let log = seen.clone();
    std::thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        let states = [&front, &back].map(|s| UdpSocketState::new(s.into()).unwrap());
        let (mut client, mut buffer) = (None, vec![0; 65_535]);
        loop {
            let mut idle = true;
            if let Some((n, from, ecn)) = read(&front, &states[0], &mut buffer) {
                (client, idle) = (Some(from), false);
                // Receive offload joins equal packets: they cannot be distinguished here, so only lone ones are noted.
                if let Ok(p) = Packet::parse(&buffer[..n], Verify::Checksum) {
                    log.lock().unwrap().push((p.chunks().flatten().map(|c| c.kind).collect(), ecn));
                }
                let ecn = if ecn == Some(EcnCodepoint::Ect0) { Some(EcnCodepoint::Ce) } else { ecn };
                let t = Transmit { destination: server, ecn, contents: &buffer[..n], segment_size: None, src_ip: None };
                let _ = states[1].try_send((&back).into(), &t);
            }
            if let (Some((n, _, ecn)), Some(to)) = (read(&back, &states[1], &mut buffer), client) {
                idle = false;
                let t = Transmit { destination: to, ecn, contents: &buffer[..n], segment_size: None, src_ip: None };
                let _ = states[0].try_send((&front).into(), &t);
            }
            if idle {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    (address, seen)
}

/// Shows: ext/E8.
#[tokio::test]
async fn the_bits_of_ecn_pass_unchanged_between_ip_and_sctp() {
    let ecn = || {
        let mut config = config("sctp");
        config.extensions.ecn = true;
        config
    };
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), ecn())).unwrap();
    let (through, seen) = marking_relay(server.listening()[0]);
    let client = client();
    let (near, far) = connected(&client, &server, through, ecn()).await;
    for n in 0..50u8 {
        near.send(SendOptions::default(), vec![n; 800].into()).await.unwrap();
        assert_eq!(within(5, far.recv()).await.unwrap().unwrap().payload.into_bytes(), vec![n; 800]);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let log = seen.lock().unwrap().clone();
    let data = |s: &&Seen| s.0.contains(&kind::DATA);
    assert!(log.iter().filter(data).count() >= 50);
    assert!(log.iter().filter(data).all(|s| s.1 == Some(EcnCodepoint::Ect0)), "data may be marked");
    assert!(log.iter().filter(|s| !data(s)).all(|s| s.1.is_none()), "nothing else");
    assert!(log.iter().any(|s| s.0.contains(&kind::CWR)), "the sender answers");
    let arrived: u64 = far.stats().paths.iter().map(|p| p.stats.counters.marked_received).sum();
    assert!(arrived >= 50, "{arrived}");
    let cuts: u64 = near.stats().paths.iter().map(|p| p.stats.counters.cuts_by_mark).sum();
    assert!(cuts > 0, "{cuts}");
}

/// Loopback carries far more than 1,200 bytes: two probes find it.
#[tokio::test]
async fn packets_grow_to_what_the_path_carries() {
    let large = || {
        let mut config = config("sctp");
        config.mtu.discovery = Some(PathMtuDiscovery::up_to(9_000));
        config
    };
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), large())).unwrap();
    let client = client();
    let (near, far) = connected(&client, &server, server.listening()[0], large()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(near.stats().paths[0].stats.packet_size, 9_000);
    let before = near.stats().paths[0].stats.counters;
    let payload = bytes(900_000, 3);
    near.send(SendOptions::default(), payload.clone().into()).await.unwrap();
    assert!(within(10, far.recv()).await.unwrap().unwrap().payload.into_bytes() == payload);
    let after = near.stats().paths[0].stats.counters;
    let packets = after.packets_sent - before.packets_sent;
    assert!(packets < 200, "{packets} packets for 900,000 bytes");
    let s = client.stats();
    assert_eq!(s.send_errors, 0, "{s:?}");
}
