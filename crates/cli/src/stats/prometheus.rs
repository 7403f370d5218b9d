//! The state of all sessions in Prometheus' text format: one page, written anew each interval.

use super::range::Range;
use super::rows::{PathRow, PathTotals, StreamRow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A value of one path or session.
struct Sample {
    labels: String,
    value: f64,
}

/// A session as it is published.
pub(super) struct Snapshot<'a> {
    pub session: u32,
    pub command: &'static str,
    pub mode: &'static str,
    pub peer: &'a str,
    /// Of the stream, where there are several.
    pub name: Option<&'a str>,
    /// Seconds since it began.
    pub t: f64,
    pub rows: &'a [PathRow],
    pub totals: &'a [PathTotals],
    pub stream: &'a StreamRow,
}

/// Sessions that run, and the last that ended.
#[derive(Default)]
pub(super) struct Page {
    sessions: BTreeMap<u32, Session>,
}

#[derive(Default)]
struct Session {
    over: bool,
    /// By metric.
    samples: BTreeMap<&'static str, Vec<Sample>>,
}

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// Name, kind and meaning of every metric.
const METRICS: &[(&str, &str, &str)] = &[
    ("anabranch_session_seconds", GAUGE, "Time since the session began."),
    ("anabranch_stream_messages_total", COUNTER, "Messages handed over (sender) or put out (receiver)."),
    ("anabranch_stream_bytes_total", COUNTER, "Bytes of the source handed over or put out."),
    ("anabranch_stream_frames_total", COUNTER, "Frames begun (sender), put out or missed (receiver)."),
    ("anabranch_stream_frames_unusable_total", COUNTER, "Frames with a part missing at play-out."),
    ("anabranch_stream_late_total", COUNTER, "Messages that came after their instant."),
    ("anabranch_stream_lost_total", COUNTER, "Messages that had not come at their instant."),
    ("anabranch_stream_abandoned_total", COUNTER, "Messages given up because their deadline passed."),
    (
        "anabranch_stream_dropped_bytes_total",
        COUNTER,
        "Bytes of the source dropped before they were sent, since there was no connection (sender).",
    ),
    ("anabranch_reconnects_total", COUNTER, "How often the session began anew (sender)."),
    ("anabranch_connected", GAUGE, "1 while there is a session with the receiver (sender)."),
    ("anabranch_parity_sent_bytes_total", COUNTER, "Bytes of parity sent (with parity)."),
    ("anabranch_parity_received_total", COUNTER, "Parity chunks received (with parity)."),
    ("anabranch_repaired_total", COUNTER, "Chunks that did not come and were restored from parity."),
    ("anabranch_repaired_by_peer_total", COUNTER, "Chunks that were lost and that the peer restored from parity."),
    ("anabranch_stream_usable_low_bytes_per_second", GAUGE, "What the paths carry within the latency, safe (sender)."),
    ("anabranch_stream_usable_middle_bytes_per_second", GAUGE, "The same, as expected (sender)."),
    ("anabranch_path_active", GAUGE, "1 while the path is active."),
    ("anabranch_path_srtt_seconds", GAUGE, "Smoothed round-trip time, mean of the interval."),
    ("anabranch_path_rto_seconds", GAUGE, "Retransmission timeout, mean of the interval."),
    ("anabranch_path_cwnd_bytes", GAUGE, "Congestion window, mean of the interval."),
    ("anabranch_path_in_flight_bytes", GAUGE, "Payload in flight, mean of the interval."),
    ("anabranch_path_delivery_bytes_per_second", GAUGE, "Payload acknowledged, mean of the interval."),
    (
        "anabranch_path_capacity_bytes_per_second",
        GAUGE,
        "What the path can carry, as far as is known, mean of the interval.",
    ),
    ("anabranch_path_packets_sent_total", COUNTER, "Packets sent."),
    ("anabranch_path_bytes_sent_total", COUNTER, "Bytes sent, with SCTP headers."),
    ("anabranch_path_data_sent_bytes_total", COUNTER, "Payload sent, repetitions included."),
    ("anabranch_path_data_retransmitted_bytes_total", COUNTER, "Payload sent again."),
    ("anabranch_path_packets_received_total", COUNTER, "Packets received."),
    ("anabranch_path_bytes_received_total", COUNTER, "Bytes received, with SCTP headers."),
    ("anabranch_path_lost_by_report_total", COUNTER, "Chunks declared lost by the peer's reports."),
    ("anabranch_path_lost_by_timeout_total", COUNTER, "Chunks declared lost by T3."),
    ("anabranch_path_timeouts_total", COUNTER, "T3 expiries."),
];

