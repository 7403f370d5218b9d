//! Files and standard input, read on a thread of their own: a read that never returns must not hold the program.

use super::Chunk;
use crate::exit::{Failure, one_line};
use crate::filemark::FileMark;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use tokio::sync::mpsc;

/// Bytes per read.
const READ: usize = 32 << 10;

type Sender = mpsc::Sender<Result<Chunk, Failure>>;

/// Opens a file and reads it.
pub(super) fn start_file(path: &Path, tx: Sender) -> Result<Option<FileMark>, Failure> {
    let wrong = |e: io::Error| Failure::usage(format!("cannot read {}: {}", path.display(), plain(&e)));
    let file = File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err(Failure::usage(format!("cannot read {}: it is a directory", path.display())));
    }
    let mark = FileMark::of(&file);
    start(path.display().to_string(), file, tx)?;
    Ok(mark)
}

/// Reads standard input.
pub(super) fn start_stdin(tx: Sender) -> Result<Option<FileMark>, Failure> {
    // It may be a file: `send - … <file`.
    let mark = io::stdin().as_fd().try_clone_to_owned().ok().and_then(|fd| FileMark::of(&fd.into()));
    start("standard input".into(), io::stdin(), tx)?;
    Ok(mark)
}

fn start(name: String, mut from: impl Read + Send + 'static, tx: Sender) -> Result<(), Failure> {
    let work = move || {
        let mut buffer = vec![0; READ];
        loop {
            let item = match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => Ok(Chunk {
                    at: anabranch_net::now(),
                    bytes: Bytes::copy_from_slice(buffer.get(..n).unwrap_or(&[])),
                }),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => Err(Failure::usage(format!("cannot read {name}: {}", plain(&e)))),
            };
            let last = item.is_err();
            if tx.blocking_send(item).is_err() || last {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("input".into())
        .spawn(work)
        .map(drop)
        .map_err(|e| Failure::network(format!("cannot start a thread for the input: {e}")))
}

/// What the system said, without its number.
pub fn plain(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space is left".into(),
        _ => one_line(&e.to_string()).to_lowercase(),
    }
}
