//! IP packets as a tunnel device carries them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol numbers.
pub const SCTP: u8 = 132;
/// UDP.
pub const UDP: u8 = 17;

/// An IP packet that was taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol of the payload.
    pub protocol: u8,
    /// What the headers are about.
    pub payload: &'a [u8],
}

/// Takes a packet apart; none when it is no whole IP packet, or a fragment.
pub fn parse(b: &[u8]) -> Option<IpPacket<'_>> {
    match b.first()? >> 4 {
        4 => {
            let header = usize::from(b[0] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([*b.get(2)?, *b.get(3)?]));
            let fragment = u16::from_be_bytes([*b.get(6)?, *b.get(7)?]) & 0x3fff;
            let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(b.get(at..at + 4)?).ok()?));
            let (source, destination) = (address(12)?.into(), address(16)?.into());
            (header >= 20 && fragment == 0).then_some(())?;
            Some(IpPacket { source, destination, protocol: *b.get(9)?, payload: b.get(header..total)? })
        }
        6 => {
            let len = usize::from(u16::from_be_bytes([*b.get(4)?, *b.get(5)?]));
            let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(b.get(at..at + 16)?).ok()?));
            let (source, destination) = (address(8)?.into(), address(24)?.into());
            Some(IpPacket { source, destination, protocol: *b.get(6)?, payload: b.get(40..40 + len)? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Encapsulation;

    #[test]
    fn what_is_wrapped_is_found() {
        for (a, b) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            let mut bytes = Vec::new();
            Encapsulation::ip(a, b).wrap(b"abcdefgh", &mut bytes);
            let expected = IpPacket { source: a, destination: b, protocol: SCTP, payload: b"abcdefgh" };
            assert_eq!(parse(&bytes), Some(expected));
            assert_eq!(parse(&bytes[..bytes.len() - 1]), None, "cut short");
        }
        assert_eq!(parse(&[]), None);
    }
}
