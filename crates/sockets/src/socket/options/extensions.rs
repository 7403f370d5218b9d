//! Options of AUTH (RFC 6458 §8.1.16 to §8.3), stream reset (RFC 6525 §6.3), dynamic addresses and UDP encapsulation.

use super::super::{AssociationId, Errno, SocketId, Stack};
use crate::abi::address;
use crate::abi::option::{AddStreams, AssocValue, AuthKeyId, Primary, UdpEncapsulation, name, reset};
use crate::abi::read;
use anabranch_base::{Instant, StreamId};
use anabranch_engine::{Association, AuthKeyError, ReconfigError};
use bytes::Bytes;
use zerocopy::IntoBytes;

/// What one socket has set of these.
#[derive(Clone, Debug, Default)]
pub(in crate::socket) struct Extensions {
    pub authentication: bool,
    pub dynamic_addresses: bool,
    pub stream_reset: bool,
    /// Which requests of the peer are carried out (SCTP_ENABLE_STREAM_RESET); remembered only.
    pub reset_mask: u32,
    /// Chunk types that peers have to authenticate.
    pub chunks: Vec<u8>,
    pub keys: Vec<(u16, Bytes)>,
    pub active_key: u16,
    /// The peer's UDP port.
    pub udp_port: Option<u16>,
}

/// Most keys of one socket.
const MOST_KEYS: usize = 64;
/// `struct sctp_udpencaps` without its padding.
const UDP_ENCAPSULATION: usize = 138;
/// HMAC identifiers (RFC 4895 §3.3), in the order in which they are offered.
const HMACS: [u16; 2] = [3, 1];

