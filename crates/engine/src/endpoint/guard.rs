//! An association that is acted on: when that is over the endpoint looks at it again.

use super::{AssocId, Endpoint};
use crate::LostCopy;
use crate::association::Association;
use crate::message::Message;
use std::ops::{Deref, DerefMut};

/// Guard of [`Endpoint::association_mut`].
pub struct AssocMut<'a> {
    endpoint: &'a mut Endpoint,
    id: AssocId,
    touched: bool,
}

impl<'a> AssocMut<'a> {
    /// The association has to be there as long as the guard is.
    pub(super) fn new(endpoint: &'a mut Endpoint, id: AssocId) -> AssocMut<'a> {
        AssocMut { endpoint, id, touched: false }
    }

    /// [`Association::recv`]; where there is nothing to be read, nothing has changed either.
    pub fn recv(&mut self) -> Option<Message> {
        let m = self.endpoint.slots.get_mut(&self.id)?.association.recv();
        self.touched |= m.is_some();
        m
    }

    /// [`Association::lost_copies`]; to have looked at them is no act.
    pub fn lost_copies(&mut self) -> Vec<LostCopy> {
        self.endpoint.slots.get_mut(&self.id).map(|s| s.association.lost_copies()).unwrap_or_default()
    }
}

impl Deref for AssocMut<'_> {
    type Target = Association;
    fn deref(&self) -> &Association {
        // As below.
        match self.endpoint.slots.get(&self.id) {
            Some(s) => &s.association,
            None => unreachable!("the guard holds the endpoint"),
        }
    }
}

impl DerefMut for AssocMut<'_> {
    fn deref_mut(&mut self) -> &mut Association {
        self.touched = true;
        // The guard borrows the endpoint: the slot that was there when it was made is still there.
        match self.endpoint.slots.get_mut(&self.id) {
            Some(s) => &mut s.association,
            None => unreachable!("the guard holds the endpoint"),
        }
    }
}

impl Drop for AssocMut<'_> {
    fn drop(&mut self) {
        if self.touched {
            self.endpoint.wake(self.id);
        }
    }
}
