//! Optional parameters of the user's own in INIT and INIT ACK.

use anabranch_policy::registry::PolicyError;
use anabranch_wire::{Parameter, RawParameter};
use bytes::Bytes;
use core::ops::RangeInclusive;

/// A parameter that the RFCs do not know. A peer that does not know it either skips it and says nothing (RFC 9260
/// §3.2.1); one that has its type in its own list answers with what it read, and each side hears what the other said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnParameter {
    /// Its type, of [`OwnParameter::KINDS`].
    pub kind: u16,
    /// What our INIT says; none says nothing and only answers.
    pub value: Option<Bytes>,
}

impl OwnParameter {
    /// Types that are skipped in silence where they are not known.
    pub const KINDS: RangeInclusive<u16> = 0x8000..=0xbfff;
    /// Most of them in one list.
    pub const MOST: usize = 4;
    /// Longest value, bytes. Whatever a peer sends, its cookie holds and an answer repeats no more.
    pub const MAX_LEN: usize = 16;

    /// One that our INIT says, and our INIT ACK repeats.
    pub fn said(kind: u16, value: impl Into<Bytes>) -> Self {
        OwnParameter { kind, value: Some(value.into()) }
    }

    /// One that our INIT ACK repeats.
    pub fn known(kind: u16) -> Self {
        OwnParameter { kind, value: None }
    }

    /// Can it be one of ours: skipped by strangers, without a meaning yet, short enough?
    pub(crate) fn is_possible(&self) -> bool {
        let raw = RawParameter { kind: self.kind, value: &[], whole: &[] };
        Self::KINDS.contains(&self.kind)
            && matches!(raw.decode(), Ok(Parameter::Unknown(_)))
            && self.value.as_ref().is_none_or(|v| v.len() <= Self::MAX_LEN)
    }

    pub(super) fn check(list: &[OwnParameter]) -> Result<(), PolicyError> {
        let refused = |second: String, reason| {
            Err(PolicyError::Refused { first: "the list of own parameters".into(), second, reason })
        };
        if let Some(p) = list.iter().find(|p| !p.is_possible()) {
            let reason = "a type of 0x8000 to 0xbfff that has no meaning yet, and at most 16 bytes are possible";
            return refused(format!("parameter {:#06x}", p.kind), reason);
        }
        if list.len() > Self::MOST {
            return refused(format!("{} parameters", list.len()), "there are 4 at most");
        }
        Ok(())
    }
}
