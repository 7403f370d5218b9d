//! Rejects queue limits and MTUs smaller than one packet of a flow that crosses the link.

use super::flow::{Flow, LARGEST_DATAGRAM, Transport};
use super::topology::{PLACE, own_table};
use crate::document::{Part, Problem, Table};
use crate::node::Pairs;
use anabranch_engine::AssocConfig;
use anabranch_sim::LinkConfig;
use anabranch_sim::network::{Address, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Sizes, TrafficConfig};

/// Is there a queue that counts bytes, or an MTU?
pub(super) fn limits_packets(t: &Topology) -> bool {
    let of = |c: &LinkConfig| c.limit.bytes.is_some() || c.mtu.is_some();
    t.cables.iter().any(|c| of(&c.forward) || of(&c.backward))
}

/// Every queue on the ways of the flow must hold one of its packets, and every link take the smallest that it can do with.
/// `table` is the file's `[topology]`.
pub(super) fn check(table: &Table, t: &Topology, ways: &Network<()>, f: &Flow) -> Result<(), Problem> {
    let pairs: Vec<(Address, Address)> =
        Pairs::between(ways, &f.from, &f.to).iter().take(f.transport.most_paths()).collect();
    for link in pairs.iter().filter_map(|(from, to)| ways.way(*from, *to)).flatten() {
        let Some(cable) = t.cables.get(link.0 as usize / 2) else { continue };
        let (config, way) = if link.0 % 2 == 0 { (&cable.forward, "up") } else { (&cable.backward, "down") };
        if let Some(mtu) = config.mtu.filter(|mtu| u64::from(*mtu) < least_packet(f)) {
            let (name, least) = (&cable.name, least_packet(f));
            let what = format!(
                "packets of {mtu} bytes at cable `{name}` are too small for flow `{}`, which needs {least}: use `down` \
                 to cut a path",
                f.group
            );
            return Err(at_limit(table, name, way, &["mtu"], &what));
        }
        let Some(packet) = packet(f) else { continue };
        let charged = packet + u64::from(config.overhead);
        let Some(bytes) = config.limit.bytes.filter(|bytes| *bytes < charged) else { continue };
        let what = format!(
            "{bytes} bytes at cable `{}` hold no packet of flow `{}`, which has {charged}: use `down` to cut a path",
            cable.name, f.group
        );
        return Err(at_limit(table, &cable.name, way, &["limit", "limit-bytes"], &what));
    }
    Ok(())
}

/// The mistake at one of these keys of a cable, in one direction: in the nearest table that has it.
fn at_limit(table: &Table, cable: &str, way: &str, keys: &[&str], what: &str) -> Problem {
    let listed = own_table(table, cable);
    let (named, own) = (format!("cable `{cable}`"), format!("[topology.{cable}]"));
    let parts = [listed.map(|t| (named.as_str(), t)), table.table(cable).map(|t| (own.as_str(), t))];
    let parts: Vec<Part<'_>> =
        parts.into_iter().flatten().chain([(PLACE, table)]).map(|(name, t)| Part::new(name, t)).collect();
    for part in &parts {
        let one_way = part.table.table(way).map(|t| (format!("{way}."), t));
        for (before, t) in one_way.into_iter().chain([(String::new(), part.table)]) {
            if let Some(key) = keys.iter().find(|key| t.contains(key)) {
                return part.at(&format!("{before}{key}"), what);
            }
        }
    }
    // It is among the words of another key.
    let key = keys.first().copied().unwrap_or_default();
    parts.first().map_or_else(|| Part::new(PLACE, table).at(key, what), |part| part.at(key, what))
}

/// The bytes of the smallest packets with which the flow carries anything, headers included: what an association works
/// with, a full segment, a datagram of one byte.
fn least_packet(f: &Flow) -> u64 {
    match &f.transport {
        Transport::Sctp(s) => AssocConfig::MIN_PACKET_SIZE as u64 + u64::from(s.overhead),
        // Of a stream of bytes the segments are full where more waits.
        Transport::Tcp(_) | Transport::Mptcp(_) => packet(f).unwrap_or(1),
        Transport::Udp(header) => packet(f).unwrap_or(u64::from(*header) + 1),
    }
}

/// The bytes of the smallest full packet that the flow will send, headers included, if that is known.
fn packet(f: &Flow) -> Option<u64> {
    let (full, headers) = match &f.transport {
        Transport::Sctp(s) => {
            let headers = anabranch_wire::COMMON_HEADER_LEN + anabranch_wire::DATA_HEADER_LEN;
            (s.config(0).ok()?.1, headers as u64 + u64::from(s.overhead))
        }
        Transport::Tcp(c) => (c.segment, u64::from(c.header)),
        Transport::Udp(header) => (LARGEST_DATAGRAM, u64::from(*header)),
        Transport::Mptcp(m) => (m.config.tcp.segment, u64::from(m.config.tcp.header)),
    };
    let payload = match &f.traffic {
        // TCP sends a stream, whatever it is cut from.
        TrafficConfig::Bulk(b) => {
            let size = if matches!(f.transport, Transport::Tcp(_) | Transport::Mptcp(_)) { u32::MAX } else { b.size };
            size.min(b.total.map_or(u32::MAX, |t| u32::try_from(t).unwrap_or(u32::MAX)))
        }
        TrafficConfig::Cbr(c) => c.size,
        TrafficConfig::Vbr(v) => v.min_size,
        TrafficConfig::ParetoOnOff(p) => match p.sizes {
            Sizes::Fixed(size) => size,
            _ => return None,
        },
        _ => return None,
    };
    Some(u64::from(payload.min(full)) + headers)
}
