//! An authoritative server and bots that play on it: inputs and states that are worth something for 100 ms, and chat that
//! is reliable and in order. At the end, how long messages of each class took from being made to being handed over.
//!
//! ```sh
//! cargo run --release -p anabranch-net --example game
//! cargo run --release -p anabranch-net --example game -- --bots 10 --rate 60 --seconds 20
//! ```
//!
//! With `--listen 127.0.0.1:9899 --via 127.0.0.1:7001` the bots reach the server through `anabranch emulate` on port 7001;
//! `--via` may be given twice, for two paths. `line.rs` is what a game needs of anabranch, `play.rs` the game.

mod line;
mod play;
#[allow(dead_code, reason = "some of it is read by the test (tests/game.rs) alone")]
mod tally;

use line::{Bot, Player};
use play::{Rules, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tally::{Class, Row, Tally};

struct Args {
    rules: Rules,
    seconds: u64,
    profile: String,
    listen: SocketAddr,
    via: Vec<SocketAddr>,
}

fn args() -> Result<Args, String> {
    let (rules, listen) = (Rules::default(), SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut args = Args { rules, seconds: 5, profile: "low-latency".into(), listen, via: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(format!("{flag} needs a value"));
        let number = |least: u64| match value.clone()?.parse::<u64>() {
            Ok(n) if (least..=10_000).contains(&n) => Ok(n),
            _ => Err(format!("{flag} needs a number from {least} to 10000")),
        };
        let address = || value.clone()?.parse().map_err(|_| format!("{flag} needs an address such as 127.0.0.1:7001"));
        match flag.as_str() {
            "--bots" => args.rules.bots = number(1)? as u16,
            "--rate" => args.rules.rate = number(1)? as u32,
            "--lifetime" => args.rules.lifetime = Duration::from_millis(number(1)?),
            "--chat-every" => args.rules.chat_every = Duration::from_millis(number(1)?),
            "--seconds" => args.seconds = number(1)?,
            "--profile" => args.profile = value?,
            "--listen" => args.listen = address()?,
            "--via" => args.via.push(address()?),
            _ => {
                return Err(format!(
                    "there is no {flag}; there are --bots, --rate, --seconds, --lifetime and --chat-every (ms), --profile, \
                     --listen, --via"
                ));
            }
        }
    }
    Ok(args)
}

async fn play(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let rules = args.rules;
    let tally = Arc::new(Tally::default());
    let association = line::association(&args.profile)?;
    let lifetime = rules.lifetime.into();

    // The server: each player has a task that reads, one task sends to all.
    let endpoint = line::open(args.listen, association.clone())?;
    let server = Server::new(rules, tally.clone());
    let (door, host, ticking) = (endpoint.clone(), server.clone(), server.clone());
    tokio::spawn(async move {
        while let Some(connection) = door.accept().await {
            let host = host.clone();
            tokio::spawn(async move { host.play(Player { connection, lifetime }).await });
        }
    });
    tokio::spawn(async move { ticking.tick().await });

    // The bots.
    let reached_at = if args.via.is_empty() { endpoint.listening() } else { &args.via };
    for number in 0..rules.bots {
        let bot = Bot::new(reached_at, association.clone(), lifetime)?;
        let tally = tally.clone();
        tokio::spawn(async move { play::bot(rules, &tally, number, bot).await });
    }
    let all_there = async {
        while server.players() < usize::from(rules.bots) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all_there).await.map_err(|_| "not all bots could connect in 20 s")?;

    let before = endpoint.stats();
    tally.begin(Duration::from_secs(args.seconds));
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    let after = endpoint.stats();
    // What was made last may still come.
    tokio::time::sleep(Duration::from_secs(1)).await;

    println!("class {} (times in ms)", Row::HEADER);
    for class in Class::ALL {
        println!("{:<6}{}", format!("{class:?}").to_lowercase(), tally.row(class, rules.limit(class)));
    }
    println!("age   {}", tally.ages(rules.lifetime));
    // Headers of IP and UDP are on the wire too.
    let rate = |bytes: u64, packets: u64| (bytes + 28 * packets) * 8 / 1_000 / args.seconds / u64::from(rules.bots);
    println!(
        "on the wire for each bot: {} kbit/s from the server, {} kbit/s to it",
        rate(after.bytes_sent - before.bytes_sent, after.packets_sent - before.packets_sent),
        rate(after.bytes_received - before.bytes_received, after.packets_received - before.packets_received),
    );
    if tally.disorder() > 0 {
        return Err(format!("{} messages of chat came out of order", tally.disorder()).into());
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    let args = args().unwrap_or_else(|what| {
        eprintln!("game: {what}");
        std::process::exit(2);
    });
    if let Err(e) = play(&args).await {
        eprintln!("game: {e}");
        std::process::exit(1);
    }
}
