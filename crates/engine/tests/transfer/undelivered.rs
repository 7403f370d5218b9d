//! Messages that did not arrive, given back (RFC 9260 §11.1 G and H).

use crate::common::raw::{self, PEER_TAG, Raw, sack};
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocConfig, AssocId, SendOptions, Undelivered};
use anabranch_wire::Parameter;

fn accepted(config: &AssocConfig) -> (Raw, AssocId) {
    let mut r = Raw::with(config, |_| {});
    r.handshake(PEER_TAG, &raw::bytes(&Parameter::ForwardTsnSupported));
    let id = r.only();
    r.take();
    (r, id)
}

fn send(r: &mut Raw, id: AssocId, stream: u16, life: Option<u64>, payload: Vec<u8>) {
    let now = r.now;
    let stream = StreamId(stream);
    let options = SendOptions { stream, ppid: 7, deadline: life.map(|l| now + ms(l)), ..SendOptions::default() };
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, options, payload.into()).expect("taken");
    drop(a);
    r.drain();
}

fn parts(all: Vec<Undelivered>) -> Vec<(u64, u16, bool, Vec<u8>)> {
    all.into_iter().map(|m| (m.number, m.stream.0, m.sent, m.payload.into_bytes().to_vec())).collect()
}

#[test]
fn what_is_neither_acknowledged_nor_given_up_comes_back_whole() {
    let (mut r, id) = accepted(&assoc_config("sctp"));
    // The first is acknowledged; the second is half out when the window is full; the last never leaves.
    send(&mut r, id, 0, None, vec![1; 100]);
    let chunk = sack(r.first_tsn);
    r.give(&[&chunk]);
    let long: Vec<u8> = (0..60_000u32).map(|i| i as u8).collect();
    send(&mut r, id, 1, None, long.clone());
    send(&mut r, id, 2, None, vec![3; 50]);
    let a = r.endpoint.association(id).expect("alive");
    assert_eq!(parts(a.undelivered()), [(1, 1, true, long), (2, 2, false, vec![3; 50])]);
}

#[test]
fn what_was_given_up_is_kept_for_who_asks_for_it() {
    for asks in [true, false] {
        let config = changed(assoc_config("sctp"), |c| c.messages.return_given_up = asks);
        let (mut r, id) = accepted(&config);
        send(&mut r, id, 0, Some(100), vec![1; 900]);
        send(&mut r, id, 0, None, vec![2; 900]);
        r.take();
        r.run_for(ms(4_000));
        let mut a = r.endpoint.association_mut(id).expect("alive");
        let kept = parts(a.take_given_up());
        let expected = if asks { vec![(0, 0, true, vec![1; 900])] } else { vec![] };
        assert_eq!(kept, expected);
        assert_eq!(a.take_given_up(), [], "once");
        assert_eq!(parts(a.undelivered()), [(1, 0, true, vec![2; 900])]);
    }
}
