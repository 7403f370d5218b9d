//! `read` to `recvmsg`.

use super::{answer, cmsg, patience, put, put_address, socket_of};
use crate::abi::SOL_SCTP;
use crate::abi::address;
use crate::abi::message::{MSG_NOTIFICATION, NxtInfo, RcvInfo, SndRcvInfo, flag, kind};
use crate::socket::{Errno, NextInfo, Received};
use crate::world::Cancellation::{self, EndsThread};
use crate::world::next::next;
use crate::world::{Kind, Quiet, is_ours, is_virtual, world};
use std::ffi::{c_int, c_void};
use zerocopy::{FromZeros, IntoBytes};

type Read = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize) -> isize;
type Readv = unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int) -> isize;
type Recv = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize, c_int) -> isize;
type RecvFrom =
    unsafe extern "C-unwind" fn(c_int, *mut c_void, usize, c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> isize;
type RecvMsg = unsafe extern "C-unwind" fn(c_int, *mut libc::msghdr, c_int) -> isize;

/// A message with its ancillary data.
struct Delivery {
    received: Received,
    address: Vec<u8>,
    control: Vec<u8>,
}

fn receive(fd: c_int, room: usize, flags: c_int, cancellation: Cancellation) -> Result<Delivery, Errno> {
    let peek = flags & libc::MSG_PEEK != 0;
    world().wait_as(cancellation, fd, patience(fd, flags, true), |core, now| {
        let (id, _) = socket_of(core, fd)?;
        let received = core.stack.receive(now, id, room, peek)?;
        let v6 = core.stack.is_v6(id)?;
        let address = received.from.map(|a| address::bytes(a, v6)).unwrap_or_default();
        let (old, new) = core.stack.wanted_info(id)?;
        let mut control = control(&received, old, new);
        if let Some(next) = core.stack.next_info(id)?.filter(|_| !received.notification) {
            push_next(&mut control, &next);
        }
        Ok(Delivery { control, received, address })
    })
}

/// `sctp_sndrcvinfo` where the program asked for it by events, and `sctp_rcvinfo` where it did by its own option.
fn control(r: &Received, old: bool, new: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let (Some(i), Some(a)) = (r.info, r.association) else { return out };
    let flags = if i.unordered { flag::UNORDERED } else { 0 };
    if old {
        let mut s = SndRcvInfo::new_zeroed();
        (s.stream, s.ssn, s.flags) = (i.stream.into(), i.ssn.into(), flags.into());
        (s.ppid, s.context) = (i.ppid.to_be().into(), i.context.into());
        (s.tsn, s.cum_tsn, s.id) = (i.tsn.into(), i.cum_tsn.into(), a.0.into());
        cmsg::push(&mut out, SOL_SCTP, kind::SNDRCV, s.as_bytes());
    }
    if new {
        let mut s = RcvInfo::new_zeroed();
        (s.stream, s.ssn, s.flags) = (i.stream.into(), i.ssn.into(), flags.into());
        (s.ppid, s.context) = (i.ppid.to_be().into(), i.context.into());
        (s.tsn, s.cum_tsn, s.id) = (i.tsn.into(), i.cum_tsn.into(), a.0.into());
        cmsg::push(&mut out, SOL_SCTP, kind::RCVINFO, s.as_bytes());
    }
    out
}

fn push_next(out: &mut Vec<u8>, next: &NextInfo) {
    let mut s = NxtInfo::new_zeroed();
    s.flags = match next.info {
        None => MSG_NOTIFICATION as u16,
        Some(i) if i.unordered => flag::UNORDERED,
        Some(_) => 0,
    }
    .into();
    if let Some(i) = next.info {
        (s.stream, s.ppid) = (i.stream.into(), i.ppid.to_be().into());
    }
    s.length = u32::try_from(next.length).unwrap_or(u32::MAX).into();
    s.id = next.association.0.into();
    cmsg::push(out, SOL_SCTP, kind::NXTINFO, s.as_bytes());
}

/// What a read from the tunnel or the packet socket of virtual time gets; none for sockets.
fn from_the_wire(fd: c_int) -> Option<Result<Vec<u8>, Errno>> {
    if !is_virtual() {
        return None;
    }
    let kind = world().lock().descriptors.get(fd).map(|d| d.kind);
    match kind? {
        Kind::Socket(_) => None,
        // The tester only empties the device.
        Kind::Tunnel => Some(Ok(vec![0])),
        Kind::Packets => match world().wait(fd, |_| Ok(None), |core, _| core.time.read_packet()) {
            Err(Errno(libc::EDEADLK)) => {
                // A tester takes no error for an answer here.
                eprintln!("anabranch: no packet will ever leave any more: no thread runs and no timer is set");
                std::process::exit(1);
            }
            r => Some(r),
        },
    }
}

/// # Safety
/// `b` points to `n` writable bytes.
unsafe fn simple(fd: c_int, b: *mut c_void, n: usize, flags: c_int) -> (isize, Option<Delivery>) {
    if let Some(r) = from_the_wire(fd) {
        let len = r.map(|packet| {
            // SAFETY: the caller's promise.
            unsafe { put(b, n, &packet) };
            packet.len().min(n)
        });
        return (answer(len), None);
    }
    match receive(fd, n, flags, EndsThread) {
        Ok(d) => {
            // SAFETY: the caller's promise.
            unsafe { put(b, n, &d.received.bytes) };
            (d.received.bytes.len() as isize, Some(d))
        }
        Err(e) => (answer::<isize>(Err(e)), None),
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(fd: c_int, b: *mut c_void, n: usize) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"read" as Read)(fd, b, n) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's buffer, as read(2) has it.
    unsafe { simple(fd, b, n, 0).0 }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recv(fd: c_int, b: *mut c_void, n: usize, flags: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"recv" as Recv)(fd, b, n, flags) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's buffer, as recv(2) has it.
    unsafe { simple(fd, b, n, flags).0 }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    b: *mut c_void,
    n: usize,
    flags: c_int,
    from: *mut libc::sockaddr,
    len: *mut libc::socklen_t,
) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"recvfrom" as RecvFrom)(fd, b, n, flags, from, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's buffers, as recvfrom(2) has them.
    unsafe {
        let (n, d) = simple(fd, b, n, flags);
        if let Some(d) = d {
            put_address(from, len, &d.address);
        }
        n
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readv(fd: c_int, v: *const libc::iovec, n: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"readv" as Readv)(fd, v, n) };
    }
    let _quiet = Quiet::new();
    // SAFETY: all zero is a message header without anything.
    let mut m: libc::msghdr = unsafe { std::mem::zeroed() };
    m.msg_iov = v.cast_mut();
    m.msg_iovlen = usize::try_from(n).unwrap_or(0) as _;
    // SAFETY: the program's pieces, as readv(2) has them; the header is ours.
    unsafe { receive_message(fd, &mut m, 0, EndsThread) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, m: *mut libc::msghdr, flags: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"recvmsg" as RecvMsg)(fd, m, flags) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's message header, as recvmsg(2) has it.
    unsafe { receive_message(fd, &mut *m, flags, EndsThread) }
}

