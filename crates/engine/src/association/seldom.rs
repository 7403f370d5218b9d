//! State that few associations ever have.

use core::ops::{Deref, DerefMut};

/// What stands for a state that was never written.
pub(crate) trait Nothing: Default + 'static {
    const NOTHING: &'static Self;
}

/// Reads as [`Nothing`], and takes no memory, until somebody writes to it.
pub(crate) struct Seldom<T>(Option<Box<T>>);

impl<T> Seldom<T> {
    pub fn nothing() -> Self {
        Seldom(None)
    }
    /// Was it never written to?
    pub fn is_nothing(&self) -> bool {
        self.0.is_none()
    }
    /// For what need not be done to nothing.
    pub fn held(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T> From<T> for Seldom<T> {
    fn from(held: T) -> Self {
        Seldom(Some(Box::new(held)))
    }
}

impl<T: Nothing> Deref for Seldom<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::NOTHING)
    }
}

impl<T: Nothing> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl Nothing for crate::tx::carried::Carried {
    const NOTHING: &'static Self = &crate::tx::carried::Carried::NOTHING;
}

impl<E: 'static> Nothing for std::collections::VecDeque<E> {
    const NOTHING: &'static Self = &std::collections::VecDeque::new();
}
