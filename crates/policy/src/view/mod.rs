//! What a policy is shown: small `Copy` structs, filled by the engine before each question.
//!
//! Bytes of windows and flights are payload bytes of DATA chunks (RFC 9260 §7.2). Views gain fields from version to version:
//! a unit test changes what it is about in a starting point, which every view has, and goes on compiling.
//!
//! ```
//! use anabranch_base::{Duration, Instant, PathId};
//! use anabranch_policy::Profile;
//! use anabranch_policy::loss_cause::{Cause, LossEvent};
//! use anabranch_policy::view::{AssocView, PathView};
//!
//! let rtt = Duration::from_millis(50);
//! let paths = [PathView { min_rtt: rtt, srtt: rtt, cwnd: 60_000, ..PathView::idle(PathId(0)) }];
//! let now = Instant::from_millis(1_000);
//! let cx = AssocView { unsent: 200_000, ..AssocView::of(now, &paths) };
//! let mut policies = Profile::named("sctp")?.build(1)?;
//! let lost = LossEvent { new_episode: true, ..LossEvent::reported(PathId(0), 1_144) };
//! assert_eq!(policies.loss_cause.classify(&cx, &lost), Cause::Congestion);
//! # Ok::<(), anabranch_policy::registry::PolicyError>(())
//! ```

mod association;
mod chunk;
mod path;
mod sack;
mod signals;
mod stream;

pub use association::{AssocView, TimeoutLog};
pub use chunk::{ChunkView, CopyView, QueueView};
pub use path::{FrameErrors, PathState, PathView, UnqueuedRtt};
pub use sack::SackView;
pub use signals::{Direction, Period, Signals};
pub use stream::StreamView;
