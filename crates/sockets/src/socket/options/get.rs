//! `getsockopt`.

use super::super::{Errno, SocketId, Stack, Style};
use super::{EVENT_KINDS, REMEMBERED};
use crate::abi::address::{self, STORAGE};
use crate::abi::message::SndRcvInfo;
use crate::abi::option::{
    AssocParams, AssocValue, DefaultPrInfo, EventOption, PeerAddressInfo, PeerAddressParams, Primary, ProbeInterval,
    RtoInfo, SackInfo, Status, name, pf_expose, spp,
};
use crate::abi::{SOL_SCTP, read};
use crate::socket::AssociationId;
use anabranch_engine::{HeartbeatSetting, PathStats, Stage};
use anabranch_policy::view::PathState;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

impl Stack {
    /// An option's value. `given` is the content of the program's buffer: where an option is one of an association or
    /// an address, it has them.
    ///
    /// # Errors
    /// Not known, too short, or about something that is not there.
    pub fn get_option(&mut self, id: SocketId, level: i32, option: i32, given: &[u8]) -> Result<Vec<u8>, Errno> {
        match level {
            SOL_SCTP => self.get_sctp(id, option, given),
            libc::SOL_SOCKET => self.get_socket(id, option),
            _ => Err(Errno::NO_OPTION),
        }
    }

    fn get_socket(&mut self, id: SocketId, option: i32) -> Result<Vec<u8>, Errno> {
        let s = self.get_mut(id)?;
        let value = match option {
            libc::SO_ERROR => s.error.take().map_or(0, |e| e.0),
            libc::SO_TYPE if s.style == Style::OneToOne => libc::SOCK_STREAM,
            libc::SO_TYPE => libc::SOCK_SEQPACKET,
            libc::SO_PROTOCOL => SOL_SCTP,
            libc::SO_DOMAIN if s.v6 => libc::AF_INET6,
            libc::SO_DOMAIN => libc::AF_INET,
            libc::SO_ACCEPTCONN => i32::from(s.backlog.is_some()),
            libc::SO_SNDBUF => s.options.send_buffer as i32,
            libc::SO_RCVBUF => s.options.receive_buffer as i32,
            libc::SO_REUSEADDR | libc::SO_REUSEPORT => i32::from(s.options.reuse),
            libc::SO_LINGER => {
                let on = i32::from(s.options.linger.is_some()).to_ne_bytes();
                let seconds = (s.options.linger.unwrap_or(0) as i32).to_ne_bytes();
                return Ok([on, seconds].concat());
            }
            libc::SO_RCVTIMEO | libc::SO_SNDTIMEO => {
                let t = if option == libc::SO_RCVTIMEO { s.options.receive_timeout } else { s.options.send_timeout };
                let us = t.map_or(0, anabranch_base::Duration::as_micros);
                return Ok([(us / 1_000_000).to_ne_bytes(), (us % 1_000_000).to_ne_bytes()].concat());
            }
            _ if REMEMBERED.contains(&option) => s.options.remembered.get(&option).copied().unwrap_or(0),
            _ => return Err(Errno::NO_OPTION),
        };
        Ok(value.to_ne_bytes().to_vec())
    }

