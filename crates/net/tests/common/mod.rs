//! Two endpoints on loopback.
#![allow(dead_code, reason = "each test file uses a part")]

use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Connection, Endpoint, Error, Local, PathSpec, Profile, ServerConfig,
};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub fn config(profile: &str) -> AssocConfig {
    AssocConfig::new(Profile::named(profile).expect("a profile"))
}

pub fn server_at(listen: &str) -> Endpoint {
    Endpoint::server(ServerConfig::new(listen.parse().unwrap(), config("cmt"))).expect("a server")
}

pub fn client() -> Endpoint {
    client_with(|_| {}).expect("a client")
}

/// A client that is configured otherwise.
pub fn client_with(change: impl FnOnce(&mut ClientConfig)) -> Result<Endpoint, Error> {
    let mut config = ClientConfig::default();
    change(&mut config);
    Endpoint::client(config)
}

pub fn from(address: &str, to: SocketAddr) -> PathSpec {
    PathSpec::new(Local::Address(address.parse::<IpAddr>().unwrap()), to)
}

/// A test that hangs has failed.
pub async fn within<T>(seconds: u64, f: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), f).await.expect("it takes too long")
}

/// A client's and a server's end of one association.
pub struct Pair {
    pub client: Endpoint,
    pub server: Endpoint,
    pub near: Connection,
    pub far: Connection,
}

pub async fn pair(listen: &str, sources: &[&str]) -> Pair {
    let server = server_at(listen);
    let to = server.listening()[0];
    let client = client();
    let paths = sources.iter().map(|s| from(s, to)).collect();
    let options = ConnectOptions::over(paths, config("cmt"));
    let accept = async { Ok(server.accept().await.expect("accepted")) };
    let (near, far) = within(10, async { tokio::try_join!(client.connect(options), accept) }).await.expect("connected");
    Pair { client, server, near, far }
}

/// `n` bytes that repeat late and look random.
pub fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..n).map(|_| next()).collect()
}

pub fn has_ipv6() -> bool {
    UdpSocket::bind("[::1]:0").is_ok()
}

/// Passes packets to `server` and back until it is switched off. Ends with the process.
pub fn relay(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(server).unwrap();
    let address = front.local_addr().unwrap();
    let silent = Arc::new(AtomicBool::new(false));
    let client = Arc::new(std::sync::Mutex::new(None));
    let (f, b, c, s) = (front.try_clone().unwrap(), back.try_clone().unwrap(), client.clone(), silent.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok((n, from)) = f.recv_from(&mut buffer) {
            *c.lock().unwrap() = Some(from);
            if !s.load(Ordering::Relaxed) {
                let _ = b.send(&buffer[..n]);
            }
        }
    });
    let s = silent.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok(n) = back.recv(&mut buffer) {
            let to = *client.lock().unwrap();
            if let (Some(to), false) = (to, s.load(Ordering::Relaxed)) {
                let _ = front.send_to(&buffer[..n], to);
            }
        }
    });
    (address, silent)
}
