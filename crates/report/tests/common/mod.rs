//! A small judge of well-formed XML: enough to catch a broken tag, attribute, entity or character.

/// Elements of a document in order of their start tags, with their attributes.
pub type Elements = Vec<(String, Vec<(String, String)>)>;

/// Reads a whole document; the error tells what is wrong and where.
pub fn parse(text: &str) -> Result<Elements, String> {
    let mut rest = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    let mut open: Vec<String> = Vec::new();
    let mut all = Elements::new();
    while let Some(at) = rest.find('<') {
        let (content, tail) = rest.split_at(at);
        check_text(content)?;
        if open.is_empty() && !content.trim().is_empty() {
            return Err(format!("text outside of the root: {content:?}"));
        }
        let end = tag_end(tail).ok_or_else(|| format!("tag without end: {:?}", head(tail)))?;
        let tag = &tail[1..end];
        rest = &tail[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(o) if o == name => continue,
                o => return Err(format!("</{name}> closes {o:?}")),
            }
        }
        if open.is_empty() && !all.is_empty() {
            return Err(format!("a second root: {tag}"));
        }
        let (body, closed) = tag.strip_suffix('/').map_or((tag, false), |b| (b, true));
        let element = start_tag(body)?;
        if !closed {
            open.push(element.0.clone());
        }
        all.push(element);
    }
    if !open.is_empty() || !rest.trim().is_empty() || all.is_empty() {
        return Err(format!("open at the end: {open:?}, left over: {:?}", head(rest)));
    }
    Ok(all)
}

fn head(s: &str) -> String {
    s.chars().take(60).collect()
}

/// Where a tag ends; a `>` inside quotes does not end it.
fn tag_end(s: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in s.char_indices().skip(1) {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, '>') => return Some(i),
            (None, '<') => return None,
            _ => {}
        }
    }
    None
}

fn start_tag(body: &str) -> Result<(String, Vec<(String, String)>), String> {
    let (name, mut rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    check_name(name)?;
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, tail) =
            rest.trim_start().split_once('=').ok_or_else(|| format!("attribute without value: {rest:?}"))?;
        check_name(key)?;
        let quote =
            tail.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or_else(|| format!("no quote: {tail:?}"))?;
        let (value, after) = tail[1..].split_once(quote).ok_or_else(|| format!("no closing quote: {tail:?}"))?;
        check_text(value)?;
        if value.contains('<') || attributes.iter().any(|a| a.0 == key) {
            return Err(format!("bad or doubled attribute {key}={value:?}"));
        }
        if !after.is_empty() && !after.starts_with(char::is_whitespace) {
            return Err(format!("no space after {key}"));
        }
        attributes.push((key.to_owned(), value.to_owned()));
        rest = after;
    }
    Ok((name.to_owned(), attributes))
}

fn check_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(good) {
        Ok(())
    } else {
        Err(format!("bad name {name:?}"))
    }
}

fn check_text(text: &str) -> Result<(), String> {
    for part in text.split('&').skip(1) {
        let (entity, _) = part.split_once(';').ok_or_else(|| format!("bare ampersand before {:?}", head(part)))?;
        if !matches!(entity, "amp" | "lt" | "gt" | "quot" | "#39") {
            return Err(format!("unknown entity &{entity};"));
        }
    }
    match text.chars().find(|&c| (c < ' ' && !matches!(c, '\n' | '\t')) || matches!(c, '\u{FFFE}' | '\u{FFFF}')) {
        Some(c) => Err(format!("forbidden character {c:?}")),
        None => Ok(()),
    }
}

#[test]
fn the_judge_finds_faults() {
    assert!(parse("<a><b x=\"1\" y='>'/>t&amp;</a>").is_ok());
    for bad in [
        "<a>",
        "<a></b>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a x=1/>",
        "<a x=\"1\" x=\"2\"/>",
        "<a/><b/>",
        "",
        "<a>\u{1}</a>",
        "<a x=\"<\"/>",
        "<a x=\"1\"y=\"2\"/>",
        "<1/>",
    ] {
        assert!(parse(bad).is_err(), "{bad:?}");
    }
}
