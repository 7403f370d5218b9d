//! TOML, turned into the words of the text so that both mean the same.

use super::relay::PATH_WORDS;
use super::text::path_of_words;
use super::{EmulatorConfig, ParseError, PathConfig};
use anabranch_sim::netem::{AND, canonical, is_word, split, unknown};
use serde::Deserialize;
use toml::{Table, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    path: Vec<Table>,
}

pub(super) fn read(toml: &str) -> Result<EmulatorConfig, ParseError> {
    let file: File = toml::from_str(toml).map_err(|e| {
        let line = e.span().and_then(|s| toml.get(..s.start)).map(|before| before.matches('\n').count() + 1);
        let message = e.message().replace('\n', "; ");
        ParseError::new(match line {
            Some(line) => format!("line {line}: {message}"),
            None => message,
        })
    })?;
    let paths = file.path.iter().enumerate().map(|(i, table)| path(table, i)).collect::<Result<_, _>>()?;
    Ok(EmulatorConfig { paths, seed: file.seed })
}

fn path(table: &Table, index: usize) -> Result<PathConfig, ParseError> {
    let fallback = format!("path{index}");
    let name = table.get("name").and_then(Value::as_str).unwrap_or(&fallback);
    let place = |e: ParseError| e.inside(&format!("path `{name}`"));
    let words = words(table).map_err(place)?;
    // An error about a missing address names the path itself.
    path_of_words(&words, name).map_err(place)
}

fn words(table: &Table) -> Result<Vec<String>, ParseError> {
    let mut words = match table.get("link") {
        Some(link) => {
            split(link.as_str().ok_or_else(|| wrong("link", "a text such as \"rate 6mbit delay 30ms\""))?, PATH_WORDS)
        }
        None => Vec::new(),
    };
    // The text may end in a schedule; the plain words belong in front of it.
    let schedule_at = words.iter().position(|w| w == "at" || w == "every").unwrap_or(words.len());
    let mut tail = words.split_off(schedule_at);
    for (key, value) in table {
        match key.as_str() {
            "link" | "up" | "down" | "schedule" | "every" => {}
            key => word("", key, value, &mut words)?,
        }
    }
    for direction in ["up", "down"] {
        let Some(value) = table.get(direction) else { continue };
        let of = value.as_table().ok_or_else(|| wrong(direction, "a table such as { delay = \"5ms\" }"))?;
        for (key, value) in of {
            word(&format!("{direction}."), key, value, &mut words)?;
        }
    }
    if let Some(schedule) = table.get("schedule") {
        let texts = schedule.as_array().map(|a| a.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        let texts = texts.flatten().ok_or_else(|| wrong("schedule", "a list of texts such as [\"7s down\"]"))?;
        for text in texts {
            tail.push("at".into());
            tail.extend(split(text, PATH_WORDS));
        }
    }
    if let Some(every) = table.get("every") {
        let every = every.as_str().ok_or_else(|| wrong("every", "a time such as \"60s\""))?;
        tail.extend(["every".into(), every.into()]);
    }
    words.append(&mut tail);
    Ok(words)
}

/// One key and its value as words.
fn word(prefix: &str, key: &str, value: &Value, words: &mut Vec<String>) -> Result<(), ParseError> {
    let name = format!("{prefix}{}", canonical(key));
    if matches!(key, "at" | "rebind" | "cut" | "restore") {
        return Err(ParseError::new(format!("`{key}` belongs into `schedule`, such as schedule = [\"7s down\"]")));
    }
    if !is_word(&name, PATH_WORDS) {
        return Err(unknown(&name, PATH_WORDS));
    }
    words.push(name);
    match value {
        Value::Integer(n) => words.push(n.to_string()),
        // A name is one word even with a space in it.
        Value::String(text) if key == "name" => words.push(text.clone()),
        Value::String(text) => words.extend(split(text, PATH_WORDS)),
        // Losses in series.
        Value::Array(list) if key == "loss" => {
            let texts = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>().filter(|l| !l.is_empty());
            let texts =
                texts.ok_or_else(|| wrong(key, "a text, or a list of texts such as [\"1%\", \"outages 2s-4s\"]"))?;
            words.extend(split(&texts.join(&format!(" {AND} ")), PATH_WORDS));
        }
        _ => return Err(wrong(key, "a text or a whole number")),
    }
    Ok(())
}

fn wrong(key: &str, what: &str) -> ParseError {
    ParseError::new(format!("`{key}` needs {what}"))
}
