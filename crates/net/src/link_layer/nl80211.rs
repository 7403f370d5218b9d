//! nl80211: what the kernel's wireless interfaces count for each station (`iw dev wlan0 station dump`).
//!
//! Numbers are those of linux/netlink.h, linux/genetlink.h and linux/nl80211.h. Anything else in an answer is passed
//! over: kernels add attributes with every release.

use anabranch_base::Modulation;
use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_ALIGNTO, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkHeader, NlasIterator,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The family that tells numbers of families.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const GET_STATION: u8 = 17;
const NEW_STATION: u8 = 19;
const IFINDEX: u16 = 3;
const MAC: u16 = 6;
const STA_INFO: u16 = 21;

/// Attributes within [`STA_INFO`].
mod info {
    pub const TX_BYTES: u16 = 3;
    pub const TX_BITRATE: u16 = 8;
    pub const TX_PACKETS: u16 = 10;
    pub const TX_RETRIES: u16 = 11;
    pub const TX_FAILED: u16 = 12;
    pub const TX_BYTES64: u16 = 24;
}

/// Attributes within [`info::TX_BITRATE`].
mod rate {
    pub const BITRATE: u16 = 1;
    pub const MCS: u16 = 2;
    pub const VHT_MCS: u16 = 6;
    pub const HE_MCS: u16 = 13;
    pub const EHT_MCS: u16 = 19;
}

/// Bytes of a header of netlink, and of the one of its generic families behind it.
const HEADER: usize = 16;
const GENERIC: usize = 4;
/// The kernel's dumps come in pieces of this size at most.
const PIECE: usize = 32 << 10;
/// How long the kernel may take: a driver asks its firmware.
const PATIENCE: i64 = 2;

/// What is counted of the frames to one station. Without repetitions and failures a driver says nothing of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Station {
    /// Its hardware address.
    pub address: [u8; 6],
    /// Packets sent to it.
    pub packets: u32,
    /// Repetitions of their frames.
    pub repeats: Option<u32>,
    /// Frames given up.
    pub failed: Option<u32>,
    /// Bytes of the packets.
    pub bytes: u64,
    /// What the newest frame was modulated with.
    pub modulation: Modulation,
}

/// A socket to the kernel's generic netlink.
pub(super) struct Kernel {
    fd: OwnedFd,
    family: u16,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Kernel {
    /// An error where the kernel knows no wireless interfaces.
    pub fn open() -> io::Result<Kernel> {
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkGeneric)?;
        // One that is connected hears the kernel alone.
        connect(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Kernel::over(fd)
    }

    /// Over a socket at whose other end the kernel is.
    pub fn over(fd: OwnedFd) -> io::Result<Kernel> {
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::seconds(PATIENCE))?;
        let mut kernel = Kernel { fd, family: CONTROL, sequence: 0, buffer: vec![0; PIECE] };
        let mut family = None;
        let name = DefaultNla::new(FAMILY_NAME, b"nl80211\0".to_vec());
        kernel.ask(0, GET_FAMILY, &name, |_, attributes| {
            family = family.or_else(|| find(attributes, FAMILY_ID).and_then(u16_of));
        })?;
        kernel.family = family.ok_or_else(|| io::Error::other("nl80211 has no number"))?;
        Ok(kernel)
    }

    /// The stations of an interface; an error where it is not a wireless one.
    pub fn stations(&mut self, index: u32) -> io::Result<Vec<Station>> {
        let mut all = Vec::new();
        let interface = DefaultNla::new(IFINDEX, index.to_ne_bytes().to_vec());
        self.ask(NLM_F_DUMP, GET_STATION, &interface, |command, attributes| {
            if command == NEW_STATION && find(attributes, IFINDEX).and_then(u32_of) == Some(index) {
                all.extend(station(attributes));
            }
        })?;
        Ok(all)
    }

