//! Makes small transport streams for the tests of this crate.

use super::psi::tests::{packets, pat, pmt};
use super::{PACKET_LEN, PTS_CYCLE, write_stamp};

pub(crate) const VIDEO_PID: u16 = 0x100;
pub(crate) const AUDIO_PID: u16 = 0x101;
const PMT_PID: u16 = 0x1000;

/// A growing transport stream with H.264 on [`VIDEO_PID`].
#[derive(Default)]
pub(crate) struct TsBuilder {
    bytes: Vec<u8>,
    continuity: [u8; 4],
    pictures: u64,
    /// Time stamps of pictures begin here.
    from: u64,
}

impl TsBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A picture's clock reference in a packet without a payload, and time stamps from there on; the clock jumps if `jump`.
    pub(crate) fn clock(&mut self, ticks: u64, jump: bool) -> &mut Self {
        self.from = ticks.wrapping_sub(self.pictures * 3_600);
        self.packet(VIDEO_PID, self.continuity[0].wrapping_sub(1) & 15, false, &[], Some(ticks % PTS_CYCLE * 300));
        let flags = self.bytes.len() - PACKET_LEN + 5;
        self.bytes[flags] |= if jump { 0x80 } else { 0 };
        self
    }

    fn next_cc(&mut self, which: usize) -> u8 {
        let cc = self.continuity[which];
        self.continuity[which] = (cc + 1) & 15;
        cc
    }

    /// One packet with `payload` (at most 184 bytes), stuffed by an adaptation field; with a PCR if given.
    pub(crate) fn packet(&mut self, pid: u16, cc: u8, start: bool, payload: &[u8], pcr: Option<u64>) -> &mut Self {
        let mut p = [0xff; PACKET_LEN];
        let stuffing = 184 - payload.len();
        let flags = if stuffing > 0 { 0x20 } else { 0 } | if payload.is_empty() { 0 } else { 0x10 };
        p[..4].copy_from_slice(&[0x47, (pid >> 8) as u8 | if start { 0x40 } else { 0 }, pid as u8, flags | cc]);
        if stuffing > 0 {
            p[4] = stuffing as u8 - 1;
        }
        if stuffing > 1 {
            p[5] = 0;
        }
        if let Some(ticks) = pcr {
            assert!(stuffing >= 8);
            p[5] = 0x10;
            super::packet::write_pcr(&mut p[6..], ticks);
        }
        p[PACKET_LEN - payload.len()..].copy_from_slice(payload);
        self.bytes.extend(p);
        self
    }

    pub(crate) fn tables(&mut self) -> &mut Self {
        let cc = self.next_cc(2);
        self.bytes.extend(packets(0, cc, &pat(0, &[(1, PMT_PID)])).concat());
        self.bytes
            .extend(packets(PMT_PID, cc, &pmt(1, 0, VIDEO_PID, &[(0x1b, VIDEO_PID), (0x0f, AUDIO_PID)])).concat());
        self
    }

    pub(crate) fn null(&mut self) {
        self.packet(0x1fff, 0, false, &[0x5a; 184], None);
    }

    pub(crate) fn audio(&mut self) -> &mut Self {
        let cc = self.next_cc(1);
        let mut pes = vec![0, 0, 1, 0xc0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 0, 0, 0];
        write_stamp(&mut pes[9..], 1_000);
        pes.resize(184, 0xaa);
        self.packet(AUDIO_PID, cc, true, &pes, None)
    }

    /// A frame of one slice with about `len` bytes behind the slice header.
    pub(crate) fn video_frame(&mut self, kind: char, len: usize) -> &mut Self {
        self.video_frame_with(kind, len, usize::MAX, |_| ())
    }

    /// A frame with `before` bytes of user data in front of its slice.
    pub(crate) fn video_frame_after(&mut self, kind: char, len: usize, before: usize) -> &mut Self {
        self.frame(kind, len, before, usize::MAX, |_| ())
    }

    /// A frame with something inserted once, after its packet number `after`.
    pub(crate) fn video_frame_with<R>(
        &mut self,
        kind: char,
        len: usize,
        after: usize,
        insert: impl FnOnce(&mut Self) -> R,
    ) -> &mut Self {
        self.frame(kind, len, 0, after, insert)
    }

    fn frame<R>(
        &mut self,
        kind: char,
        len: usize,
        before: usize,
        after: usize,
        insert: impl FnOnce(&mut Self) -> R,
    ) -> &mut Self {
        let mut pes = vec![0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10, 0x31, 0, 1, 0, 1, 0x11, 0, 1, 0, 1];
        let ticks = self.from.wrapping_add(self.pictures * 3_600);
        self.pictures += 1;
        write_stamp(&mut pes[9..], ticks.wrapping_add(3_600) % PTS_CYCLE);
        write_stamp(&mut pes[14..], ticks % PTS_CYCLE);
        pes.extend([0, 0, 0, 1, 9, 0xf0]);
        if before > 0 {
            pes.extend([0, 0, 1, 6, 5]);
            pes.resize(pes.len() + before, 0x66);
        }
        pes.extend(match kind {
            'I' => [0, 0, 1, 0x65, 0b1000_1000],
            'P' => [0, 0, 1, 0x41, 0b1100_0000],
            _ => [0, 0, 1, 0x01, 0b1010_0000],
        });
        pes.extend((0..len).map(|i| (i % 250) as u8 + 4));
        let mut insert = Some(insert);
        for (i, chunk) in pes.chunks(184).enumerate() {
            if i == after
                && let Some(insert) = insert.take()
            {
                insert(self);
            }
            let cc = self.next_cc(0);
            self.packet(VIDEO_PID, cc, i == 0, chunk, None);
        }
        self
    }
}
