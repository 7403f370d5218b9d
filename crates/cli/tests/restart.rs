//! It comes back by itself: either end restarts, is late, hangs, or all paths are dead for a while.

mod common;

use common::*;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// What measures how whole a stream is runs alone: a busy machine damages streams too.
static ALONE: RwLock<()> = RwLock::new(());

fn beside_others() -> RwLockReadGuard<'static, ()> {
    ALONE.read().unwrap_or_else(PoisonError::into_inner)
}

/// How long the clip lasts.
const CLIP_LASTS: Duration = Duration::from_millis(3_840);

/// An encoder: the clip again and again, at its pace, to a port of 127.0.0.1.
struct Encoder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Encoder {
    fn start(port: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn(move || {
            let (socket, clip) = (UdpSocket::bind("127.0.0.1:0").unwrap(), clip());
            let pieces: Vec<_> = clip.chunks(7 * 188).collect();
            let (began, each) = (Instant::now(), CLIP_LASTS / pieces.len() as u32);
            for (i, piece) in pieces.iter().cycle().enumerate() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(early) = (began + each * i as u32).checked_duration_since(Instant::now()) {
                    sleep(early);
                }
                // The port may be closed.
                let _ = socket.send_to(piece, ("127.0.0.1", port));
            }
        });
        Encoder { stop, thread: Some(thread) }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A receiver that keeps its place, with its statistics in a file.
fn keeper(port: u16, out: &Path, stats: &Path) -> Run {
    let stats = stats.to_str().unwrap();
    receiver(port, out.to_str().unwrap(), &["--keep", "-J", "--stats-interval", "100ms", "--stats-file", stats])
}

/// What a statistics file holds so far.
fn so_far(stats: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(stats).unwrap_or_default();
    rows(text.rfind('\n').map_or("", |end| &text[..end]))
}

/// The newest counters of the stream.
fn stream(stats: &Path) -> Option<Value> {
    so_far(stats).into_iter().rev().find(|r| r["event"] == "stream")
}

/// Waits until a stream has come to so many frames.
#[track_caller]
fn frames(stats: &Path, at_least: u64) {
    let until = Instant::now() + LIMIT;
    while stream(stats).is_none_or(|s| s["frames"].as_u64().unwrap() < at_least) {
        assert!(Instant::now() < until, "no {at_least} frames: {:?}", stream(stats));
        sleep(Duration::from_millis(20));
    }
}

/// A sender of what an encoder sends to a port, and that port.
fn live(to: &str, stats: &Path, more: &[&str]) -> (Run, u16) {
    let input = port();
    let from = format!("udp://127.0.0.1:{input}");
    let args = ["send", &from, to, "-J", "--stats-interval", "100ms", "--stats-file", stats.to_str().unwrap()];
    let s = start(&[&args[..], more].concat());
    listening(input);
    (s, input)
}

/// The sender's totals, when it was interrupted, and what it said.
#[track_caller]
fn totals(s: Run, stats: &Path) -> (Value, String) {
    s.signal("INT");
    let s = s.wait();
    assert_eq!(s.code(), Some(130), "{}", s.stderr);
    let last = so_far(stats).pop().unwrap();
    assert_eq!(last["event"], "totals", "{last}");
    (last, s.stderr)
}

#[test]
fn a_recording_waits_for_its_receiver_and_begins_at_its_beginning() {
    let _beside = beside_others();
    let (_dir, out) = scratch();
    let port = port();
    let s = start(&["send", CLIP, &format!("127.0.0.1:{port}"), "--latency", "2s"]);
    s.says("does not answer; trying again until it works");
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = s.wait();
    assert_eq!(s.code(), Some(0), "{}", s.stderr);
    let lines: Vec<_> = s.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains("connected with 127.0.0.1"), "{}", s.stderr);
    r.signal("INT");
    r.wait();
    same(&std::fs::read(&out).unwrap(), &clip());
}

