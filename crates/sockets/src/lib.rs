//! The sockets API for SCTP (RFC 6458) with Linux's ABI over the engine, as a library to preload.
//!
//! A program that was written for the kernel's SCTP runs over this one unchanged: `LD_PRELOAD` puts `calls` before
//! the C library, which take what concerns an SCTP socket and hand on all else. `socket` is what the kernel would be,
//! in safe Rust; `abi` is how its answers look in memory; `world` brings packets and time: real ones, or virtual ones for
//! conformance suites. docs/SOCKETS.md says how to use it.

#![cfg_attr(test, allow(dead_code, reason = "the unit tests call none of the exported functions"))]

mod abi;
mod calls;
#[cfg(test)]
mod driven;
mod socket;
mod world;
