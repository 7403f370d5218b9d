//! `poll`. In real time the kernel polls our descriptors like any other.

use crate::socket::{Errno, Readiness};
use crate::world::next::next;
use crate::world::{Core, Kind, is_ours, is_virtual, world};
use anabranch_base::Duration;
use std::ffi::c_int;

type Poll = unsafe extern "C-unwind" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn poll(fds: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int {
    let all: &mut [libc::pollfd] = if fds.is_null() {
        &mut []
    } else {
        // SAFETY: the program's list, as poll(2) has it.
        unsafe { std::slice::from_raw_parts_mut(fds, n as usize) }
    };
    super::ready::watch(all.iter().map(|p| p.fd));
    if !is_virtual() || !all.iter().any(|p| is_ours(p.fd)) {
        // SAFETY: as it came.
        return unsafe { next!(c"poll" as Poll)(fds, n, timeout) };
    }
    let limit = (timeout >= 0).then(|| Duration::from_millis(timeout as u64));
    let ready = world().wait(
        -1,
        |_| Ok(limit),
        |core, _| {
            let count = all.iter_mut().filter_map(|p| (look(core, p) != 0).then_some(())).count();
            if count == 0 { Err(Errno::AGAIN) } else { Ok(count) }
        },
    );
    match ready {
        Err(Errno::AGAIN) => 0,
        r => super::answer_int(r),
    }
}

fn look(core: &Core, p: &mut libc::pollfd) -> i16 {
    let r = match core.descriptors.get(p.fd).map(|d| d.kind) {
        Some(Kind::Socket(id)) => core.stack.readiness(id),
        _ => Readiness::default(),
    };
    let mut events = 0;
    for (on, flags) in [
        (r.readable, libc::POLLIN | libc::POLLRDNORM),
        (r.writable, libc::POLLOUT | libc::POLLWRNORM),
        (r.error, libc::POLLERR),
        (r.hung_up, libc::POLLHUP),
    ] {
        if on {
            events |= flags;
        }
    }
    p.revents = events & (p.events | libc::POLLERR | libc::POLLHUP);
    p.revents
}
