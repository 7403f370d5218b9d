//! Messages given up (RFC 3758, RFC 7496), and what the peer is to skip.

use crate::association::path_table::list::Shown;
use crate::association::policies::facts::Facts;
use crate::association::{Association, Undelivered};
use crate::lazy_box::Empty;
use crate::message::SendOptions;
use crate::path::{Path, PathTimer};
use crate::stats::AbandonedStats;
use crate::tx::scoreboard::ChunkState;
use crate::tx::send_queue::SendQueue;
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_policy::abandon::Reason;
use anabranch_policy::view::ChunkView;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Lists are searched for what is late this often at most; what is chosen to be sent is asked about anyway.
pub(in crate::association) const SWEEP: Duration = Duration::from_millis(1);
/// Least time between two looks at what waits, and the time in which nothing left when that is needed.
const QUEUE_SWEEP: Duration = Duration::from_millis(50);
const STANDS: Duration = Duration::from_millis(100);
/// So many are looked at in that time at most.
const SWEPT: u64 = 1_024;

/// What was given up: the association's totals by policy, and the same for each stream that lost something.
#[derive(Default)]
pub(in crate::association) struct Abandoned {
    pub total: AbandonedStats,
    by_stream: BTreeMap<StreamId, AbandonedStats>,
}

impl Empty for Abandoned {
    const EMPTY: &'static Self = &Abandoned { total: AbandonedStats::NONE, by_stream: BTreeMap::new() };
}

/// May it be given up at all?
pub(in crate::association) fn is_partial(c: &ChunkView) -> bool {
    c.deadline.is_some() || c.max_retransmissions.is_some()
}

impl Abandoned {
    pub fn count(&mut self, stream: StreamId, why: Reason, sent: bool) {
        self.total.count(why, sent);
        self.by_stream.entry(stream).or_default().count(why, sent);
    }
}

impl Association {
    /// Messages of `stream` that were given up, by policy (RFC 7496 §4.3).
    pub fn abandoned_on(&self, stream: StreamId) -> AbandonedStats {
        self.sender.abandoned.by_stream.get(&stream).copied().unwrap_or_default()
    }

    /// Drops unsent messages that are less important than one with `options`, until `bytes` more fit. False, and
    /// nothing dropped, when they do not suffice.
    #[inline(never)]
    pub(in crate::association) fn make_room(&mut self, options: &SendOptions, bytes: u64) -> bool {
        if !self.policies.abandon.makes_room() {
            return false;
        }
        self.discard(Reason::Priority, |queue, dropped| queue.discard_below(options.discard_priority, bytes, dropped))
    }

    /// While nothing leaves nothing chooses what waits either: what has waited beyond its deadline is given up all the same.
    #[inline]
    pub(in crate::association) fn give_up_waiting(&mut self, now: Instant) {
        let due = || self.sender.swept_queue.is_none_or(|t| now.since(t) >= QUEUE_SWEEP);
        if self.sender.may_give_up && self.sender.queue.waiting() > 0 && due() {
            self.sweep_queue(now);
        }
    }

    #[inline(never)]
    fn sweep_queue(&mut self, now: Instant) {
        self.sender.swept_queue = Some(now);
        let sent = self.paths.iter().filter_map(|p| p.pace.last_data_sent()).max();
        let stands = sent.is_none_or(|t| now.since(t) >= STANDS);
        if stands && self.peer.forward_tsn && self.policies.abandon.ends_at_deadlines() {
            self.discard(Reason::Lifetime, |queue, dropped| queue.discard_late(now, dropped));
        }
    }

