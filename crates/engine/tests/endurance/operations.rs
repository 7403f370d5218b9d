//! Random sequences of what users, interfaces, NATs and networks do. Whatever happens: nothing reliable is lost,
//! doubled, changed or out of order, the books agree after every step, and the association ends or goes on.
//!
//! `PROPTEST_CASES` sets how many sequences are tried.

use crate::operated::{Op, PATHS, play, play_bytes, play_with};
use crate::profiles::PROFILES;
use proptest::prelude::*;

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![3 => 10usize..400, 3 => 900usize..1_400, 1 => 3_000usize..20_000];
    let life = prop_oneof![2 => Just(None), 1 => (1u16..800).prop_map(Some)];
    let send = (any::<bool>(), 0u16..3, len, 1u8..30, life).prop_map(|(server, stream, len, count, life)| Op::Send {
        server,
        stream,
        len,
        count,
        life,
    });
    let path = 0..PATHS;
    prop_oneof![
        8 => send,
        8 => prop_oneof![6 => 1u16..200, 2 => 200u16..2_000].prop_map(Op::Run),
        3 => (path.clone(), 0u8..30, 0u8..30, 0u8..30)
            .prop_map(|(path, loss, duplicate, reorder)| Op::Weather { path, loss, duplicate, reorder }),
        2 => (path.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(path, forward, backward)| Op::Cut { path, forward, backward }),
        2 => path.clone().prop_map(Op::Restore),
        1 => path.clone().prop_map(Op::InterfaceDown),
        2 => path.clone().prop_map(Op::InterfaceUp),
        1 => (path.clone(), any::<u8>()).prop_map(|(p, n)| Op::NewPort(p, n)),
        1 => (path, any::<u8>()).prop_map(|(p, n)| Op::NewAddress(p, n)),
        2 => any::<bool>().prop_map(Op::Read),
        1 => any::<bool>().prop_map(|server| Op::Restart { server }),
    ]
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens(
        profile in prop::sample::select(&PROFILES[..]),
        seed in 0u64..1_000,
        ops in prop::collection::vec(op(), 1..60),
        both_shut_down: bool,
        parity: bool,
    ) {
        play_with(profile, seed, &ops, both_shut_down, parity);
    }
}

/// The seeds of the fuzz target `operations`, and what it found.
///
/// `ANABRANCH_OPERATIONS=FILE` plays that one alone.
#[test]
fn seeds() {
    if let Some(file) = std::env::var_os("ANABRANCH_OPERATIONS") {
        return play_bytes(&std::fs::read(&file).expect("a file"));
    }
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/operations");
    let mut n = 0;
    for entry in std::fs::read_dir(dir).expect("seeds") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        play_bytes(&std::fs::read(&path).expect("a file"));
        n += 1;
    }
    assert!(n > 0);
}

/// A message that expires while every interface is down: FORWARD-TSN must wait, not be tried for ever.
#[test]
fn everything_down_while_a_message_expires() {
    let send = |life| Op::Send { server: false, stream: 0, len: 10, count: 1, life };
    let ops = [
        Op::Cut { path: 0, forward: true, backward: false },
        Op::InterfaceDown(1),
        send(Some(1)),
        Op::InterfaceDown(2),
        Op::InterfaceDown(0),
        send(None),
    ];
    play("sctp", 0, &ops, false);
}

/// A scheduler had sent higher TSNs first; the peer's window shut, and the lower one waited for it for ever.
#[test]
fn a_hole_may_be_filled_although_the_window_is_closed() {
    let ops = [
        Op::Cut { path: 1, forward: true, backward: false },
        Op::NewAddress(2, 0),
        Op::Send { server: true, stream: 0, len: 1366, count: 11, life: Some(98) },
        Op::Send { server: false, stream: 0, len: 361, count: 13, life: None },
        Op::Send { server: false, stream: 2, len: 17393, count: 10, life: Some(260) },
        Op::Cut { path: 1, forward: false, backward: false },
        Op::Weather { path: 1, loss: 0, duplicate: 0, reorder: 0 },
        Op::Cut { path: 1, forward: false, backward: true },
        Op::Run(79),
        Op::Run(75),
        Op::Send { server: false, stream: 0, len: 181, count: 10, life: None },
        Op::Send { server: false, stream: 0, len: 77, count: 2, life: None },
        Op::Weather { path: 0, loss: 0, duplicate: 0, reorder: 1 },
        Op::Send { server: true, stream: 0, len: 10, count: 1, life: None },
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Run(83),
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Run(394),
        Op::InterfaceDown(2),
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::Run(1445),
        Op::Send { server: false, stream: 0, len: 6049, count: 22, life: None },
        Op::Send { server: true, stream: 0, len: 33, count: 21, life: None },
        Op::Send { server: true, stream: 0, len: 15237, count: 8, life: None },
        Op::Run(151),
        Op::NewAddress(0, 0),
        Op::Run(173),
        Op::Run(1434),
    ];
    play("live", 455, &ops, false);
}

