//! The table of hooks. A hook is one folder and one row here: its name, its profile's default, the set of policies
//! that is built from a profile, and every test that goes over all hooks come from the row.

use super::{Params, PolicyError, PolicyInfo, Profile};
use crate::asks::{Asks, Counter};
use crate::recovery::Recovery;
use crate::repair::Repair;
use crate::{abandon::Abandon, ack_credit::AckCredit, acknowledge::Acknowledge, buffer::Buffer, coupling::Coupling};
use crate::{loss_cause::LossCause, loss_count::LossCount, loss_threshold::LossThreshold, loss_timer::LossTimer};
use crate::{path_quality::PathQuality, path_scheduler::PathScheduler, path_state::PathStatePolicy};
use crate::{redundancy::Redundancy, retransmission::RetransmissionPolicy, retransmission_order::RetransmissionOrder};
use crate::{stream_scheduler::StreamScheduler, timer::TimerPolicy, window::Window};

/// A row: `Name: folder, one|each dyn Trait, "default", "what it decides";`. Of `one` there is one policy in an
/// association, of `each` one for each path.
macro_rules! hooks {
    ($($hook:ident: $folder:ident, $number:ident $policy:ty, $default:literal, $decides:literal;)*) => {
        /// A decision that can be exchanged.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Hook {
            $(#[doc = concat!("Decides ", $decides, ".")] $hook,)*
        }

        impl Hook {
            /// All of them, in the order of the documentation.
            pub const ALL: [Hook; [$(Hook::$hook),*].len()] = [$(Hook::$hook),*];

            /// Its name, which is also its folder.
            pub const fn name(self) -> &'static str {
                match self { $(Hook::$hook => stringify!($folder),)* }
            }
            /// The question that policies of the hook answer, as `anabranch policies` prints it.
            pub const fn decides(self) -> &'static str {
                match self { $(Hook::$hook => $decides,)* }
            }
            /// The policy of plain RFC 9260, which a profile starts from.
            pub const fn default_policy(self) -> &'static str {
                match self { $(Hook::$hook => $default,)* }
            }
            /// Its policies.
            pub fn policies(self) -> Vec<&'static PolicyInfo> {
                match self { $(Hook::$hook => crate::$folder::POLICIES.iter().map(|p| &p.info).collect(),)* }
            }
            /// Builds the policy at `at` of its table: what it wants to be asked, and its counters.
            pub(super) fn trial(self, at: usize, params: &Params) -> Option<(Asks, Vec<Counter>)> {
                match self {
                    $(Hook::$hook => crate::$folder::POLICIES.get(at).map(|p| {
                        let built = (p.build)(params);
                        (built.asks(), built.counters().to_vec())
                    }),)*
                }
            }
        }

        /// One policy per hook, ready for one association.
        pub struct PolicySet {
            $(#[doc = concat!("Decides ", $decides, ".")] pub $folder: hooks!(@type $number $policy),)*
        }

        impl PolicySet {
            pub(super) fn of(profile: &Profile, seed: u64) -> Result<PolicySet, PolicyError> {
                Ok(PolicySet {
                    $($folder: {
                        let policy = profile.entry(Hook::$hook, crate::$folder::POLICIES)?;
                        hooks!(@build $number policy, profile.values(Hook::$hook), seed)
                    },)*
                })
            }
            /// What its policies want to be asked, together.
            pub fn asks(&self) -> Asks {
                let asks = [$(hooks!(@asks $number self.$folder)),*];
                asks.into_iter().fold(Asks::NOTHING, Asks::and)
            }
            /// What its policies count, hook by hook.
            pub fn counters(&self) -> impl Iterator<Item = (Hook, Counter)> + '_ {
                let all: [(Hook, &[Counter]); Hook::ALL.len()] = [$((Hook::$hook, hooks!(@counters $number self.$folder))),*];
                all.into_iter().flat_map(|(hook, counters)| counters.iter().map(move |c| (hook, *c)))
            }
        }
    };
    (@type one $policy:ty) => { Box<$policy> };
    (@type each $policy:ty) => { Box<dyn Fn() -> Box<$policy> + Send> };
    (@build one $policy:expr, $values:expr, $seed:expr) => { ($policy.build)(&Params::new(&$values[..], $seed)) };
    (@build each $policy:expr, $values:expr, $seed:expr) => {{
        let values = $values.clone();
        Box::new(move || ($policy.build)(&Params::new(&values[..], $seed)))
    }};
    (@asks one $policy:expr) => { $policy.asks() };
    (@asks each $policy:expr) => { $policy().asks() };
    (@counters one $policy:expr) => { $policy.counters() };
    // The policy of a path belongs to its path.
    (@counters each $policy:expr) => { &[] };
}

hooks! {
    PathScheduler: path_scheduler, one dyn PathScheduler, "primary_only",
        "which chunk of new data leaves on which path, now";
    Retransmission: retransmission, one dyn RetransmissionPolicy, "rfc9260", "the path of a retransmission";
    RetransmissionOrder: retransmission_order, one dyn RetransmissionOrder, "tsn",
        "which marked chunk is sent again first, and what shares its packet";
    LossCount: loss_count, one dyn LossCount, "tsn", "what counts as a report that a copy is missing";
    LossThreshold: loss_threshold, one dyn LossThreshold, "three",
        "how many reports, or how much time, make a copy lost";
    LossTimer: loss_timer, one dyn LossTimer, "none", "probes before the retransmission timer";
    LossCause: loss_cause, one dyn LossCause, "always_congestion", "why a copy was lost";
    Recovery: recovery, one dyn Recovery, "rfc9260",
        "when a recovery episode begins and ends, and what may leave during it";
    Window: window, each dyn Window, "rfc9260", "congestion window and threshold of a path";
    Coupling: coupling, one dyn Coupling, "uncoupled", "limits and grants over the windows of all paths";
    AckCredit: ack_credit, one dyn AckCredit, "sack_bytes", "which acknowledged bytes open which window";
    Timer: timer, one dyn TimerPolicy, "rfc9260", "floor, restart and back-off of the retransmission timer";
    StreamScheduler: stream_scheduler, one dyn StreamScheduler, "fcfs",
        "which stream's message is cut into chunks next";
    Abandon: abandon, one dyn Abandon, "rfc7496", "when a message is given up";
    Acknowledge: acknowledge, one dyn Acknowledge, "rfc9260", "when a SACK leaves";
    PathState: path_state, one dyn PathStatePolicy, "rfc9260", "the health of a path, and how often it is probed";
    Redundancy: redundancy, one dyn Redundancy, "none", "copies, moves or parity in window that new data left free";
    Repair: repair, one dyn Repair, "none", "how what is missing is restored from parity";
    PathQuality: path_quality, one dyn PathQuality, "none",
        "estimates on their own clock, published for the others";
    Buffer: buffer, one dyn Buffer, "shared",
        "how paths share the send buffer and the peer's receive buffer";
}
