//! What runs leave beside their rows, as lines of CSV: one file for each run, and one of a scenario's runs in order.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// One kind of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parts {
    folder: &'static str,
    /// The columns after scenario, keys and seed.
    columns: &'static str,
}

/// What is noted over time.
pub(super) const SERIES: Parts = Parts { folder: "series", columns: "time,series,path,value" };
/// How often each delay was seen.
pub(super) const DISTRIBUTIONS: Parts = Parts { folder: "distributions", columns: "metric,delay,count" };

impl Parts {
    /// The file of all runs of a scenario.
    pub fn of_scenario(self, dir: &Path, scenario: &str) -> PathBuf {
        dir.join(self.folder).join(format!("{scenario}.csv"))
    }

    /// Where the lines of a run are kept.
    pub fn of_run(self, dir: &Path, run: u64) -> PathBuf {
        dir.join(self.folder).join("runs").join(format!("{run:016x}.csv"))
    }

    /// Keeps the lines of a run.
    pub fn keep(self, dir: &Path, run: u64, lines: &str) -> io::Result<()> {
        std::fs::create_dir_all(dir.join(self.folder).join("runs"))?;
        whole(&self.of_run(dir, run), |new| std::fs::write(new, lines))
    }

    /// Takes over the lines of a run from another folder, if they are there.
    pub fn take_over(self, from: &Path, to: &Path, run: u64) -> io::Result<()> {
        let (part, own) = (self.of_run(from, run), self.of_run(to, run));
        if !part.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(own.parent().unwrap_or(Path::new(".")))?;
        std::fs::copy(&part, &own).map(drop)
    }

    /// Writes one scenario's file from those of its runs, each with what precedes its lines.
    pub fn join(self, dir: &Path, scenario: &str, head: &str, runs: &[(u64, String)]) -> io::Result<()> {
        whole(&self.of_scenario(dir, scenario), |new| {
            let mut out = BufWriter::new(File::create(new)?);
            writeln!(out, "{head}{}", self.columns)?;
            for (run, before) in runs {
                for line in std::fs::read_to_string(self.of_run(dir, *run))?.lines() {
                    writeln!(out, "{before}{line}")?;
                }
            }
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        })
    }
}

/// Writes a file under another name first, of which nothing is left when that fails.
fn whole(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = write(&new).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // The first error is the one to report.
        drop(std::fs::remove_file(&new));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let names = |of: PathBuf| -> Vec<_> {
            std::fs::read_dir(of).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
        };
        SERIES.keep(dir.path(), 1, "0,a,,1\n").unwrap();
        let series = dir.path().join("series");
        // The second run is not there; nor can a file take the place of a folder.
        assert!(SERIES.join(dir.path(), "tiny", "", &[(1, String::new()), (2, String::new())]).is_err());
        assert_eq!(names(series.clone()), ["runs"]);
        std::fs::create_dir_all(SERIES.of_run(dir.path(), 3).join("x")).unwrap();
        assert!(SERIES.keep(dir.path(), 3, "0,a,,1\n").is_err());
        assert!(names(series.join("runs")).iter().all(|n| n.ends_with(".csv")));
    }
}