/// Spreads bytes over the program's pieces.
///
/// # Safety
/// `v` points to `n` pieces that are as long as they say.
unsafe fn scatter(v: *const libc::iovec, n: usize, mut from: &[u8]) -> usize {
    let mut done = 0;
    for i in 0..n {
        // SAFETY: the caller's promise.
        let len = unsafe {
            let piece = &*v.add(i);
            put(piece.iov_base, piece.iov_len, from);
            piece.iov_len.min(from.len())
        };
        from = &from[len..];
        done += len;
    }
    done
}

/// # Safety
/// As recvmsg(2).
pub(super) unsafe fn receive_message(
    fd: c_int,
    m: &mut libc::msghdr,
    flags: c_int,
    cancellation: Cancellation,
) -> isize {
    let pieces = m.msg_iovlen as usize;
    if let Some(r) = from_the_wire(fd) {
        return answer(r.map(|packet| {
            // SAFETY: the caller's promise.
            unsafe {
                super::host::put_link_address(m, &packet);
                scatter(m.msg_iov, pieces, &packet)
            }
        }));
    }
    // SAFETY: the caller's promise.
    let room = (0..pieces).map(|i| unsafe { (*m.msg_iov.add(i)).iov_len }).sum();
    let d = match receive(fd, room, flags, cancellation) {
        Ok(d) => d,
        Err(e) => return answer::<isize>(Err(e)),
    };
    // SAFETY: the caller's promise.
    let n = unsafe {
        if !m.msg_name.is_null() {
            put(m.msg_name, m.msg_namelen as usize, &d.address);
        }
        m.msg_namelen = d.address.len() as libc::socklen_t;
        let control_room = if m.msg_control.is_null() { 0 } else { m.msg_controllen as usize };
        m.msg_flags = 0;
        let (fits, all) = cmsg::whole_pieces(&d.control, control_room);
        put(m.msg_control, fits, &d.control);
        m.msg_controllen = fits as _;
        if !all {
            m.msg_flags |= libc::MSG_CTRUNC;
        }
        scatter(m.msg_iov, pieces, &d.received.bytes)
    };
    if d.received.ends {
        m.msg_flags |= libc::MSG_EOR;
    }
    if d.received.notification {
        m.msg_flags |= MSG_NOTIFICATION;
    }
    n as isize
}
