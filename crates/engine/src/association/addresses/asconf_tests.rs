//! Wishes about addresses: which of them are asked for, without a peer.

use super::*;

fn ip(n: u8) -> IpAddr {
    [192, 0, 2, n].into()
}

fn listed(local: u16, n: u8) -> ListedAddress {
    ListedAddress { local: LocalId(local), ip: ip(n) }
}

fn under_way(ask: Ask, from: u8) -> Option<Box<Request>> {
    let (sent, deadline) = (Instant::ZERO, Instant::ZERO);
    let (serial, params, attempts) = (1, Bytes::new(), 1);
    Some(Box::new(Request {
        ask,
        serial,
        params,
        sent,
        deadline,
        attempts,
        from: Some(PathId(from)),
        ambiguous: false,
    }))
}

fn waiting(a: &Addresses) -> Vec<Ask> {
    a.asks.iter().copied().collect()
}

#[test]
fn the_last_word_about_an_address_counts() {
    let mut a = Addresses::new(1);
    for ask in [Ask::Add(ip(1)), Ask::Add(ip(2)), Ask::Delete(ip(1)), Ask::Delete(ip(1))] {
        a.note(ask);
    }
    // It is deleted all the same: the peer may know it from before.
    assert_eq!(waiting(&a), [Ask::Add(ip(2)), Ask::Delete(ip(1))]);
    a.note(Ask::Add(ip(1)));
    assert_eq!(waiting(&a), [Ask::Add(ip(2)), Ask::Delete(ip(1)), Ask::Add(ip(1))]);
}

#[test]
fn what_is_under_way_is_not_asked_for_again_unless_the_contrary_was() {
    let mut a = Addresses::new(1);
    a.request = under_way(Ask::Add(ip(1)), 0);
    a.note(Ask::Add(ip(1)));
    assert_eq!(waiting(&a), []);
    a.note(Ask::Delete(ip(1)));
    a.note(Ask::Add(ip(1)));
    assert_eq!(waiting(&a), [Ask::Delete(ip(1)), Ask::Add(ip(1))]);
}

#[test]
fn wishes_that_wait_are_bounded() {
    let mut a = Addresses::new(1);
    for n in 0..=255 {
        a.note(Ask::Add(ip(n)));
        a.note(Ask::Prefer(ip(0)));
    }
    assert_eq!(a.asks.len(), MAX_ASKS);
    assert!(!a.has_room());
    assert_eq!(a.asks.iter().filter(|ask| **ask == Ask::Prefer(ip(0))).count(), 1);
}

#[test]
fn an_interface_that_comes_back_takes_its_unasked_farewell_back() {
    let mut a = Addresses::new(1);
    for (local, n) in [(0, 1), (0, 2), (1, 3)] {
        a.leaves(listed(local, n));
    }
    // The first is under way already: the peer may have carried it out.
    a.request = under_way(Ask::Delete(ip(1)), 0);
    a.note(Ask::Delete(ip(2)));
    a.note(Ask::Delete(ip(3)));
    assert_eq!(a.keeps(LocalId(0)), [listed(0, 2)]);
    assert_eq!(waiting(&a), [Ask::Delete(ip(3))]);
    assert_eq!(a.leaving, [listed(0, 1), listed(1, 3)]);
}

/// Or the answer would be taken for one about another path with the number of the former.
#[test]
fn an_answer_says_nothing_of_a_path_that_is_gone() {
    let mut a = Addresses::new(1);
    a.wanted = vec![PathId(1), PathId(2)];
    a.request = under_way(Ask::Learn, 2);
    a.forget_path(PathId(1));
    let from = |a: &Addresses| a.request.as_ref().map(|r| (r.from, r.ambiguous));
    assert_eq!((a.wants(PathId(1)), from(&a)), (false, Some((Some(PathId(2)), false))));
    a.forget_path(PathId(2));
    assert_eq!((a.wants(PathId(2)), from(&a)), (false, Some((None, true))));
}
