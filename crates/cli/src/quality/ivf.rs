//! AV1 for ffmpeg, which does not find it in transport streams: as an IVF file with the stream's own time stamps.

use super::read::PIECE;
use anabranch_media::picture::av1_as_in_files;
use anabranch_media::ts::{AccessUnit, Elementary};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// The video of a transport stream as an IVF file: the pictures with one of these time stamps, and those without any.
///
/// # Errors
/// Those of reading and writing.
pub fn of(stream: &Path, shown: &BTreeSet<u64>) -> io::Result<NamedTempFile> {
    let to = NamedTempFile::with_suffix(".ivf")?;
    let mut out = BufWriter::new(to.as_file());
    out.write_all(&header())?;
    let (mut from, mut piece) = (File::open(stream)?, vec![0; PIECE]);
    let (mut video, mut last) = (Elementary::new(), 0);
    loop {
        let n = from.read(&mut piece)?;
        video.push(piece.get(..n).unwrap_or(&[]));
        if n == 0 {
            video.finish();
        }
        while let Some(unit) = video.poll() {
            last = unit.pts.unwrap_or(last);
            if unit.pts.is_some_and(|pts| !shown.contains(&pts)) {
                continue;
            }
            out.write_all(&frame(last, &unit))?;
        }
        if n == 0 {
            break;
        }
    }
    out.flush()?;
    drop(out);
    Ok(to)
}

/// Width and height are zero: the stream has them. A second has 90000 ticks.
fn header() -> [u8; 32] {
    let mut head = [0; 32];
    head[..8].copy_from_slice(b"DKIF\0\0\x20\0");
    head[8..12].copy_from_slice(b"AV01");
    head[16..20].copy_from_slice(&90_000u32.to_le_bytes());
    head[20] = 1;
    head
}

fn frame(pts: u64, unit: &AccessUnit) -> Vec<u8> {
    let bytes = av1_as_in_files(&unit.bytes);
    let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
    frame.extend(pts.to_le_bytes());
    frame.extend(bytes);
    frame
}
