//! With many flows, a packet costs mostly the wait for memory, unless the memory is asked for before its time comes.

use super::packet::Parcel;
use super::{End, LinkId, Network};
use crate::fetch::fetch;

/// So many agents and what belongs to them stay in the cache.
pub(super) const FEW_AGENTS: usize = 64;
/// What comes out after so many others is fetched; it takes the time of one or two to be there.
const PACKETS_AHEAD: usize = 2;
/// What is in a row shorter than this came not long ago.
const SHORT_ROW: usize = 6;
/// Lines of an agent, in which most have all that a packet needs.
const AGENT_LINES: usize = 6;
/// Lines of a link.
const LINK_LINES: usize = 2;

impl<X: Clone + Send + 'static> Network<X> {
    /// Has the cache fetch what `parcel`, which has arrived on `id`, and those behind it will need. Changes nothing.
    #[inline]
    pub(super) fn fetch_ahead(&self, id: LinkId, end: End, parcel: &Parcel<X>) {
        let link = &self.links[id.0 as usize].link;
        if link.upcoming(SHORT_ROW).is_none() {
            return;
        }
        if let Some(later) = link.upcoming(PACKETS_AHEAD) {
            later.fetch();
        }
        // Its agent was found when it was the next one itself.
        if let Some(slot) = parcel.packet().and_then(|p| self.agents.get(p.to.0 as usize)) {
            fetch::<AGENT_LINES, _>(slot.agent.as_ref());
        }
        let Some(next) = link.upcoming(0).and_then(Parcel::packet) else { return };
        if let Some(slot) = self.agents.get(next.to.0 as usize) {
            fetch::<1, _>(slot);
        }
        if let End::Router(row) = end {
            // Where it goes on, and where the answer will.
            let ways = [self.routes.onward(row, next.destination), self.routes.first(next.destination)];
            for line in ways.into_iter().flatten().filter_map(|id| self.links.get(id.0 as usize)) {
                fetch::<LINK_LINES, _>(line);
            }
        }
    }
}
