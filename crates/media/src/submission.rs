//! What a transport needs to know of a message: how important it is, and until when it is of use.

use crate::{Class, OutMessage};
use anabranch_base::{Duration, Instant, StreamId};

/// How a message of a frame is handed to the transport. The program and the lab both send by it, so that what is tuned
/// in virtual time is what a stream meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// Its stream: the number of its class (Cheng et al. 2011 §III), as far as there are streams.
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

    /// On an association with `outgoing` streams. Of two streams the first is for I alone, as what everything else needs
    /// waits for nothing else there; with one, only the class is left, which says what is sent again first.
    #[must_use]
    pub fn on(self, outgoing: u16) -> Self {
        Submission { stream: StreamId(self.stream.0.min(outgoing.saturating_sub(1))), ..self }
    }

    /// The stream of each class on an association with `outgoing` streams, as a [`MediaHint`](crate::MediaHint) says it.
    pub fn map(outgoing: u16) -> [u8; 3] {
        Class::ALL.map(|class| Submission::new(class, 0, Instant::ZERO, None).on(outgoing).stream.0 as u8)
    }

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

    #[test]
    fn where_streams_are_few_i_is_alone_as_long_as_it_can_be() {
        for (outgoing, map) in [(0, [0, 0, 0]), (1, [0, 0, 0]), (2, [0, 1, 1]), (3, [0, 1, 2]), (64, [0, 1, 2])] {
            assert_eq!(Submission::map(outgoing), map, "{outgoing}");
        }
        let b = Submission::new(Class::B, 3, Instant::ZERO, None);
        assert_eq!(Submission { stream: StreamId(2), ..b.on(1) }, b, "nothing else changes");
    }

    /// The example of Cheng et al. 2011 §III: the first twelve packets are a group G(12,3) in display order.
    #[test]
    fn the_example_of_the_paper() {
        let group = "ibbpbbpbbpbb".chars().map(|c| match c {
            'i' => Class::I,
            'p' => Class::P,
            _ => Class::B,
        });
        let sent: Vec<Submission> = group.zip(1..).map(|(c, n)| Submission::new(c, n, Instant::ZERO, None)).collect();
        let streams: Vec<u16> = sent.iter().map(|s| s.stream.0).collect();
        assert_eq!(streams, [0, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2]);
        assert!(sent.iter().all(|s| u16::from(s.class) == s.stream.0));
    }
}
