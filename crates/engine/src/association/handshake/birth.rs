//! An association at its beginning.

use crate::association::acknowledger::Acknowledger;
use crate::association::addresses::asconf::Asconf;
use crate::association::control::ControlOut;
use crate::association::handshake::{Birth, Handshake};
use crate::association::path_table::PathTable;
use crate::association::policies::scratch as bench;
use crate::association::policies::views::Views;
use crate::association::receiver::Receiver;
use crate::association::seldom::Seldom;
use crate::association::sender::era::{Gate, Losses};
use crate::association::sender::peer_window::PeerWindow;
use crate::association::sender::sack::gap_memory::GapMemory;
use crate::association::stream_reset::request::Reconfig;
use crate::association::{Association, PeerFeatures, State};
use crate::config::AssocConfig;
use crate::path::Origin;
use crate::stats::Tally;
use crate::tx::groups::Groups;
use crate::tx::scoreboard::Scoreboard;
use crate::tx::send_queue::SendQueue;
use anabranch_base::{Entropy, Instant};
use anabranch_policy::registry::PolicySet;
use std::collections::VecDeque;
use std::sync::Arc;

impl Association {
    pub(crate) fn new(
        config: Arc<AssocConfig>,
        policies: PolicySet,
        birth: Birth,
        entropy: &mut dyn Entropy,
        state: State,
    ) -> Self {
        let mtu = config.max_payload() as u64;
        let (initial, local, remote) = (birth.local_initial, birth.local, birth.remote);
        let handshake = Handshake::new(birth, entropy);
        let paths = PathTable::new(mtu, config.initial_window, remote, entropy);
        let mut a = Association {
            state,
            auth: crate::association::handshake::authentication::Authentication::default(),
            peer: PeerFeatures::default(),
            outbound_streams: config.outbound_streams,
            asks: crate::association::policies::asks::Asks::of(&policies),
            policies,
            own_policies: false,
            views: Views::default(),
            views_stale: true,
            views_doubtful: false,
            fill_scale: (1_000_000 << 32) / (config.send_buffer as u64).max(1),
            paths,
            queue: SendQueue::default(),
            groups: Groups::default(),
            board: Scoreboard::new(initial),
            peer_window: PeerWindow::default(),
            gaps: GapMemory::default(),
            copies_due: Seldom::nothing(),
            scheduler_wakeup: None,
            redundancy_wakeup: None,
            scheduler_blocked: false,
            sends: false,
            confirming: false,
            gate: Gate::Open,
            repairs_on: None,
            era_losses: Losses::default(),
            user_data_at: None,
            load: crate::tx::load::Load::default(),
            carried: Seldom::nothing(),
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
            want_writable: false,
            refused: 0,
            receiver: Receiver::new(config.inbound_streams, config.receive_buffer, config.receive_overhead),
            acknowledger: Acknowledger::default(),
            packet_marked: false,
            control: ControlOut::default(),
            handshake,
            asconf: Asconf::new(initial.0),
            reconfig: match config.stream_reconfiguration {
                true => Reconfig::new(initial).into(),
                false => Seldom::nothing(),
            },
            events: VecDeque::new(),
            abandoned_told: 0,
            abandoned: Seldom::nothing(),
            given_up: Seldom::nothing(),
            stats: Tally::default(),
            scratch: bench::Lent::default(),
            config,
        };
        a.new_path(local, remote, Origin::Handshake);
        a
    }
}
