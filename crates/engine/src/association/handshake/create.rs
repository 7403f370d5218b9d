//! An association at its beginning.

use super::peer::PeerFeatures;
use crate::association::acknowledger::Acknowledger;
use crate::association::addresses::asconf::Addresses;
use crate::association::control::ControlOut;
use crate::association::handshake::{Handshake, Identity};
use crate::association::path_table::PathTable;
use crate::association::policies::scratch;
use crate::association::policies::set::Policies;
use crate::association::policies::views::Views;
use crate::association::receiver::Receiver;
use crate::association::sender::Sender;
use crate::association::stream_reset::request::StreamReset;
use crate::association::{Association, State};
use crate::config::AssocConfig;
use crate::lazy_box::LazyBox;
use crate::path::Origin;
use crate::stats::Tally;
use anabranch_base::Entropy;
use std::collections::VecDeque;
use std::sync::Arc;

impl Association {
    pub(crate) fn new(
        config: Arc<AssocConfig>,
        policies: Policies,
        identity: Identity,
        entropy: &mut dyn Entropy,
        state: State,
    ) -> Self {
        let mtu = config.max_payload() as u64;
        let (initial, local, remote) = (identity.local_initial, identity.local, identity.remote);
        let handshake = Handshake::new(identity, state, entropy);
        let paths = PathTable::new(config.mtu.packet_size, mtu, config.sending.initial_window, remote, entropy);
        let mut a = Association {
            peer: PeerFeatures::default(),
            policies,
            views: Views::default(),
            paths,
            sender: Sender::new(&config, initial),
            receiver: Receiver::new(
                config.limits.inbound_streams,
                config.limits.receive_buffer,
                config.limits.receive_overhead,
            ),
            acknowledger: Acknowledger::default(),
            control: ControlOut::default(),
            handshake,
            addresses: Addresses::new(initial.0),
            stream_reset: match config.extensions.stream_reconfiguration {
                true => StreamReset::new(initial).into(),
                false => LazyBox::empty(),
            },
            events: VecDeque::new(),
            stats: Tally::default(),
            scratch: scratch::Lent::default(),
            config,
        };
        a.new_path(local, remote, Origin::Handshake);
        a
    }
}