    /// Counts what `discard` drops of what waits, and keeps it for a user who wants it back.
    fn discard<R>(
        &mut self,
        why: Reason,
        discard: impl FnOnce(&mut SendQueue, &mut dyn FnMut(u64, &SendOptions, Bytes)) -> R,
    ) -> R {
        let (groups, abandoned, stats) = (&mut self.sender.groups, &mut self.sender.abandoned, &mut self.stats);
        let (given_up, keeps, most) =
            (&mut self.sender.given_up, self.config.messages.return_given_up, self.config.limits.send_buffer as u64);
        discard(&mut self.sender.queue, &mut |message, o, payload| {
            groups.break_up(o.group);
            groups.taken(o.group, payload.len() as u64);
            abandoned.count(o.stream, why, false);
            stats.abandoned_unsent += 1;
            if keeps {
                given_up.keep(Undelivered::unsent(message, o, payload), most);
            }
        })
    }

    /// Drops the messages on `stream` of which nothing was given a TSN yet: the user wants an end, not the rest.
    /// Answers how many, and their bytes.
    pub fn discard_unsent(&mut self, stream: StreamId) -> (u64, u64) {
        let (groups, stats) = (&mut self.sender.groups, &mut self.stats);
        let mut all = (0, 0);
        self.sender.queue.discard(stream, &mut |o, len| {
            groups.break_up(o.group);
            groups.taken(o.group, len);
            stats.abandoned_unsent += 1;
            all = (all.0 + 1, all.1 + len);
        });
        all
    }

    /// Gives up marked chunks that came too late.
    pub(in crate::association) fn give_up_marked(&mut self, now: Instant) {
        self.give_up(now, true);
    }

    /// Gives up look-ahead chunks that came too late: they have a TSN and need FORWARD-TSN.
    /// True when it did.
    #[inline]
    pub(in crate::association) fn give_up_ahead(&mut self, now: Instant) -> bool {
        self.peer.forward_tsn && self.give_up(now, false)
    }

    fn give_up(&mut self, now: Instant, marked: bool) -> bool {
        let empty = if marked { !self.sender.board.has_marked() } else { self.sender.board.ahead().is_empty() };
        if !self.peer.forward_tsn || empty {
            return false;
        }
        // Marked chunks lie between all that is outstanding.
        let many = if marked { self.sender.board.chunks() } else { self.sender.board.ahead().len() as u64 };
        let swept = if marked { &mut self.sender.swept_marked } else { &mut self.sender.swept_ahead };
        if swept.is_some_and(|t| now.since(t) < SWEEP * (many / SWEPT + 1)) {
            return false;
        }
        *swept = Some(now);
        let found_some = self.sender.may_give_up && self.sweep(now, marked);
        self.after_abandon(now);
        found_some
    }

    /// Gives up all that is worthless by now of one of the lists. What a message takes along with it, others of its
    /// group before it, goes in a second pass.
    #[inline(never)]
    fn sweep(&mut self, now: Instant, marked: bool) -> bool {
        let mut found_some = false;
        let mut list = core::mem::take(&mut self.scratch.swept);
        for _ in 0..2 {
            list.clear();
            if marked {
                list.extend(self.sender.board.marked().map(|(tsn, _)| tsn));
            } else {
                list.extend(self.sender.board.ahead().iter().map(|c| self.sender.board.extend(c.tsn)));
            }
            let state = if marked { ChunkState::Marked } else { ChunkState::Waiting };
            let before = found_some;
            let mut facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
            for &tsn in &list {
                // Its message may have gone with another chunk of it.
                let Some(c) = self.sender.board.get(tsn).filter(|c| c.state == state).map(|c| c.view()) else {
                    continue;
                };
                if let Some(why) = self.worthless(&facts, &c) {
                    self.abandon_message(c.tsn, why);
                    facts = Facts::of(now, &self.paths, &self.sender, &self.policies);
                    found_some = true;
                }
            }
            if before == found_some {
                break;
            }
        }
        list.clear();
        self.scratch.swept = list;
        found_some
    }

