//! When a path counts as failed, and who hears of it (RFC 7829): SCTP_PEER_ADDR_THLDS,
//! SCTP_EXPOSE_POTENTIALLY_FAILED_STATE.

use super::super::{AssociationId, Errno, Settings, SocketId, Stack};
use crate::abi::address;
use crate::abi::option::{AssocValue, Thresholds, pf_expose};
use crate::abi::read;
use anabranch_engine::{Association as Engine, PathLimits};
use anabranch_policy::registry::{Hook, Profile};
use zerocopy::IntoBytes;

/// Shortest form: without the threshold of the switchover.
const OLD_THRESHOLDS: usize = 140;
/// Never switches over.
const NEVER: u16 = u16::MAX;

/// Thresholds as Linux keeps them, errors in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::socket) struct Failure {
    /// PF.Max.Retrans; none where the program set none.
    pub potentially_failed: Option<u16>,
    /// Primary.Switchover.Max.Retrans.
    pub switchover: u16,
    /// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE.
    pub exposed: u32,
}

impl Failure {
    pub fn new(s: &Settings) -> Self {
        Failure { potentially_failed: None, switchover: s.ps_retrans, exposed: s.pf_expose }
    }

    /// Puts the thresholds into a profile; answers the engine's for the switchover. A profile whose paths are judged
    /// otherwise than RFC 9260 has it knows better, unless the program says something.
    pub fn put(self, s: &Settings, profile: &mut Profile, path_retrans: u16) -> Option<u16> {
        let plain = matches!(profile.get(Hook::PathState), "rfc9260" | "potentially_failed");
        if let Some(pf) = self.potentially_failed.or((s.pf_enable && plain).then_some(s.pf_retrans)) {
            let _ = match plain {
                true if pf >= path_retrans => profile.set(Hook::PathState, "rfc9260"),
                true => profile.set(Hook::PathState, &format!("potentially_failed:pfmr={}", pf.min(255))),
                false => profile.add(Hook::PathState, "pfmr", pf.min(255)),
            };
        }
        if self.switchover == NEVER {
            return None;
        }
        let lowest = profile.build(0).ok()?.path_state.leaves_above(path_retrans);
        Some(self.switchover.max(lowest))
    }
}

/// Errors above which data leaves a path, by its own limits or the association's.
fn leaves_above(e: &Engine, own: PathLimits) -> u16 {
    let max = own.max_retrans.unwrap_or(e.config().failure.max_path_retrans);
    let policy = || e.config().profile.build(0).map_or(max, |p| p.path_state.leaves_above(max));
    own.potentially_failed.map_or_else(policy, |most| most.min(max))
}

impl Stack {
    /// Of one address, or of all and those to come. The threshold of the switchover is the association's either way.
    pub(super) fn set_thresholds(&mut self, id: SocketId, b: &[u8], with_switchover: bool) -> Result<(), Errno> {
        let t = read::<Thresholds>(b, OLD_THRESHOLDS + 2 * usize::from(with_switchover)).ok_or(Errno::INVALID)?;
        let (pf, switchover) = (t.potentially_failed.get(), with_switchover.then(|| t.switchover.get()));
        if switchover.is_some_and(|s| pf > s) {
            return Err(Errno::INVALID);
        }
        let max_retrans = Some(t.max_retrans.get()).filter(|n| *n != 0);
        if let Some(to) = address::parse(&t.address).map(|(a, _)| a).filter(|a| !a.ip().is_unspecified()) {
            let (a, path) = self.transport(id, t.id.get(), to).ok_or(Errno(libc::ENOENT))?;
            let Some(mut e) = self.engine_mut(a) else { return Ok(()) };
            let mut own = e.path_limits(path).unwrap_or_default();
            own.potentially_failed = Some(pf);
            own.max_retrans = max_retrans.or(own.max_retrans);
            e.set_path_limits(path, own);
            if let Some(switchover) = switchover {
                let profile = e.config().profile.clone();
                let lowest = leaves_above(&e, PathLimits::default());
                let switchover = Some(switchover.max(lowest)).filter(|s| *s != NEVER);
                e.set_path_thresholds(profile, switchover).map_err(|_| Errno::INVALID)?;
            }
            return Ok(());
        }
        let concerned = self.concerned(id, t.id.get())?;
        let settings = self.settings.clone();
        let (mut failure, mut path_retrans) = {
            let o = &self.get(id)?.options;
            (o.failure, o.path_retrans)
        };
        failure.potentially_failed = Some(pf);
        failure.switchover = switchover.unwrap_or(failure.switchover);
        path_retrans = max_retrans.unwrap_or(path_retrans);
        for a in &concerned {
            self.clear_limits(*a, true, max_retrans.is_some());
            let Some(mut e) = self.engine_mut(*a) else { continue };
            e.set_max_retrans(None, Some(path_retrans));
            let mut profile = e.config().profile.clone();
            let switchover = failure.put(&settings, &mut profile, path_retrans);
            e.set_path_thresholds(profile, switchover).map_err(|_| Errno::INVALID)?;
        }
        if concerned.is_empty() || self.get(id)?.peer.is_some() {
            let o = &mut self.get_mut(id)?.options;
            (o.failure, o.path_retrans) = (failure, path_retrans);
        }
        Ok(())
    }

