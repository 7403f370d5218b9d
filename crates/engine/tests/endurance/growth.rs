//! How work grows: twice as much of anything costs about twice as much, never four times.
//!
//! Work is what the engine counts itself, see `anabranch_engine::work`: chunks, packets, streams, runs and fragments
//! that it looks at or moves. Each test takes a number of them and the double, prints both, and bounds the growth.
//! Tables of ordered things may add what a logarithm does.

mod received;

use crate::common::page::{figure, grouped};
use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Duration, Mid, Ssn, StreamId, Tsn};
use anabranch_engine::{AssocConfig, AssocId, SendOptions, work};
use anabranch_policy::registry::Hook;
use anabranch_wire::{
    Chunk, Data, DataFlags, DataHeader, ForwardTsnOut, GapBlock, IData, IDataHeader, IForwardTsnOut, InitFields,
    NrSackOut, Parameter, SackOut, Skipped, kind,
};
use bytes::Bytes;

/// Twice as much costs at most this many times the work.
const MOST: f64 = 2.2;
/// A power of two would hide that something doubles.
const N: u32 = 1_500;

/// Work for N and for 2 N; none where it is not counted.
fn grows(what: &str, run: impl Fn(u32) -> u64) -> Option<(u64, u64)> {
    let (once, twice) = (run(N), run(2 * N));
    if once == 0 {
        println!("SKIPPED growth of {what}: work is counted in debug builds only");
        return None;
    }
    let ratio = twice as f64 / once as f64;
    println!("{what}: {once} steps for {N}, {twice} for {}: {ratio:.2} times", 2 * N);
    assert!(once >= u64::from(N) / 2, "{what}: {once} steps are not all of them");
    assert!(ratio <= MOST, "{what}: {once} steps for {N} and {twice} for {}, {ratio:.2} times", 2 * N);
    Some((twice, once))
}

#[test]
fn the_most_that_twice_as_much_may_cost() {
    figure(
        "endurance/growth.rs::the_most_that_twice_as_much_may_cost",
        &format!("each test, N and 2 N: at most {MOST} times"),
    );
}

/// Work of `f` in steps; 0 where it is not counted.
fn steps(f: impl FnOnce()) -> u64 {
    work::take();
    f();
    work::take().unwrap_or(0)
}

const EXTENSIONS: [u8; 5] = [kind::FORWARD_TSN, kind::I_DATA, kind::I_FORWARD_TSN, kind::RE_CONFIG, kind::NR_SACK];

/// An endpoint with windows for everything at once, and a peer that announces `extensions` and has `streams`.
fn accepted(config: &AssocConfig, extensions: &[u8]) -> (Raw, AssocId) {
    let config = changed(config.clone(), |c| {
        c.sending.initial_window = Some(1 << 24);
        c.sending.max_burst = 0;
        c.limits.receive_buffer = 64 << 20;
        c.limits.send_buffer = 64 << 20;
        c.limits.outbound_streams = 10_000;
        c.limits.inbound_streams = 10_000;
    });
    let mut r = Raw::with(&config, |_| {});
    let fields =
        InitFields { a_rwnd: u32::MAX, outbound_streams: 10_000, inbound_streams: 10_000, ..init_fields(PEER_TAG) };
    r.give_tagged(0, &[&init(fields, &bytes(&Parameter::SupportedExtensions(extensions)))]);
    let answer = r.take_one();
    (r.tag, r.first_tsn) = (init_of(&answer).0.tag, init_of(&answer).0.initial_tsn);
    r.echo(&cookie_of(&answer));
    r.take();
    let id = r.only();
    (r, id)
}

fn sack_of(cum: Tsn, gaps: &[(u16, u16)], duplicates: &[Tsn]) -> Vec<u8> {
    let gaps: Vec<GapBlock> = gaps.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    bytes(&SackOut { cum_tsn: cum, a_rwnd: u32::MAX, gaps: &gaps, duplicates })
}

/// `n` messages of `len` bytes are handed over; `change` their options. What leaves is kept until it is taken.
fn hand_over(r: &mut Raw, id: AssocId, n: u32, len: usize, change: impl Fn(u32, &mut SendOptions)) {
    let (now, payload) = (r.now, Bytes::from(vec![1; len]));
    let mut a = r.endpoint.association_mut(id).expect("alive");
    for i in 0..n {
        let mut o = SendOptions::default();
        change(i, &mut o);
        a.send(now, o, payload.clone()).expect("taken");
    }
}

