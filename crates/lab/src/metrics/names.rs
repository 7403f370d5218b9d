//! The quantities a scenario may ask for.

use super::Picture;
use super::repair_names::{EXAMPLES, Repair};
use anabranch_policy::registry::{self, Hook};
use anabranch_sim::netem::nearest;
use anabranch_sim::traffic::FrameClass;

/// What is measured of a flow or a group of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowMetric {
    /// Payload handed over in order, per second since the flow's start.
    Goodput,
    /// The flow's part of what all flows handed over.
    Share,
    /// Mean of a delay.
    Mean(Delay),
    /// A percentile of a delay, in thousandths of a per cent.
    Percentile(Delay, u32),
    /// The longest delay.
    Longest(Delay),
    /// When the throughput settled, since the flow's start.
    Convergence,
    /// Messages or segments handed over.
    Messages,
    /// Chunks declared lost.
    Losses,
    /// Chunks sent again.
    Retransmissions,
    /// Chunks that the receiver had already.
    Spurious,
    /// Expiries of the retransmission timer.
    Timeouts,
    /// Damaged packets that its ends did not take.
    Rejected,
    /// Window cuts after reports of losses.
    Recoveries,
    /// Mean bytes in the reorder buffer.
    ReorderMean,
    /// Most bytes in the reorder buffer.
    ReorderMax,
    /// Part of the messages with a deadline that missed it.
    DeadlineMisses,
    /// Part of the decisions of a cascade of criteria that the criterion with this counter made.
    Stage(&'static str),
    /// Decisions that some criterion of a cascade made.
    Decisions,
    /// What a policy counts under this name.
    Counter(&'static str),
    /// Mean number of gaps in the received sequence.
    HolesMean,
    /// Most gaps in the received sequence.
    HolesMax,
    /// Jain's index of the members' goodputs.
    Jain,
    /// What came of messages with a deadline, or of the packets of a viewer's frames.
    Due(Lateness),
    /// The quality of the picture by what came of its stream.
    Picture(Picture),
    /// What a viewer sees.
    Viewed(View),
    /// What became of the frames of a flow with `playout`.
    Framed(Framed),
    /// What became of chunks that were sent more than once.
    Repair(Repair),
}

/// What became of the frames that were due, whether they were sent or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framed {
    /// How many there were.
    Frames,
    /// Part of them that was whole in time.
    Whole,
    /// Part of those of one class that was.
    WholeOf(FrameClass),
    /// How many were not, for each event.
    LostPerEvent,
    /// From the end of an event until no frame is missing for a second; the longest.
    Recovery,
    /// Part of the bytes that came for nothing.
    WastedBytes,
    /// Part of the frames that could at most have been whole in time, over these links.
    Possible,
    /// Part of them that is whole in time by a plan that knows the links' future.
    Offline,
    /// Part of them that can be decoded then.
    OfflineDecodable,
    /// How many fewer were whole than then, for each event.
    LostBeyondOffline,
    /// Bits of frames made a second.
    MadeRate,
    /// [`MadeRate`](Self::MadeRate) as part of what the links carry of it, at most what the encoder makes when nothing
    /// holds it back.
    RateShare,
}

impl Framed {
    /// Is it of what could have been?
    pub const fn is_bound(self) -> bool {
        matches!(self, Framed::Possible | Framed::Offline | Framed::OfflineDecodable | Framed::LostBeyondOffline)
    }
}

/// What came in time, of a flow with `deadline` or `playout`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// Part of the packets that came late or not at all.
    Unusable,
    /// Part of those of frames of one class.
    UnusableOf(FrameClass),
    /// Part of those that came which came late.
    Messages,
    /// Part of the bytes that came which came late.
    Bytes,
}

/// What a viewer sees of a flow with `playout`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Part of the frames that could be decoded in time.
    Decodable,
    /// How often the play-out buffer ran empty.
    Underflows,
    /// How long it was filled again.
    UnderflowTime,
    /// Quality of the pictures on the screen, by how old they were.
    Quality,
}

/// Kind of delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delay {
    /// Of packets: from the first transmission to the arrival.
    Packet,
    /// Of messages: from the first transmission to the hand-over in order.
    InOrder,
    /// Of messages: from the source to the hand-over in order.
    Message,
}

/// What is measured of a cable, in its forward direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkMetric {
    /// Part of what its rate could carry while it was up that has left, headers of the link included.
    Utilisation,
    /// Part of the packets that its queue dropped.
    QueueDrops,
    /// Part of the packets that its loss model dropped.
    LossDrops,
    /// Part of the packets that were lost as often as the link sends one.
    RepeatsDrops,
    /// Part of the packets sent that were lost on the link at least once, whether sent again with success or not.
    FrameErrors,
    /// Transmissions beyond the first for each packet sent.
    FrameRepeats,
    /// Part of the packets that came while it was down, or were in its queue when it went down.
    DownDrops,
    /// Part of the packets that were larger than its MTU.
    MtuDrops,
    /// Part of the packets that its queue marked.
    QueueMarks,
    /// Part of the packets that left it damaged.
    Damaged,
}

