use super::super::tsn_tracker::{Received, TsnTracker};
use super::*;
use anabranch_base::RandomStream;
use anabranch_wire::DataFlags;
use proptest::prelude::*;

/// First extended TSN in the tests that do not use the tracker.
pub(super) const T0: u64 = 1 << 32;

fn flags(spec: &str) -> DataFlags {
    let has = |c| spec.contains(c);
    DataFlags { immediate: false, unordered: has('U'), begin: has('B'), end: has('E') }
}

fn header(tsn: u64, stream: u16, ssn: u16, spec: &str) -> DataHeader {
    DataHeader { tsn: Tsn(tsn as u32), stream: StreamId(stream), ssn: Ssn(ssn), ppid: 7, flags: flags(spec) }
}

/// Inserts a chunk whose payload is its offset from `T0` as text.
pub(super) fn put(r: &mut Reassembly, at: u64, stream: u16, ssn: u16, spec: &str) -> Result<(), Violation> {
    r.insert(T0 + at, &header(T0 + at, stream, ssn, spec), Bytes::from(format!("{at}.")))
}

fn texts(r: &mut Reassembly) -> Vec<String> {
    let all = std::iter::from_fn(|| r.pop());
    all.map(|m| String::from_utf8(m.payload.into_bytes().to_vec()).unwrap()).collect()
}

#[test]
fn whole_messages_in_sequence_touch_no_map() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    put(&mut r, 0, 1, 0, "BE").unwrap();
    put(&mut r, 1, 1, 1, "BE").unwrap();
    put(&mut r, 9, 1, 999, "UBE").unwrap();
    assert!(r.waiting.is_empty() && r.runs.is_empty());
    assert_eq!((r.ready_len(), r.held_bytes()), (3, 6 + 3 * CHUNK_CHARGE));
    let m = r.pop().unwrap();
    assert_eq!((m.stream, m.ssn, m.ppid), (StreamId(1), Some(Ssn(0)), 7));
    r.pop();
    assert_eq!(r.pop().unwrap().ssn, None);
    assert_eq!((r.pop(), r.ready_len(), r.held_bytes()), (None, 0, 0));
}

/// Shows: 9260/D12.
#[test]
fn streams_wait_only_for_themselves() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    put(&mut r, 1, 0, 1, "BE").unwrap();
    put(&mut r, 3, 0, 2, "BE").unwrap();
    assert_eq!(r.ready_len(), 0);
    put(&mut r, 2, 3, 0, "BE").unwrap();
    assert_eq!(texts(&mut r), ["2."]);
    put(&mut r, 0, 0, 0, "BE").unwrap();
    assert_eq!(texts(&mut r), ["0.", "1.", "3."]);
    assert_eq!(r.held_bytes(), 0);
}

#[test]
fn ssn_wraps() {
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    for n in 0..65_535u64 {
        put(&mut r, n, 0, n as u16, "BE").unwrap();
        r.pop().unwrap();
    }
    put(&mut r, 65_537, 0, 1, "BE").unwrap();
    put(&mut r, 65_536, 0, 0, "BE").unwrap();
    assert_eq!(r.ready_len(), 0);
    put(&mut r, 65_535, 0, 65_535, "BE").unwrap();
    assert_eq!(texts(&mut r), ["65535.", "65536.", "65537."]);
}

/// Shows: 9260/D13.
#[test]
fn fragments_join_in_every_order() {
    let specs = ["B", "", "", "E"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1], [0, 3, 1, 2]] {
        let mut r = Reassembly::new(1, CHUNK_CHARGE);
        for i in order {
            assert_eq!(r.ready_len(), 0);
            put(&mut r, i, 0, 0, specs[i as usize]).unwrap();
        }
        assert_eq!(r.pop().unwrap().payload.pieces().count(), 4);
        assert_eq!(r.held_bytes(), 0);
    }
}

#[test]
fn the_ppid_is_the_first_fragments() {
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    r.insert(T0 + 1, &DataHeader { ppid: 99, ..header(T0 + 1, 0, 0, "E") }, Bytes::from("b")).unwrap();
    put(&mut r, 0, 0, 0, "B").unwrap();
    assert_eq!(r.pop().unwrap().ppid, 7);
}

