//! Touches everything that can be decoded from a packet, and checks what must hold for any bytes at all.

use anabranch_wire::{Causes, Chunk, Encode, Packet, Parameter, Params, RawChunk, Verify, list_u16};

/// Walks a datagram. Returns how many chunks were decoded.
pub fn walk(datagram: &[u8], verify: Verify) -> usize {
    let Ok(packet) = Packet::parse(datagram, verify) else {
        return 0;
    };
    let mut decoded = 0;
    let mut bytes = 12;
    for raw in packet.chunks() {
        let Ok(raw) = raw else { continue };
        assert_eq!(raw.rest.len(), datagram.len() - bytes, "chunks lie one behind the other");
        bytes += raw.whole.len();
        assert!(raw.whole.len() - raw.value.len() <= 4 + 3, "at most three bytes are padding");
        assert!(raw.without_padding().ends_with(raw.value));
        let _ = raw.unknown_action();
        if let Ok(chunk) = raw.decode() {
            decoded += 1;
            walk_chunk(&chunk);
            written_form_is_stable(&chunk);
        }
    }
    assert!(bytes <= datagram.len());
    for highest in [3, 15, 255] {
        let kinds: Vec<_> = packet.chunks().map(|c| c.map(|raw| raw.kind)).collect();
        let only = !kinds.is_empty() && kinds.iter().all(|k| k.as_ref().is_ok_and(|k| *k <= highest));
        assert_eq!(packet.has_only(|k| k <= highest), only, "the frames alone say it");
    }
    decoded
}

fn walk_chunk(chunk: &Chunk<'_>) {
    match chunk {
        Chunk::Init(c) => walk_params(c.params),
        Chunk::InitAck(c) => walk_params(c.params),
        Chunk::Asconf(c) => walk_params(c.params),
        Chunk::AsconfAck(c) => walk_params(c.params),
        Chunk::Abort(c) => walk_causes(c.causes),
        Chunk::Error(c) => walk_causes(c.causes),
        Chunk::Heartbeat(c) => walk_params(Params::new(c.params_raw)),
        Chunk::HeartbeatAck(c) => walk_params(Params::new(c.params_raw)),
        Chunk::Sack(c) => {
            assert_eq!(c.gaps().count(), c.gaps().len());
            assert_eq!(c.duplicates().count(), c.duplicates().len());
        }
        Chunk::NrSack(c) => {
            assert_eq!(c.sack.gaps().count() + c.kept().count(), c.sack.gaps().len() + c.kept().len());
            assert_eq!(c.sack.duplicates().count(), c.sack.duplicates().len());
        }
        Chunk::IData(c) => assert!(c.header.fsn == 0 || !c.header.flags.begin),
        Chunk::IForwardTsn(c) => assert_eq!(c.entries().count(), c.entries().len()),
        Chunk::ReConfig(c) => walk_params(c.params),
        Chunk::ForwardTsn(c) => assert_eq!(c.streams().count(), c.streams().len()),
        _ => (),
    }
}

fn walk_params(params: Params<'_>) {
    let framed = params.iter_raw().count();
    assert_eq!(params.iter().count(), framed, "a bad value does not end the walk, bad framing ends both");
    for p in params.iter_raw().flatten() {
        assert_eq!(p.whole.len(), 4 + p.value.len());
        let _ = p.unknown_action();
    }
    for p in params.iter().flatten() {
        match p {
            Parameter::HmacAlgo(list)
            | Parameter::SupportedAddressTypes(list)
            | Parameter::OutgoingReset { streams: list, .. }
            | Parameter::IncomingReset { streams: list, .. } => {
                assert_eq!(list_u16(list).count() * 2, list.len());
            }
            Parameter::AsconfErrorCause { causes, .. } => walk_causes(Causes::new(causes)),
            _ => (),
        }
        let mut out = Vec::new();
        p.encode(&mut out);
        assert!(out.len().is_multiple_of(4));
        if p != Parameter::HostName && p != Parameter::Padding {
            let again = Params::new(&out).iter().next().and_then(Result::ok);
            let mut twice = Vec::new();
            again.expect("what was written can be read").encode(&mut twice);
            assert_eq!(out, twice);
        }
    }
}

fn walk_causes(causes: Causes<'_>) {
    for cause in causes.iter().flatten() {
        let text = cause.to_string();
        assert!(text.is_ascii() && !text.is_empty());
        let mut out = Vec::new();
        cause.encode(&mut out);
        assert_eq!(Causes::new(&out).iter().collect::<Vec<_>>(), [Ok(cause)]);
    }
}

/// Writing a decoded chunk, reading it and writing it again gives the same bytes.
fn written_form_is_stable(chunk: &Chunk<'_>) {
    // Host names in front of the requests of an ASCONF are dropped one per reading.
    if matches!(chunk, Chunk::Asconf(c) if c.address.is_none()) {
        return;
    }
    let mut first = vec![0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    chunk.encode(&mut first);
    let packet = Packet::parse(&first, Verify::Trusted).expect("a common header");
    let raws: Vec<RawChunk<'_>> = packet.chunks().map(|r| r.expect("written chunks are framed")).collect();
    assert_eq!(raws.len(), 1);
    let mut second = first[..12].to_vec();
    raws[0].decode().expect("written chunks can be read").encode(&mut second);
    assert_eq!(first, second);
}
