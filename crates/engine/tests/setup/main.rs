//! Setting an association up and ending it: handshake, cookies, collisions, restarts, extensions that are agreed upon, shutdown and abort.

#[path = "../common/mod.rs"]
mod common;

mod abort;
mod adaptation;
mod authentication;
mod basic;
mod collision;
mod combinations;
mod cookie;
mod encapsulation;
mod farewells;
mod handshake;
mod one_lost;
mod out_of_the_blue;
mod own_parameters;
mod refusing_peer;
mod restart;
mod setup_sequences;
mod shutdown;
mod t1;
mod unknown;
mod zero_checksum;
