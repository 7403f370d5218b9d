//! `setsockopt`.

use super::super::{Errno, SocketId, Stack};
use super::{EVENT_KINDS, REMEMBERED, set_timer};
use crate::abi::address;
use crate::abi::message::{InitMsg, SndInfo, SndRcvInfo};
use crate::abi::notification;
use crate::abi::option::{
    AssocParams, AssocValue, DefaultPrInfo, EventOption, PeerAddressParams, Primary, ProbeInterval, RtoInfo, SackInfo,
    name, spp,
};
use crate::abi::{SOL_SCTP, read};
use crate::socket::AssociationId;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_engine::{HeartbeatSetting, PathLimits};
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// Shortest form of PEER_ADDR_PARAMS that a header ever had: without flow label and DSCP.
const OLD_PEER_ADDRESS_PARAMS: usize = 146;

impl Stack {
    /// Sets an option.
    ///
    /// # Errors
    /// Not known, too short, or a value that makes no sense.
    pub fn set_option(&mut self, now: Instant, id: SocketId, level: i32, option: i32, b: &[u8]) -> Result<(), Errno> {
        self.get(id)?;
        let done = match level {
            SOL_SCTP => self.set_sctp(now, id, option, b),
            libc::SOL_SOCKET => self.set_socket(id, option, b),
            // Addressing and marking of packets are not the program's to choose here; that it tries is no error.
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => Ok(()),
            _ => Err(Errno::NO_OPTION),
        };
        done?;
        // A listening socket passes on what it has when a peer comes.
        self.refresh_listener(id)?;
        self.settle(now);
        Ok(())
    }

    fn set_socket(&mut self, id: SocketId, option: i32, b: &[u8]) -> Result<(), Errno> {
        let o = &mut self.get_mut(id)?.options;
        match option {
            libc::SO_LINGER => {
                let on = int(b)?;
                let seconds = int(b.get(4..).unwrap_or(&[]))?;
                o.linger = (on != 0).then_some(seconds.max(0) as u32);
            }
            libc::SO_REUSEADDR | libc::SO_REUSEPORT => o.reuse = int(b)? != 0,
            libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => o.send_buffer = buffer(b)?,
            libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => o.receive_buffer = buffer(b)?,
            libc::SO_RCVTIMEO => o.receive_timeout = time(b)?,
            libc::SO_SNDTIMEO => o.send_timeout = time(b)?,
            _ if REMEMBERED.contains(&option) => drop(o.remembered.insert(option, int(b)?)),
            _ => {}
        }
        Ok(())
    }

    fn set_sctp(&mut self, now: Instant, id: SocketId, option: i32, b: &[u8]) -> Result<(), Errno> {
        match option {
            name::RTOINFO => self.set_rto(id, structure(b)?),
            name::ASSOCINFO => self.set_association_params(id, structure(b)?),
            name::INITMSG => self.set_init(id, structure(b)?),
            name::PEER_ADDR_PARAMS => {
                let p = read(b, OLD_PEER_ADDRESS_PARAMS).ok_or(Errno::INVALID)?;
                self.set_peer_address(now, id, p)
            }
            name::PRIMARY_ADDR => self.set_primary(id, structure(b)?),
            name::DELAYED_SACK => self.set_sack(id, b),
            name::EVENTS => self.set_events(id, b),
            name::EVENT => self.set_event(id, structure(b)?),
            name::DEFAULT_SEND_PARAM => self.set_default_send_param(id, structure(b)?),
            name::DEFAULT_SNDINFO => {
                self.get_mut(id)?.options.default_send = structure(b)?;
                Ok(())
            }
            name::DEFAULT_PRINFO => self.set_default_reliability(id, structure(b)?),
            name::PEER_ADDR_THLDS => self.set_thresholds(id, b, false),
            name::PEER_ADDR_THLDS_V2 => self.set_thresholds(id, b, true),
            name::EXPOSE_POTENTIALLY_FAILED_STATE => self.set_exposed(id, structure(b)?),
            name::STREAM_SCHEDULER => self.set_scheduler(id, structure(b)?),
            name::STREAM_SCHEDULER_VALUE => self.set_stream_value(id, structure(b)?),
            name::PLPMTUD_PROBE_INTERVAL => self.set_probe_interval(id, structure(b)?),
            name::BINDX_ADD => {
                let list = address::parse_list(b).ok_or(Errno::INVALID)?;
                self.bind_more(now, id, &list)
            }
            name::BINDX_REM => self.unbind(now, id, &address::parse_list(b).ok_or(Errno::INVALID)?),
            _ => match self.set_extension(now, id, option, b) {
                Some(done) => done,
                None => self.set_number(id, option, b),
            },
        }
    }

