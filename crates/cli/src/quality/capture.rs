//! Captures: packets with their times out of pcap and pcapng files, and the transport stream in their datagrams.

use anabranch_base::Duration;
use anabranch_media::rtp::{Look, look};
use std::io::{self, Read};
use std::net::IpAddr;

/// Longest block or packet that is taken; more is no capture.
const LENGTH_MAX: u32 = 1 << 20;

/// A packet.
pub struct Packet {
    /// Since the epoch.
    pub at: Duration,
    /// Number of its link type.
    pub link: u16,
    pub bytes: Vec<u8>,
    /// Bytes of the file so far.
    pub read: u64,
}

/// Kind of a capture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capture {
    Pcap { big: bool, nanos: bool },
    Pcapng,
}

impl Capture {
    /// From the first four bytes of a file.
    pub fn of(head: &[u8]) -> Option<Capture> {
        Some(match head.first_chunk()? {
            [0xd4, 0xc3, 0xb2, 0xa1] => Capture::Pcap { big: false, nanos: false },
            [0x4d, 0x3c, 0xb2, 0xa1] => Capture::Pcap { big: false, nanos: true },
            [0xa1, 0xb2, 0xc3, 0xd4] => Capture::Pcap { big: true, nanos: false },
            [0xa1, 0xb2, 0x3c, 0x4d] => Capture::Pcap { big: true, nanos: true },
            [0x0a, 0x0d, 0x0d, 0x0a] => Capture::Pcapng,
            _ => return None,
        })
    }

    /// Reads packets from the file's beginning.
    pub fn reading<R: Read>(self, from: R) -> Reader<R> {
        Reader { from, capture: self, big: false, link: None, interfaces: Vec::new(), read: 0 }
    }
}

/// Reads a capture.
pub struct Reader<R> {
    from: R,
    capture: Capture,
    big: bool,
    /// Link type of a pcap file, once its header was read.
    link: Option<u16>,
    /// Link type of each interface, and how many units of its times are a second.
    interfaces: Vec<(u16, u64)>,
    read: u64,
}

impl<R: Read> Reader<R> {
    /// The next packet; none at the end, also where the file ends within a packet, as a capture does that was cut short.
    ///
    /// # Errors
    /// Those of reading, and what no capture can be.
    pub fn next(&mut self) -> io::Result<Option<Packet>> {
        match self.capture {
            Capture::Pcap { big, nanos } => {
                self.big = big;
                self.next_pcap(nanos)
            }
            Capture::Pcapng => loop {
                let Some((kind, body)) = self.block()? else { return Ok(None) };
                if let Some(packet) = self.take(kind, &body) {
                    return Ok(Some(packet));
                }
            },
        }
    }

    fn next_pcap(&mut self, nanos: bool) -> io::Result<Option<Packet>> {
        if self.link.is_none() {
            let Some(head) = self.bytes(24)? else { return Ok(None) };
            self.link = self.u32(&head, 20).map(|l| l as u16);
        }
        let Some(head) = self.bytes(16)? else { return Ok(None) };
        let field = |i| u64::from(self.u32(&head, i).unwrap_or(0));
        let (seconds, part, length) = (field(0), field(4), field(8) as u32);
        let at = Duration::from_nanos(seconds * 1_000_000_000 + part * if nanos { 1 } else { 1_000 });
        let Some(bytes) = self.bytes(length)? else { return Ok(None) };
        Ok(Some(Packet { at, link: self.link.unwrap_or(0), bytes, read: self.read }))
    }

