//! With many flows, a packet costs mostly the wait for memory, unless the memory is asked for before its time comes.

use super::packet::Parcel;
use super::routes::Row;
use super::{LinkId, Network};
use crate::fetch::fetch;

/// So many agents and what belongs to them stay in the cache.
pub(super) const FEW_AGENTS: usize = 64;
/// So many packets ahead the entries of a row are fetched,
const ROW_AHEAD: usize = 6;
/// and the packets themselves, for which the entry is read.
const PACKET_AHEAD: usize = 2;

impl<X: Clone + Send + 'static> Network<X> {
    /// Has the cache fetch what the packets behind the one that arrives on `id` will need. Changes nothing.
    #[inline]
    pub(super) fn fetch_ahead(&self, id: LinkId, row: Option<Row>) {
        let link = &self.links[id.0 as usize].link;
        if !link.fetch_row(ROW_AHEAD) {
            return; // What is in a short row came not long ago.
        }
        if let Some(parcel) = link.upcoming(PACKET_AHEAD) {
            parcel.fetch();
        }
        let Some(packet) = link.upcoming(0).and_then(Parcel::packet) else { return };
        match row.and_then(|row| self.routes.onward(row, packet.destination)) {
            Some(next) => {
                let Some(line) = self.links.get(next.0 as usize) else { return };
                fetch(&line.wake);
                line.link.fetch();
            }
            None => {
                if let Some(slot) = self.agents.get(packet.to.0 as usize) {
                    fetch(slot);
                }
            }
        }
    }
}
