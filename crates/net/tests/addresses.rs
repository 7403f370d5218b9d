//! Addresses listed in the handshake, towards peers that could not learn them later.

mod common;

use anabranch_engine::{ListedAddress, LocalId};
use anabranch_net::{AssocConfig, ConnectOptions, Endpoint, Event, PathReason, PathState, ServerConfig, Transport};
use common::{client, client_with, config, from, has_ipv6, within};
use std::net::SocketAddr;
use std::time::Duration;

fn without_asconf() -> AssocConfig {
    let mut config = config("cmt");
    config.extensions.dynamic_addresses = false;
    config.timers.heartbeat_max_burst = 8;
    config
}

/// Paths of the client between two addresses of each side; the server lists its addresses when `listed`.
async fn paths(transport: Transport, port: u16, listed: bool) -> Option<Vec<(String, SocketAddr, PathState)>> {
    let listen = ["127.0.0.1", "127.0.0.3"].map(|a| SocketAddr::new(a.parse().unwrap(), port));
    let mut c = ServerConfig::new(listen[0], without_asconf());
    (c.transport, c.listen, c.port, c.list_addresses) = (transport, listen.to_vec(), port, listed);
    let server = Endpoint::server(c).ok()?;
    let client = client_with(|c| c.transport = transport).unwrap();
    let mut options =
        ConnectOptions::over(vec![from("127.0.0.1", listen[0]), from("127.0.0.2", listen[1])], without_asconf());
    (options.peer_port, options.list_addresses) = (port, listed);
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, _far) = (near.unwrap(), far.unwrap());
    let look = || near.stats().paths.into_iter().map(|p| (p.local, p.stats.remote, p.stats.state)).collect::<Vec<_>>();
    let all = || {
        let paths = look();
        let used = |from: &&str| active(&paths).iter().any(|p| p.0 == *from);
        ["127.0.0.1", "127.0.0.2"].iter().all(used)
    };
    for _ in 0..if listed { 1_000 } else { 150 } {
        if all() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Some(look())
}

fn active(paths: &[(String, SocketAddr, PathState)]) -> Vec<(&str, SocketAddr)> {
    paths.iter().filter(|p| p.2 == PathState::Active).map(|p| (p.0.as_str(), p.1)).collect()
}

#[tokio::test]
async fn both_addresses_of_both_sides_are_used_when_they_are_listed() {
    let port = 27_311;
    let Some(all) = paths(Transport::Udp, port, true).await else {
        eprintln!("SKIPPED both_addresses_of_both_sides_are_used_when_they_are_listed: UDP port {port} is taken");
        return;
    };
    let to = |a: &str| SocketAddr::new(a.parse().unwrap(), port);
    let used = active(&all);
    assert!(used.contains(&("127.0.0.1", to("127.0.0.1"))) && used.len() >= 2, "{all:?}");
    assert!(used.iter().any(|p| p.0 == "127.0.0.2"), "{all:?}");
}

#[tokio::test]
async fn the_same_on_raw_ip() {
    let Some(all) = paths(Transport::RawIp, 7_201, true).await else {
        eprintln!("SKIPPED the_same_on_raw_ip: needs the right CAP_NET_RAW");
        return;
    };
    let used = active(&all);
    assert!(used.len() >= 2 && used.iter().any(|p| p.0 == "127.0.0.2"), "{all:?}");
}

#[tokio::test]
async fn one_path_is_used_when_they_are_not() {
    let Some(all) = paths(Transport::Udp, 27_312, false).await else {
        eprintln!("SKIPPED one_path_is_used_when_they_are_not: UDP port 27312 is taken");
        return;
    };
    assert_eq!(active(&all).len(), 1, "{all:?}");
}

/// An address of the peer to which there is no route takes no path down but its own. (With a default route of IPv6 the
/// test shows nothing.)
#[tokio::test]
async fn an_address_in_another_network_costs_no_path() {
    if !has_ipv6() {
        eprintln!("SKIPPED an_address_in_another_network_costs_no_path: no IPv6 loopback");
        return;
    }
    let mut association = without_asconf();
    association.addresses.listed =
        ["::1", "2001:db8::1"].map(|ip| ListedAddress { local: LocalId(0), ip: ip.parse().unwrap() }).into();
    let server = Endpoint::server(ServerConfig::new("[::1]:0".parse().unwrap(), association)).expect("a server");
    let to = server.listening()[0];
    let client = client();
    let options = ConnectOptions::over(vec![from("::1", to)], without_asconf());
    let (near, _far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let near = near.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(near.stats().paths.iter().any(|p| p.stats.remote.ip() != to.ip()), "{:?}", near.stats().paths);
    let mut events = near.events();
    while let Ok(Some(e)) = tokio::time::timeout(Duration::from_millis(1), events.next()).await {
        let gone = matches!(e.event, Event::PathChanged { reason: PathReason::InterfaceGone, .. });
        assert!(!gone, "{:?}", e.event);
    }
}
