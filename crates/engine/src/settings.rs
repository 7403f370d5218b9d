//! Settings of an association that a profile or a scenario chooses by name.

use crate::config::AssocConfig;
use anabranch_base::Duration;

/// What the user sends while something is outstanding may wait when it fills no packet, until more of it or anything else
/// comes (Nagle's algorithm; RFC 6458 §8.1.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nagle {
    /// Nothing waits.
    #[default]
    Off,
    /// Everything does, as in FreeBSD.
    All,
    /// All but the end of a message that takes several packets, as in Linux.
    NotLastFragment,
}

impl AssocConfig {
    /// The names that [`AssocConfig::set`] knows.
    pub const SETTINGS: [&'static str; 18] = [
        "packet_size",
        "receive_overhead",
        "peer_chunk_overhead",
        "initial_window",
        "initial_ssthresh",
        "rto_initial",
        "outbound_streams",
        "partial_reliability",
        "probe_at_once",
        "resend_probes",
        "retransmissions_ask",
        "give_up_late_holes",
        "gap_blocks_alone",
        "first_data_waits",
        "window_updates",
        "sacks_follow_data",
        "confirm_first",
        "handshake_untimed",
    ];

    /// Gives the setting called `name` a value: bytes, milliseconds, a number, or 0 and 1 for off and on. False when there
    /// is none of that name.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let switch = match name {
            "partial_reliability" => &mut self.extensions.partial_reliability,
            "probe_at_once" => &mut self.compatibility.probe_at_once,
            "resend_probes" => &mut self.compatibility.resend_probes,
            "retransmissions_ask" => &mut self.compatibility.retransmissions_ask,
            "give_up_late_holes" => &mut self.compatibility.give_up_late_holes,
            "gap_blocks_alone" => &mut self.compatibility.gap_blocks_alone,
            "first_data_waits" => &mut self.compatibility.first_data_waits,
            "window_updates" => &mut self.compatibility.window_updates,
            "sacks_follow_data" => &mut self.compatibility.sacks_follow_data,
            "confirm_first" => &mut self.compatibility.confirm_first,
            "handshake_untimed" => &mut self.compatibility.handshake_untimed,
            _ => return self.set_number(name, value),
        };
        *switch = value != 0;
        true
    }

    fn set_number(&mut self, name: &str, value: u64) -> bool {
        match name {
            "packet_size" => self.mtu.packet_size = value as usize,
            "receive_overhead" => self.limits.receive_overhead = value as usize,
            "peer_chunk_overhead" => self.limits.peer_chunk_overhead = value,
            "initial_window" => self.sending.initial_window = Some(value),
            "initial_ssthresh" => self.sending.initial_ssthresh = value,
            "rto_initial" => self.timers.rto_initial = Duration::from_millis(value),
            "outbound_streams" => self.limits.outbound_streams = u16::try_from(value).unwrap_or(u16::MAX),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::registry::Profile;

    fn config(profile: &str) -> AssocConfig {
        AssocConfig::new(Profile::named(profile).expect("a profile"))
    }

    #[test]
    fn every_setting_has_its_name_and_does_something() {
        for name in AssocConfig::SETTINGS {
            let shown = [0, 1].map(|value| {
                let mut c = config("sctp");
                assert!(c.set(name, value), "{name}");
                format!("{c:?}")
            });
            assert_ne!(shown[0], shown[1], "{name}");
        }
        assert!(!config("sctp").set("windows", 1));
    }

    #[test]
    fn profiles_name_settings_that_there_are() {
        for name in Profile::names() {
            let profile = Profile::named(name).expect("a profile");
            let mut c = config("sctp");
            assert!(profile.settings().all(|(setting, value)| c.set(setting, value)), "{name}");
        }
        assert_eq!((config("cmt").sending.initial_window, config("cmt").limits.peer_chunk_overhead), (None, 0));
    }
}
