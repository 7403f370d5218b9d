//! Serial numbers that wrap, compared as RFC 1982 says (RFC 9260 §1.6).

use core::fmt;

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $int:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// The number `n` steps later, wrapping.
            #[must_use]
            pub const fn plus(self, n: $int) -> Self {
                $name(self.0.wrapping_add(n))
            }
            /// The number `n` steps earlier, wrapping.
            #[must_use]
            pub const fn minus(self, n: $int) -> Self {
                $name(self.0.wrapping_sub(n))
            }
            /// The next number.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }
            /// Steps from `earlier` to `self`, wrapping; above half the space `self` is the earlier one.
            pub const fn distance(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }
            /// `self` comes strictly before `other`.
            pub const fn before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }
            /// `self` comes strictly after `other`.
            pub const fn after(self, other: Self) -> bool {
                other.before(self)
            }
            /// `self` comes before `other` or equals it.
            pub const fn at_or_before(self, other: Self) -> bool {
                !other.before(self)
            }
            /// The later of the two.
            #[must_use]
            pub const fn max(self, other: Self) -> Self {
                if self.before(other) { other } else { self }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

serial!(
    /// Transmission sequence number (RFC 9260 §3.3.1).
    Tsn, u32, i32
);
serial!(
    /// Stream sequence number (RFC 9260 §6.5).
    Ssn, u16, i16
);
serial!(
    /// Message identifier of I-DATA (RFC 8260 §2.1).
    Mid, u32, i32
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comparison_wraps() {
        assert!(Tsn(u32::MAX).before(Tsn(0)));
        assert!(Tsn(0).after(Tsn(u32::MAX)));
        assert!(!Tsn(7).before(Tsn(7)));
        assert!(Tsn(7).at_or_before(Tsn(7)));
        assert!(Ssn(65_535).before(Ssn(3)));
        assert_eq!(Tsn(2).distance(Tsn(u32::MAX)), 3);
        assert_eq!(Tsn(u32::MAX).max(Tsn(1)), Tsn(1));
    }

    proptest! {
        #[test]
        fn order_is_kept_within_half_the_space(start: u32, step in 1u32..0x7fff_ffff) {
            let (a, b) = (Tsn(start), Tsn(start).plus(step));
            prop_assert!(a.before(b) && b.after(a) && !b.before(a));
            prop_assert_eq!(b.distance(a), step);
        }
    }
}
