//! The tables of `docs/PATHS.md` that are measured here: each test holds its own cells against them, or writes them.

use crate::common::page::{Page, Row};
use anabranch_base::Duration;

const PATHS: Page =
    Page { file: "PATHS.md", command: "UPDATE=1 cargo test -p anabranch-engine --test paths path_deaths" };

fn hold(first: &str, row: &str, profile: &str, text: &str) {
    let found = PATHS.hold(profile, |r: &Row<'_>| (r.cell(first) == Some(row)).then(|| text.to_owned()));
    assert_eq!(found, 1, "rows of docs/PATHS.md for {row}, {profile}");
}

/// Median and worst of the take-over times of a death and a profile are what the page says.
pub fn cell(death: &str, profile: &str, median: Duration, worst: Duration) {
    hold("death", death, profile, &format!("{:.0}, {:.0}", median.as_millis_f64(), worst.as_millis_f64()));
}

/// What has no take-over time.
pub fn odd(what: &str, profile: &str, text: &str) {
    hold("what is measured", what, profile, text);
}
