//! The adaptation layer that a peer names in the handshake (RFC 5061 §4.2.6).

use crate::common::*;
use anabranch_engine::Event;

/// Each side hears what the other said, and nothing where nothing was said (RFC 5061 §4.2.6).
#[test]
fn adaptation_layers_are_reported_once_the_association_is_up() {
    for (ours, theirs) in [(Some(7), Some(9)), (Some(7), None), (None, Some(0)), (None, None)] {
        let with = |adaptation| changed(assoc_config("sctp"), |c| c.extensions.adaptation = adaptation);
        let b = Bench::connected_pair(3, &with(ours), &with(theirs), &[(link(10, 20), link(10, 20))]);
        for (events, codes) in [(&b.client_events, theirs), (&b.server_events, ours)] {
            let up = events.iter().position(|e| *e == Event::Connected).expect("up");
            let list: Vec<_> =
                events.iter().enumerate().filter(|(_, e)| matches!(e, Event::Adaptation { .. })).collect();
            let wanted: Vec<_> = codes.iter().map(|code| (up + 1, Event::Adaptation { code: *code })).collect();
            assert_eq!(list, wanted.iter().map(|(i, e)| (*i, e)).collect::<Vec<_>>());
        }
    }
}
