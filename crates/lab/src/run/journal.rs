//! Runs that are done, one line each, so that a run that was stopped goes on where it was.

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

#[derive(Serialize, Deserialize)]
struct Line<R> {
    run: u64,
    row: R,
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
            let Ok(Line { run, row }) = serde_json::from_slice::<Line<Row>>(line) else { break };
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

    /// Adds a run.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be written for another reason.
    pub fn add(&mut self, run: u64, row: &Row) -> Result<(), JournalError> {
        let fail = |source| JournalError::Write { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&Line { run, row }).map_err(|e| fail(e.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(fail)?;
        self.unsynced += 1;
        if self.unsynced >= SYNC_EVERY { self.sync() } else { Ok(()) }
    }

    /// Makes sure that all is on the disk.
    ///
    /// # Errors
    /// As [`Journal::add`].
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.unsynced = 0;
        self.file.sync_data().map_err(|source| JournalError::Write { path: self.path.clone(), source })
    }
}
