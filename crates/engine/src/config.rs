//! The configuration of an endpoint and of an association.

use crate::auth::ChunkTypes;
use crate::path::LocalId;
use crate::path::discovery::PathMtuDiscovery;
use crate::rx::reassembly::CHUNK_CHARGE;
use crate::settings::Nagle;
use anabranch_base::Duration;
use anabranch_policy::registry::{Hook, PolicyError, Profile};
use anabranch_wire::kind;
use std::net::IpAddr;

/// An address of ours that INIT and INIT ACK tell the peer, and the interface that sends from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedAddress {
    /// The interface or socket.
    pub local: LocalId,
    /// Its address as the peer can reach it.
    pub ip: IpAddr,
}

/// Chunk authentication (RFC 4895) beyond what address changes need by themselves.
#[derive(Clone, Debug, Default)]
pub struct AuthConfig {
    /// Further chunk types that the peer must authenticate. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH cannot be.
    pub chunks: Vec<u8>,
    /// Endpoint pair shared keys by identifier, beside the empty key 0.
    pub keys: Vec<(u16, bytes::Bytes)>,
    /// Identifier of the key to sign with.
    pub active_key: u16,
}

/// What fits an Ethernet frame with the headers of IPv6 and UDP, bytes.
const LARGEST_SOUGHT: usize = 1_452;

/// Constants whose right value depends on what a profile is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// SACK.Delay.
    pub sack_delay: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// HB.interval.
    pub heartbeat_interval: Duration,
    /// See [`AssocConfig::peer_timeout`].
    pub peer_timeout: Option<Duration>,
}

impl Constants {
    /// RFC 9260 §16.
    pub const RFC: Constants = Constants {
        sack_delay: Duration::from_millis(200),
        rto_max: Duration::from_secs(60),
        heartbeat_interval: Duration::from_secs(30),
        peer_timeout: None,
    };

    /// For networks that come and go. A small window stands still for SACK.Delay when its last packet is an odd one; that
    /// must be little against a latency. A path that was cut is asked every RTO.Max at least, so that its return is
    /// noticed; an idle one that dies is noticed by HEARTBEATs. All paths may be silent for a minute, as in a tunnel.
    pub const OURS: Constants = Constants {
        sack_delay: Duration::from_millis(20),
        rto_max: Duration::from_secs(3),
        heartbeat_interval: Duration::from_secs(1),
        peer_timeout: Some(Duration::from_secs(60)),
    };

    /// Those of a profile: ours where the profile is, otherwise the RFC's.
    pub fn of(profile: &Profile) -> Self {
        if profile.is_ours() { Self::OURS } else { Self::RFC }
    }
}

