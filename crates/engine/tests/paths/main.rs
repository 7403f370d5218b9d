//! Several paths: load sharing, failure and recovery, addresses that come and go, path MTU.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/film.rs"]
mod film;

mod addresses;
mod answer_paths;
mod asconf;
mod believed_rate;
mod dark;
mod delayed_ack_cmt;
mod failure;
mod heartbeat;
mod heartbeats_off;
mod load_sharing;
mod moved;
mod multipath;
mod nat;
mod ns2_era_paths;
mod own_addresses;
mod path_deaths;
mod peer_timeout;
mod plpmtud;
mod potentially_failed;
mod rebinding;
mod resume;
mod takeover;
mod trains;
mod unsteady;
