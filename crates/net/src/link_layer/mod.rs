//! What interfaces' link layers say of their frames, for associations whose policies ask for it
//! ([`Asks::LINK_REPORTS`](anabranch_policy::Asks::LINK_REPORTS)): on a live host what the lab's links report in simulations.
//!
//! A thread of its own asks, since a driver may have to ask its firmware, and nothing that is sent may wait for that.
//! An interface that is no wireless one, or whose driver counts no repetitions, is passed over: its paths have no
//! report, policies take them as they find them, and a warning says so.

mod counts;
mod nl80211;
mod silent;

use crate::shared::{Core, Shared};
use anabranch_engine::LocalId;
use anabranch_policy::view::FrameErrors;
use counts::Counts;
use nl80211::Kernel;
use silent::Silent;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often reports come, as in the lab's scenarios.
const PERIOD: Duration = Duration::from_millis(100);
/// Asking takes a tenth of the time at most.
const REST: u32 = 10;
/// When an interface without reports is asked again.
const LATER: Duration = Duration::from_secs(1);

/// An interface that paths leave by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub local: LocalId,
    /// For people.
    pub name: String,
    /// The kernel's number of it.
    pub index: u32,
}

type Places = Arc<Mutex<Vec<Place>>>;

/// Which interfaces are looked at, and whether anyone does.
#[derive(Debug, Default)]
pub(crate) struct LinkLayer {
    places: Places,
    reads: bool,
}

impl LinkLayer {
    /// An association asks for reports. The first one starts the thread.
    pub fn want(&mut self, shared: &Arc<Shared>) {
        if std::mem::replace(&mut self.reads, true) {
            return;
        }
        let (shared, places) = (Arc::downgrade(shared), self.places.clone());
        let run = move || {
            let kernel = Kernel::open();
            if let Err(error) = &kernel {
                tracing::debug!(%error, "no wireless interfaces here");
            }
            Reader::new(kernel.ok()).run(&shared, &places);
        };
        if let Err(error) = std::thread::Builder::new().name("anabranch-link".into()).spawn(run) {
            tracing::warn!(%error, "no thread for reports on frames");
        }
    }

    /// Does any association ask?
    pub fn is_wanted(&self) -> bool {
        self.reads
    }

    /// From now on it is these.
    pub fn follow(&self, places: Vec<Place>) {
        *self.places.lock().unwrap_or_else(PoisonError::into_inner) = places;
    }
}

/// An interface as it was last found.
struct Watched {
    index: u32,
    counts: Counts,
    /// When it is asked next.
    next: Instant,
    reports: bool,
}

struct Reader {
    /// None where the system knows no wireless interfaces.
    kernel: Option<Kernel>,
    watched: Vec<Watched>,
    silent: Silent,
}

impl Reader {
    fn new(kernel: Option<Kernel>) -> Self {
        Reader { kernel, watched: Vec::new(), silent: Silent::default() }
    }

    /// Until the endpoint is gone.
    fn run(&mut self, shared: &Weak<Shared>, places: &Mutex<Vec<Place>>) {
        loop {
            let began = Instant::now();
            let wanted = places.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let reports = self.look(&wanted, began);
            let Some(shared) = shared.upgrade() else { return };
            let mut core = shared.lock();
            if core.stopped {
                return;
            }
            deliver(&mut core, &reports);
            self.silent.look(&core, began);
            drop(core);
            drop(shared);
            std::thread::sleep(PERIOD.max(began.elapsed() * REST));
        }
    }

    /// Asks for the interfaces that are due.
    fn look(&mut self, places: &[Place], now: Instant) -> Vec<(LocalId, FrameErrors)> {
        self.watched.retain(|w| places.iter().any(|p| p.index == w.index));
        let mut reports = Vec::new();
        for (i, place) in places.iter().enumerate() {
            // IPv4 and IPv6 are two sides of one interface.
            let report = match places.iter().take(i).find(|p| p.index == place.index) {
                Some(twin) => reports.iter().find(|(local, _)| *local == twin.local).map(|(_, report)| *report),
                None => self.ask(place, now),
            };
            reports.extend(report.map(|report| (place.local, report)));
        }
        reports
    }

    fn ask(&mut self, place: &Place, now: Instant) -> Option<FrameErrors> {
        let at = self.watched.iter().position(|w| w.index == place.index).unwrap_or(self.watched.len());
        if at == self.watched.len() {
            self.watched.push(Watched { index: place.index, counts: Counts::default(), next: now, reports: false });
        }
        let w = self.watched.get_mut(at).filter(|w| w.next <= now)?;
        let report = match self.kernel.as_mut()?.stations(place.index) {
            Ok(stations) => w.counts.look(&stations, now),
            Err(error) => {
                tracing::debug!(interface = %place.name, %error, "no stations");
                None
            }
        };
        w.next = now + if report.is_some() { Duration::ZERO } else { LATER };
        // Of one that never had any the paths tell.
        match (std::mem::replace(&mut w.reports, report.is_some()), report) {
            (false, Some(r)) => {
                tracing::info!(interface = %place.name, modulation = ?r.modulation, "reports on frames")
            }
            (true, None) => tracing::warn!(interface = %place.name, "no reports on frames any more"),
            _ => {}
        }
        report
    }
}

fn deliver(core: &mut Core, reports: &[(LocalId, FrameErrors)]) {
    if reports.is_empty() {
        return;
    }
    let all: Vec<_> = core.engine.associations().collect();
    for id in all {
        if let Some(mut a) = core.engine.association_mut(id) {
            reports.iter().for_each(|(local, report)| a.link_report(*local, *report));
        }
    }
}

#[cfg(test)]
mod tests;
