//! Paths that die in ten ways under a flow that must lose nothing: how long until they are left.
//!
//! Take-over time is measured on the wire, not asked of the engine: from the last packet that the path delivered to
//! the moment when every chunk outstanding on it has been sent again elsewhere and no new chunk is put on it. Bound:
//! max(200 ms, 2 x the larger SRTT), for the median of 20 deaths; none above twice that. The table in `docs/PATHS.md` is
//! these tests': `UPDATE=1 cargo test -p anabranch-engine --test paths path_deaths` writes it.

mod alarms;
mod deaths;
mod measure;
mod odd;
mod table;
