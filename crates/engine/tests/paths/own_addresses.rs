//! Addresses of ours that go and come while something else is asked of the peer (RFC 5061 §5.1, §5.3).

use crate::common::keys::signed;
use crate::common::raw::*;
use crate::common::signed::*;
use crate::common::*;
use anabranch_base::Tsn;
use anabranch_engine::{AddressError, Association, ListedAddress, LocalId};
use anabranch_policy::view::PathState;
use anabranch_wire::{Cause, InitFields, Parameter, Params, kind};
use std::net::IpAddr;

/// The user acts on the association; what leaves waits to be taken.
fn act<T>(s: &mut Signed, f: impl FnOnce(&mut Association, anabranch_base::Instant) -> T) -> T {
    let (now, id) = (s.r.now, s.id);
    let done = f(&mut s.r.endpoint.association_mut(id).expect("alive"), now);
    s.r.drain();
    done
}

/// The only ASCONF among what was sent: where it left from, its serial and its first request.
fn request(sent: &[Sent]) -> (LocalId, u32, Parameter<'static>) {
    let list = asked(sent);
    assert_eq!(list.len(), 1, "{:?}", sent.iter().map(Sent::kinds).collect::<Vec<_>>());
    let first = match Params::new(&list[0].2).iter().next() {
        Some(Ok(Parameter::AsconfAdd { correlation, address })) => add(correlation, address),
        Some(Ok(Parameter::AsconfDelete { correlation, address })) => delete(correlation, address),
        Some(Ok(Parameter::AsconfSetPrimary { correlation, address })) => prefer(correlation, address),
        other => panic!("{other:?}"),
    };
    (list[0].0.local, list[0].1, first)
}

fn refusal(correlation: u32, cause: &Cause<'_>) -> Vec<u8> {
    bytes(&Parameter::AsconfErrorCause { correlation, causes: &bytes(cause) })
}

/// Is anything sent from this side in the next 20 s, while all else is answered?
fn speaks(s: &mut Signed, local: u16) -> bool {
    s.r.run_for(ms(20_000));
    s.r.take().iter().any(|x| x.local == LocalId(local))
}

fn state(s: &Signed, local: u16) -> Option<PathState> {
    let a = s.r.endpoint.association(s.id).expect("alive");
    a.paths().find(|(_, p)| p.local == local).map(|(_, p)| p.state)
}

/// Addresses that the answer to a restarting peer lists.
fn listed_at_restart(s: &mut Signed) -> Vec<IpAddr> {
    let fields = InitFields { initial_tsn: Tsn(500_000), ..init_fields(PEER_TAG + 1) };
    s.r.give_tagged(0, &[&init(fields, &offer(&[]))]);
    let answer = s.r.take_one();
    let (fields, params) = init_of(&answer);
    s.r.tag = fields.tag;
    s.r.echo(&cookie_of(&answer));
    let ip = |p| match p {
        Parameter::Ipv4(ip) => Some(IpAddr::V4(ip)),
        Parameter::Ipv6(ip) => Some(IpAddr::V6(ip)),
        _ => None,
    };
    Params::new(&params).iter().flatten().filter_map(ip).collect()
}

/// The peer is asked to learn an address, which then goes: the request is repeated as it was until it is answered, but
/// from elsewhere, and its answer says nothing of what has gone.
///
/// Shows: ext/G3, ext/G4, ext/G12.
#[test]
fn a_request_whose_address_goes_is_finished_from_another_one() {
    // Has the request left, or does it still wait to?
    for left in [true, false] {
        let mut s = Signed::new(&[]);
        let (first, id) = (s.r.first_tsn.0, s.id);
        let now = s.r.now;
        let mut a = s.r.endpoint.association_mut(id).expect("alive");
        a.interface_down(now, LocalId(1));
        a.interface_up(now, LocalId(1));
        drop(a);
        if left {
            s.r.drain();
            assert_eq!(request(&s.r.take()), (LocalId(1), first, add(first, WILDCARD)));
        }
        assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
        s.r.run_for(ms(5_000));
        let sent = s.r.take();
        assert!(sent.iter().all(|x| x.local == LocalId(0)), "nothing from what is gone");
        let list = asked(&sent);
        assert!(list.len() >= 2, "{}", list.len());
        for one in &list {
            assert_eq!((one.1, Params::new(&one.2).iter().next()), (first, Some(Ok(add(first, WILDCARD)))));
        }
        s.answer_asconf(first, &[]);
        assert_eq!(request(&s.r.take()), (LocalId(0), first + 1, delete(first + 1, ours(1))));
        s.answer_asconf(first + 1, &[]);
        assert!(!speaks(&mut s, 1));
        assert_eq!(state(&s, 1), Some(PathState::Inactive));
    }
}

