//! Socket options of level SOL_SCTP: numbers and structures.

use super::address::STORAGE;
use zerocopy::native_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Numbers of the options.
#[allow(missing_docs, reason = "the names are the header's without their prefix")]
pub mod name {
    pub const RTOINFO: i32 = 0;
    pub const ASSOCINFO: i32 = 1;
    pub const INITMSG: i32 = 2;
    pub const NODELAY: i32 = 3;
    pub const AUTOCLOSE: i32 = 4;
    pub const SET_PEER_PRIMARY_ADDR: i32 = 5;
    pub const PRIMARY_ADDR: i32 = 6;
    pub const ADAPTATION_LAYER: i32 = 7;
    pub const DISABLE_FRAGMENTS: i32 = 8;
    pub const PEER_ADDR_PARAMS: i32 = 9;
    pub const DEFAULT_SEND_PARAM: i32 = 10;
    pub const EVENTS: i32 = 11;
    pub const I_WANT_MAPPED_V4_ADDR: i32 = 12;
    pub const MAXSEG: i32 = 13;
    pub const STATUS: i32 = 14;
    pub const GET_PEER_ADDR_INFO: i32 = 15;
    pub const DELAYED_SACK: i32 = 16;
    pub const CONTEXT: i32 = 17;
    pub const FRAGMENT_INTERLEAVE: i32 = 18;
    pub const PARTIAL_DELIVERY_POINT: i32 = 19;
    pub const MAX_BURST: i32 = 20;
    pub const AUTH_CHUNK: i32 = 21;
    pub const HMAC_IDENT: i32 = 22;
    pub const AUTH_KEY: i32 = 23;
    pub const AUTH_ACTIVE_KEY: i32 = 24;
    pub const AUTH_DELETE_KEY: i32 = 25;
    pub const PEER_AUTH_CHUNKS: i32 = 26;
    pub const LOCAL_AUTH_CHUNKS: i32 = 27;
    pub const GET_ASSOC_NUMBER: i32 = 28;
    pub const GET_ASSOC_ID_LIST: i32 = 29;
    pub const AUTO_ASCONF: i32 = 30;
    pub const PEER_ADDR_THLDS: i32 = 31;
    pub const RECVRCVINFO: i32 = 32;
    pub const RECVNXTINFO: i32 = 33;
    pub const DEFAULT_SNDINFO: i32 = 34;
    pub const AUTH_DEACTIVATE_KEY: i32 = 35;
    pub const REUSE_PORT: i32 = 36;
    pub const PEER_ADDR_THLDS_V2: i32 = 37;
    pub const BINDX_ADD: i32 = 100;
    pub const BINDX_REM: i32 = 101;
    pub const PEELOFF: i32 = 102;
    pub const CONNECTX_OLD: i32 = 107;
    pub const GET_PEER_ADDRS: i32 = 108;
    pub const GET_LOCAL_ADDRS: i32 = 109;
    pub const CONNECTX: i32 = 110;
    pub const CONNECTX3: i32 = 111;
    pub const GET_ASSOC_STATS: i32 = 112;
    pub const PR_SUPPORTED: i32 = 113;
    pub const DEFAULT_PRINFO: i32 = 114;
    pub const PR_ASSOC_STATUS: i32 = 115;
    pub const PR_STREAM_STATUS: i32 = 116;
    pub const RECONFIG_SUPPORTED: i32 = 117;
    pub const ENABLE_STREAM_RESET: i32 = 118;
    pub const RESET_STREAMS: i32 = 119;
    pub const RESET_ASSOC: i32 = 120;
    pub const ADD_STREAMS: i32 = 121;
    pub const PEELOFF_FLAGS: i32 = 122;
    pub const STREAM_SCHEDULER: i32 = 123;
    pub const STREAM_SCHEDULER_VALUE: i32 = 124;
    pub const INTERLEAVING_SUPPORTED: i32 = 125;
    pub const EVENT: i32 = 127;
    pub const ASCONF_SUPPORTED: i32 = 128;
    pub const AUTH_SUPPORTED: i32 = 129;
    pub const ECN_SUPPORTED: i32 = 130;
    pub const EXPOSE_POTENTIALLY_FAILED_STATE: i32 = 131;
    pub const REMOTE_UDP_ENCAPS_PORT: i32 = 132;
    pub const PLPMTUD_PROBE_INTERVAL: i32 = 133;
    /// Not one of Linux: RFC 9653 §6 has the option, and this library gives it a number beyond the kernel's.
    pub const ACCEPT_ZERO_CHECKSUM: i32 = 0x10033;
}