/// TSNs of the chunks with data in what was sent.
fn tsns(sent: &[Sent]) -> Vec<Tsn> {
    let of = |c: &Chunk<'_>| match c {
        Chunk::Data(d) => Some(d.header.tsn),
        Chunk::IData(d) => Some(d.header.tsn),
        _ => None,
    };
    sent.iter().flat_map(|s| s.chunks().iter().filter_map(of).collect::<Vec<_>>()).collect()
}

fn orders() -> Vec<&'static str> {
    Hook::RetransmissionOrder.policies().iter().map(|p| p.name).collect()
}

fn with(hook: Hook, policy: &str) -> AssocConfig {
    let mut c = assoc_config("cmt");
    c.profile.set(hook, policy).expect("a policy");
    c
}

/// All is reported missing by three SACKs, and leaves again.
#[test]
fn marks_by_reports() {
    let mut most = None;
    for order in orders() {
        let work = grows(&format!("marked by reports, {order}"), |n| {
            let (mut r, id) = accepted(&with(Hook::RetransmissionOrder, order), &[]);
            hand_over(&mut r, id, n, 1, |i, o| o.class = (i % 3) as u8);
            r.drain();
            let first = r.first_tsn.minus(1);
            let last = tsns(&r.take()).len() as u16;
            assert_eq!(u32::from(last), n);
            // A packet holds 58 of them: reports come from three packets behind all others.
            let work = steps(|| {
                [59, 117, 175].iter().for_each(|back| r.give(&[&sack_of(first, &[(last - back, last)], &[])]))
            });
            assert!(tsns(&r.take()).len() + 200 > n as usize, "{order}: sent again");
            work
        });
        most = most.max(work);
    }
    let Some((twice, once)) = most else { return };
    figure(
        "endurance/growth.rs::marks_by_reports",
        &format!(
            "{} chunks of a byte, reported missing by three SACKs: {} steps of work, {} for {}",
            grouped(2 * N),
            grouped(twice),
            grouped(once),
            grouped(N)
        ),
    );
}

/// All timed out and is sent again packet by packet, each when the one before was acknowledged.
#[test]
fn marks_by_a_timer() {
    for order in orders() {
        for sizes in [[1, 1], [1, 700]] {
            grows(&format!("marked by T3, {order}, {sizes:?} bytes"), |n| {
                let (mut r, id) = accepted(&with(Hook::RetransmissionOrder, order), &[]);
                for (i, len) in sizes.iter().enumerate() {
                    hand_over(&mut r, id, n / 2, *len, |k, o| o.class = (k as usize + i) as u8 % 3);
                }
                r.drain();
                let mut left: std::collections::BTreeSet<u32> =
                    tsns(&r.take()).iter().map(|t| t.distance(r.first_tsn)).collect();
                let began = left.len();
                assert!(r.run_until_sent(kind::DATA, ms(5_000)).is_some());
                let first = r.first_tsn;
                let again = steps(|| {
                    // What left first was taken by `run_until_sent`: it is among what T3 brings again.
                    for _ in 0..4 * n {
                        let sent = tsns(&r.take());
                        if sent.is_empty() {
                            if left.is_empty() {
                                break;
                            }
                            r.run_for(ms(10_000));
                            continue;
                        }
                        for t in &sent {
                            left.remove(&t.distance(first));
                        }
                        // Acknowledged up to the first that did not come again.
                        let cum = first.plus(left.first().copied().unwrap_or(began as u32)).minus(1);
                        r.give(&[&sack_of(cum, &[], &[])]);
                    }
                });
                assert!(left.is_empty(), "{order}: {} never left again", left.len());
                again
            });
        }
    }
}

/// What is marked is acknowledged after all, from the end to the beginning: each costs the same.
#[test]
fn marks_that_are_settled_from_behind() {
    for order in orders() {
        grows(&format!("settled from behind, {order}"), |n| {
            let (mut r, id) = accepted(&with(Hook::RetransmissionOrder, order), &[]);
            hand_over(&mut r, id, n, 1, |i, o| o.class = (i % 3) as u8);
            r.drain();
            r.take();
            r.run_until_sent(kind::DATA, ms(5_000)).expect("T3");
            let cum = r.first_tsn.minus(1);
            let n = n as u16;
            steps(|| (1..n).rev().for_each(|from| r.give(&[&sack_of(cum, &[(from, n)], &[])])))
        });
    }
}

