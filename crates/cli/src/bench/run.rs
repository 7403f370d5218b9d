//! One run of one cell.

use super::{memory, path, sockets};
use crate::exit::{Failure, Outcome};
use std::io::Write;

/// TEST TRANSPORT SIZE COUNT [SEED]; windows, profile and the path are in the environment, as for every stack.
#[derive(Clone, Debug, clap::Args)]
pub struct RowArgs {
    test: String,
    transport: String,
    size: usize,
    count: usize,
    #[arg(default_value_t = 0)]
    seed: u64,
}

/// Measures and prints.
pub async fn row(args: &RowArgs) -> Outcome {
    let window = setting("RWND", 1_048_576.0) as usize;
    let profile = std::env::var("PROFILE").unwrap_or_else(|_| "sctp".to_owned());
    let RowArgs { test, transport, size, count, seed } = args;
    if matches!(test.as_str(), "bulk" | "small") && (*size == 0 || count < size) {
        return Err(Failure::usage("COUNT is less than one message of SIZE"));
    }
    let rows = match (test.as_str(), transport.as_str()) {
        ("bulk" | "small", "mem") => memory::bulk(&profile, window, *size, *count),
        ("pingpong", "mem") => memory::ping_pong(&profile, window, *size, *count),
        ("setup" | "assoc", "mem") => memory::setup(&profile, *count),
        ("bulk" | "small", "udp") => sockets::bulk(&profile, window, *size, *count).await,
        ("pingpong", "udp") => sockets::ping_pong(&profile, window, *size, *count).await,
        ("path", "vnet") => path::run(&profile, window, *size, *count as u64, &bottleneck(), *seed),
        _ => return Err(Failure::usage(format!("there is no test {test} over {transport}"))),
    };
    let mut out = std::io::stdout().lock();
    for r in rows.map_err(Failure::network)? {
        let written = writeln!(out, "{test},anabranch,{transport},{size},{},{:.6}", r.metric, r.value);
        written.map_err(Failure::network)?;
    }
    Ok(())
}

fn bottleneck() -> path::Path {
    path::Path {
        rate: setting("RATE_MBIT", 100.0),
        rtt: setting("RTT_MS", 20.0),
        queue: (setting("QLEN_KB", 250.0) * 1_000.0) as u64,
        loss: setting("LOSS", 0.0),
    }
}

fn setting(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
