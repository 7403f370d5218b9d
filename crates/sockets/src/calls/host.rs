//! A host for the tester of virtual time: a tunnel device, its interface, and the commands that set it up.

use super::{answer_int, put};
use crate::world::next::next;
use crate::world::{Kind, assignments, is_virtual, world};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::net::IpAddr;

use super::lifecycle::{Request, new_descriptor};

/// Name and index of the interface.
const INTERFACE: &CStr = c"tun0";
const INDEX: c_uint = 77;

/// `<linux/if_tun.h>`.
const TUNSETIFF: Request = 0x4004_54ca;
/// Length of an interface's name in a struct ifreq.
const NAME: usize = 16;

type Open = unsafe extern "C-unwind" fn(*const c_char, c_int, ...) -> c_int;
type System = unsafe extern "C-unwind" fn(*const c_char) -> c_int;
type Index = unsafe extern "C-unwind" fn(*const c_char) -> c_uint;
type Flags = unsafe extern "C-unwind" fn(c_int) -> c_int;
type Scheduler = unsafe extern "C-unwind" fn(libc::pid_t, c_int, *const c_void) -> c_int;

/// # Safety
/// `path` is null or ends in 0.
unsafe fn is_tunnel(path: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    is_virtual() && !path.is_null() && unsafe { CStr::from_ptr(path) } == c"/dev/net/tun"
}

// As with fcntl, the third argument of a variadic function comes where a third argument does.

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: as it came.
    if unsafe { is_tunnel(path) } {
        return answer_int(new_descriptor(Kind::Tunnel, 0, false));
    }
    // SAFETY: as it came.
    unsafe { next!(c"open" as Open)(path, flags, mode) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: as it came.
    if unsafe { is_tunnel(path) } {
        return answer_int(new_descriptor(Kind::Tunnel, 0, false));
    }
    // SAFETY: as it came.
    unsafe { next!(c"open64" as Open)(path, flags, mode) }
}

/// # Safety
/// `argument` is what the request says.
pub(super) unsafe fn tunnel_request(request: Request, argument: *mut c_void) {
    if request == TUNSETIFF {
        // SAFETY: a struct ifreq begins with the name.
        unsafe { put(argument, NAME, INTERFACE.to_bytes_with_nul()) };
    }
}

/// Is this a request about our interface? Then there is nothing more to do: it is up.
///
/// # Safety
/// `argument` is what the request says.
pub(super) unsafe fn interface_request(request: Request, argument: *mut c_void) -> bool {
    let about_one = matches!(request, libc::SIOCGIFFLAGS | libc::SIOCSIFFLAGS);
    // SAFETY: these requests have a struct ifreq, which begins with a name that ends in 0.
    about_one && unsafe { CStr::from_ptr(argument.cast()) } == INTERFACE
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn if_nametoindex(name: *const c_char) -> c_uint {
    // SAFETY: the program's string.
    if is_virtual() && unsafe { CStr::from_ptr(name) } == INTERFACE {
        return INDEX;
    }
    // SAFETY: as it came.
    unsafe { next!(c"if_nametoindex" as Index)(name) }
}

/// The sender's `struct sockaddr_ll` of a packet that left by our interface.
///
/// # Safety
/// `msg_name` of `m` is null or points to `msg_namelen` bytes.
pub(super) unsafe fn put_link_address(m: &mut libc::msghdr, packet: &[u8]) {
    const IPV4: u16 = 0x0800;
    const IPV6: u16 = 0x86dd;
    const OUTGOING: u8 = 4;
    let protocol = if packet.first().is_some_and(|b| b >> 4 == 6) { IPV6 } else { IPV4 };
    let mut a = Vec::with_capacity(20);
    a.extend_from_slice(&(libc::AF_PACKET as u16).to_ne_bytes());
    a.extend_from_slice(&protocol.to_be_bytes());
    a.extend_from_slice(&(INDEX as c_int).to_ne_bytes());
    // Hardware type none, outgoing, an address without length.
    a.extend_from_slice(&0xfffe_u16.to_ne_bytes());
    a.extend_from_slice(&[OUTGOING, 0]);
    a.resize(20, 0);
    // SAFETY: the caller's promise.
    unsafe { put(m.msg_name, m.msg_namelen as usize, &a) };
    m.msg_namelen = a.len() as libc::socklen_t;
}

/// Commands of the tester: `sysctl` sets our settings, `ip addr add` names an address of the host; nothing is run.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"system" as System)(command) };
    }
    if command.is_null() {
        return 1;
    }
    // SAFETY: the program's string.
    let text = unsafe { CStr::from_ptr(command) }.to_string_lossy();
    for one in text.split(';') {
        carry_out(one);
    }
    0
}

fn carry_out(command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["sysctl", rest @ ..] => world().act(|core, _| {
            for (name, value) in rest.iter().flat_map(|w| assignments(w)) {
                // Of other subsystems' names nothing is known here.
                let _ = core.stack.settings_mut().set(name, value);
            }
        }),
        ["ip", "addr", "add", address, ..] => {
            let ip: Option<IpAddr> = address.split('/').next().and_then(|a| a.parse().ok());
            if let Some(ip) = ip {
                world().act(|core, _| core.stack.add_host_address(ip));
            }
        }
        _ => {}
    }
}

/// Not needed where time is virtual, and a right that not every user has.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn mlockall(flags: c_int) -> c_int {
    if is_virtual() {
        return 0;
    }
    // SAFETY: as it came.
    unsafe { next!(c"mlockall" as Flags)(flags) }
}

/// As [`mlockall`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sched_setscheduler(pid: libc::pid_t, policy: c_int, p: *const c_void) -> c_int {
    if is_virtual() {
        return 0;
    }
    // SAFETY: as it came.
    unsafe { next!(c"sched_setscheduler" as Scheduler)(pid, policy, p) }
}
