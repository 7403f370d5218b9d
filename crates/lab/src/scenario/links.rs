//! Links of a topology: keys and values are netem's words; recorded deliveries and losses come from files.

use super::error::Problem;
use super::files::Trace;
use anabranch_base::Duration;
use anabranch_sim::loss::LossTrace;
use anabranch_sim::netem::{LINK_WORDS, Links, NoGuest, canonical, is_word, nearest, read_links, split};
use anabranch_sim::{DeliveryTrace, LinkConfig, LossConfig};
use toml::{Table, Value};

/// Reads the keys of `table` as the links of a cable, forward (`up`) and backward (`down`). `place` names the part of
/// the file.
pub(super) fn read(place: &str, table: &Table) -> Result<(LinkConfig, LinkConfig), Problem> {
    let mut words = Vec::new();
    // Traces from files, for up and down.
    let mut traces = [Vec::new(), Vec::new()];
    for (key, value) in table.iter().filter(|(k, _)| !matches!(k.as_str(), "up" | "down" | "schedule" | "every")) {
        if is_trace(key, value) {
            traces.iter_mut().for_each(|t| t.push((key, value)));
        } else {
            word(place, "", key, value, &mut words)?;
        }
    }
    for (direction, traces) in ["up", "down"].into_iter().zip(&mut traces) {
        let Some(value) = table.get(direction) else { continue };
        let example = "a table of one direction, such as up.loss = \"1%\"";
        let of = value.as_table().ok_or_else(|| Problem::at(place, direction, format!("needs {example}")))?;
        for (key, value) in of {
            if is_trace(key, value) {
                traces.push((key, value));
                continue;
            }
            word(place, &format!("{direction}."), key, value, &mut words)?;
        }
    }
    if let Some(schedule) = table.get("schedule") {
        let texts = schedule.as_array().and_then(|a| a.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        let wrong = || Problem::at(place, "schedule", "needs a list of texts such as [\"7s down\"]");
        let mut last = (Duration::ZERO, "");
        for text in texts.ok_or_else(wrong)? {
            let mut change = vec!["at".to_owned()];
            change.extend(split(text, &[]));
            let wrong = |e: String| Problem::at(place, "schedule", format!("`{text}`: {e}"));
            for (at, _) in alone(&change).map_err(wrong)?.later() {
                if *at < last.0 {
                    let what =
                        format!("`{text}` stands behind `{}`: write changes in the order of their times", last.1);
                    return Err(Problem::at(place, "schedule", what));
                }
                last = (*at, text);
            }
            words.extend(change);
        }
    }
    if let Some(every) = table.get("every") {
        let every = every.as_str().ok_or_else(|| Problem::at(place, "every", "needs a time such as \"60s\""))?;
        words.extend(["every".into(), every.into()]);
    }
    let links = read_links(&words, &mut NoGuest, None).map_err(|e| {
        let text = e.to_string();
        // The message begins with the word.
        let key = text.split('`').nth(1).map(|w| w.split(' ').next().unwrap_or(w).to_owned());
        match key {
            Some(key) => Problem::at(place, &key, text),
            None => Problem::new(place, text),
        }
    })?;
    // Sizes of packets here count their headers already.
    let (mut forward, mut backward) = links.of(0);
    for (traces, link) in traces.into_iter().zip([&mut forward, &mut backward]) {
        traces.into_iter().try_for_each(|(key, value)| trace(place, key, value, link))?;
    }
    for (direction, link) in [("up", &forward), ("down", &backward)] {
        let wrong = |what: String| match link.deliveries {
            Some(_) => Problem::at(place, DELIVERIES, what),
            None => Problem::new(place, what),
        };
        link.check().map_err(|e| wrong(format!("{direction}: {e}")))?;
    }
    Ok((forward, backward))
}

/// The key of a recorded link; its value names a mahimahi trace.
const DELIVERIES: &str = "deliveries";

fn is_trace(key: &str, value: &Value) -> bool {
    key == DELIVERIES || (key == "loss" && value.is_table())
}

/// `deliveries = { file = "cell.trace" }`, `loss = { file = "losses.txt", repeat = true }`.
fn trace(place: &str, key: &str, value: &Value, link: &mut LinkConfig) -> Result<(), Problem> {
    if key == DELIVERIES {
        let of = Trace::of(place, key, value, &["size"])?;
        let trace = DeliveryTrace::parse(of.text).map_err(|e| of.wrong(place, key, e))?;
        let size = of.bytes(place, "size")?;
        link.deliveries = Some(trace.with_size(size.unwrap_or(DeliveryTrace::SIZE)));
    } else {
        let of = Trace::of(place, key, value, &["repeat"])?;
        let repeat = of.flag(place, "repeat", true)?;
        link.loss = LossConfig::Trace(LossTrace::parse(of.text, repeat).map_err(|e| of.wrong(place, key, e))?);
    }
    Ok(())
}

/// One key and its value as words.
fn word(place: &str, prefix: &str, key: &str, value: &Value, words: &mut Vec<String>) -> Result<(), Problem> {
    let name = format!("{prefix}{}", canonical(key));
    if matches!(key, "at" | "every" | "cut" | "restore") || !is_word(&name, &[]) {
        let known = LINK_WORDS.iter().copied().filter(|w| !matches!(*w, "at" | "cut" | "restore"));
        let known: Vec<&str> = known.chain([DELIVERIES]).collect();
        let unknown = Problem::unknown(place, key, &known);
        return Err(match prefix.strip_suffix('.') {
            Some(direction) => unknown.beneath(direction),
            None => unknown,
        });
    }
    let wrong = |what: String| Problem::at(place, &format!("{prefix}{key}"), what);
    let mut own = vec![name];
    match value {
        Value::Integer(n) => own.push(n.to_string()),
        Value::String(text) => own.extend(split(text, &[])),
        _ => return Err(wrong("needs a text or a whole number".into())),
    }
    alone(&own).map_err(|e| wrong(not_a_value(key, &own, e)))?;
    words.extend(own);
    Ok(())
}

/// The words of one key, read by themselves, so that a mistake in them is known to be its own.
fn alone(words: &[String]) -> Result<Links, String> {
    read_links(words, &mut NoGuest, None).map_err(|e| e.to_string())
}

/// Words that the value of a key may have.
const IN_VALUES: [(&str, &[&str]); 5] = [
    ("loss", &["burst", "none", "random", "gemodel", "timed", "pattern", "outages", "packets"]),
    ("delay", &["distribution", "normal", "uniform", "exponential"]),
    ("jitter", &["distribution", "normal", "uniform", "exponential"]),
    ("limit", &["waiting"]),
    ("limit-bytes", &["waiting"]),
];

/// What to say of a word that is no link's: it stands in the value of `key`, where those of links help nobody.
fn not_a_value(key: &str, words: &[String], error: String) -> String {
    let Some(word) = error.strip_prefix("unknown word `").and_then(|e| e.split('`').next()) else { return error };
    let before = words.iter().take_while(|w| *w != word).skip(1).cloned().collect::<Vec<_>>().join(" ");
    let key = canonical(key);
    let known = IN_VALUES.iter().find(|k| k.0 == key).map_or(&[][..], |k| k.1);
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("unknown word `{word}`; did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown word `{word}` after `{before}`: remove it"),
        None => format!("unknown word `{word}` after `{before}`; known are {}", known.join(", ")),
    }
}
