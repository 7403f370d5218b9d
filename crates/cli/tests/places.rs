//! Who may send to a receiver, and what that does to its output.

mod common;

use common::*;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A sender whose encoder has not begun, and the port for the encoder.
fn waiting(port: u16, more: &[&str]) -> (Run, u16) {
    let input = common::port();
    let (from, to) = (format!("udp://127.0.0.1:{input}"), format!("127.0.0.1:{port}"));
    let s = start(&[&["send", &from, &to, "--duration", "20s"], more].concat());
    listening(input);
    // Until it is connected, which nothing shows outside.
    sleep(Duration::from_millis(500));
    (s, input)
}

#[test]
fn the_old_output_stays_until_a_sender_is_let_in() {
    let (dir, out) = scratch();
    let old = noise(100_000, 1);
    std::fs::write(&out, &old).unwrap();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    r.signal("INT");
    r.wait().check(130, None);
    same(&std::fs::read(&out).unwrap(), &old);

    let port = common::port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let to = format!("127.0.0.1:{port}");
    run(&["tunnel", "--listen", &format!("udp://127.0.0.1:{}", common::port()), &to, "--once"])
        .check(1, Some("this is"));
    run(&["send", out.to_str().unwrap(), &to]).check(1, Some("its output is the very file that is to be sent"));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    let same_file = std::fs::File::open(&link).unwrap();
    start_with(&["send", "-", &to], same_file.into()).wait().check(1, Some("the very file"));
    same(&std::fs::read(&out).unwrap(), &old);

    run(&["send", &file(&dir, "in", b"new"), &to]).check(0, None);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), b"new");
}

#[test]
fn a_sender_that_waits_for_its_input_holds_the_place() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let (s, encoder) = waiting(port, &[]);
    let input = file(&dir, "in", b"x");
    run(&["send", &input, &format!("127.0.0.1:{port}")]).check(1, Some("busy with another peer"));
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    source.send_to(b"hello", ("127.0.0.1", encoder)).unwrap();
    grown(&out, 5);
    s.signal("INT");
    s.wait().check(130, None);
    r.wait().check(0, None);
}

#[test]
fn a_sender_that_waits_is_told_when_the_receiver_ends() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let (s, _) = waiting(port, &["--once"]);
    r.signal("INT");
    r.wait().check(130, None);
    s.wait().check(1, Some("refuses: it has ended"));
}

#[test]
fn a_sender_that_waits_notices_that_the_receiver_is_gone() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let (s, _) = waiting(port, &["--peer-timeout", "2s", "--once"]);
    r.signal("KILL");
    let began = Instant::now();
    s.wait().check(1, Some("is gone"));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn a_sender_that_was_killed_may_begin_again() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep", "--peer-timeout", "60s"]);
    let to = format!("127.0.0.1:{port}");
    let mut first = start_with(&["send", "-", &to], Stdio::piped());
    let mut pipe = first.stdin();
    pipe.write_all(&noise(10_000, 1)).unwrap();
    grown(&out, 10_000);
    first.signal("KILL");
    run(&["send", &file(&dir, "in", &noise(10_000, 2)), &to]).check(0, None);
    r.signal("INT");
    let r = r.wait();
    assert_eq!(r.code(), Some(130));
    assert!(r.stderr.contains("the 10000 bytes received are in"), "{}", r.stderr);
    same(&std::fs::read(&out).unwrap(), &[noise(10_000, 1), noise(10_000, 2)].concat());
}
