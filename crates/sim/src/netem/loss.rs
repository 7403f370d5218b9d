//! The value of `loss`.

use super::ParseError;
use super::units;
use super::words::Cursor;
use crate::loss::{GilbertElliottParams, LossConfig, LossTrace, Outages};
use anabranch_base::Duration;

/// Stands between the models of a series.
pub const AND: &str = "and";

/// Reads what follows `loss`: a model, or several with `and` between them.
pub(super) fn value(words: &mut Cursor<'_>) -> Result<LossConfig, ParseError> {
    let mut series = vec![model(words)?];
    while words.take_if(AND) {
        series.push(model(words)?);
    }
    Ok(if series.len() > 1 { LossConfig::Series(series) } else { series.remove(0) })
}

fn model(words: &mut Cursor<'_>) -> Result<LossConfig, ParseError> {
    let first =
        words.value("loss", "a share such as 0.1%, `gemodel`, `timed`, `packets`, `pattern`, `outages` or `none`")?;
    let loss = match first {
        "none" => LossConfig::None,
        "random" => share_and_burst(words.value("loss random", "a share such as 0.1%")?, words)?,
        "gemodel" => LossConfig::GilbertElliott(gemodel(words)?),
        "timed" => timed(words)?,
        "state" => {
            return Err(ParseError::new("netem's `loss state` is not supported; `loss gemodel` has two states".into()));
        }
        "pattern" => pattern(words.value("loss pattern", "0 and 1 such as 00100")?)?,
        "outages" => outages(words)?,
        "packets" => packets(words.value("loss packets", "numbers such as 3,17")?)?,
        share => share_and_burst(share, words)?,
    };
    loss.check().map_err(|e| ParseError::new(format!("`loss`: {e}")))?;
    Ok(loss)
}

fn share_and_burst(share: &str, words: &mut Cursor<'_>) -> Result<LossConfig, ParseError> {
    let p = units::share(share).map_err(|e| e.of("loss"))?;
    if !words.take_if("burst") {
        return Ok(LossConfig::bernoulli(p));
    }
    let text = words.value("burst", "a mean number of packets such as 5")?;
    let burst = text.parse::<f64>().ok().filter(|b| b.is_finite() && *b >= 1.0);
    let burst =
        burst.ok_or_else(|| units::ValueError::needs("a mean number of packets of 1 or more", text).of("burst"))?;
    if p >= 1.0 {
        return Err(ParseError::new("`loss 100%` leaves nothing between the bursts; leave out `burst`".into()));
    }
    Ok(LossConfig::bursts(p, burst))
}

/// `p r 1-h 1-k`, by name or by position, the latter two optional.
fn gemodel(words: &mut Cursor<'_>) -> Result<GilbertElliottParams, ParseError> {
    const NAMES: [&str; 4] = ["p", "r", "1-h", "1-k"];
    let mut values = [None, None, Some(1.0), Some(0.0)];
    let mut place = 0;
    while let Some(word) = words.peek() {
        let (name, share) = match word.split_once('=') {
            Some(("b", _)) => {
                return Err(ParseError::new(
                    "`loss gemodel` has no `b`; for a mean burst write `loss 1% burst 5`".into(),
                ));
            }
            Some((name, share)) => (NAMES.iter().position(|n| *n == name), share),
            None if word.ends_with('%') && place < NAMES.len() => (Some(place), word),
            None => break,
        };
        let Some(index) = name else {
            return Err(ParseError::new(format!("`loss gemodel` takes p=, r=, 1-h= and 1-k=, not `{word}`")));
        };
        if let Some(slot) = values.get_mut(index) {
            *slot = Some(units::share(share).map_err(|e| e.of("loss gemodel"))?);
        }
        place = index + 1;
        words.skip();
    }
    match values {
        [Some(to_bad), Some(to_good), Some(loss_bad), Some(loss_good)] => {
            Ok(GilbertElliottParams { to_bad, to_good, loss_bad, loss_good })
        }
        _ => Err(ParseError::new("`loss gemodel` needs p= and r=, such as `loss gemodel p=1% r=20%`".into())),
    }
}

fn timed(words: &mut Cursor<'_>) -> Result<LossConfig, ParseError> {
    let (mut good, mut bad): (Option<Duration>, Option<Duration>) = (None, None);
    while let Some((name, value)) = words.peek().and_then(|w| w.split_once('=')) {
        match name {
            "good" => good = Some(units::time(value).map_err(|e| e.of("good"))?),
            "bad" => bad = Some(units::time(value).map_err(|e| e.of("bad"))?),
            _ => return Err(ParseError::new(format!("`loss timed` takes good= and bad=, not `{name}=`"))),
        }
        words.skip();
    }
    match (good, bad) {
        (Some(mean_good), Some(mean_bad)) => Ok(LossConfig::TimedTwoState { mean_good, mean_bad }),
        _ => {
            Err(ParseError::new("`loss timed` needs both mean stays, such as `loss timed good=450ms bad=50ms`".into()))
        }
    }
}

fn packets(list: &str) -> Result<LossConfig, ParseError> {
    let numbers = list.split(',').map(|n| units::count(n, "packets, separated by commas"));
    Ok(LossConfig::Packets(numbers.collect::<Result<_, _>>().map_err(|e: units::ValueError| e.of("loss packets"))?))
}

/// `00100`, over and over.
fn pattern(signs: &str) -> Result<LossConfig, ParseError> {
    let trace = LossTrace::parse(signs, true);
    Ok(LossConfig::Pattern(trace.map_err(|e| ParseError::new(format!("`loss pattern`: {}", e.what)))?.lost))
}

/// `2s-4s,7s-8s`, with `period=10s` again and again.
fn outages(words: &mut Cursor<'_>) -> Result<LossConfig, ParseError> {
    let what = "times such as 2s-4s,7s-8s";
    let list = words.value("loss outages", what)?;
    let time = |text: &str| units::time(text).map_err(|e| e.of("loss outages"));
    let one = |span: &str| match span.split_once('-') {
        Some((from, until)) => Ok((time(from)?, time(until)?)),
        None => Err(ParseError::new(format!("`loss outages` needs {what}, not `{span}`"))),
    };
    let times = list.split(',').map(one).collect::<Result<_, _>>()?;
    let period = words.peek().and_then(|w| w.strip_prefix("period="));
    let period = period.map(|t| units::time(t).map_err(|e| e.of("period"))).transpose()?;
    if period.is_some() {
        words.skip();
    }
    Ok(LossConfig::Outages(Outages { times, period }))
}
