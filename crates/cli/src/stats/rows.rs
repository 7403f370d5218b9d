//! What is written, as it is written. Times in `t` are seconds since the session began.

use super::parity::ParityRow;
use super::range::Range;
use crate::session::Done;
use serde::Serialize;

/// Version of these rows; it rises when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// One path over one interval. Counters hold for the interval alone.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// End of the interval.
    pub t: f64,
    /// Number of the path.
    pub path: u8,
    /// Interface or address it leaves from.
    pub local: String,
    /// Address of the peer.
    pub remote: String,
    /// Health at the end of the interval.
    pub state: &'static str,
    /// Smoothed round-trip time; none before the first sample.
    pub srtt_ms: Option<Range>,
    /// Retransmission timeout.
    pub rto_ms: Option<Range>,
    /// Congestion window.
    pub cwnd_bytes: Option<Range>,
    /// Payload in flight.
    pub in_flight_bytes: Option<Range>,
    /// Sent, SCTP headers included, between two samples.
    pub send_bps: Option<Range>,
    /// Received between two samples.
    pub receive_bps: Option<Range>,
    /// Acknowledged, as the engine estimates it.
    pub delivery_bps: Option<Range>,
    /// What the path can carry, as far as is known.
    pub capacity_bps: Option<Range>,
    /// Counters of the interval.
    #[serde(flatten)]
    pub counters: PathCounts,
    /// What the link layer of its interface reported of the interval, where it reports.
    #[serde(flatten)]
    pub link: Option<LinkRow>,
}

/// Frames of an interface, of all that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkRow {
    /// Frames sent, repetitions included.
    pub frames: u64,
    /// Those that were repeated or given up.
    pub frame_errors: u64,
}

/// Counters of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathCounts {
    /// Packets sent.
    pub packets_sent: u64,
    /// Their bytes, SCTP headers included.
    pub bytes_sent: u64,
    /// Payload bytes sent, repetitions included.
    pub data_sent: u64,
    /// Payload bytes of repetitions.
    pub data_retransmitted: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Chunks declared lost after reports.
    pub lost_by_report: u64,
    /// Chunks declared lost after a timeout.
    pub lost_by_timeout: u64,
    /// Number of timeouts.
    pub timeouts: u64,
}

impl PathCounts {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &PathCounts) -> PathCounts {
        PathCounts {
            packets_sent: self.packets_sent.saturating_sub(earlier.packets_sent),
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            data_sent: self.data_sent.saturating_sub(earlier.data_sent),
            data_retransmitted: self.data_retransmitted.saturating_sub(earlier.data_retransmitted),
            packets_received: self.packets_received.saturating_sub(earlier.packets_received),
            bytes_received: self.bytes_received.saturating_sub(earlier.bytes_received),
            lost_by_report: self.lost_by_report.saturating_sub(earlier.lost_by_report),
            lost_by_timeout: self.lost_by_timeout.saturating_sub(earlier.lost_by_timeout),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
        }
    }
}

/// The stream itself, from the beginning of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamRow {
    /// Messages sent or put out.
    pub messages: u64,
    /// Source bytes sent or put out.
    pub bytes: u64,
    /// Frames begun (sender) or finished (receiver); media only.
    pub frames: u64,
    /// Frames put out with a part missing; receiver only.
    pub frames_unusable: u64,
    /// Messages that came after their instant; receiver only.
    pub late: u64,
    /// Messages that were missing at their instant; receiver only.
    pub lost: u64,
    /// Messages given up because their deadline passed; sender only.
    pub abandoned: u64,
    /// Of those, the ones that were given up while no path worked; for the warning at the end.
    #[serde(skip)]
    pub in_the_dark: u64,
    /// Messages that had less time or fewer repetitions than the latency allows, by their class.
    #[serde(skip)]
    pub limited: u64,
    /// Of those given up, the ones that did not even find room in the send buffer.
    pub expired: u64,
    /// Source bytes that were dropped before they were sent, since there was no session in time; sender only.
    pub dropped_bytes: u64,
    /// How often the session began anew; sender only.
    pub reconnects: u64,
    /// Is there a session now? Sender only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<bool>,
    /// What the paths carry of the input now within the latency, bit/s, safe; sender only, 0 before it is known.
    pub usable_low_bps: u64,
    /// What the paths carry, as expected instead of safe, bit/s.
    pub usable_middle_bps: u64,
    /// What parity did, where there is some.
    #[serde(flatten)]
    pub parity: Option<ParityRow>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Row {
    /// The session begins; the first line.
    Begin {
        /// Version of the rows.
        version: u32,
        /// `send`, `recv`, `tunnel`.
        command: &'static str,
        /// What is carried.
        mode: &'static str,
        /// Whom with.
        peer: String,
        /// Latency that holds, ms; 0 for none.
        latency_ms: u64,
    },
    /// A path over an interval.
    Stats(PathRow),
    /// The stream so far.
    Stream {
        /// Seconds since the session began.
        t: f64,
        /// Its counters.
        #[serde(flatten)]
        stream: StreamRow,
    },
    /// The sender's session was lost, or has begun anew.
    Link {
        /// Seconds since the session began.
        t: f64,
        /// `lost` or `connected`.
        state: &'static str,
        /// Why it was lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Latency that holds from now on, ms; 0 for none.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency_ms: Option<u64>,
    },
    /// A path was added.
    PathAdded {
        /// Seconds since the session began.
        t: f64,
        /// Number of the path.
        path: u8,
    },
    /// A path changed its state, and why.
    Path {
        /// Seconds since the session began.
        t: f64,
        /// Number of the path.
        path: u8,
        /// State before the change.
        from: &'static str,
        /// State after the change.
        to: &'static str,
        /// Why the state changed.
        reason: &'static str,
    },
    /// A path carries only small packets, or the usual ones again.
    PacketSize {
        /// Seconds since the session began.
        t: f64,
        /// Number of the path.
        path: u8,
        /// The largest from now on, bytes of SCTP.
        bytes: usize,
    },
    /// Everything outstanding on a path that was left has been sent again elsewhere.
    TakenOver {
        /// Seconds since the session began.
        t: f64,
        /// Number of the path that was left.
        path: u8,
        /// Since the last packet that the path delivered, or the first one it did not.
        after_ms: f64,
    },
    /// The end; the last line.
    Totals(Totals),
}

