//! `series`: what is noted over time.

use super::error::Problem;
use super::plan::covers;
use anabranch_sim::netem::nearest;

/// Something of a flow or a group over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesOf {
    /// As written: `main.throughput`.
    pub name: String,
    /// Of each path, and not of the flow.
    pub paths: bool,
}

const KNOWN: [&str; 3] = ["throughput", "share", "path-throughput"];

impl SeriesOf {
    /// Is it asked of this flow or group?
    pub fn covers(&self, group: &str) -> bool {
        self.name.rsplit_once('.').is_some_and(|(of, _)| covers(of, group))
    }
}

/// Finds what the names in `series` mean.
pub(super) fn read(groups: &[String], names: &[String]) -> Result<Vec<SeriesOf>, Problem> {
    let one = |name: &String| {
        let wrong = |what: String| Problem::at("", "series", what);
        let hint = |near: Option<&str>| near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        let (of, what) = name.rsplit_once('.').ok_or_else(|| wrong(format!("`{name}` is no FLOW.SERIES")))?;
        if !groups.iter().any(|g| covers(of, g)) {
            let near = nearest(of, groups.iter().map(String::as_str));
            return Err(wrong(format!("`{name}`: no flow is called `{of}`{}", hint(near))));
        }
        if !KNOWN.contains(&what) {
            let known = || format!("; there are {}", KNOWN.join(", "));
            let hint = Some(hint(nearest(what, KNOWN.into_iter()))).filter(|h| !h.is_empty()).unwrap_or_else(known);
            return Err(wrong(format!("no series is called `{what}`{hint}")));
        }
        Ok(SeriesOf { name: name.clone(), paths: what == "path-throughput" })
    };
    names.iter().map(one).collect()
}
