//! What becomes of associations that do not come up.

use super::{Host, PORT, ip};
use crate::socket::{Errno, Style};
use anabranch_base::Duration;
use std::net::SocketAddr;

#[test]
fn each_association_that_does_not_come_up_has_its_own_reason() {
    let mut h = Host::new(&[]);
    h.cut = Some(ip("10.0.0.3"));
    let clients = [h.stack.socket(Style::OneToMany, false), h.stack.socket(Style::OneToMany, false)];
    let mut all = Vec::new();
    for client in clients {
        for port in [PORT, PORT + 1] {
            let a = h.stack.connect(h.now, client, &[SocketAddr::new(ip("10.0.0.3"), port)]).expect("begins");
            all.push((client, a));
        }
    }
    h.pass(Duration::from_secs(1_000));
    for (client, a) in all {
        assert_eq!(h.stack.connecting(client, a), Err(Errno::TIMED_OUT));
    }
}
