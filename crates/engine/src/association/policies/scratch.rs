//! What an association needs only while something happens to it. An endpoint has one for all of its associations and
//! lends it: most of them are idle at any time.

use crate::association::Association;
use crate::association::transmit::Scratch;
use anabranch_policy::view::PathView;
use core::ops::{Deref, DerefMut};

/// Buffers, and the views of the paths.
#[derive(Default)]
pub(crate) struct Workspace {
    scratch: Lent,
    views: Vec<PathView>,
}

/// The buffers while they are here; made anew when they are needed and none were lent.
#[derive(Default)]
pub(in crate::association) struct Lent(Option<Box<Scratch>>);

impl Deref for Lent {
    type Target = Scratch;
    #[inline]
    fn deref(&self) -> &Scratch {
        static NOTHING: Scratch = Scratch::EMPTY;
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

#[cold]
fn anew() -> Box<Scratch> {
    Box::default()
}

impl DerefMut for Lent {
    #[inline]
    fn deref_mut(&mut self) -> &mut Scratch {
        match &mut self.0 {
            Some(held) => held,
            none => none.insert(anew()),
        }
    }
}

impl Association {
    /// Takes the workspace over: from now on the views of the paths are there.
    pub(crate) fn take_workspace(&mut self, workspace: Workspace) {
        self.scratch = workspace.scratch;
        self.views.lend(workspace.views, &mut self.paths);
    }

    /// Gives the workspace to another association.
    pub(crate) fn give_workspace(&mut self) -> Workspace {
        Workspace { scratch: core::mem::take(&mut self.scratch), views: self.views.take() }
    }
}