    /// A block of a pcapng file: its kind, and what lies between its two lengths.
    fn block(&mut self) -> io::Result<Option<(u32, Vec<u8>)>> {
        let Some(mut head) = self.bytes(8)? else { return Ok(None) };
        let section = head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        if section {
            let Some(magic) = self.bytes(4)? else { return Ok(None) };
            self.big = magic == [0x1a, 0x2b, 0x3c, 0x4d];
            self.interfaces.clear();
            head.extend(magic);
        }
        let length = self.u32(&head, 4).unwrap_or(0);
        let Some(rest) = length.checked_sub(head.len() as u32).filter(|_| length.is_multiple_of(4)) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged: a block has an impossible length"));
        };
        let Some(mut body) = self.bytes(rest)? else { return Ok(None) };
        body.truncate(body.len().saturating_sub(4));
        Ok(Some((if section { 0 } else { self.u32(&head, 0).unwrap_or(0) }, body)))
    }

    /// Takes an interface in, or a packet out.
    fn take(&mut self, kind: u32, body: &[u8]) -> Option<Packet> {
        match kind {
            1 => {
                let link = self.u16(body, 0)?;
                let resolution = self.option(body.get(8..)?, 9).and_then(|o| o.first().copied()).unwrap_or(6);
                let power = u32::from(resolution & 0x7f);
                let units = if resolution & 0x80 != 0 { 1u64.checked_shl(power) } else { 10u64.checked_pow(power) };
                self.interfaces.push((link, units.filter(|u| *u > 0).unwrap_or(1_000_000)));
                None
            }
            6 => {
                let (link, units) = *self.interfaces.get(self.u32(body, 0)? as usize)?;
                let at = u128::from(self.u32(body, 4)?) << 32 | u128::from(self.u32(body, 8)?);
                let nanos = at * 1_000_000_000 / u128::from(units);
                let length = self.u32(body, 12)? as usize;
                let bytes = body.get(20..20 + length.min(body.len()))?.to_vec();
                Some(Packet { at: Duration::from_nanos(nanos as u64), link, bytes, read: self.read })
            }
            _ => None,
        }
    }

    /// The value of an option.
    fn option<'a>(&self, mut options: &'a [u8], wanted: u16) -> Option<&'a [u8]> {
        loop {
            let (code, length) = (self.u16(options, 0)?, usize::from(self.u16(options, 2)?));
            if code == wanted {
                return options.get(4..4 + length);
            }
            options = options.get(4 + length.next_multiple_of(4)..)?;
        }
    }

    /// So many bytes of the file; none when it ends before.
    fn bytes(&mut self, count: u32) -> io::Result<Option<Vec<u8>>> {
        if count > LENGTH_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is damaged: a packet is longer than any can be",
            ));
        }
        let mut all = Vec::with_capacity(count as usize);
        let got = (&mut self.from).take(u64::from(count)).read_to_end(&mut all)?;
        self.read += got as u64;
        Ok((got == count as usize).then_some(all))
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let b = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
    }

    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let b = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) })
    }
}

/// The datagrams of one stream.
pub struct Flow {
    port: Option<u16>,
    to: Option<(IpAddr, u16)>,
}

impl Flow {
    /// The one to this port, or the first that has a transport stream.
    pub fn new(port: Option<u16>) -> Self {
        Flow { port, to: None }
    }

    /// The transport stream in a packet, if it is one of the flow.
    pub fn stream<'a>(&mut self, link: u16, packet: &'a [u8]) -> Option<&'a [u8]> {
        let (to, payload) = datagram(link, packet)?;
        if self.to.is_some_and(|known| known != to) || self.port.is_some_and(|p| p != to.1) {
            return None;
        }
        let stream = match look(payload) {
            Look::Plain => payload,
            Look::Stream { payload: range, .. } => payload.get(range)?,
            _ => return None,
        };
        self.to = Some(to);
        Some(stream)
    }
}

/// Destination and payload of a UDP datagram; fragments of IP have none.
fn datagram(link: u16, packet: &[u8]) -> Option<((IpAddr, u16), &[u8])> {
    let ip = match link {
        1 => {
            let mut at = 12;
            // Tags of virtual networks (IEEE 802.1Q).
            while matches!(packet.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
                at += 4;
            }
            packet.get(at + 2..)?
        }
        0 | 108 => packet.get(4..)?,
        12 | 14 | 101 | 228 | 229 => packet,
        113 => packet.get(16..)?,
        276 => packet.get(20..)?,
        _ => return None,
    };
    let (to, udp) = match ip.first()? >> 4 {
        4 => {
            let header = usize::from(ip[0] & 15) * 4;
            let fragment = ip.get(6..8)?;
            if *ip.get(9)? != 17 || fragment[0] & 0x3f != 0 || fragment[1] != 0 {
                return None;
            }
            let length = usize::from(u16::from_be_bytes(*ip.get(2..)?.first_chunk()?));
            // Zero where the network interface divides packets.
            let ip_end = if length == 0 { ip.len() } else { length.min(ip.len()) };
            (IpAddr::from(*ip.get(16..)?.first_chunk::<4>()?), ip.get(header..ip_end)?)
        }
        6 if *ip.get(6)? == 17 => (IpAddr::from(*ip.get(24..)?.first_chunk::<16>()?), ip.get(40..)?),
        _ => return None,
    };
    let port = u16::from_be_bytes(*udp.get(2..)?.first_chunk()?);
    let length = usize::from(u16::from_be_bytes(*udp.get(4..)?.first_chunk()?));
    let end = if length < 8 { udp.len() } else { length.min(udp.len()) };
    Some(((to, port), udp.get(8..end)?))
}
