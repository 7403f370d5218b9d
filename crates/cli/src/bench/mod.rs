//! `anabranch bench`: what the engine costs, and how full it keeps a path.

mod cpu;
mod memory;
mod pair;
mod path;
mod row;
mod sockets;

use crate::exit::{Failure, Outcome};
use row::Row;

/// Measure the engine
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArgs {
    /// TEST TRANSPORT SIZE COUNT [SEED]
    #[arg(num_args = 4..=5)]
    row: Vec<String>,
}

/// Runs.
pub async fn run(args: &BenchArgs) -> Outcome {
    let num = |i: usize| args.row.get(i).and_then(|s| s.parse::<usize>().ok()).unwrap_or(0);
    let env = |name: &str, or: f64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let window = env("RWND", 1_048_576.0) as usize;
    let profile = std::env::var("PROFILE").unwrap_or("sctp".to_owned());
    let (test, transport, size, count) = (&args.row[0], &args.row[1], num(2), num(3));
    let rows: Result<Vec<Row>, String> = match (test.as_str(), transport.as_str()) {
        ("bulk" | "small", "mem") => memory::bulk(&profile, window, size, count),
        ("pingpong", "mem") => memory::ping_pong(&profile, window, size, count),
        ("setup" | "assoc", "mem") => memory::setup(&profile, count),
        ("bulk" | "small", "udp") => sockets::bulk(&profile, window, size, count).await,
        ("pingpong", "udp") => sockets::ping_pong(&profile, window, size, count).await,
        ("path", "vnet") => {
            let p = path::Path {
                rate: env("RATE_MBIT", 100.0),
                rtt: env("RTT_MS", 20.0),
                queue: (env("QLEN_KB", 250.0) * 1000.0) as u64,
                loss: env("LOSS", 0.0),
            };
            path::run(&profile, window, size, count as u64, &p, num(4) as u64 + 1)
        }
        _ => Err(format!("there is no {test} over {transport}")),
    };
    for r in rows.map_err(Failure::network)? {
        println!("{test},anabranch,{transport},{size},{},{:.6}", r.metric, r.value);
    }
    Ok(())
}
