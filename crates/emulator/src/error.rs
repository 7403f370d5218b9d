//! What can go wrong.

use crate::config::ParseError;
use std::io;
use std::net::SocketAddr;

/// Why an emulator did not start or did not obey. Each prints as one line that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ParseError),
    /// The address to listen on cannot be had.
    #[error("path `{path}` cannot listen on {address}: {}", bind_hint(source))]
    Listen {
        /// Name of the path.
        path: String,
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address to send from cannot be had, or the target cannot be reached from it.
    #[error("path `{path}` cannot send to {target}: {source}; check the address and `from`")]
    Upstream {
        /// Name of the path.
        path: String,
        /// Target asked for.
        target: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is no path of this index.
    #[error("there is no path number {0}")]
    NoSuchPath(usize),
    /// The system refused something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn bind_hint(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrInUse => "the port is in use; choose another or stop the program that has it".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need special rights; choose a higher one".into(),
        _ => source.to_string(),
    }
}
