//! Files that are either whole or not there.

use crate::ReportError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells apart two writers of the same file in one process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Writes `bytes` to a temporary name beside `path` and renames it, so that a reader sees the old file or the new one
/// and never a half.
///
/// # Errors
/// [`ReportError::Write`] when the folder is missing, not writable or full; the temporary file is removed.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), ReportError> {
    write_together(&[(path.as_ref(), bytes)])
}

/// Writes files that belong together: no name changes before all of them are written whole, so that a full disk leaves
/// the old ones. What ends the program between two renames may still leave one of each.
///
/// # Errors
/// As [`write_atomically`]; no temporary file is left.
pub fn write_together(files: &[(&Path, &[u8])]) -> Result<(), ReportError> {
    let mut temporaries = Vec::new();
    let written = files.iter().try_for_each(|(path, bytes)| {
        let fail = |source| ReportError::Write { path: path.to_path_buf(), source };
        let temporary = beside(path).map_err(fail)?;
        temporaries.push(temporary.clone());
        write_synced(&temporary, bytes).map_err(fail)
    });
    let renamed = written.and_then(|()| {
        files.iter().zip(&temporaries).try_for_each(|((path, _), temporary)| {
            fs::rename(temporary, path).map_err(|source| ReportError::Write { path: path.to_path_buf(), source })
        })
    });
    if renamed.is_err() {
        // The first error is the one to report; a leftover that cannot be removed changes nothing about it.
        temporaries.iter().for_each(|t| drop(fs::remove_file(t)));
    }
    renamed
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(hidden))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    // Without this a crash of the machine may leave the new name on an empty file.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_the_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn of_files_that_belong_together_none_changes_when_one_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("results.csv"), folder.path().join("gone/manifest.json"));
        write_atomically(&one, b"old").unwrap();
        let error = write_together(&[(&one, b"new"), (&two, b"new")]).unwrap_err().to_string();
        assert!(error.contains("manifest.json"), "{error}");
        assert_eq!((fs::read(&one).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["results.csv".to_owned()]));
    }

    #[test]
    fn a_failure_names_the_file_and_cleans_up() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no-such-folder/report.html");
        let error = write_atomically(&missing, b"x").unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains("no-such-folder"), "{error}");
        // A folder stands where the file should go: the rename fails after the temporary file was written.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("x"), b"x").unwrap();
        assert!(write_atomically(&taken, b"x").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
        assert!(write_atomically("/", b"x").is_err());
    }
}
