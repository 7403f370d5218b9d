//! SCTP with concurrent multipath transfer, without I/O.
//!
//! The engine reads no clock, no socket and no global random source: time, packets and entropy are handed in, and
//! packets, timeouts and events are asked for. The same code runs on sockets, behind the emulator and in the
//! simulator. See [`Endpoint`] for the loop every driver runs.
//!
//! Two endpoints in one process, over a network that takes a millisecond:
//!
//! ```
//! use anabranch_base::{Duration, Instant, RandomStream};
//! use anabranch_engine::{AssocConfig, Endpoint, EndpointConfig, Event, LocalId, SendOptions, Transmit};
//! use anabranch_policy::Profile;
//!
//! let mut now = Instant::from_millis(1);
//! let config = AssocConfig::new(Profile::named("cmt")?);
//! let mut ends = ["client", "server"].map(|name| {
//!     let mut config = EndpointConfig::new(9_899, config.clone());
//!     config.accept = name == "server";
//!     Endpoint::new(config, Box::new(RandomStream::named(1, name)), now)
//! });
//! let address = |side: usize| ([10, 0, 0, side as u8 + 1], 9_899).into();
//! ends[0].connect(now, config, LocalId(0), address(1), 9_899)?;
//!
//! let (mut transmit, mut received) = (Transmit::default(), None);
//! for _ in 0..100 {
//!     for side in [0, 1] {
//!         while ends[side].poll_transmit(now, &mut transmit) {
//!             ends[1 - side].handle_slices(now, LocalId(0), address(side), &transmit.packet);
//!         }
//!         while let Some((id, event)) = ends[side].poll_event() {
//!             let mut association = ends[side].association_mut(id).expect("it has something to say");
//!             match event {
//!                 Event::Connected if side == 0 => {
//!                     association.send(now, SendOptions::default(), "hello".into())?;
//!                 }
//!                 Event::Readable => received = association.recv(),
//!                 _ => {}
//!             }
//!         }
//!     }
//!     now += Duration::from_millis(1);
//!     ends.iter_mut().for_each(|end| end.handle_timeout(now));
//! }
//! assert_eq!(received.expect("a message").payload.into_bytes(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod association;
mod auth;
pub mod config;
mod cookie;
mod endpoint;
mod event;
mod lazy_box;
mod mac;
mod message;
mod parity_head;
mod parity_kind;
mod path;
mod repair;
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
pub use config::{AssocConfig, AuthConfig, Constants, EndpointConfig, ListedAddress, OwnParameter};
pub use endpoint::{AssocId, AssocMut, ConnectError, Endpoint};
pub use event::{CloseReason, Event, PathReason};
pub use message::{Message, Part, Payload, SendOptions};
pub use path::discovery::{DiscoveryState, PathMtuDiscovery};
pub use path::{HeartbeatSetting, LocalId, PathLimits};
pub use repair::{LostCopy, Repairs, SentChunk, TransmissionCause};
pub use settings::Nagle;
pub use stats::{AbandonedCount, AbandonedStats, AssocStats, PathCounters, PathStats};
pub use transmit::Transmit;
pub use tx::carried::UsableRate;
