//! Interfaces of a network namespace: packets leave by the configured interface whatever the routing table prefers, and
//! paths survive interfaces that vanish and return. Needs root and `ip`; skipped by name otherwise.

mod common;

use anabranch_net::{
    ClientConfig, ConnectOptions, Connection, Endpoint, Event, Events, Local, PathId, PathReason, PathSpec, PathState,
    SendOptions, ServerConfig,
};
use common::{config, within};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::process::Command;
use std::time::Duration;

/// Two namespaces with two cables between them. The client's only default route leads over `w0`.
struct World {
    client: String,
    server: String,
}

fn ip(words: &str) -> bool {
    let out = Command::new("ip").args(words.split_whitespace()).output();
    let ok = out.as_ref().is_ok_and(|o| o.status.success());
    if let (false, Ok(o)) = (ok, &out) {
        eprintln!("ip {words}: {}", String::from_utf8_lossy(&o.stderr).trim());
    }
    ok
}

impl World {
    fn new(test: &str) -> Option<World> {
        let usable = nix::unistd::geteuid().is_root() && Command::new("ip").arg("-V").output().is_ok();
        let id = std::process::id() % 10_000;
        let w = World { client: format!("abc{test}{id}"), server: format!("abs{test}{id}") };
        if !usable || !ip(&format!("netns add {}", w.client)) || !ip(&format!("netns add {}", w.server)) {
            eprintln!("SKIPPED {test}: needs root, ip and network namespaces");
            return None;
        }
        for ns in [&w.client, &w.server] {
            assert!(ip(&format!("-n {ns} link set lo up")));
            // Answers may arrive where the routing table would not send.
            for name in ["all", "default"] {
                let key = format!("net.ipv4.conf.{name}.rp_filter=0");
                let _ = Command::new("ip").args(["netns", "exec", ns, "sysctl", "-qw", &key]).status();
            }
        }
        assert!(ip(&format!("-n {} addr add 10.79.0.1/32 dev lo", w.server)));
        w.plug(0, "10.70.0.2");
        w.plug(1, "10.71.0.2");
        assert!(ip(&format!("-n {} route add default via 10.70.0.1 dev w0", w.client)));
        Some(w)
    }

    /// Cable `n`, with this address at the client's end.
    fn plug(&self, n: u8, address: &str) {
        let World { client, server } = self;
        assert!(ip(&format!("-n {client} link add w{n} type veth peer name s{n} netns {server}")));
        assert!(ip(&format!("-n {server} addr add 10.7{n}.0.1/24 dev s{n}")));
        assert!(ip(&format!("-n {server} link set s{n} up")));
        assert!(ip(&format!("-n {client} addr add {address}/24 dev w{n}")));
        assert!(ip(&format!("-n {client} link set w{n} up")));
        // The kernel takes a moment to see the carrier.
        let state = || Command::new("ip").args(["-n", client, "link", "show", "dev", &format!("w{n}")]).output();
        while !String::from_utf8_lossy(&state().unwrap().stdout).contains("state UP") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes that left the client through `w{n}`.
    fn sent(&self, n: u8) -> u64 {
        let ns = &self.client;
        let out = Command::new("ip").args(["netns", "exec", ns, "cat", "/proc/net/dev"]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let line = text.lines().find_map(|l| l.trim().strip_prefix(&format!("w{n}:"))).unwrap();
        line.split_whitespace().nth(8).unwrap().parse().unwrap()
    }

    /// Runs `f` on a thread inside a namespace. Threads it starts are inside too.
    fn inside<T: Send + 'static>(ns: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
        let file = File::open(format!("/var/run/netns/{ns}")).expect("the namespace");
        let enter = move || {
            setns(file, CloneFlags::CLONE_NEWNET).expect("entered");
            f()
        };
        std::thread::spawn(enter).join().expect("no panic")
    }

    /// Both endpoints, and a connection over the given locals.
    async fn connect(&self, locals: &[&str]) -> (Endpoint, Endpoint, Connection, Connection) {
        let server = World::inside(&self.server, || {
            Endpoint::server(ServerConfig::new("0.0.0.0:9899".parse().unwrap(), config("cmt"))).unwrap()
        });
        let client = World::inside(&self.client, || Endpoint::client(ClientConfig::default()).unwrap());
        let to = "10.79.0.1:9899".parse().unwrap();
        let paths = locals.iter().map(|l| PathSpec::new(l.parse::<Local>().unwrap(), to)).collect();
        let options = ConnectOptions::over(paths, config("cmt"));
        // Sockets are made by the thread that connects.
        let (c, o) = (client.clone(), options);
        let connect = World::inside_async(&self.client, async move { c.connect(o).await });
        let accept = async { server.accept().await.ok_or("closed".to_owned()) };
        let both = async { tokio::try_join!(async { connect.await.map_err(|e| e.to_string()) }, accept) };
        let (near, far) = within(10, both).await.expect("a connection");
        (client, server, near, far)
    }

    async fn inside_async<T: Send + 'static>(ns: &str, f: impl Future<Output = T> + Send + 'static) -> T {
        let ns = ns.to_owned();
        let run = move || {
            World::inside(&ns, move || {
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f)
            })
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for ns in [&self.client, &self.server] {
            ip(&format!("netns del {ns}"));
        }
    }
}

