//! The simulator's links on real packets, without special rights.
//!
//! Each emulated path is a UDP relay: it listens on a local address and passes every datagram on to
//! a target through a socket of its own per sender, so the target sees another address and port, as
//! behind any address translator. Both directions run through the very links, queues and loss models
//! of [`anabranch_sim`], driven by the real clock.
//!
//! ```
//! use anabranch_emulator::{Emulator, EmulatorConfig};
//!
//! // Port 0 takes any that is free.
//! let wlan = "name wlan listen 127.0.0.1:0 to 127.0.0.1:9899 rate 6mbit delay 30ms loss 0.1% limit 40";
//! let umts = "name 3g listen 127.0.0.1:0 to 127.0.0.1:9899 rate 4mbit delay 160ms down.delay 5ms at 7s down at 10s up";
//! let emulator = Emulator::start(EmulatorConfig::from_texts([wlan, umts])?)?;
//! println!("{:?} {:?}", emulator.local_addrs(), emulator.stats());
//! # Ok::<(), anabranch_emulator::EmulatorError>(())
//! ```
//!
//! The grammar of such texts, and the same in TOML, is described in [`config`].
//!
//! What the emulator adds to what it was asked for is measured, not promised: [`MachineStats`] has
//! how late each datagram left and how many the machine itself lost, and [`measure_control`] runs an
//! idle emulator between two sockets of its own.

mod clock;
pub mod config;
mod control;
mod error;
mod handle;
mod relay;
mod stats;

pub use config::{EmulatorConfig, ParseError, PathChange, PathConfig, parse_changes, parse_link, parse_path};
pub use control::{ControlReport, measure_control};
pub use error::EmulatorError;
pub use handle::{Emulator, EmulatorHandle};
pub use stats::{EmulatorStats, Lateness, MachineStats, PathStats, Sample, SampledPath};

pub use anabranch_sim::{Direction, Frames, LinkConfig, LinkCounters, Setting};
