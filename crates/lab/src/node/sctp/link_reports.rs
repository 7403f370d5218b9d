//! What the link layer of the sender's interfaces counts, handed to the association as a driver would.

use super::{End, SctpAgent};
use crate::node::packet::SctpPacket;
use anabranch_base::{Duration, Instant};
use anabranch_engine::LocalId;
use anabranch_policy::view::FrameErrors;
use anabranch_sim::network::{Address, Context};
use anabranch_sim::{FrameReports, Frames};

/// Interfaces whose link layer reports.
#[derive(Default)]
pub(super) struct LinkReports(Vec<Reporting>);

struct Reporting {
    local: LocalId,
    address: Address,
    every: Duration,
    next: Instant,
}

impl LinkReports {
    /// When the next report is due.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|r| r.next).min()
    }
}

/// Counts of frames in the engine's words.
pub(crate) fn frame_errors(about: FrameReports, counted: Frames) -> FrameErrors {
    FrameErrors {
        erroneous: counted.erroneous,
        total: counted.sent,
        frame: about.frame,
        modulation: about.modulated(),
        technology: about.technology,
    }
}

impl SctpAgent {
    /// Finds out which interfaces report. The receiver sends acknowledgements alone, of which no policy asks.
    pub(super) fn follow_links(&mut self, cx: &mut Context<'_, SctpPacket>) {
        // What is said beforehand of a link is not counted.
        if self.config.end == End::Server || !self.reports.is_empty() {
            return;
        }
        let now = cx.now();
        let reporting = |(i, address): (usize, &Address)| {
            let every = cx.frames(*address)?.0.every?;
            Some(Reporting { local: LocalId(i as u16), address: *address, every, next: now + every })
        };
        self.link_reports.0 = self.interfaces.iter().enumerate().filter_map(reporting).collect();
    }

    /// Hands over the reports that are due; were there any? They make the association do nothing by themselves.
    pub(super) fn report_frames(&mut self, cx: &mut Context<'_, SctpPacket>) -> bool {
        let now = cx.now();
        if self.link_reports.next().is_none_or(|at| at > now) {
            return false;
        }
        if self.closed.is_some() {
            self.link_reports.0.clear();
        }
        let mut association = self.id.and_then(|id| self.endpoint.as_mut()?.association_mut(id));
        for r in self.link_reports.0.iter_mut().filter(|r| r.next <= now) {
            r.next = now + r.every;
            if let (Some(a), Some((about, counted))) = (&mut association, cx.frames(r.address)) {
                a.link_report(r.local, frame_errors(about, counted));
            }
        }
        true
    }
}
