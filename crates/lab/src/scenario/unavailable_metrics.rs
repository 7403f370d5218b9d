//! Why a metric has no value at a point of the sweep.

use super::flow::{Flow, Transport};
use super::plan::{Measure, Of, Plan, covers};
use super::sctp::Sctp;
use super::shared_association;
use crate::metrics::{Delay, FlowMetric, Framed, Lateness, LinkMetric, is_of_mptcp, is_stage};
use anabranch_base::Instant;
use anabranch_policy::registry::{self, Hook};
use anabranch_sim::LinkConfig;
use anabranch_sim::traffic::TrafficConfig;

/// Why the metric is empty in every run of this point; none when it may have a value.
pub(super) fn why(plan: &Plan, m: &Measure) -> Option<String> {
    match &m.of {
        Of::Flow(of, metric) => {
            let members: Vec<&Flow> = plan.flows.iter().filter(|f| covers(of, &f.group)).collect();
            let lack = |f: &&Flow| Some(format!("flow `{}` {}", f.group, missing_in(f, *metric)?));
            let lacking: Vec<String> = members.iter().filter_map(lack).collect();
            // A sum needs all members; delays and deadlines are taken of those that have some.
            let any = matches!(
                metric,
                FlowMetric::Mean(_) | FlowMetric::Percentile(..) | FlowMetric::Longest(_) | FlowMetric::DeadlineMisses
            );
            let window = plan.window(m);
            if *metric == FlowMetric::Framed(Framed::Recovery) && plan.events_in(window).is_empty() {
                let none = || "none of the `events` begins in its time".to_owned();
                let needs = || "the scenario needs `events`, such as [\"8s-9s\"]".to_owned();
                return Some(if plan.events.is_empty() { needs() } else { none() });
            }
            let recorded = plan.topology.cables.iter().find(|c| c.forward.deliveries.is_some());
            if let (FlowMetric::Framed(of), Some(cable)) = (metric, recorded)
                && of.is_bound()
            {
                return Some(format!("it needs a `rate`, and cable `{}` has a recording", cable.name));
            }
            let repeating = |l: &LinkConfig| l.repeats > 0 && !l.loss.is_none();
            let repeating = plan.topology.cables.iter().find(|c| repeating(&c.forward));
            if let (FlowMetric::Framed(of), Some(cable)) = (metric, repeating)
                && of.is_bound()
            {
                return Some(format!("it knows no repetitions, and cable `{}` has `arq`", cable.name));
            }
            let late = |f: &&Flow| window.from_start(Instant::ZERO + f.start).is_empty();
            match (members.first(), lacking.first()) {
                (None, _) => Some(format!("no flow `{of}` is enabled")),
                (Some(f), _) if members.iter().all(late) => {
                    Some(format!("flow `{}` starts when that is over", f.group))
                }
                (_, Some(_)) if any && lacking.len() < members.len() => None,
                (_, first) => first.cloned(),
            }
        }
        Of::Link(of, LinkMetric::Utilisation) => {
            let cable = plan.topology.cables.iter().find(|c| c.name == *of)?;
            let (from, until) = plan.window(m).span();
            cable.forward.capacity(from, until).is_none().then(|| format!("cable `{of}` needs a `rate`"))
        }
        Of::Link(..) => None,
        Of::Drawn(key) => plan.drawn.iter().all(|d| d.key != *key).then(|| format!("no value of `{key}` is drawn")),
        Of::Derived(d) => d.parts().find_map(|part| Some(format!("in `{}`, {}", part.name, why(plan, part)?))),
    }
}

