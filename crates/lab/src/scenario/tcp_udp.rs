//! Flows over TCP, and flows of UDP datagrams.

use super::flow::{LARGEST_DATAGRAM, Transport, refuse_strangers};
use super::units::{Time, Window};
use crate::document::{Part, Problem, read};
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule, TcpConfig};
use serde::Deserialize;

/// Bytes that a packet can have.
const IP_PACKET: u64 = 65_535;

/// Keys of a flow over TCP.
pub(super) const OF_TCP: [&str; 18] = [
    "recovery",
    "congestion",
    "rules",
    "segment",
    "header",
    "window",
    "initial-window",
    "initial-ssthresh",
    "delayed-ack",
    "quick-ack",
    "nagle",
    "coalesce",
    "rto-min",
    "hystart",
    "fast-convergence",
    "prr",
    "tail-probe",
    "validate-window",
];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TcpKeys {
    recovery: Option<String>,
    congestion: Option<String>,
    rules: Option<String>,
    segment: Option<u32>,
    header: Option<u32>,
    window: Option<u32>,
    initial_window: Option<Window>,
    initial_ssthresh: Option<Window>,
    delayed_ack: Option<Time>,
    quick_ack: Option<bool>,
    nagle: Option<bool>,
    coalesce: Option<bool>,
    rto_min: Option<Time>,
    hystart: Option<bool>,
    fast_convergence: Option<bool>,
    prr: Option<bool>,
    tail_probe: Option<bool>,
    validate_window: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UdpKeys {
    header: Option<u32>,
}

/// Whose rules, with which recovery and which congestion control.
fn rules(part: Part<'_>, keys: &TcpKeys, default: Recovery) -> Result<TcpConfig, Problem> {
    let recovery = match keys.recovery.as_deref() {
        None => None,
        Some("tahoe") => Some(Recovery::Tahoe),
        Some("reno") => Some(Recovery::Reno),
        Some("newreno") => Some(Recovery::NewReno),
        Some("sack") => Some(Recovery::Sack(SackRule::Rfc6675)),
        Some("sack-pipe") => Some(Recovery::Sack(SackRule::Pipe)),
        Some("rack") => Some(Recovery::Rack),
        Some(other) => {
            let what = format!("is tahoe, reno, newreno, sack, sack-pipe or rack, not `{other}`");
            return Err(part.at("recovery", what));
        }
    };
    let congestion = match keys.congestion.as_deref() {
        None => None,
        Some("reno") => Some(Congestion::Reno),
        Some("cubic") => Some(Congestion::Cubic),
        Some(other) => return Err(part.at("congestion", format!("is reno or cubic, not `{other}`"))),
    };
    // CUBIC needs selective acknowledgements.
    let cubic = congestion == Some(Congestion::Cubic);
    let other = recovery.unwrap_or(if cubic { Recovery::Sack(SackRule::Rfc6675) } else { default });
    let mut c = match keys.rules.as_deref().unwrap_or("rfc") {
        "rfc" => TcpConfig::rfc(other),
        "ns2" => TcpConfig::ns2(other),
        "linux" => TcpConfig::linux(),
        other => return Err(part.at("rules", format!("is rfc, ns2 or linux, not `{other}`"))),
    };
    if let Some(recovery) = recovery {
        c.recovery = recovery;
        if !c.is_selective() {
            c.congestion = Congestion::Reno;
        }
    }
    c.congestion = congestion.unwrap_or(c.congestion);
    if c.congestion == Congestion::Cubic && !c.is_selective() {
        return Err(part.at("recovery", "is sack, sack-pipe or rack with `congestion = \"cubic\"`"));
    }
    Ok(c)
}

/// A flow over TCP, and the payload of a segment.
pub(super) fn tcp(part: Part<'_>) -> Result<(Transport, u32), Problem> {
    refuse_strangers(part, "tcp", &OF_TCP)?;
    let c = config(part, Recovery::NewReno)?;
    Ok((Transport::Tcp(c), c.segment))
}

/// What the keys of a TCP make; `recovery` is that of a flow that names none.
pub(super) fn config(part: Part<'_>, recovery: Recovery) -> Result<TcpConfig, Problem> {
    let keys: TcpKeys = read(part)?;
    let mut c = rules(part, &keys, recovery)?;
    let set = |slot: &mut u32, value: Option<u32>| *slot = value.unwrap_or(*slot);
    set(&mut c.segment, keys.segment);
    set(&mut c.header, keys.header);
    set(&mut c.window, keys.window);
    let segments = |key: &str, window: Option<Window>| {
        let wrong = || part.at(key, "is in segments: write a number, \"10p\" or \"10 segments\"");
        window.map(|w| w.segments().ok_or_else(wrong)).transpose()
    };
    set(&mut c.initial_window, segments("initial-window", keys.initial_window)?);
    c.initial_ssthresh = segments("initial-ssthresh", keys.initial_ssthresh)?.or(c.initial_ssthresh);
    if let Some(Time(wait)) = keys.delayed_ack {
        c.delayed_ack = (!wait.is_zero()).then_some(wait);
    }
    let set = |slot: &mut bool, value: Option<bool>| *slot = value.unwrap_or(*slot);
    set(&mut c.quick_ack, keys.quick_ack);
    set(&mut c.nagle, keys.nagle);
    set(&mut c.coalesce, keys.coalesce);
    set(&mut c.hystart, keys.hystart);
    set(&mut c.fast_convergence, keys.fast_convergence);
    set(&mut c.prr, keys.prr);
    set(&mut c.tail_probe, keys.tail_probe);
    set(&mut c.validate_window, keys.validate_window);
    c.rto.min = keys.rto_min.map_or(c.rto.min, |t| t.0);
    if c.rto.min > c.rto.max {
        return Err(
            part.at("rto-min", format!("must not be above the longest time-out, {} s", c.rto.max.as_secs_f64()))
        );
    }
    let least = [
        ("segment", c.segment, "byte"),
        ("window", c.window, "segment"),
        ("initial-window", c.initial_window, "segment"),
    ];
    if let Some((key, _, what)) = least.iter().find(|l| l.1 == 0) {
        return Err(part.at(key, format!("needs one {what} or more")));
    }
    if u64::from(c.segment) + u64::from(c.header) > IP_PACKET {
        let key = if u64::from(c.header) < IP_PACKET { "segment" } else { "header" };
        let what = format!(
            "an IP packet holds {IP_PACKET} bytes, and this makes it one of {}",
            u64::from(c.segment) + u64::from(c.header)
        );
        return Err(part.at(key, what));
    }
    c.check().map_err(|e| part.wrong(e))?;
    Ok(c)
}

/// A flow of datagrams, and the payload of a full one.
pub(super) fn udp(part: Part<'_>) -> Result<(Transport, u32), Problem> {
    refuse_strangers(part, "udp", &["header"])?;
    let keys: UdpKeys = read(part)?;
    let header = keys.header.unwrap_or(28);
    // What counts as a stream's has longer ones (the mix of Xu et al. 2014).
    if u64::from(header) + u64::from(LARGEST_DATAGRAM) + 12 > IP_PACKET {
        return Err(part.at("header", format!("an IP packet holds {IP_PACKET} bytes")));
    }
    Ok((Transport::Udp(header), LARGEST_DATAGRAM))
}