    fn set_rto(&mut self, id: SocketId, r: RtoInfo) -> Result<(), Errno> {
        let ms = |v: u32| (v != 0).then(|| Duration::from_millis(v.into()));
        let o = &self.get(id)?.options;
        let initial = ms(r.initial.get()).unwrap_or(o.rto_initial);
        let max = ms(r.max.get()).unwrap_or(o.rto_max);
        let min = ms(r.min.get()).unwrap_or(o.rto_min);
        if min > initial || initial > max {
            return Err(Errno::INVALID);
        }
        for a in self.concerned(id, r.id.get())? {
            if let Some(mut a) = self.engine_mut(a) {
                let mut profile = a.config().profile.clone();
                set_timer(&mut profile, initial, min, max);
                a.set_rto_limits(profile, initial, max).map_err(|_| Errno::INVALID)?;
            }
        }
        if r.id.get() <= 0 || self.get(id)?.style == super::super::Style::OneToOne {
            let o = &mut self.get_mut(id)?.options;
            (o.rto_initial, o.rto_min, o.rto_max) = (initial, min, max);
        }
        Ok(())
    }

    fn set_association_params(&mut self, id: SocketId, p: AssocParams) -> Result<(), Errno> {
        let o = &mut self.get_mut(id)?.options;
        if p.max_retrans.get() != 0 {
            o.association_retrans = p.max_retrans.get();
        }
        if p.cookie_life.get() != 0 {
            o.cookie_life = Duration::from_millis(p.cookie_life.get().into());
        }
        let retrans = o.association_retrans;
        for a in self.concerned(id, p.id.get())? {
            if let Some(mut a) = self.engine_mut(a) {
                a.set_max_retrans(Some(retrans), None);
            }
        }
        Ok(())
    }

    /// Fields that are 0 leave what was there (RFC 6458 §5.3.1).
    fn set_init(&mut self, id: SocketId, i: InitMsg) -> Result<(), Errno> {
        let o = &mut self.get_mut(id)?.options.init;
        for (to, from) in [
            (&mut o.outbound, i.outbound),
            (&mut o.inbound, i.inbound),
            (&mut o.attempts, i.attempts),
            (&mut o.timeout, i.timeout),
        ] {
            if from.get() != 0 {
                *to = from;
            }
        }
        Ok(())
    }

    fn set_peer_address(&mut self, now: Instant, id: SocketId, p: PeerAddressParams) -> Result<(), Errno> {
        let flags = p.flags.get();
        let both = |a: u32, b: u32| flags & a != 0 && flags & b != 0;
        if both(spp::HB_ENABLE, spp::HB_DISABLE)
            || both(spp::PMTUD_ENABLE, spp::PMTUD_DISABLE)
            || both(spp::SACKDELAY_ENABLE, spp::SACKDELAY_DISABLE)
        {
            return Err(Errno::INVALID);
        }
        let interval = Duration::from_millis(p.interval.get().into());
        let heartbeat = if flags & spp::HB_DISABLE != 0 {
            Some(HeartbeatSetting::Off)
        } else if flags & spp::HB_TIME_IS_ZERO != 0 {
            Some(HeartbeatSetting::Every(Duration::ZERO))
        } else if flags & spp::HB_ENABLE != 0 && p.interval.get() != 0 {
            Some(HeartbeatSetting::Every(interval))
        } else if flags & spp::HB_ENABLE != 0 {
            Some(HeartbeatSetting::Configured)
        } else {
            None
        };
        let to = address::parse(&p.address).map(|(a, _)| a).filter(|a| !a.ip().is_unspecified());
        let retrans = Some(p.max_retrans.get()).filter(|v| *v != 0);
        let mut found = to.is_none();
        for a in self.concerned(id, p.id.get())? {
            for path in self.paths_to(a, to) {
                found = true;
                let Some(mut a) = self.engine_mut(a) else { continue };
                if let Some(h) = heartbeat {
                    a.set_heartbeat(now, path, h);
                }
                if flags & spp::HB_DEMAND != 0 {
                    a.request_heartbeat(now, path);
                }
                if flags & spp::PMTUD_DISABLE != 0 && p.path_mtu.get() != 0 {
                    a.set_path_mtu(path, p.path_mtu.get() as usize);
                }
                match (retrans, to) {
                    (Some(_), Some(_)) => {
                        let own = a.path_limits(path).unwrap_or_default();
                        a.set_path_limits(path, PathLimits { max_retrans: retrans, ..own });
                    }
                    (Some(_), None) => a.set_max_retrans(None, retrans),
                    _ => {}
                }
            }
            if retrans.is_some() && to.is_none() {
                self.clear_limits(a, false, true);
            }
        }
        if !found {
            return Err(Errno::INVALID);
        }
        if to.is_none() {
            let configured = HeartbeatSetting::Every(self.settings.heartbeat_interval);
            let o = &mut self.get_mut(id)?.options;
            match heartbeat {
                Some(HeartbeatSetting::Configured) => o.heartbeat = configured,
                Some(h) => o.heartbeat = h,
                None => {}
            }
            o.path_retrans = retrans.unwrap_or(o.path_retrans);
            if flags & spp::SACKDELAY_ENABLE != 0 && p.sack_delay.get() != 0 {
                o.sack_delay = Duration::from_millis(p.sack_delay.get().min(500).into());
            }
        }
        Ok(())
    }

