//! Named profiles. Data, no code: what a preset does not mention is the hook's default.

use super::Hook;

/// A named profile.
#[derive(Debug, PartialEq)]
pub(super) struct Preset {
    pub name: &'static str,
    pub summary: &'static str,
    pub choices: &'static [(Hook, &'static str)],
    /// Made here, for networks that come and go; all others are of standards, papers and other implementations.
    pub ours: bool,
    /// It finds out by itself how large a packet each path carries (RFC 8899).
    pub finds_packet_size: bool,
    /// Its sender says in the handshake when what it sends is a film, each class on a stream of its own.
    pub announces_film: bool,
    /// Limits and settings of the association that belong to it, by name; `AssocConfig::set` of the engine knows them.
    /// Later values replace earlier ones.
    pub settings: &'static [&'static [(&'static str, u64)]],
}

/// What a profile of a standard, a paper or another implementation does not mention.
const THEIRS: Preset = Preset {
    name: "",
    summary: "",
    choices: &[],
    ours: false,
    finds_packet_size: false,
    announces_film: false,
    settings: &[],
};

/// What one of ours does not mention.
const OURS: Preset = Preset { ours: true, ..THEIRS };

/// Bytes of a DATA chunk's header, which ns-2 counts in every window. Its windows count chunks with their headers, ours
/// count payload; all its chunks have one size, 1500 bytes less 20 for IP and 12 for SCTP, so that scaling by it makes
/// both the same.
const NS2_HEADER: u64 = 16;

const fn without_headers(bytes: u64) -> u64 {
    const CHUNK: u64 = 1_468;
    bytes * (CHUNK - NS2_HEADER) / CHUNK
}

// A window of three chunks with their headers is one of three chunks without.
const _: () = assert!(without_headers(3 * 1_468) == 3 * 1_452 && without_headers(4_380) == 4_332);

/// What `Agent/SCTP` has as its limits, whichever of its kinds it is.
const NS2: [(&str, u64); 13] = [
    ("packet_size", 1_480),
    ("receive_overhead", NS2_HEADER),
    ("peer_chunk_overhead", NS2_HEADER),
    ("initial_window", without_headers(4_380)),
    ("initial_ssthresh", without_headers(65_536)),
    ("rto_initial", 3_000),
    ("outbound_streams", 1),
    ("partial_reliability", 0),
    ("confirm_first", 1),
    ("resend_probes", 0),
    ("window_updates", 0),
    ("sacks_follow_data", 1),
    // The first DATA of its CMT may wait for a SACK, that of its plain agent may not.
    ("first_data_waits", 0),
];

/// What `live` and `live-parity` share, with what differs.
macro_rules! live {
    ($($more:expr),*) => {
        &[
            (Hook::PathScheduler, "earliest_arrival:queue_cost=4,look_ahead=40"),
            (Hook::Retransmission, "predicted_arrival"),
            (Hook::RetransmissionOrder, "class_then_tsn"),
            (Hook::LossCount, "per_path"),
            (Hook::LossThreshold, "rack:reports=0,deviations=4,window=0.1"),
            (Hook::LossTimer, "tail_probe:ack_delay=0,least=15"),
            (Hook::Window, "bbr:gain=1.5,probe=250,ack_interval=10"),
            (Hook::AckCredit, "sack_bytes"),
            (Hook::Timer, "rfc9260:rto_min=300,resume=1,probe=50,early=1,ask=1"),
            (Hook::StreamScheduler, "frame_importance"),
            (Hook::Abandon, "arrival:whole=1,drain=1"),
            (Hook::Acknowledge, "at_intervals"),
            (Hook::PathState, "path_truth:ack_delay=0,few=4,probe=100,revisit=100"),
            $($more),*
        ]
    };
}

/// All profiles.
pub(super) const PRESETS: &[Preset] = &[
    Preset { name: "sctp", summary: "RFC 9260: one primary path, the others in reserve.", choices: &[], ..THEIRS },
    Preset {
        name: "cmt",
        summary: "Concurrent multipath transfer: round robin, split fast retransmit, CUC, RTX-CWND, path truth; Westwood+, which takes more than flows that halve.",
        choices: CMT,
        ..OURS
    },
    Preset {
        name: "cmt-fair",
        summary: "CMT that is one flow at a bottleneck, however many of its paths meet there, and does not slow down for what the radio loses.",
        choices: CMT_FAIR,
        ..OURS
    },
    Preset {
        name: "cmt-rtx-csi",
        summary: "CMT with the retransmission path of Cao et al. 2012.",
        choices: &[
            (Hook::PathScheduler, "round_robin"),
            (Hook::Retransmission, "rtx_csi"),
            (Hook::LossCount, "per_path"),
            (Hook::AckCredit, "cuc"),
            (Hook::PathState, "path_truth:takeover=0"),
        ],
        ..THEIRS
    },
    Preset {
        name: "ns2-era",
        summary: "Agent/SCTP of ns-2.35, with its constants, rules and bugs, for comparison with its results.",
        choices: &[
            (Hook::Retransmission, "rfc9260:reports_move=1"),
            (Hook::Recovery, "ns2_sctp"),
            (Hook::LossCount, "tsn:remember=1"),
            (Hook::Window, "rfc9260:cut_one=0,idle_keeps=1,partial_max=0"),
            (Hook::AckCredit, "cumulative:when_full=1"),
            (Hook::Timer, "rfc9260:rto_initial=3000,by_tsn=1,one_timed=1"),
            (Hook::Acknowledge, "rfc9260:hurry_fill=0"),
        ],
        settings: &[&NS2],
        ..THEIRS
    },
    Preset {
        name: "ns2-era-cmt",
        summary: "Agent/SCTP/CMT of ns-2.35 without CMT-PF, for comparison with its results.",
        choices: &[
            (Hook::PathScheduler, "round_robin"),
            (Hook::Retransmission, "rtx_cwnd"),
            (Hook::LossCount, "delayed_ack_cmt:recovery=0,gaps=1"),
            (Hook::LossThreshold, "three:once=1"),
            (Hook::Recovery, "ns2_cmt"),
            (Hook::Window, "rfc9260:floor=2,in_recovery=1,idle_keeps=1,partial_max=0"),
            (Hook::AckCredit, "cuc:by_tsn=1,when_full=1"),
            (Hook::Timer, "rfc9260:rto_initial=3000,by_tsn=1,one_timed=1"),
            (Hook::Acknowledge, "delayed_ack_cmt"),
        ],
        settings: &[&NS2, &[("first_data_waits", 1)]],
        ..THEIRS
    },
    Preset {
        name: "lksctp",
        summary: "Linux's SCTP of the 2.6 kernels, as Petlund et al. 2009 measured it; one path.",
        choices: &[(Hook::RetransmissionOrder, "bundle_outstanding"), (Hook::Timer, "rfc9260:rto_initial=3000")],
        settings: &[&[("rto_initial", 3_000), ("handshake_untimed", 1)]],
        ..THEIRS
    },
    Preset {
        name: "linux",
        summary: "Linux's SCTP of the 6.1 kernels, as measured beside one; one path.",
        choices: &[(Hook::Timer, "rfc9260:rto_initial=3000,runs_on=1,one_timed=1")],
        settings: &[&[("rto_initial", 3_000), ("handshake_untimed", 1)]],
        ..THEIRS
    },
    Preset {
        name: "freebsd",
        summary: "FreeBSD's SCTP beside it: no bundling of what is outstanding; one path.",
        choices: &[(Hook::Timer, "rfc9260:rto_initial=3000")],
        settings: &[&[("rto_initial", 3_000)]],
        ..THEIRS
    },
    Preset {
        name: "freebsd-efr",
        summary: "FreeBSD's SCTP with its early fast retransmit; one path.",
        choices: &[(Hook::LossTimer, "early_fast_retransmit:initial=750"), (Hook::Timer, "rfc9260:rto_initial=3000")],
        settings: &[&[("rto_initial", 3_000)]],
        ..THEIRS
    },
    Preset {
        name: "thin",
        summary: "Sparse message streams on one path at a time: all mechanisms of Petlund et al. 2009.",
        choices: &[
            (Hook::RetransmissionOrder, "bundle_outstanding"),
            (Hook::LossCount, "per_path"),
            (Hook::LossThreshold, "thin"),
            (Hook::Timer, "thin:margin=50,ask=1,learn=1"),
            (Hook::Acknowledge, "rfc9260:bulk=200"),
            (Hook::PathState, "path_truth:few=4"),
        ],
        ..OURS
    },
    Preset {
        name: "confluent",
        summary: "CMT with the confluent order of Becke et al. 2013.",
        choices: &[
            (Hook::PathScheduler, "confluent"),
            (Hook::Retransmission, "rtx_cwnd"),
            (Hook::LossCount, "per_path"),
            (Hook::AckCredit, "cuc"),
            (Hook::PathState, "path_truth"),
        ],
        ..THEIRS
    },
    Preset {
        name: "cmt-cl",
        summary: "CMT with path evaluation across layers, Xu et al. 2014, without its friendliness window.",
        choices: CMT_CL,
        ..THEIRS
    },
    Preset {
        name: "cmt-cl-fd",
        summary: "CMT with path evaluation across layers and the friendliness window of Xu et al. 2014.",
        choices: CMT_CL_FD,
        ..THEIRS
    },
    Preset {
        name: "cmt-qa",
        summary: "A reconstruction of the quality-aware CMT of Xu et al. 2013 from its abstract, for comparison.",
        choices: &[
            (Hook::PathScheduler, "handling_time"),
            (Hook::Retransmission, "rtx_handling_rate"),
            (Hook::LossCount, "per_path"),
            (Hook::LossCause, "delay_guard:falling=0.2"),
            (Hook::Window, "residual_capacity"),
            (Hook::AckCredit, "cuc"),
            (Hook::PathState, "path_truth:takeover=0"),
            (Hook::PathQuality, "handling_rate"),
        ],
        ..THEIRS
    },
    Preset {
        name: "media",
        summary: "Media classes in retransmission and bandwidth-estimated windows of Cheng et al. 2011, on the quickest path.",
        choices: &[
            (Hook::PathScheduler, "min_rtt"),
            (Hook::RetransmissionOrder, "class_then_tsn"),
            (Hook::LossCount, "per_path"),
            (Hook::Window, "bandwidth_estimate"),
            (Hook::Timer, "rfc9260:resume=1,probe=500"),
            (Hook::Abandon, "arrival"),
            (Hook::PathState, "path_truth"),
        ],
        announces_film: true,
        ..OURS
    },
    Preset {
        name: "low-latency",
        summary: "Sparse messages in time over several paths: fastest path, quick repair, copies of what is late.",
        choices: &[
            (Hook::PathScheduler, "min_rtt"),
            (Hook::Retransmission, "predicted_arrival:risk=0"),
            (Hook::LossCount, "per_path"),
            (Hook::LossThreshold, "rack:reports=0,deviations=4,window=0.1,in_order=1"),
            (Hook::LossTimer, "overdue:ack_delay=0"),
            (Hook::Window, "bbr_yielding"),
            (Hook::AckCredit, "cuc"),
            (
                Hook::Timer,
                "thin:rto_min=200,standard_min=500,margin=100,ask=1,learn=1,spare=1,resume=1,probe=50,early=1",
            ),
            (Hook::StreamScheduler, "earliest_deadline"),
            (Hook::Abandon, "arrival"),
            (Hook::Acknowledge, "immediate"),
            (Hook::PathState, "path_truth:ack_delay=0,few=4"),
            (Hook::Redundancy, "preventive_copy"),
        ],
        ..OURS
    },
    Preset {
        name: "live",
        summary: "Live video over several paths: every chunk in time, no data on silent paths, losses repaired at once.",
        choices: live![(Hook::Redundancy, "deadline_copy")],
        finds_packet_size: true,
        ..OURS
    },
    Preset {
        name: "live-parity",
        summary: "As live, with parity beside its copies for losses that cannot be sent again in time; of both ends.",
        choices: live![(Hook::Redundancy, "erasure:copies=1"), (Hook::Repair, "erasure:on_demand=1")],
        finds_packet_size: true,
        ..OURS
    },
];

const CMT_CL: &[(Hook, &str)] = &[
    (Hook::PathScheduler, "residual_capacity"),
    (Hook::Retransmission, "rtx_cwnd"),
    (Hook::LossCount, "per_path"),
    (Hook::LossCause, "residual_capacity"),
    (Hook::Window, "residual_capacity"),
    (Hook::AckCredit, "cuc"),
    (Hook::PathState, "path_truth:takeover=0"),
    (Hook::PathQuality, "cross_layer"),
];

const CMT_CL_FD: &[(Hook, &str)] = &[
    (Hook::PathScheduler, "residual_capacity"),
    (Hook::Retransmission, "rtx_cwnd"),
    (Hook::LossCount, "per_path"),
    (Hook::LossCause, "residual_capacity"),
    (Hook::Window, "residual_capacity"),
    (Hook::Coupling, "friendliness_window"),
    (Hook::AckCredit, "cuc"),
    (Hook::PathState, "path_truth:takeover=0"),
    (Hook::PathQuality, "cross_layer"),
];

const CMT_FAIR: &[(Hook, &str)] = &[
    (Hook::PathScheduler, "round_robin_deadline"),
    (Hook::Retransmission, "rtx_cwnd"),
    (Hook::LossCount, "per_path"),
    (Hook::LossThreshold, "rack:reports=0"),
    (Hook::LossTimer, "tail_probe"),
    (Hook::LossCause, "full_queue"),
    (Hook::Recovery, "rfc9260:radio=0"),
    (Hook::Window, "rfc9260:floor=2"),
    (Hook::Coupling, "one_flow:growth=0.3"),
    (Hook::AckCredit, "cuc"),
    (Hook::Timer, "rfc9260:resume=1,probe=500"),
    (Hook::Abandon, "arrival:doubt=0.6"),
    (Hook::PathState, "path_truth"),
];

const CMT: &[(Hook, &str)] = &[
    (Hook::PathScheduler, "round_robin_deadline"),
    (Hook::Retransmission, "rtx_cwnd"),
    (Hook::LossCount, "per_path"),
    (Hook::Window, "westwood"),
    (Hook::AckCredit, "cuc"),
    (Hook::Timer, "rfc9260:resume=1,probe=500"),
    (Hook::Abandon, "arrival:doubt=0.6"),
    (Hook::PathState, "path_truth"),
];
