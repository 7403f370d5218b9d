//! Several packets by one system call where there is no segmentation offload: on raw IP.

use crate::batch::Batch;
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use std::io::IoSlice;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Packets of one call.
const MOST: usize = 64;

/// The packets of a batch behind the first `skip`; how many the kernel took. Marks for queues are not set.
pub(super) fn send(socket: &UdpSocket, batch: &Batch, skip: usize) -> Result<usize, Errno> {
    let packets: Vec<[IoSlice<'_>; 1]> = batch.packets().skip(skip).take(MOST).map(|p| [IoSlice::new(p)]).collect();
    let to = vec![Some(SockaddrStorage::from(batch.remote)); packets.len()];
    let (v4, v6);
    let (source, room) = match batch.source {
        None => (None, None),
        Some(IpAddr::V4(ip)) => {
            let address = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            v4 = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: in_addr { s_addr: 0 } };
            (Some(ControlMessage::Ipv4PacketInfo(&v4)), Some(nix::cmsg_space!(in_pktinfo)))
        }
        Some(IpAddr::V6(ip)) => {
            v6 = in6_pktinfo { ipi6_addr: in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 };
            (Some(ControlMessage::Ipv6PacketInfo(&v6)), Some(nix::cmsg_space!(in6_pktinfo)))
        }
    };
    let source: Vec<ControlMessage<'_>> = source.into_iter().collect();
    let mut headers = MultiHeaders::preallocate(packets.len(), room);
    sendmmsg(socket.as_raw_fd(), &mut headers, &packets, to, source, MsgFlags::empty()).map(Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batches;
    use anabranch_engine::Transmit;
    use anabranch_wire::{CommonHeader, CookieEcho};
    use std::net::SocketAddr;

    /// Over UDP, which needs no right; the call is the same.
    #[test]
    fn all_packets_arrive_from_the_address_that_was_asked_for() {
        for (here, source) in [("127.0.0.1:0", None), ("0.0.0.0:0", Some("127.0.0.3")), ("[::]:0", Some("::1"))] {
            let Ok(sender) = UdpSocket::bind(here) else {
                println!("SKIPPED {here}: no IPv6");
                continue;
            };
            let near = if here.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" };
            let receiver = UdpSocket::bind(near).unwrap();
            let to = receiver.local_addr().unwrap();
            let source: Option<IpAddr> = source.map(|s| s.parse().unwrap());
            let mut all = Batches::default();
            for n in 0..10 {
                let mut t = Transmit { remote: to, ..Transmit::default() };
                t.packet.start(CommonHeader { src_port: 1, dst_port: 2, vtag: n });
                t.packet.push(&CookieEcho { cookie: &[7; 84] });
                all.push_by(&t, 0, source);
            }
            let batch = all.take().remove(0);
            assert_eq!(send(&sender, &batch, 2), Ok(8));
            let mut b = [0; 200];
            for n in 2..10u32 {
                let (len, from) = receiver.recv_from(&mut b).unwrap();
                let expected = SocketAddr::new(source.unwrap_or(to.ip()), sender.local_addr().unwrap().port());
                assert_eq!((len, from, &b[4..8]), (100, expected, &n.to_be_bytes()[..]), "{here}");
            }
        }
    }
}
