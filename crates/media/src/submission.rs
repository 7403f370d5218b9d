//! What a transport needs to know of a message: how important it is, and until when it is of use.

use crate::{Class, OutMessage};
use anabranch_base::{Duration, Instant, StreamId};

/// How a message of a frame is handed to the transport. The program and the lab both send by it, so that what is tuned
/// in virtual time is what a stream meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// Its stream: the number of its class (Cheng et al. 2011 §III).
    pub stream: StreamId,
    /// Delivered whatever came before: the play-out buffer puts messages in order, and a lost one delays no other.
    pub unordered: bool,
    /// Time after which it is of no use.
    pub deadline: Option<Instant>,
    /// Importance, 0 first.
    pub class: u8,
    /// Its frame: the messages of a frame are useful only together.
    pub group: u32,
}

impl Submission {
    /// Streams that media use.
    pub const STREAMS: u16 = Class::ALL.len() as u16;

    /// A message of class `class` that belongs to `frame`; it came in at `ingest`, and is to be there within `latency`
    /// if that is limited.
    pub fn new(class: Class, frame: u32, ingest: Instant, latency: Option<Duration>) -> Self {
        let number = class.index();
        Submission {
            stream: StreamId(number as u16),
            unordered: true,
            deadline: latency.map(|l| ingest + l),
            class: number as u8,
            group: frame,
        }
    }
}

impl OutMessage {
    /// How it is sent when the play-out comes `latency` after the source.
    pub fn submission(&self, latency: Duration) -> Submission {
        Submission::new(self.header.class, self.header.frame, self.ingest, Some(latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_stream_and_a_frame_its_group() {
        let at = Instant::from_millis(7);
        for (i, class) in Class::ALL.into_iter().enumerate() {
            let s = Submission::new(class, 9, at, Some(Duration::from_millis(300)));
            assert_eq!((s.stream.0, usize::from(s.class), s.group, s.unordered), (i as u16, i, 9, true));
            assert_eq!(s.deadline, Some(Instant::from_millis(307)));
            assert!(s.stream.0 < Submission::STREAMS);
        }
        assert_eq!(Submission::new(Class::I, 0, at, None).deadline, None);
    }
}