#[test]
fn it_knows_what_its_streams_wait_for() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    put(&mut r, 0, 2, 0, "BE").unwrap();
    let next = |stream, ssn, spec| r.is_next(&header(T0 + 1, stream, ssn, spec));
    assert!(next(2, 1, "BE") && next(3, 0, "BE") && next(2, 9, "UBE") && next(2, 1, "B"));
    assert!(!next(2, 2, "BE") && !next(2, 0, "BE"));
}

#[test]
fn what_has_to_wait_shares_memory_with_nothing() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    let payload = [7; 1_000];
    let mut copy = |ssn, spec, in_turn| {
        let c = r.copy(&header(T0 + 1, 2, ssn, spec), &payload, in_turn);
        assert_eq!(c, payload[..]);
        c
    };
    let neighbours = |a: &Bytes, b: &Bytes| a.as_ptr().wrapping_add(a.len()) == b.as_ptr();
    let (first, second) = (copy(0, "B", true), copy(0, "", true));
    let (behind_a_hole, of_a_later_message) = (copy(0, "", false), copy(1, "B", true));
    let lone_message = copy(0, "BE", true);
    let third = copy(0, "E", true);
    assert!(neighbours(&first, &second) && neighbours(&second, &third));
    for own in [&behind_a_hole, &of_a_later_message, &lone_message] {
        assert!(own.is_unique());
    }
}

#[test]
fn violations_from_either_side() {
    use Violation::*;
    let at = |n: u64| Tsn((T0 + n) as u32);
    // First two chunks at 10 and 11 in both orders: the second to come shows the violation.
    type Case = (&'static str, &'static str, u16, u16, fn(Tsn) -> Violation);
    let cases: [Case; 7] = [
        ("B", "B", 0, 1, |tsn| BeginInside { tsn }),
        ("", "BE", 0, 0, |tsn| BeginInside { tsn }),
        ("E", "", 0, 0, |tsn| NoBegin { tsn }),
        ("E", "E", 0, 0, |tsn| NoBegin { tsn }),
        ("BE", "E", 0, 0, |tsn| NoBegin { tsn }),
        ("B", "E", 1, 0, |tsn| Mismatch { tsn }),
        ("B", "UE", 0, 0, |tsn| Mismatch { tsn }),
    ];
    for (first, second, stream, ssn, violation) in cases {
        let mut r = Reassembly::new(2, CHUNK_CHARGE);
        put(&mut r, 10, 0, 0, first).unwrap();
        assert_eq!(put(&mut r, 11, stream, ssn, second), Err(violation(at(11))), "{first} {second}");
        if second == "BE" {
            continue; // delivered before the other came: left to check_cum
        }
        let mut r = Reassembly::new(2, CHUNK_CHARGE);
        put(&mut r, 11, stream, ssn, second).unwrap();
        assert_eq!(put(&mut r, 10, 0, 0, first), Err(violation(at(10))), "{second} before {first}");
    }
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 0, 0, 5, "B").unwrap();
    assert_eq!(put(&mut r, 1, 0, 6, "E"), Err(Mismatch { tsn: at(1) }));
    assert_eq!(put(&mut r, 7, 1, 0, "BE"), Err(NoSuchStream { stream: StreamId(1) }));
    // Unordered fragments carry any SSN.
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 0, 0, 5, "UB").unwrap();
    put(&mut r, 1, 0, 6, "UE").unwrap();
    assert_eq!(texts(&mut r), ["0.1."]);
}