    fn get_sctp(&mut self, id: SocketId, option: i32, given: &[u8]) -> Result<Vec<u8>, Errno> {
        let s = self.get(id)?;
        let o = &s.options;
        let which = read::<AssocValue>(given, 4).map_or(0, |v| v.id.get());
        Ok(match option {
            name::RTOINFO => {
                let ms = |d: anabranch_base::Duration| (d.as_millis() as u32).into();
                let (initial, max, min) = (ms(o.rto_initial), ms(o.rto_max), ms(o.rto_min));
                RtoInfo { id: which.into(), initial, max, min }.as_bytes().to_vec()
            }
            name::ASSOCINFO => self.association_params(id, which)?.as_bytes().to_vec(),
            name::INITMSG => o.init.as_bytes().to_vec(),
            name::STATUS => self.status(id, which)?.as_bytes().to_vec(),
            name::GET_PEER_ADDR_INFO => {
                let asked = read::<PeerAddressInfo>(given, 132).ok_or(Errno::INVALID)?;
                let (to, _) = address::parse(&asked.address).ok_or(Errno::INVALID)?;
                let (a, path) = self.transport(id, which, to).ok_or(Errno::INVALID)?;
                let stats = self.engine(a).and_then(|e| e.paths().find(|(p, _)| *p == path).map(|(_, s)| s));
                self.path_info(id, a, stats.ok_or(Errno::INVALID)?)?.as_bytes().to_vec()
            }
            name::PEER_ADDR_PARAMS => self.peer_address(id, which, given)?,
            name::DELAYED_SACK if given.len() < size_of::<SackInfo>() => {
                let value = if o.sack_frequency == 1 { 0 } else { o.sack_delay.as_millis() as u32 };
                AssocValue { id: which.into(), value: value.into() }.as_bytes().to_vec()
            }
            name::DELAYED_SACK => {
                let delay = (o.sack_delay.as_millis() as u32).into();
                SackInfo { id: which.into(), delay, frequency: o.sack_frequency.into() }.as_bytes().to_vec()
            }
            name::EVENTS => {
                let bytes: Vec<u8> = o.events.iter().map(|on| u8::from(*on)).collect();
                debug_assert_eq!(bytes.len(), EVENT_KINDS);
                bytes
            }
            name::EVENT => {
                let mut e = read::<EventOption>(given, 8).ok_or(Errno::INVALID)?;
                e.on = u8::from(o.tells(e.kind.get()));
                e.as_bytes().to_vec()
            }
            name::DEFAULT_SEND_PARAM => {
                let (d, mut i) = (o.default_send, SndRcvInfo::new_zeroed());
                (i.stream, i.flags, i.ppid, i.context, i.id) = (d.stream, d.flags, d.ppid, d.context, d.id);
                i.ttl = o.default_ttl.into();
                i.as_bytes().to_vec()
            }
            name::DEFAULT_SNDINFO => o.default_send.as_bytes().to_vec(),
            name::DEFAULT_PRINFO => {
                let (policy, value) = o.default_reliability;
                DefaultPrInfo { id: which.into(), value: value.into(), policy: policy.into(), pad: 0.into() }
                    .as_bytes()
                    .to_vec()
            }
            name::PR_ASSOC_STATUS => self.abandoned(id, given, false)?,
            name::PR_STREAM_STATUS => self.abandoned(id, given, true)?,
            name::GET_ASSOC_STATS => self.statistics(id, which, given.len())?,
            name::PEER_ADDR_THLDS => self.thresholds(id, given, false)?,
            name::PEER_ADDR_THLDS_V2 => self.thresholds(id, given, true)?,
            name::STREAM_SCHEDULER => self.scheduler(id, which)?,
            name::STREAM_SCHEDULER_VALUE => self.stream_value(id, read(given, 8).ok_or(Errno::INVALID)?)?,
            name::PLPMTUD_PROBE_INTERVAL => {
                let mut p = read::<ProbeInterval>(given, size_of::<ProbeInterval>()).ok_or(Errno::INVALID)?;
                p.interval = o.probe_interval.into();
                p.as_bytes().to_vec()
            }
            name::GET_PEER_ADDRS => self.address_list(id, which, true)?,
            name::GET_LOCAL_ADDRS => self.address_list(id, which, false)?,
            name::PRIMARY_ADDR => self.primary_address(id, which)?.as_bytes().to_vec(),
            // A socket of one association has no list of them.
            name::GET_ASSOC_NUMBER | name::GET_ASSOC_ID_LIST if s.style == Style::OneToOne => {
                return Err(Errno::NOT_SUPPORTED);
            }
            name::GET_ASSOC_NUMBER => (s.associations.len() as u32).to_ne_bytes().to_vec(),
            name::GET_ASSOC_ID_LIST if given.len() < 4 + 4 * s.associations.len() => return Err(Errno::INVALID),
            name::GET_ASSOC_ID_LIST => {
                let mut out = (s.associations.len() as u32).to_ne_bytes().to_vec();
                s.associations.iter().for_each(|a| out.extend_from_slice(&a.0.to_ne_bytes()));
                out
            }
            _ => match self.get_extension(id, option, which, given) {
                Some(value) => return value,
                None => return self.get_number(id, option, which, given.len()),
            },
        })
    }

