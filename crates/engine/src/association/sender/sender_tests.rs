//! What the sender alone decides, without paths.

use super::*;
use crate::message::SendOptions;
use crate::tx::send_queue::Fragment;
use anabranch_base::{Duration, Mid, Ssn};
use anabranch_policy::registry::Profile;
use bytes::Bytes;

fn sender() -> Sender {
    let config = AssocConfig::new(Profile::named("sctp").expect("a profile"));
    Sender::new(&config, Tsn(1_000))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Gives the next TSN to a message of one piece.
fn append(s: &mut Sender) {
    let (payload, options) = (Bytes::from_static(b"message"), SendOptions::default());
    let (ssn, mid, fsn, message, queued_at) = (Ssn(0), Mid(0), 0, 0, at(0));
    s.board.append(Fragment { payload, options, ssn, mid, fsn, message, queued_at, begin: true, end: true });
}

/// TSNs begin anew only where none is outstanding (RFC 6525 §5.1.4 C2), but streams do at once.
#[test]
fn tsns_begin_anew_only_when_nothing_is_outstanding() {
    let mut s = sender();
    append(&mut s);
    s.forward_timer = Some(at(500));
    assert!(!s.begin_anew(Some(Tsn(7))));
    assert_eq!((s.next_tsn() as u32, s.forward_timer), (1_001, Some(at(500))));

    let mut s = sender();
    (s.forward_sent, s.forward_timer, s.forward_due) = (Some((999, at(0), PathId(0))), Some(at(500)), true);
    assert!(!s.begin_anew(None), "streams alone");
    assert_eq!((s.next_tsn() as u32, s.has_repairs()), (1_000, true));
    assert!(s.begin_anew(Some(Tsn(7))));
    // A FORWARD-TSN about the TSNs before would skip messages of the new ones.
    assert_eq!((s.next_tsn() as u32, s.has_repairs(), s.deadlines()[0].0), (7, false, None));
}

#[test]
fn a_timer_that_expired_is_none_any_more_and_its_work_is_noted() {
    let mut s = sender();
    (s.forward_timer, s.scheduler_wakeup, s.redundancy_wakeup) = (Some(at(10)), Some(at(20)), Some(at(30)));
    s.on_timers(at(9));
    assert!(!s.has_repairs());
    s.on_timers(at(20));
    assert!(s.has_repairs(), "FORWARD-TSN is due");
    let left: Vec<Instant> = s.deadlines().iter().filter_map(|d| d.0).collect();
    assert_eq!(left, [at(30)]);
}

#[test]
fn messages_given_up_are_reported_once() {
    let mut s = sender();
    assert_eq!([0, 3, 3, 5].map(|all| s.newly_abandoned(all)), [None, Some(3), None, Some(2)]);
    // The peer restarted: counts go on, and what the user waits for is not forgotten.
    (s.want_writable, s.refused) = (true, 4_000);
    let mut next = sender();
    next.keep_account(&mut s);
    assert_eq!((next.newly_abandoned(5), next.newly_abandoned(6)), (None, Some(1)));
    assert_eq!((next.want_writable, next.refused), (true, 4_000));
}

/// Numbers of streams have 16 bits.
#[test]
fn streams_added_do_not_go_round() {
    let mut s = sender();
    s.begin(65_000, 100_000, false);
    s.add_streams(1_000);
    assert_eq!(s.streams(), u16::MAX);
}

#[test]
fn lists_are_searched_for_late_messages_at_intervals() {
    let mut s = sender();
    assert!(s.is_sweep_due(at(5)));
    s.swept_ahead = Some(at(5));
    assert!(!s.is_sweep_due(at(5) + (give_up::SWEEP - Duration::from_nanos(1))));
    assert!(s.is_sweep_due(at(5) + give_up::SWEEP));
}
