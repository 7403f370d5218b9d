//! ERROR (RFC 9260 §3.3.10). The causes it carries are in `cause.rs`.

use super::RawChunk;
use crate::cause::Causes;
use crate::encode::{Encode, put_chunk};
use crate::kind;
use crate::tlv::without_final_padding;

/// An ERROR chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorChunk<'a> {
    /// What went wrong.
    pub causes: Causes<'a>,
}

impl<'a> ErrorChunk<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Self {
        ErrorChunk { causes: Causes::new(raw.value) }
    }
}

impl Encode for ErrorChunk<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        ErrorOut { causes: self.causes.raw() }.encode(out);
    }
}

/// An ERROR to send.
#[derive(Clone, Copy, Debug)]
pub struct ErrorOut<'a> {
    /// Error causes, encoded one behind the other.
    pub causes: &'a [u8],
}

impl Encode for ErrorOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::ERROR, 0, |o| o.extend_from_slice(without_final_padding(self.causes)));
    }
}
