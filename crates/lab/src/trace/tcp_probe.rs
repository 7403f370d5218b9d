//! Sits at a TCP source and notes the state of its connection.

use super::line::{Line, Why, WindowChange};
use super::tracer::{Shared, lock, seconds};
use anabranch_base::{Duration, Instant};
use anabranch_sim::transport::tcp::{Sender, TcpConfig};

/// Notes a connection after each of its steps, in bytes as SCTP's paths are.
pub struct TcpProbe {
    shared: Shared,
    flow: usize,
    segment: u64,
    /// The threshold means something before the first loss.
    starts_with_threshold: bool,
    before: Option<Noted>,
}

/// State of a connection as it was noted.
#[derive(Clone, Copy, PartialEq)]
struct Noted {
    cwnd: u64,
    ssthresh: Option<u64>,
    in_flight: u64,
    srtt: Option<Duration>,
    rto: Duration,
    repairing: bool,
    timeouts: u64,
    reports: u64,
}

impl TcpProbe {
    pub(super) fn new(shared: Shared, flow: usize, config: &TcpConfig) -> Self {
        let starts_with_threshold = config.initial_ssthresh.is_some();
        TcpProbe { shared, flow, segment: u64::from(config.segment), starts_with_threshold, before: None }
    }

    fn look(&self, s: &Sender) -> Noted {
        let bytes = |segments: f64| (segments * self.segment as f64) as u64;
        let c = s.counters();
        let set = self.starts_with_threshold || c.timeouts + c.fast_retransmits > 0;
        // A SYN carries nothing.
        let syn = u64::from(s.acknowledged() == 0);
        Noted {
            cwnd: bytes(s.cwnd()),
            ssthresh: set.then(|| bytes(s.ssthresh())),
            in_flight: s.in_flight().saturating_sub(syn) * self.segment,
            srtt: s.srtt(),
            rto: s.rto(),
            repairing: s.is_repairing(),
            timeouts: c.timeouts,
            reports: c.fast_retransmits,
        }
    }

    /// To be called after each step of the connection, before what it sends has left.
    pub fn noted(&mut self, now: Instant, s: &Sender) {
        let new = self.look(s);
        let before = self.before.replace(new);
        if before == Some(new) {
            return;
        }
        let mut state = lock(&self.shared);
        let Some(f) = state.flows.get_mut(self.flow) else { return };
        f.windows = vec![(new.cwnd, new.ssthresh)];
        if let (Some(loss), Some(slot)) = (noticed(before, new), f.last_loss.first_mut()) {
            *slot = loss;
        }
        let line = Line::Path {
            t: seconds(now),
            flow: f.about.name.clone(),
            path: 0,
            cwnd: new.cwnd,
            ssthresh: new.ssthresh,
            in_flight: new.in_flight,
            srtt: new.srtt.map_or(0.0, Duration::as_secs_f64),
            rto: new.rto.as_secs_f64(),
            state: if new.repairing { "repairing" } else { "open" }.to_owned(),
            why: change(before, new),
        };
        state.files.log(&line);
    }
}

fn noticed(before: Option<Noted>, new: Noted) -> Option<Why> {
    let (timeouts, reports) = before.map_or((0, 0), |b| (b.timeouts, b.reports));
    if new.timeouts > timeouts { Some(Why::Timeout) } else { (new.reports > reports).then_some(Why::Reported) }
}

/// Why a window is another one.
fn change(before: Option<Noted>, new: Noted) -> WindowChange {
    let Some(b) = before else { return WindowChange::Start };
    match noticed(before, new) {
        _ if (b.cwnd, b.ssthresh) == (new.cwnd, new.ssthresh) => WindowChange::Same,
        Some(Why::Timeout) => WindowChange::Timeout,
        Some(_) => WindowChange::Reported,
        None if new.cwnd > b.cwnd => WindowChange::Acknowledged,
        None => WindowChange::Other,
    }
}
