//! Messages as the kernel sends them, put together by hand, and a kernel that answers with them.

use super::*;
use nix::sys::socket::socketpair;
use std::sync::mpsc::{Receiver, channel};

/// The number of nl80211, which differs from boot to boot.
const FAMILY: u16 = 0x1c;
const MULTI: u16 = 2;

/// An attribute, padded to four bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    all.extend((4 + value.len() as u16).to_ne_bytes());
    all.extend(kind.to_ne_bytes());
    all.extend(value);
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    all.extend((16 + payload.len() as u32).to_ne_bytes());
    all.extend(kind.to_ne_bytes());
    all.extend(flags.to_ne_bytes());
    all.extend(sequence.to_ne_bytes());
    all.extend(0x9c40_1234_u32.to_ne_bytes());
    all.extend(payload);
    all
}

fn generic(command: u8, attributes: &[u8]) -> Vec<u8> {
    [&[command, 1, 0, 0], attributes].concat()
}

/// "nl80211 has this number", with some of what else is said of a family.
fn family(sequence: u32) -> Vec<u8> {
    let attributes = [
        attribute(2, b"nl80211\0"),
        attribute(1, &FAMILY.to_ne_bytes()),
        attribute(3, &1u32.to_ne_bytes()),
        attribute(6, &attribute(1, &[attribute(1, &1u32.to_ne_bytes()), attribute(2, &14u32.to_ne_bytes())].concat())),
    ];
    message(CONTROL, 0, sequence, &generic(1, &attributes.concat()))
}

/// A station's counts; `None` where the driver has none.
#[derive(Clone, Copy)]
pub struct Counted {
    pub id: u8,
    pub packets: u32,
    pub repeats: Option<u32>,
    pub failed: Option<u32>,
}

fn new_station(sequence: u32, index: u32, c: Counted) -> Vec<u8> {
    let count = |kind: u16, n: Option<u32>| n.map(|n| attribute(kind, &n.to_ne_bytes())).unwrap_or_default();
    // 650 Mbit/s, VHT, scheme 7 over two streams of 80 MHz.
    let rate = [
        attribute(5, &6_500u32.to_ne_bytes()),
        attribute(1, &6_500u16.to_ne_bytes()),
        attribute(6, &[7]),
        attribute(7, &[2]),
        attribute(8, &[]),
    ];
    let info = [
        attribute(1, &40u32.to_ne_bytes()),
        attribute(23, &9_000_000u64.to_ne_bytes()),
        attribute(24, &(u64::from(c.packets) * 1_300).to_ne_bytes()),
        attribute(9, &7_000u32.to_ne_bytes()),
        count(10, Some(c.packets)),
        count(11, c.repeats),
        count(12, c.failed),
        attribute(7, &[(-61i8).cast_unsigned()]),
        attribute(8 | 0x8000, &rate.concat()),
    ];
    let attributes = [
        attribute(3, &index.to_ne_bytes()),
        attribute(6, &[2, 0, 0, 0, 0, c.id]),
        attribute(46, &5u32.to_ne_bytes()),
        attribute(21 | 0x8000, &info.concat()),
    ];
    message(FAMILY, MULTI, sequence, &generic(NEW_STATION, &attributes.concat()))
}

fn done(sequence: u32, code: i32) -> Vec<u8> {
    message(NLMSG_DONE, MULTI, sequence, &code.to_ne_bytes())
}

fn refused(sequence: u32, errno: i32, request: &[u8]) -> Vec<u8> {
    message(NLMSG_ERROR, 0, sequence, &[&(-errno).to_ne_bytes()[..], request].concat())
}

/// The whole answer to a question for stations, in two pieces.
pub fn dump(sequence: u32, index: u32, stations: &[Counted]) -> Vec<Vec<u8>> {
    let all: Vec<u8> = stations.iter().flat_map(|s| new_station(sequence, index, *s)).collect();
    [all, done(sequence, 0)].into_iter().filter(|piece| !piece.is_empty()).collect()
}

/// Pieces by the sequence number of the question.
type Answer = Box<dyn Fn(u32) -> Vec<Vec<u8>> + Send>;

/// A kernel whose answers are pieces made from the sequence number of each question, in turn; it repeats what it was asked.
pub fn kernel(answers: Vec<Answer>) -> (io::Result<Kernel>, Receiver<Vec<u8>>) {
    let (ours, theirs) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).expect("a pair");
    let (heard, hears) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let mut buffer = [0; 1_024];
            let Ok(n @ 16..) = recv(theirs.as_raw_fd(), &mut buffer, MsgFlags::empty()) else { return };
            let _ = heard.send(buffer[..n].to_vec());
            let sequence = u32::from_ne_bytes(buffer[8..12].try_into().unwrap());
            for piece in answer(sequence) {
                let _ = send(theirs.as_raw_fd(), &piece, MsgFlags::empty());
            }
        }
    });
    (Kernel::over(ours), hears)
}

/// A kernel with nl80211 that gives these stations of interface 3 in turn.
pub fn with_stations(turns: Vec<Vec<Counted>>) -> Kernel {
    let mut answers: Vec<Answer> = vec![Box::new(|s| vec![family(s)])];
    answers.extend(turns.into_iter().map(|t| -> Answer { Box::new(move |s| dump(s, 3, &t)) }));
    kernel(answers).0.expect("nl80211")
}

