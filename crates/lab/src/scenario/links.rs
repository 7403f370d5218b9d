//! Links of a topology: keys and values are netem's words; recorded deliveries and losses come from files.

use super::files::Trace;
use super::link_layer::{LinkLayer, OF_LINK_LAYER, REPORT};
use crate::document::{Node, Part, Problem, Value};
use anabranch_base::Duration;
use anabranch_sim::loss::LossTrace;
use anabranch_sim::netem::{
    AND, LINK_WORDS, LinkReader, Mistake, NoGuest, ParseError, canonical, is_word, nearest, split, words_of_values,
};
use anabranch_sim::{DeliveryTrace, LinkConfig, LossConfig};

/// Reads the keys of the part as the links of a cable, forward (`up`) and backward (`down`).
pub(super) fn read(part: Part<'_>) -> Result<(LinkConfig, LinkConfig), Problem> {
    let mut layer = LinkLayer::default();
    let mut reader = LinkReader::new(&mut layer, None);
    // Traces from files, for up and down.
    let mut traces = [Vec::new(), Vec::new()];
    for (key, value) in part.table.iter().filter(|(k, _)| !matches!(*k, "up" | "down" | "schedule" | "every")) {
        let of = recorded(key, value);
        traces.iter_mut().for_each(|t| t.extend(of.iter().map(|value| (part, key, *value))));
        if key != DELIVERIES {
            word(part, "", key, value, &mut reader)?;
        }
    }
    for (direction, traces) in ["up", "down"].into_iter().zip(&mut traces) {
        let Some(value) = part.table.get(direction) else { continue };
        let example = "a table of one direction, such as up.loss = \"1%\"";
        let of = value.as_table().ok_or_else(|| part.at(direction, format!("needs {example}")))?;
        let of = Part::new(part.name, of);
        for (key, value) in of.table.iter() {
            // A direction's own holds in place of what is said of both.
            traces.retain(|(_, other, _)| *other != key);
            traces.extend(recorded(key, value).into_iter().map(|value| (of, key, value)));
            if key != DELIVERIES {
                word(of, &format!("{direction}."), key, value, &mut reader)?;
            }
        }
    }
    says_nothing(part)?;
    schedule(part, &mut reader)?;
    let links = reader.finish().map_err(|e| {
        let key = if part.table.contains("every") { "every" } else { "schedule" };
        wrong(part, key, key, &e)
    })?;
    // Sizes of packets here count their headers already.
    let (mut forward, mut backward) = links.of(0);
    (forward.frames, backward.frames) = (layer.0, layer.0);
    for (traces, link) in traces.into_iter().zip([&mut forward, &mut backward]) {
        traces.into_iter().try_for_each(|(part, key, value)| trace(part, key, value, link))?;
    }
    for (direction, link) in [("up", &forward), ("down", &backward)] {
        let wrong = |what: String| match link.deliveries {
            Some(_) => part.at(DELIVERIES, what),
            None => part.wrong(what),
        };
        link.check().map_err(|e| wrong(format!("{direction}: {e}")))?;
    }
    Ok((forward, backward))
}

/// Refuses what would be said in reports of a link layer that makes none; `report = "none"` says that it shall not.
fn says_nothing(part: Part<'_>) -> Result<(), Problem> {
    let said = OF_LINK_LAYER.into_iter().find(|key| part.table.contains(key));
    match said.filter(|_| !part.table.contains(REPORT)) {
        Some(key) => Err(part.at(key, "is only said in reports: add report = \"100ms\", or leave it out")),
        None => Ok(()),
    }
}

/// Changes in the order of their times, and after how long they start again.
fn schedule(part: Part<'_>, reader: &mut LinkReader<'_>) -> Result<(), Problem> {
    if let Some(schedule) = part.table.get("schedule") {
        let wrong = || part.at("schedule", "needs a list of texts such as [\"7s down\"]");
        let mut last = (Duration::ZERO, "");
        for node in schedule.as_list().ok_or_else(wrong)? {
            let text = node.as_text().ok_or_else(wrong)?;
            let wrong = |what: String| Problem::of_key(part.name, "schedule", &node.at, format!("`{text}`{what}"));
            let mut change = vec!["at".to_owned()];
            change.extend(split(text, &[]));
            let before = reader.later().len();
            reader.read(&change).map_err(|e| wrong(format!(": {e}")))?;
            for (at, _) in reader.later().iter().skip(before) {
                if *at < last.0 {
                    let what = format!(" comes after `{}`: write changes in the order of their times", last.1);
                    return Err(wrong(what));
                }
                last = (*at, text);
            }
        }
    }
    if let Some(every) = part.table.get("every") {
        let every = every.as_text().ok_or_else(|| part.at("every", "needs a time such as \"60s\""))?;
        reader.read(&["every".into(), every.into()]).map_err(|e| wrong(part, "every", "every", &e))?;
    }
    Ok(())
}

/// The key of a recorded link; its value names a mahimahi trace.
const DELIVERIES: &str = "deliveries";

