//! Running: one point and seed after another, on all cores, with a journal to go on from.

mod all_runs;
mod build;
mod counts;
pub mod distributions;
mod emulated;
mod fates;
pub mod folder;
mod framed;
mod journal;
mod measure;
mod models;
#[cfg(feature = "parquet")]
pub mod parquet;
mod parts;
mod resolved;
mod samples;
pub mod series;
mod single_run;
mod stale_results;
mod traced;

#[cfg(test)]
mod derived_tests;
#[cfg(test)]
mod full_packet_tests;
#[cfg(test)]
mod lateness_tests;
#[cfg(test)]
mod link_layer_tests;
#[cfg(test)]
mod media_tests;
#[cfg(test)]
mod phase_tests;
#[cfg(test)]
mod processing_tests;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

pub use all_runs::{Failure, Options, Shard, run_all};
pub use emulated::{Emulated, EmulatedPath};
pub use journal::{Journal, JournalError};
pub use resolved::{Resolved, resolved, resolved_point};
pub use single_run::{RunError, run_one};
pub use stale_results::StaleResults;
pub use traced::{TraceNames, TracedError, run_traced, run_traced_as};