/// What a flow would need for a metric: the words after its name.
fn missing_in(f: &Flow, m: FlowMetric) -> Option<String> {
    use FlowMetric as M;
    if let Some(of) = f.association.as_ref().filter(|_| !shared_association::is_of_messages(m)) {
        return Some(format!("shares the association of `{of}`, whose metric that is: ask `{of}`"));
    }
    let over = f.transport.name();
    let sctp = if let Transport::Sctp(s) = &f.transport { Some(s) } else { None };
    let only = |transports: &[&str], instead: &str| {
        let what = || format!("is over {over}, and only {} has that{instead}", transports.join(" or "));
        (!transports.contains(&over)).then(what)
    };
    match m {
        M::Mean(d) | M::Percentile(d, _) | M::Longest(d) if d != Delay::Packet => {
            let bulk = over != "sctp" && matches!(f.traffic, TrafficConfig::Bulk(_));
            let stream = || "sends a stream without messages: `delay` is of its segments".to_owned();
            only(&MESSAGES, "; `delay` is of any").or_else(|| bulk.then(stream))
        }
        M::Repair(r) if r.of_segments() => {
            let web = over == "tcp" && matches!(f.traffic, TrafficConfig::Web(_));
            let many = || "has a connection for each transfer: `retransmissions` is of all of them".to_owned();
            only(&["sctp", "tcp"], "").or_else(|| web.then(many))
        }
        M::Repair(_) | M::HolesMean | M::HolesMax => only(&["sctp"], ""),
        M::ReorderMean | M::ReorderMax => only(&["sctp", "mptcp", "nc-mptcp", "fmtcp"], ""),
        M::Losses => only(&["sctp", "udp"], "; tcp has `retransmissions`, `timeouts` and `recoveries`"),
        M::Retransmissions | M::Timeouts | M::Recoveries => only(&MESSAGES, "; udp has `losses`"),
        M::Spurious => only(&MESSAGES, ""),
        M::Counter(name) if is_of_mptcp(name) => only(counting(name), ""),
        M::Stage(name) | M::Counter(name) => only(&["sctp"], "").or_else(|| {
            let what = if is_stage(name) { "decides in stages".to_owned() } else { format!("counts `{name}`") };
            sctp.and_then(|s| not_counted(s, &|c| c == name, &what))
        }),
        M::Decisions => {
            only(&["sctp"], "").or_else(|| sctp.and_then(|s| not_counted(s, &is_stage, "decides in stages")))
        }
        M::DeadlineMisses => only(&["sctp"], "").or_else(|| {
            let without = sctp.is_some_and(|s| s.delivery.lifetime == [None; 3]);
            without.then(|| "needs a `lifetime`, such as \"150ms\"".to_owned())
        }),
        M::Picture(_) => f.picture_rate().is_none().then(|| "needs a `psnr-rate`, such as \"1mbit\"".to_owned()),
        M::Due(Lateness::UnusableOf(_)) => {
            f.playout.is_none().then(|| "needs `playout`, such as \"300ms\", and traffic of kind video".to_owned())
        }
        M::Due(_) => (f.playout.is_none() && f.deadline.is_none())
            .then(|| "needs a `deadline`, such as \"200ms\", or `playout` for what a viewer sees".to_owned()),
        M::Viewed(_) | M::Framed(_) => {
            f.playout.is_none().then(|| "needs `playout`, such as \"300ms\", and traffic of kind video".to_owned())
        }
        M::Goodput | M::Share | M::Mean(_) | M::Percentile(..) | M::Longest(_) => None,
        M::Convergence | M::Messages | M::Jain | M::Rejected => None,
    }
}

/// Transports that carry messages and repair losses.
const MESSAGES: [&str; 5] = ["sctp", "tcp", "mptcp", "nc-mptcp", "fmtcp"];

/// The transports on Multipath TCP that count this.
fn counting(name: &str) -> &'static [&'static str] {
    match name {
        "reinjections" | "opportunistic-retransmissions" | "penalties" => &["mptcp"],
        "coded-symbols" | "coded-needed" => &["nc-mptcp", "fmtcp"],
        _ => &["mptcp", "nc-mptcp", "fmtcp"],
    }
}

/// No policy of the flow has such a counter.
fn not_counted(s: &Sctp, wanted: &dyn Fn(&str) -> bool, what: &str) -> Option<String> {
    let mut with = Vec::new();
    for hook in Hook::ALL {
        let counting = registry::counters(hook).filter(|(_, names)| names.iter().any(|n| wanted(n)));
        let names: Vec<&str> = counting.map(|(policy, _)| policy.name).collect();
        if names.contains(&s.profile.get(hook)) {
            return None;
        }
        with.extend(names.into_iter().map(|name| (hook, name)));
    }
    let hook = with.first()?.0;
    let (key, chosen) = (hook.name().replace('_', "-"), s.profile.get(hook));
    let names: Vec<&str> = with.iter().map(|(_, name)| *name).collect();
    Some(format!("has `{key} = \"{chosen}\"`, and only {} {what}", names.join(" or ")))
}
