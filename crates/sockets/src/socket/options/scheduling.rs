//! Which stream's message goes next (RFC 8260 §4.3): SCTP_STREAM_SCHEDULER and SCTP_STREAM_SCHEDULER_VALUE.

use super::super::{AssociationId, Errno, SocketId, Stack, Style};
use crate::abi::option::{AssocValue, StreamValue, scheduler};
use anabranch_base::StreamId;
use anabranch_policy::registry::Hook;
use zerocopy::IntoBytes;

/// SCTP_CURRENT_ASSOC.
const CURRENT: i32 = 1;
/// SCTP_ALL_ASSOC.
const ALL: i32 = 2;

/// The policy behind a number; streams without a value are treated as Linux does.
pub(super) fn policy(number: u32) -> Option<&'static str> {
    Some(match number {
        scheduler::FCFS => "fcfs",
        scheduler::PRIO => "priority:first=1",
        scheduler::RR => "round_robin",
        scheduler::FC => "fair_capacity",
        scheduler::WFQ => "weighted_fair:factor=1",
        _ => return None,
    })
}

/// The number of a policy. One that Linux does not have is shown as the default.
fn number(policy: &str) -> u32 {
    match policy {
        "priority" => scheduler::PRIO,
        "round_robin" => scheduler::RR,
        "fair_capacity" => scheduler::FC,
        "weighted_fair" => scheduler::WFQ,
        _ => scheduler::FCFS,
    }
}

impl Stack {
    pub(super) fn set_scheduler(&mut self, id: SocketId, v: AssocValue) -> Result<(), Errno> {
        let (which, wanted) = (v.id.get(), v.value.get());
        let spec = policy(wanted).ok_or(Errno::INVALID)?;
        for a in self.concerned(id, which)? {
            let Some(mut e) = self.engine_mut(a) else { continue };
            let mut profile = e.config().profile.clone();
            let set = profile.set(Hook::StreamScheduler, spec).and_then(|()| e.set_stream_scheduler(profile));
            set.map_err(|_| Errno::INVALID)?;
        }
        let s = self.get_mut(id)?;
        if s.style == Style::OneToOne || matches!(which, 0 | ALL) {
            s.options.scheduler = Some(wanted);
        }
        Ok(())
    }

    pub(super) fn scheduler(&self, id: SocketId, which: i32) -> Result<Vec<u8>, Errno> {
        let of = |a: AssociationId| self.engine(a).map(|e| number(e.config().profile.get(Hook::StreamScheduler)));
        let one = self.one(id, which).ok().and_then(of);
        let value = match one {
            Some(n) => n,
            None if which > ALL && self.get(id)?.style == Style::OneToMany => return Err(Errno::INVALID),
            None => self.get(id)?.options.scheduler.unwrap_or(scheduler::FCFS),
        };
        Ok(AssocValue { id: which.into(), value: value.into() }.as_bytes().to_vec())
    }

    pub(super) fn set_stream_value(&mut self, id: SocketId, v: StreamValue) -> Result<(), Errno> {
        let all = v.id.get() == CURRENT && self.get(id)?.style == Style::OneToMany;
        let list = if all { self.get(id)?.associations.clone() } else { vec![self.one(id, v.id.get())?] };
        for a in list {
            let mut e = self.engine_mut(a).ok_or(Errno::INVALID)?;
            let used = number(e.config().profile.get(Hook::StreamScheduler));
            let (stream, value) = (v.stream.get(), v.value.get());
            if stream >= e.streams().0 || (used == scheduler::WFQ && value == 0) {
                return Err(Errno::INVALID);
            }
            // Only these look at values; the others forget them.
            if matches!(used, scheduler::PRIO | scheduler::WFQ) {
                e.set_stream_value(StreamId(stream), Some(value));
                drop(e);
                if let Some(a) = self.associations.get_mut(&a) {
                    a.stream_values.insert(stream, value);
                }
            }
        }
        Ok(())
    }

    pub(super) fn stream_value(&self, id: SocketId, mut v: StreamValue) -> Result<Vec<u8>, Errno> {
        let a = self.one(id, v.id.get())?;
        let e = self.engine(a).ok_or(Errno::INVALID)?;
        if v.stream.get() >= e.streams().0 {
            return Err(Errno::INVALID);
        }
        let set = self.associations.get(&a).and_then(|a| a.stream_values.get(&v.stream.get()).copied());
        v.value = match number(e.config().profile.get(Hook::StreamScheduler)) {
            scheduler::PRIO => set.unwrap_or(0),
            scheduler::WFQ => set.unwrap_or(1),
            _ => 0,
        }
        .into();
        Ok(v.as_bytes().to_vec())
    }
}
