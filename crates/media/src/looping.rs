//! A short clip as an endless stream that stays valid: each repetition continues the clocks, time stamps and
//! continuity counters of the one before.

use crate::pacing::{Paced, PacerConfig, pace_all};
use crate::ts::{NULL_PID, PACKET_LEN, PTS_CYCLE, Packet, PesHeader, Tables, read_pcr, write_pcr, write_stamp};
use anabranch_base::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Why a clip cannot be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ClipError {
    /// Not whole packets from the first byte to the last.
    #[error("the clip is no transport stream of whole packets: packet {0} is missing its sync byte or cut")]
    NotPackets(u64),
    /// No clock to pace by.
    #[error("the clip carries no program clock reference")]
    NoClock,
    /// The time stamps of a PES packet reach into its second packet, where they would not be found.
    #[error("packet {0} begins a PES packet whose header is cut or damaged")]
    PesHeader(u64),
}

/// One packet of the endless stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopedPacket {
    /// When it is due, from the start of the first repetition.
    pub at: Duration,
    /// The packet.
    pub bytes: [u8; PACKET_LEN],
}

/// Times of one PID inside the clip, in 90 kHz from its first decoding time stamp.
#[derive(Debug)]
struct Track {
    first: u64,
    last: u64,
    units: u64,
}

#[derive(Debug)]
struct Clip {
    packets: Vec<Paced>,
    /// Length of a repetition in 90 kHz ticks.
    ticks: u64,
    /// What each PID's continuity counter is ahead by after one repetition.
    continuity: BTreeMap<u16, u8>,
    tables: Tables,
    frames: u64,
}

/// A clip ready to be repeated. Cloning is cheap.
///
/// A repetition lasts from the first video frame to where the next one would follow the last, or longer by
/// whole frames when its clock runs longer than that. Clips join without a gap in sound when their audio lasts
/// equally long. The clip should begin with a picture that needs no other and end with a closed group.
#[derive(Clone, Debug)]
pub struct LoopedClip(Arc<Clip>);

impl LoopedClip {
    /// Reads a clip: whole packets, with a clock.
    pub fn new(clip: &[u8]) -> Result<Self, ClipError> {
        let mut scan = Scan::default();
        let mut tables = Tables::new();
        for (i, bytes) in clip.chunks(PACKET_LEN).enumerate() {
            let packet = Packet::new(bytes).ok_or(ClipError::NotPackets(i as u64))?;
            tables.push(packet);
            scan.packet(i as u64, packet, &tables)?;
        }
        let span = scan.clock_span().ok_or(ClipError::NoClock)?;
        let video = tables.video().and_then(|(pid, _)| scan.tracks.get(&pid));
        let track = video.or_else(|| scan.tracks.values().max_by_key(|t| t.last));
        let ticks = match track {
            Some(t) if t.units > 1 => t.length(span),
            _ => span,
        };
        let (packets, _) = pace_all(clip, PacerConfig { max_held: usize::MAX, ..Default::default() });
        let continuity = scan
            .counters
            .iter()
            .map(|(pid, (first, last))| (*pid, last.wrapping_add(1).wrapping_sub(*first) & 15))
            .collect();
        let frames = video.map_or(0, |t| t.units);
        Ok(LoopedClip(Arc::new(Clip { packets, ticks, continuity, tables, frames })))
    }

    /// Length of one repetition.
    pub fn duration(&self) -> Duration {
        ticks_to_time(self.0.ticks)
    }

    /// Video frames (PES packets) of one repetition.
    pub fn frames(&self) -> u64 {
        self.0.frames
    }

    /// Packets of one repetition.
    pub fn packets(&self) -> usize {
        self.0.packets.len()
    }

    /// The endless stream from its start.
    pub fn iter(&self) -> Looped {
        Looped { clip: self.0.clone(), index: 0, round: 0, at: Duration::ZERO }
    }
}

/// Endless iterator over the packets of a [`LoopedClip`]; due times never fall.
#[derive(Clone, Debug)]
pub struct Looped {
    clip: Arc<Clip>,
    index: usize,
    round: u64,
    at: Duration,
}

impl Looped {
    /// Repetitions completed.
    pub fn round(&self) -> u64 {
        self.round
    }
}

impl Iterator for Looped {
    type Item = LoopedPacket;

    fn next(&mut self) -> Option<LoopedPacket> {
        let paced = self.clip.packets.get(self.index)?;
        let shift = self.clip.ticks.wrapping_mul(self.round);
        let mut bytes: [u8; PACKET_LEN] = (*paced.bytes).try_into().ok()?;
        self.at = self.at.max(ticks_to_time(self.clip.ticks) * self.round + paced.at);
        if self.round > 0 {
            rewrite(&mut bytes, shift, self.round, &self.clip);
        }
        self.index += 1;
        if self.index == self.clip.packets.len() {
            self.index = 0;
            self.round += 1;
        }
        Some(LoopedPacket { at: self.at, bytes })
    }
}

