//! The video out of a transport stream, one access unit after the other, for decoders that do not find it there.

use super::{PACKET_LEN, PesHeader, Piece, Splitter, Tables, VideoCodec};
use std::collections::VecDeque;

/// Bytes of an access unit at most; what is behind them is left out.
const UNIT_MAX: usize = 64 << 20;

/// What a PES packet of the video carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessUnit {
    /// Presentation time stamp, 90 kHz.
    pub pts: Option<u64>,
    /// What lies behind the PES header.
    pub bytes: Vec<u8>,
}

/// Takes access units out of a transport stream. Memory is that of the units that were not fetched.
#[derive(Debug, Default)]
pub struct Elementary {
    splitter: Splitter,
    tables: Tables,
    video: Option<(u16, VideoCodec)>,
    open: Vec<u8>,
    out: VecDeque<AccessUnit>,
}

impl Elementary {
    /// Nothing taken in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.poll() {
            self.take(&piece);
        }
    }

    /// The end of the stream.
    pub fn finish(&mut self) {
        while let Some(piece) = self.splitter.finish() {
            self.take(&piece);
        }
        self.end_unit();
    }

    /// The next access unit.
    pub fn poll(&mut self) -> Option<AccessUnit> {
        self.out.pop_front()
    }

    fn take(&mut self, piece: &Piece) {
        let Some(packet) = piece.packet() else { return };
        if self.tables.push(packet) && self.tables.video() != self.video {
            self.end_unit();
            self.video = self.tables.video();
        }
        let is_video = self.video.is_some_and(|(pid, _)| pid == packet.pid());
        let payload = packet.payload();
        if !is_video || payload.is_empty() || packet.transport_error() || packet.scrambled() {
            return;
        }
        if packet.payload_unit_start() {
            self.end_unit();
        }
        let goes_on = packet.payload_unit_start() || !self.open.is_empty();
        if goes_on && self.open.len() + PACKET_LEN <= UNIT_MAX {
            self.open.extend_from_slice(payload);
        }
    }

    fn end_unit(&mut self) {
        let mut bytes = std::mem::take(&mut self.open);
        if let Some(header) = PesHeader::parse(&bytes).filter(|h| h.header_len < bytes.len()) {
            bytes.drain(..header.header_len);
            self.out.push_back(AccessUnit { pts: header.pts.map(|p| p.ticks), bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TsBuilder;
    use super::*;

    #[test]
    fn access_units_are_what_is_behind_their_headers() {
        let mut b = TsBuilder::new();
        b.tables();
        let lens = [0, 50, 150, 200, 5_000];
        lens.iter().for_each(|len| {
            b.audio().video_frame('P', *len);
        });
        for step in [1, 188, 1_000, usize::MAX] {
            let mut e = Elementary::new();
            b.bytes().chunks(step.min(b.bytes().len())).for_each(|c| e.push(c));
            e.finish();
            let units: Vec<AccessUnit> = std::iter::from_fn(|| e.poll()).collect();
            let found: Vec<(Option<u64>, usize)> = units.iter().map(|u| (u.pts, u.bytes.len())).collect();
            // A delimiter and the beginning of a slice are in front of them.
            let expected = lens.iter().enumerate().map(|(i, len)| (Some((i as u64 + 1) * 3_600), len + 11));
            assert_eq!(found, expected.collect::<Vec<_>>(), "{step}");
            assert!(units.iter().all(|u| u.bytes.starts_with(&[0, 0, 0, 1, 9])));
        }
    }
}
