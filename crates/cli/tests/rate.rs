//! An encoder hears what the paths carry.

mod common;

use common::*;
use std::path::Path;

/// Sends the clip through an emulated path of `rate` for so many seconds, and waits for the end of all.
#[track_caller]
fn sent(dir: &tempfile::TempDir, rate: &str, seconds: &str, more: &[&str]) -> Ended {
    let (far, near) = (port(), port());
    let out = dir.path().join("out");
    let r = receiver(far, out.to_str().unwrap(), &["-q"]);
    let path = format!("listen 127.0.0.1:{near} to 127.0.0.1:{far} rate {rate} delay 20ms limit 200");
    let relay = start(&["emulate", "--path", &path]);
    listening(near);
    let peer = format!("anabranch://127.0.0.1:{far}?latency=500");
    let through = format!("127.0.0.1,via=127.0.0.1:{near}");
    let s = run(&[&["send", CLIP, &peer, "--path", &through, "--duration", seconds, "-J"], more].concat());
    let _ = r.wait();
    relay.signal("INT");
    let _ = relay.wait();
    s
}

/// LOW, MIDDLE and TIME of each line.
#[track_caller]
fn lines(path: &Path) -> Vec<(u64, u64, f64)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let one = |l: &str| {
        let f: Vec<&str> = l.split(' ').collect();
        assert!(f.len() == 4 && f[0] == "rate", "{l}");
        (f[1].parse().unwrap(), f[2].parse().unwrap(), f[3].parse().unwrap())
    };
    text.lines().map(one).collect()
}

#[test]
fn a_program_and_a_file_hear_what_a_path_carries() {
    let (dir, _) = scratch();
    let (heard, newest) = (dir.path().join("heard"), dir.path().join("newest"));
    let program = format!("cat > {}", heard.display());
    // The clip has about 8 Mbit/s.
    let s = sent(&dir, "4mbit", "5s", &["--on-rate", &program, "--rate-file", newest.to_str().unwrap()]);
    assert_eq!(s.code(), Some(0), "{}", s.stderr);
    let all = lines(&heard);
    assert!(!all.is_empty(), "nothing was reported");
    for pair in all.windows(2) {
        assert!(pair[1].2 - pair[0].2 > 0.05, "ten a second at most: {pair:?}");
    }
    assert!(all.iter().all(|l| l.0 <= l.1), "{all:?}");
    // No busy machine makes it carry more.
    let (low, middle, _) = all[all.len() / 2];
    assert!((500_000..=4_000_000).contains(&low) && middle <= 4_400_000, "{all:?}");
    assert_eq!(lines(&newest).last(), all.last());
    let rows = rows(&s.out());
    let stream = rows.iter().rfind(|r| r["event"] == "stream").expect("a row");
    assert_eq!(stream["usable_low_bps"].as_u64(), all.last().map(|l| l.0));
    assert_eq!(stream["usable_middle_bps"].as_u64(), all.last().map(|l| l.1));
    assert!(rows.iter().any(|r| r["event"] == "stats" && r["capacity_bps"]["avg"].as_f64() > Some(1e6)), "by path");
}

#[test]
fn a_program_that_does_not_read_or_ends_stops_nothing() {
    for (program, said) in [("exec sleep 600", 0), ("exit 3", 1), ("/no/such/program", 1)] {
        let (dir, out) = scratch();
        let s = sent(&dir, "30mbit", "3s", &["--on-rate", program]);
        assert_eq!(s.code(), Some(0), "{program}: {}", s.stderr);
        let warnings = s.stderr.lines().filter(|l| l.contains("--on-rate") && l.contains("started again")).count();
        assert_eq!(warnings, said, "{program}: {}", s.stderr);
        let bytes = std::fs::metadata(&out).map_or(0, |m| m.len());
        assert!(bytes > 1_000_000, "{program}: {bytes} bytes came");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let e = run(&["send", CLIP, "anabranch://127.0.0.1:9", "--rate-file", "/no/such/folder/rate"]);
    e.check(2, Some("/no/such/folder/rate"));
}
