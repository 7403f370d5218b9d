//! SCTP on raw IP, chosen by flag or by address; the right it needs is named.

mod common;

use common::*;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// False, and said, without the right to raw sockets.
fn allowed(name: &str) -> bool {
    // A listener that may open its socket does not end by itself.
    let mut r = start(&["recv", "anabranch://127.0.0.1:7100?transport=raw", "/dev/null", "-q"]);
    sleep(Duration::from_millis(300));
    let allowed = !r.is_over();
    if !allowed {
        eprintln!("SKIPPED {name}: {}", r.wait().stderr.trim());
    }
    allowed
}

#[test]
fn a_file_byte_for_byte() {
    if !allowed("raw_ip a_file_byte_for_byte") {
        return;
    }
    let (dir, out) = scratch();
    let content = noise(2_000_001, 1);
    let input = file(&dir, "in", &content);
    let mut r = start(&["recv", "anabranch://:7101?transport=raw", out.to_str().unwrap(), "-q"]);
    sleep(Duration::from_millis(300));
    assert!(!r.is_over());
    let again = start(&["recv", "anabranch://:7101", "/dev/null", "--transport", "raw"]).wait();
    again.check(1, Some("SCTP port 7101 of 0.0.0.0 is in use"));
    let paths = ["--path", "127.0.0.1", "--path", "127.0.0.2"];
    let s = run(&[&["send", &input, "anabranch://127.0.0.1:7101", "--transport", "raw"][..], &paths].concat());
    s.check(0, None);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &content);
}

#[test]
fn the_missing_right_is_named() {
    let without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"];
    if !Command::new(without[0]).args(&without[1..]).arg("true").status().is_ok_and(|s| s.success()) {
        eprintln!("SKIPPED raw_ip the_missing_right_is_named: setpriv is missing or may not drop rights here");
        return;
    }
    let (dir, _) = scratch();
    let input = file(&dir, "in", b"x");
    let needle = "sending SCTP on raw IP needs the right CAP_NET_RAW: run as root, or give it to the program by `setcap \
                  cap_net_raw+ep PROGRAM`";
    start_in(&without, &["send", &input, "anabranch://127.0.0.1:7102?transport=raw"]).wait().check(1, Some(needle));
    start_in(&without, &["recv", "anabranch://:7102?transport=raw", "/dev/null"]).wait().check(1, Some(needle));
}