    /// Gives up the message of a chunk that was chosen to be sent and is late; true when it did.
    #[inline(never)]
    pub(in crate::association) fn give_up_chosen(&mut self, now: Instant, c: &ChunkView) -> bool {
        let why = if self.peer.forward_tsn && is_partial(c) {
            self.worthless(&Facts::of(now, &self.paths, &self.sender, &self.policies), c)
        } else {
            None
        };
        let Some(why) = why else { return false };
        // Others of its age are late as well.
        (self.sender.swept_marked, self.sender.swept_ahead) = (None, None);
        self.abandon_message(c.tsn, why);
        self.after_abandon(now);
        true
    }

    fn worthless(&mut self, facts: &Facts, c: &ChunkView) -> Option<Reason> {
        if !is_partial(c) {
            return None;
        }
        let group = self.sender.board.get(self.sender.board.extend(c.tsn)).and_then(|c| c.group);
        let (group_broken, group_unsent) = (self.sender.groups.is_broken(group), self.sender.groups.unsent(group));
        let c = ChunkView { group_broken, group_unsent, ..*c };
        let cx = self.views.see(&mut self.paths, &self.policies, facts);
        self.policies.abandon.give_up(&cx, &c)
    }

    /// All chunks of the message go together (RFC 3758 §3.5 A3); what was in flight counts no longer.
    fn abandon_message(&mut self, tsn: anabranch_base::Tsn, why: Reason) {
        let tsn = self.sender.board.extend(tsn);
        let of = |c: &crate::tx::scoreboard::Chunk| (c.message, c.group, c.header.stream);
        let Some((message, group, stream)) = self.sender.board.get(tsn).map(of) else { return };
        self.sender.groups.break_up(group);
        let mut sent = false;
        if self.config.messages.return_given_up {
            self.sender.keep_given_up(tsn);
        }
        for t in self.sender.board.message_tsns(tsn) {
            let Some(c) = self.sender.board.get(t) else { continue };
            sent |= c.transmissions > 0;
            let (len, again) = (c.len(), c.transmissions > 1);
            let copies = self.sender.board.settle(t, ChunkState::Abandoned);
            for l in copies.iter() {
                if let Some(p) = self.paths.get_mut(l.path.index()) {
                    p.give_up(t, l, len, !again);
                }
            }
            if again {
                // It may arrive by what left last.
                self.paths.iter_unseen().for_each(|p| p.progress.acquit(t));
            }
        }
        if self.sender.queue.is_cutting_message(stream.0, message) {
            self.sender.board.append_given_up_end(tsn);
            self.sender.queue.drop_rest_of(stream.0, message);
        }
        self.sender.abandoned.count(stream, why, sent);
        if sent { self.stats.abandoned_sent += 1 } else { self.stats.abandoned_unsent += 1 }
    }

    /// FORWARD-TSN is due whenever given-up chunks stand right behind the cumulative point (RFC 3758 §3.5 C3).
    ///
    /// Not with every SACK: again only when the point moved, or when the last one should have been answered by now.
    pub(in crate::association) fn after_abandon(&mut self, now: Instant) {
        let point = self.sender.board.advance_ack_point(now);
        if point <= self.sender.board.cumulative() {
            self.sender.forward_timer = None;
            self.sender.forward_sent = None;
        } else {
            let srtt = self.paths.iter().map(|p| p.rtt.srtt()).max().filter(|t| !t.is_zero());
            let patience = srtt.unwrap_or(self.config.timers.rto_initial);
            self.sender.forward_due =
                self.sender.forward_sent.is_none_or(|(to, at, _)| to < point || at + patience <= now);
        }
        if self.sender.board.reneged() > 0 {
            return;
        }
        let marked = self.sender.board.has_marked();
        let waits = |p: &Path| marked && p.followed().is_some_and(|f| f.runs_on() && f.lowest().is_some());
        for i in 0..self.paths.len() {
            if let Some(p) = self.paths.get_for(i, Shown::Nothing).filter(|p| p.flight.bytes() == 0 && !waits(p)) {
                p.timers.stop(PathTimer::T3);
            }
        }
    }
}
