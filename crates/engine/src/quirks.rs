//! Rules of ns-2.35's SCTP that RFC 9260 does not have, and some of its bugs.
//!
//! Results of two decades were obtained with `Agent/SCTP` and `Agent/SCTP/CMT`; to compare with them the engine can
//! follow the same rules. Each is a switch of its own, off by default, found by reading that simulator's behaviour
//! and checked by `experiments/crosscheck-ns2`. The profiles `ns2-era` and `ns2-era-cmt` choose what each agent has.

use crate::config::AssocConfig;

/// The switches. All off is RFC 9260.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A SACK sent by the delay timer counts no packet (DAC).
    pub timer_counts_none: bool,
    /// A SACK that was overtaken takes back what it does not know: those chunks are outstanding again.
    pub stale_sacks_count: bool,
    /// Beyond the threshold a chunk counts once towards the next packet of the window, although its acknowledgement was
    /// taken back and came again (`stale_sacks_count`), and of what gap blocks acknowledge only what follows the chunk
    /// that CUC expected.
    pub counted_once: bool,
}

impl Quirks {
    /// What `Agent/SCTP` does.
    pub fn ns2() -> Self {
        Quirks { stale_sacks_count: true, ..Quirks::default() }
    }

    /// What `Agent/SCTP/CMT` does.
    pub fn ns2_cmt() -> Self {
        Quirks { timer_counts_none: true, stale_sacks_count: true, counted_once: true, ..Quirks::default() }
    }

    /// Names of the switches that [`Quirks::set`] knows.
    pub const NAMES: [&'static str; 3] = ["timer_counts_none", "stale_sacks_count", "counted_once"];

    /// Turns the switch called `name` on or off. False when there is none of that name.
    pub fn set(&mut self, name: &str, on: bool) -> bool {
        let Some(switch) = self.switch(name) else { return false };
        *switch = on;
        true
    }

    /// Is the switch called `name` on? False when there is none of that name.
    pub fn get(mut self, name: &str) -> bool {
        self.switch(name).is_some_and(|on| *on)
    }

    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "timer_counts_none" => &mut self.timer_counts_none,
            "stale_sacks_count" => &mut self.stale_sacks_count,
            "counted_once" => &mut self.counted_once,
            _ => return None,
        })
    }
}

impl AssocConfig {
    /// The rules that go with the profiles of ns-2's time; none for other profiles.
    pub(crate) fn adopt_era(&mut self) {
        self.quirks = match self.profile.name() {
            "ns2-era" => Quirks::ns2(),
            "ns2-era-cmt" => Quirks::ns2_cmt(),
            _ => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::registry::Profile;

    #[test]
    fn every_switch_has_its_name() {
        for name in Quirks::NAMES {
            let mut q = Quirks::default();
            assert!(q.set(name, true) && q != Quirks::default(), "{name}");
            assert!(q.set(name, false) && q == Quirks::default(), "{name}");
        }
        assert!(!Quirks::default().set("t3", true));
    }

    #[test]
    fn an_era_comes_with_its_profile_and_with_no_other() {
        let config = |name: &str| AssocConfig::new(Profile::named(name).expect("a profile"));
        let era = config("ns2-era");
        assert_eq!((era.quirks, era.max_payload()), (Quirks::ns2(), 1_452));
        assert_eq!((era.initial_window, era.initial_ssthresh), (Some(4_332), 64_821));
        assert_eq!(config("ns2-era-cmt").quirks, Quirks::ns2_cmt());
        for name in Profile::names().into_iter().filter(|n| !n.starts_with("ns2-era")) {
            let c = config(name);
            assert_eq!((c.quirks, c.initial_window, c.peer_chunk_overhead), (Quirks::default(), None, 0), "{name}");
        }
    }
}
