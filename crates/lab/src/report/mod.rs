//! The answer of an experiment: one page, a verdict for each claim, every figure in three formats.

mod differences;
mod overview;
mod page;
mod table;

pub use overview::Overview;

use crate::claims::{self, Claim, Judgement};
use crate::figures::{self, Content, Figure, FigureError, Sources};
use crate::reference::Reference;
use crate::results::{Distribution, Results, Table, Timeline};
use anabranch_report::{ReportError, write_atomically};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a report says beside the results. Part of the manifest, so that the report can be made again from a folder.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct About {
    /// Title of the page.
    pub title: String,
    /// What is asked, in a sentence or a few.
    pub question: String,
    /// The paper, or who made it up.
    pub source: String,
    /// What a reader has to know: readings of the paper, deviations, calibration. A paragraph each.
    pub notes: Vec<String>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What others measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// Tables over all scenarios.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overviews: Vec<Overview>,
    /// How to run it again: `anabranch lab run rtx-csi`.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// The keys of the scenarios as they are written, as text.
    pub settings: String,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] ReportError),
    /// A folder could not be made.
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A figure asks for what the results do not have.
    #[error(transparent)]
    Figure(#[from] FigureError),
}

/// What was written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// Verdicts on the claims.
    pub judgements: Vec<Judgement>,
    /// What could not be done but hinders nothing else, in words.
    pub warnings: Vec<String>,
    /// The files of the figures.
    pub figures: Vec<PathBuf>,
}

/// A figure with its drawings.
pub(crate) struct Drawn<'a> {
    pub(crate) figure: &'a Figure,
    pub(crate) content: Content,
    pub(crate) drawings: Vec<anabranch_report::Drawing>,
}

/// Writes `report.html`, `claims.csv`, `differences.csv` and `figures/` into `dir`, each file whole or not at all.
///
/// # Errors
/// [`Failure`]; what was there before a file is replaced stays as it was.
pub fn write(dir: &Path, about: &About, results: &Results) -> Result<Written, Failure> {
    let lacks = |f: &Figure| figures::lacking(f, results).map(|s| (f.name.clone(), s.to_owned()));
    let absent: Vec<(String, String)> = about.figures.iter().filter_map(lacks).collect();
    let drawable = |f: &Figure| absent.iter().all(|(name, _)| *name != f.name);
    let timelines = timelines(dir, about, results)?;
    let (distributions, references) = (distributions(dir, about, results)?, &about.references);
    let from = Sources { results, timelines: &timelines, distributions: &distributions, references };
    let drawn = draw(about.figures.iter().filter(|f| drawable(f)), from)?;
    let judgements = claims::judge(&about.claims, results, &about.references);
    let folder = dir.join("figures");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::Folder { path: folder.clone(), source })?;
    let mut figures = Vec::new();
    for d in &drawn {
        write_figure(&folder, d, &mut figures)?;
    }
    let left_out = |(name, scenario): &(String, String)| {
        format!("figure `{name}` is left out: scenario `{scenario}` has no results")
    };
    let mut warnings: Vec<String> = absent.iter().map(left_out).collect();
    warnings.extend(pictures(&folder, &drawn, &mut figures)?);
    write_atomically(dir.join("claims.csv"), claims::to_csv(&judgements).as_bytes())?;
    let differences: Vec<_> = results.tables.iter().flat_map(differences::of).collect();
    write_atomically(dir.join("differences.csv"), differences::to_csv(&differences).as_bytes())?;
    let page = dir.join("report.html");
    page::from_drawn(about, results, &judgements, &drawn, &differences).write_to(&page)?;
    Ok(Written { page, judgements, warnings, figures })
}

/// What the runs noted over time, of the scenarios whose figures draw it.
fn timelines(dir: &Path, about: &About, results: &Results) -> Result<Vec<Timeline>, FigureError> {
    let mut read: Vec<Timeline> = Vec::new();
    for f in about.figures.iter().filter(|f| f.over_time()) {
        let named = |t: &&Table| match &f.scenario {
            Some(n) => t.scenario == *n,
            None => true,
        };
        let own = f.lines.iter().filter_map(|l| l.scenario.as_ref());
        let tables = results.tables.iter().filter(named);
        for t in tables.chain(own.filter_map(|n| results.tables.iter().find(|t| t.scenario == *n))) {
            if read.iter().all(|r| r.scenario != t.scenario) {
                let fail = |what| FigureError { name: f.name.clone(), what };
                read.push(crate::run::series::read(dir, t).map_err(fail)?);
            }
        }
    }
    Ok(read)
}

