//! Which packets of a recording are found in another one, and what that makes of the frames.

use super::clock::Reference;
use super::recording::{NO_FRAME, Recording};
use crate::Class;
use crate::playout::UNKNOWN;
use anabranch_base::Duration;

/// How a frame came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameState {
    /// With all of its packets.
    Whole,
    /// With some of them.
    Damaged,
    /// Not at all.
    Missing,
}

/// What became of one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameResult {
    /// Packets that came, of those that the frame has.
    pub arrived: u32,
    /// Whole, with packets missing, or not at all.
    pub state: FrameState,
    /// It is whole, and so is every frame that it may refer to, directly or not; none of them is missing in what was sent.
    pub decodable: bool,
    /// When its last packet came, where that is known.
    pub at: Option<Duration>,
}

/// Why two recordings cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompareError {
    /// There is no video in what was sent.
    #[error("no video is found in it: a transport stream with H.264, H.265, AV1 or MPEG-2 is needed")]
    NoVideo,
    /// They are not of one stream.
    #[error(
        "hardly a packet of it is found in the other: both have to be recordings of one stream, not coded or multiplexed anew between them"
    )]
    Strangers,
}

/// Two recordings of a stream, compared. Arrays are by class: I, P, B, unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// For every frame that was sent, in decoding order, what became of it.
    pub results: Vec<FrameResult>,
    /// Frames sent.
    pub frames: [u64; 4],
    /// Frames of which nothing came.
    pub missing: [u64; 4],
    /// Frames of which a part came.
    pub damaged: [u64; 4],
    /// Frames that cannot be decoded: not whole, or they may refer to one that cannot.
    pub undecodable: [u64; 4],
    /// Frames whose references could not be read from the stream.
    pub unknown: u64,
    /// Frames that refer to a picture that is not in what was sent: one in front of its beginning.
    pub before: u64,
    /// Packets sent but for null packets; those of the video; of both, how many did not come.
    pub packets: u64,
    /// Of the packets, those of the video.
    pub video_packets: u64,
    /// Packets that did not come.
    pub packets_missing: u64,
    /// Of those, packets of the video.
    pub video_missing: u64,
    /// Packets that came and were not sent like this.
    pub strange: u64,
    /// Packets that came once more.
    pub repeated: u64,
    /// For each clock reference that was sent, the packet by which it was received.
    pub(super) references: Vec<Option<u32>>,
}

impl Comparison {
    /// Looks for what was sent in what was received.
    ///
    /// # Errors
    /// There is no video, or nothing was found.
    pub fn of(sent: &Recording, received: &Recording) -> Result<Comparison, CompareError> {
        if sent.frames().is_empty() {
            return Err(CompareError::NoVideo);
        }
        let mut found = Comparison { packets: sent.packets(), ..Comparison::default() };
        let arrivals = found.align(sent, received);
        // Tables may be alike by chance.
        if found.strange * 10 > received.packets() * 9 {
            return Err(CompareError::Strangers);
        }
        let packet = |r: &Reference| arrivals.get(r.packet as usize).copied().filter(|a| *a != LOST);
        found.references = sent.references().iter().map(packet).collect();
        found.results = vec![
            FrameResult { arrived: 0, state: FrameState::Missing, decodable: false, at: None };
            sent.frames().len()
        ];
        for (print, arrival) in sent.prints().iter().zip(&arrivals) {
            let came = *arrival != LOST;
            found.packets_missing += u64::from(!came);
            if print.frame == NO_FRAME {
                continue;
            }
            found.video_packets += 1;
            found.video_missing += u64::from(!came);
            let Some(result) = found.results.get_mut(print.frame as usize).filter(|_| came) else { continue };
            result.arrived += 1;
            result.at = result.at.max(received.arrival(*arrival as usize));
        }
        found.judge(sent);
        Ok(found)
    }

    /// Share of the frames that can be decoded.
    pub fn decodable_share(&self) -> f64 {
        let frames: u64 = self.frames.iter().sum();
        1.0 - self.undecodable.iter().sum::<u64>() as f64 / frames.max(1) as f64
    }

    /// For each packet sent, the place at which it was received.
    ///
    /// A packet that is there once is found by what is in it. One that is there several times, such as filling, is taken
    /// for the next of them behind the last packet that was found.
    fn align(&mut self, sent: &Recording, received: &Recording) -> Vec<u32> {
        let mut index: Vec<(u64, u32)> = sent.prints().iter().enumerate().map(|(i, p)| (p.hash, i as u32)).collect();
        index.sort_unstable();
        let mut arrivals = vec![LOST; index.len()];
        let mut behind = 0;
        for (at, print) in received.prints().iter().enumerate() {
            let from = index.partition_point(|e| e.0 < print.hash);
            let until = index.partition_point(|e| e.0 <= print.hash);
            let equal = index.get(from..until).unwrap_or(&[]);
            let free = |e: &&(u64, u32)| arrivals.get(e.1 as usize) == Some(&LOST);
            let next = equal.partition_point(|e| e.1 < behind);
            let found = match equal {
                [] => {
                    self.strange += 1;
                    continue;
                }
                [one] => Some(one).filter(free),
                many => many.get(next..).unwrap_or(&[]).iter().find(free),
            };
            let Some((_, place)) = found.copied() else {
                self.repeated += 1;
                continue;
            };
            behind = place + 1;
            if let Some(arrival) = arrivals.get_mut(place as usize) {
                *arrival = at as u32;
            }
        }
        arrivals
    }

    /// From packets to frames, and from frames to those that refer to them.
    fn judge(&mut self, sent: &Recording) {
        let mut decodable: Vec<bool> = Vec::with_capacity(sent.frames().len());
        for (frame, result) in sent.frames().iter().zip(&mut self.results) {
            result.state = match result.arrived {
                n if n == frame.packets => FrameState::Whole,
                0 => FrameState::Missing,
                _ => FrameState::Damaged,
            };
            let needs = &frame.picture.needs;
            let whole = result.state == FrameState::Whole;
            result.decodable = whole
                && !needs.missing
                && needs.units.iter().all(|n| decodable.get(*n as usize).copied().unwrap_or(false));
            decodable.push(result.decodable);
            let class = frame.picture.class.map_or(UNKNOWN, Class::index);
            self.frames[class] += 1;
            self.missing[class] += u64::from(result.state == FrameState::Missing);
            self.damaged[class] += u64::from(result.state == FrameState::Damaged);
            self.undecodable[class] += u64::from(!result.decodable);
            self.unknown += u64::from(!needs.known);
            self.before += u64::from(needs.missing);
        }
    }
}

/// A packet that did not come.
const LOST: u32 = u32::MAX;
