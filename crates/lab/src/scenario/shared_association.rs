//! `association = "state"`: a flow whose messages leave on the association of another, on streams of their own.

use super::flow::{self, Flow, Transport};
use crate::document::{Part, Problem, Table};
use crate::metrics::{Delay, FlowMetric};

/// What such a flow says itself; everything else is its association's.
const OWN: [&str; 14] = [
    "name",
    "association",
    "enabled",
    "note",
    "traffic",
    "playout",
    "deadline",
    "psnr-rate",
    "class",
    "streams",
    "class-streams",
    "unordered",
    "lifetime",
    "max-retransmissions",
];

/// And what of the flow whose association it is does not concern it.
const NOT_SHARED: [&str; 4] = ["follow-rate", "least-rate", "rate-lag", "media-hint"];

/// Most streams of one association: what the other end takes of them (`inbound_streams`).
const MOST_STREAMS: u16 = 2_048;

/// Most flows that share an association with another.
const MOST: usize = 15;

/// The name of the flow whose association `table` shares, and its keys as if it had one of its own; none where it has.
/// `all` are the tables of all flows.
pub(super) fn of(table: &Table, all: &[&Table]) -> Result<Option<(String, Table)>, Problem> {
    let place = format!("flow `{}`", flow::name(table)?);
    let part = Part::new(&place, table);
    let Some(node) = table.get("association") else { return Ok(None) };
    let name = node.as_text().ok_or_else(|| part.at("association", "needs the name of a flow"))?;
    // Above it, since both begin in that order.
    let above = all.iter().take_while(|t| !std::ptr::eq(**t, table));
    let Some(other) = above.copied().find(|t| flow::name(t).is_ok_and(|n| n == name)) else {
        return Err(part.at("association", format!("there is no flow `{name}` above it")));
    };
    if other.contains("association") {
        return Err(part.at("association", format!("flow `{name}` shares one itself: name the flow that has it")));
    }
    if let Some(key) = table.keys().find(|key| NOT_SHARED.contains(key)) {
        return Err(part.named(key, format!("`{key}` needs an association of its own: remove it")));
    }
    if let Some(key) = table.keys().find(|key| !OWN.contains(key)) {
        flow::known_over_sctp(part, key, &OWN)?;
        return Err(part.named(key, format!("`{key}` is one of its association: say it in flow `{name}`")));
    }
    let mut merged = other.clone();
    merged.split(|key| OWN.contains(&key) || NOT_SHARED.contains(&key));
    for (key, entry) in table.clone().into_entries().filter(|(key, _)| key != "association") {
        merged.insert(&key, entry);
    }
    Ok(Some((name.to_owned(), merged)))
}

/// Reads such a flow, whose association is that of `name`, of which `flows` has all members. Its streams follow those that are
/// in use there.
pub(super) fn join(
    part: Part<'_>,
    name: &str,
    mut own: Vec<Flow>,
    flows: &mut [&mut Flow],
) -> Result<Vec<Flow>, Problem> {
    let mut others = flows.iter_mut().filter(|f| f.group == name);
    for f in &mut own {
        // Not enabled.
        let Some(other) = others.next() else { return Ok(Vec::new()) };
        let over = other.transport.name();
        let (Transport::Sctp(theirs), Transport::Sctp(ours)) = (&mut other.transport, &mut f.transport) else {
            return Err(part.at("association", format!("flow `{name}` is over {over}, and only sctp has streams")));
        };
        if theirs.shared_by >= MOST {
            return Err(part.at("association", format!("more than {MOST} flows share that of `{name}`")));
        }
        let used = theirs.delivery.stream_count().checked_add(theirs.shared_streams);
        let all = used.and_then(|used| used.checked_add(ours.delivery.stream_count()));
        let (Some(used), Some(_)) = (used, all.filter(|all| *all <= MOST_STREAMS)) else {
            let what = format!("the flows on that of `{name}` have more than {MOST_STREAMS} streams together");
            return Err(part.at("association", what));
        };
        ours.delivery.first_stream = used;
        theirs.shared_streams += ours.delivery.stream_count();
        theirs.shared_by += 1;
        f.association = Some(name.to_owned());
    }
    Ok(own)
}

/// Is the metric made of a flow's messages alone, and not of its association?
pub(super) fn is_of_messages(m: FlowMetric) -> bool {
    use FlowMetric as M;
    match m {
        M::Mean(d) | M::Percentile(d, _) | M::Longest(d) => d != Delay::Packet,
        M::Goodput | M::Share | M::Messages | M::Convergence | M::Jain | M::DeadlineMisses => true,
        M::Due(_) | M::Picture(_) | M::Viewed(_) | M::Framed(_) => true,
        _ => false,
    }
}