/// The recordings that the value of `key` names. Losses may be a list, in which some are recorded.
fn recorded<'n>(key: &str, value: &'n Node) -> Vec<&'n Node> {
    match key {
        DELIVERIES => vec![value],
        "loss" => {
            value.as_list().unwrap_or(core::slice::from_ref(value)).iter().filter(|v| v.as_table().is_some()).collect()
        }
        _ => Vec::new(),
    }
}

/// `deliveries = { file = "cell.trace" }`, `loss = { file = "losses.txt", repeat = true }`.
fn trace(part: Part<'_>, key: &str, value: &Node, link: &mut LinkConfig) -> Result<(), Problem> {
    if key == DELIVERIES {
        let of = Trace::of(part, key, value, &["size"])?;
        let trace = DeliveryTrace::parse(of.text).map_err(|e| of.wrong(part, key, e))?;
        let size = of.bytes("size")?;
        link.deliveries = Some(trace.with_size(size.unwrap_or(DeliveryTrace::SIZE)));
    } else {
        let of = Trace::of(part, key, value, &["repeat"])?;
        let repeat = of.flag("repeat", true)?;
        let trace = LossConfig::Trace(LossTrace::parse(of.text, repeat).map_err(|e| of.wrong(part, key, e))?);
        link.loss = core::mem::take(&mut link.loss).and(trace);
    }
    Ok(())
}

/// Reads one key with its value; `prefix` is the direction that `part` speaks of.
fn word(part: Part<'_>, prefix: &str, key: &str, value: &Node, reader: &mut LinkReader<'_>) -> Result<(), Problem> {
    let name = format!("{prefix}{}", canonical(key));
    if matches!(key, "at" | "every" | "cut" | "restore") || !is_word(&name, &OF_LINK_LAYER) {
        let known = LINK_WORDS.iter().copied().filter(|w| !matches!(*w, "at" | "cut" | "restore"));
        let known: Vec<&str> = known.chain(OF_LINK_LAYER).chain([DELIVERIES]).collect();
        return Err(part.unknown(key, &known));
    }
    let mut own = vec![name];
    let within = |p: Problem| match prefix.strip_suffix('.') {
        Some(direction) => p.beneath(direction),
        None => p,
    };
    if !prefix.is_empty() && OF_LINK_LAYER.contains(&key) {
        return Err(within(part.at(key, "holds for both directions: write it beside `up` and `down`")));
    }
    match &value.value {
        Value::Integer(n) => own.push(n.to_string()),
        Value::Text(text) => own.extend(split(text, &[])),
        Value::List(list) if key == "loss" => own.extend(in_series(part, list).map_err(within)?),
        // In place of what is said of both directions; it follows once all is read.
        Value::Table(_) if key == "loss" => own.push("none".to_owned()),
        _ => return Err(within(part.at(key, "needs a text or a whole number"))),
    }
    reader.read(&own).map_err(|e| match (e.mistake(), e.word()) {
        (Mistake::Unknown { word, .. }, Some(at)) => within(part.at(key, not_a_value(key, &own, word, at))),
        _ => within(wrong(part, key, &own[0], &e)),
    })
}

/// Losses in series as words; those that are recorded follow once all is read.
fn in_series(part: Part<'_>, list: &[Node]) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    for node in list.iter().filter(|node| node.as_table().is_none()) {
        let wrong = |what: &str| Problem::of_key(part.name, "loss", &node.at, what);
        let text = node.as_text().ok_or_else(|| wrong("needs texts such as \"1%\", or { file = \"losses.txt\" }"))?;
        let own = split(text, &[]);
        // Each by itself, so that a mistake has the line of its own text.
        let mut guest = NoGuest;
        let alone: Vec<String> = ["loss".to_owned()].into_iter().chain(own.iter().cloned()).collect();
        LinkReader::new(&mut guest, None).read(&alone).map_err(|e| match (e.mistake(), e.word()) {
            (Mistake::Unknown { word, .. }, Some(at)) => wrong(&not_a_value("loss", &alone, word, at)),
            _ => wrong(&format!("`{text}`: {e}")),
        })?;
        if !words.is_empty() {
            words.push(AND.to_owned());
        }
        words.extend(own);
    }
    if list.is_empty() {
        return Err(part.at("loss", "needs one loss or more in its list, or \"none\""));
    }
    if words.is_empty() {
        words.push("none".to_owned());
    }
    Ok(words)
}

/// What is wrong with the value of `key`, which netem calls `name`.
fn wrong(part: Part<'_>, key: &str, name: &str, e: &ParseError) -> Problem {
    match e.subject() == Some(name) {
        true => part.about(key, e.to_string()),
        false => part.at(key, e.to_string()),
    }
}

/// What to say of a word that is no link's: it is in the value of `key`, where those of links do not help.
fn not_a_value(key: &str, words: &[String], word: &str, at: usize) -> String {
    let before = words.iter().take(at).skip(1).cloned().collect::<Vec<_>>().join(" ");
    let known = words_of_values(&canonical(key));
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("unknown word `{word}`; did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown word `{word}` after `{before}`: remove it"),
        None => format!("unknown word `{word}` after `{before}`; known are {}", known.join(", ")),
    }
}
