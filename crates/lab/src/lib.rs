//! The lab: an experiment is data, its runs are the engine in virtual time, and its answer is a table, figures with
//! intervals and a verdict for each claim.

pub mod claims;
mod document;
pub mod experiment;
pub mod figures;
pub mod joined;
pub mod metrics;
pub mod node;
mod numbers;
pub mod oracle;
pub mod quantity;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod statistics;
pub mod trace;
