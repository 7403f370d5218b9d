//! Over UDP on loopback: the driver that users get, both ends in this process.

use super::cpu;
use super::pair::config;
use super::row::Row;
use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Connection, Endpoint, SendOptions, ServerConfig, StreamId,
};
use bytes::Bytes;
use std::time::{Duration, Instant};

/// A run that gets nowhere for so long is given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Messages read under one lock.
const READ: usize = 256;

/// Both ends of an association on loopback. The endpoints live as long as this.
struct Loop {
    client: Connection,
    server: Connection,
    _ends: (Endpoint, Endpoint),
}

impl Loop {
    async fn connected(mut config: AssocConfig) -> Result<Loop, String> {
        config.sending.max_burst = 0;
        let text = |e: anabranch_net::Error| e.to_string();
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Endpoint::server(ServerConfig::new(listen, config.clone())).map_err(text)?;
        let client = Endpoint::client(ClientConfig::default()).map_err(text)?;
        let to = *server.listening().first().ok_or("not listening")?;
        let (c, s) = tokio::join!(client.connect(ConnectOptions::new(to, config)), server.accept());
        Ok(Loop { client: c.map_err(text)?, server: s.ok_or("the server was closed")?, _ends: (server, client) })
    }
}

/// `total` bytes one way in messages of `size`.
pub(super) async fn bulk(profile: &str, window: usize, size: usize, total: usize) -> Result<Vec<Row>, String> {
    let l = Loop::connected(config(profile, window)?).await?;
    let n = total / size;
    let before = (cpu::seconds(), Instant::now());
    let sender = l.client.clone();
    let writer = tokio::spawn(async move {
        let message = Bytes::from(vec![0x5a_u8; size]);
        let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
        for _ in 0..n {
            sender.send(options, message.clone()).await.map_err(|e| e.to_string())?;
        }
        Ok::<_, String>(())
    });
    let (mut got, mut bytes, mut list) = (0, 0, Vec::new());
    while got < n {
        let more = tokio::time::timeout(PATIENCE, l.server.recv_many(&mut list, READ)).await;
        got += more.map_err(|_| format!("stalled after {got} of {n} messages"))?.map_err(|e| e.to_string())?;
        bytes += list.drain(..).map(|m| m.payload.len()).sum::<usize>();
    }
    writer.await.map_err(|e| e.to_string())??;
    let (cpu, wall) = (cpu::seconds() - before.0, before.1.elapsed().as_secs_f64());
    if bytes != n * size {
        return Err(format!("{bytes} bytes arrived of {}", n * size));
    }
    Ok(vec![
        Row::new("cpu_s_per_GB", cpu / (bytes as f64 / 1e9)),
        Row::new("msgs_per_cpu_s", got as f64 / cpu),
        Row::new("GB_per_wall_s", bytes as f64 / 1e9 / wall),
    ])
}

/// Request and answer, one at a time.
pub(super) async fn ping_pong(profile: &str, window: usize, size: usize, rounds: usize) -> Result<Vec<Row>, String> {
    let l = Loop::connected(config(profile, window)?).await?;
    let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
    let server = l.server.clone();
    let echo = tokio::spawn(async move {
        while let Ok(Some(m)) = server.recv().await {
            if server.send(options, m.payload.into_bytes()).await.is_err() {
                break;
            }
        }
    });
    let message = Bytes::from(vec![1_u8; size]);
    let mut times = Vec::with_capacity(rounds);
    let before = cpu::seconds();
    for _ in 0..rounds {
        let begin = Instant::now();
        l.client.send(options, message.clone()).await.map_err(|e| e.to_string())?;
        let answer = tokio::time::timeout(PATIENCE, l.client.recv()).await;
        answer.map_err(|_| "no answer".to_owned())?.map_err(|e| e.to_string())?;
        times.push(begin.elapsed());
    }
    let cpu = cpu::seconds() - before;
    echo.abort();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok(vec![
        Row::new("cpu_us_per_round", cpu * 1e6 / rounds as f64),
        Row::new("p50_us", at(0.5)),
        Row::new("p99_us", at(0.99)),
    ])
}
