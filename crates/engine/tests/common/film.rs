//! Streams whose messages carry their number in front: what `anabranch send` sets up, and when each arrived.

use super::common::*;
use anabranch_base::Instant;
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Profile;
use anabranch_sim::LinkConfig;
use anabranch_sim::netem::{NoGuest, read_links, split};

/// Both directions of a path in netem's words, as `anabranch emulate` reads them.
#[allow(dead_code, reason = "not every test file sets up a program's stream")]
pub fn links(words: &str) -> (LinkConfig, LinkConfig) {
    read_links(&split(words, &[]), &mut NoGuest, None).expect(words).of(28)
}

/// The constants of the program.
#[allow(dead_code, reason = "not every test file sets up a program's stream")]
pub fn program(profile: &Profile, seed: u64) -> AssocConfig {
    let mut config = AssocConfig::new(profile.clone());
    config.seed = seed;
    config
}

/// Notes when the messages that arrived since the last time did, by the number in front.
pub fn note(b: &mut Bench, arrived: &mut Vec<Option<Instant>>) {
    let now = b.now;
    for m in b.at_server.drain(..) {
        let p = m.payload.into_bytes();
        let i = u32::from_be_bytes([p[0], p[1], p[2], p[3]]) as usize;
        if arrived.len() <= i {
            arrived.resize(i + 1, None);
        }
        arrived[i].get_or_insert(now);
    }
}
