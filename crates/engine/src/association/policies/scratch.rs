//! What an association needs only while something happens to it. An endpoint has one for all of its associations and
//! lends it: most of them are idle at any time.

use crate::association::Association;
use crate::association::transmit::Scratch;
use anabranch_policy::view::PathView;
use core::ops::{Deref, DerefMut};

/// Buffers, and the views of the paths.
#[derive(Default)]
pub(crate) struct Bench {
    scratch: Lent,
    views: Vec<PathView>,
}

/// The buffers while they are here; made anew when somebody needs them and nobody lent any.
#[derive(Default)]
pub(in crate::association) struct Lent(Option<Box<Scratch>>);

impl Deref for Lent {
    type Target = Scratch;
    fn deref(&self) -> &Scratch {
        static NOTHING: Scratch = Scratch::EMPTY;
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Scratch {
        self.0.get_or_insert_default()
    }
}

impl Association {
    /// Takes the bench over: from now on the views of the paths are there, and fresh.
    pub(crate) fn take_bench(&mut self, bench: Bench) {
        self.scratch = bench.scratch;
        self.views.paths = bench.views;
        self.refresh_views();
    }

    /// Gives the bench to another association.
    pub(crate) fn give_bench(&mut self) -> Bench {
        self.views.stale = true;
        Bench { scratch: core::mem::take(&mut self.scratch), views: core::mem::take(&mut self.views.paths) }
    }
}