/// The answer to what was asked before says nothing of what was asked since.
#[test]
fn an_address_that_was_deleted_meanwhile_is_not_used_when_it_is_accepted() {
    let mut s = Signed::new(&[]);
    let first = s.r.first_tsn.0;
    act(&mut s, |a, now| a.add_address(now, LocalId(2), ours(2), peer(1))).expect("taken");
    assert_eq!(request(&s.r.take()).2, add(first, ours(2)));
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(2))), Ok(()));
    s.answer_asconf(first, &[]);
    assert_eq!(request(&s.r.take()).2, delete(first + 1, ours(2)));
    assert!(!speaks(&mut s, 2));
}

#[test]
fn what_is_said_last_of_an_address_counts() {
    let mut s = Signed::new(&[]);
    let first = s.r.first_tsn.0;
    let plus = |s: &mut Signed| act(s, |a, now| a.add_address(now, LocalId(2), ours(2), peer(1))).map(|_| ());
    let minus = |s: &mut Signed| act(s, |a, now| a.delete_address(now, ours(2)));
    act(&mut s, |a, now| a.prefer_address(now, ours(1))).expect("taken");
    assert_eq!(request(&s.r.take()).2, prefer(first, ours(1)));
    for _ in 0..3 {
        assert_eq!(plus(&mut s), Ok(()));
        assert_eq!((minus(&mut s), minus(&mut s)), (Ok(()), Err(AddressError::Unknown)));
    }
    assert_eq!(plus(&mut s), Ok(()));
    // The peer may know it, so that it is not enough to say nothing of the deletion.
    s.answer_asconf(first, &[]);
    assert_eq!(request(&s.r.take()).2, delete(first + 1, ours(2)));
    s.answer_asconf(first + 1, &refusal(first + 1, &Cause::UnresolvableAddress(&[0; 16])));
    assert_eq!(request(&s.r.take()).2, add(first + 2, ours(2)));
    s.answer_asconf(first + 2, &[]);
    let probe = s.r.take().into_iter().find(|x| x.local == LocalId(2)).expect("a probe");
    s.r.answer_heartbeat(&probe);
    assert_eq!(state(&s, 2), Some(PathState::Active));
    // Once more, with the deletion on its way.
    assert_eq!(minus(&mut s), Ok(()));
    assert_eq!(request(&s.r.take()).2, delete(first + 3, ours(2)));
    assert_eq!((plus(&mut s), minus(&mut s), plus(&mut s)), (Ok(()), Ok(()), Ok(())));
    s.answer_asconf(first + 3, &[]);
    let last = s.r.take();
    assert_eq!(request(&last).2, add(first + 4, ours(2)));
    assert!(last.iter().all(|x| x.local != LocalId(2)));
    s.answer_asconf(first + 4, &[]);
    assert!(s.r.take().iter().any(|x| x.local == LocalId(2) && x.kinds() == [kind::HEARTBEAT]), "confirmed again");
}

/// A peer that has no such address has done what was asked.
#[test]
fn an_address_that_the_peer_does_not_know_is_gone() {
    for (cause, stays) in [(Cause::UnresolvableAddress(&[0; 16]), false), (Cause::ResourceShortage(&[0; 16]), true)] {
        let mut s = Signed::new(&[]);
        let first = s.r.first_tsn.0;
        assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
        s.r.take();
        s.answer_asconf(first, &refusal(first, &cause));
        assert_eq!(s.r.take().iter().any(|x| x.local == LocalId(1)), stays, "{cause}");
        let again = act(&mut s, |a, now| a.delete_address(now, ours(1)));
        assert_eq!(again, if stays { Ok(()) } else { Err(AddressError::Unknown) }, "{cause}");
    }
}

/// Neither when the interface comes back nor when the peer does; but other peers learn of it, as configured.
#[test]
fn what_is_deleted_stays_away() {
    let mut s = Signed::new(&[]);
    let first = s.r.first_tsn.0;
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
    s.answer_asconf(first, &[]);
    s.r.take();
    act(&mut s, |a, now| {
        a.interface_down(now, LocalId(1));
        a.interface_up(now, LocalId(1));
    });
    assert!(!speaks(&mut s, 1), "the interface is not the address");
    assert_eq!(listed_at_restart(&mut s), [ours(0)]);
    assert!(!speaks(&mut s, 1), "the peer has not heard of it");
    // Another peer begins an association.
    s.r.from = peer(77);
    s.r.give_tagged(0, &[&init(init_fields(PEER_TAG + 7), &offer(&[]))]);
    let params = init_of(&s.r.take_one()).1;
    let lists = |ip| Params::new(&params).iter().flatten().any(|p| p == Parameter::from(ip));
    assert!(lists(ours(0)) && lists(ours(1)));
}

