//! Links, queues, losses and traffic against closed forms.
//!
//! Every figure is measured in 40 parts that do not depend on each other (runs with other seeds, or
//! stretches of one long sequence of independent draws). The mean of the parts gets the 99.9 %
//! interval of Student's t for 39 degrees of freedom. A test fails when the closed form lies outside
//! that interval, or when the interval is wider than the test says it needs to be to tell right from
//! wrong. Seeds are fixed, so a test passes always or never; a correct model would fail one of a
//! thousand choices of seeds.

mod jitter;
mod losses;
mod ns2;
mod queues;
mod repeats;
mod stats;
mod thin;
mod traffic;
