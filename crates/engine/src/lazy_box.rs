//! A box for state that few associations ever have: it takes no memory before it is written.

use core::ops::{Deref, DerefMut};

/// What a [`LazyBox`] reads as before it is written.
pub(crate) trait Empty: Default + 'static {
    const EMPTY: &'static Self;
}

/// Reads as [`Empty::EMPTY`] and takes no memory until it is written.
#[derive(Clone, Debug)]
pub(crate) struct LazyBox<T>(Option<Box<T>>);

impl<T> LazyBox<T> {
    pub fn empty() -> Self {
        LazyBox(None)
    }
    /// Was it never written to?
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// The state, if it was ever written: for what need not be done to an empty one.
    pub fn used(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        LazyBox::empty()
    }
}

impl<T> From<T> for LazyBox<T> {
    fn from(held: T) -> Self {
        LazyBox(Some(Box::new(held)))
    }
}

impl<T: Empty> Deref for LazyBox<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

/// Written to for the first time.
#[cold]
fn first<T: Default>() -> Box<T> {
    Box::default()
}

impl<T: Empty> DerefMut for LazyBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(held) => held,
            none => none.insert(first()),
        }
    }
}

impl<E: 'static> Empty for std::collections::VecDeque<E> {
    const EMPTY: &'static Self = &std::collections::VecDeque::new();
}
