//! The network in virtual time: links, queues and loss models, without any knowledge of the
//! transport above them.
//!
//! Everything here is driven from outside (`now` is handed in, nothing reads a clock) and draws its
//! random numbers from streams named after the component, so one seed gives one result and adding a
//! component never shifts another's numbers. The emulator drives the very same links by real time.
//!
//! ```
//! use anabranch_base::{Duration, Instant, Rate};
//! use anabranch_sim::{Direction, DuplexPath, LinkConfig};
//!
//! let config = LinkConfig::fixed(Some(Rate::from_bits_per_sec(8_000_000)), Duration::from_millis(30));
//! let mut path = DuplexPath::new("wlan", 1, config.clone(), config);
//! path.send(Instant::ZERO, Direction::Forward, 1000, "hello");
//! let at = path.next_event().unwrap();
//! assert_eq!(at, Instant::from_millis(31));
//! assert_eq!(path.poll(at), Some((Direction::Forward, "hello")));
//! ```

pub mod damage;
mod draw;
mod event_queue;
mod fetch;
pub mod link;
pub mod loss;
pub mod netem;
pub mod network;
mod pipe;
pub mod queue;
pub mod topology;
mod trace;
pub mod traffic;
pub mod transport;

pub use damage::DamageConfig;
pub use event_queue::EventQueue;
pub use link::{
    Change, ConfigError, Delivery, DeliveryTrace, DropReason, FrameReports, Frames, Jitter, Link, LinkConfig,
    LinkCounters, LossPoint, Notice, Schedule, Setting, Tally, Verdict,
};
pub use loss::LossConfig;
pub use pipe::{Direction, DuplexPath, Paths};
pub use queue::{Discipline, Limit};
pub use trace::TraceError;
pub use traffic::{Emission, Source, TrafficConfig};
