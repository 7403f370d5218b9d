//! Ancillary data as `struct cmsghdr` lays it out.

use crate::abi::message::{InitMsg, PrInfo, SndInfo, SndRcvInfo, flag, kind};
use crate::abi::{SOL_SCTP, address, read};
use crate::socket::{Reliability, SendRequest};

/// Bytes of `struct cmsghdr`: length, level, type.
const HEADER: usize = size_of::<libc::cmsghdr>();

fn align(n: usize) -> usize {
    n.next_multiple_of(size_of::<usize>())
}

/// Level, type and data of each piece.
pub fn pieces(mut b: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let word = |at: usize| Some(i32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?));
        let len = usize::from_ne_bytes(b.get(..size_of::<usize>())?.try_into().ok()?);
        let (level, kind) = (word(size_of::<usize>())?, word(size_of::<usize>() + 4)?);
        let data = b.get(HEADER..len)?;
        b = b.get(align(len)..).unwrap_or(&[]);
        Some((level, kind, data))
    })
}

/// Appends a piece.
pub fn push(out: &mut Vec<u8>, level: i32, kind: i32, data: &[u8]) {
    out.extend_from_slice(&(HEADER + data.len()).to_ne_bytes());
    out.extend_from_slice(&level.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(data);
    out.resize(align(out.len()), 0);
}

/// Bytes of the pieces that have room, the padding of the last one aside, and whether these are all.
pub fn whole_pieces(b: &[u8], room: usize) -> (usize, bool) {
    let mut at = 0;
    for (_, _, data) in pieces(b) {
        let len = HEADER + data.len();
        if at + len > room {
            return (at, false);
        }
        at += align(len).min(room - at);
    }
    (at, true)
}

/// What a program says with a message; none when a piece does not have its format.
pub fn request(control: &[u8]) -> Option<(SendRequest, Option<InitMsg>)> {
    let mut r = SendRequest::default();
    let mut init = None;
    for (level, which, data) in pieces(control) {
        if level != SOL_SCTP {
            continue;
        }
        match which {
            kind::INIT => init = Some(read::<InitMsg>(data, 8)?),
            kind::SNDRCV => {
                let i = read::<SndRcvInfo>(data, 32)?;
                let flags = i.flags.get();
                r.stream = Some(i.stream.get());
                r.flags = Some(flags & !flag::PR_MASK);
                r.ppid = Some(u32::from_be(i.ppid.get()));
                r.association = Some(i.id.get());
                r.context = Some(i.context.get());
                let ttl = i.ttl.get();
                // Without a policy a lifetime is meant, and 0 is none (RFC 6458 §5.3.2).
                let policy = if flags & flag::PR_MASK == 0 && ttl != 0 { flag::PR_TTL } else { flags };
                r.reliability = Reliability::of(policy, ttl);
            }
            kind::SNDINFO => {
                let i = read::<SndInfo>(data, 16)?;
                r.stream = Some(i.stream.get());
                r.flags = Some(i.flags.get());
                r.ppid = Some(u32::from_be(i.ppid.get()));
                r.association = Some(i.id.get());
                r.context = Some(i.context.get());
            }
            kind::PRINFO => {
                let i = read::<PrInfo>(data, 8)?;
                r.reliability = Reliability::of(i.policy.get(), i.value.get());
            }
            _ => {}
        }
    }
    Some((r, init))
}

/// The address of `msg_name`.
pub fn name(b: &[u8]) -> Option<std::net::SocketAddr> {
    address::parse(b).map(|(a, _)| a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_there_and_back() {
        let mut b = Vec::new();
        push(&mut b, SOL_SCTP, kind::PRINFO, &[0x20, 0, 0, 0, 3, 0, 0, 0]);
        push(&mut b, 1, 2, b"xyz");
        assert_eq!(b.len() % size_of::<usize>(), 0);
        let all: Vec<_> = pieces(&b).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], (1, 2, &b"xyz"[..]));
        let (r, _) = request(&b).unwrap();
        assert_eq!(r.reliability, Some(Reliability::Retransmissions(3)));
        assert_eq!(pieces(&b[..10]).count(), 0, "cut short");
        let first = align(HEADER + 8);
        assert_eq!(whole_pieces(&b, first - 1), (0, false));
        assert_eq!(whole_pieces(&b, first), (first, false), "the first has room, the second has not");
        assert_eq!(whole_pieces(&b, first + HEADER + 3), (first + HEADER + 3, true), "the padding is not needed");
        assert_eq!(whole_pieces(&b, 1_000), (b.len(), true));
        let mut bad = Vec::new();
        push(&mut bad, SOL_SCTP, kind::SNDINFO, b"short");
        assert!(request(&bad).is_none());
    }
}