/// Moves a packet `shift` ticks of 90 kHz and `round` repetitions on.
fn rewrite(bytes: &mut [u8; PACKET_LEN], shift: u64, round: u64, clip: &Clip) {
    let original = *bytes;
    let Some(packet) = Packet::new(&original) else { return };
    let pid = packet.pid();
    if let Some(step) = clip.continuity.get(&pid) {
        let ahead = (round & 15) as u8 * step;
        bytes[3] = bytes[3] & 0xf0 | (bytes[3] & 0x0f).wrapping_add(ahead) & 0x0f;
    }
    for at in [packet.pcr_offset(), packet.opcr_offset()].into_iter().flatten() {
        if let Some(field) = bytes.get_mut(at..)
            && let Some(ticks) = read_pcr(field)
        {
            write_pcr(field, ticks.wrapping_add((shift % PTS_CYCLE) * 300));
        }
    }
    if let (Some(at), Some(header)) = (packet.payload_offset(), pes_start(packet, &clip.tables)) {
        for stamp in [header.pts, header.dts].into_iter().flatten() {
            if let Some(field) = bytes.get_mut(at + stamp.offset..) {
                write_stamp(field, stamp.ticks.wrapping_add(shift));
            }
        }
    }
}

/// The PES header that begins in this packet, if one does and it can be read.
fn pes_start(packet: Packet<'_>, tables: &Tables) -> Option<PesHeader> {
    begins_pes(packet, tables).then(|| PesHeader::parse(packet.payload())).flatten()
}

fn begins_pes(packet: Packet<'_>, tables: &Tables) -> bool {
    packet.payload_unit_start()
        && !packet.scrambled()
        && packet.pid() != NULL_PID
        && !tables.is_table_pid(packet.pid())
        && packet.payload().starts_with(&[0, 0, 1])
}

fn ticks_to_time(ticks: u64) -> Duration {
    Duration::from_nanos((u128::from(ticks) * 100_000 / 9) as u64)
}

/// What one pass over the clip finds.
#[derive(Default)]
struct Scan {
    /// PID of the clock, its first value, and the time run since in 27 MHz ticks; steps counted.
    clock: Option<(u16, u64, u64, u64)>,
    tracks: BTreeMap<u16, Track>,
    /// First and last continuity counter of the packets with payload, by PID.
    counters: BTreeMap<u16, (u8, u8)>,
}

impl Scan {
    fn packet(&mut self, index: u64, packet: Packet<'_>, tables: &Tables) -> Result<(), ClipError> {
        let pid = packet.pid();
        if packet.has_payload() && pid != NULL_PID {
            let cc = packet.continuity();
            self.counters.entry(pid).and_modify(|c| c.1 = cc).or_insert((cc, cc));
        }
        if let Some(ticks) = packet.pcr() {
            match &mut self.clock {
                None => self.clock = Some((pid, ticks, 0, 0)),
                Some((clock_pid, first, run, steps)) if *clock_pid == pid => {
                    let since = (ticks + crate::ts::PCR_CYCLE - *first) % crate::ts::PCR_CYCLE;
                    *run = since.max(*run);
                    *steps += 1;
                }
                Some(_) => {}
            }
        }
        if begins_pes(packet, tables) {
            let header = PesHeader::parse(packet.payload()).ok_or(ClipError::PesHeader(index))?;
            if let Some(ticks) = header.decode_ticks() {
                self.tracks.entry(pid).and_modify(|t| t.unit(ticks)).or_insert(Track {
                    first: ticks,
                    last: 0,
                    units: 1,
                });
            }
        }
        Ok(())
    }

    /// Time from the first clock reference to half a step behind the last one, in 90 kHz ticks: the earliest
    /// place for the first reference of the next repetition.
    fn clock_span(&self) -> Option<u64> {
        let (_, _, run, steps) = self.clock?;
        Some((run + run / steps.max(1) / 2).div_ceil(300)).filter(|t| *t > 0)
    }
}

impl Track {
    fn unit(&mut self, ticks: u64) {
        self.units += 1;
        let since = (ticks + PTS_CYCLE - self.first) % PTS_CYCLE;
        if since > self.last && since < PTS_CYCLE / 2 {
            self.last = since;
        }
    }

