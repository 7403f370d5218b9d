//! The event log: one JSON object on each line.

use anabranch_engine::TransmissionCause;
use serde::{Deserialize, Serialize};

/// One line of the event log. Times `t` are seconds of virtual time; sizes are bytes; `path` counts a flow's paths from
/// 0, the same on both ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Line {
    /// First line: what was run.
    Run {
        /// The scenario.
        scenario: String,
        /// The values of its sweep keys.
        point: String,
        /// The seed.
        seed: u64,
        /// The flows.
        flows: Vec<FlowLine>,
    },
    /// New DATA left the sender, or a new segment of TCP.
    Data {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Which path the path scheduler chose.
        path: usize,
        /// Number of the packet in the network.
        packet: u64,
        /// Its length, headers included.
        bytes: u32,
        /// TSNs of its chunks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tsn: Vec<u32>,
        /// Number of the segment, counted from the SYN.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<u64>,
        /// Who chose the path: the path scheduler by its name, `alone` where no other had room, `dormant` where none
        /// was active.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_by: Option<String>,
        /// The paths that had room, which the scheduler chose from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<usize>,
        /// Window of each path, and bytes in flight there, before the packet left.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rooms: Vec<(u64, u64)>,
    },
    /// A chunk or a segment was sent again.
    Retransmission {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Which path the retransmission policy chose.
        path: usize,
        /// Number of the packet in the network.
        packet: u64,
        /// TSN of the chunk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tsn: Option<u32>,
        /// Number of the segment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<u64>,
        /// How often it has been sent by now.
        transmission: u32,
        /// The path it was on before.
        was_on: usize,
        /// Why it is sent again, as the sender sees it.
        why: Why,
        /// What decided for the path, where the policy counts it: `cwnd`, `ssthresh`, `timeouts`, `age`, `draw`,
        /// `alone`. `dormant` of every policy, where no path was active.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_by: Option<String>,
        /// Window and threshold of each path when it was decided; a threshold of none was never set.
        windows: Vec<(u64, Option<u64>)>,
    },
    /// A SACK arrived at the sender of the data.
    Sack {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Path it arrived on.
        path: usize,
        /// Cumulative TSN.
        cumulative: u32,
        /// First and last TSN of each block beyond it.
        gaps: Vec<(u32, u32)>,
        /// The receiver's window.
        window: u32,
    },
    /// An acknowledgement arrived at a sender of TCP.
    Ack {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Path it arrived on.
        path: usize,
        /// The first segment that is missing.
        next: u64,
        /// First and last segment of each SACK block.
        sacked: Vec<(u64, u64)>,
    },
    /// A packet was lost, and why it really was.
    Lost {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Path of the packet.
        path: usize,
        /// Number of the packet in the network.
        packet: u64,
        /// Place of the loss: name of the link, or of the node that knew no way on.
        place: String,
        /// The true cause.
        cause: Cause,
        /// TSNs of its DATA chunks.
        tsn: Vec<u32>,
        /// Number of its segment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<u64>,
        /// What it carried: `DATA`, `SACK`, `TCP`, …
        kind: String,
    },
    /// The sender took a transmission of a chunk for lost.
    Judged {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Number of the path by which that transmission left.
        path: usize,
        /// TSN of the chunk.
        tsn: u32,
        /// Time at which the transmission that is meant left, seconds.
        sent: f64,
        /// The cause that its policy named; none where none was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<String>,
        /// The true cause; none where it arrived, or is still on its way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// The state of a path at the sender, when it has changed.
    Path {
        /// Time of the event.
        t: f64,
        /// Name of the flow.
        flow: String,
        /// Number of the path.
        path: usize,
        /// Congestion window.
        cwnd: u64,
        /// Slow-start threshold; none while it was never set.
        ssthresh: Option<u64>,
        /// Bytes in flight.
        in_flight: u64,
        /// Smoothed round-trip time, seconds.
        srtt: f64,
        /// Retransmission timeout, seconds.
        rto: f64,
        /// Health: `active`, `potentially-failed`, …; of TCP `open`, or `repairing` until all that was outstanding when
        /// a loss was noticed is acknowledged.
        state: String,
        /// What changed the window: an acknowledgement, a reported loss, a timeout, idleness.
        why: WindowChange,
    },
    /// What waits at a link, when it has changed (at most once in 5 ms for each link).
    Queue {
        /// Time of the event.
        t: f64,
        /// Name of the link.
        link: String,
        /// The paths that lie on it.
        #[serde(default)]
        paths: Vec<OnLink>,
        /// Packets that wait.
        packets: usize,
        /// Their bytes.
        bytes: u64,
    },
}

/// A path of a flow that lies on a link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OnLink {
    /// Name of the flow.
    pub flow: String,
    /// Number of the path.
    pub path: usize,
    /// Direction of the path.
    pub way: Way,
}

/// A direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// That of the data.
    Data,
    /// That of the acknowledgements.
    Back,
}

/// A flow of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FlowLine {
    /// Its name.
    pub name: String,
    /// `sctp`, `tcp` or `udp`.
    pub transport: String,
    /// Its paths in order: source and destination address.
    pub paths: Vec<(String, String)>,
    /// Its path scheduler with the parameters that differ from their defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_scheduler: Option<String>,
    /// Its retransmission policy, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<String>,
}

/// Why the sender sent a chunk again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It was reported missing often enough.
    Reported,
    /// T3 expired.
    Timeout,
    /// To provoke an answer.
    Probe,
    /// It filled a packet of retransmissions.
    Bundled,
    /// A copy beside one in flight.
    Copy,
    /// The path that held it was left.
    Moved,
    /// None of these.
    Other,
}

impl From<TransmissionCause> for Why {
    fn from(cause: TransmissionCause) -> Why {
        match cause {
            TransmissionCause::First => Why::Other,
            TransmissionCause::Reports => Why::Reported,
            TransmissionCause::Timer => Why::Timeout,
            TransmissionCause::Probe => Why::Probe,
            TransmissionCause::Bundled => Why::Bundled,
            TransmissionCause::Copy => Why::Copy,
            TransmissionCause::Moved => Why::Moved,
        }
    }
}

/// Why a packet was really lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A queue was full, or its discipline dropped it.
    Queue,
    /// The loss model of the link.
    RandomLoss,
    /// The loss model of the link, as often as the link sent it.
    RepeatsLost,
    /// The link was down.
    LinkDown,
    /// Too large for the link.
    TooLarge,
    /// No way led on, or no agent was there.
    NoRoute,
    /// It came damaged, and its host dropped it.
    Damaged,
}

impl Cause {
    /// The cause in words.
    pub const fn word(self) -> &'static str {
        match self {
            Cause::Queue => "queue full",
            Cause::RandomLoss => "random loss",
            Cause::RepeatsLost => "repeats lost",
            Cause::LinkDown => "link down",
            Cause::TooLarge => "too large",
            Cause::NoRoute => "no route",
            Cause::Damaged => "damaged",
        }
    }
}

/// What changed a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowChange {
    /// The first state noted.
    Start,
    /// Acknowledgements opened it.
    Acknowledged,
    /// A loss was reported.
    Reported,
    /// T3 expired.
    Timeout,
    /// Something else: idleness, a policy's own clock.
    Other,
    /// It did not change; flight, times or health did.
    Same,
}
