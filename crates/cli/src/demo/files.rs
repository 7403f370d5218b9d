//! The output folder: files appear in it whole, all at the end, or not at all.

use crate::exit::Failure;
use anabranch_report::write_atomically;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// The output folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Made by us: an interrupted demo takes it away again if it is empty.
    made: bool,
}

impl Folder {
    /// Makes the folder if it is missing and checks that files can be written there.
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn open(path: &Path) -> Result<Folder, Failure> {
        let fail = |e: io::Error| Failure::usage(format!("cannot write to the folder {}: {e}", path.display()));
        let made = !path.exists();
        fs::create_dir_all(path).map_err(fail)?;
        let folder = Folder { path: path.to_owned(), made };
        drop(Draft::new(path).map_err(fail)?);
        Ok(folder)
    }

    /// A file that is written by a thread of its own, so that a slow disk delays nothing else. The bytes go onto the
    /// tape; the recording ends when the tape is dropped.
    ///
    /// # Errors
    /// No file or no thread to be had.
    pub fn recorder(&self) -> Result<(Tape, Recording), Failure> {
        let fail = |e: io::Error| Failure::usage(format!("cannot write to the folder {}: {e}", self.path.display()));
        let file = Draft::new(&self.path).map_err(fail)?;
        // Unbounded, but what goes in is no more than the run's media.
        let (bytes, pieces) = mpsc::channel();
        let end = bytes.clone();
        let writer = thread::Builder::new().name("recorder".into()).spawn(move || write_all(file, &pieces));
        Ok((Tape(bytes), Recording { end, writer: Some(writer.map_err(fail)?) }))
    }

    /// Gives a finished file its name.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn keep(&self, draft: Draft, name: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        draft.persist(&path).map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())))
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        write_atomically(&path, contents).map_err(Failure::usage)?;
        Ok(path)
    }

    /// Leaves no trace where there was none.
    pub fn abandon(self) {
        if self.made {
            // Not empty when something of the user's is there by now: then it stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// A file under a hidden name, which goes away unless it is [kept](Folder::keep).
#[derive(Debug)]
pub struct Draft {
    file: File,
    path: PathBuf,
    kept: bool,
}

/// Tells apart the drafts of one process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

impl Draft {
    fn new(folder: &Path) -> io::Result<Draft> {
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".demo-{}-{number}.tmp", std::process::id()));
        let file = File::create_new(&path)?;
        Ok(Draft { file, path, kept: false })
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn persist(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "a temporary file stays");
        }
    }
}

/// A piece of a file, or its end.
type Piece = Option<Bytes>;

fn write_all(mut draft: Draft, pieces: &mpsc::Receiver<Piece>) -> io::Result<Draft> {
    let mut out = BufWriter::with_capacity(1 << 18, &mut draft.file);
    while let Ok(Some(piece)) = pieces.recv() {
        out.write_all(&piece)?;
    }
    out.flush()?;
    drop(out);
    Ok(draft)
}

/// Takes the bytes of one file in order.
#[derive(Debug)]
pub struct Tape(mpsc::Sender<Piece>);

impl Tape {
    /// Appends bytes to the tape.
    pub fn push(&self, bytes: Bytes) {
        // The writer has gone only after an error, which `Recording::finish` tells.
        let _ = self.0.send(Some(bytes));
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        // As above.
        let _ = self.0.send(None);
    }
}

/// The file that a [`Tape`] fills.
#[derive(Debug)]
pub struct Recording {
    end: mpsc::Sender<Piece>,
    writer: Option<JoinHandle<io::Result<Draft>>>,
}

impl Recording {
    /// Waits until the tape is dropped and everything is in the file.
    ///
    /// # Errors
    /// What the system said while writing.
    pub fn finish(mut self) -> Result<Draft, Failure> {
        self.end().map_err(|e| Failure::usage(format!("cannot write a received file: {e}")))
    }

    fn end(&mut self) -> io::Result<Draft> {
        let writer = self.writer.take().ok_or_else(|| io::Error::other("the file is finished already"))?;
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Not wanted any more, whether or not the tape goes on. Waits, so that the temporary file is gone before
            // the program is.
            let _ = self.end.send(None);
            drop(self.end());
        }
    }
}

/// Are these two files equal, byte for byte? Says where they first differ.
///
/// # Errors
/// A file cannot be read.
pub fn first_difference(a: &Path, b: &Path) -> io::Result<Option<u64>> {
    let mut a = BufReader::new(File::open(a)?).bytes();
    let mut b = BufReader::new(File::open(b)?).bytes();
    let mut at = 0;
    loop {
        match (a.next().transpose()?, b.next().transpose()?) {
            (None, None) => return Ok(None),
            (x, y) if x != y => return Ok(Some(at)),
            _ => at += 1,
        }
    }
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
    fn files_appear_whole_or_not_at_all() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(&scratch.path().join("a/b")).unwrap();
        let (tape, recording) = folder.recorder().unwrap();
        tape.push(Bytes::from_static(b"half"));
        assert_eq!(names(&folder.path).len(), 1);
        drop(recording);
        tape.push(Bytes::from_static(b"more"));
        assert!(names(&folder.path).is_empty(), "dropped, not kept");
        let (tape, recording) = folder.recorder().unwrap();
        tape.push(Bytes::from_static(b"one "));
        tape.push(Bytes::from_static(b"two"));
        drop(tape);
        let file = recording.finish().unwrap();
        folder.keep(file, "received.ts").unwrap();
        folder.write("summary.json", b"{}").unwrap();
        assert_eq!(names(&folder.path), ["received.ts", "summary.json"]);
        assert_eq!(fs::read(folder.path.join("received.ts")).unwrap(), b"one two");
    }

    #[test]
    fn an_abandoned_folder_goes_only_if_it_was_ours_and_empty() {
        let scratch = tempfile::tempdir().unwrap();
        let ours = scratch.path().join("ours");
        Folder::open(&ours).unwrap().abandon();
        assert!(!ours.exists());
        let full = Folder::open(&ours).unwrap();
        fs::write(ours.join("note"), "x").unwrap();
        full.abandon();
        assert!(ours.join("note").exists());
        Folder::open(scratch.path()).unwrap().abandon();
        assert!(scratch.path().exists());
    }

    #[test]
    fn a_folder_that_is_a_file_is_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let e = Folder::open(file.path()).unwrap_err().to_string();
        assert!(e.contains("cannot write to the folder") && !e.contains('\n'), "{e}");
    }

    #[test]
    fn differences_are_found_at_their_place() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = scratch.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, b, c) = (path("a", "same"), path("b", "same"), path("c", "sane!"));
        assert_eq!(first_difference(&a, &b).unwrap(), None);
        assert_eq!(first_difference(&a, &c).unwrap(), Some(2));
        assert_eq!(first_difference(&a, &path("d", "samesame")).unwrap(), Some(4));
    }
}
