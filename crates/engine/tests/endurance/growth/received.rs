//! What is received: fragments in any order, what was given up, streams, FORWARD-TSNs, duplicates.

use super::*;

fn fragment(tsn: Tsn, (begin, end): (bool, bool), unordered: bool) -> Vec<u8> {
    let flags = DataFlags { begin, end, unordered, immediate: false };
    bytes(&Data { header: DataHeader { tsn, stream: StreamId(0), ssn: Ssn(0), ppid: 0, flags }, payload: &[1; 40] })
}

fn piece(tsn: Tsn, stream: u16, mid: u32, fsn: u32, end: bool) -> Vec<u8> {
    let flags = DataFlags { begin: fsn == 0, end, ..DataFlags::default() };
    let header = IDataHeader { tsn, stream: StreamId(stream), mid: Mid(mid), ppid: 0, fsn, flags };
    bytes(&IData { header, payload: &[1; 40] })
}

/// In which order the fragments of a message arrive.
fn arrivals(n: u32) -> Vec<(&'static str, Vec<u32>)> {
    let odd_then_even = (0..n).filter(|i| i % 2 == 1).chain((0..n).filter(|i| i % 2 == 0));
    let mut shuffled: Vec<u32> = (0..n).collect();
    let mut random = anabranch_base::RandomStream::named(1, "arrivals");
    (1..n).rev().for_each(|i| shuffled.swap(i as usize, random.below(u64::from(i) + 1) as usize));
    vec![
        ("in order", (0..n).collect()),
        ("backwards", (0..n).rev().collect()),
        ("odd, then even ones", odd_then_even.collect()),
        ("shuffled", shuffled),
    ]
}

/// A message of N fragments is put together, in whatever order they come.
#[test]
fn fragments_received() {
    for i in 0..4 {
        let name = arrivals(4)[i].0;
        for interleaved in [false, true] {
            grows(&format!("fragments received {name}, interleaved {interleaved}"), |n| {
                let config = changed(assoc_config("sctp"), |c| c.extensions.interleaving = interleaved);
                let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[] });
                let order = &arrivals(n)[i].1;
                let work = steps(|| {
                    for &k in order {
                        let (tsn, end) = (PEER_TSN.plus(k), k + 1 == n);
                        let one =
                            if interleaved { piece(tsn, 0, 0, k, end) } else { fragment(tsn, (k == 0, end), false) };
                        // Without the answers: a SACK names up to a packet full of runs, and has nothing to do with this.
                        let mut out = anabranch_wire::CommonHeader { src_port: PEER_PORT, dst_port: PORT, vtag: r.tag }
                            .to_bytes()
                            .to_vec();
                        out.extend_from_slice(&one);
                        r.endpoint.handle(r.now, r.to, r.from, &Bytes::from(out), anabranch_wire::Verify::Trusted);
                    }
                });
                r.drain();
                assert_eq!(r.read(id).iter().map(Vec::len).collect::<Vec<_>>(), [40 * n as usize]);
                work
            });
        }
    }
}

/// A message of N fragments follows one that was given up, and is acknowledged fragment by fragment by gap blocks:
/// each SACK asks whether FORWARD-TSN may pass it.
#[test]
fn fragments_behind_what_was_given_up() {
    for unordered in [false, true] {
        for nr_sack in [false, true] {
            grows(&format!("fragments behind what was given up, unordered {unordered}, NR-SACK {nr_sack}"), |n| {
                let mut config = changed(assoc_config("cmt"), |c| c.extensions.nr_sack = nr_sack);
                config.profile.set(Hook::Abandon, "lifetime").expect("a policy");
                let (mut r, id) = accepted(&config, &EXTENSIONS);
                let cum = r.first_tsn.minus(1);
                let late = r.now + ms(30);
                hand_over(&mut r, id, 1, 100, |_, o| o.deadline = Some(late));
                hand_over(&mut r, id, 1, 1_000 * n as usize, |_, o| {
                    (o.unordered, o.deadline) = (unordered, Some(late + ms(20)))
                });
                r.drain();
                let sent = tsns(&r.take()).len() as u16;
                r.give(&[&sack_of(cum, &[(sent, sent)], &[])]);
                // T3 marks the first message, and it is late by then.
                r.run_for(ms(3_000));
                steps(|| {
                    for to in 2..sent {
                        let block = [GapBlock { start: 2, end: to }, GapBlock { start: sent, end: sent }];
                        let block = if to + 1 == sent { &block[..1] } else { &block[..] };
                        let nr = NrSackOut { cum_tsn: cum, a_rwnd: 1 << 20, gaps: &[], kept: block, duplicates: &[] };
                        let plain = SackOut { cum_tsn: cum, a_rwnd: 1 << 20, gaps: block, duplicates: &[] };
                        r.give(&[&if nr_sack { bytes(&nr) } else { bytes(&plain) }]);
                        r.take();
                    }
                })
            });
        }
    }
}

