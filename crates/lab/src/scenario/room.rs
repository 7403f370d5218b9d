//! Queues that would hold no packet of what is sent over them.

use super::error::Problem;
use super::flow::{Flow, Transport};
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
        let config = if link.0 % 2 == 0 { &cable.forward } else { &cable.backward };
        let Some(bytes) = config.limit.bytes.filter(|bytes| *bytes < packet) else { continue };
        let place = match &cable.name {
            name if table.contains_key("cable") => format!("cable `{name}`"),
            name if table.get(name).is_some_and(Value::is_table) => format!("[topology.{name}]"),
            _ => "[topology]".to_owned(),
        };
        let what = format!(
            "{bytes} bytes at cable `{}` hold no packet of flow `{}`, which has {packet}: use `down` to cut a path",
            cable.name, f.group
        );
        return Err(Problem::at(&place, "limit", what));
    }
    Ok(())
}

/// The bytes of the smallest full packet that the flow will send, headers included, if that is known.
fn packet(f: &Flow) -> Option<u64> {
    let (full, headers) = match &f.transport {
        Transport::Sctp(s) => {
            let headers = anabranch_wire::COMMON_HEADER_LEN + anabranch_wire::DATA_HEADER_LEN;
            (s.config(0).ok()?.1, headers as u64 + u64::from(s.overhead))
        }
        Transport::Tcp(c) => (c.segment, u64::from(c.header)),
        Transport::Udp(header) => (u32::MAX, u64::from(*header)),
    };
    let payload = match &f.traffic {
        TrafficConfig::Bulk(b) => b.size,
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