/// The whole session.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// `send`, `recv`, `tunnel`.
    pub command: &'static str,
    /// How long it took, seconds.
    pub duration_s: f64,
    /// How it ended, in a few words, or what failed.
    pub ended: String,
    /// The stream.
    pub stream: StreamRow,
    /// What the receiver put out, as it reported to the sender.
    pub received: Option<Done>,
    /// Each path.
    pub paths: Vec<PathTotals>,
}

/// A path over the whole session.
#[derive(Clone, Debug, Serialize)]
pub struct PathTotals {
    /// Number of the path.
    pub path: u8,
    /// Interface or address it leaves from.
    pub local: String,
    /// Address of the peer.
    pub remote: String,
    /// Health at the end.
    pub state: &'static str,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<Range>,
    /// Congestion window.
    pub cwnd_bytes: Option<Range>,
    /// Sent per interval.
    pub send_bps: Option<Range>,
    /// Received per interval.
    pub receive_bps: Option<Range>,
    /// Counters of the path.
    #[serde(flatten)]
    pub counters: PathCounts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// One row of each kind, with all that may be in it.
    fn rows() -> Vec<Row> {
        let range = Some(Range { min: 0.0, avg: 0.0, max: 0.0 });
        let counters = PathCounts::default();
        let stream = StreamRow { connected: Some(true), parity: Some(ParityRow::default()), ..StreamRow::default() };
        let (t, path, local, remote, state) = (0.0, 0, String::new(), String::new(), "active");
        let stats = PathRow {
            t,
            path,
            local: local.clone(),
            remote: remote.clone(),
            state,
            srtt_ms: range,
            rto_ms: range,
            cwnd_bytes: range,
            in_flight_bytes: range,
            send_bps: range,
            receive_bps: range,
            delivery_bps: range,
            capacity_bps: range,
            counters,
            link: Some(LinkRow { frames: 0, frame_errors: 0 }),
        };
        let (srtt_ms, cwnd_bytes, send_bps, receive_bps) = (range, range, range, range);
        let of_path = PathTotals { path, local, remote, state, srtt_ms, cwnd_bytes, send_bps, receive_bps, counters };
        let received = Some(Done::default());
        vec![
            Row::Begin { version: VERSION, command: "send", mode: "media", peer: String::new(), latency_ms: 0 },
            Row::Stats(stats),
            Row::Stream { t, stream },
            Row::Link { t, state: "lost", why: Some(String::new()), latency_ms: Some(0) },
            Row::PathAdded { t, path },
            Row::Path { t, path, from: state, to: state, reason: "silent" },
            Row::PacketSize { t, path, bytes: 0 },
            Row::TakenOver { t, path, after_ms: 0.0 },
            Row::Totals(Totals {
                command: "send",
                duration_s: t,
                ended: String::new(),
                stream,
                received,
                paths: vec![of_path],
            }),
        ]
    }

    /// The names of all fields, and the events.
    fn names(v: &Value, into: &mut BTreeSet<String>) {
        match v {
            Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
                into.insert(name.clone());
                names(inner, into);
                if name == "event" {
                    into.extend(inner.as_str().map(str::to_owned));
                }
            }),
            Value::Array(items) => items.iter().for_each(|i| names(i, into)),
            _ => {}
        }
    }

    #[test]
    fn the_page_of_statistics_names_every_field_and_event() {
        let page = include_str!("../../../../docs/STATS.md");
        let mut all = BTreeSet::new();
        for row in rows() {
            // A kind that is added is to be added above.
            match row {
                Row::Begin { .. } | Row::Stats(_) | Row::Stream { .. } | Row::Link { .. } | Row::PathAdded { .. } => {}
                Row::Path { .. } | Row::PacketSize { .. } | Row::TakenOver { .. } | Row::Totals(_) => {}
            }
            names(&serde_json::to_value(&row).unwrap(), &mut all);
        }
        assert!(all.len() > 50, "{all:?}");
        // The parts of a range are named by their shape.
        let unnamed = |n: &&String| !page.contains(&format!("`{n}`")) && !page.contains(&format!("\"{n}\":…"));
        assert_eq!(all.iter().filter(unnamed).collect::<Vec<_>>(), Vec::<&String>::new(), "not in docs/STATS.md");
    }
}
