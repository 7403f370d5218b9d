//! All runs together: medians, the table, `bench.json`.

use super::cell::{Cell, Test};
use super::row::Row;
use anabranch_report::{Cell as TableCell, Table};
use serde::Serialize;

/// Version of `bench.json`.
const VERSION: u32 = 1;

/// What the rounds of one stack in one cell gave.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub stack: String,
    pub cell: Cell,
    /// Rows of each round that gave any.
    pub rounds: Vec<Vec<Row>>,
}

#[derive(Serialize)]
struct Summary {
    version: u32,
    measurements: Vec<Measurement>,
}

/// One line of `bench.json`. Figures are medians over the rounds; `min` and `max` are those of the figure that stands
/// for the test: `cpu_s_per_gb` for bulk, `goodput_bytes_s` for path, else `per_cpu_s`.
#[derive(Serialize)]
struct Measurement {
    stack: String,
    test: &'static str,
    transport: &'static str,
    message_bytes: usize,
    window_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_s_per_gb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_cpu_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput_bytes_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_bound: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_endpoint: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_endpoint_two_paths: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<f64>,
    rounds: usize,
    min: f64,
    max: f64,
}

impl Series {
    fn values(&self, metric: &str) -> Vec<f64> {
        let of = |rows: &Vec<Row>| rows.iter().find(|r| r.metric == metric).map(|r| r.value);
        let mut all: Vec<f64> = self.rounds.iter().filter_map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Median over the rounds.
    pub fn median(&self, metric: &str) -> Option<f64> {
        let all = self.values(metric);
        let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
        Some((low + high) / 2.0)
    }

    fn measurement(&self) -> Option<Measurement> {
        let of_headline = self.values(self.cell.headline());
        let (low, high) = (*of_headline.first()?, *of_headline.last()?);
        let per_round = |us: f64| 1e6 / us;
        let (min, max) = if self.cell.test == Test::Pingpong { (per_round(high), per_round(low)) } else { (low, high) };
        let per_cpu_s = match self.cell.test {
            Test::Bulk | Test::Small => self.median("msgs_per_cpu_s"),
            Test::Pingpong => self.median("cpu_us_per_round").map(per_round),
            Test::Setup => self.median("setups_per_cpu_s"),
            Test::Path => None,
        };
        Some(Measurement {
            stack: self.stack.clone(),
            test: self.cell.test.name(),
            transport: self.cell.transport.name(),
            message_bytes: self.cell.message,
            window_bytes: self.cell.window,
            cpu_s_per_gb: self.median("cpu_s_per_GB"),
            per_cpu_s,
            goodput_bytes_s: self.median("goodput_bytes_s").or(self.median("GB_per_wall_s").map(|gb| gb * 1e9)),
            share_of_bound: self.median("share_of_bound"),
            bytes_per_endpoint: self.median("rss_bytes_per_endpoint"),
            bytes_per_endpoint_two_paths: self.median("rss_bytes_per_endpoint_two_paths"),
            p50_us: self.median("p50_us"),
            rounds: of_headline.len(),
            min,
            max,
        })
    }

    /// The figure that summarises it, with its unit.
    fn figure(&self) -> Option<String> {
        let m = self.median(self.cell.headline())?;
        Some(match self.cell.test {
            Test::Bulk => format!("{m:.2} s/GB"),
            Test::Small => format!("{:.2} M/s", m / 1e6),
            Test::Pingpong => format!("{m:.2} us"),
            Test::Setup => {
                let held = self.median("rss_bytes_per_endpoint").unwrap_or(0.0) / 1e3;
                format!("{:.0} k/s, {held:.1} KB", m / 1e3)
            }
            Test::Path => match self.median("share_of_bound") {
                Some(share) => format!("{:.1} %", 100.0 * share),
                None => format!("{:.2} MB/s", m / 1e6),
            },
        })
    }
}

/// `bench.json`.
pub(super) fn to_json(all: &[Series]) -> Result<String, serde_json::Error> {
    let measurements = all.iter().filter_map(Series::measurement).collect();
    serde_json::to_string_pretty(&Summary { version: VERSION, measurements })
}

/// One row for each cell, one column for each stack.
pub(super) fn table(all: &[Series], stacks: &[String]) -> Table {
    let mut table = Table::new("").text("CPU of both ends");
    for stack in stacks {
        table = table.text(stack.clone());
    }
    let mut cells: Vec<Cell> = Vec::new();
    for s in all {
        if !cells.contains(&s.cell) {
            cells.push(s.cell);
        }
    }
    for cell in cells {
        let of = |stack: &String| all.iter().find(|s| s.cell == cell && s.stack == *stack).and_then(Series::figure);
        let mut row: Vec<TableCell> = vec![cell.to_string().into()];
        row.extend(stacks.iter().map(|s| of(s).unwrap_or_else(|| "-".to_owned()).into()));
        table = table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(test: usize, metric: &str, values: &[f64]) -> Series {
        let rounds = values.iter().map(|v| vec![Row::new(metric, *v)]).collect();
        Series { stack: "anabranch".into(), cell: Cell::all()[test], rounds }
    }

    #[test]
    fn medians_and_extremes() {
        let s = series(0, "cpu_s_per_GB", &[0.75, 0.5, 1.0, 0.25]);
        assert_eq!(s.median("cpu_s_per_GB"), Some(0.625));
        let m = s.measurement().unwrap();
        assert_eq!((m.cpu_s_per_gb, m.rounds, m.min, m.max), (Some(0.625), 4, 0.25, 1.0));
        assert_eq!(series(0, "other", &[1.0]).figure(), None);
    }

    #[test]
    fn the_format_keeps_its_names() {
        let at = Cell::all().iter().position(|c| c.test == Test::Pingpong).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(&to_json(&[series(at, "cpu_us_per_round", &[2.0, 4.0])]).unwrap()).unwrap();
        let m = &json["measurements"][0];
        assert_eq!(
            (&m["stack"], &m["test"], &m["transport"]),
            (&"anabranch".into(), &"pingpong".into(), &"mem".into())
        );
        assert_eq!((m["message_bytes"].as_u64(), m["rounds"].as_u64()), (Some(100), Some(2)));
        assert_eq!((m["min"].as_f64(), m["max"].as_f64()), (Some(250_000.0), Some(500_000.0)));
        assert!((m["per_cpu_s"].as_f64().unwrap() - 1e6 / 3.0).abs() < 1.0);
    }
}
