//! What a live stream loses when networks stall, collapse, lose and reorder.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/film.rs"]
mod film;

mod arrive_by;
mod live;
mod weather;