/// Limits and constants of an association. Defaults are RFC 9260 §16's unless a line, or [`Constants`], says otherwise.
#[derive(Clone, Debug)]
pub struct AssocConfig {
    /// Policies by name.
    pub profile: Profile,
    /// Seed of the policies' random streams.
    pub seed: u64,
    /// Streams we ask for.
    pub outbound_streams: u16,
    /// Streams we accept.
    pub inbound_streams: u16,
    /// Receive buffer, bytes; announced as a_rwnd. At least 1500 (RFC 9260 §3.3.2).
    pub receive_buffer: usize,
    /// Send buffer, bytes: unsent and outstanding payload, or 256 for each message or chunk where that is more. `send` is
    /// refused above it, and has room again ([`Event::Writable`](crate::Event::Writable)) once a 32nd of it is free, more
    /// than a packet at least; into an empty one goes any message that is not larger.
    pub send_buffer: usize,
    /// Largest SCTP packet, common header included, bytes (ours: 1200, safe on every path without probing). With
    /// `path_mtu_discovery` where the search begins.
    pub packet_size: usize,
    /// Look on each path for packets larger than `packet_size` (RFC 8899): messages are then cut for the smallest of what
    /// the paths in use were found to carry. None never does. On from the start where the profile asks for it
    /// ([`Profile::finds_packet_size`]).
    pub path_mtu_discovery: Option<PathMtuDiscovery>,
    /// Association.Max.Retrans.
    pub max_association_retrans: u16,
    /// A peer that leaves what it is sent unanswered, HEARTBEATs at least, is given up after so long, and Association.Max.Retrans then counts
    /// for the handshake and the shutdown alone: how soon errors add up depends on round trips, how long an outage lasts
    /// does not. None counts (RFC 9260 §8.1).
    pub peer_timeout: Option<Duration>,
    /// Path.Max.Retrans.
    pub max_path_retrans: u16,
    /// Primary.Switchover.Max.Retrans (RFC 7829 §5): more errors than this on the primary path make the path that is used
    /// in its place the primary one, so that traffic stays there. At least what makes data leave a path, see
    /// [`AssocConfig::check`]. None gives the old primary its traffic back.
    pub primary_switchover: Option<u16>,
    /// Users see which paths are potentially failed, or suspected. Otherwise those are active to them until they are
    /// inactive (RFC 7829 §3.2, rule 12).
    pub shows_doubt: bool,
    /// Max.Init.Retransmits.
    pub max_init_retrans: u16,
    /// HB.interval. Zero sends none on a path that is confirmed, as [`HeartbeatSetting::Off`](crate::HeartbeatSetting) does
    /// path by path: an idle path that dies goes unnoticed then, and one that failed is tried again only
    /// by what is sent when no other is left. Paths are still confirmed, and a path state policy may still ask a path in
    /// use that falls silent.
    pub heartbeat_interval: Duration,
    /// HB.Max.Burst: probes of unconfirmed addresses per RTO (RFC 9260 §5.4), at least 1.
    pub heartbeat_max_burst: u16,
    /// SACK.Delay, at most 500 ms.
    pub sack_delay: Duration,
    /// Max.Burst, packets per sending opportunity and path; 0 is unlimited.
    pub max_burst: u16,
    /// RTO.Initial, for timers that no path policy governs (T1).
    pub rto_initial: Duration,
    /// RTO.Max: the longest that any timer waits for an answer, T3 included, whatever the timer policy has as its own.
    pub rto_max: Duration,
    /// The largest timeout of INIT and COOKIE ECHO (RFC 6458 §8.1.3, `sinit_max_init_timeo`); none is `rto_max`.
    pub max_init_timeout: Option<Duration>,
    /// Paths the association may hold; older inactive ones make room.
    pub max_paths: usize,
    /// Cut messages that do not fit a packet; otherwise `send` refuses them (RFC 9260 §6.9).
    pub fragmentation: bool,
    /// Hand a message that does not fit the receive buffer to the user in parts, see [`crate::Part`] (RFC 9260 §6.9).
    /// Otherwise it ends the association.
    pub partial_delivery: bool,
    /// First window of a path, payload bytes; none is RFC 9260 §7.2.1's.
    pub initial_window: Option<u64>,
    /// First slow-start threshold of a path, payload bytes; arbitrarily high by default (RFC 9260 §7.2.1).
    pub initial_ssthresh: u64,
    /// Bytes that a received chunk costs the receive buffer beside its payload.
    pub receive_overhead: usize,
    /// Bytes that an outstanding chunk is taken to cost the peer's buffer beside its payload: 0 as in RFC 9260 §6.2.1.
    pub peer_chunk_overhead: u64,
    /// What less than a packet waits for while something is outstanding.
    pub nagle: Nagle,
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
    /// Announce and use PR-SCTP (RFC 3758).
    pub partial_reliability: bool,
    /// Messages that were given up after their first fragment got its TSN are kept for
    /// [`take_given_up`](crate::Association::take_given_up), up to a send buffer of them.
    pub return_given_up: bool,
    /// Announce and use ASCONF under AUTH (RFC 5061, RFC 4895).
    pub dynamic_addresses: bool,
    /// What has to be authenticated and with which keys (RFC 4895); nothing and none by default.
    pub auth: AuthConfig,
    /// What detects errors in place of the checksum: an identifier of RFC 9653, 1 for DTLS below SCTP. Announced, and
    /// then packets with a checksum of zero are taken, and sent to a peer that announced the same. None, as is right
    /// over plain UDP or IP, knows the checksum only.
    pub error_detection: Option<u32>,
    /// Announce RE-CONFIG: streams may be reset and added (RFC 6525).
    pub stream_reconfiguration: bool,
    /// Streams each way that re-configuration may lead to; a peer that wants more is refused (RFC 6525 §5.2.5).
    pub max_streams: u16,
    /// Announce I-DATA: messages of different streams interleave (RFC 8260). Only for users who take them so. The messages
    /// that are under way at once have to fit the receiver's buffer beside each other, unless it delivers them in parts.
    pub interleaving: bool,
    /// Announce NR-SACK: say what will not be taken back, so that the peer need not keep it (load-sharing draft §4).
    pub nr_sack: bool,
    /// NR-SACK vouches for all that arrived, because what we took we never give up again (the draft's case 3). Otherwise
    /// only for what the user has or could have at once (case 2), as FreeBSD's does.
    pub vouch_for_all: bool,
    /// Adaptation code point to tell the peer in INIT and INIT ACK (RFC 5061 §4.2.6).
    pub adaptation: Option<u32>,
    /// Announce ECN (draft-stewart-tsvwg-sctpecn): with a peer that does too, new data may be marked by queues, and a mark
    /// cuts the window as a loss does. The driver has to set and to read the bits of the IP header.
    pub ecn: bool,
    /// Announce packet drop reports (draft-stewart-tsvwg-sctpktdrprep): what a peer shows to have arrived damaged leaves
    /// again without a cut of the window, and it is shown what arrived damaged here, eight packets at once and then 20 a second at most.
    pub packet_drop_reports: bool,
    /// Types of addresses that INIT says we can send to (RFC 9260 §3.3.2.1.5): 5 is IPv4, 6 is IPv6. None says nothing.
    pub address_types: Vec<u16>,
    /// INIT ACK names our extensions to a peer that does not know them too. Without, it names what both can do, for it
    /// goes to whoever stands as the source of an INIT and shall be small (RFC 5062 §9.3).
    pub announce_unasked: bool,
    /// A peer that does not answer any more gets an ABORT when we give up (RFC 9260 §8.1 leaves that open): it may hear
    /// us although we do not hear it.
    pub abort_when_given_up: bool,
    /// Our addresses, to be listed in INIT and INIT ACK (RFC 9260 §5.1.2); the one that the packet leaves from may
    /// be among them. Empty lists none, which is right behind a NAT and the default over UDP (RFC 6951 §5.7).
    pub addresses: Vec<ListedAddress>,
}

