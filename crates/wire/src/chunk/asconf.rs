//! ASCONF (RFC 5061 §4.1.1).

use super::RawChunk;
use crate::bits::split;
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;
use crate::parameter::{Parameter, Params, kind as parameter_kind};
use crate::tlv::without_final_padding;
use core::net::IpAddr;

/// An ASCONF chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asconf<'a> {
    /// Serial number.
    pub serial: u32,
    /// The mandatory Address Parameter: an address of the sender that the association knows, or the wildcard.
    /// `None` when it is missing, or a host name (which is ignored).
    pub address: Option<IpAddr>,
    /// The requests behind it.
    pub params: Params<'a>,
}

impl<'a> Asconf<'a> {
    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let (serial, rest) = split::<4>(raw.value).ok_or(raw.misshapen())?;
        let all = Params::new(rest);
        let mut walk = all.iter_raw();
        let (address, params) = match walk.next().transpose()? {
            Some(p) if matches!(p.kind, parameter_kind::IPV4 | parameter_kind::IPV6) => {
                (p.decode()?.address(), Params::new(walk.rest()))
            }
            Some(p) if p.kind == parameter_kind::HOST_NAME => (None, Params::new(walk.rest())),
            _ => (None, all),
        };
        Ok(Asconf { serial: u32::from_be_bytes(*serial), address, params })
    }
}

impl Encode for Asconf<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_asconf(out, self.serial, self.address, self.params.raw());
    }
}

/// An ASCONF to send.
#[derive(Clone, Copy, Debug)]
pub struct AsconfOut<'a> {
    /// Serial number.
    pub serial: u32,
    /// The mandatory Address Parameter.
    pub address: IpAddr,
    /// Requests, encoded one behind the other.
    pub params: &'a [u8],
}

impl Encode for AsconfOut<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_asconf(out, self.serial, Some(self.address), self.params);
    }
}

fn put_asconf(out: &mut Vec<u8>, serial: u32, address: Option<IpAddr>, params: &[u8]) {
    put_chunk(out, kind::ASCONF, 0, |o| {
        put32(o, serial);
        if let Some(address) = address {
            Parameter::from(address).encode(o);
        }
        o.extend_from_slice(without_final_padding(params));
    });
}
