//! SCTP with concurrent multipath transfer, without I/O.
//!
//! The engine reads no clock, no socket and no global random source: time, packets and entropy are handed in, and
//! packets, timeouts and events are asked for. The same code runs on sockets, behind the emulator and in the
//! simulator. See [`Endpoint`] for the loop every driver runs.

pub mod association;
mod auth;
mod config;
mod cookie;
mod endpoint;
mod event;
mod lazy_box;
mod message;
mod path;
mod quirks;
mod rx;
mod settings;
mod stats;
mod transmit;
mod tx;
#[doc(hidden)]
pub mod work;

pub use association::{
    AddressError, Agreed, Association, AuthKeyError, Phase, ReconfigError, SendError, Stage, TimerReason, Undelivered,
};
pub use config::{AssocConfig, AuthConfig, Constants, EndpointConfig, ListedAddress};
pub use endpoint::{AssocId, AssocMut, ConnectError, Endpoint};
pub use event::{CloseReason, Event, PathReason};
pub use message::{Message, Part, Payload, SendOptions};
pub use path::discovery::{DiscoveryState, PathMtuDiscovery};
pub use path::{HeartbeatSetting, LocalId, PathLimits};
pub use quirks::Quirks;
pub use settings::Nagle;
pub use stats::{AbandonedCount, AbandonedStats, AssocStats, PathCounters, PathStats};
pub use transmit::Transmit;
pub use tx::carried::UsableRate;
