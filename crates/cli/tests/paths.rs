//! Several paths, through the emulator.

mod common;

use common::*;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Two relays in front of `to`.
fn emulate(to: u16, words: [&str; 2]) -> (Run, [u16; 2]) {
    let ports = [port(), port()];
    let path = |i: usize| format!("name p{i} listen 127.0.0.1:{} to 127.0.0.1:{to} {}", ports[i], words[i]);
    let e = start(&["emulate", "--path", &path(0), "--path", &path(1), "-J", "--stats-interval", "200ms"]);
    ports.iter().for_each(|p| listening(*p));
    (e, ports)
}

fn path(local: &str, relay: u16) -> String {
    format!("{local},via=127.0.0.1:{relay}")
}

#[test]
fn a_transport_stream_over_two_relays() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let (emulator, relays) = emulate(port, ["rate 8mbit delay 20ms down.delay 5ms", "rate 8mbit delay 30ms"]);
    let (a, b) = (path("127.0.0.1", relays[0]), path("127.0.0.2", relays[1]));
    let to = format!("anabranch://127.0.0.1:{port}?latency=1000");
    let s = run(&["send", CLIP, &to, "--path", &a, "--path", &b, "-J"]);
    s.check(0, None);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &clip());
    let totals = rows(&s.out()).pop().unwrap();
    let paths = totals["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    for p in paths {
        assert!(p["data_sent"].as_u64().unwrap() > 200_000, "both paths carry their part: {totals}");
    }
    emulator.signal("INT");
    let e = emulator.wait();
    e.check(130, None);
    let totals: Vec<_> = rows(&e.out()).into_iter().filter(|r| r["event"] == "total").collect();
    assert_eq!(totals.len(), 4);
    assert!(totals.iter().filter(|r| r["direction"] == "up").all(|r| r["bytes"].as_u64().unwrap() > 200_000));
    assert_eq!(rows(&e.out()).last().unwrap()["event"], "machine");
}

#[test]
fn a_file_over_lossy_paths() {
    let (dir, out) = scratch();
    let content = noise(1_500_000, 11);
    let input = file(&dir, "in", &content);
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let lossy = "rate 10mbit delay 10ms loss 2%";
    let (_emulator, relays) = emulate(port, [lossy, lossy]);
    let (a, b) = (path("127.0.0.1", relays[0]), path("127.0.0.2", relays[1]));
    run(&["send", &input, &format!("127.0.0.1:{port}"), "--path", &a, "--path", &b]).check(0, None);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &content);
}

#[test]
fn a_path_that_is_cut_is_left_and_the_reason_given() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    // Either could carry it all; the quicker one does until it dies.
    let (_emulator, relays) = emulate(port, ["rate 20mbit delay 50ms", "rate 20mbit delay 10ms at 2500ms down"]);
    let (a, b) = (path("127.0.0.1", relays[0]), path("127.0.0.2", relays[1]));
    let to = format!("anabranch://127.0.0.1:{port}?latency=1500");
    let s = run(&["send", CLIP, &to, "--path", &a, "--path", &b, "-J", "--stats-interval", "250ms"]);
    s.check(0, None);
    r.wait().check(0, None);
    let rows = rows(&s.out());
    let left: Vec<_> =
        rows.iter().filter(|r| r["event"] == "path" && r["path"] == 1 && r["from"] == "active").collect();
    assert!(!left.is_empty(), "path 1 was left: {}", s.out());
    let known: BTreeSet<&str> = ["silent", "timeout", "heartbeat-lost"].into();
    assert!(left.iter().all(|r| known.contains(r["reason"].as_str().unwrap())), "{left:?}");
    let taken = rows.iter().find(|r| r["event"] == "taken_over").expect("taken over");
    assert!(taken["after_ms"].as_f64().unwrap() < 3_000.0, "{taken}");
}

/// Waits until the statistics tell that a path has come to this state.
#[track_caller]
fn came_to(stats: &std::path::Path, path: u8, state: &str) {
    let until = Instant::now() + LIMIT;
    loop {
        let text = std::fs::read_to_string(stats).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let last = rows(whole).into_iter().rev().find(|r| r["event"] == "path" && r["path"] == path);
        if last.is_some_and(|r| r["to"] == state) {
            return;
        }
        assert!(Instant::now() < until, "path {path} does not come to {state}: {text}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn paths_are_read_anew_from_the_file() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let (_emulator, relays) = emulate(port, ["rate 20mbit delay 5ms", "rate 20mbit delay 5ms"]);
    let (a, b) = (path("127.0.0.1", relays[0]), path("127.0.0.2", relays[1]));
    let stats = dir.path().join("stats");
    let flags = |path: &str| {
        let text = format!(
            "path = [\"{path}\"]\nstats = \"json\"\nstats_interval = \"100ms\"\nstats_file = \"{}\"\n",
            stats.display()
        );
        file(&dir, "c.toml", text.as_bytes())
    };
    let config = flags(&a);
    let mut s = start_with(&["send", "-", &format!("127.0.0.1:{port}"), "--config", &config], Stdio::piped());
    let mut pipe = s.stdin();
    let content = noise(600_000, 4);
    pipe.write_all(&content[..300_000]).unwrap();
    grown(&out, 300_000);

    file(&dir, "c.toml", b"path = []");
    s.signal("HUP");
    s.says("names no path; the paths stay as they are");
    flags(&b);
    s.signal("HUP");
    came_to(&stats, 1, "active");
    came_to(&stats, 0, "inactive");
    pipe.write_all(&content[300_000..]).unwrap();
    drop(pipe);
    let s = s.wait();
    assert_eq!(s.code(), Some(0), "{}", s.stderr);
    assert_eq!(s.stderr.lines().count(), 1, "{}", s.stderr);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &content);
    let totals = rows(&std::fs::read_to_string(&stats).unwrap()).pop().unwrap();
    assert!(totals["paths"][1]["data_sent"].as_u64().unwrap() >= 300_000, "{totals}");
}