impl Page {
    /// A session begins: those that are over have been shown long enough.
    pub fn begin(&mut self) {
        self.sessions.retain(|_, s| !s.over);
    }

    /// A session is over; what it came to stays until the next begins.
    pub fn end(&mut self, session: u32) {
        if let Some(s) = self.sessions.get_mut(&session) {
            s.over = true;
        }
    }

    /// Takes in the state of a session.
    pub fn set(&mut self, now: &Snapshot<'_>) {
        let mut session = Session::default();
        let name = now.name.map_or(String::new(), |n| format!(",streamid=\"{}\"", escaped(n)));
        let labels = format!(
            "session=\"{}\",command=\"{}\",mode=\"{}\",peer=\"{}\"{name}",
            now.session,
            now.command,
            now.mode,
            escaped(now.peer)
        );
        let s = now.stream;
        for (name, value) in [
            ("anabranch_session_seconds", now.t),
            ("anabranch_stream_messages_total", s.messages as f64),
            ("anabranch_stream_bytes_total", s.bytes as f64),
            ("anabranch_stream_frames_total", s.frames as f64),
            ("anabranch_stream_frames_unusable_total", s.frames_unusable as f64),
            ("anabranch_stream_late_total", s.late as f64),
            ("anabranch_stream_lost_total", s.lost as f64),
            ("anabranch_stream_abandoned_total", s.abandoned as f64),
        ] {
            session.add(name, &labels, value);
        }
        if let Some(connected) = s.connected {
            session.add("anabranch_stream_dropped_bytes_total", &labels, s.dropped_bytes as f64);
            session.add("anabranch_reconnects_total", &labels, s.reconnects as f64);
            session.add("anabranch_connected", &labels, f64::from(u8::from(connected)));
        }
        if let Some(p) = s.parity {
            session.add("anabranch_parity_sent_bytes_total", &labels, p.parity_bytes_sent as f64);
            session.add("anabranch_parity_received_total", &labels, p.parity_received as f64);
            session.add("anabranch_repaired_total", &labels, p.repaired as f64);
            session.add("anabranch_repaired_by_peer_total", &labels, p.repaired_by_peer as f64);
        }
        if s.usable_middle_bps > 0 {
            session.add("anabranch_stream_usable_low_bytes_per_second", &labels, s.usable_low_bps as f64 / 8.0);
            session.add("anabranch_stream_usable_middle_bytes_per_second", &labels, s.usable_middle_bps as f64 / 8.0);
        }
        for p in now.totals {
            let labels = format!(
                "session=\"{}\",path=\"{}\",local=\"{}\",remote=\"{}\"{name}",
                now.session,
                p.path,
                escaped(&p.local),
                escaped(&p.remote)
            );
            session.path(&labels, p, now.rows.iter().find(|r| r.path == p.path));
        }
        self.sessions.insert(now.session, session);
    }

    /// As text. All values of one metric stand together, whatever session they are of.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (name, kind, help) in METRICS {
            let mut samples = self.sessions.values().filter_map(|s| s.samples.get(name)).flatten().peekable();
            if samples.peek().is_none() {
                continue;
            }
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for s in samples {
                let _ = writeln!(out, "{name}{{{}}} {}", s.labels, s.value);
            }
        }
        out
    }
}

impl Session {
    fn add(&mut self, name: &'static str, labels: &str, value: f64) {
        self.samples.entry(name).or_default().push(Sample { labels: labels.to_owned(), value });
    }

