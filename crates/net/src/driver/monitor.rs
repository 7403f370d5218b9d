//! News of interfaces from the kernel, so that a change is seen at once and not at the next look.

use super::descriptor::{Steady, register};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Multicast groups of links, IPv4 addresses and IPv6 addresses (`RTMGRP_*` of linux/rtnetlink.h).
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// Tells when an interface or an address changed. Without the kernel's help it stays silent, and looking from time
/// to time must do.
pub(super) struct Monitor(Option<AsyncFd<Steady<OwnedFd>>>);

impl Monitor {
    pub fn new() -> Self {
        Monitor(open().inspect_err(|error| tracing::debug!(%error, "no news of interfaces")).ok())
    }

    /// Waits for news.
    pub async fn changed(&self) {
        let Some(fd) = &self.0 else { return std::future::pending().await };
        let Ok(mut ready) = fd.readable().await else { return std::future::pending().await };
        // What exactly changed is looked up anew; here it only has to be read.
        let mut buffer = [0; 8_192];
        while ready
            .try_io(|fd| Ok(recv(fd.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT)?))
            .is_ok_and(|read| read.is_ok())
        {}
    }
}

fn open() -> std::io::Result<AsyncFd<Steady<OwnedFd>>> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
    register(fd)
}
