//! The stream of a run, worked out beforehand: every message and when it leaves the packetiser.
//!
//! All runs send the very same messages at the very same times. What is measured is the transport, so nothing of a
//! run may depend on how promptly a task was woken: the instants are those of the stream's own clock, and a sender
//! that is woken late only shortens the time its messages have left.

use anabranch_base::{Duration, Instant};
use anabranch_media::looping::{ClipError, LoopedClip};
use anabranch_media::truth::FrameIndex;
use anabranch_media::ts::Packet;
use anabranch_media::{DEMO_CLIP as CLIP, OutMessage, Packetiser, PacketiserConfig, StreamEnd};

/// Where the stream begins on the media clock; not at zero, so that nothing lies before it.
pub const ORIGIN: Instant = Instant::from_millis(1_000);

/// A stream that has no video to cut at is cut this long after the time asked for.
const CUT_WITHIN: Duration = Duration::from_secs(1);

/// A message and when it is handed to the transport.
#[derive(Clone, Debug)]
pub struct Timed {
    /// On the media clock. Later than `message.ingest`: a message waits to be filled.
    pub at: Instant,
    /// The message.
    pub message: OutMessage,
}

/// The whole stream.
#[derive(Debug)]
pub struct Script {
    /// All messages in order.
    pub messages: Vec<Timed>,
    /// The frames they make.
    pub index: FrameIndex,
    /// How much there is.
    pub end: StreamEnd,
    /// Bytes of media.
    pub bytes: u64,
}

impl Script {
    /// The shipped clip, looped for about `seconds`: to the end of the frame.
    ///
    /// # Errors
    /// None with the shipped clip.
    pub fn shipped(seconds: u32) -> Result<Script, ClipError> {
        Ok(Script::of(&LoopedClip::new(CLIP)?, Duration::from_secs(seconds.into())))
    }

    fn of(clip: &LoopedClip, length: Duration) -> Script {
        let mut packetiser = Packetiser::new(PacketiserConfig::default());
        let mut script = Script { messages: Vec::new(), index: FrameIndex::new(), end: StreamEnd::default(), bytes: 0 };
        let mut now = ORIGIN;
        for packet in clip.iter() {
            if packet.at >= length {
                let video = packetiser.tables().video().map(|(pid, _)| pid);
                let begins = Packet::new(&packet.bytes)
                    .is_some_and(|p| p.payload_unit_start() && video.is_some_and(|pid| pid == p.pid()));
                if begins || packet.at >= length + CUT_WITHIN {
                    break;
                }
            }
            now = ORIGIN + packet.at;
            while let Some(due) = packetiser.deadline().filter(|due| *due <= now) {
                packetiser.on_timeout(due);
                script.take(due, &mut packetiser);
            }
            packetiser.push(now, &packet.bytes);
            script.take(now, &mut packetiser);
        }
        script.end = packetiser.finish(now);
        script.take(now, &mut packetiser);
        script
    }

    fn take(&mut self, at: Instant, packetiser: &mut Packetiser) {
        while let Some(message) = packetiser.poll_message() {
            self.index.push(&message);
            self.bytes += message.payload().len() as u64;
            self.messages.push(Timed { at, message });
        }
    }

    /// When the last byte is due at the output, on the media clock.
    pub fn last_due(&self, latency: Duration) -> Instant {
        self.messages.last().map_or(ORIGIN, |m| m.message.ingest) + latency
    }

    /// Length of the stream.
    pub fn length(&self) -> Duration {
        self.messages.last().map_or(Duration::ZERO, |m| m.at.since(ORIGIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_whole_frames_of_the_clip() {
        let script = Script::shipped(3).unwrap();
        let bytes: Vec<u8> = script.messages.iter().flat_map(|m| m.message.payload()).collect();
        assert_eq!(bytes.len() as u64, script.bytes);
        assert_eq!(bytes, CLIP[..bytes.len()], "the first repetition is the clip itself");
        let length = script.length();
        assert!((Duration::from_millis(2_990)..Duration::from_millis(3_100)).contains(&length), "{length}");
        let frames = script.index.frames().iter().filter(|f| f.class.is_some()).count();
        assert!((74..=78).contains(&frames), "{frames}");
        assert_eq!(script.index.frames().len() as u64, script.end.frames);
        assert_eq!(script.messages.len() as u64, script.end.messages);
        let last = &script.messages.last().unwrap().message.header;
        assert!(last.is_last(), "the cut is at a frame");
    }

    #[test]
    fn messages_leave_in_order_and_not_before_they_came_in() {
        let script = Script::shipped(9).unwrap();
        assert!(script.messages.windows(2).all(|w| w[0].at <= w[1].at));
        for m in &script.messages {
            let waited = m.at.since(m.message.ingest);
            assert!(m.at >= m.message.ingest && waited <= Duration::from_millis(10), "{waited}");
        }
        let due = script.last_due(Duration::from_millis(300)).since(ORIGIN);
        assert!((Duration::from_millis(9_290)..Duration::from_millis(9_400)).contains(&due), "{due}");
    }
}
