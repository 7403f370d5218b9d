//! What is written reads back as it was: every chunk, parameter and error cause.

mod common;

use anabranch_base::{Ssn, StreamId, Tsn};
use anabranch_wire::*;
use common::{HEADER, Stuff, any, bytes, only_chunk, packet};
use proptest::prelude::*;

/// Writes `item` as the only chunk of a packet and hands what is read to `check`, twice: with its own length field,
/// and with one that counts the final padding (RFC 9260 §3.2, note).
fn through(item: &impl Encode, check: impl Fn(Chunk<'_>, bool)) {
    let mut chunk = bytes(item);
    assert!(chunk.len().is_multiple_of(4));
    check(only_chunk(&packet(&chunk)).decode().expect("readable"), false);
    let padded = (chunk.len() as u16).to_be_bytes();
    chunk[2..4].copy_from_slice(&padded);
    check(only_chunk(&packet(&chunk)).decode().expect("readable"), true);
}

fn decoded(params: Params<'_>) -> Vec<Parameter<'_>> {
    params.iter().map(|p| p.expect("readable")).collect()
}

/// What a parameter list of `s` twice reads as, apart from `whole`, which a hand-made unknown one does not have.
fn same_twice(read: &[Parameter<'_>], s: &Stuff) -> bool {
    let want = common::parameter(s);
    read.len() == 2
        && read.iter().all(|p| match (p, want) {
            (Parameter::Unknown(p), Parameter::Unknown(w)) => (p.kind, p.value) == (w.kind, w.value),
            _ => *p == want,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parameters(mut s in any::stuff()) {
        for select in 0..common::PARAMETERS {
            s.select = select;
            let mut list = bytes(&common::parameter(&s));
            list.extend_from_within(..);
            prop_assert!(same_twice(&decoded(Params::new(&list)), &s));
            for raw in Params::new(&list).iter_raw() {
                let raw = raw.unwrap();
                prop_assert!(list.starts_with(raw.whole));
                prop_assert_eq!(&raw.whole[..2], &raw.kind.to_be_bytes()[..]);
            }
        }
    }

    #[test]
    fn causes(mut s in any::stuff()) {
        for select in 0..common::CAUSES {
            s.select = select;
            let cause = common::cause(&s);
            let mut list = bytes(&cause);
            prop_assert_eq!(u16::from_be_bytes([list[0], list[1]]), cause.code());
            list.extend_from_within(..);
            let read: Vec<_> = Causes::new(&list).iter().collect();
            prop_assert_eq!(read, [Ok(cause), Ok(cause)]);
        }
    }

    #[test]
    fn data(s in any::stuff()) {
        let header = common::data_header(&s);
        prop_assert_eq!(bytes(&Data { header, payload: &s.bytes }).len(), data_chunk_len(s.bytes.len()));
        through(&Data { header, payload: &s.bytes }, |c, padded| match c {
            Chunk::Data(d) => {
                assert_eq!(d.header, header);
                assert!(d.payload.starts_with(&s.bytes) && (padded || d.payload == s.bytes));
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn init_and_init_ack(s in any::stuff()) {
        let fields = common::init_fields(&s);
        let mut params = bytes(&common::parameter(&s));
        params.extend_from_within(..);
        through(&InitOut { ack: false, fields, params: &params }, |c, _| match c {
            Chunk::Init(i) => assert!(i.fields == fields && same_twice(&decoded(i.params), &s)),
            c => panic!("{c:?}"),
        });
        through(&InitOut { ack: true, fields, params: &params }, |c, _| match c {
            Chunk::InitAck(i) => assert!(i.fields == fields && same_twice(&decoded(i.params), &s)),
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn sack(s in any::stuff()) {
        let gaps: Vec<_> = s.list.iter().map(|&(start, end)| GapBlock { start, end }).collect();
        let duplicates: Vec<_> = s.tsns.iter().map(|&t| Tsn(t)).collect();
        let out = SackOut { cum_tsn: Tsn(s.a), a_rwnd: s.b, gaps: &gaps, duplicates: &duplicates };
        prop_assert_eq!(bytes(&out).len(), SackOut::len_with(gaps.len() + duplicates.len()));
        through(&out, |c, _| match c {
            Chunk::Sack(r) => {
                assert_eq!((r.cum_tsn, r.a_rwnd), (Tsn(s.a), s.b));
                assert_eq!(r.gaps().collect::<Vec<_>>(), gaps);
                assert_eq!(r.duplicates().collect::<Vec<_>>(), duplicates);
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn heartbeat_and_its_answer(s in any::stuff(), extra in any::stuff()) {
        through(&Heartbeat::new(&s.bytes), |c, _| match c {
            Chunk::Heartbeat(h) => assert_eq!(h.info, s.bytes),
            c => panic!("{c:?}"),
        });
        // Another parameter beside it comes back unchanged.
        let mut request = bytes(&common::parameter(&extra));
        request.extend_from_slice(&bytes(&Heartbeat::new(&s.bytes))[4..]);
        let heartbeat = Heartbeat { info: &s.bytes, params_raw: &request };
        through(&heartbeat, |c, _| match c {
            Chunk::Heartbeat(h) => {
                assert_eq!(h.info, s.bytes);
                let ack = packet(&bytes(&HeartbeatAck::to(&h)));
                match only_chunk(&ack).decode() {
                    Ok(Chunk::HeartbeatAck(a)) => assert_eq!((a.info, a.params_raw), (h.info, h.params_raw)),
                    c => panic!("{c:?}"),
                }
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn abort_and_error(s in any::stuff()) {
        let cause = common::cause(&s);
        let causes = bytes(&cause);
        through(&AbortOut { tag_reflected: s.flag, causes: &causes }, |c, _| match c {
            Chunk::Abort(a) => {
                assert_eq!(a.tag_reflected, s.flag);
                assert_eq!(a.causes.iter().collect::<Vec<_>>(), [Ok(cause)]);
            }
            c => panic!("{c:?}"),
        });
        through(&ErrorOut { causes: &causes }, |c, _| match c {
            Chunk::Error(e) => assert_eq!(e.causes.iter().collect::<Vec<_>>(), [Ok(cause)]),
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn shutdown_family(tsn: u32, tag_reflected: bool) {
        let cum_tsn = Tsn(tsn);
        through(&Shutdown { cum_tsn }, |c, _| assert_eq!(c, Chunk::Shutdown(Shutdown { cum_tsn })));
        through(&ShutdownAck, |c, _| assert_eq!(c, Chunk::ShutdownAck));
        let complete = ShutdownComplete { tag_reflected };
        through(&complete, |c, _| assert_eq!(c, Chunk::ShutdownComplete(complete)));
    }

    #[test]
    fn cookies(s in any::stuff()) {
        through(&CookieEcho { cookie: &s.bytes }, |c, padded| match c {
            Chunk::CookieEcho(e) => assert!(e.cookie.starts_with(&s.bytes) && (padded || e.cookie == s.bytes)),
            c => panic!("{c:?}"),
        });
        through(&CookieAck, |c, _| assert_eq!(c, Chunk::CookieAck));
    }

    #[test]
    fn forward_tsn(s in any::stuff()) {
        let streams: Vec<_> = s.list.iter().map(|&(i, n)| (StreamId(i), Ssn(n))).collect();
        let out = ForwardTsnOut { new_cum: Tsn(s.a), streams: &streams };
        prop_assert_eq!(bytes(&out).len(), ForwardTsnOut::len_with(streams.len()));
        through(&out, |c, _| match c {
            Chunk::ForwardTsn(f) => {
                assert_eq!(f.new_cum, Tsn(s.a));
                assert_eq!(f.streams().collect::<Vec<_>>(), streams);
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn auth(s in any::stuff()) {
        let mac = &s.bytes[..s.bytes.len() & !3];
        let auth = Auth { key_id: s.a as u16, hmac_id: s.b as u16, mac };
        through(&auth, |c, _| assert_eq!(c, Chunk::Auth(auth)));
        let out = AuthOut { key_id: auth.key_id, hmac_id: auth.hmac_id, mac_len: mac.len() };
        let mut written = vec![1, 2, 3];
        let at = out.encode_at(&mut written);
        written[at..at + mac.len()].copy_from_slice(mac);
        prop_assert_eq!(&written[3..], bytes(&auth));
    }

    #[test]
    fn asconf_and_its_answer(s in any::stuff()) {
        let mut params = bytes(&common::parameter(&s));
        params.extend_from_within(..);
        through(&AsconfOut { serial: s.a, address: s.address, params: &params }, |c, _| match c {
            Chunk::Asconf(a) => {
                assert_eq!((a.serial, a.address), (s.a, Some(s.address)));
                assert!(same_twice(&decoded(a.params), &s));
            }
            c => panic!("{c:?}"),
        });
        through(&AsconfAckOut { serial: s.a, params: &params }, |c, _| match c {
            Chunk::AsconfAck(a) => assert!(a.serial == s.a && same_twice(&decoded(a.params), &s)),
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn i_data(s in any::stuff()) {
        let header = common::i_data_header(&s);
        through(&IData { header, payload: &s.bytes }, |c, padded| match c {
            Chunk::IData(d) => {
                assert_eq!(d.header, header);
                assert!(d.payload.starts_with(&s.bytes) && (padded || d.payload == s.bytes));
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn i_forward_tsn(s in any::stuff()) {
        let entries = common::skipped(&s);
        let out = IForwardTsnOut { new_cum: Tsn(s.a), entries: &entries };
        prop_assert_eq!(bytes(&out).len(), IForwardTsnOut::len_with(entries.len()));
        through(&out, |c, _| match c {
            Chunk::IForwardTsn(f) => {
                assert_eq!(f.new_cum, Tsn(s.a));
                assert_eq!(f.entries().collect::<Vec<_>>(), entries);
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn re_config(s in any::stuff()) {
        let mut params = bytes(&common::parameter(&s));
        params.extend_from_within(..);
        through(&ReConfigOut { params: &params }, |c, _| match c {
            Chunk::ReConfig(r) => assert!(same_twice(&decoded(r.params), &s)),
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn nr_sack(s in any::stuff(), at in any::<prop::sample::Index>()) {
        let blocks: Vec<_> = s.list.iter().map(|&(start, end)| GapBlock { start, end }).collect();
        let (gaps, kept) = blocks.split_at(at.index(blocks.len() + 1));
        let duplicates: Vec<_> = s.tsns.iter().map(|&t| Tsn(t)).collect();
        let out = NrSackOut { cum_tsn: Tsn(s.a), a_rwnd: s.b, gaps, kept, duplicates: &duplicates };
        prop_assert_eq!(bytes(&out).len(), NrSackOut::len_with(blocks.len() + duplicates.len()));
        through(&out, |c, _| match c {
            Chunk::NrSack(r) => {
                assert_eq!((r.sack.cum_tsn, r.sack.a_rwnd), (Tsn(s.a), s.b));
                assert_eq!(r.sack.gaps().collect::<Vec<_>>(), gaps);
                assert_eq!(r.kept().collect::<Vec<_>>(), kept);
                assert_eq!(r.sack.duplicates().collect::<Vec<_>>(), duplicates);
            }
            c => panic!("{c:?}"),
        });
    }

    #[test]
    fn padding(len in 0usize..2_000) {
        let filling = Pad::filling(len);
        prop_assert_eq!(filling.is_some(), len >= 4);
        if let Some(pad) = filling {
            prop_assert_eq!(bytes(&pad).len(), len & !3);
            through(&pad, |c, _| assert_eq!(c, Chunk::Pad(pad)));
        }
    }

    #[test]
    fn ecn(tsn: u32, marked: u32, flags: u8) {
        let (ecne, cwr) = (Ecne { tsn: Tsn(tsn), marked }, Cwr { flags, tsn: Tsn(tsn) });
        through(&ecne, |c, _| assert_eq!(c, Chunk::Ecne(ecne)));
        through(&cwr, |c, _| assert_eq!(c, Chunk::Cwr(cwr)));
        let stamp = TimeStamp { micros: tsn };
        through(&stamp, |c, _| assert_eq!(c, Chunk::TimeStamp(stamp)));
    }

    #[test]
    fn parity(s in any::stuff()) {
        let parity = Parity { tsn: Tsn(s.a), record: &s.bytes };
        prop_assert_eq!(bytes(&parity).len(), (Parity::HEADER_LEN + s.bytes.len()).next_multiple_of(4));
        through(&parity, |c, padded| match c {
            Chunk::Parity(p) => {
                assert_eq!(p.tsn, parity.tsn);
                assert!(p.record.starts_with(&s.bytes) && (padded || p.record.len() == s.bytes.len()));
            }
            c => panic!("{c:?}"),
        });
        let tsns: Vec<_> = s.tsns.iter().map(|&t| Tsn(t)).collect();
        let out = RepairedOut { settled: s.flag, tsns: &tsns };
        prop_assert_eq!(bytes(&out).len(), RepairedOut::len_with(tsns.len()));
        through(&out, |c, _| match c {
            Chunk::Repaired(r) => assert_eq!((r.settled, r.tsns().collect::<Vec<_>>()), (s.flag, tsns.clone())),
            c => panic!("{c:?}"),
        });
    }

    /// Many chunks in one packet, read one behind the other, with and without the last one's padding.
    #[test]
    fn bundles(all in prop::collection::vec(any::stuff(), 0..8), drop_padding: bool) {
        let chunks: Vec<Vec<u8>> = all.iter().map(common::chunk).collect();
        let mut datagram = packet(&chunks.concat());
        if let (true, Some(last)) = (drop_padding, chunks.last()) {
            let padding = last.len() - usize::from(u16::from_be_bytes([last[2], last[3]]));
            datagram.truncate(datagram.len() - padding);
            common::fix_checksum(&mut datagram);
        }
        let read = Packet::parse(&datagram, Verify::Checksum).unwrap();
        prop_assert_eq!(read.header, HEADER);
        let raws: Vec<_> = read.chunks().map(Result::unwrap).collect();
        prop_assert_eq!(raws.len(), chunks.len());
        for (i, (raw, written)) in raws.iter().zip(&chunks).enumerate() {
            let last = i + 1 == chunks.len();
            prop_assert!(written.starts_with(raw.whole) && (last || raw.whole == written));
            prop_assert_eq!(raw.kind, written[0]);
            prop_assert_eq!(bytes(&raw.decode().unwrap()), &written[..]);
        }
        prop_assert_eq!(common::walk::walk(&datagram, Verify::Checksum), chunks.len());
    }
}