/// Messages of many fragments, interleaved, are given up one after the other.
#[test]
fn interleaved_messages_given_up() {
    grows("interleaved messages given up", |n| {
        let mut config = changed(assoc_config("cmt"), |c| c.extensions.interleaving = true);
        config.profile.set(Hook::Abandon, "lifetime").expect("a policy");
        config.profile.set(Hook::StreamScheduler, "round_robin").expect("a policy");
        let (mut r, id) = accepted(&config, &EXTENSIONS);
        let due = r.now + ms(30);
        hand_over(&mut r, id, n / 4, 4_000, |i, o| (o.stream, o.deadline) = (StreamId(i as u16), Some(due)));
        steps(|| {
            r.drain();
            r.run_for(ms(3_000));
        })
    });
}

/// Messages of N streams arrive, the second of each before the first.
#[test]
fn streams_that_receive() {
    for interleaved in [false, true] {
        grows(&format!("streams that receive, interleaved {interleaved}"), |n| {
            let config = changed(assoc_config("sctp"), |c| c.extensions.interleaving = interleaved);
            let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[] });
            let work = steps(|| {
                for i in 0..2 * n {
                    let (stream, number) = ((i / 2) as u16, 1 - i % 2);
                    let one = if interleaved {
                        piece(PEER_TSN.plus(i), stream, number, 0, true)
                    } else {
                        let flags = DataFlags { begin: true, end: true, ..DataFlags::default() };
                        let header = DataHeader {
                            tsn: PEER_TSN.plus(i),
                            stream: StreamId(stream),
                            ssn: Ssn(number as u16),
                            ppid: 0,
                            flags,
                        };
                        bytes(&Data { header, payload: &[1; 40] })
                    };
                    r.give(&[&one]);
                    r.take();
                }
            });
            assert_eq!(r.read(id).len() as u32, 2 * n);
            work
        });
    }
}

/// FORWARD-TSNs that a peer sends: each for one more, or one for all, with messages that wait behind.
#[test]
fn forward_tsns_received() {
    for interleaved in [false, true] {
        for at_once in [false, true] {
            grows(&format!("FORWARD-TSNs received, interleaved {interleaved}, at once {at_once}"), |n| {
                let config = changed(assoc_config("sctp"), |c| c.extensions.interleaving = interleaved);
                let (mut r, id) = accepted(&config, if interleaved { &EXTENSIONS } else { &[kind::FORWARD_TSN] });
                // Of each pair the first never comes.
                for i in (1..2 * n).step_by(2) {
                    let tsn = PEER_TSN.plus(i);
                    let flags = DataFlags { begin: true, end: true, ..DataFlags::default() };
                    let header = DataHeader { tsn, stream: StreamId(0), ssn: Ssn(i as u16), ppid: 0, flags };
                    r.give(&[&if interleaved {
                        piece(tsn, 0, i, 0, true)
                    } else {
                        bytes(&Data { header, payload: &[1; 40] })
                    }]);
                }
                r.take();
                let forward = |i: u32| {
                    let (new_cum, mid) = (PEER_TSN.plus(i), Mid(i));
                    if interleaved {
                        bytes(&IForwardTsnOut {
                            new_cum,
                            entries: &[Skipped { stream: StreamId(0), unordered: false, mid }],
                        })
                    } else {
                        bytes(&ForwardTsnOut { new_cum, streams: &[(StreamId(0), Ssn(i as u16))] })
                    }
                };
                let work = steps(|| {
                    // Gap blocks of the answers grow shorter by themselves: without a delay one leaves for each.
                    let step = if at_once { 2 * n as usize - 2 } else { 2 };
                    for i in (0..2 * n - 1).step_by(step) {
                        let mut out = anabranch_wire::CommonHeader { src_port: PEER_PORT, dst_port: PORT, vtag: r.tag }
                            .to_bytes()
                            .to_vec();
                        out.extend_from_slice(&forward(i));
                        r.endpoint.handle(r.now, r.to, r.from, &Bytes::from(out), anabranch_wire::Verify::Trusted);
                    }
                });
                r.drain();
                assert_eq!(r.read(id).len() as u32, n);
                work
            });
        }
    }
}

/// What arrived comes again and again, beside few holes and beside many.
#[test]
fn duplicates_received() {
    for holes in [0, 200] {
        grows(&format!("duplicates received beside {holes} holes"), |n| {
            let (mut r, _) = accepted(&assoc_config("sctp"), &[]);
            let chunk = |i: u32| data(PEER_TSN.plus(i), i as u16, &[1; 40]);
            (0..=holes).for_each(|i| r.give(&[&chunk(2 * i)]));
            r.take();
            steps(|| {
                for i in 0..n {
                    r.give(&[&chunk(2 * (i % (holes + 1)))]);
                    r.take();
                }
            })
        });
    }
}
