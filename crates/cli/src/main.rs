//! The binary `anabranch`: live video and messages over several networks at once.

#![allow(rustdoc::broken_intra_doc_links, reason = "doc comments are the help text, where brackets mean optional")]

mod bench;
mod config;
mod control;
mod demo;
mod emulate;
#[cfg(test)]
mod examples;
mod exit;
mod filemark;
mod generate;
mod input;
mod interrupt;
mod lab;
mod line;
mod mediahint;
mod monitor;
mod netargs;
mod output;
mod overwrite;
mod policies;
mod quality;
mod recv;
mod reload;
mod runtime;
mod send;
mod session;
mod stats;
mod stop;
mod trace;
mod transport;
mod tunnel;
mod udp;
mod units;
mod uri;
mod warn;

use clap::{CommandFactory, Parser, Subcommand};
use exit::{Failure, Outcome};
use runtime::Threads;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

const EXAMPLES: &str = "\
Examples:
  anabranch recv anabranch://:9899 udp://127.0.0.1:5000
  anabranch send udp://:5001 anabranch://host:9899?latency=300 --path wlan0 --path wwan0
  anabranch COMMAND --help has more for each command.

Exit codes: 0 done; 1 the network or the peer failed; 2 the user's mistake; 3 a control failed; 130 interrupted.";

/// Live video and messages over several networks at once
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, after_help = EXAMPLES)]
struct Cli {
    /// More log lines on standard error: -v, -vv, -vvv; RUST_LOG says more precisely what
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<bench::BenchArgs>),
    Demo(demo::DemoArgs),
    Send(Box<send::SendArgs>),
    Recv(Box<recv::RecvArgs>),
    Tunnel(Box<tunnel::TunnelArgs>),
    Emulate(Box<emulate::EmulateArgs>),
    Lab(Box<lab::LabArgs>),
    Quality(quality::QualityArgs),
    Trace(trace::TraceArgs),
    Policies(policies::PoliciesArgs),
    Generate(generate::GenerateArgs),
}

impl Command {
    /// Does the user want to read nothing?
    fn is_quiet(&self) -> bool {
        match self {
            Command::Send(args) => args.stats.quiet,
            Command::Recv(args) => args.stats.quiet,
            Command::Tunnel(args) => args.stats.quiet,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let args = match config::expand(&Cli::command(), std::env::args_os().collect()) {
        Ok(args) => args,
        Err(failure) => return exit::finish(Err(failure)),
    };
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => return refuse(&e),
    };
    let quiet = cli.command.is_quiet();
    warn::be_quiet(quiet);
    log(cli.verbose, quiet);
    let carries = matches!(cli.command, Command::Send(_) | Command::Recv(_) | Command::Tunnel(_));
    let threads = if carries { Threads::of_a_stream() } else { Threads::of_a_tool() };
    match (threads, cli.command) {
        (Ok(threads), Command::Send(args)) => threads.run_task(async { end(send::run(*args).await) }),
        (Ok(threads), Command::Recv(args)) => threads.run_task(async { end(recv::run(*args).await) }),
        (Ok(threads), command) => threads.run(run(command)),
        (Err(e), _) => exit::finish(Err(Failure::network(format!("the runtime cannot be started: {e}")))),
    }
}

async fn run(command: Command) -> ExitCode {
    let outcome: Outcome = match command {
        // It has an exit code of its own: 3 when its control failed.
        Command::Demo(args) => return demo::run(args).await,
        Command::Bench(args) => bench::run(*args).await,
        Command::Send(args) => send::run(*args).await,
        Command::Recv(args) => recv::run(*args).await,
        Command::Tunnel(args) => tunnel::run(*args).await,
        Command::Emulate(args) => emulate::run(*args).await,
        Command::Lab(args) => lab::run(*args).await,
        Command::Quality(args) => quality::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Generate(args) => generate::run(&args, Cli::command()),
    };
    end(outcome)
}

fn end(outcome: Outcome) -> ExitCode {
    // What failed then failed because it was cut short.
    exit::finish(if interrupt::is_overdue() { Err(Failure::Interrupted) } else { outcome })
}

/// Help and version as they are; mistakes in one line.
fn refuse(e: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind as K;
    match e.kind() {
        K::DisplayHelp | K::DisplayVersion => {
            if let Err(error) = e.print() {
                tracing::debug!(%error, "the help cannot be written");
            }
            ExitCode::SUCCESS
        }
        K::DisplayHelpOnMissingArgumentOrSubcommand | K::MissingSubcommand => {
            let cli = Cli::command();
            let names: Vec<&str> = cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name()).collect();
            let what = format!("which command? there are {}; see `anabranch --help`", names.join(", "));
            exit::finish(Err(Failure::usage(what)))
        }
        _ => exit::finish(Err(Failure::usage(exit::clap_line(e)))),
    }
}

fn log(verbose: u8, quiet: bool) {
    let level = match verbose {
        0 if quiet => "off",
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if logs.try_init().is_err() {
        eprintln!("anabranch: warning: no log");
    }
}