/// One SACK with a gap block for every other chunk; the same again; and with one block less each.
#[test]
fn gap_blocks() {
    for profile in ["sctp", "cmt", "live", "thin"] {
        grows(&format!("gap blocks in a SACK, {profile}"), |n| {
            let (mut r, id) = accepted(&assoc_config(profile), &[]);
            hand_over(&mut r, id, 2 * n, 600, |_, _| {});
            r.drain();
            let sent = tsns(&r.take()).len();
            let cum = r.first_tsn.minus(1);
            let gaps: Vec<(u16, u16)> = (2..=sent as u16).step_by(2).map(|g| (g, g)).collect();
            assert!(gaps.len() as u32 >= n / 2, "{} gap blocks", gaps.len());
            steps(|| {
                r.give(&[&sack_of(cum, &gaps, &[])]);
                (0..10).for_each(|less| r.give(&[&sack_of(cum, &gaps[less..], &[])]));
            })
        });
    }
    grows("gap blocks in an NR-SACK", |n| {
        let config = changed(assoc_config("cmt"), |c| c.extensions.nr_sack = true);
        let (mut r, id) = accepted(&config, &EXTENSIONS);
        hand_over(&mut r, id, 2 * n, 600, |_, _| {});
        r.drain();
        r.take();
        let cum_tsn = r.first_tsn.minus(1);
        let gaps: Vec<GapBlock> = (2..2 * n as u16).step_by(4).map(|g| GapBlock { start: g, end: g }).collect();
        let kept: Vec<GapBlock> = (4..2 * n as u16).step_by(4).map(|g| GapBlock { start: g, end: g }).collect();
        let nr = bytes(&NrSackOut { cum_tsn, a_rwnd: u32::MAX, gaps: &gaps, kept: &kept, duplicates: &[] });
        steps(|| (0..3).for_each(|_| r.give(&[&nr])))
    });
}

/// A window of 64 chunks slides over all of them, with holes that come and go: a SACK costs what it changes.
#[test]
fn sacks_over_a_sliding_window() {
    for profile in ["sctp", "cmt", "live", "thin"] {
        grows(&format!("SACKs, one for each chunk, {profile}"), |n| {
            let (mut r, id) = accepted(&assoc_config(profile), &[]);
            let first = r.first_tsn;
            steps(|| {
                for i in 0..n {
                    hand_over(&mut r, id, 1, 600, |_, _| {});
                    r.drain();
                    r.take();
                    if i >= 64 {
                        r.give(&[&sack_of(first.plus(i - 64), &[(3, 9), (12, 12)], &[])]);
                        r.take();
                    }
                }
            })
        });
    }
}

/// A SACK that repeats what is known, and one that names duplicates.
#[test]
fn duplicates_of_sacks() {
    grows("SACKs that say nothing new", |n| {
        let (mut r, id) = accepted(&assoc_config("cmt"), &[]);
        hand_over(&mut r, id, 100, 600, |_, _| {});
        r.drain();
        let cum = r.first_tsn.plus(10);
        steps(|| (0..n).for_each(|_| r.give(&[&sack_of(cum, &[(3, 9), (12, 12)], &[cum; 3])])))
    });
    grows("duplicates named by a SACK", |n| {
        let (mut r, id) = accepted(&assoc_config("cmt"), &[]);
        hand_over(&mut r, id, n, 600, |_, _| {});
        r.drain();
        let all: Vec<Tsn> = (0..n).map(|i| r.first_tsn.plus(i)).collect();
        steps(|| r.give(&[&sack_of(*all.last().expect("one"), &[], &all)]))
    });
}

/// A large message is cut, sent and acknowledged fragment by fragment.
#[test]
fn fragments_sent() {
    for interleaved in [false, true] {
        grows(&format!("fragments sent, interleaved {interleaved}"), |n| {
            let config = changed(assoc_config("sctp"), |c| c.extensions.interleaving = interleaved);
            let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[] });
            let first = r.first_tsn;
            steps(|| {
                hand_over(&mut r, id, 1, 1_000 * n as usize, |_, _| {});
                r.drain();
                let sent = tsns(&r.take()).len() as u32;
                (0..sent).for_each(|i| r.give(&[&sack_of(first.plus(i), &[], &[])]));
            })
        });
    }
}

