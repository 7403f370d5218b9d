//! Every decision of a multipath SCTP association as a small, named, exchangeable policy.
//!
//! A policy sees views ([`view`]) and answers; it never sees the engine. The engine verifies each answer, so a
//! bad policy can slow an association but not break the protocol. One folder per hook, one file per algorithm.
//!
//! ```
//! use anabranch_policy::{Hook, Profile};
//!
//! let mut profile = Profile::named("cmt")?;
//! profile.set(Hook::Retransmission, "rtx_csi:tau=10")?;
//! assert_eq!(profile.get(Hook::Retransmission), "rtx_csi");
//! // What does not fit is one line that says so.
//! let wrong = profile.set(Hook::Retransmission, "rtx_csi:tau=0").unwrap_err();
//! assert!(wrong.to_string().contains("tau=0 does not fit"));
//! # Ok::<(), anabranch_policy::PolicyError>(())
//! ```

pub mod abandon;
pub mod ack_credit;
pub mod acknowledge;
pub mod asks;
pub mod buffer;
pub mod coupling;
mod delays;
mod lanes;
mod late;
pub mod loss_cause;
pub mod loss_count;
pub mod loss_threshold;
pub mod loss_timer;
mod parity;
pub mod path_quality;
pub mod path_scheduler;
pub mod path_state;
mod predict;
pub mod recovery;
pub mod redundancy;
pub mod registry;
pub mod repair;
pub mod retransmission;
pub mod retransmission_order;
mod shares;
pub mod stream_scheduler;
#[cfg(test)]
mod testing;
mod thin;
pub mod timer;
pub mod view;
pub mod window;

pub use asks::Asks;
pub use registry::{Hook, ParamInfo, PolicyError, PolicyInfo, PolicySet, Profile, Value, policies};