/// As Linux and dcsctp send it: no last fragment, and the first of another message behind. In every order.
#[test]
fn a_message_given_up_half_sent_is_dropped_when_the_peer_may_give_up() {
    let chunks = [(10, 0, "UB"), (11, 0, "U"), (12, 0, "UB"), (13, 0, "UE"), (14, 0, "UBE"), (9, 0, "UBE")];
    let mut orders = vec![vec![]];
    for n in 0..chunks.len() {
        let more = |o: Vec<usize>| (0..=n).map(move |at| [&o[..at], &[n], &o[at..]].concat());
        orders = orders.into_iter().flat_map(more).collect();
    }
    assert_eq!(orders.len(), 720);
    for order in orders {
        let mut r = Reassembly::new(1, CHUNK_CHARGE);
        r.peer_gives_up(true);
        for &i in &order {
            let (at, stream, flags) = chunks[i];
            put(&mut r, at, stream, 0, flags).unwrap_or_else(|v| panic!("{order:?}: {v}"));
        }
        r.check_cum(T0 + 14).unwrap_or_else(|v| panic!("{order:?}: {v}"));
        let mut got = texts(&mut r);
        got.sort();
        assert_eq!((got, r.held_bytes()), (vec!["12.13.".into(), "14.".into(), "9.".into()], 0), "{order:?}");
    }
}

#[test]
fn an_ssn_is_used_once() {
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 0, 0, 0, "BE").unwrap();
    let reused = |n| Err(Violation::SsnReused { stream: StreamId(0), ssn: Ssn(n) });
    assert_eq!(put(&mut r, 1, 0, 0, "BE"), reused(0));
    put(&mut r, 2, 0, 2, "BE").unwrap();
    assert_eq!(put(&mut r, 3, 0, 2, "BE"), reused(2));
}

#[test]
fn fragments_that_can_never_begin_or_end_are_noticed() {
    // The message before ended and was delivered long ago.
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 0, 0, 0, "BE").unwrap();
    put(&mut r, 2, 0, 1, "BE").unwrap();
    put(&mut r, 1, 0, 0, "").unwrap();
    assert_eq!(r.check_cum(T0), Ok(()));
    assert_eq!(r.check_cum(T0 + 2), Err(Violation::NoBegin { tsn: Tsn(1) }));
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 3, 0, 0, "UBE").unwrap();
    put(&mut r, 2, 0, 0, "UB").unwrap();
    assert_eq!(r.check_cum(T0 + 1), Ok(()));
    assert_eq!(r.check_cum(T0 + 3), Err(Violation::BeginInside { tsn: Tsn(3) }));
}

#[test]
fn forward_releases_and_goes_on() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    for (at, ssn) in [(1, 1), (3, 3), (4, 4), (6, 6)] {
        put(&mut r, at, 2, ssn, "BE").unwrap();
    }
    r.forward(T0 + 2, &mut [(StreamId(2), Ssn(2)), (StreamId(9), Ssn(0))].into_iter());
    assert_eq!(texts(&mut r), ["1.", "3.", "4."]);
    // Old news changes nothing.
    r.forward(T0 + 2, &mut [(StreamId(2), Ssn(2))].into_iter());
    assert_eq!((r.ready_len(), r.held_bytes()), (0, 2 + CHUNK_CHARGE));
    put(&mut r, 5, 2, 5, "BE").unwrap();
    assert_eq!(texts(&mut r), ["5.", "6."]);
    // A number that was skipped comes too late to keep order.
    put(&mut r, 7, 2, 2, "BE").unwrap();
    assert_eq!((r.ready_len(), r.held_bytes()), (0, 0));
}

#[test]
fn forward_releases_across_the_ssn_wrap() {
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    r.forward(T0, &mut [(StreamId(0), Ssn(32_000))].into_iter());
    r.forward(T0 + 1, &mut [(StreamId(0), Ssn(64_000))].into_iter());
    for (at, ssn) in [(2, 65_530), (3, 65_535), (4, 0), (5, 3), (6, 5), (7, 9)] {
        put(&mut r, at, 0, ssn, "BE").unwrap();
    }
    r.forward(T0 + 20, &mut [(StreamId(0), Ssn(4))].into_iter());
    assert_eq!(texts(&mut r), ["2.", "3.", "4.", "5.", "6."]);
    assert_eq!(r.waiting.len(), 1);
}

