//! Messages that are of use up to a deadline: which of them came, and when.

use anabranch_base::{Duration, Instant};
use anabranch_sim::traffic::{Emission, FrameClass, Source};
use std::sync::{Arc, Mutex, PoisonError};

/// What the sending side notes and the receiving side looks up.
pub type SharedDues = Arc<Mutex<Dues>>;

/// What is of use up to the same moment: a message, a datagram, the packets of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When the source made it; it belongs to the window of measurement that holds this moment.
    pub made: Instant,
    /// Its deadline.
    pub at: Instant,
    /// Class of the frame, where it is one.
    pub class: Option<FrameClass>,
    /// Packets of it.
    pub packets: u64,
    /// Those that came.
    pub came: u64,
    /// Those that came after the deadline.
    pub late: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Those that came after the deadline.
    pub late_bytes: u64,
}

impl Due {
    /// Packets that came late or never.
    pub fn unusable(&self) -> u64 {
        self.packets - (self.came - self.late)
    }
}

/// How messages travel, and how it is known that one came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Travel {
    /// Each by itself, by its number: of an association, or over a connection of its own.
    Alone,
    /// In datagrams of at most so many bytes, by the number of the datagram.
    Datagrams(u32),
    /// One behind the other in a stream of bytes.
    Stream,
}

/// The messages of a flow.
#[derive(Clone, Debug)]
pub struct Dues {
    deadline: Duration,
    travel: Travel,
    packets: Vec<Packet>,
    /// Packets and bytes that a stream delivered, and where the next packet of it ends.
    streamed: (usize, u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    /// [`Instant::FAR`] for a message of no bytes, which is never sent.
    made: Instant,
    bytes: u64,
    /// [`Instant::FAR`] until it came.
    came: Instant,
}

impl Dues {
    /// None made yet; each is of use for `deadline` from then on.
    pub fn new(deadline: Duration, travel: Travel) -> Self {
        Dues { deadline, travel, packets: Vec::new(), streamed: (0, 0, 0) }
    }

    /// The source made the next message.
    pub fn made(&mut self, at: Instant, bytes: u64) {
        let packet = |made, bytes| Packet { made, bytes, came: Instant::FAR };
        match self.travel {
            // It has a number all the same.
            Travel::Alone if bytes == 0 => self.packets.push(packet(Instant::FAR, 0)),
            Travel::Alone | Travel::Stream => self.packets.extend((bytes > 0).then(|| packet(at, bytes))),
            Travel::Datagrams(most) => {
                let (most, mut left) = (u64::from(most.max(1)), bytes);
                while left > 0 {
                    self.packets.push(packet(at, left.min(most)));
                    left -= left.min(most);
                }
            }
        }
    }

    /// Packet `number`, from 0, came, perhaps not for the first time.
    pub fn came(&mut self, number: usize, at: Instant) {
        if let Some(p) = self.packets.get_mut(number).filter(|p| p.came == Instant::FAR) {
            p.came = at;
        }
    }

    /// The next `bytes` of a stream came.
    pub fn stream(&mut self, bytes: u64, at: Instant) {
        if self.travel != Travel::Stream {
            return;
        }
        let (mut number, delivered, mut begin) = (self.streamed.0, self.streamed.1 + bytes, self.streamed.2);
        while let Some(p) = self.packets.get_mut(number).filter(|p| begin + p.bytes <= delivered) {
            p.came = at;
            begin += p.bytes;
            number += 1;
        }
        self.streamed = (number, delivered, begin);
    }

    /// All of them, in the order in which they were made.
    pub fn each(&self) -> impl Iterator<Item = Due> {
        let made = self.packets.iter().filter(|p| p.made < Instant::FAR);
        made.map(|p| {
            let at = p.made + self.deadline;
            let (came, late) = (p.came < Instant::FAR, p.came < Instant::FAR && p.came > at);
            let bytes = |if_so: bool| if if_so { p.bytes } else { 0 };
            Due {
                made: p.made,
                at,
                class: None,
                packets: 1,
                came: u64::from(came),
                late: u64::from(late),
                bytes: bytes(came),
                late_bytes: bytes(late),
            }
        })
    }
}

/// A source whose messages are noted.
pub struct Timed {
    inner: Box<dyn Source>,
    dues: SharedDues,
}

impl Timed {
    /// What `inner` makes, which `dues` gets to know.
    pub fn new(inner: Box<dyn Source>, dues: SharedDues) -> Self {
        Timed { inner, dues }
    }
}

impl Source for Timed {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let e = self.inner.next(now)?;
        self.dues.lock().unwrap_or_else(PoisonError::into_inner).made(e.at, e.size);
        Some(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    /// Messages of these bytes, one each 100 ms, of use for 50 ms.
    fn dues(travel: Travel, bytes: &[u64]) -> Dues {
        let mut d = Dues::new(Duration::from_millis(50), travel);
        bytes.iter().enumerate().for_each(|(i, n)| d.made(MS(100 * i as u64), *n));
        d
    }

    /// Packets, those that came, those that came late, bytes that came, late ones.
    fn of(d: &Dues) -> Vec<(u64, u64, u64, u64, u64)> {
        d.each().map(|d| (d.packets, d.came, d.late, d.bytes, d.late_bytes)).collect()
    }

    #[test]
    fn late_is_what_comes_after_its_deadline() {
        let mut d = dues(Travel::Alone, &[10, 0, 20, 30]);
        d.came(0, MS(50));
        // A second time changes nothing, nor does a number that was never made.
        d.came(0, MS(80));
        d.came(9, MS(80));
        d.came(2, MS(251));
        assert_eq!(of(&d), [(1, 1, 0, 10, 0), (1, 1, 1, 20, 20), (1, 0, 0, 0, 0)]);
        assert_eq!(d.each().map(|d| d.unusable()).collect::<Vec<_>>(), [0, 1, 1]);
        assert_eq!(d.each().next().map(|d| (d.made, d.at)), Some((MS(0), MS(50))));
    }

    #[test]
    fn long_messages_leave_as_several_datagrams() {
        let mut d = dues(Travel::Datagrams(1_000), &[2_500, 0, 300]);
        [(2, 40), (3, 260)].into_iter().for_each(|(n, at)| d.came(n, MS(at)));
        assert_eq!(of(&d), [(1, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 1, 0, 500, 0), (1, 1, 1, 300, 300)]);
    }

    #[test]
    fn a_message_in_a_stream_has_come_with_its_last_byte() {
        let mut d = dues(Travel::Stream, &[1_000, 0, 500, 700]);
        d.stream(999, MS(20));
        assert_eq!(of(&d)[0].1, 0);
        d.stream(501, MS(240));
        d.stream(699, MS(340));
        assert_eq!(of(&d), [(1, 1, 1, 1_000, 1_000), (1, 1, 0, 500, 0), (1, 0, 0, 0, 0)]);
        // Numbers of packets are of others, and a stream of bytes is no message of its own.
        let mut alone = dues(Travel::Alone, &[10]);
        alone.stream(10, MS(1));
        assert_eq!(of(&alone)[0].1, 0);
    }
}
