//! The seeds of the fuzz target `association`, and what it found.

use crate::driven::drive;
use crate::profiles::PROFILES;

#[test]
fn nothing_at_all() {
    for profile in 0..PROFILES.len() as u8 {
        for extensions in 0..32 {
            drive(&[profile, extensions]);
        }
    }
}

#[test]
fn random_bytes() {
    let rounds: u64 = std::env::var("ANABRANCH_FUZZED").ok().and_then(|v| v.parse().ok()).unwrap_or(300);
    for n in 0..rounds {
        let mut r = anabranch_base::RandomStream::named(n, "bytes");
        let bytes: Vec<u8> = (0..2_000).map(|_| r.below(256) as u8).collect();
        drive(&bytes);
    }
}

#[test]
fn seeds() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/association");
    let mut n = 0;
    for entry in std::fs::read_dir(dir).expect("seeds") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        drive(&std::fs::read(&path).expect("a file"));
        n += 1;
    }
    assert!(n > 0);
}
