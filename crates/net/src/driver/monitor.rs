//! News of interfaces from the kernel, so that a change is seen at once and not at the next look.

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Multicast groups of links, IPv4 addresses and IPv6 addresses (`RTMGRP_*` of linux/rtnetlink.h).
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// Tells when an interface or an address changed. Without the kernel's help it stays silent, and looking from time
/// to time must do.
pub(super) struct Monitor(Option<OwnedFd>);

impl Monitor {
    pub fn new() -> Self {
        Monitor(open().inspect_err(|error| tracing::debug!(%error, "no news of interfaces")).ok())
    }

    /// Readable when there are news.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }

    /// Reads the news: what exactly changed is looked up anew.
    pub fn read(&self) {
        let Some(fd) = &self.0 else { return };
        let mut buffer = [0; 8_192];
        while recv(fd.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).is_ok() {}
    }
}

fn open() -> std::io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
    Ok(fd)
}
