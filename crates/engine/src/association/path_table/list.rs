//! The paths in the order of their ids, and which of them differ from what policies were shown of them.

use crate::path::Path;
use anabranch_base::{PathId, PathSet};
use core::ops::{Deref, DerefMut};

/// How much of a path's view a change can show in. The view is made anew to that extent; debug builds check now and then
/// that the rest of it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Shown {
    /// Timers, pace, counters: no view has them.
    Nothing,
    /// The window and its threshold.
    Window,
    /// What a packet that leaves changes.
    Flight,
    /// What a further chunk of a packet changes: the bytes in flight.
    FlightBytes,
}

/// Paths of which the view is out of date.
#[derive(Clone, Copy, Debug)]
pub(in crate::association) struct Touched {
    /// In whole.
    pub whole: PathSet,
    /// In what [`Shown::Window`] is about.
    pub window: PathSet,
    /// In what [`Shown::Flight`] is about.
    pub flight: PathSet,
    /// In what [`Shown::FlightBytes`] is about.
    pub flight_bytes: PathSet,
}

impl Touched {
    const NONE: Touched =
        Touched { whole: PathSet::EMPTY, window: PathSet::EMPTY, flight: PathSet::EMPTY, flight_bytes: PathSet::EMPTY };

    /// No view is out of date.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.whole.or(self.window).or(self.flight).or(self.flight_bytes).is_empty()
    }
}

/// The list. Whoever gets a path to change it says so by the way it was asked for.
#[allow(clippy::vec_box, reason = "a path stays where it is")]
pub(super) struct PathList {
    /// Each stands on its own: a path is large, and a list that grows would copy all of them and leave holes behind. Few
    /// associations have more than two.
    paths: Vec<Box<Path>>,
    touched: Touched,
}

impl PathList {
    pub const EMPTY: PathList = PathList { paths: Vec::new(), touched: Touched::NONE };

    #[inline]
    pub fn as_slice(&self) -> &[Box<Path>] {
        &self.paths
    }

    /// All of them, to be changed in any way.
    pub fn as_mut_slice(&mut self) -> &mut [Box<Path>] {
        self.touch_all();
        &mut self.paths
    }

    /// One of them, to be changed in any way.
    #[inline]
    pub fn get_mut(&mut self, i: usize) -> Option<&mut Path> {
        let p = self.paths.get_mut(i)?;
        self.touched.whole = self.touched.whole.with(PathId(i as u8));
        Some(p.deref_mut())
    }

    /// The one that is known to be there, to be changed in any way.
    #[inline]
    pub fn at_mut(&mut self, i: usize) -> &mut Path {
        self.touched.whole = self.touched.whole.with(PathId(i as u8));
        &mut self.paths[i]
    }

    /// One of them, of which no more than this will show.
    #[inline]
    pub fn get_for(&mut self, i: usize, shown: Shown) -> Option<&mut Path> {
        let p = self.paths.get_mut(i)?;
        let id = PathId(i as u8);
        match shown {
            Shown::Nothing => {}
            Shown::Window => self.touched.window = self.touched.window.with(id),
            Shown::Flight => self.touched.flight = self.touched.flight.with(id),
            Shown::FlightBytes => self.touched.flight_bytes = self.touched.flight_bytes.with(id),
        }
        Some(p.deref_mut())
    }

    /// Appends one; makes room for no more than that.
    #[inline]
    pub fn push(&mut self, p: Path) {
        self.paths.reserve_exact(1);
        // Written to its place at once.
        self.paths.push(Box::write(Box::new_uninit(), p));
        self.touch_all();
    }

    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Path> + Clone {
        self.paths.iter().map(Box::deref)
    }

    /// All of them, to be changed in any way.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.as_mut_slice().iter_mut().map(Box::deref_mut)
    }

    /// All of them, to be changed where no view shows it.
    pub fn iter_unseen(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.paths.iter_mut().map(Box::deref_mut)
    }

    /// Something that all views show has changed.
    pub fn touch_all(&mut self) {
        self.touched.whole = PathSet::first(self.paths.len());
    }

    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// The views are up to date.
    pub fn clear_touched(&mut self) {
        self.touched = Touched::NONE;
    }
}
