//! What the policies of an association want to be asked. Most have no use for most questions, and asking costs.

use anabranch_policy::registry::PolicySet;

/// Read once from the policies, which stay for the life of an association.
#[derive(Clone, Copy)]
pub(in crate::association) struct Asks {
    /// The path scheduler's look-ahead.
    pub look_ahead: bool,
    /// The path scheduler remembers: it is told what happens.
    pub scheduler: bool,
    /// Someone writes to the board of facts.
    pub board: bool,
    /// Coupling publishes.
    pub published: bool,
    /// Coupling sets windows.
    pub adjust: bool,
    pub loss_timer: bool,
    pub suspects: bool,
    pub quality: bool,
    pub redundancy: bool,
    /// Before new data.
    pub early_redundancy: bool,
    /// Reports are counted by send order.
    pub by_order: bool,
    /// Paths have parts of the buffers.
    pub buffer: bool,
    /// A packet carries one stream only.
    pub one_stream: bool,
}

impl Asks {
    pub fn of(p: &PolicySet) -> Asks {
        let (published, quality) = (p.coupling.publishes(), p.path_quality.enabled());
        Asks {
            look_ahead: p.path_scheduler.looks_ahead(),
            scheduler: p.path_scheduler.remembers(),
            board: published || quality || p.path_scheduler.publishes(),
            published,
            adjust: p.coupling.adjusts(),
            loss_timer: p.loss_timer.enabled(),
            suspects: p.path_state.suspects(),
            quality,
            redundancy: p.redundancy.enabled(),
            early_redundancy: p.redundancy.enabled() && p.redundancy.before_new_data(),
            by_order: p.loss_count.by_send_order(),
            buffer: p.buffer.splits(),
            one_stream: p.stream_scheduler.one_stream_per_packet(),
        }
    }
}