    fn path(&mut self, labels: &str, p: &PathTotals, row: Option<&PathRow>) {
        let c = &p.counters;
        for (name, value) in [
            ("anabranch_path_packets_sent_total", c.packets_sent),
            ("anabranch_path_bytes_sent_total", c.bytes_sent),
            ("anabranch_path_data_sent_bytes_total", c.data_sent),
            ("anabranch_path_data_retransmitted_bytes_total", c.data_retransmitted),
            ("anabranch_path_packets_received_total", c.packets_received),
            ("anabranch_path_bytes_received_total", c.bytes_received),
            ("anabranch_path_lost_by_report_total", c.lost_by_report),
            ("anabranch_path_lost_by_timeout_total", c.lost_by_timeout),
            ("anabranch_path_timeouts_total", c.timeouts),
            ("anabranch_path_active", u64::from(p.state == "active")),
        ] {
            self.add(name, labels, value as f64);
        }
        let Some(row) = row else { return };
        for (name, range, unit) in [
            ("anabranch_path_srtt_seconds", row.srtt_ms, 1e3),
            ("anabranch_path_rto_seconds", row.rto_ms, 1e3),
            ("anabranch_path_cwnd_bytes", row.cwnd_bytes, 1.0),
            ("anabranch_path_in_flight_bytes", row.in_flight_bytes, 1.0),
            ("anabranch_path_delivery_bytes_per_second", row.delivery_bps, 8.0),
            ("anabranch_path_capacity_bytes_per_second", row.capacity_bps, 8.0),
        ] {
            if let Some(Range { avg, .. }) = range {
                self.add(name, labels, avg / unit);
            }
        }
    }
}

/// A label's value may hold anything but these three as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot<'a>(session: u32, stream: &'a StreamRow) -> Snapshot<'a> {
        Snapshot {
            session,
            command: "recv",
            mode: "file",
            peer: "a\"b",
            name: None,
            t: 1.5,
            rows: &[],
            totals: &[],
            stream,
        }
    }

    /// A metric is named in full, by its end as in `…_rto_seconds`, or as a counter of `anabranch_path_…_total`.
    #[test]
    fn the_page_of_statistics_names_every_metric() {
        let page = include_str!("../../../../docs/STATS.md");
        let section = page.split("\n## ").find(|s| s.starts_with("Prometheus")).unwrap();
        let named = |name: &str| {
            let short =
                ["anabranch_path_", "anabranch_stream_", "anabranch_"].into_iter().find_map(|p| name.strip_prefix(p));
            let short = short.unwrap_or(name);
            let counter = short.strip_suffix("_total").unwrap_or(short);
            [format!("`{name}`"), format!("`…_{short}`"), format!("`{counter}`")].iter().any(|n| section.contains(n))
        };
        let unnamed: Vec<&str> = METRICS.iter().map(|m| m.0).filter(|name| !named(name)).collect();
        assert!(unnamed.is_empty(), "not in docs/STATS.md: {unnamed:?}");
    }

    #[test]
    fn values_of_a_metric_stand_together_and_old_sessions_go() {
        let stream = StreamRow { bytes: 7, ..StreamRow::default() };
        let mut page = Page::default();
        page.begin();
        page.set(&snapshot(0, &stream));
        page.begin();
        page.set(&snapshot(1, &stream));
        let text = page.render();
        let want = "# HELP anabranch_stream_bytes_total Bytes of the source handed over or put out.\n\
            # TYPE anabranch_stream_bytes_total counter\n\
            anabranch_stream_bytes_total{session=\"0\",command=\"recv\",mode=\"file\",peer=\"a\\\"b\"} 7\n\
            anabranch_stream_bytes_total{session=\"1\",command=\"recv\",mode=\"file\",peer=\"a\\\"b\"} 7\n# HELP ";
        assert!(text.contains(want), "{text}");
        page.end(0);
        assert!(page.render().contains("session=\"0\""), "still there");
        page.begin();
        assert!(!page.render().contains("session=\"0\""));
        assert!(page.render().contains("session=\"1\""));
    }
}
