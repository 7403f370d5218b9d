//! A folder of results: `manifest.json` says what was run, `results.csv` has every run.

use super::resolved::{Resolved, changes, resolved_point};
use crate::experiment::Experiment;
use crate::metrics::Fingerprint;
use crate::report::About;
use crate::results::{Form, Metric, Results, Row, Table};
use crate::scenario::{Point, Scenario, ScenarioError};
use anabranch_report::{ReportError, write_together};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What was run, enough to do it again and to make the report anew.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file's format.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, with a plus for changes beyond it; empty where that is not known.
    #[serde(default)]
    pub commit: String,
    /// The experiment.
    pub experiment: String,
    /// Which form.
    pub form: Form,
    /// Its scenarios.
    pub scenarios: Vec<ScenarioRun>,
    /// What the report says.
    pub about: About,
    /// Which `results.csv` it belongs to; not in format 1 and 2.
    #[serde(default)]
    pub results: Option<Seal>,
}

/// Identifies one `results.csv`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seal {
    /// Its length.
    pub bytes: u64,
    /// A hash of it, in hexadecimal digits.
    pub hash: String,
}

impl Seal {
    fn of(text: &str) -> Seal {
        let mut hash = Fingerprint::default();
        text.bytes().for_each(|b| hash.add(u64::from(b)));
        Seal { bytes: text.len() as u64, hash: format!("{:016x}", hash.value()) }
    }
}

/// A scenario that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// Its name.
    pub name: String,
    /// Number of seeds from `first_seed` on.
    pub seeds: u64,
    /// The lowest seed; 1 where it is not written.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub first_seed: u64,
    /// Sweep keys and their values.
    pub keys: Vec<(String, Vec<String>)>,
    /// Metrics and their units.
    pub metrics: Vec<Metric>,
    /// The keys of the network at the first point of the sweep, as they are written.
    pub parameters: toml::Table,
    /// What each sweep sets.
    #[serde(default)]
    pub sets: BTreeMap<String, Vec<String>>,
    /// Every parameter at the first point, with profiles and defaults worked out.
    #[serde(default)]
    pub resolved: Resolved,
    /// Every point, in the order of the sweeps.
    #[serde(default)]
    pub points: Vec<PointRun>,
}

/// A point of a sweep that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointRun {
    /// The value of each sweep key, as in the results.
    pub values: Vec<String>,
    /// The parameters that are others than at the first point; null where this one has none.
    pub changes: Resolved,
}

const fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_one(n: &u64) -> bool {
    *n == 1
}

impl ScenarioRun {
    fn new(s: &Scenario) -> Result<ScenarioRun, ScenarioError> {
        let points = s.points()?;
        let metrics = s.measures.iter().map(|m| Metric { name: m.name.clone(), unit: m.unit.to_string() }).collect();
        let wrong = |what| ScenarioError { file: s.file().to_owned(), line: None, what };
        let all = |p: &Point| resolved_point(p).map_err(wrong);
        let first = points.first().map(all).transpose()?.unwrap_or_default();
        let run = |p: &Point| Ok(PointRun { values: p.values.clone(), changes: changes(&first, &all(p)?) });
        Ok(ScenarioRun {
            name: s.name.clone(),
            seeds: s.seeds,
            first_seed: s.first_seed,
            keys: s.keys(),
            metrics,
            points: points.iter().map(run).collect::<Result<_, ScenarioError>>()?,
            parameters: points.into_iter().next().map(|p| p.keys).unwrap_or_default(),
            sets: s.sets(),
            resolved: first,
        })
    }
}

impl Manifest {
    /// What running `e` is.
    ///
    /// # Errors
    /// A scenario that makes no network.
    pub fn new(e: &Experiment, form: Form, commit: &str, about: About) -> Result<Manifest, ScenarioError> {
        let scenarios = e.scenarios.iter().map(ScenarioRun::new).collect::<Result<_, _>>()?;
        let (version, commit) = (about.version.clone(), commit.to_owned());
        let experiment = e.name.clone();
        Ok(Manifest { format: 4, version, commit, experiment, form, scenarios, about, results: None })
    }
}

impl Manifest {
    /// The keys of the scenarios as they are written, as text.
    pub fn settings(&self) -> String {
        let one = |s: &ScenarioRun| {
            let sets = |key: &String| s.sets.get(key).map_or(String::new(), |k| format!(", in {}", k.join(", ")));
            let swept = |(k, v): &(String, Vec<String>)| format!("# swept: {k} = {}{}\n", v.join(", "), sets(k));
            let sweeps: String = s.keys.iter().map(swept).collect();
            let from = if s.first_seed == 1 { String::new() } else { format!(" from {} on", s.first_seed) };
            format!("# {}: {} seeds{from}\n{sweeps}{}", s.name, s.seeds, s.parameters)
        };
        self.scenarios.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

/// Writes both files, or neither. The manifest says which results it belongs to, as a reader must not take those of one
/// run for those of another.
///
/// # Errors
/// A file that cannot be written.
pub fn write(dir: &Path, manifest: &Manifest, results: &Results) -> Result<(), ReportError> {
    let csv = to_csv(results);
    let manifest = Manifest { results: Some(Seal::of(&csv)), ..manifest.clone() };
    let mut json = serde_json::to_vec_pretty(&manifest)?;
    json.push(b'\n');
    write_together(&[(&dir.join("results.csv"), csv.as_bytes()), (&dir.join("manifest.json"), &json)])
}

/// Reads both files of a folder.
///
/// # Errors
/// One line that names the file.
pub fn read(dir: &Path) -> Result<(Manifest, Results), String> {
    let open = |name: &str| {
        let path = dir.join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()));
        text.map(|text| (path.display().to_string(), text))
    };
    let (path, text) = open("manifest.json")?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let (path, text) = open("results.csv")?;
    if manifest.results.as_ref().is_some_and(|seal| *seal != Seal::of(&text)) {
        return Err(format!(
            "{path}: not the results that manifest.json beside it belongs to; run the experiment again"
        ));
    }
    let results = from_csv(&manifest, &text).map_err(|e| format!("{path}: {e}"))?;
    Ok((manifest, results))
}

