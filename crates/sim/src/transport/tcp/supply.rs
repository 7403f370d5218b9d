//! What there is to send, cut into segments.

use super::TcpConfig;
use crate::traffic::{Emission, Source};
use anabranch_base::Instant;
use std::collections::{BTreeMap, VecDeque};

/// What a sender has to send.
#[non_exhaustive]
pub enum Supply {
    /// Always more.
    Endless,
    /// So many bytes, then the transfer is done.
    Finite(u64),
    /// What a generator makes, when it says so. Each emission begins a segment of its own and is sent at once if the
    /// window allows, unless [`TcpConfig::nagle`](super::TcpConfig::nagle) lets small ones wait for more or
    /// [`TcpConfig::coalesce`](super::TcpConfig::coalesce) joins those that wait for the window.
    Source(Box<dyn Source>),
    /// What a connection of several subflows hands over, segment by segment.
    Handed,
}

/// The data of one connection. Segment 0 is the SYN; data begin at 1.
pub(in crate::transport) struct Data {
    segment: u32,
    feed: Feed,
}

enum Feed {
    Endless,
    /// How many segments follow the SYN, and the bytes of the last.
    Finite(u64, u32),
    Source(Box<Stream>),
    Handed(Handed),
}

/// Segments that a connection has handed over and that are not acknowledged.
#[derive(Default)]
struct Handed {
    /// Number of the first of `sizes`.
    first: u64,
    sizes: VecDeque<u32>,
}

struct Stream {
    source: Box<dyn Source>,
    pending: Option<Emission>,
    ended: bool,
    /// Nagle's algorithm: bytes that wait to be cut.
    waiting: Option<u64>,
    /// What comes while the last segment waits for the window joins it.
    coalesces: bool,
    /// Segments cut so far, the SYN included.
    cut: u64,
    /// Sizes of segments that are not full and may still be sent again.
    short: BTreeMap<u64, u32>,
}

impl Data {
    pub fn new(supply: Supply, config: &TcpConfig) -> Self {
        let segment = config.segment.max(1);
        let feed = match supply {
            Supply::Endless => Feed::Endless,
            Supply::Finite(bytes) => {
                let count = bytes.div_ceil(u64::from(segment));
                let last = bytes - count.saturating_sub(1) * u64::from(segment);
                Feed::Finite(count, last as u32)
            }
            Supply::Source(source) => {
                let (waiting, coalesces) = (config.nagle.then_some(0), config.coalesce);
                let short = BTreeMap::new();
                Feed::Source(Box::new(Stream {
                    source,
                    pending: None,
                    ended: false,
                    waiting,
                    coalesces,
                    cut: 1,
                    short,
                }))
            }
            Supply::Handed => Feed::Handed(Handed { first: 1, sizes: VecDeque::new() }),
        };
        Data { segment, feed }
    }

    /// The application begins now, not when the connection is open.
    pub fn begin(&mut self, now: Instant) {
        if let Feed::Source(stream) = &mut self.feed {
            stream.pull(now);
        }
    }

    /// Is there a segment `number` by now? What lies below `una` has been acknowledged, what lies below `sent` has left.
    #[inline]
    pub fn has(&mut self, now: Instant, number: u64, una: u64, sent: u64) -> bool {
        match &mut self.feed {
            Feed::Endless => true,
            Feed::Finite(count, _) => number <= *count,
            Feed::Source(stream) => {
                if stream.coalesces && number >= sent && number + 1 == stream.cut {
                    stream.join(now, number, u64::from(self.segment));
                }
                stream.has(now, number, una, self.segment)
            }
            Feed::Handed(h) => number < h.first + h.sizes.len() as u64,
        }
    }

    /// Bytes of payload of segment `number`.
    #[inline]
    pub fn bytes(&self, number: u64) -> u32 {
        match &self.feed {
            _ if number == 0 => 0,
            Feed::Endless => self.segment,
            Feed::Finite(count, last) => {
                if number == *count {
                    *last
                } else {
                    self.segment
                }
            }
            Feed::Source(stream) => stream.short.get(&number).copied().unwrap_or(self.segment),
            Feed::Handed(h) => {
                let place = number.checked_sub(h.first).and_then(|n| h.sizes.get(n as usize));
                place.copied().unwrap_or(self.segment)
            }
        }
    }

    /// Is segment `number` the last of all?
    #[inline]
    pub fn is_last(&self, number: u64) -> bool {
        match &self.feed {
            // How long a connection goes on its subflows do not know.
            Feed::Endless | Feed::Handed(_) => false,
            Feed::Finite(count, _) => number == *count,
            Feed::Source(stream) => stream.ended && number + 1 == stream.cut && stream.waiting.unwrap_or(0) == 0,
        }
    }