impl AssocConfig {
    /// The defaults with the given profile and its [`Constants`].
    pub fn new(profile: Profile) -> Self {
        let constants = Constants::of(&profile);
        Self::with(profile, constants)
    }

    /// The defaults with the constants of another purpose, to compare profiles under equal ones.
    pub fn with(profile: Profile, constants: Constants) -> Self {
        let finds_size = profile.finds_packet_size();
        let mut config = AssocConfig {
            profile,
            seed: 0,
            outbound_streams: 64,
            inbound_streams: 2_048,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            packet_size: 1_200,
            path_mtu_discovery: finds_size.then(|| PathMtuDiscovery::up_to(LARGEST_SOUGHT)),
            max_association_retrans: 10,
            peer_timeout: constants.peer_timeout,
            max_path_retrans: 5,
            primary_switchover: None,
            shows_doubt: true,
            max_init_retrans: 8,
            heartbeat_interval: constants.heartbeat_interval,
            heartbeat_max_burst: 1,
            sack_delay: constants.sack_delay,
            max_burst: 4,
            rto_initial: Duration::from_secs(1),
            rto_max: constants.rto_max,
            max_init_timeout: None,
            max_paths: 16,
            fragmentation: true,
            partial_delivery: false,
            initial_window: None,
            initial_ssthresh: u64::from(u32::MAX),
            receive_overhead: CHUNK_CHARGE,
            peer_chunk_overhead: 0,
            nagle: Nagle::Off,
            probe_at_once: false,
            resend_probes: true,
            retransmissions_ask: true,
            give_up_late_holes: false,
            gap_blocks_alone: false,
            first_data_waits: false,
            window_updates: true,
            sacks_follow_data: false,
            confirm_first: false,
            partial_reliability: true,
            return_given_up: false,
            dynamic_addresses: true,
            auth: AuthConfig::default(),
            error_detection: None,
            stream_reconfiguration: false,
            max_streams: 2_048,
            interleaving: false,
            nr_sack: false,
            vouch_for_all: true,
            adaptation: None,
            ecn: false,
            packet_drop_reports: false,
            address_types: Vec::new(),
            announce_unasked: false,
            abort_when_given_up: false,
            addresses: Vec::new(),
        };
        for (name, value) in config.profile.settings() {
            config.set(name, value);
        }
        config
    }

