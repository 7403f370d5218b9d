//! `--media-hint`: the number of the parameter that says that a film comes.

use anabranch_media::MediaHint;
use anabranch_net::OwnParameter;
use anabranch_wire::{Parameter, RawParameter, parameter_kind as kind};

/// Type of the parameter that carries the media hint; none says and reads nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaHintType(pub Option<u16>);

/// Reads the flag.
pub fn parse(text: &str) -> Result<MediaHintType, String> {
    if text == "none" {
        return Ok(MediaHintType(None));
    }
    let digits = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u16::from_str_radix(hex, 16).ok());
    let number = digits
        .filter(|number| OwnParameter::KINDS.contains(number))
        .ok_or_else(|| format!("{text} is no type of a parameter that others skip; write 0x8000 to 0xbfff, or none"))?;
    match taken(number) {
        Some(by) => Err(format!(
            "{text} is taken by {by}; another one is free, such as {:#06x} or 0x9123",
            MediaHint::PARAMETER
        )),
        None => Ok(MediaHintType(Some(number))),
    }
}

/// What has this number already.
fn taken(number: u16) -> Option<&'static str> {
    let raw = RawParameter { kind: number, value: &[], whole: &[] };
    let is_free = matches!(raw.decode(), Ok(Parameter::Unknown(_)));
    (!is_free).then_some(match number {
        kind::PACKET_COUNT => "packet counts in SACKs",
        kind::TIME_STAMPS => "time stamps beside SACKs",
        kind::PARITY => "parity",
        _ => "a parameter of SCTP itself",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_free_or_a_line_that_says_why_it_is_not() {
        assert_eq!(parse("none"), Ok(MediaHintType(None)));
        for (text, number) in [("36867", 0x9003), ("0x9123", 0x9123), ("0xbf43", MediaHint::PARAMETER)] {
            assert_eq!(parse(text), Ok(MediaHintType(Some(number))));
        }
        for bad in ["", "x", "0xc000", "0x7fff", "99999"] {
            assert!(parse(bad).unwrap_err().contains("write 0x8000 to 0xbfff"), "{bad}");
        }
        for (text, by) in [
            ("0x8008", "a parameter of SCTP itself"),
            ("0x8000", "a parameter of SCTP itself"),
            ("0xbf41", "packet counts in SACKs"),
            ("0xbf42", "time stamps beside SACKs"),
            ("0xbf45", "parity"),
        ] {
            let what = format!("{text} is taken by {by}; another one is free, such as 0xbf43 or 0x9123");
            assert_eq!(parse(text), Err(what));
        }
    }
}