/// The delays that runs kept, of the scenarios whose figures draw them.
fn distributions(dir: &Path, about: &About, results: &Results) -> Result<Vec<Distribution>, FigureError> {
    let mut read: Vec<Distribution> = Vec::new();
    for f in &about.figures {
        for (scenario, _) in f.distributions() {
            let named = |t: &&Table| scenario.as_ref().is_none_or(|n| t.scenario == *n);
            for t in results.tables.iter().filter(named) {
                if read.iter().all(|r| r.scenario != t.scenario) {
                    let fail = |what| FigureError { name: f.name.clone(), what };
                    read.push(crate::run::distributions::read(dir, t).map_err(fail)?);
                }
            }
        }
    }
    Ok(read)
}

fn draw<'a>(figures: impl Iterator<Item = &'a Figure>, from: Sources<'_>) -> Result<Vec<Drawn<'a>>, FigureError> {
    let one = |figure: &'a Figure| {
        let content = Content::of(figure, from)?;
        let drawings = content.draw(figure);
        Ok(Drawn { figure, content, drawings })
    };
    figures.map(one).collect()
}

fn write_figure(folder: &Path, d: &Drawn<'_>, written: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut write = |name: String, bytes: &[u8]| {
        let path = folder.join(name);
        write_atomically(&path, bytes).map(|()| written.push(path))
    };
    write(format!("{}.csv", d.figure.name), d.content.to_csv().as_bytes())?;
    for (name, drawing) in names(d).zip(&d.drawings) {
        write(format!("{name}.svg"), drawing.standalone().as_bytes())?;
    }
    Ok(())
}

/// The file names of a figure's drawings, without their endings: its own, and for panels what they show.
fn names<'a>(d: &'a Drawn<'_>) -> impl Iterator<Item = String> + 'a {
    d.content.panels().into_iter().map(move |p| file(d.figure, p))
}

fn file(figure: &Figure, panel: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    match panel {
        "" => figure.name.clone(),
        panel => format!("{}-{}", figure.name, panel.chars().map(safe).collect::<String>()),
    }
}

/// Every file that the figures of a report may have left in the folder `figures`.
pub(crate) fn files(about: &About, results: &Results) -> impl Iterator<Item = String> {
    about.figures.iter().flat_map(|f| {
        let values = |key| results.tables.iter().flat_map(move |t| crate::quantity::values_of(t, key));
        let panels = f.panels.as_deref().into_iter().flat_map(values).map(|v| file(f, &figures::heading(f, &v)));
        let drawings = panels.chain([f.name.clone()]).flat_map(|n| [format!("{n}.svg"), format!("{n}.png")]);
        drawings.chain([format!("{}.csv", f.name)])
    })
}

/// Writes the figures as PNG; a warning when that cannot be done here.
#[cfg(feature = "png")]
fn pictures(folder: &Path, drawn: &[Drawn<'_>], written: &mut Vec<PathBuf>) -> Result<Option<String>, Failure> {
    // Looking for fonts takes longer than many a run.
    if drawn.iter().all(|d| d.drawings.is_empty()) {
        return Ok(None);
    }
    let rasteriser = match anabranch_report::Rasteriser::new() {
        Ok(r) => r,
        Err(e) => return Ok(Some(format!("{e}: figures are there as SVG and CSV, not as PNG"))),
    };
    for d in drawn {
        for (name, drawing) in names(d).zip(&d.drawings) {
            let path = folder.join(format!("{name}.png"));
            write_atomically(&path, &rasteriser.png(drawing)?)?;
            written.push(path);
        }
    }
    Ok(None)
}

#[cfg(not(feature = "png"))]
fn pictures(_: &Path, _: &[Drawn<'_>], _: &mut Vec<PathBuf>) -> Result<Option<String>, Failure> {
    Ok(Some("built without PNG: figures are there as SVG and CSV".to_owned()))
}

#[cfg(test)]
mod tests;