    /// Refuses limits that contradict each other, with the reason.
    ///
    /// # Errors
    /// [`PolicyError::Refused`], or a policy that cannot be built.
    pub fn check(&self) -> Result<(), PolicyError> {
        let Some(switchover) = self.primary_switchover else { return Ok(()) };
        let (path_state, max) = (self.profile.build(self.seed)?.path_state, self.max_path_retrans);
        if switchover >= path_state.leaves_above(max) {
            return Ok(());
        }
        Err(PolicyError::Refused {
            first: format!("primary_switchover {switchover}"),
            second: format!("path_state {} and {max} path retransmissions", self.profile.spec(Hook::PathState)),
            reason: "the primary path would change before data leaves it (RFC 7829 §5)",
        })
    }

    /// Does it take part in chunk authentication?
    pub(crate) fn authenticates(&self) -> bool {
        self.dynamic_addresses || !self.auth.chunks.is_empty() || !self.auth.keys.is_empty()
    }

    /// Value of our CHUNKS parameter: types that the peer must authenticate.
    pub(crate) fn chunks_to_authenticate(&self) -> ChunkTypes {
        let mut out = ChunkTypes::from_slice(if self.dynamic_addresses { crate::auth::OUR_CHUNKS } else { &[] });
        for &k in &self.auth.chunks {
            // RFC 4895 §3.2.
            let never = matches!(k, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH);
            if !never && !out.contains(&k) {
                out.push(k);
            }
        }
        out
    }

    /// Smallest packet the engine can work with: a SACK, an INIT ACK with its cookie and one byte of DATA fit.
    pub const MIN_PACKET_SIZE: usize = 512;

    /// Its way of counting losses uses how many packets a SACK answers.
    pub(crate) fn reads_packet_counts(&self) -> bool {
        self.profile.get(Hook::LossCount) == "delayed_ack_cmt"
    }

    /// Policies that predict arrivals know ways there from ways back by them.
    pub(crate) fn reads_time_stamps(&self) -> bool {
        self.profile.get(Hook::Abandon) == "arrival"
    }

    /// The largest DATA payload of one packet.
    pub(crate) fn max_payload(&self) -> usize {
        Self::payload_of(self.packet_size)
    }

    /// The largest DATA payload of a packet of `size` bytes.
    pub(crate) fn payload_of(size: usize) -> usize {
        let room = size.max(Self::MIN_PACKET_SIZE);
        (room - anabranch_wire::COMMON_HEADER_LEN - anabranch_wire::DATA_HEADER_LEN) & !3
    }
}

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Our SCTP port, never 0.
    pub port: u16,
    /// Accept associations from peers.
    pub accept: bool,
    /// For accepted associations.
    pub association: AssocConfig,
    /// Valid.Cookie.Life.
    pub cookie_life: Duration,
    /// A peer that restarts (RFC 9260 §5.2.4 A) keeps its association's id, and the user learns of it by
    /// [`Event::Restarted`](crate::Event::Restarted). False ends the old one with
    /// [`CloseReason::PeerRestarted`](crate::CloseReason::PeerRestarted) and begins another, for users to whom an
    /// association is a session.
    pub restart_keeps_id: bool,
    /// Associations that may live at once; further COOKIE ECHOes are dropped.
    pub max_associations: usize,
    /// Packets without a checksum that belong to no association are answered too (RFC 9653 §5.3).
    pub unsummed_strangers: bool,
    /// Packets to any port are answered, from that port: for an endpoint that answers for all ports without an owner. It
    /// must neither accept nor begin associations.
    pub any_port: bool,
}

impl EndpointConfig {
    /// The defaults on `port`.
    pub fn new(port: u16, association: AssocConfig) -> Self {
        EndpointConfig {
            port,
            accept: false,
            association,
            cookie_life: Duration::from_secs(60),
            restart_keeps_id: true,
            max_associations: 100_000,
            unsummed_strangers: false,
            any_port: false,
        }
    }
}
