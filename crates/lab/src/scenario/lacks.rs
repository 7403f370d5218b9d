//! Metrics that a point of the sweep cannot have.

use super::flow::{Flow, Sctp, Transport};
use super::plan::{Measure, Of, Plan, covers};
use crate::metrics::{Delay, FlowMetric, Framed, LinkMetric};
use anabranch_policy::registry::{Hook, Params};
use anabranch_policy::retransmission::POLICIES;

/// Why the metric is empty in every run of this point; none when it may have a value.
pub(super) fn why(plan: &Plan, m: &Measure) -> Option<String> {
    match &m.of {
        Of::Flow(of, metric) => {
            let members: Vec<&Flow> = plan.flows.iter().filter(|f| covers(of, &f.group)).collect();
            let lack = |f: &&Flow| Some(format!("flow `{}` {}", f.group, lacks(f, *metric)?));
            let lacking: Vec<String> = members.iter().filter_map(lack).collect();
            // A sum needs all members; delays and deadlines are taken of those that have some.
            let any = matches!(
                metric,
                FlowMetric::Mean(_) | FlowMetric::Percentile(..) | FlowMetric::Longest(_) | FlowMetric::DeadlineMisses
            );
            if *metric == FlowMetric::Framed(Framed::Recovery) && plan.events.is_empty() {
                return Some("the scenario needs `events`, such as [\"8s-9s\"]".to_owned());
            }
            let recorded = plan.topology.cables.iter().find(|c| c.forward.deliveries.is_some());
            if let (FlowMetric::Framed(of), Some(cable)) = (metric, recorded)
                && of.is_bound()
            {
                return Some(format!("it needs a `rate`, and cable `{}` has a recording", cable.name));
            }
            match lacking.first() {
                _ if members.is_empty() => Some(format!("no flow `{of}` is enabled")),
                Some(_) if any && lacking.len() < members.len() => None,
                first => first.cloned(),
            }
        }
        Of::Link(of, LinkMetric::Utilisation) => {
            let cable = plan.topology.cables.iter().find(|c| c.name == *of)?;
            cable.forward.capacity(plan.from, plan.duration).is_none().then(|| format!("cable `{of}` needs a `rate`"))
        }
        Of::Link(..) => None,
    }
}

/// What a flow would need for a metric: the words after its name.
fn lacks(f: &Flow, m: FlowMetric) -> Option<String> {
    use FlowMetric as M;
    let (over, sctp) = match &f.transport {
        Transport::Sctp(s) => ("sctp", Some(s)),
        Transport::Tcp(_) => ("tcp", None),
        Transport::Udp(_) => ("udp", None),
    };
    let only = |transports: &[&str], instead: &str| {
        let what = || format!("is over {over}, and only {} has that{instead}", transports.join(" or "));
        (!transports.contains(&over)).then(what)
    };
    match m {
        M::Mean(d) | M::Percentile(d, _) | M::Longest(d) if d != Delay::Packet => {
            only(&["sctp"], "; `delay` is of any")
        }
        M::ReorderMean | M::ReorderMax | M::HolesMean | M::HolesMax => only(&["sctp"], ""),
        M::Losses => only(&["sctp", "udp"], "; tcp has `retransmissions`, `timeouts` and `recoveries`"),
        M::Retransmissions | M::Timeouts | M::Recoveries => only(&["sctp", "tcp"], "; udp has `losses`"),
        M::Spurious => only(&["sctp", "tcp"], ""),
        M::Stage(_) | M::Decisions | M::Dormant => only(&["sctp"], "").or_else(|| sctp.and_then(|s| no_stages(s))),
        M::DeadlineMisses => only(&["sctp"], "").or_else(|| {
            let without = sctp.is_some_and(|s| s.delivery.lifetime == [None; 3]);
            without.then(|| "needs a `lifetime`, such as \"150ms\"".to_owned())
        }),
        M::Viewed(_) | M::Framed(_) => {
            f.playout.is_none().then(|| "needs `playout`, such as \"300ms\", and traffic of kind video".to_owned())
        }
        M::Goodput | M::Share | M::Mean(_) | M::Percentile(..) | M::Longest(_) => None,
        M::Convergence | M::Messages | M::Jain => None,
    }
}

/// Retransmissions are not decided in stages.
fn no_stages(s: &Sctp) -> Option<String> {
    let staged = |name: &str| {
        let found = POLICIES.iter().find(|p| p.info.name == name);
        found.is_some_and(|p| (p.build)(&Params::defaults(&p.info, 0)).stages().is_some())
    };
    let chosen = s.profile.get(Hook::Retransmission);
    if staged(chosen) {
        return None;
    }
    let with: Vec<&str> = POLICIES.iter().map(|p| p.info.name).filter(|name| staged(name)).collect();
    Some(format!("has `retransmission = \"{chosen}\"`, and only {} decides in stages", with.join(" or ")))
}