    /// Sends a request and hands each answer's command and attributes to `take`.
    fn ask(&mut self, flags: u16, command: u8, about: &DefaultNla, mut take: impl FnMut(u8, &[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.family, flags, self.sequence, command, about);
        send(self.fd.as_raw_fd(), &request, MsgFlags::empty())?;
        loop {
            let n = recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            let piece = self.buffer.get(..n).unwrap_or_default();
            if n == 0 || read(piece, self.sequence, flags == NLM_F_DUMP, &mut take)? {
                return Ok(());
            }
        }
    }
}

fn request(family: u16, flags: u16, sequence: u32, command: u8, about: &DefaultNla) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.length = (HEADER + GENERIC + about.buffer_len()) as u32;
    header.message_type = family;
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut message = vec![0; HEADER];
    header.emit(&mut message);
    message.extend([command, 1, 0, 0]);
    let mut attribute = vec![0; about.buffer_len()];
    about.emit(&mut attribute);
    message.extend(attribute);
    message
}

/// Reads the messages of one piece: was the last one of the answer among them?
fn read(mut piece: &[u8], sequence: u32, dump: bool, take: &mut impl FnMut(u8, &[u8])) -> io::Result<bool> {
    while !piece.is_empty() {
        let message = NetlinkBuffer::new_checked(piece).map_err(io::Error::other)?;
        let length = message.length() as usize;
        let payload = message.payload();
        // An answer to a question whose asker lost patience may still come.
        if message.sequence_number() == sequence {
            match message.message_type() {
                NLMSG_DONE | NLMSG_ERROR => {
                    let code = payload.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                    return if code < 0 { Err(io::Error::from_raw_os_error(code.saturating_neg())) } else { Ok(true) };
                }
                _ => {
                    if let Some((generic, attributes)) = payload.split_at_checked(GENERIC) {
                        take(generic.first().copied().unwrap_or_default(), attributes);
                    }
                    if !dump {
                        return Ok(true);
                    }
                }
            }
        }
        piece = piece.get(length.next_multiple_of(NLMSG_ALIGNTO.into())..).unwrap_or_default();
    }
    Ok(false)
}

/// The value of an attribute; what comes after a malformed one is not looked at.
fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut all = NlasIterator::new(attributes).map_while(Result::ok);
    let found = all.find(|a| a.kind() == kind)?;
    let length = usize::from(found.length());
    found.into_inner().get(netlink_packet_core::NLA_HEADER_SIZE..length)
}

fn u16_of(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_ne_bytes)
}

/// A station, if packets to it are counted.
fn station(attributes: &[u8]) -> Option<Station> {
    let info = find(attributes, STA_INFO)?;
    let count = |kind| find(info, kind).and_then(u32_of);
    let bytes = find(info, info::TX_BYTES64).and_then(u64_of).or(count(info::TX_BYTES).map(u64::from));
    Some(Station {
        address: find(attributes, MAC)?.try_into().ok()?,
        packets: count(info::TX_PACKETS)?,
        repeats: count(info::TX_RETRIES),
        failed: count(info::TX_FAILED),
        bytes: bytes.unwrap_or_default(),
        modulation: find(info, info::TX_BITRATE).map_or(Modulation::Unknown, modulation),
    })
}

/// How bits of frames at a rate become a signal (IEEE 802.11-2020, tables of modulation and coding schemes). Beyond
/// 256 points the policies know no curve: the nearest is taken.
fn modulation(rate: &[u8]) -> Modulation {
    let scheme = |kind| find(rate, kind).and_then(|v| v.first().copied());
    let modern = scheme(rate::EHT_MCS).or_else(|| scheme(rate::HE_MCS)).or_else(|| scheme(rate::VHT_MCS));
    // The first one of 802.11n counts streams in steps of eight.
    match modern.or_else(|| scheme(rate::MCS).map(|n| n % 8)) {
        Some(0) => return Modulation::Bpsk,
        Some(1 | 2) => return Modulation::Qpsk,
        Some(3 | 4) => return Modulation::Qam16,
        Some(5..=7) => return Modulation::Qam64,
        Some(_) => return Modulation::Qam256,
        None => {}
    }
    // Units of 100 kbit/s: 802.11a, b and g.
    match find(rate, rate::BITRATE).and_then(u16_of) {
        Some(10) => Modulation::Dbpsk,
        Some(20 | 55 | 110) => Modulation::Dqpsk,
        Some(60 | 90) => Modulation::Bpsk,
        Some(120 | 180) => Modulation::Qpsk,
        Some(240 | 360) => Modulation::Qam16,
        Some(480 | 540) => Modulation::Qam64,
        _ => Modulation::Unknown,
    }
}

#[cfg(test)]
#[path = "composed_messages.rs"]
pub(super) mod composed_messages;
