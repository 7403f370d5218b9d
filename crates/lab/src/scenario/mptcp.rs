//! Flows over Multipath TCP and over what is reconstructed on it.

use super::flow::{Mptcp, Transport, refuse_strangers};
use super::tcp_udp;
use super::units::Size;
use crate::document::{Part, Problem, read};
use anabranch_sim::transport::mptcp::{
    Coding, Coupling, DSS, FmtcpConfig, MOST_SOURCES, MptcpConfig, NcConfig, Scheduler,
};
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule, TcpConfig};
use serde::Deserialize;

/// Keys of a flow over Multipath TCP that say what its subflows do.
const OF_SUBFLOWS: [&str; 13] = [
    "recovery",
    "rules",
    "segment",
    "header",
    "window",
    "initial-window",
    "initial-ssthresh",
    "delayed-ack",
    "quick-ack",
    "coalesce",
    "rto-min",
    "prr",
    "tail-probe",
];

/// Its other keys, and those of the transports that are reconstructed on it.
pub(super) const OF_MPTCP: [&str; 10] = [
    "coupling",
    "receive-buffer",
    "paths",
    "scheduler",
    "opportunistic",
    "penalise",
    "generation",
    "symbol",
    "block",
    "margin",
];

/// Those of a transport by its name.
fn own_keys(name: &str) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match name {
        "fmtcp" => &["symbol", "block", "margin"],
        "nc-mptcp" => &["generation"],
        _ => &["scheduler", "opportunistic", "penalise"],
    };
    ["coupling", "receive-buffer", "paths"].into_iter().chain(own.iter().copied())
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Keys {
    coupling: Option<String>,
    scheduler: Option<String>,
    receive_buffer: Option<Size>,
    opportunistic: Option<bool>,
    penalise: Option<bool>,
    paths: Option<usize>,
    generation: Option<i64>,
    symbol: Option<i64>,
    block: Option<i64>,
    margin: Option<i64>,
}

/// A flow over Multipath TCP, `nc-mptcp` or `fmtcp`, and the payload of a segment.
pub(super) fn mptcp(part: Part<'_>, name: &str) -> Result<(Transport, u32), Problem> {
    let known: Vec<&str> = OF_SUBFLOWS.iter().copied().chain(own_keys(name)).collect();
    refuse_strangers(part, name, &known)?;
    let mut own = part.table.clone();
    let subflows = own.split(|key| OF_SUBFLOWS.contains(&key));
    let (subflows, own) = (Part::new(part.name, &subflows), Part::new(part.name, &own));
    let mut config = MptcpConfig { tcp: tcp(subflows, name)?, ..MptcpConfig::rfc() };
    let keys: Keys = read(own)?;
    if let Some(name) = &keys.coupling {
        config.coupling = one_of(own, "coupling", name, &Coupling::ALL, Coupling::name)?;
    }
    if let Some(name) = &keys.scheduler {
        config.scheduler = one_of(own, "scheduler", name, &Scheduler::ALL, Scheduler::name)?;
    }
    config.receive_buffer = keys.receive_buffer.map_or(config.receive_buffer, |s| s.0);
    if config.receive_buffer < u64::from(config.tcp.segment) || config.receive_buffer > 1 << 32 {
        let what = format!(
            "is {}, and must lie between a segment of {} bytes and 4GB",
            config.receive_buffer, config.tcp.segment
        );
        return Err(own.at("receive-buffer", what));
    }
    config.opportunistic = keys.opportunistic.unwrap_or(config.opportunistic);
    config.penalise = keys.penalise.unwrap_or(config.penalise);
    config.coding = coding(own, name, &config, &keys)?;
    config.check().map_err(|e| part.wrong(e))?;
    let mptcp = Mptcp { config, paths: keys.paths };
    Ok((Transport::Mptcp(mptcp), config.tcp.segment))
}

/// What its packets carry.
fn coding(own: Part<'_>, name: &str, config: &MptcpConfig, keys: &Keys) -> Result<Coding, Problem> {
    let number = |key: &str, said: Option<i64>, default: u16, least: i64| match said {
        None => Ok(default),
        Some(n) if n >= least && n <= i64::from(MOST_SOURCES) => Ok(n as u16),
        Some(n) => Err(own.at(key, format!("is {n}, and must lie between {least} and {MOST_SOURCES}"))),
    };
    Ok(match name {
        "fmtcp" => {
            let default = FmtcpConfig::DEFAULT;
            Coding::Fmtcp(FmtcpConfig {
                symbol: symbol(own, config.tcp.segment, keys.symbol)?,
                block: number("block", keys.block, default.block, 1)?,
                margin: number("margin", keys.margin, default.margin, 0)?,
            })
        }
        "nc-mptcp" => {
            let generation = number("generation", keys.generation, NcConfig::DEFAULT.generation, 1)?;
            let most = config.segments_held();
            if keys.generation.is_some() && u64::from(generation) > most {
                let (segment, buffer) = (config.tcp.segment, config.receive_buffer);
                let what = format!(
                    "is {generation} segments of {segment} bytes, and a receive buffer of {buffer} bytes holds {most}"
                );
                return Err(own.at("generation", what));
            }
            Coding::Nc(NcConfig { generation })
        }
        _ => Coding::Plain,
    })
}

/// Bytes of a symbol, of which one to sixteen fit a segment.
fn symbol(own: Part<'_>, segment: u32, said: Option<i64>) -> Result<u32, Problem> {
    let symbols = FmtcpConfig::symbols(segment);
    let symbol = said.unwrap_or(FmtcpConfig::DEFAULT.symbol.into());
    if let Some(fits) = u32::try_from(symbol).ok().filter(|s| symbols.contains(s)) {
        return Ok(fits);
    }
    let (least, most) = (symbols.start(), symbols.end());
    let what = format!("is {symbol}, and must lie between {least} and {most}, for segments of {segment} bytes");
    Err(own.at("symbol", what))
}

/// The one of these names.
fn one_of<T: Copy>(
    part: Part<'_>,
    key: &str,
    name: &str,
    all: &[T],
    called: fn(T) -> &'static str,
) -> Result<T, Problem> {
    let names = || all.iter().map(|t| called(*t)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|t| called(*t) == name);
    found.ok_or_else(|| part.at(key, format!("is one of {}, not `{name}`", names())))
}

/// What its subflows do: windows grow as Reno's or as they are coupled, whatever a host does by default.
fn tcp(part: Part<'_>, name: &str) -> Result<TcpConfig, Problem> {
    let mut c = tcp_udp::config(part, Recovery::Sack(SackRule::Rfc6675))?;
    c.congestion = Congestion::Reno;
    if !matches!(c.recovery, Recovery::NewReno | Recovery::Sack(SackRule::Rfc6675) | Recovery::Rack) {
        return Err(part.at("recovery", format!("is newreno, sack or rack in a flow over {name}")));
    }
    let has = |key: &str| part.table.contains(key);
    if !has("segment") {
        c.segment = c.segment.saturating_sub(DSS).max(1);
    }
    if !has("header") {
        c.header += DSS;
    }
    Ok(c)
}
