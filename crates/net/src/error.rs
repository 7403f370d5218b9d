//! What can go wrong, each in one clear line.

use anabranch_engine::{AddressError, CloseReason};
use anabranch_policy::registry::PolicyError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Whose fault an error is; a command maps it to its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The network, the machine or the peer.
    Network,
    /// What the user asked for.
    Usage,
}

/// Why an endpoint, a connection or a path could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another program has the port.
    #[error("UDP port {} of {} is in use by another program: stop that or choose another port", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// Another endpoint of ours serves the SCTP port on raw IP, where the kernel keeps no ports apart.
    #[error("SCTP port {} of {} is in use by another program: stop that or choose another port", .0.port(), .0.ip())]
    SctpPortInUse(SocketAddr),
    /// A socket could not be bound for another reason.
    #[error("cannot use {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// A right is missing: to bind to a device or port, or to send raw packets.
    #[error("{what} needs the right {right}: run as root, or give it to the program by \
             `setcap {}+ep PROGRAM`", right.to_lowercase())]
    NoRight {
        /// What needs it.
        what: String,
        /// Name of the capability.
        right: &'static str,
    },
    /// No such interface.
    #[error("there is no interface {name}; there are: {known}")]
    NoInterface {
        /// Its name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The interface is down, or has no address of the family.
    #[error("interface {name} {lack}")]
    NotReady {
        /// Its name.
        name: String,
        /// What is missing.
        lack: &'static str,
    },
    /// No interface has the address.
    #[error("no interface of this machine has the address {0}")]
    NoSuchAddress(IpAddr),
    /// No answer in time.
    #[error("{peer} does not answer within {} s{detail}", timeout.as_secs_f64())]
    Unreachable {
        /// The addresses tried.
        peer: String,
        /// How long.
        timeout: Duration,
        /// What the operating system said about sending, in parentheses; or empty.
        detail: String,
    },
    /// The peer is there and says no.
    #[error("{peer} refuses: {reason}")]
    Refused {
        /// The address that answered.
        peer: SocketAddr,
        /// How it ended.
        reason: CloseReason,
    },
    /// The connection is over.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
    /// Two associations between the same ports of two endpoints cannot be distinguished.
    #[error(
        "this endpoint has a connection with {0} already, and two between the same SCTP ports cannot be distinguished: use \
         streams of that one, or another endpoint, which has a port of its own"
    )]
    AlreadyConnected(SocketAddr),
    /// A name means no address now.
    #[error("{0}")]
    Unresolved(String),
    /// The association holds as many paths as it may.
    #[error("the connection has no room for another path")]
    TooManyPaths,
    /// An address is not added or taken away.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The profile does not fit.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Something asked for makes no sense.
    #[error("{0}")]
    Config(String),
    /// The capture file cannot be written.
    #[error("cannot write the capture {}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The driver could not be started, or has stopped.
    #[error("the socket driver does not run: {0}")]
    Driver(io::Error),
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::NoInterface { .. }
            | Error::NoSuchAddress(_)
            | Error::Policy(_)
            | Error::Config(_)
            | Error::TooManyPaths
            | Error::AlreadyConnected(_)
            | Error::Capture { .. } => ErrorKind::Usage,
            _ => ErrorKind::Network,
        }
    }

    /// True when the interface or address is not there now, but may come.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Error::NoInterface { .. } | Error::NotReady { .. } | Error::NoSuchAddress(_))
    }
}

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer is full.
    #[error("the send buffer is full")]
    WouldBlock,
    /// The deadline passed before the send buffer had room.
    #[error("the deadline passed before there was room to send")]
    Expired,
    /// There is no stream with this number: so many were agreed on, the smaller of ours and what the peer accepts.
    #[error(
        "there are {0} streams to send on, numbered from 0: the smaller of `limits.outbound_streams` and what the peer \
         accepts"
    )]
    InvalidStream(u16),
    /// A message has at least one byte (RFC 9260 §6.2).
    #[error("a message needs at least one byte")]
    Empty,
    /// Larger than the send buffer can ever hold, or than a packet where fragmentation is off.
    #[error("a message has at most {most} bytes here ({limit})")]
    TooLarge {
        /// The largest that is taken, bytes.
        most: u64,
        /// The setting that bounds it, or the packet, in words for a user.
        limit: &'static str,
    },
    /// The connection is closing or over; no reason while it is closing.
    #[error("the connection {}", .0.as_ref().map_or("is closing".to_owned(), |r| format!("is over: {r}")))]
    Closed(Option<CloseReason>),
}

impl SendError {
    pub(crate) fn from_engine(e: anabranch_engine::SendError, closed: Option<CloseReason>) -> Self {
        use anabranch_engine::SendError as E;
        match e {
            E::WouldBlock => SendError::WouldBlock,
            E::InvalidStream(n) => SendError::InvalidStream(n),
            E::Empty => SendError::Empty,
            E::TooLarge { most, limit } => SendError::TooLarge { most, limit },
            E::Closed => SendError::Closed(closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_to_do() {
        let e = Error::InUse("0.0.0.0:9899".parse().unwrap());
        assert_eq!(
            e.to_string(),
            "UDP port 9899 of 0.0.0.0 is in use by another program: stop that or choose another port"
        );
        let e = Error::NoRight { what: "binding to wlan0".into(), right: "CAP_NET_RAW" };
        assert_eq!(
            e.to_string(),
            "binding to wlan0 needs the right CAP_NET_RAW: run as root, or give it to the program by \
             `setcap cap_net_raw+ep PROGRAM`"
        );
        let e = Error::Unreachable {
            peer: "10.0.0.1:9899".into(),
            timeout: Duration::from_secs(10),
            detail: String::new(),
        };
        assert_eq!(e.to_string(), "10.0.0.1:9899 does not answer within 10 s");
        assert_eq!(SendError::Closed(None).to_string(), "the connection is closing");
    }
}
