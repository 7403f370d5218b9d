//! The lab: an experiment is data, its runs are the engine in virtual time, and its answer is a table, figures with
//! intervals and a verdict for each claim.
//!
//! ```
//! use anabranch_lab::run::run_one;
//! use anabranch_lab::scenario::Scenario;
//!
//! let text = r#"
//! name = "two-paths"
//! duration = "2s"
//! metrics = ["main.goodput"]
//! [topology]
//! kind = "disjoint-paths"
//! path1 = { rate = "2mbit", delay = "20ms", limit = "50p" }
//! path2 = { rate = "1mbit", delay = "40ms", limit = "50p" }
//! [[flow]]
//! name = "main"
//! transport = "sctp"
//! "#;
//! let scenario = Scenario::parse("two-paths.toml", text, &|file| Err(format!("there is no `{file}`")))?;
//! let row = run_one(&scenario.points()?[0], 1)?;
//! assert!(row.values[0] > Some(1e6), "more than one path could carry: {:?}", row.values);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub mod reference;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod statistics;
pub mod trace;