const FLOW: [(&str, FlowMetric, &str); 18] = [
    ("goodput", FlowMetric::Goodput, "bit/s"),
    ("share", FlowMetric::Share, ""),
    ("delay", FlowMetric::Mean(Delay::Packet), "s"),
    ("delay-max", FlowMetric::Longest(Delay::Packet), "s"),
    ("in-order-delay", FlowMetric::Mean(Delay::InOrder), "s"),
    ("in-order-delay-max", FlowMetric::Longest(Delay::InOrder), "s"),
    ("message-delay", FlowMetric::Mean(Delay::Message), "s"),
    ("message-delay-max", FlowMetric::Longest(Delay::Message), "s"),
    ("convergence", FlowMetric::Convergence, "s"),
    ("messages", FlowMetric::Messages, ""),
    ("losses", FlowMetric::Losses, ""),
    ("retransmissions", FlowMetric::Retransmissions, ""),
    ("spurious", FlowMetric::Spurious, ""),
    ("timeouts", FlowMetric::Timeouts, ""),
    ("recoveries", FlowMetric::Recoveries, ""),
    ("reorder-mean", FlowMetric::ReorderMean, "byte"),
    ("reorder-max", FlowMetric::ReorderMax, "byte"),
    ("deadline-misses", FlowMetric::DeadlineMisses, ""),
];
const MORE: [(&str, FlowMetric, &str); 32] = [
    ("rejected", FlowMetric::Rejected, ""),
    ("decisions", FlowMetric::Decisions, ""),
    ("holes-mean", FlowMetric::HolesMean, ""),
    ("holes-max", FlowMetric::HolesMax, ""),
    ("jain", FlowMetric::Jain, ""),
    ("unusable-packets", FlowMetric::Due(Lateness::Unusable), ""),
    ("unusable-packets-i", FlowMetric::Due(Lateness::UnusableOf(FrameClass::I)), ""),
    ("unusable-packets-p", FlowMetric::Due(Lateness::UnusableOf(FrameClass::P)), ""),
    ("unusable-packets-b", FlowMetric::Due(Lateness::UnusableOf(FrameClass::B)), ""),
    ("late-messages", FlowMetric::Due(Lateness::Messages), ""),
    ("psnr", FlowMetric::Picture(Picture::Psnr), "dB"),
    ("mos", FlowMetric::Picture(Picture::Mos), ""),
    ("psnr-capped", FlowMetric::Picture(Picture::Capped), ""),
    ("decodable-frames", FlowMetric::Viewed(View::Decodable), ""),
    ("shown-psnr", FlowMetric::Viewed(View::Quality), "dB"),
    ("underflows", FlowMetric::Viewed(View::Underflows), ""),
    ("underflow-time", FlowMetric::Viewed(View::UnderflowTime), "s"),
    ("frames", FlowMetric::Framed(Framed::Frames), ""),
    ("whole-frames", FlowMetric::Framed(Framed::Whole), ""),
    ("whole-frames-i", FlowMetric::Framed(Framed::WholeOf(FrameClass::I)), ""),
    ("whole-frames-p", FlowMetric::Framed(Framed::WholeOf(FrameClass::P)), ""),
    ("whole-frames-b", FlowMetric::Framed(Framed::WholeOf(FrameClass::B)), ""),
    ("lost-per-event", FlowMetric::Framed(Framed::LostPerEvent), ""),
    ("recovery", FlowMetric::Framed(Framed::Recovery), "s"),
    ("late-bytes", FlowMetric::Due(Lateness::Bytes), ""),
    ("wasted-bytes", FlowMetric::Framed(Framed::WastedBytes), ""),
    ("possible-frames", FlowMetric::Framed(Framed::Possible), ""),
    ("offline-frames", FlowMetric::Framed(Framed::Offline), ""),
    ("offline-decodable", FlowMetric::Framed(Framed::OfflineDecodable), ""),
    ("lost-beyond-offline", FlowMetric::Framed(Framed::LostBeyondOffline), ""),
    ("made-rate", FlowMetric::Framed(Framed::MadeRate), "bit/s"),
    ("rate-share", FlowMetric::Framed(Framed::RateShare), ""),
];

