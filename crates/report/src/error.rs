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
    /// A value has no JSON form (for example a map whose keys are not strings).
    #[error("cannot show a value as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