    /// Is there nothing from segment `next` on, now and later? A source is asked: it may not have been since its latest.
    pub fn ended(&mut self, now: Instant, next: u64) -> bool {
        next > 1 && !self.has(now, next, next, next) && self.is_last(next - 1)
    }

    /// When there will be more, once [`has`](Self::has) has said no.
    pub fn next_at(&self) -> Option<Instant> {
        match &self.feed {
            Feed::Source(stream) => Some(stream.pending?.at),
            _ => None,
        }
    }

    /// Segments below `next` will not be sent again.
    #[inline]
    pub fn forget_below(&mut self, next: u64) {
        match &mut self.feed {
            Feed::Source(stream) => {
                while stream.short.first_key_value().is_some_and(|(n, _)| *n < next) {
                    stream.short.pop_first();
                }
            }
            Feed::Handed(h) => {
                while h.first < next && h.sizes.pop_front().is_some() {
                    h.first += 1;
                }
            }
            Feed::Endless | Feed::Finite(..) => {}
        }
    }

    /// Hands over one more segment ([`Supply::Handed`]).
    pub fn hand(&mut self, bytes: u32) {
        if let Feed::Handed(h) = &mut self.feed {
            h.sizes.push_back(bytes);
        }
    }

    /// Takes back the segments from `next` on, which have not left.
    pub fn take_back(&mut self, next: u64) {
        if let Feed::Handed(h) = &mut self.feed {
            h.sizes.truncate(next.saturating_sub(h.first) as usize);
        }
    }
}

impl Stream {
    /// Sees to it that the next emission is known.
    fn pull(&mut self, now: Instant) {
        if self.pending.is_none() && !self.ended {
            self.source.advance(now, &mut self.pending);
            self.ended = self.pending.is_none();
        }
    }

    fn has(&mut self, now: Instant, number: u64, una: u64, segment: u32) -> bool {
        while self.cut <= number {
            let full = u64::from(segment);
            if self.waiting.is_some() {
                if !self.cut_one(now, una, full) {
                    return false;
                }
                continue;
            }
            self.pull(now);
            let Some(emission) = self.pending.take_if(|e| e.at <= now) else { return false };
            let count = emission.size.div_ceil(full);
            let last = emission.size - count.saturating_sub(1) * full;
            self.cut += count;
            if count > 0 && last < full {
                self.short.insert(self.cut - 1, last as u32);
            }
        }
        true
    }

    /// What has come by now joins the last segment, `number`, as far as that has room.
    fn join(&mut self, now: Instant, number: u64, full: u64) {
        while let Some(bytes) = self.short.get(&number).map(|b| u64::from(*b)) {
            self.pull(now);
            let Some(emission) = self.pending.as_mut().filter(|e| e.at <= now) else { return };
            let part = emission.size.min(full - bytes);
            emission.size -= part;
            if emission.size == 0 {
                self.pending = None;
            }
            if bytes + part < full {
                self.short.insert(number, (bytes + part) as u32);
            } else {
                self.short.remove(&number);
            }
        }
    }

    /// Nagle's algorithm (RFC 1122 §4.2.3.4) as Minshall and Linux have it: a segment that is not full waits while
    /// another such is not acknowledged.
    fn cut_one(&mut self, now: Instant, una: u64, full: u64) -> bool {
        let mut waiting = self.waiting.unwrap_or(0);
        while waiting < full {
            self.pull(now);
            let Some(emission) = self.pending.take_if(|e| e.at <= now) else { break };
            waiting += emission.size;
        }
        let short_is_out = self.short.last_key_value().is_some_and(|(n, _)| *n >= una);
        let bytes = if waiting < full && short_is_out { 0 } else { waiting.min(full) };
        self.waiting = Some(waiting - bytes);
        if bytes == 0 {
            return false;
        }
        if bytes < full {
            self.short.insert(self.cut, bytes as u32);
        }
        self.cut += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Bulk, Cbr, TrafficConfig};
    use crate::transport::tcp::Recovery;
    use anabranch_base::Rate;

    fn data(supply: Supply, segment: u32, nagle: bool) -> Data {
        Data::new(supply, &TcpConfig { segment, nagle, ..TcpConfig::rfc(Recovery::NewReno) })
    }

