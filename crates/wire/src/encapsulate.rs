//! IP and UDP headers around an SCTP packet, for captures of packets that we saw without them (RFC 6951 §5.3).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_SCTP: u8 = 132;
const IPV4_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;

/// Source and destination address of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpPair {
    /// IPv4: source, destination.
    V4(Ipv4Addr, Ipv4Addr),
    /// IPv6: source, destination.
    V6(Ipv6Addr, Ipv6Addr),
}

impl IpPair {
    /// The pair; IPv4 also when an address is an IPv4 one mapped into IPv6. Of two families, the IPv4 address becomes a
    /// mapped one.
    pub fn new(source: IpAddr, destination: IpAddr) -> Self {
        match (source.to_canonical(), destination.to_canonical()) {
            (IpAddr::V4(s), IpAddr::V4(d)) => IpPair::V4(s, d),
            (s, d) => IpPair::V6(mapped(s), mapped(d)),
        }
    }
}

fn mapped(a: IpAddr) -> Ipv6Addr {
    match a {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// The headers to put before an SCTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Source and destination address.
    pub addresses: IpPair,
    /// Source and destination port of a UDP header; `None` for SCTP directly over IP (protocol 132).
    pub udp_ports: Option<(u16, u16)>,
    /// DSCP and ECN bits.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

impl Encapsulation {
    /// SCTP over UDP between two sockets.
    pub fn udp(source: SocketAddr, destination: SocketAddr) -> Self {
        let udp_ports = Some((source.port(), destination.port()));
        Encapsulation { udp_ports, ..Self::ip(source.ip(), destination.ip()) }
    }

    /// SCTP over IP between two hosts.
    pub fn ip(source: IpAddr, destination: IpAddr) -> Self {
        let addresses = IpPair::new(source, destination);
        Encapsulation { addresses, udp_ports: None, traffic_class: 0, hop_limit: 64 }
    }

    /// Appends the headers and `packet` to `out`. Lengths and the IPv4 and UDP checksums are right; what exceeds
    /// the 65,535 bytes of an IP datagram is cut off.
    pub fn wrap(&self, packet: &[u8], out: &mut Vec<u8>) {
        let udp_len = if self.udp_ports.is_some() { UDP_HEADER_LEN } else { 0 };
        let packet = packet.get(..usize::from(u16::MAX) - IPV4_HEADER_LEN - udp_len).unwrap_or(packet);
        let protocol = if self.udp_ports.is_some() { PROTOCOL_UDP } else { PROTOCOL_SCTP };
        let len = (udp_len + packet.len()) as u16;
        match self.addresses {
            IpPair::V4(s, d) => self.put_ipv4(out, protocol, len, s, d),
            IpPair::V6(s, d) => self.put_ipv6(out, protocol, len, s, d),
        }
        if let Some(ports) = self.udp_ports {
            self.put_udp(out, ports, len, packet);
        }
        out.extend_from_slice(packet);
    }

    fn put_ipv4(&self, out: &mut Vec<u8>, protocol: u8, len: u16, source: Ipv4Addr, destination: Ipv4Addr) {
        const DONT_FRAGMENT: u16 = 0x4000;
        let header = |checksum: u16| {
            let [l0, l1] = (IPV4_HEADER_LEN as u16 + len).to_be_bytes();
            let [f0, f1] = DONT_FRAGMENT.to_be_bytes();
            let [c0, c1] = checksum.to_be_bytes();
            [0x45, self.traffic_class, l0, l1, 0, 0, f0, f1, self.hop_limit, protocol, c0, c1]
        };
        let mut sum = Sum::default();
        sum.add(&header(0));
        sum.add(&source.octets());
        sum.add(&destination.octets());
        out.extend_from_slice(&header(sum.finish()));
        out.extend_from_slice(&source.octets());
        out.extend_from_slice(&destination.octets());
    }

    fn put_ipv6(&self, out: &mut Vec<u8>, protocol: u8, len: u16, source: Ipv6Addr, destination: Ipv6Addr) {
        out.extend_from_slice(&(6 << 28 | u32::from(self.traffic_class) << 20).to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&[protocol, self.hop_limit]);
        out.extend_from_slice(&source.octets());
        out.extend_from_slice(&destination.octets());
    }

    fn put_udp(&self, out: &mut Vec<u8>, (source, destination): (u16, u16), len: u16, packet: &[u8]) {
        let [s0, s1] = source.to_be_bytes();
        let [d0, d1] = destination.to_be_bytes();
        let [l0, l1] = len.to_be_bytes();
        let mut sum = Sum::default();
        match self.addresses {
            IpPair::V4(s, d) => [s.octets(), d.octets()].iter().for_each(|a| sum.add(a)),
            IpPair::V6(s, d) => [s.octets(), d.octets()].iter().for_each(|a| sum.add(a)),
        }
        // Protocol and length of the pseudo header, then the header itself.
        sum.add(&[0, PROTOCOL_UDP, l0, l1, s0, s1, d0, d1, l0, l1]);
        sum.add(packet);
        // Zero would mean "no checksum".
        let [c0, c1] = match sum.finish() {
            0 => [0xff, 0xff],
            c => c.to_be_bytes(),
        };
        out.extend_from_slice(&[s0, s1, d0, d1, l0, l1, c0, c1]);
    }
}

/// The Internet checksum (RFC 1071). Every piece but the last has an even length.
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let (words, last) = bytes.as_chunks::<2>();
        self.0 += words.iter().map(|w| u64::from(u16::from_be_bytes(*w))).sum::<u64>();
        self.0 += last.first().map_or(0, |&b| u64::from(b) << 8);
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internet_sum(bytes: &[u8]) -> u16 {
        let mut s = Sum::default();
        s.add(bytes);
        s.finish()
    }

    #[test]
    fn ipv4_header_of_a_known_packet() {
        // A header with checksum b861, seen in many textbooks.
        let h = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_sum(&h), 0xb861);
        let e = Encapsulation::udp("192.168.0.1:9899".parse().unwrap(), "192.168.0.199:53".parse().unwrap());
        let mut out = Vec::new();
        e.wrap(&[0; 0x73 - 28], &mut out);
        assert_eq!(out[..10], h[..10]);
        assert_eq!(out[10..12], [0xb8, 0x61]);
        assert_eq!(out.len(), 0x73);
    }

    /// A right checksum makes the sum over header and pseudo header come out as zero.
    #[test]
    fn udp_checksum_closes_the_sum() {
        for (a, b) in [("10.0.0.1:1", "10.0.0.2:9899"), ("[fd00::1]:5000", "[fd00::2]:9899")] {
            let (a, b): (SocketAddr, SocketAddr) = (a.parse().unwrap(), b.parse().unwrap());
            for len in [0, 1, 12, 1001] {
                let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
                let mut out = Vec::new();
                Encapsulation::udp(a, b).wrap(&payload, &mut out);
                let (ip_len, addresses) = if a.is_ipv4() { (20, 12..20) } else { (40, 8..40) };
                let mut pseudo = out[addresses].to_vec();
                pseudo.extend([0, 17]);
                pseudo.extend(((out.len() - ip_len) as u16).to_be_bytes());
                pseudo.extend(&out[ip_len..]);
                assert_eq!(internet_sum(&pseudo), 0, "{a} {len}");
                assert_eq!(out[ip_len + 8..], payload);
            }
        }
    }

    /// RFC 768: a sum of zero is sent as all ones.
    #[test]
    fn udp_checksum_is_never_zero() {
        let e = Encapsulation::udp("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let mut out = Vec::new();
        e.wrap(&[0, 0], &mut out);
        let closing = [out[26], out[27]];
        out.clear();
        e.wrap(&closing, &mut out);
        assert_eq!(out[26..28], [0xff, 0xff]);
    }

    #[test]
    fn lengths_and_protocols() {
        let mut out = Vec::new();
        let (a, b): (IpAddr, IpAddr) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        Encapsulation { traffic_class: 2, ..Encapsulation::ip(a, b) }.wrap(&[1; 12], &mut out);
        assert_eq!(out[..8], [0x60, 0x20, 0, 0, 0, 12, 132, 64]);
        assert_eq!(out.len(), 52);
        out.clear();
        Encapsulation::ip("1.2.3.4".parse().unwrap(), "5.6.7.8".parse().unwrap()).wrap(&[1; 70_000], &mut out);
        assert_eq!(out.len(), 65_535);
        assert_eq!((out[2], out[3], out[9]), (0xff, 0xff, 132));
        assert_eq!(internet_sum(&out[..20]), 0);
    }

    #[test]
    fn mapped_and_mixed_families() {
        let v4: IpAddr = "10.0.0.1".parse().unwrap();
        let as_v6: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        let v6: IpAddr = "fd00::1".parse().unwrap();
        assert_eq!(IpPair::new(as_v6, v4), IpPair::new(v4, v4));
        assert!(matches!(IpPair::new(v4, v6), IpPair::V6(s, _) if IpAddr::V6(s) == as_v6));
    }
}
