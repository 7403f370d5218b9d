//! `write` to `sendmsg`.

use super::{answer, bytes, cmsg, patience, socket_of};
use crate::socket::{Errno, SendRequest};
use crate::world::next::next;
use crate::world::{Kind, Quiet, is_ours, is_virtual, world};
use bytes::Bytes;
use std::ffi::{c_int, c_void};
use std::net::SocketAddr;

type Write = unsafe extern "C-unwind" fn(c_int, *const c_void, usize) -> isize;
type Writev = unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int) -> isize;
type Send = unsafe extern "C-unwind" fn(c_int, *const c_void, usize, c_int) -> isize;
type SendTo =
    unsafe extern "C-unwind" fn(c_int, *const c_void, usize, c_int, *const libc::sockaddr, libc::socklen_t) -> isize;
type SendMsg = unsafe extern "C-unwind" fn(c_int, *const libc::msghdr, c_int) -> isize;

/// One message out of the program's pieces.
///
/// # Safety
/// `v` points to `n` pieces that are as long as they say.
unsafe fn gather(v: *const libc::iovec, n: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for i in 0..n {
        // SAFETY: the caller's promise.
        all.extend_from_slice(unsafe { bytes((*v.add(i)).iov_base, (*v.add(i)).iov_len) });
    }
    all
}

/// The address that a message is for, if the program names one.
///
/// # Safety
/// `name` is null or points to `len` bytes.
unsafe fn destination(name: *const c_void, len: libc::socklen_t) -> Result<Option<SocketAddr>, Errno> {
    if name.is_null() || len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise. No address is longer than its storage.
    let name = cmsg::name(unsafe { bytes(name, (len as usize).min(size_of::<libc::sockaddr_storage>())) });
    name.map(Some).ok_or(Errno::INVALID)
}

fn send_message(fd: c_int, flags: c_int, payload: Vec<u8>, mut r: SendRequest) -> isize {
    let kind = if is_virtual() { world().lock().descriptors.get(fd).map(|d| d.kind) } else { None };
    match kind {
        Some(Kind::Tunnel) => {
            let n = payload.len();
            world().act(|core, now| core.inject(now, &payload));
            return answer(Ok(n));
        }
        Some(Kind::Packets) => return answer::<usize>(Err(Errno::NOT_SUPPORTED)),
        _ => {}
    }
    r.payload = Bytes::from(payload);
    let limit = patience(fd, flags, false);
    let sent = world().wait(fd, limit, |core, now| {
        let (id, _) = socket_of(core, fd)?;
        let n = core.stack.send(now, id, &r)?;
        Ok((n, core.stack.take_begun()))
    });
    let sent = sent.map(|(n, begun)| {
        if let Some(a) = begun {
            // Whatever comes of it, the message was taken.
            let _ =
                world().wait(fd, limit, |core, _| if core.stack.is_beginning(a) { Err(Errno::AGAIN) } else { Ok(()) });
        }
        n
    });
    if sent == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: raises the signal that a write to a closed connection raises.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    answer(sent)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, b: *const c_void, n: usize) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"write" as Write)(fd, b, n) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's bytes, as write(2) has them.
    send_message(fd, 0, unsafe { bytes(b, n) }.to_vec(), SendRequest::default())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(fd: c_int, v: *const libc::iovec, n: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"writev" as Writev)(fd, v, n) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's pieces, as writev(2) has them.
    send_message(fd, 0, unsafe { gather(v, usize::try_from(n).unwrap_or(0)) }, SendRequest::default())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn send(fd: c_int, b: *const c_void, n: usize, flags: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"send" as Send)(fd, b, n, flags) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's bytes, as send(2) has them.
    send_message(fd, flags, unsafe { bytes(b, n) }.to_vec(), SendRequest::default())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    b: *const c_void,
    n: usize,
    flags: c_int,
    to: *const libc::sockaddr,
    len: libc::socklen_t,
) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"sendto" as SendTo)(fd, b, n, flags, to, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's address and bytes, as sendto(2) has them.
    let (to, payload) = unsafe { (destination(to.cast(), len), bytes(b, n).to_vec()) };
    match to {
        Ok(to) => send_message(fd, flags, payload, SendRequest { to, ..SendRequest::default() }),
        Err(e) => answer::<usize>(Err(e)),
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, m: *const libc::msghdr, flags: c_int) -> isize {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"sendmsg" as SendMsg)(fd, m, flags) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's message, as sendmsg(2) has it.
    let (payload, control, to) = unsafe {
        let m = &*m;
        let control = bytes(m.msg_control, m.msg_controllen as usize);
        let to = destination(m.msg_name, m.msg_namelen);
        (gather(m.msg_iov, m.msg_iovlen as usize), control, to)
    };
    match to.and_then(|to| Ok((to, cmsg::request(control).ok_or(Errno::INVALID)?.0))) {
        Ok((to, request)) => send_message(fd, flags, payload, SendRequest { to, ..request }),
        Err(e) => answer::<usize>(Err(e)),
    }
}
