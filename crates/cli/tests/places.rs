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
    // Another one that has something to send waits for up to three seconds, in which the first may begin.
    let other = start(&["send", &file(&dir, "in", b"x"), &format!("127.0.0.1:{port}")]);
    sleep(Duration::from_millis(700));
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    source.send_to(b"hello", ("127.0.0.1", encoder)).unwrap();
    grown(&out, 5);
    other.wait().check(1, Some("busy with another peer"));
    s.signal("INT");
    s.wait().check(130, None);
    r.wait().check(0, None);
}

#[test]
fn one_that_has_something_to_send_is_served_after_three_seconds() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    let (s, _) = waiting(port, &[]);
    let began = Instant::now();
    run(&["send", &file(&dir, "in", b"x"), &format!("127.0.0.1:{port}")]).check(0, None);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    same(&std::fs::read(&out).unwrap(), b"x");
    s.signal("INT");
    s.wait().check(130, None);
    r.signal("INT");
    r.wait().check(130, None);
}

#[test]
fn a_sender_that_waits_learns_when_the_receiver_ends() {
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

/// Writes `bytes` to a sender's standard input in datagram mode.
fn sender_of(port: u16, bytes: &[u8], more: &[&str]) -> (Run, std::process::ChildStdin) {
    let to = format!("127.0.0.1:{port}");
    let mut s = start_with(&[&["send", "-", &to, "--mode", "datagram", "--ordered"], more].concat(), Stdio::piped());
    let mut pipe = s.stdin();
    pipe.write_all(bytes).unwrap();
    (s, pipe)
}

#[test]
fn a_sender_that_is_killed_and_begins_again_at_once_has_its_place() {
    let (_dir, out) = scratch();
    let port = port();
    // Without --keep: a file waits for a sender that is lost.
    let r = stays(port, out.to_str().unwrap(), &["--peer-timeout", "60s"]);
    let (first, _pipe) = sender_of(port, &noise(10_000, 1), &[]);
    grown(&out, 10_000);
    first.signal("KILL");
    let began = Instant::now();
    let (second, pipe) = sender_of(port, &noise(10_000, 2), &[]);
    grown(&out, 20_000);
    // 200 ms of silence and two programs that start; three seconds are what one from elsewhere has to wait.
    let took = began.elapsed();
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    eprintln!("output flows again after {took:?}");
    drop(pipe);
    assert_eq!(second.wait().code(), Some(0));
    let r = r.wait();
    assert_eq!(r.code(), Some(0), "{}", r.stderr);
    assert_eq!(r.stderr.lines().count(), 1, "{}", r.stderr);
    assert!(r.stderr.contains("another sender goes on"), "{}", r.stderr);
    same(&std::fs::read(&out).unwrap(), &[noise(10_000, 1), noise(10_000, 2)].concat());
}

#[test]
fn a_file_waits_for_a_sender_that_was_interrupted() {
    let (_dir, out) = scratch();
    let port = port();
    let r = stays(port, out.to_str().unwrap(), &[]);
    let (first, _pipe) = sender_of(port, b"abc", &[]);
    grown(&out, 3);
    first.signal("INT");
    first.wait().check(130, None);
    r.says("was interrupted; waiting for the sender to come back");
    let (second, pipe) = sender_of(port, b"def", &[]);
    grown(&out, 6);
    drop(pipe);
    second.wait().check(0, None);
    assert_eq!(r.wait().code(), Some(0));
    same(&std::fs::read(&out).unwrap(), b"abcdef");
}

#[test]
fn a_live_output_goes_on_and_once_does_not() {
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    player.set_read_timeout(Some(LIMIT)).unwrap();
    let to = format!("udp://{}", player.local_addr().unwrap());
    let mut buffer = [0; 100];
    let port = port();
    let r = stays(port, &to, &[]);
    for text in [b"one".as_slice(), b"two"] {
        let (s, pipe) = sender_of(port, text, &[]);
        drop(pipe);
        s.wait().check(0, None);
        let n = player.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], text);
    }
    r.signal("INT");
    r.wait().check(130, None);
    let r = stays(port, &to, &["--once"]);
    let (s, pipe) = sender_of(port, b"one", &[]);
    drop(pipe);
    s.wait().check(0, None);
    r.wait().check(0, None);
}

