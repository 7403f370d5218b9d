//! RE-CONFIG (RFC 6525 §3.1): one or two parameters that ask or answer, see [`crate::Parameter`].

use super::RawChunk;
use crate::encode::{Encode, put_chunk};
use crate::kind;
use crate::parameter::Params;
use crate::tlv::without_final_padding;

/// A RE-CONFIG chunk. Which parameters may stand together is for the engine to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReConfig<'a> {
    /// Requests and responses.
    pub params: Params<'a>,
}

impl<'a> ReConfig<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Self {
        ReConfig { params: Params::new(raw.value) }
    }
}

impl Encode for ReConfig<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        ReConfigOut { params: self.params.raw() }.encode(out);
    }
}

/// A RE-CONFIG to send.
#[derive(Clone, Copy, Debug)]
pub struct ReConfigOut<'a> {
    /// Parameters, encoded one behind the other.
    pub params: &'a [u8],
}

impl Encode for ReConfigOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::RE_CONFIG, 0, |o| o.extend_from_slice(without_final_padding(self.params)));
    }
}
