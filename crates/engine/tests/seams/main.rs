//! The policy traits carry the published algorithms: a miniature of each runs inside the engine, over simulated
//! paths, and is judged by what it did there.
//!
//! Whatever is registered is the miniature of itself. Of Xu et al. 2014 there is another one, written against the
//! traits alone, which writes down what it is asked and shown.

#[path = "../common/mod.rs"]
mod common;

mod cmt_cl_fd;
mod cmt_cl_fd_distribution;
mod cmt_cl_fd_quality;
mod cmt_cl_fd_window;
mod combinations;
mod confluent;
mod cross_layer;
mod delay_compensation;
mod media_streams;
mod no_starvation;
mod overtaken;
mod thin_streams;
mod two_paths;
mod without_congestion_control;
