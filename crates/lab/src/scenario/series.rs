//! `series`: what is noted over time.

use super::flow::{Flow, Transport};
use super::plan::covers;
use crate::document::{Part, Problem};
use anabranch_sim::netem::nearest;

/// Something of a flow, a group or a cable over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesOf {
    /// As written: `main.throughput`.
    pub name: String,
    /// The flow, the group, the beginning of their names with a star, or the cable.
    pub of: String,
    /// Quantity that is noted.
    pub what: Noted,
}

/// What is noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noted {
    /// What a flow delivers in order, bit/s.
    Throughput,
    /// Its part of what all flows deliver.
    Share,
    /// What arrives on each path, repetitions included, bit/s.
    PathThroughput,
    /// The part of each path in it.
    PathShare,
    /// Congestion window of each path, bytes.
    Cwnd,
    /// Its threshold, bytes; nothing while it was never set.
    Ssthresh,
    /// Payload in flight on each path, bytes.
    InFlight,
    /// Smoothed round-trip time of each path, seconds.
    Srtt,
    /// What each path was measured to carry, bit/s.
    Capacity,
    /// What an encoder hears that the paths carry together within the deadline, bit/s: the low rate.
    UsableLow,
    /// And the middle one.
    UsableMiddle,
    /// The part of what was due that came late.
    Late,
    /// The part of it that came late or never.
    Unusable,
    /// Packets that wait at a cable or are in transmission there, forward.
    Queue,
    /// What waits or is in transmission there in bytes.
    QueueBytes,
}

/// Names and units of what is noted of flows.
const FLOW: [(&str, Noted, &str); 13] = [
    ("throughput", Noted::Throughput, "bit/s"),
    ("share", Noted::Share, ""),
    ("path-throughput", Noted::PathThroughput, "bit/s"),
    ("path-share", Noted::PathShare, ""),
    ("cwnd", Noted::Cwnd, "byte"),
    ("ssthresh", Noted::Ssthresh, "byte"),
    ("in-flight", Noted::InFlight, "byte"),
    ("srtt", Noted::Srtt, "s"),
    ("capacity", Noted::Capacity, "bit/s"),
    ("usable-low", Noted::UsableLow, "bit/s"),
    ("usable-middle", Noted::UsableMiddle, "bit/s"),
    ("late", Noted::Late, ""),
    ("unusable", Noted::Unusable, ""),
];
/// And of cables.
const CABLE: [(&str, Noted, &str); 2] =
    [("queue", Noted::Queue, "packets"), ("queue-bytes", Noted::QueueBytes, "byte")];

impl Noted {
    /// A state at the end of each bin, and not a sum over it.
    pub fn sampled(self) -> bool {
        !self.delivered() && !self.due()
    }

    /// A sum of what is delivered.
    pub fn delivered(self) -> bool {
        matches!(self, Noted::Throughput | Noted::Share | Noted::PathThroughput | Noted::PathShare)
    }

    /// Of what has a deadline in a bin.
    pub fn due(self) -> bool {
        matches!(self, Noted::Late | Noted::Unusable)
    }

    /// Counted where data arrive, by path.
    pub fn by_path(self) -> bool {
        matches!(self, Noted::PathThroughput | Noted::PathShare)
    }

    /// What it is called in a scenario.
    pub fn name(self) -> &'static str {
        FLOW.iter().chain(&CABLE).find(|k| k.1 == self).map_or("", |k| k.0)
    }
}

/// The unit of a series by its name, `main.throughput`; none for an unknown one.
pub fn unit_of(name: &str) -> Option<&'static str> {
    let what = name.rsplit_once('.')?.1;
    FLOW.iter().chain(&CABLE).find(|k| k.0 == what).map(|k| k.2)
}

impl SeriesOf {
    /// Is it asked of this flow or group?
    pub fn covers(&self, group: &str) -> bool {
        covers(&self.of, group)
    }

    /// Does this flow have it?
    pub(super) fn check(&self, head: Part<'_>, f: &Flow) -> Result<(), Problem> {
        use Noted as N;
        if self.what.due() && self.covers(&f.group) && f.deadline.is_none() && f.playout.is_none() {
            let needs = "needs a `deadline`, such as \"200ms\", or `playout` for what a viewer sees";
            return Err(head.at("series", format!("`{}`: flow `{}` {needs}", self.name, f.group)));
        }
        let whole = self.what.sampled() || self.what.by_path();
        if let Some(of) = f.association.as_ref().filter(|_| whole && self.covers(&f.group)) {
            let what = format!("`{}`: flow `{}` shares the association of `{of}`: ask `{of}`", self.name, f.group);
            return Err(head.at("series", what));
        }
        let any = matches!(self.what, N::Throughput | N::Share | N::Late | N::Unusable);
        let has = match &f.transport {
            Transport::Sctp(_) => return Ok(()),
            Transport::Tcp(_) | Transport::Mptcp(_) => any || matches!(self.what, N::Cwnd | N::Ssthresh | N::Srtt),
            Transport::Udp(_) => any,
        };
        if has || !self.covers(&f.group) {
            return Ok(());
        }
        let carried = f.transport.name();
        let what =
            format!("`{}`: flow `{}` is carried by {carried} and has no {}", self.name, f.group, self.what.name());
        Err(head.at("series", what))
    }
}

/// Finds what the names in `series` mean.
pub(super) fn read(
    head: Part<'_>,
    groups: &[String],
    cables: &[String],
    names: &[String],
) -> Result<Vec<SeriesOf>, Problem> {
    let one = |name: &String| {
        let wrong = |what: String| head.at("series", what);
        let hint = |near: Option<&str>| near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        let (of, what) = name.rsplit_once('.').ok_or_else(|| wrong(format!("`{name}` is no FLOW.SERIES")))?;
        let known: &[(&str, Noted, &str)] = if groups.iter().any(|g| covers(of, g)) {
            &FLOW
        } else if cables.iter().any(|c| c == of) {
            &CABLE
        } else {
            let near = nearest(of, groups.iter().chain(cables).map(String::as_str));
            return Err(wrong(format!("`{name}`: no flow or cable is called `{of}`{}", hint(near))));
        };
        let Some(found) = known.iter().find(|k| k.0 == what) else {
            let all = || format!("; there are {}", known.iter().map(|k| k.0).collect::<Vec<_>>().join(", "));
            let hint = Some(hint(nearest(what, known.iter().map(|k| k.0)))).filter(|h| !h.is_empty());
            return Err(wrong(format!("no series is called `{what}`{}", hint.unwrap_or_else(all))));
        };
        Ok(SeriesOf { name: name.clone(), of: of.to_owned(), what: found.1 })
    };
    names.iter().map(one).collect()
}
