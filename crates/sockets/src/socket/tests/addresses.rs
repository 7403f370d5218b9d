//! Addresses that come and go while an association lives.

use super::{Host, PORT};
use crate::socket::Style;
use anabranch_base::Duration;
use anabranch_policy::view::PathState;
use std::net::SocketAddr;

/// RFC 5061 §4.2.2: the address that an association began with may go too, though it was the only one and so not listed.
#[test]
fn the_only_address_goes_when_another_has_come() {
    for (who, old, new) in [(0, 1, 2), (1, 3, 4)] {
        let mut h = Host::new(&[("addip_enable", "1"), ("auth_enable", "1")]);
        let at = |last: u8, port: u16| SocketAddr::from(([10, 0, 0, last], port));
        let (client, server) = (h.stack.socket(Style::OneToOne, false), h.stack.socket(Style::OneToOne, false));
        h.stack.bind_more(h.now, client, &[at(1, 0)]).expect("bound");
        h.stack.bind_more(h.now, server, &[at(3, PORT)]).expect("bound");
        h.stack.listen(h.now, server, 5).expect("listens");
        h.stack.connect(h.now, client, &[at(3, PORT)]).expect("begins");
        h.pass(Duration::from_secs(5));
        let server = h.stack.accept(server).expect("it waits").0;
        let ends = [client, server];
        h.stack.bind_more(h.now, ends[who], &[at(new, 0)]).expect("added");
        h.stack.settle(h.now);
        h.pass(Duration::from_secs(5));
        h.stack.unbind(h.now, ends[who], &[at(old, 0)]).expect("taken off");
        h.stack.settle(h.now);
        h.pass(Duration::from_secs(5));
        let a = ends.map(|id| h.stack.get(id).expect("it is there").associations[0]);
        let remotes = |h: &Host, a| {
            let paths = h.stack.engine(a).expect("it lives").paths();
            let used = paths.filter(|(_, p)| p.state == PathState::Active);
            used.map(|(_, p)| p.remote.ip().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(remotes(&h, a[1 - who]), [format!("10.0.0.{new}")], "the peer knows");
    }
}
