//! `anabranch tunnel`: any UDP, both ways.
//!
//! Each message is a datagram behind the number of its flow, four bytes. A flow is one client of the side that
//! listens; the other side gives each flow a socket of its own, so that answers find their way back.

mod enter;
mod flows;
mod leave;

use crate::exit::{Failure, Outcome};
use crate::netargs::{PathArgs, PolicyArgs};
use crate::overwrite::Files;
use crate::recv::DoorArgs;
use crate::session::{DATA_STREAM, ppid};
use crate::stats::StatsArgs;
use crate::units;
use anabranch_net::{Payload, SendOptions};
use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  At home: what a local program sends to port 5000 goes over two networks at once …
    anabranch tunnel --listen udp://127.0.0.1:5000 anabranch://host:9899 --path wlan0 --path wwan0
  … and on the host it comes out towards port 6000; answers go back the same way:
    anabranch tunnel --accept anabranch://:9899 --forward udp://127.0.0.1:6000

Exit codes: 0 done; 1 the network or the peer failed; 2 wrong flags; 130 interrupted.";

/// Carry any UDP both ways
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TunnelArgs {
    /// anabranch://HOST:PORT of the other side, together with --listen
    #[arg(value_name = "PEER", conflicts_with = "accept", requires = "listen")]
    pub peer: Option<String>,
    /// Take datagrams of clients here
    #[arg(long, value_name = "udp://[ADDRESS]:PORT", conflicts_with = "accept")]
    pub listen: Option<String>,
    /// Wait for the other side here
    #[arg(long, value_name = "anabranch://[ADDRESS]:PORT", requires = "forward")]
    pub accept: Option<String>,
    /// Where the clients' datagrams go
    #[arg(long, value_name = "udp://ADDRESS:PORT", requires = "accept")]
    pub forward: Option<String>,
    /// A datagram that could not be sent for so long is given up; 0 for never
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::latency)]
    pub latency: Duration,
    /// Deliver datagrams in order
    #[arg(long)]
    pub ordered: bool,
    /// The side with --listen ends when the other cannot be reached, ends or is lost. Without it it tries again until there
    /// is one; what clients send meanwhile is dropped
    #[arg(long, conflicts_with = "accept")]
    pub once: bool,
    /// Who may come.
    #[command(flatten)]
    pub door: DoorArgs,
    /// Paths of the tunnel.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Policies of the association.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Statistics of the session.
    #[command(flatten)]
    pub stats: StatsArgs,
}

/// Runs the command.
pub async fn run(args: TunnelArgs) -> Outcome {
    Files::of_session(&args.policies, &args.stats).check()?;
    match (&args.listen, &args.peer, &args.accept, &args.forward) {
        (Some(_), Some(_), None, None) if args.door.is_named() => {
            Err(Failure::usage("--from and --waiting-per-address go with the side that waits, the one with --accept"))
        }
        (Some(listen), Some(peer), None, None) => enter::run(&args, listen, peer).await,
        (None, None, Some(accept), Some(forward)) => leave::run(&args, accept, forward).await,
        _ => Err(Failure::usage(
            "a tunnel is either --listen udp://… anabranch://HOST:PORT or --accept anabranch://… --forward udp://…",
        )),
    }
}

/// How datagrams are sent.
#[derive(Clone, Copy, Debug)]
struct Manner {
    latency: Duration,
    ordered: bool,
}

impl Manner {
    fn options(self) -> SendOptions {
        SendOptions {
            stream: DATA_STREAM,
            unordered: !self.ordered,
            ppid: ppid::TUNNEL,
            deadline: (!self.latency.is_zero()).then(|| anabranch_net::now() + self.latency.into()),
            class: 0,
            ..SendOptions::default()
        }
    }
}

fn wrap(flow: u32, datagram: &[u8]) -> Bytes {
    let mut b = BytesMut::with_capacity(4 + datagram.len());
    b.put_u32(flow);
    b.put_slice(datagram);
    b.freeze()
}

/// Flow and datagram of a message; none for anything else.
fn unwrap(ppid: u32, payload: Payload) -> Option<(u32, Bytes)> {
    if ppid != ppid::TUNNEL {
        return None;
    }
    let bytes = payload.into_bytes();
    let flow = u32::from_be_bytes(*bytes.first_chunk::<4>()?);
    Some((flow, bytes.slice(4..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let unwrap = |ppid, payload| unwrap(ppid, Payload::single(payload));
        let wrapped = wrap(7, b"abc");
        assert_eq!(unwrap(ppid::TUNNEL, wrapped.clone()), Some((7, Bytes::from_static(b"abc"))));
        assert_eq!(unwrap(ppid::TUNNEL, wrap(1, b"")), Some((1, Bytes::new())));
        assert_eq!(unwrap(ppid::TUNNEL, Bytes::from_static(b"abc")), None);
        assert_eq!(unwrap(ppid::BYTES, wrapped), None);
    }
}
