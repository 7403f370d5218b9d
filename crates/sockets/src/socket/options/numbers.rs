//! Options that are one number, alone or behind an association's id.

use super::super::{AssociationId, Errno, SocketId, Stack, Style};
use super::DATA_AND_COMMON_HEADER;
use super::set::int;
use crate::abi::option::{AssocValue, name};
use crate::abi::read;
use zerocopy::IntoBytes;

/// Smallest and largest fragment that Linux lets a program ask for: what the smallest segment leaves, and the largest
/// chunk.
const SMALLEST_PACKET: u32 = 512;
const LARGEST_FRAGMENT: u32 = 65_516;
/// Shortest SCTP_PLPMTUD_PROBE_INTERVAL beside 0, ms.
pub(in crate::socket) const SHORTEST_PROBE_INTERVAL: u32 = 5_000;

impl Stack {
    pub(super) fn set_number(&mut self, id: SocketId, option: i32, b: &[u8]) -> Result<(), Errno> {
        let (which, value) = match read::<AssocValue>(b, 8) {
            Some(v) => (v.id.get(), v.value.get()),
            None => (0, int(b)? as u32),
        };
        let on = value != 0;
        match option {
            name::NODELAY => {
                let nagle = self.settings.nagle(!on);
                for a in self.get(id)?.associations.clone() {
                    if let Some(mut e) = self.engine_mut(a) {
                        e.set_nagle(nagle);
                    }
                }
            }
            name::MAXSEG => return self.set_largest_fragment(id, which, value),
            // Closing by itself is for sockets of many associations (RFC 6458 §8.1.8), a port of several for those of one.
            name::AUTOCLOSE if self.get(id)?.style == Style::OneToOne => return Err(Errno::NOT_SUPPORTED),
            name::REUSE_PORT if self.get(id)?.style == Style::OneToMany => return Err(Errno::NOT_SUPPORTED),
            name::REUSE_PORT if self.get(id)?.bound.is_some() => return Err(Errno::FAULT),
            // Addresses can follow the interfaces only where a socket has all of them.
            name::AUTO_ASCONF if on && !self.is_bound_to_all(id)? => return Err(Errno::INVALID),
            // Only who takes fragments of several messages in turn can have them interleaved (RFC 8260 §4.3.1).
            name::INTERLEAVING_SUPPORTED if !self.settings.interleaving || !self.get(id)?.options.interleave => {
                return Err(Errno(libc::EPERM));
            }
            _ => {}
        }
        let supported = self.settings.partial_reliability;
        let o = &mut self.get_mut(id)?.options;
        match option {
            name::NODELAY => o.no_delay = on,
            name::DISABLE_FRAGMENTS => o.fragments = !on,
            name::MAX_BURST => o.max_burst = u16::try_from(value).unwrap_or(u16::MAX),
            name::AUTOCLOSE => o.auto_close = value,
            name::ADAPTATION_LAYER => o.adaptation = Some(value),
            name::CONTEXT => o.context = value,
            name::FRAGMENT_INTERLEAVE => {
                o.interleave = on;
                o.interleaving &= on;
            }
            name::INTERLEAVING_SUPPORTED => o.interleaving = on,
            name::PARTIAL_DELIVERY_POINT if value as usize > o.receive_buffer / 2 => return Err(Errno::INVALID),
            name::PARTIAL_DELIVERY_POINT => o.partial_delivery_point = value,
            name::RECVRCVINFO => o.receive_info = on,
            name::RECVNXTINFO => o.next_info = on,
            name::I_WANT_MAPPED_V4_ADDR => o.mapped = on,
            name::REUSE_PORT => o.reuse = on,
            name::AUTO_ASCONF => o.auto_asconf = on,
            name::ECN_SUPPORTED => o.ecn = on,
            name::PR_SUPPORTED => o.partial_reliability = on && supported,
            name::ACCEPT_ZERO_CHECKSUM => o.zero_checksum = value,
            _ => return Err(Errno::NO_OPTION),
        }
        Ok(())
    }