#[test]
fn forward_drops_messages_that_miss_a_piece_and_only_those() {
    let mut r = Reassembly::new(1, CHUNK_CHARGE);
    put(&mut r, 0, 0, 0, "UB").unwrap(); // 1 is missing
    put(&mut r, 3, 0, 0, "U").unwrap(); // begins at 2, which is missing
    put(&mut r, 4, 0, 0, "U").unwrap();
    put(&mut r, 6, 0, 0, "UB").unwrap(); // nothing missing to 7
    put(&mut r, 7, 0, 0, "U").unwrap();
    put(&mut r, 12, 0, 0, "U").unwrap(); // later than the skip
    r.forward(T0 + 2, &mut std::iter::empty());
    assert_eq!(r.runs.keys().map(|k| k - T0).collect::<Vec<_>>(), [6, 12]);
    // More of the message that was given up.
    put(&mut r, 5, 0, 0, "UE").unwrap();
    assert_eq!(r.runs.len(), 2);
    r.forward(T0 + 7, &mut std::iter::empty());
    put(&mut r, 8, 0, 0, "UE").unwrap();
    assert_eq!(texts(&mut r), ["6.7.8."]);
    // Skipped to 10: 11 and with it 12 belong to a message without a beginning.
    r.forward(T0 + 10, &mut std::iter::empty());
    put(&mut r, 11, 0, 0, "U").unwrap();
    assert_eq!((r.runs.len(), r.held_bytes()), (0, 0));
    put(&mut r, 13, 0, 0, "U").unwrap();
    put(&mut r, 14, 0, 0, "UE").unwrap();
    put(&mut r, 15, 0, 0, "UBE").unwrap();
    assert_eq!(texts(&mut r), ["15."]);
    assert_eq!((r.held_bytes(), r.check_cum(T0 + 15)), (0, Ok(())));
}

/// A message of the property tests: its chunks have consecutive TSNs.
#[derive(Clone, Debug)]
struct Sent {
    stream: u16,
    ssn: Option<u16>,
    fragments: usize,
    abandoned: bool,
    first: Tsn,
}

impl Sent {
    fn text(&self, i: usize) -> String {
        format!("{}/{:?}/{}/{i};", self.stream, self.ssn, self.first.0)
    }
    fn whole(&self) -> String {
        (0..self.fragments).map(|i| self.text(i)).collect()
    }
    fn chunk(&self, i: usize) -> (DataHeader, Bytes) {
        let flags =
            DataFlags { immediate: false, unordered: self.ssn.is_none(), begin: i == 0, end: i + 1 == self.fragments };
        let tsn = self.first.plus(i as u32);
        let ssn = Ssn(self.ssn.unwrap_or(i as u16));
        (DataHeader { tsn, stream: StreamId(self.stream), ssn, ppid: 7, flags }, Bytes::from(self.text(i)))
    }
}

/// Stream, in order, fragments, given up.
type Shape = (u16, bool, usize, bool);

fn plan(initial: Tsn, shapes: &[Shape]) -> Vec<Sent> {
    let mut next = [0u16; 3];
    let mut tsn = initial;
    let mut out = Vec::new();
    for &(stream, ordered, fragments, abandoned) in shapes {
        let ssn = ordered.then(|| {
            next[usize::from(stream)] += 1;
            next[usize::from(stream)] - 1
        });
        out.push(Sent { stream, ssn, fragments, abandoned, first: tsn });
        tsn = tsn.plus(fragments as u32);
    }
    out
}

fn shapes(abandon: bool) -> impl Strategy<Value = Vec<Shape>> {
    let len = prop_oneof![3 => Just(1usize), 2 => 2usize..6];
    prop::collection::vec((0u16..3, any::<bool>(), len, prop::bool::weighted(if abandon { 0.3 } else { 0.0 })), 1..60)
}

fn near_the_wrap() -> impl Strategy<Value = Tsn> {
    (0u32..200).prop_map(|n| Tsn(n.wrapping_sub(100)))
}

/// Everything the user gets, checked for order on the way.
#[derive(Default)]
struct User {
    got: Vec<String>,
    last: [Option<u16>; 3],
}

impl User {
    fn take(&mut self, r: &mut Reassembly) {
        while let Some(m) = r.pop() {
            if let Some(ssn) = m.ssn {
                let last = &mut self.last[usize::from(m.stream.0)];
                assert!(*last < Some(ssn.0), "out of order: {:?} after {last:?}", ssn);
                *last = Some(ssn.0);
            }
            self.got.push(String::from_utf8(m.payload.into_bytes().to_vec()).unwrap());
        }
    }
}

