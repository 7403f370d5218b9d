//! What a policy is shown: small `Copy` structs, filled by the engine before each question.
//!
//! Bytes of windows and flights are payload bytes of DATA chunks (RFC 9260 §7.2); a unit test writes
//! `PathView { srtt, ..PathView::idle(PathId(0)) }`.

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