macro_rules! layout {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the names are the header's without their prefix")]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    };
}

layout! {
    /// `struct sctp_rtoinfo`; times in ms.
    RtoInfo { id: I32, initial: U32, max: U32, min: U32, }
}
layout! {
    /// `struct sctp_assocparams`; cookie life in ms.
    AssocParams { id: I32, max_retrans: U16, destinations: U16, peer_rwnd: U32, local_rwnd: U32, cookie_life: U32, }
}
layout! {
    /// `struct sctp_prim` and `sctp_setpeerprim`.
    Primary { id: I32, address: [u8; STORAGE], }
}
layout! {
    /// `struct sctp_paddrparams`; interval and delay in ms.
    PeerAddressParams {
        id: I32, address: [u8; STORAGE], interval: U32, max_retrans: U16, path_mtu: U32, sack_delay: U32, flags: U32,
        flow_label: U32, dscp: u8, pad: u8,
    }
}
layout! {
    /// `struct sctp_sack_info`; delay in ms.
    SackInfo { id: I32, delay: U32, frequency: U32, }
}
layout! {
    /// `struct sctp_assoc_value`.
    AssocValue { id: I32, value: U32, }
}
layout! {
    /// `struct sctp_paddrinfo`; times in ms.
    PeerAddressInfo { id: I32, address: [u8; STORAGE], state: I32, cwnd: U32, srtt: U32, rto: U32, mtu: U32, }
}
layout! {
    /// `struct sctp_status`.
    Status {
        id: I32, state: I32, rwnd: U32, unacked: U16, pending: U16, inbound: U16, outbound: U16, fragmentation: U32,
        primary: PeerAddressInfo,
    }
}
layout! {
    /// `struct sctp_event`.
    EventOption { id: I32, kind: U16, on: u8, pad: u8, }
}
layout! {
    /// `struct sctp_default_prinfo`.
    DefaultPrInfo { id: I32, value: U32, policy: U16, pad: U16, }
}
layout! {
    /// `struct sctp_prstatus`.
    PrStatus { id: I32, stream: U16, policy: U16, unsent: U64, sent: U64, }
}
layout! {
    /// `sctp_peeloff_flags_arg_t`; the older form has no flags.
    PeelOff { id: I32, descriptor: I32, flags: U32, }
}

layout! {
    /// `struct sctp_authkeyid`.
    AuthKeyId { id: I32, number: U16, pad: U16, }
}
layout! {
    /// `struct sctp_add_streams`.
    AddStreams { id: I32, inbound: U16, outbound: U16, }
}
layout! {
    /// `struct sctp_udpencaps`; the port is in network order.
    UdpEncapsulation { id: I32, gap: U32, address: [u8; STORAGE], port: U16, pad: [u8; 6], }
}
layout! {
    /// `struct sctp_paddrthlds`, and with `switchover` `sctp_paddrthlds_v2`, which is as long.
    Thresholds {
        id: I32, gap: U32, address: [u8; STORAGE], max_retrans: U16, potentially_failed: U16, switchover: U16, pad: U16,
    }
}
layout! {
    /// `struct sctp_probeinterval`; in ms.
    ProbeInterval { id: I32, gap: U32, address: [u8; STORAGE], interval: U32, pad: U32, }
}
layout! {
    /// `struct sctp_stream_value`.
    StreamValue { id: I32, stream: U16, value: U16, }
}
layout! {
    /// `struct sctp_assoc_stats`; the largest RTO in ms, and of which address.
    AssocStatistics {
        id: I32, gap: U32, address: [u8; STORAGE], max_rto: U64, sacks_received: U64, sacks_sent: U64,
        packets_sent: U64, packets_received: U64, retransmitted: U64, out_of_sequence: U64, duplicates: U64,
        gap_blocks: U64, unordered_sent: U64, unordered_received: U64, ordered_sent: U64, ordered_received: U64,
        control_sent: U64, control_received: U64,
    }
}

