//! Parameters of the user's own: written into INIT, read from the peer's INIT or INIT ACK, repeated in ours.
//!
//! What is not in our list costs nothing but a look at its type; of the others the first of each type counts, and no
//! more bytes than [`OwnParameter::MAX_LEN`].

use crate::config::{AssocConfig, OwnParameter};
use anabranch_wire::{Encode, Parameter, Params, RawParameter};
use bytes::Bytes;

/// What the peer said by parameters that are in our list.
pub(crate) fn read(params: Params<'_>, config: &AssocConfig) -> Vec<OwnParameter> {
    let known = &config.extensions.own_parameters;
    let mut said: Vec<OwnParameter> = Vec::new();
    if known.is_empty() {
        return said;
    }
    for p in params.iter_raw().flatten() {
        // What follows such a one is not looked at (RFC 9260 §3.2.1).
        if matches!(p.decode(), Ok(Parameter::Unknown(_))) && p.unknown_action().stops() {
            break;
        }
        let ours = known.iter().take(OwnParameter::MOST).any(|k| k.kind == p.kind && k.is_possible());
        let short = p.value.len() <= OwnParameter::MAX_LEN;
        if ours && short && said.iter().all(|s| s.kind != p.kind) {
            said.push(OwnParameter::said(p.kind, Bytes::copy_from_slice(p.value)));
        }
    }
    said
}

/// Appends those that say something.
pub(crate) fn write(list: &[OwnParameter], out: &mut Vec<u8>) {
    for p in list.iter().take(OwnParameter::MOST).filter(|p| p.is_possible()) {
        if let Some(value) = &p.value {
            Parameter::Unknown(RawParameter { kind: p.kind, value, whole: &[] }).encode(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::registry::Profile;

    fn config(list: &[OwnParameter]) -> AssocConfig {
        let mut c = AssocConfig::new(Profile::named("sctp").expect("a profile"));
        c.extensions.own_parameters = list.to_vec();
        c
    }

    fn written(list: &[OwnParameter]) -> Vec<u8> {
        let mut out = Vec::new();
        write(list, &mut out);
        out
    }

    #[test]
    fn what_is_written_is_read_by_who_knows_it() {
        let hint = OwnParameter::said(0xbf43, &[1, 3, 0, 1, 2][..]);
        let bytes = written(std::slice::from_ref(&hint));
        assert_eq!(bytes, [0xbf, 0x43, 0, 9, 1, 3, 0, 1, 2, 0, 0, 0]);
        assert_eq!(read(Params::new(&bytes), &config(&[OwnParameter::known(0xbf43)])), [hint]);
        assert_eq!(read(Params::new(&bytes), &config(&[OwnParameter::known(0xbf44)])), []);
        assert_eq!(read(Params::new(&bytes), &config(&[])), []);
        assert_eq!(written(&[OwnParameter::known(0xbf43)]), []);
    }

    #[test]
    fn what_is_too_long_repeated_or_hidden_is_not_taken() {
        let raw = |kind, value: &[u8]| {
            let mut out = Vec::new();
            Parameter::Unknown(RawParameter { kind, value, whole: &[] }).encode(&mut out);
            out
        };
        let ours = config(&[OwnParameter::known(0xbf43), OwnParameter::known(0xbf44)]);
        let taken = |parts: &[Vec<u8>]| read(Params::new(&parts.concat()), &ours);
        let said = |kind, n: usize| OwnParameter::said(kind, vec![7; n]);
        assert_eq!(taken(&[raw(0xbf43, &[7; 17])]), []);
        assert_eq!(taken(&[raw(0xbf43, &[7; 16]), raw(0xbf43, &[7; 2])]), [said(0xbf43, 16)]);
        assert_eq!(taken(&[raw(0xbf44, &[]), raw(0xbf43, &[7])]), [said(0xbf44, 0), said(0xbf43, 1)]);
        // 0x00ff is unknown, and of a type at which reading ends.
        assert_eq!(taken(&[raw(0x00ff, &[]), raw(0xbf43, &[7])]), []);
        assert_eq!(taken(&[raw(0xbf43, &[7]), vec![0xbf, 0x44, 0xff, 0xff]]), [said(0xbf43, 1)]);
        let many: Vec<Vec<u8>> = (0x9000..0x9100).map(|k| raw(k, &[7; 16])).collect();
        assert_eq!(taken(&many), []);
    }

    #[test]
    fn what_strangers_would_not_skip_is_refused_and_not_sent() {
        for kind in [0, 5, 0x7fff, 0x8000, 0x8002, 0x8008, 0xbf41, 0xbf42, 0xc000, 0xffff] {
            let list = [OwnParameter::said(kind, vec![1])];
            assert!(config(&list).check().is_err(), "{kind:#x}");
            assert_eq!(written(&list), []);
        }
        let long = [OwnParameter::said(0xbf43, vec![1; 17])];
        assert!(config(&long).check().is_err() && written(&long).is_empty());
        let five: Vec<_> = (0..5).map(|i| OwnParameter::said(0x9000 + i, vec![])).collect();
        assert!(config(&five).check().is_err());
        assert_eq!(written(&five).len(), 16);
        assert!(config(&five[..4]).check().is_ok());
    }
}