/// One that was learnt after the handshake is not learnt again from a peer that restarts.
#[test]
fn a_learnt_address_that_was_deleted_does_not_come_back_with_the_peer() {
    let mut s = Signed::new(&[]);
    let first = s.r.first_tsn.0;
    act(&mut s, |a, now| a.add_path(now, LocalId(2), peer(1))).expect("room");
    assert_eq!(request(&s.r.take()), (LocalId(2), first, add(first, WILDCARD)));
    s.answer_asconf(first, &[]);
    let probe = s.r.take().into_iter().find(|x| x.local == LocalId(2)).expect("a probe");
    s.r.answer_heartbeat(&probe);
    act(&mut s, |a, _| a.name_address(LocalId(2), ours(2)));
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(2))), Ok(()));
    s.answer_asconf(first + 1, &[]);
    s.r.take();
    assert_eq!(listed_at_restart(&mut s), [ours(0), ours(1)]);
    assert!(!speaks(&mut s, 2));
}

/// The user takes back what the peer does not know yet.
#[test]
fn a_path_from_an_address_that_was_to_go_keeps_it() {
    let mut s = Signed::new(&[]);
    let first = s.r.first_tsn.0;
    act(&mut s, |a, now| a.prefer_address(now, ours(0))).expect("taken");
    s.r.take();
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
    act(&mut s, |a, now| a.add_path(now, LocalId(1), peer(1))).expect("known");
    s.answer_asconf(first, &[]);
    assert_eq!(request(&s.r.take()), (LocalId(1), first + 1, add(first + 1, WILDCARD)));
    s.answer_asconf(first + 1, &[]);
    let sent = s.r.take();
    assert!(asked(&sent).is_empty(), "it is not deleted after all");
    s.r.answer_heartbeat(sent.iter().find(|x| x.local == LocalId(1)).expect("a probe"));
    assert_eq!(state(&s, 1), Some(PathState::Active));
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
}

/// An address that moved to another interface is that one's.
#[test]
fn an_address_is_where_it_was_named_last() {
    let mut s = Signed::new(&[]);
    act(&mut s, |a, now| {
        a.name_address(LocalId(1), ours(0));
        a.delete_address(now, ours(0)).expect("one stays");
    });
    assert_eq!((state(&s, 0), state(&s, 1)), (Some(PathState::Active), Some(PathState::Inactive)));
}

/// The peer adds an address in a packet to one of ours that goes: its path is from one that stays.
#[test]
fn what_the_peer_adds_is_not_reached_from_what_goes() {
    for source in [peer(1), peer(5)] {
        let mut s = Signed::new(&[]);
        assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Ok(()));
        s.r.take();
        let chunk = s.chunk(s.serial, &[add(1, source.ip())]);
        let packet = signed(0, &s.key, &[&chunk]);
        let tag = s.r.tag;
        s.r.give_to(LocalId(1), source, tag, &[&packet]);
        let sent = s.r.take();
        assert_eq!(answers(&sent), [(1, None)]);
        assert!(sent.iter().all(|x| x.local == LocalId(0) || x.kinds().contains(&kind::ASCONF_ACK)));
        s.r.run_for(ms(5_000));
        assert!(s.r.take().iter().all(|x| x.local == LocalId(0)), "{source}");
    }
}

/// What finds no room is refused, and not forgotten.
#[test]
fn too_many_wishes_are_refused() {
    let addresses = (0..40).map(|i| ListedAddress { local: LocalId(i), ip: ours(i) }).collect();
    let mut s = Signed::with(&changed(assoc_config("sctp"), |c| c.addresses.listed = addresses), &[]);
    let taken = (0..40).take_while(|i| act(&mut s, |a, now| a.prefer_address(now, ours(*i))).is_ok()).count();
    assert_eq!(taken, 33, "one that is asked, and 32 that wait");
    let more = act(&mut s, |a, now| a.add_address(now, LocalId(50), ours(50), peer(1)));
    assert_eq!(more, Err(AddressError::NoRoom));
    assert_eq!(act(&mut s, |a, now| a.delete_address(now, ours(1))), Err(AddressError::NoRoom));
}

/// A path whose number is taken over by another one waits no longer to be learnt under it: that one is unconfirmed.
#[test]
fn a_request_does_not_move_to_the_path_that_takes_the_number() {
    let addresses = (0..2).map(|i| ListedAddress { local: LocalId(i), ip: ours(i) }).collect();
    let mut s = Signed::with(
        &changed(assoc_config("sctp"), |c| {
            c.addresses.listed = addresses;
            c.limits.max_paths = 2;
        }),
        &[],
    );
    act(&mut s, |a, now| {
        a.interface_down(now, LocalId(1));
        a.interface_up(now, LocalId(1));
    });
    assert_eq!(request(&s.r.take()).0, LocalId(1));
    assert_eq!(answers(&s.ask(1, &[add(1, peer(5).ip())])), [(1, None)]);
    assert!(s.paths().iter().any(|p| p.0 == peer(5).ip()), "in place of the one that waits");
    s.r.run_for(ms(5_000));
    let list = asked(&s.r.take());
    assert!(!list.is_empty() && list.iter().all(|a| a.0.remote == peer(1)), "{list:?}");
}
