//! ABORT (RFC 9260 §3.3.7).

use super::{RawChunk, T_BIT};
use crate::cause::Causes;
use crate::encode::{Encode, put_chunk};
use crate::kind;
use crate::tlv::without_final_padding;

/// An ABORT chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort<'a> {
    /// T bit: the verification tag is the receiver's own, sent back.
    pub tag_reflected: bool,
    /// Error causes: why the association ends.
    pub causes: Causes<'a>,
}

impl<'a> Abort<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Self {
        Abort { tag_reflected: raw.flags & T_BIT != 0, causes: Causes::new(raw.value) }
    }
}

impl Encode for Abort<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        AbortOut { tag_reflected: self.tag_reflected, causes: self.causes.raw() }.encode(out);
    }
}

/// An ABORT to send.
#[derive(Clone, Copy, Debug)]
pub struct AbortOut<'a> {
    /// T bit: the verification tag is the receiver's own, sent back.
    pub tag_reflected: bool,
    /// Error causes, encoded one behind the other.
    pub causes: &'a [u8],
}

impl Encode for AbortOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let flags = if self.tag_reflected { T_BIT } else { 0 };
        put_chunk(out, kind::ABORT, flags, |o| o.extend_from_slice(without_final_padding(self.causes)));
    }
}
