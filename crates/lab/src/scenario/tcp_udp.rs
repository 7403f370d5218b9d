//! Flows over TCP, and flows of UDP datagrams.

use super::flow::{LARGEST_DATAGRAM, Transport, refuse_strangers};
use super::units::Time;
use crate::document::{Part, Problem, read};
use anabranch_sim::transport::tcp::{Recovery, SackRule, TcpConfig};
use serde::Deserialize;

/// Bytes that a packet can have.
const IP_PACKET: u64 = 65_535;

/// Keys of a flow over TCP.
pub(super) const OF_TCP: [&str; 8] =
    ["recovery", "rules", "segment", "header", "window", "initial-window", "initial-ssthresh", "delayed-ack"];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TcpKeys {
    recovery: Option<String>,
    rules: Option<String>,
    segment: Option<u32>,
    header: Option<u32>,
    window: Option<u32>,
    initial_window: Option<u32>,
    initial_ssthresh: Option<u32>,
    delayed_ack: Option<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UdpKeys {
    header: Option<u32>,
}

/// A flow over TCP, and the payload of a segment.
pub(super) fn tcp(part: Part<'_>) -> Result<(Transport, u32), Problem> {
    refuse_strangers(part, "tcp", &OF_TCP)?;
    let keys: TcpKeys = read(part)?;
    let recovery = match keys.recovery.as_deref().unwrap_or("newreno") {
        "tahoe" => Recovery::Tahoe,
        "reno" => Recovery::Reno,
        "newreno" => Recovery::NewReno,
        "sack" => Recovery::Sack(SackRule::Rfc6675),
        "sack-pipe" => Recovery::Sack(SackRule::Pipe),
        other => {
            let what = format!("is tahoe, reno, newreno, sack or sack-pipe, not `{other}`");
            return Err(part.at("recovery", what));
        }
    };
    let mut c = match keys.rules.as_deref().unwrap_or("rfc") {
        "rfc" => TcpConfig::rfc(recovery),
        "ns2" => TcpConfig::ns2(recovery),
        other => return Err(part.at("rules", format!("is rfc or ns2, not `{other}`"))),
    };
    let set = |slot: &mut u32, value: Option<u32>| *slot = value.unwrap_or(*slot);
    set(&mut c.segment, keys.segment);
    set(&mut c.header, keys.header);
    set(&mut c.window, keys.window);
    set(&mut c.initial_window, keys.initial_window);
    c.initial_ssthresh = keys.initial_ssthresh.or(c.initial_ssthresh);
    if let Some(Time(wait)) = keys.delayed_ack {
        c.delayed_ack = (!wait.is_zero()).then_some(wait);
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
    Ok((Transport::Tcp(c), c.segment))
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
