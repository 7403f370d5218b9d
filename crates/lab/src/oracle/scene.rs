//! The lines of a flow in a scenario.

use super::{Carriage, Line};
use crate::scenario::{Flow, LARGEST_DATAGRAM, Plan, Transport};
use anabranch_base::{Duration, Rate};
use anabranch_sim::LinkConfig;
use anabranch_sim::network::LinkId;
use anabranch_sim::topology::Topology;

/// How a flow's frames become packets; none for one whose frames are not cut.
pub(crate) fn carriage(f: &Flow) -> Option<Carriage> {
    let cut = f.cut?;
    Some(match &f.transport {
        Transport::Sctp(s) => {
            let config = s.config(0).ok()?.0;
            let largest = config.mtu.packet_size as u32 + s.overhead;
            let limit = config.mtu.discovery.map_or(largest, |d| largest.max(d.max as u32 + s.overhead));
            let packet = anabranch_wire::COMMON_HEADER_LEN as u32 + s.overhead;
            Carriage { cut, chunk: anabranch_wire::DATA_HEADER_LEN as u32, packet, largest, limit }
        }
        Transport::Tcp(c) => {
            let largest = c.segment + c.header;
            Carriage { cut, chunk: 0, packet: c.header, largest, limit: largest }
        }
        Transport::Mptcp(m) => {
            let largest = m.config.tcp.segment + m.config.tcp.header;
            Carriage { cut, chunk: 0, packet: m.config.tcp.header, largest, limit: largest }
        }
        Transport::Udp(header) => {
            let largest = LARGEST_DATAGRAM + header;
            Carriage { cut, chunk: 0, packet: *header, largest, limit: largest }
        }
    })
}

/// The narrowest link of each of these ways, each once.
pub(crate) fn narrow<'p>(plan: &'p Plan, ways: &[Vec<LinkId>], packet: u32) -> Option<Vec<&'p LinkConfig>> {
    let mut ids: Vec<LinkId> = Vec::new();
    for way in ways {
        let (id, _) = narrowest(plan, way, packet)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids.into_iter().map(|id| link(&plan.topology, id)).collect()
}

/// The lines over these ways, one for each narrowest link. With `others`, the ways of other flows, a link is shared
/// with those that use it. None where a way has no rate that is known, or more than one link that changes or loses.
pub(crate) fn lines(
    plan: &Plan,
    ways: &[Vec<LinkId>],
    others: &[Vec<LinkId>],
    seed: u64,
    packet: u32,
) -> Option<Vec<Line>> {
    let mut narrow: Vec<(LinkId, Duration)> = Vec::new();
    for way in ways {
        let (id, beside) = narrowest(plan, way, packet)?;
        match narrow.iter_mut().find(|n| n.0 == id) {
            Some(known) => known.1 = known.1.min(beside),
            None => narrow.push((id, beside)),
        }
    }
    let line = |(id, beside): (LinkId, Duration)| {
        let users = 1 + others.iter().filter(|w| w.contains(&id)).count();
        let config = link(&plan.topology, id)?;
        let name = &plan.topology.cables.get(id.0 as usize / 2)?.name;
        let way = if id.0.is_multiple_of(2) { "forward" } else { "backward" };
        Some(Line::new(&format!("{name}.{way}"), seed, config, 1.0 / users as f64, beside, plan.duration))
    };
    narrow.into_iter().map(line).collect()
}

fn link(t: &Topology, id: LinkId) -> Option<&LinkConfig> {
    let cable = t.cables.get(id.0 as usize / 2)?;
    Some(if id.0.is_multiple_of(2) { &cable.forward } else { &cable.backward })
}

/// The link of a way that carries least, and the time that a packet takes on the others.
fn narrowest(plan: &Plan, way: &[LinkId], packet: u32) -> Option<(LinkId, Duration)> {
    let links: Vec<(LinkId, &LinkConfig)> =
        way.iter().map(|id| Some((*id, link(&plan.topology, *id)?))).collect::<Option<_>>()?;
    if links.iter().any(|(_, l)| l.deliveries.is_some()) {
        return None;
    }
    let capacity = |l: &LinkConfig| l.capacity(Duration::ZERO, plan.duration).unwrap_or(f64::INFINITY);
    let least = |a: &&(LinkId, &LinkConfig), b: &&(LinkId, &LinkConfig)| capacity(a.1).total_cmp(&capacity(b.1));
    let id = links.iter().min_by(least)?.0;
    let mut beside = Duration::ZERO;
    for (_, l) in links.iter().filter(|(other, _)| *other != id) {
        let constant = l.schedule.changes().is_empty() && l.jitter == anabranch_sim::Jitter::None;
        if !constant || !l.loss.is_none() || l.reorder > 0.0 {
            return None;
        }
        let charged = u64::from(packet) + u64::from(l.overhead);
        beside += l.delay + l.rate.map_or(Duration::ZERO, |r: Rate| r.time_for(charged));
    }
    Some((id, beside))
}