#[test]
fn a_late_receiver_gets_what_is_fresh() {
    let _beside = beside_others();
    let (dir, out) = scratch();
    let (port, stats) = (port(), ["s", "r"].map(|n| dir.path().join(n)));
    let (s, input) = live(&format!("anabranch://127.0.0.1:{port}?latency=800"), &stats[0], &[]);
    let _encoder = Encoder::start(input);
    sleep(Duration::from_secs(4));
    let r = keeper(port, &out, &stats[1]);
    frames(&stats[1], 75);
    let (totals, _) = totals(s, &stats[0]);
    let (sent, got) = (&totals["stream"], stream(&stats[1]).unwrap());
    // About 4 s of 4.6 Mbit/s, less what is held: 0.8 s.
    let per_second = clip().len() as f64 / CLIP_LASTS.as_secs_f64();
    let dropped = sent["dropped_bytes"].as_f64().unwrap() / per_second;
    assert!((2.0..8.0).contains(&dropped), "{dropped} s were dropped: {totals}");
    // The cut goes through a frame at most.
    assert!(got["frames_unusable"].as_u64().unwrap() <= 10, "{got}");
    drop(r);
}

/// Ends a receiver by a signal, waits, starts another one: the picture must be back.
#[track_caller]
fn receiver_restarts(signal: &str, pause: Duration) {
    let (dir, out) = scratch();
    let port = port();
    let stats = ["s", "r", "q"].map(|n| dir.path().join(n));
    let r = keeper(port, &out, &stats[1]);
    let (s, input) = live(&format!("anabranch://127.0.0.1:{port}?latency=500"), &stats[0], &[]);
    let _encoder = Encoder::start(input);
    frames(&stats[1], 25);
    r.signal(signal);
    r.wait();
    sleep(pause);
    let r = keeper(port, &out, &stats[2]);
    let began = Instant::now();
    frames(&stats[2], 1);
    let back = began.elapsed();
    frames(&stats[2], 50);
    let (totals, said) = totals(s, &stats[0]);
    println!("{signal}: back after {back:?}; {}", totals["stream"]);
    // Half a second of latency, up to a second until the next try, and a busy machine.
    assert!(back < Duration::from_secs(6), "{back:?}");
    assert_eq!(totals["stream"]["reconnects"], 1, "{totals}");
    let links: Vec<_> = so_far(&stats[0]).into_iter().filter(|r| r["event"] == "link").collect();
    let states: Vec<_> = links.iter().map(|r| r["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["lost", "connected"], "{links:?}");
    // A line when it was lost, perhaps one when there is no answer, one when it is back.
    assert!((2..=4).contains(&said.lines().count()), "{said}");
    assert!(said.lines().last().unwrap().contains("connected with"), "{said}");
    drop(r);
}

#[test]
fn a_receiver_that_is_stopped_and_started_again() {
    let _beside = beside_others();
    receiver_restarts("TERM", Duration::from_millis(300));
}

#[test]
fn a_receiver_that_is_killed_and_started_again() {
    let _beside = beside_others();
    receiver_restarts("KILL", Duration::from_millis(100));
}

#[test]
fn a_receiver_that_is_away_for_a_while() {
    let _beside = beside_others();
    receiver_restarts("INT", Duration::from_secs(5));
}

#[test]
fn a_receiver_that_hangs_and_goes_on() {
    let _beside = beside_others();
    let (dir, out) = scratch();
    let (port, stats) = (port(), ["s", "r"].map(|n| dir.path().join(n)));
    let r = keeper(port, &out, &stats[1]);
    let (s, input) = live(&format!("anabranch://127.0.0.1:{port}?latency=500"), &stats[0], &[]);
    let _encoder = Encoder::start(input);
    frames(&stats[1], 25);
    r.signal("STOP");
    sleep(Duration::from_secs(4));
    r.signal("CONT");
    let hung = stream(&stats[1]).unwrap()["frames"].as_u64().unwrap();
    frames(&stats[1], hung + 200);
    let (totals, _) = totals(s, &stats[0]);
    assert_eq!(totals["stream"]["reconnects"], 0, "the session survives: {totals}");
    drop(r);
}

/// All paths are dead for longer than any timer of SCTP waits: the session is still there, and the stream whole soon after.
#[test]
fn all_paths_are_dead_for_a_while() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let (dir, out) = scratch();
    let (port, relays) = (port(), [port(), port()]);
    let stats = ["s", "r"].map(|n| dir.path().join(n));
    let r = keeper(port, &out, &stats[1]);
    let relay = |i: usize| {
        format!("listen 127.0.0.1:{} to 127.0.0.1:{port} rate 20mbit delay 20ms at 5s down at 25s up", relays[i])
    };
    let began = Instant::now();
    let _emulator = start(&["emulate", "--stats", "none", "--path", &relay(0), "--path", &relay(1)]);
    relays.iter().for_each(|p| listening(*p));
    let path = |i: usize| format!("127.0.0.{},via=127.0.0.1:{}", i + 1, relays[i]);
    let to = format!("anabranch://127.0.0.1:{port}?latency=500");
    let (s, input) = live(&to, &stats[0], &["--path", &path(0), "--path", &path(1)]);
    let _encoder = Encoder::start(input);
    sleep((began + Duration::from_secs(24)).saturating_duration_since(Instant::now()));
    let dark = stream(&stats[1]).unwrap();
    // The emulator's clock began a little later than ours.
    sleep((began + Duration::from_secs(29)).saturating_duration_since(Instant::now()));
    let whole = stream(&stats[1]).unwrap();
    sleep(Duration::from_secs(4));
    let after = stream(&stats[1]).unwrap();
    let (totals, _) = totals(s, &stats[0]);
    println!("in the dark: {dark}\n4 s later: {whole}\nat the end: {after}\nsender: {}", totals["stream"]);
    assert_eq!(totals["stream"]["reconnects"], 0, "the association survives: {totals}");
    assert!(after["frames"].as_u64().unwrap() > whole["frames"].as_u64().unwrap() + 60, "it flows: {after}");
    let since = |k: &str| after[k].as_u64().unwrap() - whole[k].as_u64().unwrap();
    assert!(since("frames_unusable") * 10 <= since("frames"), "and is whole again");
    drop(r);
}

#[test]
fn a_busy_receiver_is_asked_until_it_is_free() {
    let _beside = beside_others();
    let (dir, out) = scratch();
    let port = port();
    let stats = ["s", "r"].map(|n| dir.path().join(n));
    let r = keeper(port, &out, &stats[1]);
    let first = start(&["send", CLIP, &format!("anabranch://127.0.0.1:{port}?latency=500")]);
    grown(&out, 100_000);
    let second = start(&["send", CLIP, &format!("anabranch://127.0.0.1:{port}?latency=500"), "--latency", "2s"]);
    second.says("busy with another peer; trying again until it works");
    first.wait().check(0, None);
    let second = second.wait();
    assert_eq!(second.code(), Some(0), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 2, "each change once: {}", second.stderr);
    r.signal("INT");
    r.wait();
    same(&std::fs::read(&out).unwrap(), &[clip(), clip()].concat());
}

#[test]
fn a_time_that_is_over_without_a_receiver_is_no_success() {
    let _beside = beside_others();
    let to = format!("127.0.0.1:{}", port());
    let e = run(&["send", &format!("udp://127.0.0.1:{}", port()), &to, "--duration", "1s"]);
    e.check(1, Some("the time is over, and there is no connection"));
    let s = start(&["send", CLIP, &to]);
    sleep(Duration::from_millis(500));
    s.signal("INT");
    s.wait().check(130, None);
    let e = run(&["send", CLIP, &to, "--once", "--connect-timeout", "700ms"]);
    e.check(1, Some("does not answer within 0.7 s"));
}

#[test]
fn a_tunnel_comes_back() {
    let _beside = beside_others();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("udp://{}", server.local_addr().unwrap());
    spawn(move || {
        let mut buffer = vec![0; 2_000];
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..n], from);
        }
    });
    let (port, entry) = (port(), port());
    let far = || {
        let far = start(&["tunnel", "--accept", &format!("anabranch://127.0.0.1:{port}"), "--forward", &target]);
        listening(port);
        far
    };
    let enter = start(&["tunnel", "--listen", &format!("udp://127.0.0.1:{entry}"), &format!("127.0.0.1:{port}"), "-J"]);
    listening(entry);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", entry)).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    for signal in ["INT", "KILL"] {
        let run = far();
        let until = Instant::now() + Duration::from_secs(20);
        let mut buffer = [0; 100];
        loop {
            client.send(b"hello").unwrap();
            if client.recv(&mut buffer).is_ok() {
                break;
            }
            assert!(Instant::now() < until, "no answer before {signal}");
        }
        run.signal(signal);
        run.wait();
        sleep(Duration::from_millis(500));
        while client.recv(&mut buffer).is_ok() {}
    }
    enter.signal("INT");
    let e = enter.wait();
    assert_eq!(e.code(), Some(130), "{}", e.stderr);
    assert_eq!(rows(&e.out()).pop().unwrap()["stream"]["reconnects"], 1, "{}", e.stderr);
}
