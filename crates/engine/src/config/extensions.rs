//! Extensions of RFC 9260.

use super::OwnParameter;

/// What INIT and INIT ACK announce. An extension is used once both ends announced it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Extensions {
    /// Announce and use PR-SCTP (RFC 3758).
    pub partial_reliability: bool,
    /// Announce and use ASCONF under AUTH (RFC 5061, RFC 4895).
    pub dynamic_addresses: bool,
    /// Announce RE-CONFIG: streams may be reset and added (RFC 6525).
    pub stream_reconfiguration: bool,
    /// Announce I-DATA: messages of different streams interleave (RFC 8260). Only for users who take them so. The messages
    /// that are under way at once have to fit the receiver's buffer beside each other, unless it delivers them in parts.
    pub interleaving: bool,
    /// Announce NR-SACK: say what will not be taken back, so that the peer need not keep it (load-sharing draft §4).
    pub nr_sack: bool,
    /// NR-SACK vouches for all that arrived, because what we took we never give up again (the draft's case 3). Otherwise
    /// only for what the user has or could have at once (case 2), as FreeBSD's does.
    pub nr_sack_covers_undelivered: bool,
    /// Announce ECN (draft-stewart-tsvwg-sctpecn): with a peer that does too, new data may be marked by queues, and a mark
    /// cuts the window as a loss does. The driver has to set and to read the bits of the IP header.
    pub ecn: bool,
    /// Announce packet drop reports (draft-stewart-tsvwg-sctpktdrprep): what a peer shows to have arrived damaged leaves
    /// again without a cut of the window, and it is shown what arrived damaged here, eight packets at once and then 20 a
    /// second at most.
    pub packet_drop_reports: bool,
    /// Announce that parity is taken, as policies that make it or read it do anyhow (`redundancy=erasure`,
    /// `repair=erasure`). Needs PR-SCTP; not where DATA has to be authenticated, nor where NR-SACKs vouch only for what
    /// the user has.
    pub parity: bool,
    /// What detects errors in place of the checksum: an identifier of RFC 9653, 1 for DTLS below SCTP. Announced, and
    /// then packets with a checksum of zero are taken, and sent to a peer that announced the same. None, as is right
    /// over plain UDP or IP, knows the checksum only.
    pub error_detection: Option<u32>,
    /// Adaptation code point to tell the peer in INIT and INIT ACK (RFC 5061 §4.2.6).
    pub adaptation: Option<u32>,
    /// Parameters of the user's own: said in INIT, repeated in INIT ACK to a peer that says them.
    pub own_parameters: Vec<OwnParameter>,
}

impl Default for Extensions {
    fn default() -> Self {
        Extensions {
            partial_reliability: true,
            dynamic_addresses: true,
            stream_reconfiguration: false,
            interleaving: false,
            nr_sack: false,
            nr_sack_covers_undelivered: true,
            ecn: false,
            packet_drop_reports: false,
            parity: false,
            error_detection: None,
            adaptation: None,
            own_parameters: Vec::new(),
        }
    }
}
