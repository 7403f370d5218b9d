//! One game over anabranch, TCP, ENet and QUIC, through the same emulated links, in turn; see `benches/game.sh`.
//!
//! The game is that of `crates/net/examples/game`, whose files are used here. Each bot has a line of its own with the
//! emulator between it and the server; server, bots and emulator are in this process and have one clock.

mod anabranch;
mod args;
mod bridge;
mod enet;
#[path = "../../../crates/net/examples/game/line.rs"]
mod line;
#[path = "../../../crates/net/examples/game/play.rs"]
mod play;
mod quic;
mod round;
mod stack;
#[allow(dead_code, reason = "some of it is for the tests")]
#[path = "../../../crates/net/examples/game/tally.rs"]
mod tally;
mod tcp;

use args::Args;
use bridge::Bridge;
use round::{Links, Measured, Setting};
use stack::Result;
use tally::{Class, Row};

/// All of one stack at one loss.
#[derive(Default)]
struct Cell {
    sum: Measured,
    rounds: u32,
    /// Rounds that were done again.
    again: u32,
}

fn main() {
    let args = Args::read().unwrap_or_else(|what| {
        eprintln!("game: {what}");
        std::process::exit(2);
    });
    match compare(&args) {
        Ok(true) => {}
        Ok(false) => std::process::exit(3),
        Err(e) => {
            eprintln!("game: {e}");
            std::process::exit(1);
        }
    }
}

/// True when every round was beside a control that passed.
fn compare(args: &Args) -> Result<bool> {
    let mut bridge = None;
    let mut stacks: Vec<&str> = args.stacks.iter().map(String::as_str).collect();
    if stacks.contains(&"tcp") {
        match Bridge::start() {
            Ok(started) => bridge = Some(started),
            Err(e) => {
                println!("SKIPPED tcp: no TUN interface could be made: {e}");
                stacks.retain(|s| *s != "tcp");
            }
        }
    }
    let mut cells: Vec<Vec<Cell>> =
        args.losses.iter().map(|_| stacks.iter().map(|_| Cell::default()).collect()).collect();
    let mut all_passed = true;
    for round in 0..args.rounds {
        for (loss, row) in args.losses.iter().zip(&mut cells) {
            for (stack, cell) in stacks.iter().zip(row) {
                let setting = Setting { args, loss, seed: u64::from(round) + 1, bridge: bridge.as_ref() };
                all_passed &= one(&setting, stack, cell, round)?;
            }
        }
    }
    print(args, &stacks, &cells);
    Ok(all_passed)
}

/// A round, again where the control did not pass.
fn one(setting: &Setting<'_>, stack: &str, cell: &mut Cell, round: u32) -> Result<bool> {
    for try_ in 1..=setting.args.tries {
        let what = format!("round {}, {} % loss, {stack}", round + 1, setting.loss);
        let measured = play_over(setting, stack).map_err(|e| format!("{what}: {e}"))?;
        match &measured.failure {
            None => {
                eprintln!("{what}: {}", measured.short());
                cell.sum.add(&measured);
                cell.rounds += 1;
                return Ok(true);
            }
            Some(why) => {
                eprintln!("{what}: the control failed ({why}), try {try_} of {}", setting.args.tries);
                cell.again += 1;
            }
        }
    }
    Ok(false)
}

fn play_over(setting: &Setting<'_>, stack: &str) -> Result<Measured> {
    match stack {
        "anabranch" => round::play(setting, anabranch::Anabranch("low-latency"), Links::One),
        "anabranch-two" => round::play(setting, anabranch::Anabranch("low-latency"), Links::Two),
        "live" => round::play(setting, anabranch::Anabranch("live"), Links::One),
        "tcp" => round::play(setting, tcp::Tcp, Links::Bridged),
        "enet" => round::play(setting, enet::Enet, Links::One),
        _ => round::play(setting, quic::Quic::new()?, Links::One),
    }
}

fn print(args: &Args, stacks: &[&str], cells: &[Vec<Cell>]) {
    let rules = &args.rules;
    println!(
        "{} bots, {} messages a second each way, worth {} ms; {} rounds of {} s; each bot: {}; the second link: {}",
        rules.bots,
        rules.rate,
        rules.lifetime.as_millis(),
        args.rounds,
        args.seconds,
        args.link,
        args.second,
    );
    println!("\nloss  stack         class {}", Row::HEADER);
    let each = |print: &dyn Fn(&str, &str, &Cell)| {
        for (loss, row) in args.losses.iter().zip(cells) {
            for (stack, cell) in stacks.iter().zip(row).filter(|(_, c)| c.rounds > 0) {
                print(loss, stack, cell);
            }
        }
    };
    each(&|loss, stack, cell| {
        for class in Class::ALL {
            let name = format!("{class:?}").to_lowercase();
            println!("{loss:>3} % {stack:<13} {name:<6}{}", cell.sum.tally.row(class, rules.limit(class)));
        }
        println!("{loss:>3} % {stack:<13} age   {}", cell.sum.tally.ages(rules.lifetime));
        if cell.sum.tally.disorder() > 0 {
            println!("{stack}: {} messages of chat came out of order", cell.sum.tally.disorder());
        }
    });
    println!("\nloss  stack         kbit/s of each bot: from the server, to it   processor   again");
    each(&|loss, stack, cell| {
        let seconds = f64::from(cell.rounds) * args.seconds as f64;
        let rate = |bytes: u64| bytes as f64 * 8.0 / 1_000.0 / seconds / f64::from(rules.bots);
        println!(
            "{loss:>3} % {stack:<13} {:>34.1} {:>11.1} {:>9.1} % {:>7}",
            rate(cell.sum.down),
            rate(cell.sum.up),
            cell.sum.cpu / seconds * 100.0,
            cell.again
        );
    });
}