    /// Ticks until the unit behind the last one; more by whole units until the clock's `span` fits.
    fn length(&self, span: u64) -> u64 {
        let unit = (self.last / (self.units - 1)).max(1);
        let own = self.last + unit;
        own + span.saturating_sub(own).div_ceil(unit) * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::PCR_CYCLE;
    use crate::ts::tests::{AUDIO_PID, TsBuilder, VIDEO_PID};

    /// `n` frames of 40 ms, a clock before each, sound after each.
    fn clip(n: u64, first_pcr: u64) -> Vec<u8> {
        let mut ts = TsBuilder::new();
        ts.tables();
        for i in 0..n {
            ts.packet(VIDEO_PID, 15, false, &[], Some((first_pcr + i * 40 * 27_000) % PCR_CYCLE));
            ts.video_frame(if i == 0 { 'I' } else { 'P' }, 900);
            ts.audio().null();
        }
        ts.bytes().to_vec()
    }

    /// Payload packets of each PID count up without a gap over the joints; returns how many there were.
    fn check_continuity(packets: &[LoopedPacket]) -> usize {
        let mut last = BTreeMap::<u16, u8>::new();
        for p in packets {
            let p = Packet::new(&p.bytes).unwrap();
            if p.pid() == NULL_PID || !p.has_payload() {
                continue;
            }
            if let Some(cc) = last.insert(p.pid(), p.continuity()) {
                assert_eq!(p.continuity(), (cc + 1) & 15, "PID {:#x}", p.pid());
            }
        }
        last.len()
    }

    #[test]
    fn repetitions_continue_everything() {
        for first_pcr in [5_000_000, PCR_CYCLE - 3_000_000] {
            let bytes = clip(7, first_pcr);
            let looped = LoopedClip::new(&bytes).unwrap();
            assert_eq!((looped.duration(), looped.frames()), (Duration::from_millis(280), 7));
            assert_eq!(looped.packets(), bytes.len() / 188);
            let out: Vec<LoopedPacket> = looped.iter().take(looped.packets() * 40).collect();
            let first: Vec<u8> = out[..looped.packets()].iter().flat_map(|p| p.bytes).collect();
            assert_eq!(first, bytes, "the first repetition is the clip itself");
            assert_eq!(check_continuity(&out), 4);
            assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
            let views: Vec<Packet<'_>> = out.iter().map(|p| Packet::new(&p.bytes).unwrap()).collect();
            let clocks: Vec<u64> = views.iter().filter_map(|p| p.pcr()).collect();
            assert_eq!(clocks.len(), 280);
            assert!(clocks.windows(2).all(|w| (w[1] + PCR_CYCLE - w[0]) % PCR_CYCLE == 40 * 27_000));
            let stamps: Vec<u64> = views
                .iter()
                .filter(|p| p.pid() == VIDEO_PID && p.payload_unit_start())
                .map(|p| PesHeader::parse(p.payload()).unwrap())
                .map(|h| {
                    assert_eq!(h.pts.unwrap().ticks, h.dts.unwrap().ticks + 3_600);
                    h.dts.unwrap().ticks
                })
                .collect();
            assert_eq!(stamps, (0..280).map(|i| i * 3_600).collect::<Vec<_>>());
        }
    }

    #[test]
    fn due_times_follow_the_clock() {
        let looped = LoopedClip::new(&clip(5, 0)).unwrap();
        let per_round = looped.packets();
        let at: Vec<u64> = looped.iter().take(per_round * 3).map(|p| p.at.as_micros()).collect();
        // The tables in front of the first clock reference take 9 ms: the joint is that much longer than a
        // repetition, and nothing overtakes.
        assert!((200_000..209_000).contains(&at[per_round]), "{}", at[per_round]);
        assert_eq!(at[2 * per_round + 9] - at[per_round + 9], 200_000);
    }

    #[test]
    fn a_clock_longer_than_the_video_adds_whole_frames() {
        let mut bytes = clip(5, 0);
        bytes.extend_from_slice(TsBuilder::new().packet(VIDEO_PID, 15, false, &[], Some(230 * 27_000)).bytes());
        assert_eq!(LoopedClip::new(&bytes).unwrap().duration(), Duration::from_millis(280));
    }

    #[test]
    fn clips_that_cannot_be_repeated() {
        assert_eq!(LoopedClip::new(b"hello").err(), Some(ClipError::NotPackets(0)));
        let good = clip(3, 0);
        assert_eq!(
            LoopedClip::new(&good[..good.len() - 1]).err(),
            Some(ClipError::NotPackets(good.len() as u64 / 188 - 1))
        );
        let mut silent = TsBuilder::new();
        silent.tables().video_frame('I', 100);
        assert_eq!(LoopedClip::new(silent.bytes()).err(), Some(ClipError::NoClock));
        assert_eq!(LoopedClip::new(&[]).err(), Some(ClipError::NoClock));
        let mut cut = TsBuilder::new();
        cut.packet(AUDIO_PID, 0, true, &[0, 0, 1, 0xc0, 0, 0, 0x80, 0x80, 5, 0x21], None);
        assert_eq!(LoopedClip::new(cut.bytes()).err(), Some(ClipError::PesHeader(0)));
    }
}
