//! Data and its acknowledgement: windows, loss recovery, timers, streams, partial reliability, and what extensions add.

#[path = "../common/mod.rs"]
mod common;

mod as_kernels;
mod bundling;
mod check_bits;
mod congestion;
mod ecn;
mod fast_retransmit;
mod flow_control;
mod forward_tsn;
mod fragmentation;
mod idle_path;
mod interleaving;
mod needless;
mod nr_sack;
mod ns2_era;
mod ns2_era_recovery;
mod overdue;
mod packet_drop;
mod parity;
mod partial_reliability;
mod pr_policies;
mod probes;
mod re_config;
mod rto;
mod rto_max;
mod sack;
mod send_buffer;
mod skipped;
mod slices;
mod stream_schedulers;
mod streams;
mod undelivered;
mod window;
mod withdrawn;