    /// What holds for all addresses holds for those that had limits of their own.
    pub(super) fn clear_limits(&mut self, a: AssociationId, potentially_failed: bool, max_retrans: bool) {
        let Some(mut e) = self.engine_mut(a) else { return };
        let paths: Vec<_> = e.paths().map(|(p, _)| p).collect();
        for path in paths {
            let Some(mut own) = e.path_limits(path) else { continue };
            own.potentially_failed = own.potentially_failed.filter(|_| !potentially_failed);
            own.max_retrans = own.max_retrans.filter(|_| !max_retrans);
            e.set_path_limits(path, own);
        }
    }

    pub(super) fn thresholds(&self, id: SocketId, given: &[u8], with_switchover: bool) -> Result<Vec<u8>, Errno> {
        let least = OLD_THRESHOLDS + 2 * usize::from(with_switchover);
        let mut t = read::<Thresholds>(given, least).ok_or(Errno::INVALID)?;
        let o = &self.get(id)?.options;
        let (mut max_retrans, mut switchover) = (o.path_retrans, o.failure.switchover);
        let mut potentially_failed = o.failure.potentially_failed.unwrap_or(self.settings.pf_retrans);
        let (one, path) = match address::parse(&t.address).map(|(a, _)| a).filter(|a| !a.ip().is_unspecified()) {
            Some(to) => {
                self.transport(id, t.id.get(), to).map(|(a, p)| (Some(a), Some(p))).ok_or(Errno(libc::ENOENT))?
            }
            None => (self.concerned(id, t.id.get())?.first().copied(), None),
        };
        if let Some(e) = one.and_then(|a| self.engine(a)) {
            let own = path.and_then(|p| e.path_limits(p)).unwrap_or_default();
            max_retrans = own.max_retrans.unwrap_or(e.config().failure.max_path_retrans);
            switchover = e.config().failure.primary_switchover.unwrap_or(NEVER);
            potentially_failed = leaves_above(e, own);
        }
        (t.max_retrans, t.potentially_failed) = (max_retrans.into(), potentially_failed.into());
        if with_switchover {
            t.switchover = switchover.into();
        }
        Ok(t.as_bytes().get(..given.len().min(size_of::<Thresholds>())).unwrap_or_default().to_vec())
    }

    pub(super) fn set_exposed(&mut self, id: SocketId, v: AssocValue) -> Result<(), Errno> {
        let value = v.value.get();
        if value > pf_expose::ENABLE {
            return Err(Errno::INVALID);
        }
        for a in self.concerned(id, v.id.get())? {
            if let Some(a) = self.associations.get_mut(&a) {
                a.exposed = Some(value);
            }
        }
        self.get_mut(id)?.options.failure.exposed = value;
        Ok(())
    }

    /// What an association's owner hears of doubtful paths.
    pub(in crate::socket) fn exposed(&self, a: AssociationId) -> u32 {
        let Some(a) = self.associations.get(&a) else { return pf_expose::UNSET };
        let of_owner = || a.owner.and_then(|o| self.sockets.get(&o)).map(|s| s.options.failure.exposed);
        a.exposed.or_else(of_owner).unwrap_or(pf_expose::UNSET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(profile: &str, pf: Option<u16>, switchover: u16, path_retrans: u16) -> (String, Option<u16>) {
        let mut p = Profile::named(profile).unwrap();
        let f = Failure { potentially_failed: pf, switchover, exposed: 0 };
        let s = Settings { pf_enable: true, ..Settings::default() };
        let engine = f.put(&s, &mut p, path_retrans);
        (p.spec(Hook::PathState), engine)
    }

    #[test]
    fn thresholds_become_a_policy() {
        assert_eq!(put("sctp", None, NEVER, 5), ("potentially_failed".into(), None));
        assert_eq!(put("sctp", Some(2), 3, 5), ("potentially_failed:pfmr=2".into(), Some(3)));
        assert_eq!(put("sctp", Some(5), 3, 5), ("rfc9260".into(), Some(5)), "data leaves above 5 only");
        let (own, _) = put("cmt", None, NEVER, 5);
        assert_eq!(own, Profile::named("cmt").unwrap().spec(Hook::PathState), "a profile that knows better");
        assert!(put("cmt", Some(1), NEVER, 5).0.ends_with("pfmr=1"));
    }
}
