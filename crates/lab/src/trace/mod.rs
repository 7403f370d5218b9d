//! What one run leaves behind for people to look at: captures, packet trace, event log; and the diagram drawn from it.
//!
//! * `STEM-HOST.pcapng`: the packets of a host as they would be on a wire; Wireshark reads them.
//! * `STEM.csv`: a row for each event of each packet of every flow.
//! * `STEM-frames.csv`: a row for each frame of films that are watched.
//! * `STEM.jsonl`: windows, queues, losses with their true cause, decisions with reasons; see [`Line`].
//!
//! A [`Tracer`] watches the network from outside; a [`Probe`] or [`TcpProbe`] sits at each sender. Neither changes what happens.

mod contents;
pub mod diagram;
mod files;
mod flows;
mod headers;
mod line;
mod probe;
mod queue;
mod tcp_probe;
mod tracer;

pub use files::{Outputs, TraceError};
pub(crate) use files::{capture, frames};
pub use flows::{TracedFlow, TracedRun};
pub use line::{Cause, FlowLine, Line, OnLink, Way, Why, WindowChange};
pub use probe::Probe;
pub(crate) use probe::threshold;
pub use tcp_probe::TcpProbe;
pub use tracer::{Tracer, Watcher};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_runs;