#[test]
fn several_senders_each_with_an_output_of_its_own() {
    let (dir, _) = scratch();
    let out = |name: &str| dir.path().join(format!("out-{name}.ts"));
    let port = port();
    let pattern = out("{streamid}");
    let more = ["--max-senders", "2", "-J"];
    let r = stays(port, pattern.to_str().unwrap(), &more);
    let (a, pipe_a) = sender_of(port, b"from a", &["--streamid", "a"]);
    grown(&out("a"), 6);
    let (b, pipe_b) = sender_of(port, b"from b", &["--streamid", "b"]);
    grown(&out("b"), 6);
    let input = file(&dir, "in", b"x");
    let to = |query: &str| format!("anabranch://127.0.0.1:{port}{query}");
    // Its place is that of one who sends.
    run(&["send", &input, &to("?streamid=c"), "--mode", "datagram", "--ordered", "--once"])
        .check(1, Some("busy with another peer"));
    run(&["send", &input, &to("?streamid=a"), "--mode", "datagram", "--ordered", "--once"])
        .check(1, Some("stream id a is there already"));
    run(&["send", &input, &to(""), "--mode", "datagram", "--ordered", "--once"]).check(1, Some("it wants a stream id"));
    drop((pipe_a, pipe_b));
    a.wait().check(0, None);
    b.wait().check(0, None);
    // Both places are free, and the output of one who comes back goes on.
    let (a, pipe) = sender_of(port, b", again", &["--streamid", "a"]);
    grown(&out("a"), 13);
    drop(pipe);
    a.wait().check(0, None);
    r.signal("INT");
    let r = r.wait();
    r.check(130, None);
    same(&std::fs::read(out("a")).unwrap(), b"from a, again");
    same(&std::fs::read(out("b")).unwrap(), b"from b");
    let named = rows(&r.out());
    assert!(named.iter().all(|row| row["streamid"] == "a" || row["streamid"] == "b"), "{}", r.out());
    assert!(named.iter().any(|row| row["streamid"] == "b"));
}

#[test]
fn only_streams_that_are_waited_for() {
    let (dir, out) = scratch();
    let port = port();
    let listen = format!("anabranch://127.0.0.1:{port}?streamid=good&mode=datagram");
    let r = start(&["recv", &listen, out.to_str().unwrap()]);
    listening(port);
    let input = file(&dir, "in", b"x");
    let to = |query: &str| format!("anabranch://127.0.0.1:{port}{query}");
    run(&["send", &input, &to("?streamid=bad")]).check(1, Some("does not wait for the stream id bad"));
    run(&["send", &input, &to("")]).check(1, Some("it wants a stream id"));
    run(&["send", &input, &to("?streamid=good"), "--mode", "file"]).check(1, Some("it takes mode datagram only"));
    let (s, pipe) = sender_of(port, b"x", &["--streamid", "good"]);
    drop(pipe);
    s.wait().check(0, None);
    assert_eq!(r.wait().code(), Some(0));
}

#[test]
fn mistakes_about_several_senders() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x").to_str().unwrap().to_owned();
    for (args, needle) in [
        (vec!["recv", ":1", &file, "--max-senders", "2"], "several senders need an output each: write {streamid}"),
        (vec!["recv", ":1", "udp://127.0.0.1:{streamid}", "--max-senders", "2"], "must not choose where datagrams go"),
        (vec!["recv", ":1?streamid=a,b", "udp://127.0.0.1:{streamid}"], "is no host:port"),
        (vec!["recv", ":1", &file, "--from", "10.0.0.0/33"], "is no network"),
        (vec!["recv", ":1", &file, "--once", "--keep"], "cannot be used with"),
        (vec!["send", &file, ":1", "--streamid", "../x"], "is no stream id"),
    ] {
        run(&args).check(2, Some(needle));
    }
}

#[test]
fn networks_that_are_not_named_are_not_listened_to() {
    let (dir, out) = scratch();
    let port = port();
    let input = file(&dir, "in", b"x");
    let to = format!("127.0.0.1:{port}");
    let r = receiver(port, out.to_str().unwrap(), &["--from", "192.0.2.0/24,127.0.0.2"]);
    run(&["send", &input, &to, "--mode", "file", "--connect-timeout", "1s"]).check(1, Some("check the address"));
    run(&["send", &input, &to, "--mode", "file", "--path", "127.0.0.2"]).check(0, None);
    r.wait().check(0, None);
}
