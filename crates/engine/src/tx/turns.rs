//! Streams that have something to send, in the order of the places that the stream scheduler gives them.
//!
//! A place is asked for once for each message or piece, so that a message costs as much beside ten thousand waiting
//! streams as beside ten.

use crate::work;
use anabranch_base::StreamId;
use anabranch_policy::Asks;
use anabranch_policy::stream_scheduler::{Place, StreamScheduler};
use anabranch_policy::view::StreamView;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a stream knows of itself in [`Turns`].
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// It has something to send.
    waits: bool,
    /// It has no place yet, and is in the list of those.
    listed: bool,
    /// It is in the list of streams that may have fallen silent.
    hushed: bool,
    /// Counts what it showed: a place that was given to something else is not its place any more.
    serial: u32,
}

/// Streams by number, as [`Turns`] sees them.
pub(super) trait Streams {
    fn standing(&mut self, stream: u16) -> Option<&mut Standing>;
    /// What a scheduler is shown of it.
    fn view(&self, stream: u16) -> Option<StreamView>;
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    order: BinaryHeap<Reverse<(Place, u16, u32)>>,
    /// Streams that have no place yet, and perhaps some that need none.
    listed: Vec<u16>,
    /// Streams that had something to send and then had nothing.
    hushed: Vec<u16>,
    /// How many have something to send.
    waiting: usize,
    /// Taken from last.
    last: Option<u16>,
}

impl Turns {
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// What `stream` has to send is something else than before, or nothing.
    #[inline]
    pub fn show(&mut self, stream: u16, standing: &mut Standing, something: bool) {
        work::steps(1);
        standing.serial = standing.serial.wrapping_add(1);
        if standing.waits != something {
            standing.waits = something;
            self.waiting = if something { self.waiting + 1 } else { self.waiting - 1 };
        }
        if something && !standing.listed {
            standing.listed = true;
            self.listed.push(stream);
        } else if !something && !standing.hushed {
            standing.hushed = true;
            self.hushed.push(stream);
        }
    }

    /// Another scheduler gives places from now on.
    pub fn rearrange<'a>(&mut self, all: impl Iterator<Item = (u16, &'a mut Standing)>) {
        self.order.clear();
        self.hushed.clear();
        for (stream, standing) in all {
            standing.hushed = false;
            if standing.waits {
                self.show(stream, standing, true);
            }
        }
    }

    /// The stream whose turn it is.
    #[inline]
    pub fn next(&mut self, streams: &mut impl Streams, scheduler: &mut dyn StreamScheduler) -> Option<u16> {
        let next = match self.waiting {
            0 => None,
            1 => self.only(streams),
            _ => self.first_of_many(streams, scheduler),
        };
        self.last = next;
        next
    }

    /// The only one needs no place.
    fn only(&mut self, streams: &mut impl Streams) -> Option<u16> {
        while let Some(&stream) = self.listed.last() {
            work::steps(1);
            match streams.standing(stream) {
                Some(s) if s.waits => return Some(stream),
                Some(s) => s.listed = false,
                None => {}
            }
            self.listed.pop();
        }
        self.first_placed(streams).map(|(_, stream)| stream)
    }

    #[inline(never)]
    fn first_of_many(&mut self, streams: &mut impl Streams, scheduler: &mut dyn StreamScheduler) -> Option<u16> {
        for stream in self.hushed.drain(..) {
            work::steps(1);
            let Some(s) = streams.standing(stream) else { continue };
            s.hushed = false;
            if !s.waits {
                scheduler.silent(StreamId(stream));
            }
        }
        if scheduler.asks().any(Asks::PACKETS)
            && let Some(last) = self.last.filter(|l| streams.standing(*l).is_some_and(|s| s.waits))
            && streams.view(last).is_some_and(|v| scheduler.goes_on(&v))
        {
            return Some(last);
        }
        // The one that was taken from stands first: what it has sent by now counts for newcomers.
        let mut listed = core::mem::take(&mut self.listed);
        for stream in listed.drain(..) {
            self.give_place(stream, streams, scheduler);
        }
        self.listed = listed;
        self.first_placed(streams).map(|(_, stream)| stream)
    }

    fn give_place(&mut self, stream: u16, streams: &mut impl Streams, scheduler: &mut dyn StreamScheduler) {
        work::steps(1);
        let Some(s) = streams.standing(stream) else { return };
        s.listed = false;
        let (waits, serial) = (s.waits, s.serial);
        let Some(view) = streams.view(stream).filter(|_| waits) else { return };
        let least = self.first_placed(streams).map(|(place, _)| place);
        if self.order.len() > 2 * self.waiting + 16 {
            self.forget_old(streams);
        }
        self.order.push(Reverse((scheduler.place(&view, least), stream, serial)));
    }

    /// The least place that is still one.
    fn first_placed(&mut self, streams: &mut impl Streams) -> Option<(Place, u16)> {
        while let Some(&Reverse((place, stream, serial))) = self.order.peek() {
            work::steps(1);
            if is_placed(streams, stream, serial) {
                return Some((place, stream));
            }
            self.order.pop();
        }
        None
    }

    fn forget_old(&mut self, streams: &mut impl Streams) {
        work::steps(self.order.len());
        self.order.retain(|Reverse((_, stream, serial))| is_placed(streams, *stream, *serial));
    }
}

fn is_placed(streams: &mut impl Streams, stream: u16, serial: u32) -> bool {
    streams.standing(stream).is_some_and(|s| s.waits && !s.listed && s.serial == serial)
}

impl Standing {
    pub fn waits(&self) -> bool {
        self.waits
    }
}