#[test]
fn questions_are_what_the_kernel_takes() {
    let (kernel, asked) = kernel(vec![Box::new(|s| vec![family(s)]), Box::new(|s| dump(s, 3, &[]))]);
    assert_eq!(kernel.unwrap().stations(3).unwrap(), []);
    let family = message(0x10, 1, 1, &generic(3, &attribute(2, b"nl80211\0")));
    let stations = message(FAMILY, 0x301, 2, &generic(17, &attribute(3, &3u32.to_ne_bytes())));
    for expected in [family, stations] {
        let mut found = asked.recv().unwrap();
        // We do not say who we are: the kernel knows.
        found[12..16].copy_from_slice(&expected[12..16]);
        assert_eq!(found, expected);
    }
}

#[test]
fn stations_are_read_from_a_dump() {
    let a = Counted { id: 1, packets: 1_500_000, repeats: Some(90_000), failed: Some(12) };
    let b = Counted { id: 2, packets: 7, repeats: None, failed: Some(0) };
    let mut kernel = with_stations(vec![vec![a, b]]);
    let expected = |c: Counted| Station {
        address: [2, 0, 0, 0, 0, c.id],
        packets: c.packets,
        repeats: c.repeats,
        failed: c.failed,
        bytes: u64::from(c.packets) * 1_300,
        modulation: Modulation::Qam64,
    };
    assert_eq!(kernel.stations(3).unwrap(), [expected(a), expected(b)]);
}

#[test]
fn answers_of_others_are_passed_over() {
    let c = Counted { id: 1, packets: 5, repeats: Some(1), failed: Some(0) };
    let late =
        move |s: u32| vec![new_station(s - 1, 3, c), [new_station(s, 4, c), new_station(s, 3, c), done(s, 0)].concat()];
    let (kernel, _) = kernel(vec![Box::new(|s| vec![family(s)]), Box::new(late)]);
    assert_eq!(kernel.unwrap().stations(3).unwrap().len(), 1);
}

#[test]
fn refusals_are_errors() {
    let (none, _) = kernel(vec![Box::new(|s| vec![refused(s, 2, &[0; 20])])]);
    assert_eq!(none.err().and_then(|e| e.raw_os_error()), Some(2), "no nl80211");
    let (some, _) = kernel(vec![
        Box::new(|s| vec![family(s)]),
        Box::new(|s| vec![refused(s, 19, &[0; 28])]),
        Box::new(|s| vec![done(s, -95)]),
    ]);
    let mut some = some.unwrap();
    assert_eq!(some.stations(2).unwrap_err().raw_os_error(), Some(19), "no wireless interface");
    assert_eq!(some.stations(2).unwrap_err().raw_os_error(), Some(95), "a driver that cannot");
}

/// Every piece cut at every byte, and with every byte changed: an error or fewer stations, never a panic.
#[test]
fn what_is_malformed_is_survived() {
    let c = Counted { id: 1, packets: 5, repeats: Some(1), failed: Some(0) };
    let whole = [new_station(9, 3, c), done(9, 0)].concat();
    let stations = |piece: &[u8]| {
        let mut all = Vec::new();
        let end = read(piece, 9, true, &mut |_, attributes| all.extend(station(attributes)));
        end.map(|_| all.len())
    };
    assert_eq!(stations(&whole).unwrap(), 1);
    for cut in 0..whole.len() {
        assert!(stations(&whole[..cut]).unwrap_or(0) <= 1);
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[cut] = value;
            assert!(stations(&changed).unwrap_or(0) <= 1);
        }
    }
}

#[test]
fn schemes_are_modulations() {
    let of = |kind, scheme| modulation(&attribute(kind, &[scheme]));
    let ladder = [Modulation::Bpsk, Modulation::Qpsk, Modulation::Qpsk, Modulation::Qam16, Modulation::Qam16];
    for (scheme, expected) in ladder.into_iter().chain([Modulation::Qam64; 3]).enumerate() {
        let scheme = scheme as u8;
        // Of 802.11n the second stream begins at 8.
        for (kind, scheme) in [(2, scheme), (2, scheme + 8), (6, scheme), (13, scheme), (19, scheme)] {
            assert_eq!(of(kind, scheme), expected, "{kind} {scheme}");
        }
    }
    assert_eq!([of(6, 9), of(13, 11), of(19, 13)], [Modulation::Qam256; 3]);
    let legacy = |units: u16| modulation(&attribute(1, &units.to_ne_bytes()));
    let expected = [Modulation::Dbpsk, Modulation::Dqpsk, Modulation::Bpsk, Modulation::Qam64];
    assert_eq!([10, 110, 60, 540].map(legacy), expected);
    assert_eq!([legacy(7), modulation(&[])], [Modulation::Unknown; 2]);
}

/// On a machine without wireless interfaces there is no family, and with some loopback is none of them.
#[test]
fn this_kernel_answers() {
    if let Ok(mut kernel) = Kernel::open() {
        assert!(kernel.stations(1).is_err(), "loopback has no stations");
    }
}
