//! Long and random runs: memory and work stay bounded, whatever is configured and whatever arrives.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/driven.rs"]
mod driven;
#[path = "../common/operated.rs"]
mod operated;
#[path = "../common/profiles.rs"]
mod profiles;
#[path = "../common/random_configuration.rs"]
mod random_configuration;

mod bulk;
mod day;
mod fuzzed;
mod growth;
mod operations;
mod random_configurations;
mod random_found;
mod soak;
