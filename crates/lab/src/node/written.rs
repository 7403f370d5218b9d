//! Messages over TCP: an application writes them into a stream, and has handed over what the receiver has in order.

use crate::metrics::Record;
use anabranch_base::Instant;
use anabranch_sim::traffic::{Emission, Source};
use anabranch_sim::transport::mptcp::Unit;
use anabranch_sim::transport::tcp::{DataSegment, TcpSink};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// A message that has been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Message {
    born: Instant,
    /// Bytes written before it, and with it.
    start: u64,
    end: u64,
}

/// What a source has written and the receiver has not taken note of, in the order in which it was written.
type Book = Arc<Mutex<VecDeque<Message>>>;

/// A source whose messages are noted.
pub struct Writer {
    inner: Box<dyn Source>,
    book: Book,
    end: u64,
}

impl Source for Writer {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let e = self.inner.next(now)?;
        let start = self.end;
        self.end += e.size;
        let message = Message { born: e.at, start, end: self.end };
        self.book.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        Some(e)
    }
}

/// Notes at the receiving end when messages are complete.
pub struct Messages {
    book: Book,
    kind: Kind,
}

enum Kind {
    /// All over one connection.
    Stream(Stream),
    /// Each over a connection of its own, by the connection's number.
    Transfers(BTreeMap<u32, Transfer>),
}

#[derive(Default)]
struct Stream {
    /// The first data segment that has not been delivered, and the bytes before it.
    next: u64,
    delivered: u64,
    /// Segments from there on that have come: when each left first, and its bytes.
    come: VecDeque<Option<(Instant, u32)>>,
    /// Messages of which something has been delivered, and when their beginning left first.
    begun: VecDeque<(Message, Instant)>,
}

struct Transfer {
    born: Instant,
    begun: Option<Instant>,
}

impl Messages {
    /// Notes what `source` writes; `transfers` says that each message has a connection of its own.
    pub fn of(source: Box<dyn Source>, transfers: bool) -> (Box<dyn Source>, Self) {
        let book = Book::default();
        let kind = if transfers {
            Kind::Transfers(BTreeMap::new())
        } else {
            Kind::Stream(Stream { next: 1, ..Stream::default() })
        };
        (Box::new(Writer { inner: source, book: book.clone(), end: 0 }), Messages { book, kind })
    }

    /// Segments of a connection over several subflows have come; `next` is the first that is missing.
    pub fn units(&mut self, now: Instant, units: &[Unit], next: u64, record: &mut Record) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        if let Kind::Stream(stream) = &mut self.kind {
            units.iter().for_each(|unit| stream.segment(now, unit, next, &mut book, record));
        }
    }

    /// A segment with data has come, and `sink` has taken it.
    pub fn segment(&mut self, now: Instant, d: &DataSegment, sink: &TcpSink, record: &mut Record) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.kind {
            Kind::Stream(stream) => {
                let unit = Unit { number: d.number, bytes: d.bytes, sent: d.sent };
                stream.segment(now, &unit, sink.receiver().next(), &mut book, record);
            }
            Kind::Transfers(open) => {
                // Connections are numbered as their transfers are written.
                let first = open.last_key_value().map_or(0, |(flow, _)| flow + 1);
                (first..).zip(book.drain(..)).for_each(|(flow, m)| {
                    open.insert(flow, Transfer { born: m.born, begun: None });
                });
                let Some(transfer) = open.get_mut(&d.flow) else { return };
                if d.number == 1 {
                    transfer.begun.get_or_insert(d.sent);
                }
                if sink.is_complete(d.flow)
                    && let Some(done) = open.remove(&d.flow)
                {
                    record.message(done.born, done.begun.unwrap_or(done.born), now);
                    record.packet(u64::from(d.flow), now);
                }
            }
        }
    }
}

impl Stream {
    fn segment(&mut self, now: Instant, d: &Unit, next: u64, book: &mut VecDeque<Message>, record: &mut Record) {
        if let Some(place) = d.number.checked_sub(self.next) {
            let place = place as usize;
            if self.come.len() <= place {
                self.come.resize(place + 1, None);
            }
            if let Some(slot) = self.come.get_mut(place) {
                slot.get_or_insert((d.sent, d.bytes));
            }
        }
        while self.next < next
            && let Some(Some((left, bytes))) = self.come.pop_front()
        {
            self.next += 1;
            self.delivered += u64::from(bytes);
            while let Some(message) = book.front().copied().filter(|m| m.start < self.delivered) {
                book.pop_front();
                self.begun.push_back((message, left));
            }
        }
        while let Some((message, left)) = self.begun.front().copied().filter(|(m, _)| m.end <= self.delivered) {
            self.begun.pop_front();
            record.message(message.born, left, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Wanted;
    use anabranch_base::{Duration, Rate};
    use anabranch_sim::traffic::{Cbr, TrafficConfig};

    const MS: fn(u64) -> Instant = Instant::from_millis;

    /// 1,500 bytes each second, and what is noted of them.
    fn writes() -> (Stream, VecDeque<Message>) {
        let cbr = Cbr { rate: Rate::from_bytes_per_sec(1_500), size: 1_500, burst: 1 };
        let (mut writer, messages) = Messages::of(TrafficConfig::Cbr(cbr).build(1, "cbr"), false);
        (0..3).for_each(|_| assert!(writer.next(Instant::ZERO).is_some()));
        let book = messages.book.lock().unwrap().clone();
        let Kind::Stream(stream) = messages.kind else { panic!("a stream") };
        (stream, book)
    }

    fn data(number: u64, sent: u64, bytes: u32) -> Unit {
        Unit { number, bytes, sent: MS(sent) }
    }

    #[test]
    fn a_message_is_complete_with_its_last_byte_in_order() {
        let (mut s, mut book) = writes();
        let mut r = Record::with(Instant::ZERO, Duration::ZERO, Wanted::ALL);
        // The second half of the first message comes before its first half; in the third segment a part of the second
        // message follows.
        s.segment(MS(200), &data(2, 110, 500), 1, &mut book, &mut r);
        assert_eq!(r.main().message_delay.count(), 0);
        s.segment(MS(300), &data(1, 100, 1_000), 3, &mut book, &mut r);
        assert_eq!((r.main().message_delay.mean(), r.main().in_order_delay.mean()), (Some(0.3), Some(0.2)));
        s.segment(MS(1_100), &data(3, 1_050, 1_000), 4, &mut book, &mut r);
        // A duplicate changes nothing.
        s.segment(MS(1_150), &data(3, 1_050, 1_000), 4, &mut book, &mut r);
        assert_eq!(r.main().message_delay.count(), 1);
        // The end of the second message and the beginning of the third: both began when their segments left.
        s.segment(MS(2_200), &data(4, 2_100, 1_000), 5, &mut book, &mut r);
        s.segment(MS(2_250), &data(5, 2_200, 1_000), 6, &mut book, &mut r);
        assert_eq!((r.main().message_delay.count(), r.main().message_delay.max()), (3, Some(1.2)));
        assert_eq!(r.main().in_order_delay.max(), Some(1.15));
        assert!(book.is_empty() && s.begun.is_empty());
    }
}
