//! Transport streams whose packets run on from datagram to datagram, and what is none.

use super::*;
use anabranch_base::RandomStream;
use proptest::prelude::*;

/// A stream that looks like one: headers of several streams, and content that repeats nowhere near.
fn stream(packets: usize, seed: u64) -> Vec<u8> {
    let mut bytes = noise(packets * PACKET_LEN, seed);
    for (i, packet) in bytes.chunks_mut(PACKET_LEN).enumerate() {
        packet[..4].copy_from_slice(&[0x47, (i % 3) as u8, 0x11, 0x10 | (i % 16) as u8]);
    }
    bytes
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = RandomStream::named(seed, "noise");
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// What datagrams are, and after how many that is known.
fn verdict(datagrams: &[&[u8]]) -> (Verdict, usize) {
    let mut r = Recogniser::new();
    let found = datagrams.iter().enumerate().find_map(|(i, d)| r.push(d).map(|v| (v, i + 1)));
    found.unwrap_or((r.so_far(), datagrams.len()))
}

/// Every size from three packets on, wherever the first datagram begins in a packet, with whatever byte.
#[test]
fn a_stream_is_known_by_its_second_or_third_datagram() {
    let stream = stream(200, 1);
    for size in (564..1_500).step_by(7).chain([1_000, 1_024, 1_400, 1_472, 4_096, 8_192]) {
        for from in (0..PACKET_LEN).step_by(5) {
            let datagrams: Vec<&[u8]> = stream[from..].chunks_exact(size).collect();
            let (found, after) = verdict(&datagrams);
            let whole = from == 0 && size % PACKET_LEN == 0;
            assert_eq!(found, if whole { Verdict::Plain } else { Verdict::RunsOn }, "{size} from {from}");
            assert!(after <= 3, "{size} from {from}: {after}");
        }
    }
}

/// ffmpeg ends a frame with a shorter datagram.
#[test]
fn short_datagrams_in_between_do_no_harm() {
    let stream = stream(60, 2);
    for short in [1, 64, 128, 187, 316, 472, 900] {
        let (a, rest) = stream.split_at(1_472);
        let (b, rest) = rest.split_at(short);
        assert_eq!(verdict(&[a, b, &rest[..1_472]]).0, Verdict::RunsOn, "{short}");
        assert_eq!(verdict(&[a, b]).0, Verdict::RunsOn, "{short}, then silence");
    }
    assert_eq!(verdict(&[&stream[..1_472]]), (Verdict::RunsOn, 1), "silence after the first");
    assert_eq!(verdict(&[&stream[..700]]), (Verdict::MayRunOn, 1), "four headers and nothing more");
}

#[test]
fn gaps_and_damage() {
    let mut stream = stream(100, 3);
    let part = |i: usize| i * 1_472..(i + 1) * 1_472;
    // The second is lost.
    assert_eq!(verdict(&[&stream[part(0)], &stream[part(2)], &stream[part(3)]]), (Verdict::RunsOn, 3));
    // None follows its predecessor.
    let gaps: Vec<&[u8]> = (0..16).map(|i| &stream[i * 1_000..][..700]).collect();
    assert_eq!(verdict(&gaps), (Verdict::MayRunOn, 16));
    stream[3 * PACKET_LEN] = 0;
    assert_eq!(verdict(&[&stream[part(0)], &stream[part(1)]]), (Verdict::RunsOn, 2));
    let whole = 7 * PACKET_LEN;
    assert_eq!(verdict(&[&stream[..whole]]), (Verdict::RunsOn, 1), "one packet of seven damaged");
    assert_eq!(verdict(&[&stream[..whole], &stream[whole..2 * whole]]), (Verdict::Plain, 2));
}

/// What is no stream is known by its first datagram, so that no datagram waits.
#[test]
fn datagrams_of_other_kinds_do_not_wait() {
    let mut cases: Vec<Vec<u8>> = vec![b"hello".to_vec(), vec![], vec![0x47], vec![0x47; 1_472], vec![b'G'; 5_000]];
    for len in [20, 188, 189, 376, 500, 564, 752, 1_000, 1_200, 1_316, 1_400, 1_472, 9_000] {
        for seed in 0..300 {
            cases.push(noise(len, seed));
            // A game whose datagrams begin with a `G`, and one that has it at one or two places of a stream's, but not at a
            // third one by chance: that is worth a look at the next.
            let mut game = noise(len, seed + 1_000);
            for at in [0, PACKET_LEN, 7 * PACKET_LEN].into_iter().filter(|at| *at < len.saturating_sub(1)) {
                game[at] = 0x47;
            }
            game.get_mut(2 * PACKET_LEN).into_iter().for_each(|b| *b = 0);
            cases.push(game);
        }
    }
    for case in cases {
        let whole = is_packets(&case);
        // Bytes that may be RTP were waited for before.
        let other = matches!(look(&case), Look::Unknown);
        if !whole && other {
            assert_eq!(verdict(&[&case]), (Verdict::Other, 1), "{} bytes: {:02x?}", case.len(), case.get(..4));
            let mut r = Recogniser::new();
            assert_eq!(r.push(&case), Some(Verdict::Other), "{} bytes", case.len());
        }
    }
}

/// Packets with a time in front, or parity behind, cut anyhow.
#[test]
fn wider_packets_are_named() {
    let stream = stream(100, 4);
    for (size, before) in [(192, 4), (204, 0)] {
        let mut wide = Vec::new();
        for (i, packet) in stream.chunks(PACKET_LEN).enumerate() {
            let mut more = noise(size - PACKET_LEN, i as u64);
            let behind = more.split_off(before);
            wide.extend([&more[..], packet, &behind].concat());
        }
        for len in [5 * size, 7 * size, 1_472, 1_300] {
            for from in (0..size).step_by(11) {
                let datagram = &wide[from..from + len];
                if look(datagram) == Look::Unknown && len / size >= 5 {
                    let found = verdict(&[datagram]).0;
                    let few = len == 5 * size || len == 1_300;
                    assert!(found == Verdict::Wider { size } || few && found == Verdict::Other, "{size}: {found:?}");
                    assert!(from > 0 || found == Verdict::Wider { size }, "{size} from its beginning");
                }
            }
        }
    }
}

#[test]
fn rtp_around_a_stream_that_runs_on_is_still_rtp() {
    let stream = stream(100, 5);
    let packets: Vec<Bytes> = (0..8u16).map(|i| rtp(33, SSRC, i, &stream[usize::from(i) * 1_460..][..1_460])).collect();
    let datagrams: Vec<&[u8]> = packets.iter().map(|p| &p[..]).collect();
    assert_eq!(verdict(&datagrams), (Verdict::Rtp { payload_type: 33 }, 3));
}

proptest! {
    /// However a stream is cut, it is media, or at least said to look like one, once a datagram has five headers.
    #[test]
    fn cut_anyhow(from in 0usize..188, sizes in proptest::collection::vec(940usize..2_000, 3..8), seed in any::<u64>()) {
        let stream = stream(120, seed);
        let mut rest = &stream[from..];
        let mut datagrams = Vec::new();
        for size in sizes {
            let (one, more) = rest.split_at(size.min(rest.len()));
            datagrams.push(one);
            rest = more;
        }
        let found = verdict(&datagrams).0;
        prop_assert!(matches!(found, Verdict::RunsOn | Verdict::Plain), "{:?}", found);
    }
}