async fn active(c: &Connection, n: usize) {
    within(20, async {
        while c.stats().paths.iter().filter(|p| p.stats.state == PathState::Active).count() != n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Waits for a change of a path.
async fn change(events: &mut Events, path: u8, want: impl Fn(PathState, PathReason) -> bool) {
    within(20, async {
        loop {
            let e = events.next().await.expect("it lives on");
            if let Event::PathChanged { path: p, to, reason, .. } = e.event
                && p == PathId(path)
                && want(to, reason)
            {
                return;
            }
        }
    })
    .await;
}

/// Sends messages for a while and checks that each arrives, in order.
async fn talk(near: &Connection, far: &Connection, messages: u32) {
    let sending = async {
        for i in 0..messages {
            let mut m = vec![7; 1_000];
            m[..4].copy_from_slice(&i.to_be_bytes());
            near.send(SendOptions::default(), m.into()).await.unwrap();
        }
    };
    let receiving = async {
        for i in 0..messages {
            let m = far.recv().await.unwrap().unwrap().payload.into_bytes();
            assert_eq!(m[..4], i.to_be_bytes());
        }
    };
    within(60, async { tokio::join!(sending, receiving) }).await;
}

#[tokio::test]
async fn packets_leave_by_the_configured_interface() {
    let Some(w) = World::new("bind") else { return };
    // One by its name, one by its address; the routing table knows the first only.
    let (_c, _s, near, far) = w.connect(&["w0", "10.71.0.2"]).await;
    active(&near, 2).await;
    let before = [w.sent(0), w.sent(1)];
    talk(&near, &far, 4_000).await;
    let sent = [w.sent(0) - before[0], w.sent(1) - before[1]];
    assert!(sent.iter().all(|&b| b > 1_000_000), "{sent:?}");
    let paths = near.stats().paths;
    assert_eq!(paths.iter().map(|p| p.local.as_str()).collect::<Vec<_>>(), ["w0", "10.71.0.2"]);
}

/// The second interface is pulled out and comes back with another address.
#[tokio::test]
async fn an_interface_vanishes_and_returns_with_another_address() {
    let Some(w) = World::new("gone") else { return };
    let (_c, _s, near, far) = w.connect(&["w0", "w1"]).await;
    active(&near, 2).await;
    let mut events = near.events();
    talk(&near, &far, 500).await;
    assert!(ip(&format!("-n {} link del w1", w.client)));
    change(&mut events, 1, |_, why| why == PathReason::InterfaceGone).await;
    talk(&near, &far, 500).await;
    w.plug(1, "10.71.0.9");
    change(&mut events, 1, |to, _| to == PathState::Active).await;
    let before = w.sent(1);
    talk(&near, &far, 4_000).await;
    assert!(w.sent(1) - before > 1_000_000);
    let address = near.stats().paths[1].address;
    assert_eq!(address.ip().to_string(), "10.71.0.9");
}

/// Likewise for the interface that carried the handshake.
#[tokio::test]
async fn the_first_interface_gets_another_address() {
    let Some(w) = World::new("first") else { return };
    let (_c, _s, near, far) = w.connect(&["w0", "w1"]).await;
    active(&near, 2).await;
    let mut events = near.events();
    talk(&near, &far, 500).await;
    let began = std::time::Instant::now();
    assert!(ip(&format!("-n {} addr flush dev w0", w.client)));
    change(&mut events, 0, |_, why| why == PathReason::InterfaceGone).await;
    assert!(ip(&format!("-n {} addr add 10.70.0.9/24 dev w0", w.client)));
    change(&mut events, 0, |to, _| to == PathState::Active).await;
    eprintln!("back after {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let before = w.sent(0);
    talk(&near, &far, 4_000).await;
    assert!(w.sent(0) - before > 1_000_000);
}

/// The only interface is away for a while: the connection goes on where it stopped.
#[tokio::test]
async fn the_only_interface_is_away_for_a_while() {
    let Some(w) = World::new("only") else { return };
    let (_c, _s, near, far) = w.connect(&["w1"]).await;
    let mut events = near.events();
    talk(&near, &far, 500).await;
    assert!(ip(&format!("-n {} link set w1 down", w.client)));
    change(&mut events, 0, |_, why| why == PathReason::InterfaceGone).await;
    let began = std::time::Instant::now();
    let go_on = talk(&near, &far, 2_000);
    let plug = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(ip(&format!("-n {} link set w1 up", w.client)));
    };
    tokio::join!(go_on, plug);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// An interface too narrow for our packets (and for their offload) only loses what it was given.
#[tokio::test]
async fn an_interface_too_narrow_for_packets_harms_no_other() {
    let Some(w) = World::new("mtu") else { return };
    assert!(ip(&format!("-n {} link set w1 mtu 1000", w.client)));
    let (client, _s, near, far) = w.connect(&["w0", "w1"]).await;
    active(&near, 2).await;
    talk(&near, &far, 200).await;
    assert!(client.stats().send_errors > 0);
}

/// No route at all: the error names the reason.
#[tokio::test]
async fn without_a_route_the_error_says_so() {
    let Some(w) = World::new("route") else { return };
    let connect = World::inside_async(&w.client, async {
        let client = Endpoint::client(ClientConfig::default()).unwrap();
        let mut options = ConnectOptions::new("203.0.113.1:9899".parse().unwrap(), config("cmt"));
        options.timeout = Duration::from_secs(1);
        client.connect(options).await.err().map(|e| e.to_string())
    });
    assert!(ip(&format!("-n {} route del default", w.client)));
    let text = within(10, connect).await.expect("no peer is there");
    assert_eq!(text, "203.0.113.1:9899 does not answer within 1 s (*: Network is unreachable)");
}
