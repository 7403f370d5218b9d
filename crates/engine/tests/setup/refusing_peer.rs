//! A peer whose buffer is full takes the next TSN it waits for and drops all others: the lowest missing one has to
//! leave first, whether it ever left or not, or a higher one is repeated for ever.

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{PathId, Tsn};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::path_scheduler::{Decision, LookAhead, PathScheduler};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::{AssocView, QueueView};
use anabranch_wire::{Chunk, SackOut, kind};
use bytes::Bytes;

/// Sends what has the highest TSN of all it sees.
struct HighestFirst {
    look_ahead: u64,
}

impl PathScheduler for HighestFirst {
    fn look_ahead(&self, _: &AssocView<'_>) -> LookAhead {
        LookAhead { bytes: self.look_ahead, when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        Decision::Send { index: q.chunks.len() - 1, path: cx.eligible.iter().next().unwrap_or(PathId(0)) }
    }
}

/// Messages of `len` bytes to a peer that takes TSNs in order only and announces `a_rwnd`; how long until it has all.
fn deliver(config: &AssocConfig, look_ahead: u64, len: usize, a_rwnd: u32, messages: u32) -> Option<u64> {
    let mut r = Raw::with(config, |e| e.accept = false);
    let mut policies = config.profile.build(1).expect("policies");
    policies.path_scheduler = Box::new(HighestFirst { look_ahead });
    let id = r.endpoint.connect_with(r.now, config.clone(), policies, r.to, r.from, PEER_PORT);
    r.drain();
    let first = r.take_one();
    r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    let now = r.now;
    for _ in 0..messages {
        let mut a = r.endpoint.association_mut(id).expect("alive");
        a.send(now, SendOptions::default(), Bytes::from(vec![1; len])).expect("taken");
    }
    r.drain();
    let (began, mut cum, last) = (r.now, r.first_tsn.minus(1), r.first_tsn.plus(messages - 1));
    while r.now.since(began) < ms(1_800_000) {
        let mut any = false;
        let mut arrived: Vec<Tsn> = vec![];
        for s in r.take() {
            let data = s.chunks().into_iter().filter_map(|c| match c {
                Chunk::Data(d) => Some(d.header.tsn),
                _ => None,
            });
            arrived.extend(data);
            if s.kinds().contains(&kind::HEARTBEAT) {
                r.answer_heartbeat(&s);
            }
        }
        for tsn in arrived {
            any = true;
            if tsn == cum.next() {
                cum = tsn;
            }
        }
        if cum == last {
            return Some(r.now.since(began).as_millis());
        }
        if any {
            r.give(&[&bytes(&SackOut { cum_tsn: cum, a_rwnd, gaps: &[], duplicates: &[] })]);
        } else {
            r.run_for(ms(100));
        }
    }
    None
}

#[test]
fn the_lowest_missing_tsn_leaves_first() {
    for order in Hook::RetransmissionOrder.policies() {
        for again in Hook::Retransmission.policies() {
            for (a_rwnd, look_ahead, len) in [
                (100_000, 5_000, 500),
                (100_000, 1_500, 1_172),
                (1_400, 4_000, 500),
                (400, 20_000, 500),
                (0, 5_000, 50),
            ] {
                let mut config = assoc_config("cmt");
                config.failure.max_association_retrans = 1_000;
                config.profile.set(Hook::RetransmissionOrder, order.name).expect("a policy");
                config.profile.set(Hook::Retransmission, again.name).expect("a policy");
                let took = deliver(&config, look_ahead, len, a_rwnd, 12);
                assert!(took.is_some(), "{} {}: a window of {a_rwnd}, {len} bytes each", order.name, again.name);
            }
        }
    }
}