/// A TSN by its offset, stream, SSN, flags, length, and whether it is skipped, or something is read behind it.
type Nonsense = (u64, u16, u16, u8, usize, u8);

/// A sender that gives messages up, its FORWARD-TSNs placed anywhere the rules allow, even inside a message.
fn skip(initial: Tsn, shapes: &[Shape], seed: u64) -> Result<(), TestCaseError> {
    let sent = plan(initial, shapes);
    let mut rng = RandomStream::named(seed, "forward");
    let mut pending: Vec<(usize, usize)> =
        sent.iter().enumerate().flat_map(|(m, s)| (0..s.fragments).map(move |i| (m, i))).collect();
    let owner = pending.clone();
    let (mut t, mut r, mut user) = (TsnTracker::new(initial), Reassembly::new(3, CHUNK_CHARGE), User::default());
    let mut here = vec![false; owner.len()];
    let index = |m: usize, i: usize| (sent[m].first.distance(initial)) as usize + i;
    loop {
        if pending.is_empty() || rng.chance(0.2) {
            // As far as chunks are here or given up, or a bit less.
            let reach = (0..owner.len()).take_while(|n| here[*n] || sent[owner[*n].0].abandoned).count();
            let reach = if pending.is_empty() { reach } else { rng.below(reach as u64 + 1) as usize };
            if reach > 0 {
                let to = initial.plus(reach as u32 - 1);
                if let Some(at) = t.forward(to) {
                    let mut skipped = BTreeMap::new();
                    for (m, _) in &owner[..reach] {
                        if let Sent { abandoned: true, stream, ssn: Some(ssn), .. } = &sent[*m] {
                            skipped.insert(StreamId(*stream), Ssn(*ssn));
                        }
                    }
                    r.forward(at, &mut skipped.into_iter());
                    r.check_cum(t.cum_extended()).unwrap();
                    user.take(&mut r);
                }
            }
        }
        if pending.is_empty() {
            break;
        }
        let (m, i) = pending.remove(rng.below(pending.len().min(12) as u64) as usize);
        if sent[m].abandoned && rng.chance(0.5) {
            continue;
        }
        here[index(m, i)] = true;
        let (h, payload) = sent[m].chunk(i);
        if let Received::New(at) = t.receive(h.tsn) {
            r.insert(at, &h, payload).unwrap();
            r.check_cum(t.cum_extended()).unwrap();
            user.take(&mut r);
        }
    }
    prop_assert_eq!(t.cum(), initial.plus(owner.len() as u32 - 1));
    let mut got = user.got.clone();
    got.sort();
    got.dedup();
    prop_assert_eq!(got.len(), user.got.len(), "something came twice");
    for m in &sent {
        prop_assert!(m.abandoned || got.binary_search(&m.whole()).is_ok(), "lost {:?}", m);
    }
    prop_assert!(got.iter().all(|g| sent.iter().any(|m| m.whole() == *g)));
    prop_assert_eq!((r.held_bytes(), r.runs.len(), r.waiting.len()), (0, 0, 0));
    Ok(())
}