const LINK: [(&str, LinkMetric, &str); 10] = [
    ("utilisation", LinkMetric::Utilisation, ""),
    ("queue-drops", LinkMetric::QueueDrops, ""),
    ("loss-drops", LinkMetric::LossDrops, ""),
    ("arq-drops", LinkMetric::RepeatsDrops, ""),
    ("frame-errors", LinkMetric::FrameErrors, ""),
    ("frame-repeats", LinkMetric::FrameRepeats, ""),
    ("down-drops", LinkMetric::DownDrops, ""),
    ("mtu-drops", LinkMetric::MtuDrops, ""),
    ("queue-marks", LinkMetric::QueueMarks, ""),
    ("damaged", LinkMetric::Damaged, ""),
];

/// What the counters of a cascade of criteria begin with.
pub(crate) const STAGE: &str = "stage-";

/// Does the counter belong to a criterion of a cascade?
pub(crate) fn is_stage(counter: &str) -> bool {
    counter.starts_with(STAGE)
}

/// What Multipath TCP counts, beyond what all senders do: per subflow of the first eight, and of the connection.
pub(crate) const OF_MPTCP: [&str; 22] = [
    "subflow1-packets",
    "subflow2-packets",
    "subflow3-packets",
    "subflow4-packets",
    "subflow5-packets",
    "subflow6-packets",
    "subflow7-packets",
    "subflow8-packets",
    "subflow1-retransmissions",
    "subflow2-retransmissions",
    "subflow3-retransmissions",
    "subflow4-retransmissions",
    "subflow5-retransmissions",
    "subflow6-retransmissions",
    "subflow7-retransmissions",
    "subflow8-retransmissions",
    "reinjections",
    "opportunistic-retransmissions",
    "penalties",
    "window-stops",
    "coded-symbols",
    "coded-needed",
];

/// Does Multipath TCP count this?
pub(crate) fn is_of_mptcp(counter: &str) -> bool {
    OF_MPTCP.contains(&counter)
}

/// The names of all counters of all policies, and of Multipath TCP.
fn counters() -> Vec<&'static str> {
    let all = Hook::ALL.into_iter().flat_map(registry::counters);
    all.flat_map(|(_, names)| names).chain(OF_MPTCP).collect()
}

fn flows() -> impl Iterator<Item = &'static (&'static str, FlowMetric, &'static str)> + Clone {
    FLOW.iter().chain(&MORE)
}

/// Names of all metrics of flows, of those that are made of parts some of each kind.
#[cfg(test)]
pub(crate) fn of_flows() -> Vec<String> {
    let delays = flows().filter(|(_, m, _)| matches!(m, FlowMetric::Mean(_))).map(|(n, ..)| format!("{n}-p99.9"));
    let plain = flows().map(|(n, ..)| *n).chain(EXAMPLES).chain(counters()).map(str::to_owned);
    let mut all: Vec<String> = plain.chain(delays).collect();
    all.extend(["repairs-timer-share", "repair2-delay-p50", "repairs-delay-b-max", "needless"].map(str::to_owned));
    all
}

/// And of cables.
#[cfg(test)]
pub(crate) fn of_links() -> impl Iterator<Item = &'static str> {
    LINK.iter().map(|(n, ..)| *n)
}

impl FlowMetric {
    /// The metric and its unit by its name: `goodput`, `delay`, `delay-p99`, `message-delay-p99.9`.
    ///
    /// # Errors
    /// What it could be instead.
    pub fn named(name: &str) -> Result<(Self, &'static str), String> {
        if let Some((_, m, unit)) = flows().find(|(n, ..)| *n == name) {
            return Ok((*m, unit));
        }
        if let Some((repair, unit)) = Repair::named(name) {
            return Ok((FlowMetric::Repair(repair), unit));
        }
        if let Some((delay, percent)) = name.rsplit_once("-p")
            && let Some((_, FlowMetric::Mean(delay), _)) = flows().find(|(n, ..)| *n == delay)
            && let Some(p) = percent.parse::<f64>().ok().filter(|p| *p > 0.0 && *p < 100.0)
        {
            // Rounded, p99.9999 would be the longest delay.
            if percent.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 3) {
                return Err(format!("`{name}`: a percentile has three decimals at most"));
            }
            return Ok((FlowMetric::Percentile(*delay, (p * 1_000.0).round() as u32), "s"));
        }
        let counters = counters();
        if let Some(counter) = counters.iter().copied().find(|c| *c == name) {
            let metric = if is_stage(counter) { FlowMetric::Stage } else { FlowMetric::Counter };
            return Ok((metric(counter), ""));
        }
        let names = flows().map(|(n, ..)| *n).chain(EXAMPLES);
        Err(unknown(name, names.chain(counters.iter().copied())))
    }
}

