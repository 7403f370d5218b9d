//! Runs that are done, one line each, so that a run that was stopped goes on where it was.

use super::parts::{DISTRIBUTIONS, SERIES};
use crate::results::Row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Lines between two that are surely on the disk.
const SYNC_EVERY: u32 = 64;

/// The journal in a folder of results.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    done: BTreeMap<u64, Row>,
    unsynced: u32,
}

/// One run. What it was is for people who read a journal of which nothing else is there yet.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    run: u64,
    #[serde(default)]
    scenario: String,
    /// The value of each sweep key, and each metric's.
    #[serde(default)]
    of: BTreeMap<String, serde_json::Value>,
    row: R,
}

/// What a run was, for a line of the journal.
pub(super) struct About<'a> {
    pub scenario: &'a str,
    pub keys: &'a [String],
    pub metrics: &'a [String],
}

impl About<'_> {
    fn values(&self, row: &Row) -> BTreeMap<String, serde_json::Value> {
        let keys = self.keys.iter().zip(&row.point).map(|(k, v)| (k.clone(), v.as_str().into()));
        let metrics = self.metrics.iter().zip(&row.values).map(|(m, v)| (m.clone(), (*v).into()));
        keys.chain(metrics).collect()
    }
}

/// The journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The folder of results is a file.
    #[error("{}: a file and no folder, results cannot go there", .0.display())]
    NoFolder(PathBuf),
    /// The journal could not be opened; nothing has run.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Something could not be written while runs went on.
    #[error("cannot write {}: {source}; the runs before are kept, and the same command goes on from there", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Journal {
    /// Opens the journal in `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// The folder or file cannot be made, read or written.
    pub fn open(dir: &Path) -> Result<Journal, JournalError> {
        if dir.exists() && !dir.is_dir() {
            return Err(JournalError::NoFolder(dir.to_owned()));
        }
        let path = dir.join("journal.jsonl");
        let fail = |source| JournalError::Open { path: path.clone(), source };
        std::fs::create_dir_all(dir).map_err(fail)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(fail)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        let mut done = BTreeMap::new();
        let mut good = 0;
        for line in text.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n")) {
            let Ok(Line { run, row, .. }) = serde_json::from_slice::<Line<Row>>(line) else { break };
            done.insert(run, row);
            good += line.len() as u64;
        }
        // A line that was cut off by a full disk or a crash is written anew.
        file.set_len(good).and_then(|()| file.seek(io::SeekFrom::End(0))).map_err(fail)?;
        Ok(Journal { file, path, done, unsynced: 0 })
    }

    /// The folder it is in.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The row of a run that was done before.
    pub fn get(&self, run: u64) -> Option<&Row> {
        self.done.get(&run)
    }

    /// Takes over what the journal in another folder has and this one has not, with the series and distributions of those runs.
    ///
    /// # Errors
    /// The other one cannot be read, or this one not be written.
    pub fn take_over(&mut self, other: &Path) -> Result<(), JournalError> {
        let from = other.join("journal.jsonl");
        let open = |source| JournalError::Open { path: from.clone(), source };
        let text = std::fs::read(&from).map_err(open)?;
        let fail = |source| JournalError::Write { path: self.path.clone(), source };
        for line in text.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n")) {
            let Ok(Line { run, row, .. }) = serde_json::from_slice::<Line<Row>>(line) else { break };
            if self.done.contains_key(&run) {
                continue;
            }
            for parts in [SERIES, DISTRIBUTIONS] {
                parts.take_over(other, self.folder(), run).map_err(fail)?;
            }
            self.file.write_all(line).map_err(fail)?;
            self.done.insert(run, row);
        }
        self.sync()
    }

    /// Adds a run.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be written for another reason.
    pub(super) fn add(&mut self, run: u64, about: &About<'_>, row: &Row) -> Result<(), JournalError> {
        let fail = |source| JournalError::Write { path: self.path.clone(), source };
        let line = Line { run, scenario: about.scenario.to_owned(), of: about.values(row), row };
        let mut line = serde_json::to_vec(&line).map_err(|e| fail(e.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(fail)?;
        self.unsynced += 1;
        if self.unsynced >= SYNC_EVERY { self.sync() } else { Ok(()) }
    }

    /// Makes sure that all is on the disk.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be written for another reason.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.unsynced = 0;
        self.file.sync_data().map_err(|source| JournalError::Write { path: self.path.clone(), source })
    }
}