impl Stack {
    /// None when the option is of another kind.
    pub(super) fn set_extension(
        &mut self,
        now: Instant,
        id: SocketId,
        option: i32,
        b: &[u8],
    ) -> Option<Result<(), Errno>> {
        Some(match option {
            name::AUTH_CHUNK => self.set_auth_chunk(id, b),
            name::AUTH_KEY => self.set_auth_key(id, b),
            name::AUTH_ACTIVE_KEY | name::AUTH_DELETE_KEY | name::AUTH_DEACTIVATE_KEY => {
                self.choose_auth_key(id, option, b)
            }
            name::HMAC_IDENT => set_hmacs(b),
            name::RESET_STREAMS => self.reset_streams(now, id, b),
            name::RESET_ASSOC => {
                let which = b.get(..4).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes).ok_or(Errno::INVALID);
                let all = |a: &Association| !a.is_drained();
                which.and_then(|w| self.reconfigure(id, w, (reset::ASSOC, all), |a| a.reset_association(now)))
            }
            name::ADD_STREAMS => read::<AddStreams>(b, 8).ok_or(Errno::INVALID).and_then(|s| {
                let add = |a: &mut Association| a.add_streams(now, s.outbound.get(), s.inbound.get());
                self.reconfigure(id, s.id.get(), (reset::CHANGE_ASSOC, |_| false), add)
            }),
            name::SET_PEER_PRIMARY_ADDR => self.prefer(now, id, b),
            name::REMOTE_UDP_ENCAPS_PORT => self.set_udp_port(id, b),
            name::RECONFIG_SUPPORTED | name::ENABLE_STREAM_RESET | name::ASCONF_SUPPORTED | name::AUTH_SUPPORTED => {
                read::<AssocValue>(b, 8).ok_or(Errno::INVALID).and_then(|v| {
                    let e = &mut self.get_mut(id)?.options.extensions;
                    let value = v.value.get();
                    match option {
                        name::RECONFIG_SUPPORTED => e.stream_reset = value != 0,
                        name::ENABLE_STREAM_RESET if value > 7 => return Err(Errno::INVALID),
                        name::ENABLE_STREAM_RESET => e.reset_mask = value,
                        name::ASCONF_SUPPORTED => e.dynamic_addresses = value != 0,
                        _ => e.authentication = value != 0,
                    }
                    Ok(())
                })
            }
            _ => return None,
        })
    }

    /// None when the option is of another kind.
    pub(super) fn get_extension(
        &self,
        id: SocketId,
        option: i32,
        which: i32,
        given: &[u8],
    ) -> Option<Result<Vec<u8>, Errno>> {
        let e = match self.get(id) {
            Ok(s) => &s.options.extensions,
            Err(e) => return Some(Err(e)),
        };
        let agreed = self.agreed(id, which);
        let value = |v: u32| Ok(AssocValue { id: which.into(), value: v.into() }.as_bytes().to_vec());
        Some(match option {
            name::RECONFIG_SUPPORTED => value(agreed.map_or(e.stream_reset, |a| a.stream_reset).into()),
            name::ENABLE_STREAM_RESET => value(e.reset_mask),
            name::ASCONF_SUPPORTED => value(agreed.map_or(e.dynamic_addresses, |a| a.dynamic_addresses).into()),
            name::AUTH_SUPPORTED => value(agreed.map_or(e.authentication, |a| a.authentication).into()),
            name::AUTH_CHUNK | name::AUTH_KEY | name::AUTH_DELETE_KEY | name::AUTH_DEACTIVATE_KEY => {
                Err(Errno::NOT_SUPPORTED)
            }
            name::AUTH_ACTIVE_KEY => {
                let (id, number) = (which.into(), e.active_key.into());
                Ok(AuthKeyId { id, number, pad: 0.into() }.as_bytes().to_vec())
            }
            name::HMAC_IDENT => {
                let mut out = (HMACS.len() as u32).to_ne_bytes().to_vec();
                HMACS.iter().for_each(|h| out.extend_from_slice(&h.to_ne_bytes()));
                Ok(out)
            }
            name::PEER_AUTH_CHUNKS | name::LOCAL_AUTH_CHUNKS => {
                let of = |a: AssociationId| {
                    let e = self.engine(a)?;
                    // What the peer asks of us is the peer's list.
                    let peers = option == name::PEER_AUTH_CHUNKS;
                    Some(if peers { e.authenticated_by_us() } else { e.authenticated_by_peer() }.to_vec())
                };
                let one = self.one(id, which).ok().and_then(of);
                let list = one.or((option == name::LOCAL_AUTH_CHUNKS).then(|| e.chunks.clone())).ok_or(Errno::INVALID);
                list.map(|list| {
                    let mut out = which.to_ne_bytes().to_vec();
                    out.extend_from_slice(&(list.len() as u32).to_ne_bytes());
                    out.extend_from_slice(&list);
                    out
                })
            }
            name::REMOTE_UDP_ENCAPS_PORT => self.udp_port(id, given),
            _ => return None,
        })
    }

    fn set_auth_chunk(&mut self, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let kind = *b.first().ok_or(Errno::INVALID)?;
        let e = self.authenticating(id)?;
        // INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH never are (RFC 4895 §3.2).
        if matches!(kind, 1 | 2 | 14 | 15) {
            return Err(Errno::INVALID);
        }
        if !e.chunks.contains(&kind) {
            e.chunks.push(kind);
        }
        Ok(())
    }

    fn authenticating(&mut self, id: SocketId) -> Result<&mut Extensions, Errno> {
        let e = &mut self.get_mut(id)?.options.extensions;
        if e.authentication { Ok(e) } else { Err(Errno(libc::EACCES)) }
    }

    /// `struct sctp_authkey`: id, number, length, key.
    fn set_auth_key(&mut self, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let head = read::<AuthKeyId>(b, 8).ok_or(Errno::INVALID)?;
        let (number, len) = (head.number.get(), usize::from(head.pad.get()));
        let rest = b.get(8..).unwrap_or_default();
        let key = if len == 0 { rest } else { rest.get(..len).ok_or(Errno::INVALID)? }.to_vec();
        let e = self.authenticating(id)?;
        e.keys.retain(|(n, _)| *n != number);
        if e.keys.len() >= MOST_KEYS {
            return Err(Errno(libc::ENOMEM));
        }
        e.keys.push((number, key.clone().into()));
        for a in self.concerned(id, head.id.get())? {
            if let Some(mut a) = self.engine_mut(a) {
                a.set_auth_key(number, &key);
            }
        }
        Ok(())
    }

    fn choose_auth_key(&mut self, id: SocketId, option: i32, b: &[u8]) -> Result<(), Errno> {
        let k = read::<AuthKeyId>(b, 6).ok_or(Errno::INVALID)?;
        let number = k.number.get();
        let e = self.authenticating(id)?;
        let known = number == 0 || e.keys.iter().any(|(n, _)| *n == number);
        if !known || (option != name::AUTH_ACTIVE_KEY && e.active_key == number) {
            return Err(Errno::INVALID);
        }
        match option {
            name::AUTH_ACTIVE_KEY => e.active_key = number,
            // Of an association: what the peer signs with it counts until it is deleted.
            name::AUTH_DEACTIVATE_KEY => {}
            _ => e.keys.retain(|(n, _)| *n != number),
        }
        for a in self.concerned(id, k.id.get())? {
            let Some(mut a) = self.engine_mut(a) else { continue };
            let done = match option {
                name::AUTH_ACTIVE_KEY => a.activate_auth_key(number),
                name::AUTH_DEACTIVATE_KEY => a.deactivate_auth_key(number),
                _ => a.delete_auth_key(number),
            };
            done.map_err(|e| match e {
                AuthKeyError::Active(_) | AuthKeyError::Unknown(_) | AuthKeyError::Retired(_) => Errno::INVALID,
            })?;
        }
        Ok(())
    }

    /// `struct sctp_reset_streams`: id, flags, how many, which.
    fn reset_streams(&mut self, now: Instant, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let head = read::<AddStreams>(b, 8).ok_or(Errno::INVALID)?;
        let (flags, count) = (head.inbound.get(), usize::from(head.outbound.get()));
        let list = b.get(8..8 + 2 * count).ok_or(Errno::INVALID)?;
        let streams: Vec<StreamId> = list.chunks_exact(2).map(|s| StreamId(u16::from_ne_bytes([s[0], s[1]]))).collect();
        let (outgoing, incoming) = (flags & 2 != 0, flags & 1 != 0);
        let waits = |a: &Association| match (outgoing, streams.is_empty()) {
            (false, _) => false,
            (true, true) => !a.is_drained(),
            (true, false) => streams.iter().any(|s| a.has_unsent(*s)),
        };
        let reset = |a: &mut Association| a.reset_streams(now, &streams, outgoing, incoming);
        self.reconfigure(id, head.id.get(), (reset::STREAMS, waits), reset)
    }

    /// A request, of the kind that is enabled by a bit, that cannot begin while `waits` says so. One at a time, as in the
    /// kernel, although the engine would queue it.
    fn reconfigure(
        &mut self,
        id: SocketId,
        which: i32,
        (bit, waits): (u32, impl FnOnce(&Association) -> bool),
        f: impl FnOnce(&mut Association) -> Result<(), ReconfigError>,
    ) -> Result<(), Errno> {
        let a = self.one(id, which)?;
        if self.get(id)?.options.extensions.reset_mask & bit == 0 {
            return Err(Errno::NO_OPTION);
        }
        let mut a = self.engine_mut(a).ok_or(Errno::INVALID)?;
        if a.is_reconfiguring() {
            return Err(Errno::IN_PROGRESS);
        }
        if waits(&a) {
            return Err(Errno::AGAIN);
        }
        f(&mut a).map_err(|e| match e {
            ReconfigError::NotSupported => Errno(libc::ENOPROTOOPT),
            ReconfigError::Busy => Errno::IN_PROGRESS,
            ReconfigError::Closed => Errno::NOT_CONNECTED,
            _ => Errno::INVALID,
        })
    }

    fn prefer(&mut self, now: Instant, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let p = read::<Primary>(b, size_of::<Primary>()).ok_or(Errno::INVALID)?;
        let (ours, _) = address::parse(&p.address).ok_or(Errno::INVALID)?;
        let a = self.one(id, p.id.get())?;
        let mut a = self.engine_mut(a).ok_or(Errno::INVALID)?;
        a.prefer_address(now, ours.ip()).map_err(|_| Errno(libc::EPERM))
    }

    fn set_udp_port(&mut self, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let u = read::<UdpEncapsulation>(b, UDP_ENCAPSULATION).ok_or(Errno::INVALID)?;
        let port = u16::from_be(u.port.get());
        // One process has its packets on UDP or on IP, not some here and some there.
        if (port == 0) != self.settings.udp_port.is_none() {
            return Err(Errno::NO_OPTION);
        }
        let paths: Vec<_> = match address::parse(&u.address).filter(|(a, _)| !a.ip().is_unspecified()) {
            Some((to, _)) => vec![self.transport(id, u.id.get(), to).ok_or(Errno(libc::ENOENT))?],
            None => {
                let all = self.concerned(id, u.id.get())?;
                self.get_mut(id)?.options.extensions.udp_port = Some(port).filter(|p| *p != 0);
                all.into_iter().flat_map(|a| self.paths_to(a, None).into_iter().map(move |p| (a, p))).collect()
            }
        };
        for (a, path) in paths {
            self.engine_mut(a).map(|mut e| e.set_encapsulation_port(path, port));
        }
        Ok(())
    }

    fn udp_port(&self, id: SocketId, given: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut u = read::<UdpEncapsulation>(given, UDP_ENCAPSULATION).ok_or(Errno::INVALID)?;
        let port = match address::parse(&u.address).filter(|(a, _)| !a.ip().is_unspecified()) {
            Some((to, _)) => {
                let (a, path) = self.transport(id, u.id.get(), to).ok_or(Errno(libc::ENOENT))?;
                let stats = self.engine(a).and_then(|e| e.paths().find(|(p, _)| *p == path));
                stats.map_or(0, |(_, s)| s.remote.port())
            }
            None => self.get(id)?.options.extensions.udp_port.or(self.settings.udp_port).unwrap_or(0),
        };
        u.port = port.to_be().into();
        Ok(u.as_bytes().get(..given.len().min(size_of::<UdpEncapsulation>())).unwrap_or_default().to_vec())
    }
}

/// Only those that there are may be asked for, and SHA-1 has to be among them (RFC 4895 §3.3).
fn set_hmacs(b: &[u8]) -> Result<(), Errno> {
    let count = b.get(..4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes).ok_or(Errno::INVALID)? as usize;
    let list = count.checked_mul(2).and_then(|n| b.get(4..4 + n)).ok_or(Errno::INVALID)?;
    let mut list = list.chunks_exact(2).map(|h| u16::from_ne_bytes([h[0], h[1]]));
    let fine = list.clone().all(|h| HMACS.contains(&h)) && list.any(|h| h == 1);
    if fine { Ok(()) } else { Err(Errno::NOT_SUPPORTED) }
}
