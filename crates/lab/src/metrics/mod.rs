//! What a flow did, noted while it runs.

mod delays;
mod dependence;
mod dues;
mod fingerprint;
mod level;
mod names;
mod picture;
mod record;
mod repair_names;
mod repairs;
mod serials;
mod unasked;
mod video;
mod wanted;
mod window;

pub use delays::{Delays, Detail};
pub use dependence::Dependence;
pub use dues::{Due, Dues, SharedDues, Timed, Travel};
pub use fingerprint::Fingerprint;
pub use level::Level;
pub use names::{Delay, FlowMetric, Framed, Lateness, LinkMetric, View, in_phase, is_share, parted, unit_of};
pub(crate) use names::{OF_MPTCP, STAGE, is_of_mptcp, is_stage};
#[cfg(test)]
pub(crate) use names::{of_flows, of_links};
pub use picture::Picture;
pub use record::{Record, SharedRecord, Within};
pub use repair_names::Repair;
pub use repairs::{Departure, NAMED, Repairs, Summary, Truth, Which};
pub use unasked::Unasked;
pub use video::{Came, Cut, FrameRow, Packets, SharedVideo, Video, Viewed};
pub use wanted::Wanted;
pub use window::Window;
