//! Running: one point and seed after another, on all cores, with a journal to go on from.

mod all;
mod build;
mod counts;
mod emulated;
pub mod folder;
mod former;
mod framed;
mod journal;
mod measure;
mod models;
mod one;
#[cfg(feature = "parquet")]
pub mod parquet;
mod resolved;
mod samples;
pub mod series;
mod traced;

#[cfg(test)]
mod media_tests;
#[cfg(test)]
mod tests;

pub use all::{Failure, Options, run_all};
pub use emulated::{Emulated, EmulatedPath};
pub use former::Former;
pub use journal::{Journal, JournalError};
pub use one::{RunError, run_one};
pub use resolved::{Resolved, resolved};
pub use traced::{TraceNames, TracedError, run_traced, run_traced_as};
