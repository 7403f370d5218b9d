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
use crate::association::sender::Sender;
use crate::association::stream_reset::request::Reconfig;
use crate::association::{Association, PeerFeatures, State};
use crate::config::AssocConfig;
use crate::path::Origin;
use crate::stats::Tally;
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
            asks: crate::association::policies::asks::Asks::of(&policies),
            policies,
            own_policies: false,
            views: Views::default(),
            views_stale: true,
            views_doubtful: false,
            fill_scale: (1_000_000 << 32) / (config.send_buffer as u64).max(1),
            paths,
            confirming: false,
            quality_floor: Instant::ZERO,
            sender: Sender::new(&config, initial),
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
            stats: Tally::default(),
            scratch: bench::Lent::default(),
            config,
        };
        a.new_path(local, remote, Origin::Handshake);
        a
    }
}
