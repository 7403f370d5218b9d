//! Named profiles. Data, no code: what a preset does not mention is as in [`BASE`].

use super::Hook;

/// A named profile.
pub(super) struct Preset {
    pub name: &'static str,
    pub summary: &'static str,
    pub choices: &'static [(Hook, &'static str)],
}

/// Plain RFC 9260, one choice per hook in the order of [`Hook::ALL`].
pub(super) const BASE: [(Hook, &str); 17] = [
    (Hook::PathScheduler, "primary_only"),
    (Hook::Retransmission, "rtx_same"),
    (Hook::RetransmissionOrder, "tsn"),
    (Hook::LossCount, "tsn"),
    (Hook::LossThreshold, "three"),
    (Hook::LossTimer, "none"),
    (Hook::LossCause, "always_congestion"),
    (Hook::Window, "rfc9260"),
    (Hook::Coupling, "uncoupled"),
    (Hook::AckCredit, "sack_bytes"),
    (Hook::Timer, "rfc9260"),
    (Hook::StreamScheduler, "fcfs"),
    (Hook::Abandon, "lifetime"),
    (Hook::Acknowledge, "rfc9260"),
    (Hook::PathState, "rfc9260"),
    (Hook::Redundancy, "none"),
    (Hook::PathQuality, "none"),
];

/// All profiles.
pub(super) const PRESETS: &[Preset] = &[
    Preset { name: "sctp", summary: "RFC 9260: one primary path, the others in reserve.", choices: &[] },
    Preset {
        name: "cmt",
        summary: "Concurrent multipath transfer: round robin, split fast retransmit, CUC, RTX-CWND, CMT-PF.",
        choices: &[
            (Hook::PathScheduler, "round_robin"),
            (Hook::Retransmission, "rtx_cwnd"),
            (Hook::LossCount, "per_path"),
            (Hook::AckCredit, "cuc"),
            (Hook::PathState, "potentially_failed"),
        ],
    },
];
