//! A reset of the peer's streams that waits for the last of their old data (RFC 6525 §5.2.2 E2).

use super::Receiver;
use anabranch_base::{StreamId, Tsn};
use anabranch_wire::{DataHeader, IDataHeader};
use bytes::Bytes;

/// What is known of such a reset, and newer data of its streams.
#[derive(Debug)]
pub(super) struct DeferredReset {
    request: u32,
    /// It was extended.
    last_tsn: u64,
    /// None is all.
    streams: Vec<StreamId>,
    held: Vec<(u64, DataHeader, Bytes)>,
    held_interleaved: Vec<(IDataHeader, Bytes)>,
}

impl DeferredReset {
    /// Is a chunk to wait for the reset?
    fn holds(&self, tsn: u64, stream: StreamId) -> bool {
        tsn > self.last_tsn && (self.streams.is_empty() || self.streams.contains(&stream))
    }
}

/// A deferred reset that was carried out.
#[derive(Debug)]
pub(in crate::association) struct FinishedReset {
    pub request: u32,
    pub streams: Vec<StreamId>,
    /// Fragments that were held do not fit together.
    pub broken: bool,
}

impl Receiver {
    /// The peer's streams, or all of them, begin anew; false when that waits for data up to `last`.
    pub fn reset_streams(&mut self, request: u32, last: Tsn, streams: &[StreamId]) -> bool {
        let cum = self.tracker.cum();
        if !last.after(cum) {
            self.forget_given_up();
            self.reassembly.reset_streams(streams);
            return true;
        }
        let last_tsn = self.tracker.cum_extended() + u64::from(last.distance(cum));
        let streams = streams.to_vec();
        self.deferred = Some(Box::new(DeferredReset {
            request,
            last_tsn,
            streams,
            held: Vec::new(),
            held_interleaved: Vec::new(),
        }));
        false
    }

    /// Does a reset wait for data?
    pub fn defers_reset(&self) -> bool {
        self.deferred.is_some()
    }

    /// The cumulative TSN moved: a deferred reset may be due (§5.2.2 E2 to E5).
    #[inline]
    pub fn finish_reset(&mut self) -> Option<FinishedReset> {
        if self.deferred.is_none() { None } else { self.finish_deferred() }
    }

    #[inline(never)]
    fn finish_deferred(&mut self) -> Option<FinishedReset> {
        let cum = self.tracker.cum_extended();
        let d = self.deferred.take_if(|d| d.last_tsn <= cum)?;
        self.forget_given_up();
        self.reassembly.reset_streams(&d.streams);
        let mut outcome = Ok(());
        for (tsn, header, payload) in d.held {
            self.reassembly.discharge(payload.len());
            outcome = outcome.and_then(|()| self.reassembly.insert(tsn, &header, payload));
        }
        for (header, payload) in d.held_interleaved {
            self.reassembly.discharge(payload.len());
            outcome = outcome.and_then(|()| self.reassembly.insert_interleaved(&header, payload));
        }
        // Not before all of them are in: the cumulative TSN is beyond some.
        outcome = outcome.and_then(|()| self.reassembly.check_cum(cum));
        Some(FinishedReset { request: d.request, streams: d.streams, broken: outcome.is_err() })
    }

    /// Data of streams whose reset is deferred waits for it. True when it was taken.
    #[inline(never)]
    pub(super) fn hold_for_reset(&mut self, tsn: u64, h: &DataHeader, payload: &Bytes) -> bool {
        let Some(d) = self.deferred.as_mut().filter(|d| d.holds(tsn, h.stream)) else { return false };
        d.held.push((tsn, *h, payload.clone()));
        self.reassembly.charge(payload.len());
        true
    }

    /// The counterpart for I-DATA.
    pub(super) fn hold_interleaved_for_reset(&mut self, tsn: u64, h: &IDataHeader, payload: &Bytes) -> bool {
        let Some(d) = self.deferred.as_mut().filter(|d| d.holds(tsn, h.stream)) else { return false };
        d.held_interleaved.push((*h, payload.clone()));
        self.reassembly.charge(payload.len());
        true
    }
}
