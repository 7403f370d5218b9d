//! Messages in, pieces out.

use super::*;
use anabranch_policy::stream_scheduler::Place;

struct First;
impl StreamScheduler for First {
    fn place(&mut self, first: &StreamView, _: Option<Place>) -> Place {
        Place(0, first.head_order)
    }
}
fn opts(stream: u16) -> SendOptions {
    SendOptions { stream: StreamId(stream), ..SendOptions::default() }
}
fn next(q: &mut SendQueue, max: usize, expired: impl Fn(u64) -> bool) -> (Option<Fragment>, u64) {
    let mut piece = None;
    let (any, given_up) = q.next(max, &mut First, |_, m, _, _| expired(m), |f| piece = Some(f));
    assert_eq!(any, piece.is_some());
    (piece, given_up)
}
fn drain(q: &mut SendQueue, max: usize) -> Vec<(u16, u16, usize, bool, bool)> {
    let mut out = vec![];
    while let (Some(f), _) = next(q, max, |_| false) {
        out.push((f.options.stream.0, f.ssn.0, f.payload.len(), f.begin, f.end));
    }
    out
}

#[test]
fn fragments_stay_together_and_ssns_count_per_stream() {
    let mut q = SendQueue::default();
    q.push(Instant::ZERO, opts(1), Bytes::from(vec![0; 250]));
    q.push(Instant::ZERO, opts(2), Bytes::from(vec![0; 10]));
    q.push(Instant::ZERO, opts(1), Bytes::from(vec![0; 10]));
    assert_eq!(q.bytes(), 270);
    assert_eq!(
        drain(&mut q, 100),
        [
            (1, 0, 100, true, false),
            (1, 0, 100, false, false),
            (1, 0, 50, false, true),
            (2, 0, 10, true, true),
            (1, 1, 10, true, true)
        ]
    );
    assert!(q.is_empty() && q.bytes() == 0);
}

#[test]
fn an_expired_message_takes_no_ssn() {
    let mut q = SendQueue::default();
    for _ in 0..3 {
        q.push(Instant::ZERO, opts(0), Bytes::from_static(b"x"));
    }
    let (f, n) = next(&mut q, 100, |m| m < 2);
    assert_eq!((f.map(|f| (f.ssn, f.message)), n), (Some((Ssn(0), 2)), 2));
    assert!(q.is_empty());
}

#[test]
fn what_is_discarded_leaves_other_streams_and_what_is_being_cut_alone() {
    let mut q = SendQueue::default();
    for stream in [1, 2, 1, 1] {
        q.push(Instant::ZERO, opts(stream), Bytes::from(vec![0; 150]));
    }
    let (f, _) = next(&mut q, 100, |_| false);
    assert!(f.is_some_and(|f| f.begin && f.options.stream.0 == 1));
    let mut dropped = 0;
    q.discard(StreamId(1), &mut |_, bytes| dropped += bytes);
    q.discard(StreamId(7), &mut |_, _| unreachable!("nothing is there"));
    assert_eq!((dropped, q.bytes(), q.waiting()), (300, 200, 1));
    assert_eq!(drain(&mut q, 200), [(1, 0, 50, false, true), (2, 0, 150, true, true)]);
    // The stream goes on with the next number.
    q.push(Instant::ZERO, opts(1), Bytes::from_static(b"x"));
    assert_eq!(drain(&mut q, 200), [(1, 1, 1, true, true)]);
}

#[test]
fn the_rest_of_a_given_up_message_is_dropped() {
    let mut q = SendQueue::default();
    q.push(Instant::ZERO, opts(0), Bytes::from(vec![0; 250]));
    let (f, _) = next(&mut q, 100, |_| false);
    assert!(f.is_some_and(|f| f.begin));
    q.drop_rest_of(0, 0);
    assert!(q.is_empty() && q.bytes() == 0);
}