    fn set_primary(&mut self, id: SocketId, p: Primary) -> Result<(), Errno> {
        let (to, _) = address::parse(&p.address).ok_or(Errno::INVALID)?;
        let a = self.one(id, p.id.get())?;
        let path = *self.paths_to(a, Some(to)).first().ok_or(Errno::INVALID)?;
        self.engine_mut(a).map(|mut a| a.set_primary(path)).filter(|ok| *ok).map(|_| ()).ok_or(Errno::INVALID)
    }

    fn set_sack(&mut self, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        let o = &mut self.get_mut(id)?.options;
        let (delay, frequency) = match read::<SackInfo>(b, 12) {
            Some(s) => (s.delay.get(), s.frequency.get()),
            // The older form has the delay alone, and 0 means none.
            None => {
                let v = read::<AssocValue>(b, 8).ok_or(Errno::INVALID)?.value.get();
                if v == 0 { (0, 1) } else { (v, 0) }
            }
        };
        if delay > 500 {
            return Err(Errno::INVALID);
        }
        if delay != 0 {
            o.sack_delay = Duration::from_millis(delay.into());
        }
        if frequency != 0 {
            o.sack_frequency = frequency;
        }
        Ok(())
    }

    fn set_events(&mut self, id: SocketId, b: &[u8]) -> Result<(), Errno> {
        if b.is_empty() {
            return Err(Errno::INVALID);
        }
        let mut events = [false; EVENT_KINDS];
        for (to, from) in events.iter_mut().zip(b) {
            *to = *from != 0;
        }
        self.get_mut(id)?.options.events = events;
        self.dry_already(id);
        Ok(())
    }

    fn set_event(&mut self, id: SocketId, e: EventOption) -> Result<(), Errno> {
        let kind = e.kind.get();
        if !(notification::kind::DATA_IO_EVENT..notification::kind::END).contains(&kind) {
            return Err(Errno::INVALID);
        }
        if let Some(slot) = self.get_mut(id)?.options.events.get_mut(usize::from(kind & 0xff)) {
            *slot = e.on != 0;
        }
        if kind == notification::kind::SENDER_DRY_EVENT {
            self.dry_already(id);
        }
        Ok(())
    }

    fn set_default_send_param(&mut self, id: SocketId, i: SndRcvInfo) -> Result<(), Errno> {
        let o = &mut self.get_mut(id)?.options;
        let mut d = SndInfo::new_zeroed();
        (d.stream, d.flags, d.ppid, d.context, d.id) = (i.stream, i.flags, i.ppid, i.context, i.id);
        o.default_send = d;
        o.default_ttl = i.ttl.get();
        Ok(())
    }

    fn set_default_reliability(&mut self, id: SocketId, p: DefaultPrInfo) -> Result<(), Errno> {
        if p.policy.get() & !crate::abi::message::flag::PR_MASK != 0 {
            return Err(Errno::INVALID);
        }
        self.get_mut(id)?.options.default_reliability = (p.policy.get(), p.value.get());
        Ok(())
    }

