//! T1-init, T1-cookie and T2-shutdown: one control chunk again and again, round the peer's addresses (§5.1, §9.2).

use crate::association::control::What;
use crate::association::{Association, State};
use crate::event::CloseReason;
use crate::path::{Origin, Path};
use anabranch_base::{Instant, PathId};

impl Association {
    pub(in crate::association) fn on_control_timer(&mut self, now: Instant) {
        self.handshake.timer = None;
        let (what, limit, why) = match &self.handshake.state {
            State::CookieWait => (What::Init, self.config.failure.max_init_retrans, CloseReason::NoAnswer),
            State::CookieEchoed { cookie } => {
                (What::CookieEcho(cookie.clone()), self.config.failure.max_init_retrans, CloseReason::NoAnswer)
            }
            State::ShutdownSent => (What::Shutdown, self.config.failure.max_association_retrans, CloseReason::PeerGone),
            State::ShutdownAckSent => {
                (What::ShutdownAck, self.config.failure.max_association_retrans, CloseReason::PeerGone)
            }
            _ => return,
        };
        self.handshake.attempts += 1;
        self.handshake.hurried = false;
        if self.handshake.attempts > limit {
            return self.give_up_on_peer(now, why);
        }
        let path = self.control_path();
        self.control.push(path, what);
        self.start_control_timer(now, path);
    }

    /// DATA before the COOKIE ACK, which it has overtaken or which was lost: the COOKIE ECHO need not wait for T1 to be
    /// repeated. Once until then: a peer asks for no more packets than that.
    #[cold]
    pub(in crate::association) fn on_early_data(&mut self, now: Instant) {
        let State::CookieEchoed { cookie } = &self.handshake.state else { return };
        if !self.policies.timer.early() || core::mem::replace(&mut self.handshake.hurried, true) {
            return;
        }
        let what = What::CookieEcho(cookie.clone());
        let path = self.control_path();
        self.control.push(path, what);
        self.start_control_timer(now, path);
    }

    /// The RTO of the path (§6.3.1), once there is one, doubled for each repetition (§6.3.3 E2).
    pub(in crate::association) fn start_control_timer(&mut self, now: Instant, path: PathId) {
        let measured = self.paths.get(path.index()).is_some_and(|p| !p.rtt.srtt().is_zero());
        let rto =
            if measured { self.views.rto(&self.paths, &self.policies, path) } else { self.config.timers.rto_initial };
        let setup = matches!(self.handshake.state, State::CookieWait | State::CookieEchoed { .. });
        let attempts = self.handshake.attempts.into();
        self.handshake.timer = Some(now + self.config.timers.doubled_for_control(rto, attempts, setup));
    }

    /// Where the chunk leaves: first on the path of the handshake or the best one, then on the next that may carry it.
    pub(in crate::association) fn control_path(&self) -> PathId {
        let may = |p: &Path| match self.handshake.state {
            State::CookieWait => matches!(p.origin(), Origin::Handshake | Origin::AddedByUs),
            // The cookie is bound to the source address that the peer saw.
            State::CookieEchoed { .. } => p.access.is_known(),
            _ => self.paths.usable().has(p.id()),
        };
        let list: Vec<PathId> = self.paths.iter().filter(|p| p.access.is_up() && may(p)).map(|p| p.id()).collect();
        let first = list.iter().position(|id| *id == self.handshake.path).unwrap_or(0);
        let turn = (first + usize::from(self.handshake.attempts)) % list.len().max(1);
        list.get(turn).copied().unwrap_or(self.handshake.path)
    }
}
