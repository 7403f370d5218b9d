//! What the addresses of a path may be used for.

use super::{Origin, Path};
use anabranch_policy::view::{FrameErrors, PathState};

/// What is known of its two ends: does the peer know ours, is the interface there, is the other one the peer's?
#[derive(Debug)]
pub(crate) struct Access {
    /// How the path became known.
    origin: Origin,
    /// The peer knows this address: by the handshake or by an acknowledged ASCONF.
    known_to_peer: bool,
    /// One of its addresses was taken away and has not come back.
    removed: bool,
    /// Kept warm, and used only when its interface has no other (ARCHITECTURE decision 2).
    standby: bool,
    /// Its host says that it knows nothing of us: the peer listed an address that is not its own.
    disowned: bool,
    /// The driver said that the interface is down.
    interface_down: bool,
    /// Newest report of the link layer, from the driver.
    frame_errors: Option<FrameErrors>,
}

impl Access {
    /// Of a path that became known in this way: the peer is to learn what we add, and knows the others.
    pub fn new(origin: Origin) -> Access {
        Access {
            origin,
            known_to_peer: origin != Origin::AddedByUs,
            removed: false,
            standby: false,
            disowned: false,
            interface_down: false,
            frame_errors: None,
        }
    }

    // ---- the peer's knowledge

    /// How the path became known.
    #[inline(always)]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// It is known in another way from now on.
    pub fn come_from(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// Does the peer know our address?
    #[inline]
    pub fn is_known(&self) -> bool {
        self.known_to_peer
    }

    /// The peer has learnt our address.
    pub fn become_known(&mut self) {
        self.known_to_peer = true;
    }

    /// The peer does not know our address, or not yet: nothing but the request to learn it may leave.
    pub fn become_unknown(&mut self) {
        self.known_to_peer = false;
    }

    /// An address of the path was taken away.
    pub fn remove(&mut self) {
        (self.known_to_peer, self.removed) = (false, true);
    }

    /// Both addresses are there, and the peer knows them.
    pub fn restore(&mut self) {
        (self.known_to_peer, self.removed) = (true, false);
    }

    /// Was one of its addresses taken away?
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// The host at its other end is not the peer.
    pub fn disown(&mut self) {
        self.disowned = true;
    }

    /// Is its other end another host than the peer?
    pub fn is_disowned(&self) -> bool {
        self.disowned
    }

    // ---- our interface

    /// Is the interface there?
    #[inline]
    pub fn is_up(&self) -> bool {
        !self.interface_down
    }

    /// The interface is gone; answers whether it was there.
    pub fn go_down(&mut self) -> bool {
        !core::mem::replace(&mut self.interface_down, true)
    }

    /// The interface is there; answers whether it was gone.
    pub fn come_up(&mut self) -> bool {
        core::mem::take(&mut self.interface_down)
    }

    /// The user names the path again. What the peer `added` comes back by the peer only; everything else does at once.
    /// Answers whether the path had been gone.
    pub fn name_again(&mut self, added_by_peer: bool) -> bool {
        let removed = !added_by_peer && core::mem::take(&mut self.removed);
        self.come_up() || removed
    }

    /// May packets leave: the interface is there, and the peer knows its address?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.known_to_peer && !self.interface_down
    }

    // ---- preference and quality

    /// Is the path kept in reserve?
    #[inline]
    pub fn is_standby(&self) -> bool {
        self.standby
    }

    /// It is kept in reserve from now on, or not.
    pub fn reserve(&mut self, standby: bool) {
        self.standby = standby;
    }

    /// The link layer reports on its frames.
    pub fn report(&mut self, report: FrameErrors) {
        self.frame_errors = Some(report);
    }

    /// Newest report of the link layer.
    pub fn frame_errors(&self) -> Option<FrameErrors> {
        self.frame_errors
    }
}

impl Path {
    /// Does it carry new data?
    #[inline]
    pub fn is_in_use(&self) -> bool {
        self.state.usable() && self.access.is_up()
    }

    /// Has its other end shown to be the peer's, and is the interface there? It need not answer at the moment.
    pub fn is_confirmed(&self) -> bool {
        self.state != PathState::Unconfirmed && self.access.is_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of what may happen to an address, by a letter.
    fn after(events: &str) -> Access {
        let mut a = Access::new(Origin::Handshake);
        for e in events.chars() {
            match e {
                'k' => a.become_known(),
                'u' => a.become_unknown(),
                'x' => a.remove(),
                'r' => a.restore(),
                'd' => _ = a.go_down(),
                'c' => _ = a.come_up(),
                'n' => _ = a.name_again(false),
                _ => _ = a.name_again(true),
            }
        }
        a
    }

    /// Every sequence of four events: packets leave only where the peer knows the address and the interface is there,
    /// each of which the newest event about it decides.
    #[test]
    fn the_newest_word_about_each_end_counts() {
        let all = "kuxrdcnp";
        let sequences = (0..all.len().pow(4)).map(|n| {
            let at = |place: u32| all.as_bytes()[n / all.len().pow(place) % all.len()] as char;
            (0..4).map(at).collect::<String>()
        });
        for s in sequences {
            let a = after(&s);
            let last = |of: &str| s.chars().rev().find(|c| of.contains(*c));
            assert_eq!(a.is_known(), !matches!(last("kuxr"), Some('u' | 'x')), "{s}");
            assert_eq!(a.is_up(), last("dcnp") != Some('d'), "{s}");
            assert_eq!(a.is_removed(), last("xrn") == Some('x'), "{s}");
            assert_eq!(a.is_open(), a.is_known() && a.is_up(), "{s}");
        }
    }

    #[test]
    fn who_names_a_path_again_learns_whether_it_was_gone() {
        for (events, ours, the_peers) in [("", false, false), ("d", true, true), ("x", true, false), ("xd", true, true)]
        {
            assert_eq!(after(events).name_again(false), ours, "{events}");
            assert_eq!(after(events).name_again(true), the_peers, "{events}");
        }
        let mut a = after("d");
        assert!(!a.go_down() && a.come_up() && !a.come_up() && a.go_down());
    }
}