    fn primary_address(&self, id: SocketId, which: i32) -> Result<Primary, Errno> {
        let a = self.one(id, which)?;
        let e = self.engine(a).ok_or(Errno::INVALID)?;
        let primary = e.primary();
        let (_, stats) = e.paths().find(|(p, _)| *p == primary).ok_or(Errno::INVALID)?;
        Ok(Primary { id: a.0.into(), address: self.shown(id, a, stats.remote)? })
    }

    fn association_params(&self, id: SocketId, which: i32) -> Result<AssocParams, Errno> {
        let o = &self.get(id)?.options;
        let mut p = AssocParams::new_zeroed();
        p.id = which.into();
        p.max_retrans = o.association_retrans.into();
        p.cookie_life = (o.cookie_life.as_millis() as u32).into();
        p.local_rwnd = (o.receive_buffer as u32).into();
        if let Ok(a) = self.one(id, which)
            && let Some(e) = self.engine(a)
        {
            p.destinations = (e.paths().count() as u16).into();
            p.peer_rwnd = u32::try_from(e.peer_window()).unwrap_or(u32::MAX).into();
        }
        Ok(p)
    }

    fn status(&self, id: SocketId, which: i32) -> Result<Status, Errno> {
        let a = self.one(id, which)?;
        let e = self.engine(a).ok_or(Errno::INVALID)?;
        let mut s = Status::new_zeroed();
        s.id = a.0.into();
        s.state = state(e).into();
        s.rwnd = u32::try_from(e.peer_window()).unwrap_or(u32::MAX).into();
        let (outbound, inbound) = e.streams();
        (s.outbound, s.inbound) = (outbound.into(), inbound.into());
        s.unacked = u16::try_from(e.outstanding_chunks()).unwrap_or(u16::MAX).into();
        s.pending = u16::from(e.is_readable()).into();
        s.fragmentation = self.largest_fragment(id, a.0).unwrap_or(0).into();
        let primary = e.primary();
        if let Some((_, stats)) = e.paths().find(|(p, _)| *p == primary) {
            s.primary = self.path_info(id, a, stats)?;
        }
        Ok(s)
    }

    fn path_info(&self, id: SocketId, a: AssociationId, p: PathStats) -> Result<PeerAddressInfo, Errno> {
        let doubtful = matches!(p.state, PathState::PotentiallyFailed | PathState::Suspected);
        if doubtful && self.exposed(a) == pf_expose::DISABLE {
            return Err(Errno(libc::EACCES));
        }
        let mut i = PeerAddressInfo::new_zeroed();
        i.id = a.0.into();
        i.address = self.shown(id, a, p.remote)?;
        i.state = match p.state {
            PathState::Unconfirmed => 3,
            PathState::Active => 2,
            PathState::Inactive => 0,
            _ => 1,
        }
        .into();
        i.cwnd = u32::try_from(p.cwnd).unwrap_or(u32::MAX).into();
        i.srtt = (p.srtt.as_millis() as u32).into();
        i.rto = (p.rto.as_millis() as u32).into();
        let mtu = match p.discovery {
            Some(_) => p.packet_size + super::headers(&self.settings, p.remote.is_ipv6()),
            None => self.settings.mtu,
        };
        i.mtu = (mtu as u32).into();
        Ok(i)
    }

    /// A peer's address as programs see it: with the SCTP port, and mapped where they want it.
    pub(in crate::socket) fn shown(
        &self,
        id: SocketId,
        a: AssociationId,
        remote: SocketAddr,
    ) -> Result<[u8; STORAGE], Errno> {
        let s = self.get(id)?;
        let port = self.associations.get(&a).map_or(0, |a| a.remote.port());
        Ok(address::storage(SocketAddr::new(remote.ip(), port), s.v6 && s.options.mapped))
    }

