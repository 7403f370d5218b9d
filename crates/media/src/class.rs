//! How much a picture is worth to the pictures around it.

use core::fmt;

/// Importance class. The order is the order of importance, most important first (Cheng et al. 2011 §III).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// Pictures that need no other; also audio, tables and everything that is not understood.
    #[default]
    I = 0,
    /// Pictures that need earlier ones and are needed by others.
    P = 1,
    /// Pictures that nothing else needs.
    B = 2,
}

impl Class {
    /// All classes, most important first.
    pub const ALL: [Class; 3] = [Class::I, Class::P, Class::B];

    /// Number of the class: 0, 1 or 2. Also the stream it is sent on (Cheng et al. 2011 §III).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The class with this number.
    pub const fn from_index(i: usize) -> Option<Self> {
        match i {
            0 => Some(Class::I),
            1 => Some(Class::P),
            2 => Some(Class::B),
            _ => None,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
