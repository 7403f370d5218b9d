//! SCTP over UDP (RFC 6951), or right on IP, on real sockets, over one or several interfaces at once.
//!
//! An [`Endpoint`] owns sockets and a driver thread; a [`Connection`] is one association. A client connects over a
//! list of paths: the first that answers carries the handshake, the others join.
//!
//! ```no_run
//! use anabranch_net::{ClientConfig, ConnectOptions, Endpoint, Local, PathSpec, SendOptions};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::client(ClientConfig::default())?;
//! let server = "192.0.2.7:9899".parse()?;
//! let paths = ["wlan0", "wwan0"].map(|name| PathSpec::new(Local::Interface(name.into()), server));
//! let config = anabranch_net::AssocConfig::new(anabranch_net::Profile::named("cmt")?);
//! let connection = endpoint.connect(ConnectOptions::over(paths.into(), config)).await?;
//! connection.send(SendOptions::default(), "hello".into()).await?;
//! connection.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! Time: deadlines are [`Instant`]s on the scale of [`now`], one for the whole process.

mod alarm;
mod bare;
mod batch;
mod capture;
mod clock;
mod config;
mod connect;
mod connection;
mod driver;
mod endpoint;
mod entropy;
mod error;
mod events;
mod interface;
mod locals;
mod outlets;
mod shared;
mod socket;
mod stats;

pub use alarm::Alarm;
pub use bare::{Wire, claim, source_towards};
pub use batch::{Batch, Batches};
pub use clock::{from_std, now, to_std};
pub use config::{ClientConfig, ConnectOptions, DEFAULT_PORT, Local, PathSpec, ServerConfig, Transport};
pub use connection::Connection;
pub use driver::Buffers;
pub use endpoint::{Endpoint, WeakEndpoint};
pub use entropy::SystemEntropy;
pub use error::{Error, ErrorKind, SendError};
pub use events::{Events, TimedEvent};
pub use stats::{ConnectionStats, DriverStats, PathReport};

pub use anabranch_base::{Duration, Instant, PathId, StreamId};
pub use anabranch_engine::{
    AbandonedCount, AbandonedStats, AddressError, AssocConfig, AssocStats, CloseReason, Event, Message, Part,
    PathCounters, PathMtuDiscovery, PathReason, PathStats, Payload, ReconfigError, SendOptions,
};
pub use anabranch_policy::registry::Profile;
pub use anabranch_policy::view::PathState;
pub use ipnet::IpNet;