    fn peer_address(&self, id: SocketId, which: i32, given: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut p = read::<PeerAddressParams>(given, 132).ok_or(Errno::INVALID)?;
        let o = &self.get(id)?.options;
        let mut flags = spp::PMTUD_ENABLE | spp::SACKDELAY_ENABLE;
        let (mut heartbeat, mut retrans) = (o.heartbeat, o.path_retrans);
        if let Some(to) = address::parse(&p.address).map(|(a, _)| a).filter(|a| !a.ip().is_unspecified()) {
            let (a, path) = self.transport(id, which, to).ok_or(Errno::INVALID)?;
            if let Some(e) = self.engine(a) {
                heartbeat = e.heartbeat_setting(path).unwrap_or(heartbeat);
                let own = e.path_limits(path).and_then(|l| l.max_retrans);
                retrans = own.unwrap_or(e.config().failure.max_path_retrans);
            }
        }
        match heartbeat {
            HeartbeatSetting::Off => flags |= spp::HB_DISABLE,
            HeartbeatSetting::Every(d) => {
                flags |= spp::HB_ENABLE;
                p.interval = (d.as_millis() as u32).into();
            }
            HeartbeatSetting::Configured => {
                flags |= spp::HB_ENABLE;
                p.interval = (self.settings.heartbeat_interval.as_millis() as u32).into();
            }
        }
        p.id = which.into();
        p.flags = flags.into();
        p.max_retrans = retrans.into();
        p.path_mtu = (self.settings.mtu as u32).into();
        p.sack_delay = (o.sack_delay.as_millis() as u32).into();
        let n = given.len().min(size_of::<PeerAddressParams>());
        Ok(p.as_bytes().get(..n).unwrap_or_default().to_vec())
    }

    /// Our addresses in an association of a socket that is bound to all of them.
    fn used_by(&self, id: SocketId, which: i32) -> Option<Vec<SocketAddr>> {
        let bound = self.get(id).ok()?.bound.as_ref()?;
        if !bound.addresses.iter().any(std::net::IpAddr::is_unspecified) {
            return None;
        }
        let a = self.one(id, which).ok()?;
        let mut list: Vec<SocketAddr> = Vec::new();
        for (_, p) in self.engine(a)?.paths() {
            let ours = SocketAddr::new(self.locals.address(anabranch_engine::LocalId(p.local))?, bound.port);
            if !list.contains(&ours) {
                list.push(ours);
            }
        }
        Some(list).filter(|l| !l.is_empty())
    }

    /// `struct sctp_getaddrs`: id, count, addresses one after the other.
    fn address_list(&self, id: SocketId, which: i32, peers: bool) -> Result<Vec<u8>, Errno> {
        let s = self.get(id)?;
        let mapped = s.v6 && s.options.mapped;
        let mut list: Vec<SocketAddr> = Vec::new();
        if peers {
            let a = self.one(id, which)?;
            let port = self.associations.get(&a).map_or(0, |a| a.remote.port());
            let e = self.engine(a).ok_or(Errno::INVALID)?;
            for (_, p) in e.paths() {
                let shown = SocketAddr::new(p.remote.ip(), port);
                if !list.contains(&shown) {
                    list.push(shown);
                }
            }
        } else if let Some(used) = self.used_by(id, which) {
            list = used;
        } else if let Some(b) = &s.bound {
            list.extend(b.addresses.iter().map(|ip| SocketAddr::new(*ip, b.port)));
        }
        let mut out = which.to_ne_bytes().to_vec();
        out.extend_from_slice(&(list.len() as u32).to_ne_bytes());
        for a in list {
            out.extend_from_slice(&address::bytes(a, mapped));
        }
        Ok(out)
    }
}

/// `enum sctp_sstat_state`.
fn state(e: &anabranch_engine::Association) -> i32 {
    match e.stage() {
        Stage::Closed => 1,
        Stage::CookieWait => 2,
        Stage::CookieEchoed => 3,
        Stage::Established => 4,
        Stage::ShutdownPending => 5,
        Stage::ShutdownSent => 6,
        Stage::ShutdownReceived => 7,
        Stage::ShutdownAckSent => 8,
    }
}
