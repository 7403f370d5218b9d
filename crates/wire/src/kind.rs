//! Chunk types (RFC 9260 §3.2 table 1, and the extensions' own tables).

/// Payload data (RFC 9260 §3.3.1).
pub const DATA: u8 = 0;
/// Initiation (RFC 9260 §3.3.2).
pub const INIT: u8 = 1;
/// Initiation acknowledgement (RFC 9260 §3.3.3).
pub const INIT_ACK: u8 = 2;
/// Selective acknowledgement (RFC 9260 §3.3.4).
pub const SACK: u8 = 3;
/// Heartbeat request (RFC 9260 §3.3.5).
pub const HEARTBEAT: u8 = 4;
/// Heartbeat acknowledgement (RFC 9260 §3.3.6).
pub const HEARTBEAT_ACK: u8 = 5;
/// Abort (RFC 9260 §3.3.7).
pub const ABORT: u8 = 6;
/// Shutdown (RFC 9260 §3.3.8).
pub const SHUTDOWN: u8 = 7;
/// Shutdown acknowledgement (RFC 9260 §3.3.9).
pub const SHUTDOWN_ACK: u8 = 8;
/// Operation error (RFC 9260 §3.3.10).
pub const ERROR: u8 = 9;
/// State cookie on its way back (RFC 9260 §3.3.11).
pub const COOKIE_ECHO: u8 = 10;
/// Cookie acknowledgement (RFC 9260 §3.3.12).
pub const COOKIE_ACK: u8 = 11;
/// ECN echo (draft-stewart-tsvwg-sctpecn; the number is set aside by RFC 9260 §3.2).
pub const ECNE: u8 = 12;
/// "Congestion window reduced" (draft-stewart-tsvwg-sctpecn; the number is set aside by RFC 9260 §3.2).
pub const CWR: u8 = 13;
/// Shutdown complete (RFC 9260 §3.3.13).
pub const SHUTDOWN_COMPLETE: u8 = 14;
/// Authentication (RFC 4895 §4.1).
pub const AUTH: u8 = 15;
/// SACK that says what will not be taken back (draft-tuexen-tsvwg-sctp-multipath-29 §4.2).
pub const NR_SACK: u8 = 16;
/// Payload data that may interleave (RFC 8260 §2.1).
pub const I_DATA: u8 = 64;
/// Address configuration acknowledgement (RFC 5061 §4.1.2).
pub const ASCONF_ACK: u8 = 128;
/// A packet that was dropped is shown (draft-stewart-tsvwg-sctpktdrprep).
pub const PACKET_DROP: u8 = 129;
/// Stream re-configuration (RFC 6525 §3.1).
pub const RE_CONFIG: u8 = 130;
/// Padding (RFC 4820 §3).
pub const PAD: u8 = 132;
/// Ours: when the packet left, by its sender's clock. The two high bits say: skip it and say nothing, when it is not known.
pub const TIME_STAMP: u8 = 177;
/// Ours: a sum of other DATA chunks. It takes a TSN of its own, and leaves only for a peer that said that it takes it.
pub const PARITY: u8 = 178;
/// Ours: TSNs that were restored from parity, and the answer to that. As of parity.
pub const REPAIRED: u8 = 179;
/// Skip over abandoned TSNs (RFC 3758 §3.2).
pub const FORWARD_TSN: u8 = 192;
/// Address configuration change (RFC 5061 §4.1.1).
pub const ASCONF: u8 = 193;
/// Skip over abandoned messages that may interleave (RFC 8260 §2.3.1).
pub const I_FORWARD_TSN: u8 = 194;
