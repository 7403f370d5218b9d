//! Ctrl-C on either side ends both cleanly.

mod common;

use common::*;
use std::time::{Duration, Instant};

fn pair(out: &std::path::Path, more: &[&str]) -> (Run, Run) {
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = start(&[&["send", CLIP, &format!("anabranch://127.0.0.1:{port}?latency=400")], more].concat());
    grown(out, 200_000);
    (s, r)
}

#[test]
fn at_the_sender() {
    let (_dir, out) = scratch();
    let (s, r) = pair(&out, &[]);
    s.signal("INT");
    let began = Instant::now();
    let (s, r) = (s.wait(), r.wait());
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    s.check(130, None);
    r.check(0, None);
    assert!(r.out().contains("recv: interrupted by the sender"), "{}", r.out());
    let got = std::fs::read(&out).unwrap();
    assert!(s.out().contains("sent ") && s.out().contains("interrupted"), "{}", s.out());
    assert!(r.out().contains(&format!("{} bytes", got.len())), "{}", r.out());
    assert!(s.out().contains(&format!("{} bytes", got.len())), "what was sent before came through: {}", s.out());
    same(&got, &clip()[..got.len()]);
}

#[test]
fn at_the_receiver() {
    let (_dir, out) = scratch();
    let (s, r) = pair(&out, &["--once"]);
    r.signal("TERM");
    let began = Instant::now();
    let (s, r) = (s.wait(), r.wait());
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    s.check(0, None);
    r.check(130, None);
    assert!(s.out().contains("ended by the peer (interrupted)"), "{}", s.out());
    let got = std::fs::read(&out).unwrap();
    same(&got, &clip()[..got.len()]);
}

#[test]
fn a_terminal_that_goes_is_an_interrupt() {
    let (_dir, out) = scratch();
    let (s, r) = pair(&out, &[]);
    s.signal("HUP");
    s.wait().check(130, None);
    r.wait().check(0, None);
}

#[test]
fn before_anything_began() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    r.signal("INT");
    r.wait().check(130, None);
    let s = start(&["send", CLIP, &format!("anabranch://127.0.0.1:{port}")]);
    std::thread::sleep(Duration::from_millis(500));
    s.signal("INT");
    s.wait().check(130, None);
}

#[test]
fn a_sender_without_input_yet() {
    let (_dir, out) = scratch();
    let (port, input) = (port(), port());
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = start(&["send", &format!("udp://127.0.0.1:{input}"), &format!("anabranch://127.0.0.1:{port}")]);
    listening(input);
    std::thread::sleep(Duration::from_millis(500));
    s.signal("INT");
    s.wait().check(130, None);
    r.signal("INT");
    r.wait().check(130, None);
}

#[test]
fn time_is_over() {
    let (_dir, out) = scratch();
    let (s, r) = pair(&out, &["--duration", "2500ms"]);
    let s = s.wait();
    s.check(0, None);
    assert!(s.out().contains("time is over"), "{}", s.out());
    r.wait().check(0, None);
    let got = std::fs::read(&out).unwrap();
    assert!(got.len() < clip().len());
    same(&got, &clip()[..got.len()]);
}

/// A file through a slow link; returns once some of it has arrived. What is in the send buffer by then (3 MB) would need
/// longer than the patience of both ends (6 s) to pass it.
fn slow_file(out: &std::path::Path, dir: &tempfile::TempDir) -> (Run, Run, Run) {
    let (port, relay) = (port(), port());
    let path = format!("listen 127.0.0.1:{relay} to 127.0.0.1:{port} rate 3mbit delay 10ms");
    let emulator = start(&["emulate", "--stats", "none", "--path", &path]);
    listening(relay);
    let input = file(dir, "in", &noise(20_000_000, 3));
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = start(&["send", &input, &format!("127.0.0.1:{relay}"), "--mode", "file"]);
    grown(out, 100_000);
    (s, r, emulator)
}

#[test]
fn a_file_cut_short_by_its_sender_is_no_success() {
    let (dir, out) = scratch();
    let (s, r, _emulator) = slow_file(&out, &dir);
    s.signal("INT");
    s.wait().check(130, None);
    let r = r.wait();
    let got = std::fs::metadata(&out).unwrap().len();
    r.check(1, Some(&format!("the sender was interrupted; the {got} bytes received are in")));
    assert!(r.out().contains("recv: the sender was interrupted"), "{}", r.out());
}

#[test]
fn a_file_cut_short_by_its_receiver_is_no_success() {
    let (dir, out) = scratch();
    let (s, r, _emulator) = slow_file(&out, &dir);
    r.signal("INT");
    s.wait().check(1, Some("ended the session before the whole file had come (interrupted)"));
    r.wait().check(130, None);
}

#[test]
fn a_file_cut_short_by_time_is_no_success() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let to = format!("127.0.0.1:{port}");
    let args = ["send", "-", &to, "--mode", "file", "--duration", "700ms"];
    let mut s = start_with(&args, std::process::Stdio::piped());
    let mut pipe = s.stdin();
    std::io::Write::write_all(&mut pipe, &noise(50_000, 8)).unwrap();
    s.wait().check(1, Some("the time is over before the whole file has been sent"));
    r.wait().check(1, Some("the 50000 bytes received are in"));
    drop(pipe);
}

/// Whatever waits, an end comes within two seconds; this much more for a machine that is busy.
const PROMPT: Duration = Duration::from_millis(3_500);

#[test]
fn an_output_that_is_not_read_holds_nothing_up() {
    let port = port();
    let (reader, writer) = std::io::pipe().unwrap();
    let listen = format!("anabranch://127.0.0.1:{port}");
    let mut r = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["recv", &listen, "-", "-q"])
        .stdin(std::process::Stdio::null())
        .stdout(writer)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    listening(port);
    let (dir, _) = scratch();
    let input = file(&dir, "in", &noise(8_000_000, 5));
    let s = start(&["send", &input, &format!("127.0.0.1:{port}"), "--mode", "file"]);
    std::thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let id = r.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    let code = r.wait().unwrap().code();
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    assert_eq!(code, Some(130));
    assert_eq!(s.wait().code(), Some(1), "the sender learns of it");
    drop(reader);
}

#[test]
fn a_peer_that_does_not_answer_holds_nothing_up() {
    let (_dir, out) = scratch();
    for which in ["send", "recv"] {
        let (s, r) = pair(&out, &[]);
        let (ends, stopped) = if which == "send" { (s, r) } else { (r, s) };
        stopped.signal("STOP");
        std::thread::sleep(Duration::from_millis(300));
        ends.signal("TERM");
        let began = Instant::now();
        let ended = ends.wait();
        assert!(began.elapsed() < PROMPT, "{which}: {:?}", began.elapsed());
        ended.check(130, None);
        stopped.signal("CONT");
        std::fs::remove_file(&out).unwrap();
    }
}
