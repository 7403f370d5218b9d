//! What one run leaves behind for people to look at: captures, packet trace, event log; and the diagram drawn from it.
//!
//! * `STEM-HOST.pcapng`: the real SCTP packets of a host, as they would stand on a wire; Wireshark reads them.
//! * `STEM.csv`: a row for each event of each packet of every flow.
//! * `STEM.jsonl`: windows, queues, losses with their true cause, decisions with reasons; see [`Line`].
//!
//! A [`Tracer`] watches the network from outside and a [`Probe`] sits at each sender. Neither changes what happens.

mod contents;
pub mod diagram;
mod files;
mod line;
mod probe;
mod tracer;

pub use files::{Outputs, TraceError};
pub use line::{Cause, FlowLine, Line, Why, WindowChange};
pub use probe::Probe;
pub(crate) use probe::threshold;
pub use tracer::{TracedFlow, TracedRun, Tracer, Watcher};

#[cfg(test)]
mod tests;
