//! An association at its beginning.

use super::asconf::Asconf;
use super::era::{Gate, Losses};
use super::gap_memory::GapMemory;
use super::peer_window::PeerWindow;
use super::reconfig::Reconfig;
use super::seldom::Seldom;
use super::views::Views;
use super::{Association, PeerFeatures, State, bench, nonces};
use crate::auth::AuthParams;
use crate::config::AssocConfig;
use crate::path::list::Paths;
use crate::path::{LocalId, Origin};
use crate::rx::reassembly::Reassembly;
use crate::rx::tsn_tracker::TsnTracker;
use crate::stats::Tally;
use crate::tx::groups::Groups;
use crate::tx::scoreboard::Scoreboard;
use crate::tx::send_queue::SendQueue;
use anabranch_base::{Entropy, Instant, PathId, Tsn};
use anabranch_policy::registry::PolicySet;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// What an association starts from: both ways into life, connecting and accepting, end here.
pub(crate) struct Birth {
    pub local_port: u16,
    pub peer_port: u16,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_initial: Tsn,
    pub local_auth: AuthParams,
    pub local: LocalId,
    pub remote: SocketAddr,
}

impl Association {
    pub(crate) fn new(
        config: Arc<AssocConfig>,
        policies: PolicySet,
        birth: Birth,
        entropy: &mut dyn Entropy,
        state: State,
    ) -> Self {
        let mtu = config.max_payload() as u64;
        let mut a = Association {
            state,
            local_port: birth.local_port,
            peer_port: birth.peer_port,
            local_tag: birth.local_tag,
            peer_tag: birth.peer_tag,
            local_initial: birth.local_initial,
            local_auth: birth.local_auth,
            ties: (entropy.u32().max(1), entropy.u32().max(1)),
            auth: super::authentication::Authentication::default(),
            peer: PeerFeatures::default(),
            outbound_streams: config.outbound_streams,
            inbound_streams: config.inbound_streams,
            asks: policies.asks(),
            policies,
            own_policies: false,
            views: Views::default(),
            views_stale: true,
            views_doubtful: false,
            mtu,
            data_extra: 0,
            initial_cwnd: crate::path::initial_window(config.initial_window, mtu, birth.remote),
            fill_scale: (1_000_000 << 32) / (config.send_buffer as u64).max(1),
            paths: Paths::default(),
            handshake_path: PathId(0),
            addresses_changed: 0,
            primary: PathId(0),
            queue: SendQueue::default(),
            groups: Groups::default(),
            board: Scoreboard::new(birth.local_initial),
            peer_window: PeerWindow::default(),
            gaps: GapMemory::default(),
            copies_due: Seldom::nothing(),
            scheduler_wakeup: None,
            redundancy_wakeup: None,
            scheduler_blocked: false,
            clocks: Default::default(),
            sends: false,
            confirming: false,
            gate: Gate::Open,
            repairs_on: None,
            era_losses: Losses::default(),
            user_data_at: None,
            load: crate::tx::load::Load::default(),
            carried: crate::tx::carried::Carried::default(),
            user_sends: false,
            burst_armed: false,
            highest_reported: None,
            window_spent: false,
            fresh_opportunity: false,
            quality_floor: Instant::ZERO,
            forward_timer: None,
            forward_due: false,
            may_give_up: false,
            swept_marked: None,
            swept_ahead: None,
            forward_sent: None,
            errors: 0,
            last_error: None,
            first_error: None,
            want_writable: false,
            refused: 0,
            paths_changed: false,
            tracker: TsnTracker::new(Tsn(0)),
            reassembly: Reassembly::new(config.inbound_streams, config.receive_overhead),
            received_any: false,
            packets_since_sack: 0,
            still_first: false,
            sack_count_lost: false,
            sack_due: false,
            first_data: None,
            sack_timer: None,
            sack_path: PathId(0),
            answer_by: None,
            answers_back: false,
            marks: None,
            packet_marked: false,
            announced_rwnd: config.receive_buffer as u64,
            readable_told: false,
            control: VecDeque::new(),
            answer_room: 0,
            control_timer: None,
            control_attempts: 0,
            control_sent_at: Instant::ZERO,
            stale_cookies: 0,
            cookie_wish: None,
            echo_report: Box::default(),
            guard_timer: None,
            guarded_from: 0,
            asconf: Asconf::new(birth.local_initial.0),
            reconfig: match config.stream_reconfiguration {
                true => Reconfig::new(birth.local_initial).into(),
                false => Seldom::nothing(),
            },
            nonces: nonces::Nonces::new(entropy),
            events: VecDeque::new(),
            abandoned_told: 0,
            abandoned: Seldom::nothing(),
            given_up: Seldom::nothing(),
            stats: Tally::default(),
            scratch: bench::Lent::default(),
            config,
        };
        a.new_path(birth.local, birth.remote, Origin::Handshake);
        a
    }
}
