//! Ancillary data of `sendmsg` and `recvmsg` (RFC 6458 §5.3), and the flags of messages.

use zerocopy::native_endian::{I32, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Types of ancillary data (`enum sctp_cmsg_type`).
pub mod kind {
    /// `sctp_initmsg`.
    pub const INIT: i32 = 0;
    /// `sctp_sndrcvinfo`.
    pub const SNDRCV: i32 = 1;
    /// `sctp_sndinfo`.
    pub const SNDINFO: i32 = 2;
    /// `sctp_rcvinfo`.
    pub const RCVINFO: i32 = 3;
    /// `sctp_prinfo`.
    pub const PRINFO: i32 = 5;
    /// `sctp_nxtinfo`.
    pub const NXTINFO: i32 = 4;
}

/// Flags in `sinfo_flags`, `snd_flags` and `rcv_flags`.
pub mod flag {
    /// SCTP_UNORDERED.
    pub const UNORDERED: u16 = 1;
    /// SCTP_ABORT.
    pub const ABORT: u16 = 4;
    /// SCTP_SACK_IMMEDIATELY.
    pub const SACK_IMMEDIATELY: u16 = 8;
    /// SCTP_EOF.
    pub const EOF: u16 = 0x200;
    /// The two bits of the PR-SCTP policy.
    pub const PR_MASK: u16 = 0x30;
    /// SCTP_PR_SCTP_TTL.
    pub const PR_TTL: u16 = 0x10;
    /// SCTP_PR_SCTP_RTX.
    pub const PR_RTX: u16 = 0x20;
    /// SCTP_PR_SCTP_PRIO.
    pub const PR_PRIO: u16 = 0x30;
}

/// MSG_NOTIFICATION in `msg_flags`.
pub const MSG_NOTIFICATION: i32 = 0x8000;

/// `struct sctp_initmsg`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct InitMsg {
    /// sinit_num_ostreams.
    pub outbound: U16,
    /// sinit_max_instreams.
    pub inbound: U16,
    /// sinit_max_attempts.
    pub attempts: U16,
    /// sinit_max_init_timeo, ms.
    pub timeout: U16,
}

/// `struct sctp_sndrcvinfo`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SndRcvInfo {
    /// sinfo_stream.
    pub stream: U16,
    /// sinfo_ssn.
    pub ssn: U16,
    /// sinfo_flags.
    pub flags: U16,
    /// Padding bytes.
    pub pad: U16,
    /// sinfo_ppid, in network order as the program gave it.
    pub ppid: U32,
    /// sinfo_context.
    pub context: U32,
    /// sinfo_timetolive, ms.
    pub ttl: U32,
    /// sinfo_tsn.
    pub tsn: U32,
    /// sinfo_cumtsn.
    pub cum_tsn: U32,
    /// sinfo_assoc_id.
    pub id: I32,
}

/// `struct sctp_sndinfo`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SndInfo {
    /// snd_sid.
    pub stream: U16,
    /// snd_flags.
    pub flags: U16,
    /// snd_ppid, in network order.
    pub ppid: U32,
    /// snd_context.
    pub context: U32,
    /// snd_assoc_id.
    pub id: I32,
}

/// `struct sctp_rcvinfo`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RcvInfo {
    /// rcv_sid.
    pub stream: U16,
    /// rcv_ssn.
    pub ssn: U16,
    /// rcv_flags.
    pub flags: U16,
    /// Padding bytes.
    pub pad: U16,
    /// rcv_ppid, in network order.
    pub ppid: U32,
    /// rcv_tsn.
    pub tsn: U32,
    /// rcv_cumtsn.
    pub cum_tsn: U32,
    /// rcv_context.
    pub context: U32,
    /// rcv_assoc_id.
    pub id: I32,
}

/// `struct sctp_nxtinfo`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct NxtInfo {
    /// nxt_sid.
    pub stream: U16,
    /// nxt_flags.
    pub flags: U16,
    /// nxt_ppid, in network order.
    pub ppid: U32,
    /// nxt_length.
    pub length: U32,
    /// nxt_assoc_id.
    pub id: I32,
}

/// `struct sctp_prinfo`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PrInfo {
    /// pr_policy.
    pub policy: U16,
    /// Padding bytes.
    pub pad: U16,
    /// pr_value.
    pub value: U32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_header() {
        assert_eq!(size_of::<InitMsg>(), 8);
        assert_eq!(size_of::<SndRcvInfo>(), 32);
        assert_eq!(size_of::<SndInfo>(), 16);
        assert_eq!(size_of::<RcvInfo>(), 28);
        assert_eq!(size_of::<PrInfo>(), 8);
        assert_eq!(size_of::<NxtInfo>(), 16);
    }
}