impl LinkMetric {
    /// The metric and its unit by its name.
    ///
    /// # Errors
    /// What it could be instead.
    pub fn named(name: &str) -> Result<(Self, &'static str), String> {
        let found = LINK.iter().find(|(n, ..)| *n == name).map(|(_, m, unit)| (*m, *unit));
        found.ok_or_else(|| unknown(name, LINK.iter().map(|(n, ..)| *n)))
    }
}

/// The flow, group or cable and the quantity of a metric as written: `main.goodput`.
pub fn parted(name: &str) -> Option<(&str, &str)> {
    let (of, metric) = name.rsplit_once('.')?;
    // A percentile may have a dot of its own: main.delay-p99.9.
    Some(match of.rsplit_once('.') {
        Some((head, tail)) if tail.contains("-p") => (head, name.get(head.len() + 1..)?),
        _ => (of, metric),
    })
}

/// A metric without its phase, and the phase: `main.goodput@jump` is `main.goodput` in `jump`.
pub fn in_phase(name: &str) -> (&str, Option<&str>) {
    name.split_once('@').map_or((name, None), |(metric, phase)| (metric, Some(phase)))
}

/// The unit of a metric as written, `main.goodput`; none for an unknown one.
pub fn unit_of(name: &str) -> Option<&'static str> {
    let (_, metric) = parted(in_phase(name).0)?;
    let of_flow = FlowMetric::named(metric).map(|m| m.1);
    of_flow.or_else(|_| LinkMetric::named(metric).map(|m| m.1)).ok()
}

/// Is the metric a part of a whole, which lies between 0 and 1?
pub fn is_share(name: &str) -> bool {
    use {Framed as F, View as V};
    let Some((_, metric)) = parted(in_phase(name).0) else { return false };
    if let Ok((metric, _)) = LinkMetric::named(metric) {
        return metric != LinkMetric::FrameRepeats;
    }
    let Ok((metric, _)) = FlowMetric::named(metric) else { return false };
    matches!(
        metric,
        FlowMetric::Share
            | FlowMetric::DeadlineMisses
            | FlowMetric::Stage(_)
            | FlowMetric::Jain
            | FlowMetric::Repair(Repair::Spurious(_) | Repair::Share(_) | Repair::Needless | Repair::Right)
            | FlowMetric::Due(_)
            | FlowMetric::Picture(Picture::Capped)
            | FlowMetric::Viewed(V::Decodable)
            | FlowMetric::Framed(
                F::Whole | F::WholeOf(_) | F::WastedBytes | F::Possible | F::Offline | F::OfflineDecodable
            )
    )
}

fn unknown(name: &str, known: impl Iterator<Item = &'static str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("no metric is called `{name}`; did you mean `{near}`?"),
        None => format!("no metric is called `{name}`; there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_a_whole() {
        for share in [
            "main.deadline-misses",
            "film.whole-frames",
            "film.whole-frames-i",
            "path1.queue-drops",
            "main.stage-cwnd",
            "all.jain",
            "main.causes-right",
            "main.deadline-misses@jump",
        ] {
            assert!(is_share(share), "{share}");
        }
        // What the encoder made may be more than the links carry.
        for other in [
            "path1.frame-repeats",
            "main.losses",
            "main.delay-p99.9",
            "main.goodput",
            "film.rate-share",
            "film.lost-per-event",
            "x",
        ] {
            assert!(!is_share(other), "{other}");
        }
    }

    #[test]
    fn names_with_and_without_percentile() {
        assert_eq!(FlowMetric::named("goodput"), Ok((FlowMetric::Goodput, "bit/s")));
        let p = FlowMetric::named("message-delay-p99.9");
        assert_eq!(p, Ok((FlowMetric::Percentile(Delay::Message, 99_900), "s")));
        // Rare delays are what is asked for: no percentile becomes another one, let alone the longest.
        for (name, thousandths) in [("delay-p99.95", 99_950), ("delay-p99.99", 99_990), ("delay-p99.999", 99_999)] {
            assert_eq!(
                FlowMetric::named(name),
                Ok((FlowMetric::Percentile(Delay::Packet, thousandths), "s")),
                "{name}"
            );
        }
        let fine = "`delay-p99.9999`: a percentile has three decimals at most";
        assert_eq!(FlowMetric::named("delay-p99.9999"), Err(fine.into()));
        assert_eq!(FlowMetric::named("godput"), Err("no metric is called `godput`; did you mean `goodput`?".into()));
        let near = "no metric is called `decodeable-frames`; did you mean `decodable-frames`?";
        assert_eq!(FlowMetric::named("decodeable-frames"), Err(near.into()));
        for wrong in ["delay-p0", "delay-p100", "goodput-p50", "delay-p", ""] {
            assert!(FlowMetric::named(wrong).is_err(), "{wrong}");
        }
    }
}