/// Impatient probes of a path that is gone end an association too.
#[test]
fn what_a_restart_left_is_forgotten_however_often_its_path_is_probed() {
    let ops = [
        Op::NewPort(0, 0),
        Op::Restart { server: false },
        Op::Send { server: false, stream: 0, len: 10, count: 1, life: None },
        Op::NewPort(2, 0),
        Op::NewAddress(1, 0),
    ];
    play("live", 0, &ops, false);
}

/// The first fragment of a message came and restored one of the next message, which was read before it.
#[test]
fn what_restores_another_chunk_is_in_its_message_first() {
    let ops = [
        Op::Send { server: false, stream: 0, len: 227, count: 10, life: Some(14) },
        Op::Weather { path: 2, loss: 0, duplicate: 0, reorder: 1 },
        Op::Weather { path: 2, loss: 12, duplicate: 20, reorder: 27 },
        Op::Send { server: true, stream: 0, len: 381, count: 16, life: None },
        Op::Cut { path: 1, forward: true, backward: false },
        Op::Send { server: false, stream: 2, len: 153, count: 26, life: None },
        Op::Run(49),
        Op::Send { server: true, stream: 0, len: 1157, count: 2, life: None },
        Op::Cut { path: 0, forward: true, backward: true },
        Op::Cut { path: 1, forward: false, backward: false },
        Op::Run(147),
        Op::NewPort(2, 0),
        Op::Run(161),
        Op::Send { server: false, stream: 0, len: 1182, count: 20, life: None },
        Op::Run(30),
    ];
    play_with("low-latency", 386, &ops, false, true);
}

/// A path answered again; those used only while none did were left, and with them the timer of withdrawn reports.
#[test]
fn withdrawn_reports_outlive_the_path_that_watched_them() {
    let ops = [
        Op::Weather { path: 0, loss: 6, duplicate: 25, reorder: 14 },
        Op::Send { server: false, stream: 0, len: 1255, count: 18, life: None },
        Op::Restore(0),
        Op::Run(9),
        Op::Cut { path: 0, forward: false, backward: false },
        Op::Send { server: true, stream: 0, len: 13697, count: 11, life: None },
        Op::Read(false),
        Op::Run(130),
        Op::Send { server: false, stream: 0, len: 313, count: 15, life: Some(35) },
        Op::Read(true),
        Op::Run(13),
    ];
    play_with("low-latency", 310, &ops, false, false);
}

/// The SACK that counted what was restored was lost, and nothing else was under way.
#[test]
fn the_last_sack_of_what_was_restored_may_be_lost() {
    let ops = [
        Op::Cut { path: 1, forward: false, backward: true },
        Op::Send { server: true, stream: 0, len: 10, count: 1, life: None },
        Op::Run(112),
        Op::Send { server: false, stream: 0, len: 4404, count: 4, life: None },
        Op::Run(82),
        Op::InterfaceDown(2),
        Op::Cut { path: 2, forward: false, backward: true },
        Op::Send { server: true, stream: 0, len: 900, count: 5, life: Some(73) },
        Op::Weather { path: 1, loss: 0, duplicate: 0, reorder: 0 },
        Op::Run(1806),
        Op::Send { server: false, stream: 0, len: 97, count: 9, life: None },
        Op::InterfaceUp(0),
        Op::Weather { path: 0, loss: 15, duplicate: 19, reorder: 7 },
        Op::Run(85),
        Op::Run(161),
        Op::Send { server: false, stream: 0, len: 1100, count: 27, life: None },
        Op::Restore(0),
        Op::Weather { path: 0, loss: 14, duplicate: 6, reorder: 0 },
        Op::Cut { path: 1, forward: false, backward: true },
        Op::Send { server: true, stream: 0, len: 18090, count: 6, life: None },
        Op::Run(85),
        Op::Run(41),
    ];
    play_with("live", 465, &ops, false, true);
}
