//! The value of `queue`.

use super::words::Cursor;
use super::{ParseError, units};
use crate::queue::{CoDelParams, Discipline, RedParams};

/// Reads what follows `queue`.
pub(super) fn value(words: &mut Cursor<'_>) -> Result<Discipline, ParseError> {
    let name = words.value("queue", "`drop-tail`, `red` or `codel`")?;
    let discipline = match name {
        "drop-tail" | "droptail" => drop_tail(words)?,
        "red" => red(words)?,
        "codel" => codel(words)?,
        _ => return Err(ParseError::about("queue", format!("is `drop-tail`, `red` or `codel`, not `{name}`"))),
    };
    discipline.check().map_err(|e| ParseError::new(format!("`queue {name}`: {e}")))?;
    Ok(discipline)
}

/// `name=value` pairs up to the next word of the grammar.
fn pairs<'a>(words: &mut Cursor<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    core::iter::from_fn(move || {
        let pair = words.peek()?.split_once('=')?;
        words.skip();
        Some(pair)
    })
}

fn drop_tail(words: &mut Cursor<'_>) -> Result<Discipline, ParseError> {
    let mut discipline = Discipline::DropTail;
    for (name, value) in pairs(words) {
        let packets = value.parse().ok().filter(|_| name == "mark");
        let wrong = || match name {
            "mark" => ParseError::new(format!("`queue drop-tail`: `mark` needs a number of packets, not `{value}`")),
            "ecn" => ParseError::new("`queue drop-tail` marks from a length on, such as mark=20, not by `ecn=`".into()),
            _ => ParseError::new(format!("`queue drop-tail` takes mark=, not `{name}=`")),
        };
        discipline = Discipline::Step { mark: packets.ok_or_else(wrong)? };
    }
    Ok(discipline)
}

fn switch(of: &str, name: &str, value: &str) -> Result<bool, ParseError> {
    match value {
        "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        _ => Err(ParseError::new(format!("`queue {of}`: `{name}` is true or false, not `{value}`"))),
    }
}

fn codel(words: &mut Cursor<'_>) -> Result<Discipline, ParseError> {
    let mut params = CoDelParams::default();
    for (name, value) in pairs(words) {
        match name {
            "target" => params.target = units::time(value).map_err(|e| e.of("target"))?,
            "interval" => params.interval = units::time(value).map_err(|e| e.of("interval"))?,
            "ecn" => params.ecn = switch("codel", name, value)?,
            _ => {
                let known = "target=, interval= and ecn=";
                return Err(ParseError::new(format!("`queue codel` takes {known}, not `{name}=`")));
            }
        }
    }
    Ok(Discipline::CoDel(params))
}

fn red(words: &mut Cursor<'_>) -> Result<Discipline, ParseError> {
    let mut p = RedParams::NS2;
    for (name, value) in pairs(words) {
        let number = || {
            let n = value.parse::<f64>().ok().filter(|n| n.is_finite());
            n.ok_or_else(|| ParseError::new(format!("`queue red`: `{name}` needs a number, not `{value}`")))
        };
        let switch = || switch("red", name, value);
        match name {
            "thresh" => p.thresh = Some(number()?),
            "maxthresh" => p.maxthresh = Some(number()?),
            "q_weight" => p.q_weight = Some(number()?),
            "linterm" => p.linterm = number()?,
            "gentle" => p.gentle = switch()?,
            "bytes" => p.bytes = switch()?,
            "queue_in_bytes" => p.queue_in_bytes = switch()?,
            "mean_pktsize" => {
                let bytes = units::bytes(value).map_err(|e| e.of("mean_pktsize"))?;
                p.mean_pktsize = bytes.try_into().unwrap_or(u32::MAX);
            }
            "wait" => p.wait = switch()?,
            "ecn" => p.ecn = switch()?,
            _ => {
                let known =
                    "thresh, maxthresh, q_weight, linterm, gentle, bytes, queue_in_bytes, mean_pktsize, wait, ecn";
                return Err(ParseError::new(format!("`queue red` has no `{name}`; it takes {known}")));
            }
        }
    }
    Ok(Discipline::Red(p))
}