/// `enum sctp_sched_type`; the last two are there since Linux 6.4.
#[allow(missing_docs, reason = "the names are the header's without their prefix")]
pub mod scheduler {
    pub const FCFS: u32 = 0;
    pub const PRIO: u32 = 1;
    pub const RR: u32 = 2;
    pub const FC: u32 = 3;
    pub const WFQ: u32 = 4;
}

/// Values of SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, as `net.sctp.pf_expose` numbers them.
#[allow(missing_docs, reason = "the names are Linux's without their prefix")]
pub mod pf_expose {
    /// `getsockopt` shows the state, and no notification tells of it.
    pub const UNSET: u32 = 0;
    pub const DISABLE: u32 = 1;
    pub const ENABLE: u32 = 2;
}

/// Bits of SCTP_ENABLE_STREAM_RESET.
#[allow(missing_docs, reason = "the names are the header's without their prefix")]
pub mod reset {
    pub const STREAMS: u32 = 1;
    pub const ASSOC: u32 = 2;
    pub const CHANGE_ASSOC: u32 = 4;
}

/// Flags of [`PeerAddressParams`].
#[allow(missing_docs, reason = "the names are the header's without their prefix")]
pub mod spp {
    pub const HB_ENABLE: u32 = 1;
    pub const HB_DISABLE: u32 = 2;
    pub const HB_DEMAND: u32 = 4;
    pub const PMTUD_ENABLE: u32 = 8;
    pub const PMTUD_DISABLE: u32 = 16;
    pub const SACKDELAY_ENABLE: u32 = 32;
    pub const SACKDELAY_DISABLE: u32 = 64;
    pub const HB_TIME_IS_ZERO: u32 = 128;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn sizes_and_places_of_the_header() {
        assert_eq!(size_of::<RtoInfo>(), 16);
        assert_eq!(size_of::<AssocParams>(), 20);
        assert_eq!(size_of::<Primary>(), 132);
        assert_eq!(size_of::<PeerAddressParams>(), 156);
        assert_eq!(offset_of!(PeerAddressParams, path_mtu), 138, "the structure is packed");
        assert_eq!(size_of::<SackInfo>(), 12);
        assert_eq!(size_of::<AssocValue>(), 8);
        assert_eq!(size_of::<PeerAddressInfo>(), 152);
        assert_eq!(size_of::<Status>(), 176);
        assert_eq!(size_of::<EventOption>(), 8);
        assert_eq!(size_of::<DefaultPrInfo>(), 12);
        assert_eq!(size_of::<PrStatus>(), 24);
        assert_eq!(size_of::<PeelOff>(), 12);
        assert_eq!(size_of::<AuthKeyId>(), 8);
        assert_eq!(size_of::<AddStreams>(), 8);
        assert_eq!(size_of::<UdpEncapsulation>(), 144);
        assert_eq!(offset_of!(UdpEncapsulation, port), 136, "the structure is not packed");
        assert_eq!((size_of::<Thresholds>(), offset_of!(Thresholds, switchover)), (144, 140));
        assert_eq!((size_of::<ProbeInterval>(), offset_of!(ProbeInterval, interval)), (144, 136));
        assert_eq!(size_of::<StreamValue>(), 8);
        assert_eq!((size_of::<AssocStatistics>(), offset_of!(AssocStatistics, max_rto)), (256, 136));
    }
}
