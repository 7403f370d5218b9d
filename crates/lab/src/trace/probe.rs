//! Sits at the sender of a flow and notes the state of its association.

use super::line::{Line, Why, WindowChange};
use super::tracer::{Shared, lock, seconds};
use crate::metrics::{NAMED, STAGE};
use anabranch_base::{Instant, Tsn};
use anabranch_engine::{Association, LostCopy, PathStats};
use anabranch_policy::asks::Counter;
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;

/// What is known of a packet when it is assembled.
#[derive(Clone, Debug, Default)]
pub(super) struct Sending {
    /// The stage of the retransmission policy that decided, if one did.
    pub decided_by: Option<&'static str>,
    /// Window and threshold of each path.
    pub windows: Vec<(u64, Option<u64>)>,
    /// What there was before it.
    pub offer: Offer,
    /// Why each of its chunks leaves, by TSN.
    pub causes: Vec<(u32, Why)>,
}

/// What the path scheduler has to choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    /// Paths with room.
    pub open: Vec<usize>,
    /// Window of each path, and bytes in flight.
    pub rooms: Vec<(u64, u64)>,
    /// No path is active.
    pub dormant: bool,
}

/// Notes the paths of an association after each of its steps.
pub struct Probe {
    shared: Shared,
    flow: usize,
    paths: Vec<Option<PathStats>>,
    /// What the retransmission policy has counted.
    counted: Vec<Counter>,
    offer: Offer,
}

impl Probe {
    pub(super) fn new(shared: Shared, flow: usize) -> Self {
        Probe { shared, flow, paths: Vec::new(), counted: Vec::new(), offer: Offer::default() }
    }

    /// To be called after each input: a packet, a timeout, a send of its user.
    pub fn noted(&mut self, now: Instant, a: &Association) {
        let mut state = lock(&self.shared);
        let Some(name) = state.flows.get(self.flow).map(|f| f.about.name.clone()) else { return };
        for (id, p) in a.paths() {
            let i = id.index();
            if self.paths.len() <= i {
                self.paths.resize(i + 1, None);
            }
            let Some(before) = self.paths.get_mut(i) else { continue };
            let why = change(before.as_ref(), &p);
            if differs(before.as_ref(), &p) {
                state.files.log(&Line::Path {
                    t: seconds(now),
                    flow: name.clone(),
                    path: i,
                    cwnd: p.cwnd,
                    ssthresh: threshold(p.ssthresh),
                    in_flight: p.in_flight,
                    srtt: p.srtt.as_secs_f64(),
                    rto: p.rto.as_secs_f64(),
                    state: format!("{:?}", p.state).to_lowercase(),
                    why,
                });
                *before = Some(p);
            }
        }
    }

    /// To be called with what the association took for lost since the last time.
    pub fn lost(&mut self, now: Instant, lost: &[LostCopy]) {
        let mut state = lock(&self.shared);
        for l in lost {
            let Some(f) = state.flows.get_mut(self.flow) else { return };
            let name = NAMED.iter().find(|(c, _)| *c == l.cause).map(|n| n.1);
            let (flow, cause) = (f.about.name.clone(), f.truth(l.tsn.0, l.sent_at));
            state.files.log(&Line::Judged {
                t: seconds(now),
                flow,
                path: l.path.index(),
                tsn: l.tsn.0,
                sent: seconds(l.sent_at),
                named: name.filter(|_| l.cause.is_some()).map(str::to_owned),
                cause,
            });
        }
    }

    /// To be called before the association is asked for each packet.
    pub fn asking(&mut self, now: Instant, a: &Association) {
        self.offer = Offer {
            open: a.open_paths(now).iter().map(|id| id.index()).collect(),
            rooms: a.paths().map(|(_, p)| (p.cwnd, p.in_flight)).collect(),
            dormant: a.paths().all(|(_, p)| p.state != PathState::Active),
        };
    }

    /// To be called for each packet that the association hands out, before it is sent, with the TSNs in it.
    pub fn sending(&mut self, a: &Association, tsns: impl Iterator<Item = u32>) {
        let causes = tsns.filter_map(|tsn| Some((tsn, a.sent_chunk(Tsn(tsn))?.cause.into()))).collect();
        let now: Vec<Counter> =
            a.policy_counters().filter(|(hook, _)| *hook == Hook::Retransmission).map(|(_, c)| c).collect();
        let decided_by = decided(&self.counted, &now);
        self.counted = now;
        let windows = a.paths().map(|(_, p)| (p.cwnd, threshold(p.ssthresh))).collect();
        let mut state = lock(&self.shared);
        if let Some(f) = state.flows.get_mut(self.flow) {
            let offer = std::mem::take(&mut self.offer);
            f.sending.push_back(Sending { decided_by, windows, offer, causes });
        }
    }
}

/// A threshold that was ever set.
pub(crate) fn threshold(ssthresh: u64) -> Option<u64> {
    (ssthresh < u64::from(u32::MAX)).then_some(ssthresh)
}

/// The criterion whose count has grown.
fn decided(before: &[Counter], now: &[Counter]) -> Option<&'static str> {
    let earlier = |i: usize| before.get(i).map_or(0, |c| c.1);
    let grown = now.iter().enumerate().find(|(i, c)| c.1 > earlier(*i));
    grown.map(|(_, c)| c.0.strip_prefix(STAGE).unwrap_or(c.0))
}

fn noticed(before: Option<&PathStats>, now: &PathStats) -> Option<Why> {
    let (reported, timeout) = before.map_or((0, 0), |b| (b.counters.lost_by_report, b.counters.lost_by_timeout));
    if now.counters.lost_by_timeout > timeout {
        Some(Why::Timeout)
    } else {
        (now.counters.lost_by_report > reported).then_some(Why::Reported)
    }
}

fn differs(before: Option<&PathStats>, now: &PathStats) -> bool {
    let key = |p: &PathStats| {
        (p.cwnd, p.ssthresh, p.in_flight, p.srtt, p.rto, p.state, p.counters.lost_by_report, p.counters.lost_by_timeout)
    };
    before.is_none_or(|b| key(b) != key(now))
}

/// Why a window is another one.
fn change(before: Option<&PathStats>, now: &PathStats) -> WindowChange {
    let Some(before) = before else { return WindowChange::Start };
    if (before.cwnd, before.ssthresh) == (now.cwnd, now.ssthresh) {
        return WindowChange::Same;
    }
    match noticed(Some(before), now) {
        Some(Why::Timeout) => WindowChange::Timeout,
        Some(_) if now.cwnd < before.cwnd => WindowChange::Reported,
        _ if now.cwnd > before.cwnd => WindowChange::Acknowledged,
        _ => WindowChange::Other,
    }
}
