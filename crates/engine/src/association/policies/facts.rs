//! What policies are shown of the association beside its paths, and where new data may leave.

use super::set::Policies;
use crate::association::path_table::PathTable;
use crate::association::sender::Sender;
use crate::path::Path;
use anabranch_base::{Instant, PathId, PathSet, Ppm, Rate};
use anabranch_policy::Asks;
use anabranch_policy::buffer::Share;

/// Facts of a moment, gathered before policies are borrowed.
#[derive(Clone, Copy)]
pub(in crate::association) struct Facts {
    pub now: Instant,
    pub eligible: PathSet,
    pub aside: PathSet,
    pub primary: PathId,
    pub peer_rwnd: u64,
    pub outstanding: u64,
    pub unsent: u64,
    pub declined: bool,
    pub parity_agreed: bool,
    pub initial_cwnd: u64,
    pub aggregate_window: Option<u64>,
    pub load: Load,
}

/// What the user hands over.
#[derive(Clone, Copy, Default)]
pub(in crate::association) struct Load {
    pub send_buffer_fill: Ppm,
    pub data_sent_at: Option<Instant>,
    pub class_rates: [Rate; 3],
}

impl Load {
    #[inline(never)]
    fn of(paths: &PathTable, sender: &Sender) -> Load {
        Load {
            send_buffer_fill: sender.fill(),
            data_sent_at: paths.iter().filter_map(|p| p.pace.last_data_sent()).max(),
            class_rates: sender.class_rates(),
        }
    }
}

impl Facts {
    /// Gathers the facts of `now`, the paths open to new data among them.
    pub fn of(now: Instant, paths: &PathTable, sender: &Sender, policies: &Policies) -> Facts {
        Facts::with(now, eligible(now, paths, sender, policies), paths, sender, policies)
    }

    /// [`of`](Self::of) for a caller that has worked out the eligible paths already.
    #[inline]
    pub fn with(now: Instant, eligible: PathSet, paths: &PathTable, sender: &Sender, policies: &Policies) -> Facts {
        Facts {
            now,
            eligible,
            aside: aside(paths, policies),
            primary: paths.primary(),
            peer_rwnd: sender.peer_rwnd(policies),
            outstanding: sender.outstanding_bytes(),
            unsent: sender.unsent_bytes(),
            declined: false,
            parity_agreed: false,
            initial_cwnd: paths.initial_cwnd(),
            aggregate_window: if policies.ask(Asks::PUBLISH) { policies.coupling.aggregate_window() } else { None },
            load: if policies.ask(Asks::LOAD) { Load::of(paths, sender) } else { Load::default() },
        }
    }

    /// Messages were cut, of which some may have been given up: nothing else differs.
    #[inline]
    pub fn note_cutting(&mut self, sender: &Sender, policies: &Policies) {
        self.unsent = sender.unsent_bytes();
        if policies.ask(Asks::LOAD) {
            self.load.send_buffer_fill = sender.fill();
        }
    }

    /// A chunk of the look-ahead was booked on `path`.
    #[inline]
    pub fn note_taking(&mut self, path: PathId, paths: &PathTable, sender: &Sender, policies: &Policies) {
        self.note_cutting(sender, policies);
        self.outstanding = sender.outstanding_bytes();
        self.peer_rwnd = sender.peer_rwnd(policies);
        if !paths.get(path.index()).is_some_and(|p| has_room(p, self.now, paths, sender, policies)) {
            self.eligible = self.eligible.without(path);
        }
    }
}

/// Paths on which new data may leave now.
#[inline]
pub(in crate::association) fn eligible(
    now: Instant,
    paths: &PathTable,
    sender: &Sender,
    policies: &Policies,
) -> PathSet {
    let (mut open, mut active, mut standby) = (PathSet::EMPTY, false, false);
    for p in paths.iter().filter(|p| p.is_in_use()) {
        (active, standby) = (true, standby | p.access.is_standby());
        if has_room(p, now, paths, sender, policies) {
            open = open.with(p.id());
        }
    }
    let aside = aside(paths, policies);
    if active && !standby {
        return open.except(aside);
    }
    let usable = paths.usable();
    let open = paths.iter().filter(|p| usable.has(p.id()) && has_room(p, now, paths, sender, policies));
    open.map(|p| p.id()).collect::<PathSet>().except(aside)
}

/// Paths that may carry data: those in use that take part in sending, or the best of the others.
#[inline]
pub(in crate::association) fn carrying(paths: &PathTable, policies: &Policies) -> PathSet {
    paths.usable().except(aside(paths, policies))
}

/// Paths that take no part in sending.
#[inline]
pub(in crate::association) fn aside(paths: &PathTable, policies: &Policies) -> PathSet {
    if policies.ask(Asks::QUALITY) { paths.aside() } else { PathSet::EMPTY }
}

/// One more packet of new data may leave on this path.
#[inline]
fn has_room(p: &Path, now: Instant, paths: &PathTable, sender: &Sender, policies: &Policies) -> bool {
    p.has_window(now)
        && (!sender.holds_place(policies) || has_room_beside_marked(p, sender))
        && (!policies.ask(Asks::SHARE) || has_share(p, paths, sender, policies))
}

/// As far as the window has a say in it: what was given as lost on the path keeps its place.
#[inline(never)]
fn has_room_beside_marked(p: &Path, sender: &Sender) -> bool {
    p.expiry.may_probe() || p.congestion.has_room(p.flight.bytes() + sender.marked_bytes_on(p.id()))
}

/// One more packet is within the path's part of the buffers.
#[inline(never)]
fn has_share(p: &Path, paths: &PathTable, sender: &Sender, policies: &Policies) -> bool {
    let active = paths.iter().filter(|p| p.is_in_use()).count();
    let share = Share {
        paths: active as u64,
        on_path: p.flight.bytes(),
        outstanding: sender.outstanding_bytes(),
        packet: paths.mtu(),
        send_buffer: sender.buffer(),
        peer_rwnd: sender.peer_rwnd(policies),
    };
    p.flight.bytes() == 0 || policies.buffer.allows(&share)
}