    /// Associations that an id in an option means: 0 are all of a one-to-many socket's future ones, and of a one-to-one
    /// socket its only one whatever the id is (RFC 6458 §8).
    pub(super) fn concerned(&self, id: SocketId, association: i32) -> Result<Vec<AssociationId>, Errno> {
        let s = self.get(id)?;
        if s.style == super::super::Style::OneToOne {
            return Ok(s.peer.into_iter().collect());
        }
        match association {
            0 => Ok(Vec::new()),
            // SCTP_CURRENT_ASSOC and SCTP_ALL_ASSOC.
            1 | 2 if !s.associations.contains(&AssociationId(association)) => Ok(s.associations.clone()),
            n if s.associations.contains(&AssociationId(n)) => Ok(vec![AssociationId(n)]),
            _ => Err(Errno::INVALID),
        }
    }

    /// The one association that an id names.
    pub(in crate::socket) fn one(&self, id: SocketId, association: i32) -> Result<AssociationId, Errno> {
        let s = self.get(id)?;
        let named = AssociationId(association);
        match s.style {
            super::super::Style::OneToOne => s.peer.ok_or(Errno::INVALID),
            super::super::Style::OneToMany if s.associations.contains(&named) => Ok(named),
            super::super::Style::OneToMany => Err(Errno::INVALID),
        }
    }

    /// The association that has this address of a peer, and the path to it. The id may be 0 here, for the address says
    /// which.
    pub(super) fn transport(&self, id: SocketId, which: i32, to: SocketAddr) -> Option<(AssociationId, PathId)> {
        let s = self.get(id).ok()?;
        let named = self.one(id, which).ok();
        let fits = |a: &AssociationId| {
            let port = self.associations.get(a).map_or(0, |a| a.remote.port());
            named.is_none_or(|n| n == *a) && (to.port() == 0 || to.port() == port || named.is_some())
        };
        let mut all = s.associations.iter().copied().filter(fits);
        all.find_map(|a| self.paths_to(a, Some(to)).first().map(|p| (a, *p)))
    }

    /// Of associations that begin from now on, whatever the address: one that lives goes on as it began.
    fn set_probe_interval(&mut self, id: SocketId, p: ProbeInterval) -> Result<(), Errno> {
        let interval = p.interval.get();
        if interval != 0 && interval < super::numbers::SHORTEST_PROBE_INTERVAL {
            return Err(Errno::INVALID);
        }
        if let Some((to, _)) = address::parse(&p.address).filter(|(a, _)| !a.ip().is_unspecified()) {
            self.transport(id, p.id.get(), to).ok_or(Errno(libc::ENOENT))?;
        }
        self.get_mut(id)?.options.probe_interval = interval;
        Ok(())
    }

    /// Paths to an address of the peer, or all.
    pub(in crate::socket) fn paths_to(&self, a: AssociationId, to: Option<SocketAddr>) -> Vec<PathId> {
        let wanted = |remote: SocketAddr| to.is_none_or(|t| t.ip() == remote.ip());
        let Some(a) = self.engine(a) else { return Vec::new() };
        a.paths().filter(|(_, s)| wanted(s.remote)).map(|(id, _)| id).collect()
    }
}

fn structure<T>(b: &[u8]) -> Result<T, Errno>
where
    T: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::KnownLayout + zerocopy::Immutable,
{
    read(b, size_of::<T>()).ok_or(Errno::INVALID)
}

pub(super) fn int(b: &[u8]) -> Result<i32, Errno> {
    let four = b.get(..4).and_then(|b| b.try_into().ok()).ok_or(Errno::INVALID)?;
    Ok(i32::from_ne_bytes(four))
}

/// The kernel doubles what it is asked for; so does this, for programs that reckon with it.
fn buffer(b: &[u8]) -> Result<usize, Errno> {
    Ok((int(b)?.max(1_024) as usize).saturating_mul(2).min(1 << 30))
}

fn time(b: &[u8]) -> Result<Option<Duration>, Errno> {
    let half = |at: usize| {
        let eight = b.get(at..at + 8).and_then(|b| b.try_into().ok()).ok_or(Errno::INVALID)?;
        Ok(i64::from_ne_bytes(eight).max(0) as u64)
    };
    let d = Duration::from_micros(half(0)?.saturating_mul(1_000_000).saturating_add(half(8)?));
    Ok(Some(d).filter(|d| !d.is_zero()))
}
