//! `recvmmsg` and `sendmmsg`: several messages by one call.

use super::receive::receive_message;
use super::send::sendmsg;
use super::time::span;
use super::{answer_int, socket_of};
use crate::socket::Errno;
use crate::world::next::next;
use crate::world::{Cancellation, Quiet, is_ours, world};
use anabranch_base::Instant;
use std::ffi::{c_int, c_uint};

type RecvMmsg = unsafe extern "C-unwind" fn(c_int, *mut libc::mmsghdr, c_uint, c_int, *mut libc::timespec) -> c_int;
type SendMmsg = unsafe extern "C-unwind" fn(c_int, *mut libc::mmsghdr, c_uint, c_int) -> c_int;

/// Linux sends no more by one call (UIO_MAXIOV).
const MOST: c_uint = 1_024;

/// The time limit is looked at after each message, as in Linux: a message that never comes is waited for without one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    all: *mut libc::mmsghdr,
    n: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"recvmmsg" as RecvMmsg)(fd, all, n, flags, timeout) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's limit, as recvmmsg(2) has it.
    let limit = match unsafe { timeout.as_ref() } {
        Some(t) if t.tv_sec < 0 || !(0..1_000_000_000).contains(&t.tv_nsec) => {
            return answer_int::<c_int>(Err(Errno::INVALID));
        }
        // SAFETY: as above.
        Some(_) => Some(unsafe { span(timeout) }),
        None => None,
    };
    let begun = now();
    let mut flags = flags;
    let mut done = 0;
    while done < n {
        // A thread that ends takes nothing with it that was read.
        let cancellation = if done == 0 { Cancellation::EndsThread } else { Cancellation::EndsWait };
        // SAFETY: the program's list, as recvmmsg(2) has it.
        let got = unsafe {
            let one = &mut *all.add(done as usize);
            let got = receive_message(fd, &mut one.msg_hdr, flags & !libc::MSG_WAITFORONE, cancellation);
            if got >= 0 {
                one.msg_len = got as c_uint;
            }
            got
        };
        if got < 0 {
            if done == 0 {
                return -1;
            }
            keep_error(fd);
            break;
        }
        done += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if let Some(limit) = limit {
            let left = limit.saturating_sub(now().since(begun));
            // SAFETY: as above; what is left of it is written back.
            unsafe {
                (*timeout).tv_sec = (left.as_nanos() / 1_000_000_000) as libc::time_t;
                (*timeout).tv_nsec = (left.as_nanos() % 1_000_000_000) as _;
            }
            if left.is_zero() {
                break;
            }
        }
    }
    done as c_int
}

/// What ended the call after messages were read is the answer of the next one.
fn keep_error(fd: c_int) {
    let Some(e) = std::io::Error::last_os_error().raw_os_error().map(Errno) else { return };
    if matches!(e.0, libc::ECONNRESET | libc::ECONNABORTED | libc::ETIMEDOUT | libc::ECONNREFUSED) {
        let _ = world().act(|core, _| {
            let (id, _) = socket_of(core, fd)?;
            core.stack.keep_error(id, e)
        });
    }
}

fn now() -> Instant {
    world().act(|core, _| core.now())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmmsg(fd: c_int, all: *mut libc::mmsghdr, n: c_uint, flags: c_int) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"sendmmsg" as SendMmsg)(fd, all, n, flags) };
    }
    let mut done = 0;
    while done < n.min(MOST) {
        // SAFETY: the program's list, as sendmmsg(2) has it.
        let sent = unsafe {
            let one = &mut *all.add(done as usize);
            let sent = sendmsg(fd, &raw const one.msg_hdr, flags);
            if sent >= 0 {
                one.msg_len = sent as c_uint;
            }
            sent
        };
        if sent < 0 {
            return if done == 0 { -1 } else { done as c_int };
        }
        done += 1;
    }
    done as c_int
}
