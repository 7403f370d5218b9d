//! Error numbers of the C library, as the calls answer them.

/// An error number, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {0}")]
pub struct Errno(pub i32);

#[allow(missing_docs, reason = "the names are the C library's without their E")]
impl Errno {
    pub const AGAIN: Errno = Errno(libc::EAGAIN);
    pub const INVALID: Errno = Errno(libc::EINVAL);
    pub const ADDRESS_IN_USE: Errno = Errno(libc::EADDRINUSE);
    pub const ADDRESS_NOT_AVAILABLE: Errno = Errno(libc::EADDRNOTAVAIL);
    pub const ALREADY: Errno = Errno(libc::EALREADY);
    pub const IN_PROGRESS: Errno = Errno(libc::EINPROGRESS);
    pub const IS_CONNECTED: Errno = Errno(libc::EISCONN);
    pub const NOT_CONNECTED: Errno = Errno(libc::ENOTCONN);
    pub const NOT_SUPPORTED: Errno = Errno(libc::EOPNOTSUPP);
    pub const NO_OPTION: Errno = Errno(libc::ENOPROTOOPT);
    pub const PIPE: Errno = Errno(libc::EPIPE);
    pub const CONNECTION_RESET: Errno = Errno(libc::ECONNRESET);
    pub const CONNECTION_REFUSED: Errno = Errno(libc::ECONNREFUSED);
    pub const CONNECTION_ABORTED: Errno = Errno(libc::ECONNABORTED);
    pub const TIMED_OUT: Errno = Errno(libc::ETIMEDOUT);
    pub const MESSAGE_SIZE: Errno = Errno(libc::EMSGSIZE);
    pub const BAD_DESCRIPTOR: Errno = Errno(libc::EBADF);
    pub const FAULT: Errno = Errno(libc::EFAULT);
    pub const FAMILY: Errno = Errno(libc::EAFNOSUPPORT);
    pub const DESTINATION_REQUIRED: Errno = Errno(libc::EDESTADDRREQ);
}
