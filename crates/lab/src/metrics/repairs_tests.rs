use super::*;
use TransmissionCause::{Bundled, First, Reports, Timer};
use anabranch_base::{Duration, Tsn};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn left(r: &mut Repairs, tsn: u32, at: u64, packet: u32, cause: TransmissionCause) {
    r.left(&Departure { tsn, at: ms(at), path: PathId(0), packet, cause, class: 2 });
}

/// Of the first of its windows.
fn all(r: &Repairs) -> Summary {
    r.summary(r.windows[0].0).unwrap()
}

/// Starts just below the wrap of the serial numbers.
const A: u32 = u32::MAX - 1;

/// The first chunk is repaired by its second repetition, the second one needlessly, the third arrives at once.
fn example() -> Repairs {
    example_in(vec![Window::since(ms(5))])
}

fn example_in(windows: Vec<Window>) -> Repairs {
    let mut r = Repairs::new(windows);
    left(&mut r, A, 10, 0, First);
    left(&mut r, A + 1, 20, 1, First);
    left(&mut r, 0, 30, 2, First);
    left(&mut r, A, 100, 3, Reports);
    left(&mut r, A + 1, 100, 3, Bundled);
    left(&mut r, A, 300, 4, Timer);
    for (tsn, packet, at) in [(A + 1, 1, 70), (0, 2, 80), (A + 1, 3, 150), (A, 4, 350)] {
        r.came(tsn, packet, ms(at));
    }
    r
}

#[test]
fn a_delay_belongs_to_the_repetition_that_arrived_first() {
    let s = all(&example());
    let of = |nth| s.delays(Which { nth, ..Which::default() });
    assert_eq!((of(Some(1)).count(), of(Some(2)).count(), of(Some(3)).count()), (0, 1, 0));
    assert_eq!(of(Some(2)).max(), Some(0.34));
    assert_eq!(of(None).count(), 1);
    let of_class = |class| s.delays(Which { class: Some(class), ..Which::default() }).count();
    assert_eq!((of_class(0), of_class(2)), (0, 1));
}

#[test]
fn a_repetition_is_spurious_when_an_earlier_transmission_arrives() {
    let s = all(&example());
    let of = |nth, cause| s.repetitions(Which { nth, cause, class: None });
    assert_eq!(of(None, None), (3, 1));
    assert_eq!((of(Some(1), Some(Reports)), of(Some(1), Some(Bundled))), ((1, 0), (1, 1)));
    assert_eq!((of(Some(2), None), of(None, Some(Timer))), ((1, 0), (1, 0)));
    // An earlier one that arrives after the repetition has arrived makes it spurious all the same.
    let mut r = Repairs::new(vec![Window::since(ms(0))]);
    left(&mut r, 7, 10, 0, First);
    left(&mut r, 7, 20, 1, Timer);
    r.came(7, 1, ms(30));
    r.came(7, 0, ms(40));
    let s = all(&r);
    assert_eq!(s.repetitions(Which::default()), (1, 1));
    assert_eq!(s.delays(Which::default()).max(), Some(0.02));
}

#[test]
fn what_left_before_the_measuring_does_not_count() {
    let after = Window::since(ms(15));
    let s = example_in(vec![Window::since(ms(5)), after]).summary(after).unwrap();
    assert_eq!((s.repetitions(Which::default()), s.delays(Which::default()).count()), ((1, 1), 0));
}

#[test]
fn a_chunk_belongs_to_the_window_in_which_it_first_left() {
    let d = Duration::from_millis;
    // It is repaired long after the first one is over.
    let (first, second) = (Window::new(d(0), d(20), d(400)), Window::new(d(20), d(400), d(400)));
    let r = example_in(vec![first, second]);
    let of = |w| {
        let s = r.summary(w).unwrap();
        (s.repetitions(Which::default()), s.delays(Which::default()).count())
    };
    assert_eq!((of(first), of(second)), (((2, 0), 1), ((1, 1), 0)));
    assert!(r.summary(Window::since(ms(5))).is_none(), "it was not asked for");
}

#[test]
fn a_long_run_is_summed_up_on_the_way() {
    let mut r = Repairs::new(vec![Window::since(Instant::ZERO)]);
    let chunks = 3 * SLACK as u32;
    for n in 0..chunks {
        let at = u64::from(n) * 10;
        left(&mut r, n.wrapping_add(A), at, 2 * n, First);
        if n % 3 == 0 {
            left(&mut r, n.wrapping_add(A), at + 5, 2 * n + 1, Timer);
            r.came(n.wrapping_add(A), 2 * n + 1, ms(at + 9));
        }
    }
    assert!(r.open.len() <= SLACK);
    let s = all(&r);
    let repaired = u64::from(chunks / 3);
    assert_eq!(s.repetitions(Which::default()), (repaired, 0));
    assert_eq!((s.delays(Which::default()).count(), s.delays(Which::default()).max()), (repaired, Some(0.009)));
}

#[test]
fn the_named_cause_stands_beside_the_true_one() {
    let mut r = Repairs::new(vec![Window::since(Instant::ZERO)]);
    for n in 0..6 {
        left(&mut r, n, 10 * u64::from(n), n, First);
    }
    let why = [DropReason::Queue, DropReason::Loss, DropReason::Loss, DropReason::Down];
    why.into_iter().enumerate().for_each(|(n, why)| r.dropped(n as u32, why.into()));
    let named = [Cause::Congestion, Cause::Congestion, Cause::Radio, Cause::PathFailure, Cause::Reordering];
    let lost = |n: u32, cause| LostCopy { tsn: Tsn(n), sent_at: ms(10 * u64::from(n)), path: PathId(0), cause };
    named.into_iter().enumerate().for_each(|(n, c)| r.taken_for_lost(&lost(n as u32, Some(c))));
    r.taken_for_lost(&lost(5, None));
    // Not one of its transmissions.
    r.taken_for_lost(&LostCopy { sent_at: ms(11), ..lost(1, Some(Cause::Radio)) });
    let s = all(&r);
    assert_eq!(s.confused(Truth::Radio, Some(Cause::Congestion)), 1);
    assert_eq!(s.confused(Truth::Radio, Some(Cause::Radio)), 1);
    assert_eq!((s.confused(Truth::Arrived, Some(Cause::Reordering)), s.confused(Truth::Arrived, None)), (1, 1));
    assert_eq!(s.right(), Some(0.8));
    let mut both = s.clone();
    both.merge(&s);
    assert_eq!((both.confused(Truth::Queue, Some(Cause::Congestion)), both.right()), (2, Some(0.8)));
}

#[test]
fn flows_are_summed_up_together() {
    let s = all(&example());
    let mut twice = Summary::empty();
    twice.merge(&s);
    twice.merge(&s);
    assert_eq!(twice.repetitions(Which::default()), (6, 2));
    assert_eq!(twice.delays(Which::default()).mean(), Some(Duration::from_millis(340).as_secs_f64()));
}
