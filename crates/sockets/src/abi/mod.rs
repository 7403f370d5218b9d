//! What programs are compiled against: numbers and structures of `<linux/sctp.h>` and of sockets, one file per family.
//!
//! Every structure is a row of bytes with native-endian fields, so that reading and writing one needs no unsafe code
//! whatever its alignment; the tests compare sizes and places with those of the C header.

pub mod address;
pub mod message;
pub mod notification;
pub mod option;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// IPPROTO_SCTP and SOL_SCTP, which are one number.
pub const SOL_SCTP: i32 = 132;

/// Reads a structure of which the program may have an older, shorter form: what is missing is zero.
///
/// None when not even `least` bytes are there.
pub fn read<T: FromBytes + IntoBytes + KnownLayout + Immutable>(bytes: &[u8], least: usize) -> Option<T> {
    if bytes.len() < least {
        return None;
    }
    let mut value = T::new_zeroed();
    let n = bytes.len().min(size_of::<T>());
    value.as_mut_bytes().get_mut(..n)?.copy_from_slice(bytes.get(..n)?);
    Some(value)
}
