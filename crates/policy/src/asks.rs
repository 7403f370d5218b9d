//! Which optional callbacks a policy implements, and what it counts.

/// A set of optional callbacks that cost something and that most policies do not implement. The engine reads the sets of
/// an association's policies once, and hot paths skip what is not in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks(u32);

impl Asks {
    /// No optional callback.
    pub const NOTHING: Asks = Asks(0);
    /// `PathScheduler::look_ahead`; one chunk at a time without.
    pub const LOOK_AHEAD: Asks = Asks(1);
    /// `PathScheduler::settle` and `observe`: what became of answers, and the queue outside a decision.
    pub const OUTCOMES: Asks = Asks(1 << 1);
    /// `PathScheduler::direction` and `bound_bytes`, for the board.
    pub const BOUND: Asks = Asks(1 << 2);
    /// `Coupling::adjust`.
    pub const ADJUST: Asks = Asks(1 << 3);
    /// `Coupling::publish` and `aggregate_window`, for the board.
    pub const PUBLISH: Asks = Asks(1 << 4);
    /// All of `LossTimer`.
    pub const PROBE: Asks = Asks(1 << 5);
    /// `PathStatePolicy::suspect_at` and what follows from it.
    pub const SUSPECT: Asks = Asks(1 << 6);
    /// All of `PathQuality`.
    pub const QUALITY: Asks = Asks(1 << 7);
    /// All of `Redundancy`.
    pub const EXTRA: Asks = Asks(1 << 8);
    /// `Redundancy::extra` also before new data leaves, when what it adds has more time left.
    pub const EXTRA_FIRST: Asks = Asks(1 << 9);
    /// `LossCount::reports` about every copy, whatever was sent after it on its path and acknowledged. A policy that does
    /// not ask this counts by send order, and stays right when TSNs leave permuted.
    pub const ALL_COPIES: Asks = Asks(1 << 10);
    /// `Buffer::allows`.
    pub const SHARE: Asks = Asks(1 << 11);
    /// `StreamScheduler::packet` and `goes_on`: messages of different streams never share a packet.
    pub const PACKETS: Asks = Asks(1 << 12);
    /// `Recovery::bursts`: Max.Burst depends on whether what was sent again has been acknowledged.
    pub const REPAIRED: Asks = Asks(1 << 13);
    /// All of `Repair`.
    pub const REPAIR: Asks = Asks(1 << 14);
    /// `Redundancy::extra` answers with nothing but parity: not asked where the peer does not take it.
    pub const PARITY: Asks = Asks(1 << 15);
    /// `LossCause::sample`: round trips, packet by packet.
    pub const SAMPLES: Asks = Asks(1 << 16);
    /// `Redundancy::answered`: how old each chunk was when it was acknowledged.
    pub const ANSWERS: Asks = Asks(1 << 17);
    /// `Redundancy::packet`: whole packets that left.
    pub const WHOLE_PACKETS: Asks = Asks(1 << 18);
    /// `Repair::damaged` and `corrected`.
    pub const DAMAGED: Asks = Asks(1 << 19);
    /// `Redundancy::extra` answers with copies as well as with parity: asked where the peer does not take that, too.
    pub const COPIES: Asks = Asks(1 << 20);
    /// [`PathView::frame_errors`](crate::view::PathView::frame_errors): who runs the engine asks interfaces for it.
    pub const LINK_REPORTS: Asks = Asks(1 << 21);
    /// What the user hands over, as `AssocView` has it in `send_buffer_fill`, `data_sent_at` and `class_rates`.
    pub const LOAD: Asks = Asks(1 << 22);
    /// How many packets a SACK answers: the association reads it, and announces that it does.
    pub const PACKET_COUNTS: Asks = Asks(1 << 23);
    /// Ways there known from ways back: the association reads time stamps beside SACKs where the peer does, too.
    pub const TIME_STAMPS: Asks = Asks(1 << 24);
    /// What an estimator of path quality publishes ([`Signals`](crate::view::Signals)): refused where there is none.
    pub const ESTIMATES: Asks = Asks(1 << 25);
    /// `Redundancy::extra` again when no open path takes new data, as [`AssocView::declined`] says.
    ///
    /// [`AssocView::declined`]: crate::view::AssocView::declined
    pub const EXTRA_LAST: Asks = Asks(1 << 26);
    /// Something to write on the board of facts.
    pub const BOARD: Asks = Asks::BOUND.and(Asks::PUBLISH).and(Asks::QUALITY);

    /// Union of both sets.
    #[must_use]
    pub const fn and(self, other: Asks) -> Asks {
        Asks(self.0 | other.0)
    }
    /// Is any question of `other` in the set?
    #[inline]
    pub const fn any(self, other: Asks) -> bool {
        self.0 & other.0 != 0
    }
}

/// Something a policy counts, by its name.
pub type Counter = (&'static str, u64);

/// The methods that the trait of every hook has. `asks` are the questions that a policy of this hook is asked unless it
/// says otherwise.
macro_rules! every_policy {
    ($($asks:ident),*) => {
        /// The costly questions of this hook that the policy wants to be asked; constant for the life of the policy.
        fn asks(&self) -> $crate::asks::Asks {
            $crate::asks::Asks::NOTHING$(.and($crate::asks::Asks::$asks))*
        }
        /// What it counts, for statistics, metrics and traces. Names and their order never change.
        fn counters(&self) -> &[$crate::asks::Counter] {
            &[]
        }
    };
}
pub(crate) use every_policy;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn no_two_questions_share_a_bit() {
        let bits: Vec<&str> = include_str!("asks.rs")
            .lines()
            .filter_map(|l| l.split_once("Asks(1")?.1.split_once(");"))
            .map(|b| b.0)
            .collect();
        assert!(bits.len() > 20, "{bits:?}");
        assert_eq!(bits.iter().collect::<BTreeSet<_>>().len(), bits.len(), "{bits:?}");
    }
}
