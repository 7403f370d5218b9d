//! What can go wrong: only writing and turning values into JSON.

use std::path::PathBuf;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file could not be written; what stood there before is untouched.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The machine has no font to write with.
    #[error("this machine has no fonts")]
    NoFont,
    /// A drawing could not be made into a picture.
    #[error("a figure cannot be drawn as PNG: {0}")]
    Png(String),
    /// A value has no JSON form (for example a map whose keys are not strings).
    #[error("cannot show a value as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
