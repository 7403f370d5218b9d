//! Where stacks differ.

/// What other stacks and older standards do otherwise. The defaults are RFC 9260's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compatibility {
    /// One chunk may be in flight to a peer whose window is closed, and leaves at once (RFC 4960 §6.1 A). Otherwise the
    /// first one waits for an RTO (RFC 9260 §6.1 A).
    pub probe_at_once: bool,
    /// What left while the peer's window was closed is sent again when it opens.
    pub resend_probes: bool,
    /// What is sent again before a SHUTDOWN asks for an immediate SACK (RFC 7053 §4).
    pub retransmissions_ask: bool,
    /// A chunk whose lifetime is over is given up as soon as a gap block shows that it is missing, and not only when it
    /// would be sent again.
    pub give_up_late_holes: bool,
    /// Gap blocks count each for itself: one that is the wrong way round says nothing, and order and overlaps do not
    /// matter. Otherwise a SACK with such blocks is dropped.
    pub gap_blocks_alone: bool,
    /// The first DATA of the association may wait for its SACK as any other (against RFC 9260 §5.1).
    pub first_data_waits: bool,
    /// The peer learns by a SACK of its own that the receive window opened.
    pub window_updates: bool,
    /// A SACK goes back the way its packet came, whether anything was heard of that path lately or not.
    pub sacks_follow_data: bool,
    /// No DATA before a HEARTBEAT was answered on every path, the handshake's own included, and no RTT sample from the
    /// handshake.
    pub confirm_first: bool,
    /// The handshake gives no round-trip time, so that RTO.Initial holds until the first SACK or HEARTBEAT ACK: Linux.
    pub handshake_untimed: bool,
    /// INIT ACK names our extensions to a peer that does not know them too. Without, it names what both can do, for it
    /// goes to whoever stands as the source of an INIT and shall be small (RFC 5062 §9.3).
    pub advertise_unrequested_extensions: bool,
}

impl Default for Compatibility {
    fn default() -> Self {
        Compatibility {
            probe_at_once: false,
            resend_probes: true,
            retransmissions_ask: true,
            give_up_late_holes: false,
            gap_blocks_alone: false,
            first_data_waits: false,
            window_updates: true,
            sacks_follow_data: false,
            confirm_first: false,
            handshake_untimed: false,
            advertise_unrequested_extensions: false,
        }
    }
}
