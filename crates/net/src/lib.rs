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
//! Both ends in one process:
//!
//! ```
//! # use anabranch_net::{AssocConfig, ClientConfig, ConnectOptions, Endpoint, Profile, SendOptions, ServerConfig};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let config = AssocConfig::new(Profile::named("low-latency")?);
//! let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse()?, config.clone()))?;
//! let options = ConnectOptions::new(server.listening()[0], config);
//! let client = Endpoint::client(ClientConfig::default())?.connect(options).await?;
//! client.send(SendOptions::default(), "hello".into()).await?;
//! let accepted = server.accept().await.expect("the client");
//! let message = accepted.recv().await?.expect("what it sent");
//! assert_eq!(message.payload.into_bytes(), "hello");
//! # Ok(()) }) }
//! ```
//!
//! # It comes back by itself
//!
//! A [`Connection`] is one association and ends with it: when the peer says so, when its host answers that it knows
//! nothing of it (the peer was started anew), or when nothing was answered for
//! [`peer_timeout`](anabranch_engine::config::Failure::peer_timeout). Until then it survives the silence of all paths.
//! [`Reconnecting`] begins the next one as soon as there is a peer again:
//!
//! ```no_run
//! # use anabranch_net::{AssocConfig, ClientConfig, ConnectOptions, Endpoint, Profile, Reconnecting, SendOptions};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = AssocConfig::new(Profile::named("low-latency")?);
//! let options = ConnectOptions::new("192.0.2.7:9899".parse()?, config);
//! let line = Reconnecting::new(Endpoint::client(ClientConfig::default())?, options);
//! line.send(SendOptions::default(), "hello".into()).await?;
//! while let Some(message) = line.recv().await {
//!     println!("{:?}", message.payload);
//! }
//! # Ok(()) }
//! ```
//!
//! What a lost connection had taken and not delivered is lost; a program that cannot bear that numbers its messages and
//! lets the peer answer. `examples/reconnect.rs` shows states and deadlines.
//!
//! # Which class, which priority?
//!
//! - [`SendOptions::class`] says how important a message is, 0 first: it is sent first where the stream scheduler goes by
//!   classes, and where a window is short the others wait. Commands 0, state that the next message replaces 2.
//! - [`SendOptions::deadline`] says until when it is worth anything. It is what keeps queues short: give one to
//!   everything that becomes stale.
//! - [`SendOptions::discard_priority`] says what may be thrown away for the room of others while it is unsent
//!   (RFC 7496); without one nothing is.
//! - [`SendOptions::group`] ties messages that are useful together only: when one is given up, so are the others.
//! - Order costs time: a lost message holds up those behind it on its stream. `unordered`, or a stream of its own for what
//!   has nothing to do with the rest.
//!
//! # A second connection to the same server
//!
//! Two associations between the same SCTP ports cannot be distinguished (RFC 9260 §1.3), and an endpoint has one port,
//! so [`Endpoint::connect`] refuses the second with [`Error::AlreadyConnected`]. Use streams of the one there is, or
//! another [`Endpoint`]: each draws a port of its own.
//!
//! # Time
//!
//! Deadlines are [`Instant`]s on the scale of [`now`], one for the whole process. There are two types of spans: the
//! engine's [`Duration`] for what it counts itself (deadlines and the fields of [`AssocConfig`]), and that of the standard
//! library for what is waited for here ([`ConnectOptions::timeout`], [`Connection::shutdown_within`],
//! [`Connection::warm_up`], [`Backoff`]). Each becomes the other by `into`:
//!
//! ```
//! use anabranch_net::{AssocConfig, ConnectOptions, Profile, SendOptions, now};
//! use std::time::Duration;
//!
//! let patience = Duration::from_secs(3);
//! let mut config = AssocConfig::new(Profile::named("low-latency")?);
//! config.failure.peer_timeout = Some(patience.into());
//! let mut options = ConnectOptions::new("192.0.2.7:9899".parse()?, config);
//! options.timeout = patience;
//! let message = SendOptions { deadline: Some(now() + patience.into()), ..SendOptions::default() };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod link_layer;
mod locals;
mod outlets;
mod reconnect;
mod shared;
mod socket;
mod stats;
mod wake;

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
pub use reconnect::{Backoff, ReconnectState, ReconnectStates, Reconnecting, Trouble};
pub use stats::{ConnectionStats, DriverStats, PathReport};

pub use anabranch_base::{Duration, Instant, Modulation, PathId, Rate, StreamId, Technology};
pub use anabranch_engine::{
    AbandonedCount, AbandonedStats, AddressError, AssocConfig, AssocStats, CloseReason, Constants, Event, Message,
    OwnParameter, Part, PathCounters, PathMtuDiscovery, PathReason, PathStats, Payload, ReconfigError, SendOptions,
    UsableRate,
};
pub use anabranch_policy::registry::Profile;
pub use anabranch_policy::view::{FrameErrors, PathState};
/// What messages are made of; shared and not copied.
pub use bytes::Bytes;
pub use ipnet::IpNet;