    pub(super) fn get_number(&self, id: SocketId, option: i32, which: i32, room: usize) -> Result<Vec<u8>, Errno> {
        let s = self.get(id)?;
        let o = &s.options;
        let plain = |v: u32| Ok(v.to_ne_bytes().to_vec());
        // Those that follow an association's id when there is room for it.
        let numbered = |v: u32| match room >= 8 {
            true => Ok(AssocValue { id: which.into(), value: v.into() }.as_bytes().to_vec()),
            false => plain(v),
        };
        let agreed = self.agreed(id, which);
        match option {
            name::NODELAY => plain(u32::from(o.no_delay)),
            name::DISABLE_FRAGMENTS => plain(u32::from(!o.fragments)),
            name::AUTOCLOSE if s.style == Style::OneToOne => Err(Errno::NOT_SUPPORTED),
            name::AUTOCLOSE => plain(o.auto_close),
            name::ADAPTATION_LAYER => plain(o.adaptation.unwrap_or(0)),
            name::FRAGMENT_INTERLEAVE => plain(u32::from(o.interleave)),
            name::PARTIAL_DELIVERY_POINT => plain(o.partial_delivery_point),
            name::RECVRCVINFO => plain(u32::from(o.receive_info)),
            name::RECVNXTINFO => plain(u32::from(o.next_info)),
            name::I_WANT_MAPPED_V4_ADDR => plain(u32::from(o.mapped)),
            name::REUSE_PORT => plain(u32::from(o.reuse)),
            name::AUTO_ASCONF => plain(u32::from(o.auto_asconf && self.is_bound_to_all(id)?)),
            name::ACCEPT_ZERO_CHECKSUM => plain(o.zero_checksum),
            name::MAXSEG => numbered(self.largest_fragment(id, which).unwrap_or(o.max_segment)),
            name::MAX_BURST => numbered(o.max_burst.into()),
            name::CONTEXT => numbered(o.context),
            name::EXPOSE_POTENTIALLY_FAILED_STATE => {
                numbered(self.one(id, which).map_or(o.failure.exposed, |a| self.exposed(a)))
            }
            name::INTERLEAVING_SUPPORTED => numbered(agreed.map_or(o.interleaving, |f| f.interleaving).into()),
            name::ECN_SUPPORTED => numbered(agreed.map_or(o.ecn, |f| f.ecn).into()),
            name::PR_SUPPORTED => numbered(agreed.map_or(o.partial_reliability, |f| f.partial_reliability).into()),
            _ => Err(Errno::NO_OPTION),
        }
    }

    /// What both ends of an association that is up can do; none where no such one is meant.
    pub(super) fn agreed(&self, id: SocketId, which: i32) -> Option<anabranch_engine::Agreed> {
        let a = self.one(id, which).ok()?;
        self.associations.get(&a).filter(|a| a.connected && a.closed.is_none())?;
        self.engine(a).map(anabranch_engine::Association::agreed)
    }

    fn is_bound_to_all(&self, id: SocketId) -> Result<bool, Errno> {
        let bound = self.get(id)?.bound.as_ref();
        Ok(bound.is_none_or(|b| b.addresses.iter().any(std::net::IpAddr::is_unspecified)))
    }

    /// Payload of the largest chunk that the association sends.
    pub(super) fn largest_fragment(&self, id: SocketId, which: i32) -> Option<u32> {
        let e = self.engine(self.one(id, which).ok()?)?;
        let smallest = e.paths().map(|(_, p)| p.packet_size).min().unwrap_or(e.config().mtu.packet_size);
        Some(smallest.saturating_sub(DATA_AND_COMMON_HEADER) as u32)
    }

    fn set_largest_fragment(&mut self, id: SocketId, which: i32, value: u32) -> Result<(), Errno> {
        let v6 = self.get(id)?.v6;
        let ip = if v6 { 40 } else { 20 };
        let least = SMALLEST_PACKET - ip - DATA_AND_COMMON_HEADER as u32;
        if value != 0 && !(least..=LARGEST_FRAGMENT).contains(&value) {
            return Err(Errno::INVALID);
        }
        let concerned: Vec<AssociationId> = self.concerned(id, which)?;
        let settings = self.settings.clone();
        let s = self.get_mut(id)?;
        let mut wanted = s.options.clone();
        wanted.max_segment = value;
        if concerned.is_empty() || s.style == Style::OneToOne {
            s.options.max_segment = value;
        }
        for a in concerned {
            let Some(mut e) = self.engine_mut(a) else { continue };
            let paths: Vec<_> = e.paths().map(|(p, s)| (p, s.remote.is_ipv6())).collect();
            for (path, v6) in paths {
                e.set_path_mtu(path, wanted.packet_size(&settings, v6));
            }
        }
        Ok(())
    }
}
