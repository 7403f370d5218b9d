//! The game of `examples/game`: that it works, not how quick this machine is.

#[path = "../examples/game/line.rs"]
mod line;
#[path = "../examples/game/play.rs"]
mod play;
#[allow(dead_code, reason = "the table is the example's")]
#[path = "../examples/game/tally.rs"]
mod tally;

use anabranch_net::{AssocConfig, Endpoint};
use line::{Bot, Player};
use play::{Rules, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tally::{Class, Tally};

const RULES: Rules =
    Rules { bots: 4, rate: 30, lifetime: Duration::from_millis(100), chat_every: Duration::from_millis(50) };

fn association() -> AssocConfig {
    line::association("low-latency").expect("a profile")
}

/// A server that lets all in; its socket may need a moment where an earlier one had the address.
async fn open(at: SocketAddr, tally: &Arc<Tally>) -> (Endpoint, Arc<Server<Player>>) {
    let endpoint = loop {
        match line::open(at, association()) {
            Ok(endpoint) => break endpoint,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let server = Server::new(RULES, tally.clone());
    let (door, host, ticking) = (endpoint.clone(), server.clone(), server.clone());
    tokio::spawn(async move {
        while let Some(connection) = door.accept().await {
            let host = host.clone();
            tokio::spawn(async move { host.play(Player { connection, lifetime: RULES.lifetime.into() }).await });
        }
    });
    tokio::spawn(async move { ticking.tick().await });
    (endpoint, server)
}

fn enter(at: SocketAddr, tally: &Arc<Tally>) {
    for number in 0..RULES.bots {
        let bot = Bot::new(&[at], association(), RULES.lifetime.into()).expect("a bot");
        let tally = tally.clone();
        tokio::spawn(async move { play::bot(RULES, &tally, number, bot).await });
    }
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let waiting = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("not in 20 s: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_chat_comes_in_order_and_states_come() {
    let tally = Arc::new(Tally::default());
    let (endpoint, server) = open("127.0.0.1:0".parse().expect("an address"), &tally).await;
    enter(endpoint.listening()[0], &tally);
    until("all play", || server.players() == usize::from(RULES.bots)).await;
    tally.begin(Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let row = |class| tally.row(class, RULES.limit(class));
    until("all chat is there", || row(Class::Chat).made == row(Class::Chat).handed_over).await;
    assert!(row(Class::Chat).made >= 40 && tally.disorder() == 0, "{:?}, {}", row(Class::Chat), tally.disorder());
    for class in [Class::Input, Class::State] {
        let row = row(class);
        // A busy machine may skip ticks and let some become too old.
        assert!(row.made >= 30 && row.handed_over * 2 > row.made, "{class:?}: {row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_come_back_when_the_server_restarts() {
    let tally = Arc::new(Tally::default());
    let (endpoint, server) = open("127.0.0.1:0".parse().expect("an address"), &tally).await;
    let at = endpoint.listening()[0];
    enter(at, &tally);
    until("all play", || server.players() == usize::from(RULES.bots)).await;
    endpoint.close("restarting");
    endpoint.wait_idle().await;
    until("all are gone", || server.players() == 0).await;
    drop((endpoint, server));
    let (_endpoint, server) = open(at, &tally).await;
    until("all play again", || server.players() == usize::from(RULES.bots)).await;
    tally.begin(Duration::from_secs(20));
    let states = || tally.row(Class::State, RULES.lifetime).handed_over;
    until("states come again", || states() > u64::from(RULES.bots)).await;
}