    #[test]
    fn a_transfer_ends_with_a_short_segment() {
        let mut d = data(Supply::Finite(2_500), 1_000, false);
        let sizes: Vec<u32> = (0..9).map_while(|n| d.has(Instant::ZERO, n, 0, 0).then(|| d.bytes(n))).collect();
        assert_eq!(sizes, [0, 1_000, 1_000, 500]);
        assert!(d.is_last(3) && !d.is_last(2));
        let mut exact = data(Supply::Finite(2_000), 1_000, false);
        assert!(exact.has(Instant::ZERO, 2, 0, 0) && !exact.has(Instant::ZERO, 3, 0, 0) && exact.bytes(2) == 1_000);
        let mut nothing = data(Supply::Finite(0), 1_000, false);
        assert!(!nothing.has(Instant::ZERO, 1, 0, 0) && nothing.is_last(0));
    }

    #[test]
    fn a_generator_is_cut_by_emission() {
        let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(1_500), size: 1_500, burst: 1 });
        let mut d = data(Supply::Source(cbr.build(1, "cbr")), 1_000, false);
        assert!(d.has(Instant::ZERO, 2, 0, 0) && !d.has(Instant::ZERO, 3, 0, 0));
        assert_eq!(d.next_at(), Some(Instant::from_millis(1_000)));
        assert!(d.has(Instant::from_millis(1_000), 4, 0, 0) && !d.has(Instant::from_millis(1_000), 5, 0, 0));
        assert_eq!([1, 2, 3, 4].map(|n| d.bytes(n)), [1_000, 500, 1_000, 500]);
        d.forget_below(3);
        let file = TrafficConfig::Bulk(Bulk { size: 700, total: Some(1_000) });
        let mut d = data(Supply::Source(file.build(1, "file")), 1_000, false);
        assert!(d.has(Instant::ZERO, 2, 0, 0) && !d.has(Instant::ZERO, 3, 0, 0) && d.is_last(2));
        assert_eq!([d.bytes(1), d.bytes(2)], [700, 300]);
    }

    #[test]
    fn small_writes_wait_while_a_small_segment_is_out() {
        // 300 bytes each 10 ms.
        let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(30_000), size: 300, burst: 1 });
        let mut d = data(Supply::Source(cbr.build(1, "cbr")), 1_000, true);
        let ms = Instant::from_millis;
        assert!(d.has(ms(0), 1, 1, 0) && !d.has(ms(0), 2, 1, 0));
        assert!(!d.has(ms(20), 2, 1, 0), "600 bytes wait");
        assert_eq!(d.next_at(), Some(ms(30)));
        // A full segment does not, nor what is left when the first is acknowledged.
        assert!(d.has(ms(40), 2, 1, 0) && !d.has(ms(40), 3, 1, 0));
        assert!(d.has(ms(40), 3, 2, 0));
        assert_eq!([1, 2, 3].map(|n| d.bytes(n)), [300, 1_000, 200]);
        let file = TrafficConfig::Bulk(Bulk { size: 700, total: Some(1_900) });
        let mut d = data(Supply::Source(file.build(1, "file")), 1_000, true);
        assert!(d.has(Instant::ZERO, 2, 1, 0) && d.is_last(2) && !d.is_last(1));
        assert_eq!([d.bytes(1), d.bytes(2)], [1_000, 900]);
    }

    #[test]
    fn what_waits_for_the_window_is_joined() {
        // 300 bytes each 10 ms.
        let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(30_000), size: 300, burst: 1 });
        let config = TcpConfig { segment: 1_000, coalesce: true, ..TcpConfig::rfc(Recovery::NewReno) };
        let mut d = Data::new(Supply::Source(cbr.build(1, "cbr")), &config);
        let ms = Instant::from_millis;
        assert!(d.has(ms(0), 1, 1, 1) && d.bytes(1) == 300);
        // The first has left; the second waits from 10 ms on, and what comes at 20, 30 and 40 ms fills it and begins the
        // next.
        assert!(!d.has(ms(5), 2, 1, 2) && d.next_at() == Some(ms(10)));
        assert!(d.has(ms(10), 2, 1, 2) && d.bytes(2) == 300);
        assert!(d.has(ms(40), 2, 1, 2) && d.bytes(2) == 1_000);
        assert!(d.has(ms(40), 3, 1, 3) && d.bytes(3) == 200);
        // A segment that has left grows no more.
        assert!(d.has(ms(50), 3, 1, 4) && d.bytes(3) == 200);
        assert!(d.has(ms(50), 4, 1, 4) && d.bytes(4) == 300);
    }
}
