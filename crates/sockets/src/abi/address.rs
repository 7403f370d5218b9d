//! `struct sockaddr_in` and `sockaddr_in6`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// AF_INET.
pub const AF_INET: u16 = 2;
/// AF_INET6.
pub const AF_INET6: u16 = 10;
/// Bytes of a `sockaddr_storage`.
pub const STORAGE: usize = 128;

const IN: usize = 16;
const IN6: usize = 28;

/// An address and the bytes it takes; none when the family is another one or bytes are missing.
pub fn parse(b: &[u8]) -> Option<(SocketAddr, usize)> {
    let family = u16::from_ne_bytes([*b.first()?, *b.get(1)?]);
    let port = u16::from_be_bytes([*b.get(2)?, *b.get(3)?]);
    match family {
        AF_INET => {
            let ip: [u8; 4] = b.get(4..8)?.try_into().ok()?;
            (b.len() >= IN).then_some((SocketAddr::new(Ipv4Addr::from(ip).into(), port), IN))
        }
        AF_INET6 => {
            let ip: [u8; 16] = b.get(8..24)?.try_into().ok()?;
            let scope: [u8; 4] = b.get(24..28)?.try_into().ok()?;
            let ip = Ipv6Addr::from(ip);
            let address = match ip.to_ipv4_mapped() {
                Some(v4) => SocketAddr::new(v4.into(), port),
                None => SocketAddrV6::new(ip, port, 0, u32::from_ne_bytes(scope)).into(),
            };
            Some((address, IN6))
        }
        _ => None,
    }
}

/// Addresses one after the other, as `sctp_bindx` and `sctp_connectx` hand them over.
pub fn parse_list(mut b: &[u8]) -> Option<Vec<SocketAddr>> {
    let mut all = Vec::new();
    while !b.is_empty() {
        let (a, n) = parse(b)?;
        all.push(a);
        b = b.get(n..)?;
    }
    Some(all)
}

/// The bytes of an address; an IPv4 one is mapped where the program's socket is of IPv6 and wants that.
pub fn bytes(a: SocketAddr, mapped: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(IN6);
    match a {
        SocketAddr::V4(v4) if !mapped => {
            out.extend_from_slice(&AF_INET.to_ne_bytes());
            out.extend_from_slice(&v4.port().to_be_bytes());
            out.extend_from_slice(&v4.ip().octets());
            out.resize(IN, 0);
        }
        _ => {
            let (ip, scope) = match a {
                SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
                SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
            };
            out.extend_from_slice(&AF_INET6.to_ne_bytes());
            out.extend_from_slice(&a.port().to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&ip.octets());
            out.extend_from_slice(&scope.to_ne_bytes());
        }
    }
    out
}

/// An address as a `sockaddr_storage`.
pub fn storage(a: SocketAddr, mapped: bool) -> [u8; STORAGE] {
    let mut out = [0; STORAGE];
    let b = bytes(a, mapped);
    out[..b.len()].copy_from_slice(&b);
    out
}

/// The wildcard address of a family.
pub fn any(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["192.0.2.7:80", "[2001:db8::1]:5001"] {
            let a: SocketAddr = text.parse().unwrap();
            let b = bytes(a, false);
            assert_eq!(parse(&b), Some((a, b.len())));
            assert_eq!(parse(&storage(a, false)).map(|(a, _)| a), Some(a));
            assert_eq!(parse(&b[..b.len() - 1]), None, "{text} cut short");
        }
        let v4: SocketAddr = "192.0.2.7:80".parse().unwrap();
        assert_eq!(parse(&bytes(v4, true)), Some((v4, 28)), "mapped");
        let both = [bytes(v4, false), bytes("[::1]:80".parse().unwrap(), false)].concat();
        assert_eq!(parse_list(&both).map(|l| l.len()), Some(2));
        assert_eq!(parse_list(&both[..30]), None);
    }
}
