//! The policy traits carry the published algorithms: a miniature of each runs inside the engine, over simulated
//! paths, and is judged by what it did there.
//!
//! Whatever is registered is the miniature of itself. Of P1 there is another one, written against the traits alone, which
//! writes down what it is asked and shown.

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod combinations;
mod cross_layer;
mod p1;
mod p1_distribution;
mod p1_quality;
mod p1_window;
mod p2;
mod p3;
mod p3_compensation;
mod p3_window;
mod p4;
