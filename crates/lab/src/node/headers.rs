//! DATA headers of a packet, read without the rest.

use anabranch_wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, DataFlags, kind};

/// What a record keeps of a DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub tsn: u32,
    /// The message's number: agents write it into the payload protocol identifier.
    pub message: u32,
    /// Its first fragment?
    pub begin: bool,
}

/// The DATA chunks of a packet whose payloads were left out of `bytes`.
pub(super) fn data_chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk> + '_ {
    let mut rest = bytes.get(COMMON_HEADER_LEN..).unwrap_or(&[]);
    core::iter::from_fn(move || {
        loop {
            let &[kind, flags, high, low] = rest.first_chunk::<4>()?;
            let len = usize::from(u16::from_be_bytes([high, low])).max(4);
            let header = (kind == kind::DATA).then(|| rest.first_chunk::<DATA_HEADER_LEN>()).flatten();
            let padded = len.next_multiple_of(4);
            let skip = if kind == kind::DATA { DATA_HEADER_LEN + padded - len } else { padded };
            rest = rest.get(skip..).unwrap_or(&[]);
            if let Some(&[_, _, _, _, t0, t1, t2, t3, _, _, _, _, m0, m1, m2, m3]) = header {
                return Some(Chunk {
                    tsn: u32::from_be_bytes([t0, t1, t2, t3]),
                    message: u32::from_be_bytes([m0, m1, m2, m3]),
                    begin: DataFlags::from_bits(flags).begin,
                });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::{Ssn, StreamId, Tsn};
    use anabranch_wire::{CommonHeader, DataHeader, PacketSlices, SackOut};
    use bytes::Bytes;

    #[test]
    fn chunks_are_found_between_what_else_there_is() {
        let mut p = PacketSlices::default();
        p.start(CommonHeader { src_port: 1, dst_port: 2, vtag: 3 });
        p.push(&SackOut { cum_tsn: Tsn(9), a_rwnd: 1, gaps: &[], duplicates: &[Tsn(4)] });
        for (i, len) in [5usize, 8, 1].into_iter().enumerate() {
            let flags = DataFlags { begin: i != 1, end: true, ..DataFlags::default() };
            let header =
                DataHeader { tsn: Tsn(70 + i as u32), stream: StreamId(0), ssn: Ssn(0), ppid: i as u32, flags };
            p.push_data(&header, &Bytes::from(vec![0xff; len]));
        }
        let want: Vec<_> = (0..3).map(|i| Chunk { tsn: 70 + i, message: i, begin: i != 1 }).collect();
        assert_eq!(data_chunks(p.head_mut()).collect::<Vec<_>>(), want);
    }
}