/// The columns of results between scenario, seed and fingerprint: sweep keys, then metrics. Scenarios share those of
/// the same name.
pub(super) fn columns(results: &Results) -> (Vec<&str>, Vec<&str>) {
    fn once<'n>(names: impl Iterator<Item = &'n String>) -> Vec<&'n str> {
        let mut out: Vec<&str> = Vec::new();
        for name in names {
            if !out.contains(&name.as_str()) {
                out.push(name);
            }
        }
        out
    }
    let keys = once(results.tables.iter().flat_map(|t| &t.keys));
    (keys, once(results.tables.iter().flat_map(|t| t.metrics.iter().map(|m| &m.name))))
}

impl Table {
    /// The value of a sweep key in a row, if the scenario sweeps it.
    pub(super) fn key<'r>(&self, r: &'r Row, key: &str) -> Option<&'r str> {
        self.keys.iter().position(|k| k == key).and_then(|i| r.point.get(i)).map(String::as_str)
    }

    /// The value of a metric in a row, if the scenario measures it and there was one.
    pub(super) fn metric(&self, r: &Row, metric: &str) -> Option<f64> {
        self.metrics.iter().position(|m| m.name == metric).and_then(|i| *r.values.get(i)?)
    }
}

/// One line for each run. Scenarios share columns of the same name; what one has not is empty.
pub fn to_csv(results: &Results) -> String {
    let (keys, metrics) = columns(results);
    let names = |c: &[&str]| c.iter().map(|c| format!("{},", quoted(c))).collect::<String>();
    let mut out = format!("scenario,{}seed,{}fingerprint\n", names(&keys), names(&metrics));
    for t in &results.tables {
        for r in &t.rows {
            out += &format!("{},", quoted(&t.scenario));
            for key in &keys {
                out += &format!("{},", t.key(r, key).map(quoted).unwrap_or_default());
            }
            out += &format!("{},", r.seed);
            for metric in &metrics {
                // The shortest text that reads back as the same number.
                out += &format!("{},", t.metric(r, metric).map(|v| v.to_string()).unwrap_or_default());
            }
            out += &format!("{:016x}\n", r.fingerprint);
        }
    }
    out
}

pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

pub(crate) fn fields(line: &str) -> Vec<String> {
    let (mut out, mut field, mut inside) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => inside = !inside,
            ',' if !inside => out.push(core::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    out.push(field);
    out
}

fn from_csv(m: &Manifest, text: &str) -> Result<Results, String> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map(|(_, l)| fields(l)).unwrap_or_default();
    let place: BTreeMap<&str, usize> = head.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let mut tables: Vec<Table> = Vec::new();
    for s in &m.scenarios {
        let keys = s.keys.iter().map(|k| k.0.clone()).collect();
        tables.push(Table { scenario: s.name.clone(), keys, metrics: s.metrics.clone(), rows: Vec::new() });
    }
    for (i, line) in lines {
        let f = fields(line);
        let wrong = |what: &str| format!("line {}: {what}", i + 1);
        let cell = |name: &str| place.get(name).and_then(|p| f.get(*p)).map(String::as_str);
        let need = |name: &str| cell(name).ok_or_else(|| wrong(&format!("there is no column `{name}`")));
        let scenario = need("scenario")?;
        let t = tables.iter_mut().find(|t| t.scenario == scenario);
        let t = t.ok_or_else(|| wrong(&format!("no scenario is called `{scenario}`")))?;
        let value = |name: &str| match cell(name) {
            None | Some("") => Ok(None),
            Some(v) => v.parse::<f64>().map(Some).map_err(|_| wrong(&format!("`{v}` is no number"))),
        };
        let row = Row {
            point: t.keys.iter().map(|k| need(k).map(str::to_owned)).collect::<Result<_, _>>()?,
            seed: need("seed")?.parse().map_err(|_| wrong("the seed is no number"))?,
            values: t.metrics.iter().map(|m| value(&m.name)).collect::<Result<_, _>>()?,
            fingerprint: u64::from_str_radix(need("fingerprint")?, 16)
                .map_err(|_| wrong("the fingerprint is no number"))?,
        };
        t.rows.push(row);
    }
    Ok(Results { experiment: m.experiment.clone(), form: m.form, tables })
}
