//! From samples of the connection to rows.

use super::range::Samples;
use super::rows::{LinkRow, PathCounts, PathRow, PathTotals};
use anabranch_net::{Instant, PathReport, PathState};
use anabranch_policy::view::FrameErrors;
use std::collections::BTreeMap;

/// Name of a state.
pub const fn state_name(s: PathState) -> &'static str {
    match s {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::Suspected => "suspected",
        PathState::PotentiallyFailed => "potentially-failed",
        PathState::Inactive => "inactive",
    }
}

/// Samples of one path over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    srtt: Samples,
    rto: Samples,
    cwnd: Samples,
    in_flight: Samples,
    send: Samples,
    receive: Samples,
    delivery: Samples,
    capacity: Samples,
}

#[derive(Debug)]
struct Track {
    local: String,
    remote: String,
    state: &'static str,
    interval: Window,
    whole: Window,
    /// At the last sample, with its time.
    last: PathCounts,
    at: Instant,
    /// Counters at the last row.
    reported: PathCounts,
    /// Of the link layer, at the last sample and at the last row.
    link: [Option<FrameErrors>; 2],
    /// Path numbers are used again; what earlier owners did stays in the totals.
    before: PathCounts,
}

/// Collects samples of all paths.
#[derive(Debug, Default)]
pub struct Collector {
    paths: BTreeMap<u8, Track>,
}

impl Collector {
    /// Takes a sample in.
    pub fn sample(&mut self, now: Instant, reports: &[PathReport]) {
        for r in reports {
            let counts = counts(r);
            let t = self.paths.entry(r.id.0).or_insert_with(|| Track {
                local: String::new(),
                remote: String::new(),
                state: "",
                interval: Window::default(),
                whole: Window::default(),
                last: PathCounts::default(),
                at: now,
                reported: PathCounts::default(),
                link: [None; 2],
                before: PathCounts::default(),
            });
            t.take(now, r, counts);
        }
    }

    /// Another association begins: its paths count from 0 again.
    pub fn renew(&mut self) {
        for t in self.paths.values_mut() {
            t.before = t.last;
        }
    }

    /// One row for each path, and begins the next interval.
    pub fn rows(&mut self, t: f64) -> Vec<PathRow> {
        self.paths.iter_mut().map(|(id, track)| track.row(t, *id)).collect()
    }

    /// The whole session.
    pub fn totals(&self) -> Vec<PathTotals> {
        let total = |(id, t): (&u8, &Track)| PathTotals {
            path: *id,
            local: t.local.clone(),
            remote: t.remote.clone(),
            state: t.state,
            srtt_ms: t.whole.srtt.range(),
            cwnd_bytes: t.whole.cwnd.range(),
            send_bps: t.whole.send.range(),
            receive_bps: t.whole.receive.range(),
            counters: t.last,
        };
        self.paths.iter().map(total).collect()
    }
}

impl Track {
    fn take(&mut self, now: Instant, r: &PathReport, counts: PathCounts) {
        let s = &r.stats;
        self.local = if r.local.is_empty() { r.address.to_string() } else { r.local.clone() };
        self.remote = s.remote.to_string();
        self.state = state_name(s.state);
        if counts.packets_sent < self.last.packets_sent.saturating_sub(self.before.packets_sent)
            || counts.packets_received < self.last.packets_received.saturating_sub(self.before.packets_received)
        {
            self.before = self.last;
        }
        let counts = plus(&counts, &self.before);
        let seconds = now.since(self.at).as_secs_f64();
        for w in [&mut self.interval, &mut self.whole] {
            if !s.srtt.is_zero() {
                w.srtt.add(s.srtt.as_millis_f64());
            }
            w.rto.add(s.rto.as_millis_f64());
            w.cwnd.add(s.cwnd as f64);
            w.in_flight.add(s.in_flight as f64);
            w.delivery.add(s.delivery_rate.bits_per_sec() as f64);
            if s.capacity.bits_per_sec() > 0 {
                w.capacity.add(s.capacity.bits_per_sec() as f64);
            }
            if seconds > 0.0 {
                let d = counts.since(&self.last);
                w.send.add(d.bytes_sent as f64 * 8.0 / seconds);
                w.receive.add(d.bytes_received as f64 * 8.0 / seconds);
            }
        }
        self.last = counts;
        self.link[0] = s.frame_errors;
        self.at = now;
    }

    fn row(&mut self, t: f64, path: u8) -> PathRow {
        let w = std::mem::take(&mut self.interval);
        let counters = self.last.since(&self.reported);
        self.reported = self.last;
        let [now, before] = self.link;
        self.link[1] = now;
        let frames = now.map(|now| now.since(before.unwrap_or_default()));
        PathRow {
            t,
            path,
            local: self.local.clone(),
            remote: self.remote.clone(),
            state: self.state,
            srtt_ms: w.srtt.range(),
            rto_ms: w.rto.range(),
            cwnd_bytes: w.cwnd.range(),
            in_flight_bytes: w.in_flight.range(),
            send_bps: w.send.range(),
            receive_bps: w.receive.range(),
            delivery_bps: w.delivery.range(),
            capacity_bps: w.capacity.range(),
            counters,
            link: frames.map(|f| LinkRow { frames: f.total, frame_errors: f.erroneous }),
        }
    }
}

fn counts(r: &PathReport) -> PathCounts {
    let c = &r.stats.counters;
    PathCounts {
        packets_sent: c.packets_sent,
        bytes_sent: c.bytes_sent,
        data_sent: c.data_sent,
        data_retransmitted: c.data_retransmitted,
        packets_received: c.packets_received,
        bytes_received: c.bytes_received,
        lost_by_report: c.lost_by_report,
        lost_by_timeout: c.lost_by_timeout,
        timeouts: c.timeouts,
    }
}

fn plus(a: &PathCounts, b: &PathCounts) -> PathCounts {
    PathCounts {
        packets_sent: a.packets_sent + b.packets_sent,
        bytes_sent: a.bytes_sent + b.bytes_sent,
        data_sent: a.data_sent + b.data_sent,
        data_retransmitted: a.data_retransmitted + b.data_retransmitted,
        packets_received: a.packets_received + b.packets_received,
        bytes_received: a.bytes_received + b.bytes_received,
        lost_by_report: a.lost_by_report + b.lost_by_report,
        lost_by_timeout: a.lost_by_timeout + b.lost_by_timeout,
        timeouts: a.timeouts + b.timeouts,
    }
}