/// Nonsense from the peer never panics, and what is charged is what is inside.
fn nonsense(ops: Vec<Nonsense>) -> Result<(), TestCaseError> {
    let mut r = Reassembly::new(2, CHUNK_CHARGE);
    let mut t = TsnTracker::new(Tsn(0));
    for (at, stream, ssn, bits, len, what) in ops {
        if what == 0 {
            if let Some(at) = t.forward(Tsn(at as u32)) {
                r.forward(at, &mut [(StreamId(stream), Ssn(ssn))].into_iter());
            }
            continue;
        }
        if let Received::New(extended) = t.receive(Tsn(at as u32)) {
            let h = DataHeader { flags: DataFlags::from_bits(bits), ..header(extended, stream, ssn, "") };
            if r.insert(extended, &h, Bytes::from(vec![0; len])).is_err() {
                let _ = (r.pop(), r.check_cum(extended));
                break;
            }
        }
        if what == 1 {
            r.pop();
        }
        let inside = r.runs.values().map(|run| run.charge(CHUNK_CHARGE)).sum::<usize>()
            + r.waiting.values().chain(&r.ready).map(|m| charge_of(m, CHUNK_CHARGE)).sum::<usize>();
        prop_assert_eq!(r.held_bytes(), inside);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_order_of_arrival_gives_every_message_once(initial in near_the_wrap(), shapes in shapes(false), seed: u64) {
        let sent = plan(initial, &shapes);
        let mut chunks: Vec<_> = sent.iter().flat_map(|m| (0..m.fragments).map(|i| m.chunk(i))).collect();
        let mut rng = RandomStream::named(seed, "order");
        for i in (1..chunks.len()).rev() {
            chunks.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let (mut t, mut r, mut user) = (TsnTracker::new(initial), Reassembly::new(3, CHUNK_CHARGE), User::default());
        for (h, payload) in chunks {
            let Received::New(at) = t.receive(h.tsn) else { panic!("{h:?} is not new") };
            r.insert(at, &h, payload).unwrap();
            r.check_cum(t.cum_extended()).unwrap();
            user.take(&mut r);
        }
        let mut expected: Vec<_> = sent.iter().map(Sent::whole).collect();
        expected.sort();
        user.got.sort();
        prop_assert_eq!(user.got, expected);
        prop_assert_eq!((r.held_bytes(), r.runs.len(), r.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn skipping_loses_only_what_was_given_up(initial in near_the_wrap(), shapes in shapes(true), seed: u64) {
        skip(initial, &shapes, seed)?;
    }

    #[test]
    fn nonsense_is_refused_or_accounted_for(
        ops in prop::collection::vec((0u64..40, 0u16..3, 0u16..4, 0u8..8, 0usize..400, 0u8..10), 1..200),
    ) {
        nonsense(ops)?;
    }
}

/// What these two found once.
#[test]
fn what_was_found() {
    nonsense(vec![(17, 0, 0, 0, 0, 1), (16, 0, 0, 0, 0, 0)]).unwrap();
    let fragments = [2, 2, 2, 1, 1, 2, 1, 5, 4, 3, 1, 5, 1, 1, 1];
    let shapes: Vec<Shape> = fragments.iter().enumerate().map(|(i, n)| (0, false, *n, i == 4)).collect();
    skip(Tsn(4_294_967_196), &shapes, 15_391_307_925_317_353_019).unwrap();
}

/// Linux gives up a message when it has sent a part of it and goes on with the next one. All of that arrives, so its
/// FORWARD-TSN moves nothing.
#[test]
fn what_has_no_end_is_passed_though_no_forward_tsn_counts() {
    let of = |order: &[(u64, u16, &str)]| {
        let mut r = Reassembly::new(4, CHUNK_CHARGE);
        let mut t = TsnTracker::new(Tsn(T0 as u32));
        r.peer_gives_up(true);
        for (at, ssn, spec) in order {
            t.insert(T0 + at);
            put(&mut r, *at, 1, *ssn, spec).unwrap();
            r.check_cum(t.cum_extended()).unwrap();
        }
        (texts(&mut r), r.held_bytes())
    };
    let all = [(0, 0, "BE"), (1, 1, "B"), (2, 2, "BE"), (3, 3, "BE")];
    let got = |list: &[&str]| (list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), 0);
    assert_eq!(of(&all), got(&["0.", "2.", "3."]));
    // In whatever order they come.
    let orders = [[0, 2, 1, 3], [1, 2, 3, 0], [3, 2, 1, 0], [2, 1, 3, 0], [1, 3, 0, 2]];
    for order in orders {
        assert_eq!(of(&order.map(|i: usize| all[i])), got(&["0.", "2.", "3."]), "{order:?}");
    }
    // While something before it is missing it is charged, and passed in its turn.
    let (read, held) = of(&[(1, 1, "B"), (2, 2, "BE")]);
    assert_eq!((read, held), (vec![], 2 * CHUNK_CHARGE + 2));
}
