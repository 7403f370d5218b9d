//! Requests and wishes that wait, without a peer.

use super::*;
use anabranch_base::Duration;

fn add(outgoing: u16, incoming: u16) -> Wish {
    Wish::Add { outgoing, incoming }
}

fn under_way(wish: Wish, deadline: Instant) -> Option<Box<Request>> {
    let (params, open, path, in_vain) = (Bytes::new(), vec![1], PathId(0), InVain::default());
    let (last_tsn, sent, attempts, in_progress, refused) = (0, deadline, 0, false, 0);
    let r = Request { wish, params, open, last_tsn, sent, deadline, attempts, path, in_progress, refused, in_vain };
    Some(Box::new(r))
}

fn refused(wish: Wish, again: Instant) -> Waiting {
    Waiting { wish, refused: 1, not_before: Some(again) }
}

/// Request numbers are serial numbers (RFC 6525 §4.1).
#[test]
fn numbers_go_on_past_the_largest() {
    let mut s = StreamReset::new(Tsn(u32::MAX));
    assert_eq!([s.number(), s.number(), s.number()], [u32::MAX, 0, 1]);
}

/// Data stops for what is next, not for what waits behind other requests, which may need the data to go on.
#[test]
fn data_stops_when_the_reset_of_tsns_is_next() {
    let mut s = StreamReset::default();
    s.wishes.push_back(add(1, 0).into());
    s.wishes.push_back(Wish::ResetTsns.into());
    assert!(!s.suspends_data());
    s.wishes.pop_front();
    assert!(s.suspends_data());
    s.wishes.clear();
    s.request = under_way(Wish::ResetTsns, Instant::ZERO);
    assert!(s.suspends_data());
    s.request = under_way(add(1, 0), Instant::ZERO);
    assert!(!s.suspends_data());
}

/// One request at a time (RFC 6525 §5.1.1): the pause of a refused one is no deadline while another is under way.
#[test]
fn the_timer_is_that_of_the_request_under_way_and_else_of_the_refused_one() {
    let (asked, again) = (Instant::from_millis(300), Instant::from_millis(200));
    let mut s = StreamReset::default();
    assert_eq!((s.deadline(), s.is_idle()), (None, true));
    s.wishes.push_back(refused(add(1, 0), again));
    assert_eq!((s.deadline(), s.is_idle()), (Some(again), false));
    s.request = under_way(add(0, 1), asked);
    assert_eq!(s.deadline(), Some(asked));
    s.request = None;
    s.end_pause();
    assert_eq!(s.deadline(), None);
    assert!(!s.wishes[0].is_early(Instant::ZERO));
}

/// A peer that refuses us because it waits for our answer has to get it.
#[test]
fn what_was_refused_does_not_hold_up_what_the_peer_asks_for() {
    let mut s = StreamReset::default();
    assert!(s.may_ask_for_peer() && !s.adds_wait());
    s.wishes.push_back(refused(add(1, 0), Instant::ZERO + Duration::from_secs(1)));
    assert!(s.may_ask_for_peer() && s.adds_wait());
    s.wishes.push_front(Wish::ResetTsns.into());
    assert!(!s.may_ask_for_peer());
    s.wishes.clear();
    s.request = under_way(Wish::ResetTsns, Instant::ZERO);
    assert!(!s.may_ask_for_peer());
}