/// A message on each of N streams leaves, whoever chooses among them, and on half of them a second one.
#[test]
fn streams_that_send() {
    for scheduler in Hook::StreamScheduler.policies().iter().map(|p| p.name) {
        for interleaved in [false, true] {
            grows(&format!("streams that send by {scheduler}, interleaved {interleaved}"), |n| {
                let config =
                    changed(with(Hook::StreamScheduler, scheduler), |c| c.extensions.interleaving = interleaved);
                let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[] });
                let work = steps(|| {
                    hand_over(&mut r, id, 3 * n / 2, 1_500, |i, o| {
                        o.stream = StreamId((i * 7 % n) as u16);
                        o.class = (i % 4) as u8;
                    });
                    r.drain();
                });
                assert_eq!(tsns(&r.take()).len() as u32, 3 * n);
                work
            });
        }
    }
}

/// Streams come to their turn and fall silent, thousands beside each other.
#[test]
fn streams_whose_messages_are_dropped() {
    grows("streams whose messages are discarded", |n| {
        let (mut r, id) = accepted(&with(Hook::StreamScheduler, "fair_capacity"), &[]);
        // Nothing leaves: the peer has no room.
        hand_over(&mut r, id, 1, 600, |_, _| {});
        r.drain();
        let first = r.first_tsn;
        r.give(&[&bytes(&SackOut { cum_tsn: first, a_rwnd: 0, gaps: &[], duplicates: &[] })]);
        steps(|| {
            hand_over(&mut r, id, n, 600, |i, o| o.stream = StreamId(i as u16));
            r.drain();
            let mut a = r.endpoint.association_mut(id).expect("alive");
            for s in 0..n as u16 {
                let _ = a.discard_unsent(StreamId(s));
            }
            drop(a);
            hand_over(&mut r, id, n, 600, |i, o| o.stream = StreamId(i as u16));
            r.give(&[&sack_of(first, &[], &[])]);
        })
    });
}

/// N messages expire while they are in flight or wait: FORWARD-TSN passes them.
#[test]
fn messages_given_up() {
    for streams in [1, 97, 10_000] {
        for interleaved in [false, true] {
            grows(&format!("messages given up, {streams} streams, interleaved {interleaved}"), |n| {
                let mut config = changed(assoc_config("cmt"), |c| c.extensions.interleaving = interleaved);
                config.profile.set(Hook::Abandon, "lifetime").expect("a policy");
                let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[kind::FORWARD_TSN] });
                let due = r.now + ms(30);
                hand_over(&mut r, id, n, 600, |i, o| {
                    (o.stream, o.deadline) = (StreamId((i % streams) as u16), Some(due));
                });
                let first = r.first_tsn;
                let work = steps(|| {
                    r.drain();
                    r.run_for(ms(3_000));
                    // The peer skips what each FORWARD-TSN names.
                    for _ in 0..1_000 {
                        let skipped = |c: &Chunk<'_>| match c {
                            Chunk::ForwardTsn(f) => Some(f.new_cum),
                            Chunk::IForwardTsn(f) => Some(f.new_cum),
                            _ => None,
                        };
                        let point = r
                            .take()
                            .iter()
                            .flat_map(|s| s.chunks().iter().filter_map(skipped).collect::<Vec<_>>())
                            .last();
                        if let Some(point) = point {
                            r.give(&[&sack_of(point, &[], &[])]);
                            if point == first.plus(n - 1) {
                                break;
                            }
                        }
                        r.run_for(ms(1_000));
                    }
                });
                let a = r.endpoint.association(id).expect("alive");
                assert!(a.is_drained(), "all was given up");
                work
            });
        }
    }
}

/// The peer opens and shuts its window: what left since it was shut leaves again, and nothing else is looked at.
#[test]
fn windows_that_open_and_shut() {
    grows("windows that open and shut", |n| {
        let (mut r, id) = accepted(&assoc_config("cmt"), &[]);
        hand_over(&mut r, id, n, 600, |_, _| {});
        r.drain();
        r.take();
        let cum = r.first_tsn.minus(1);
        let sack = |a_rwnd| bytes(&SackOut { cum_tsn: cum, a_rwnd, gaps: &[], duplicates: &[] });
        steps(|| {
            for _ in 0..n {
                r.run_for(Duration::from_micros(1));
                r.give(&[&sack(0)]);
                r.give(&[&sack(u32::MAX)]);
            }
        })
    });
}
