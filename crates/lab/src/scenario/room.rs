//! Queues that would hold no packet of what is sent over them.

use super::error::Problem;
use super::flow::{Flow, LARGEST_DATAGRAM, Transport};
use crate::node::Pairs;
use anabranch_sim::network::{Address, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Sizes, TrafficConfig};
use toml::{Table, Value};

/// Is there a queue that counts bytes?
pub(super) fn counts_bytes(t: &Topology) -> bool {
    t.cables.iter().any(|c| c.forward.limit.bytes.or(c.backward.limit.bytes).is_some())
}

/// Every queue on the ways of the flow must hold one of its packets. `table` is the file's `[topology]`.
pub(super) fn check(table: &Table, t: &Topology, ways: &Network<()>, f: &Flow) -> Result<(), Problem> {
    let Some(packet) = packet(f) else { return Ok(()) };
    let paths = match &f.transport {
        Transport::Sctp(s) => s.paths.unwrap_or(usize::MAX),
        Transport::Tcp(_) | Transport::Udp(_) => 1,
    };
    let pairs: Vec<(Address, Address)> = Pairs::between(ways, &f.from, &f.to).iter().take(paths).collect();
    for link in pairs.iter().filter_map(|(from, to)| ways.way(*from, *to)).flatten() {
        let Some(cable) = t.cables.get(link.0 as usize / 2) else { continue };
        let (config, way) = if link.0 % 2 == 0 { (&cable.forward, "up") } else { (&cable.backward, "down") };
        let charged = packet + u64::from(config.overhead);
        let Some(bytes) = config.limit.bytes.filter(|bytes| *bytes < charged) else { continue };
        let (place, key) = set_at(table, &cable.name, way);
        let what = format!(
            "{bytes} bytes at cable `{}` hold no packet of flow `{}`, which has {charged}: use `down` to cut a path",
            cable.name, f.group
        );
        return Err(Problem::at(&place, &key, what));
    }
    Ok(())
}

/// Where the limit of a cable stands, in one direction: the nearest table that has it.
fn set_at(table: &Table, cable: &str, way: &str) -> (String, String) {
    let listed = table.get("cable").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    let named = listed.filter(|t| t.get("name").and_then(Value::as_str) == Some(cable));
    let own = table.get(cable).and_then(Value::as_table);
    let places = named.map(|t| (format!("cable `{cable}`"), t));
    let places = places.chain(own.map(|t| (format!("[topology.{cable}]"), t)));
    for (place, t) in places.chain([("[topology]".to_owned(), table)]) {
        let one_way = t.get(way).and_then(Value::as_table).map(|t| (format!("{way}."), t));
        for (before, t) in one_way.into_iter().chain([(String::new(), t)]) {
            if let Some(key) = ["limit", "limit-bytes"].into_iter().find(|key| t.contains_key(*key)) {
                return (place, format!("{before}{key}"));
            }
        }
    }
    // A cable without a name of its own, or a limit among the words of a link.
    let place = if table.contains_key("cable") { format!("cable `{cable}`") } else { "[topology]".to_owned() };
    (place, "limit".to_owned())
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
    };
    let payload = match &f.traffic {
        // TCP sends a stream, whatever it is cut from.
        TrafficConfig::Bulk(b) => {
            let size = if matches!(f.transport, Transport::Tcp(_)) { u32::MAX } else { b.size };
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
