//! The file of a reference.

use super::{Reference, Row};
use crate::claims::Shape;
use crate::document::{Origin, Problem};
use crate::quantity::{Point, check_unit, convert};
use crate::run::folder::fields;
use anabranch_sim::netem::nearest;

/// Columns that are no sweep keys.
const OWN: [&str; 5] = ["scenario", "metric", "value", "low", "high"];

/// Reads the rows of a reference; `at` is where it is written, and `file` what its file is called in messages.
pub(crate) fn read(
    mut made: Reference,
    at: &Origin,
    file: &str,
    scenarios: &[Shape<'_>],
) -> Result<Reference, Problem> {
    let whole = |what: String| Problem::new(at, format!("reference `{}`: {what}", made.name));
    if made.compare.as_ref().is_some_and(|c| c.scenarios().is_some()) {
        return Err(whole("`compare`: scenarios are compared by their own values, one row for each".into()));
    }
    if !made.rows.is_empty() {
        return Err(whole("`rows` come from its file: remove them".into()));
    }
    let place = Origin::of_file(file);
    let text = std::mem::take(&mut made.text);
    let said = |(_, line): &(Origin, &str)| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = text.lines().enumerate().map(|(i, l)| (place.line(i + 1), l)).filter(said);
    let (head_at, head) =
        lines.next().ok_or_else(|| Problem::new(&place, "it is empty: the first line names columns"))?;
    let head: Vec<String> = fields(head).iter().map(|f| f.trim().to_owned()).collect();
    columns(&made, &head, scenarios).map_err(|what| Problem::new(&head_at, what))?;
    let mut rows: Vec<Row> = Vec::new();
    for (at, line) in lines {
        let row = row(&made, &head, line, scenarios).map_err(|what| Problem::new(&at, what))?;
        let twin = |r: &Row| (&r.scenario, &r.metric, &r.at) == (&row.scenario, &row.metric, &row.at);
        if rows.iter().any(twin) {
            return Err(Problem::new(&at, "there are two values for this point"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(Problem::new(&place, "it has no values below its columns"));
    }
    made.rows = rows;
    Ok(made)
}

/// Finds mistakes in the first line.
fn columns(made: &Reference, head: &[String], scenarios: &[Shape<'_>]) -> Result<(), String> {
    let keys: Vec<&str> = scenarios.iter().flat_map(|s| s.keys.iter().map(|k| k.0)).collect();
    let known = || OWN.into_iter().chain(keys.iter().copied());
    if let Some(lost) = head.iter().find(|h| !known().any(|k| k == h.as_str())) {
        return Err(match nearest(lost, known()) {
            Some(near) => format!("unknown column `{lost}`; did you mean `{near}`?"),
            None => format!("unknown column `{lost}`; it may be a sweep key, {}", OWN.join(", ")),
        });
    }
    if let Some(twice) = head.iter().enumerate().find(|(i, h)| head.iter().take(*i).any(|o| o == *h)) {
        return Err(format!("there are two columns `{}`", twice.1));
    }
    let has = |name: &str| head.iter().any(|h| h == name);
    if !has("value") {
        return Err("the column `value` is missing".into());
    }
    if has("low") != has("high") {
        return Err("`low` and `high` go together".into());
    }
    for (name, given) in [("metric", made.metric.is_some()), ("scenario", made.scenario.is_some())] {
        if given && has(name) {
            return Err(format!("`{name}` is said by [[reference]] already: remove the column or that"));
        }
    }
    if made.metric.is_none() && !has("metric") {
        return Err("`metric` must be a column, or a key of [[reference]]".into());
    }
    if made.scenario.is_none() && !has("scenario") && scenarios.len() > 1 {
        return Err("`scenario` must be a column, or a key of [[reference]]".into());
    }
    Ok(())
}

fn row(made: &Reference, head: &[String], line: &str, scenarios: &[Shape<'_>]) -> Result<Row, String> {
    let cells: Vec<String> = fields(line).iter().map(|f| f.trim().to_owned()).collect();
    if cells.len() != head.len() {
        return Err(format!("{} fields, not {} as in the first line", cells.len(), head.len()));
    }
    let cell = |name: &str| head.iter().zip(&cells).find(|(h, _)| *h == name).map(|(_, c)| c.as_str());
    let name = made.scenario.as_deref().or(cell("scenario")).or(scenarios.first().map(|s| s.name)).unwrap_or_default();
    let shape = scenarios.iter().find(|s| s.name == name).ok_or_else(|| format!("there is no scenario `{name}`"))?;
    let metric = made.metric.as_deref().or(cell("metric")).unwrap_or_default();
    if !shape.metrics.contains(&metric) {
        return Err(format!("scenario `{name}` does not measure `{metric}`"));
    }
    let own = shape.unit(metric);
    check_unit(made.unit.as_deref(), metric, own, made.compare.as_ref())?;
    let own = if made.compare.as_ref().is_some_and(|c| c.how.relative()) { "" } else { own.unwrap_or_default() };
    let factor = convert(made.unit.as_deref().unwrap_or(own), own).unwrap_or(1.0);
    let number = |column: &str, text: &str| {
        let read = text.parse::<f64>().ok().filter(|v| v.is_finite());
        read.map(|v| v * factor).ok_or_else(|| format!("`{column}`: needs a number, not `{text}`"))
    };
    let value = number("value", cell("value").unwrap_or_default())?;
    let interval = match (cell("low").filter(|c| !c.is_empty()), cell("high").filter(|c| !c.is_empty())) {
        (Some(low), Some(high)) => Some((number("low", low)?, number("high", high)?)),
        (None, None) => None,
        _ => return Err("`low` and `high` go together".into()),
    };
    if interval.is_some_and(|(low, high)| low > value || value > high) {
        return Err("`value` must lie between `low` and `high`".into());
    }
    let at = point(made, shape, head, &cells)?;
    Ok(Row { scenario: name.to_owned(), metric: metric.to_owned(), at, value, interval })
}

/// Where in the sweep: every key of the scenario has a column, or is spoken of in the head.
fn point(made: &Reference, shape: &Shape<'_>, head: &[String], cells: &[String]) -> Result<Point, String> {
    let mut at = made.at.clone();
    let columns = head.iter().zip(cells).filter(|(h, _)| !OWN.contains(&h.as_str()));
    for (key, value) in columns {
        // A file may be of several scenarios, of which not all sweep this key.
        if !value.is_empty() {
            at.insert(key.clone(), value.clone());
        }
    }
    let name = shape.name;
    for (key, value) in &at {
        let Some((_, values)) = shape.keys.iter().find(|k| k.0 == key) else {
            return Err(format!("scenario `{name}` does not sweep `{key}`"));
        };
        if !values.contains(value) {
            return Err(format!("scenario `{name}` has no `{key}` of {value}; it has {}", values.join(", ")));
        }
    }
    let compared = made.compare.as_ref().map(|c| &c.key);
    let silent: Vec<&String> = made.average.iter().chain(compared).collect();
    if let Some(key) = silent.iter().find(|k| at.contains_key(k.as_str())) {
        return Err(format!("`{key}` is averaged or compared: it has no column"));
    }
    match shape.keys.iter().find(|k| !at.contains_key(k.0) && !silent.iter().any(|s| *s == k.0)) {
        Some((key, _)) => Err(format!("nothing is said of `{key}`, which scenario `{name}` sweeps")),
        None => Ok(at),
    }
}
