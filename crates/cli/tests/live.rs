//! A live encoder, two networks of which one is cut and comes back, a decoder.

mod common;

use common::*;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Waits for the encoder, then ends the sender as a user would. Returns the sender's rows.
fn finish(mut encoder: std::process::Child, sender: Run, receiver: Run) -> Vec<serde_json::Value> {
    assert!(encoder.wait().unwrap().success());
    sleep(Duration::from_millis(500));
    sender.signal("INT");
    let s = sender.wait();
    s.check(130, None);
    receiver.wait().check(0, None);
    rows(&s.out())
}

/// The path was left and used again, and taken over if it held anything; prints what the cut cost.
#[track_caller]
fn cut_and_back(rows: &[serde_json::Value], path: u8) {
    let states: Vec<_> = rows.iter().filter(|r| r["event"] == "path" && r["path"] == path).collect();
    assert!(states.iter().any(|r| r["from"] == "active"), "left: {states:?}");
    assert_eq!(states.last().unwrap()["to"], "active", "back: {states:?}");
    let received = &rows.last().unwrap()["received"];
    println!("{} of {} frames unusable", received["frames_unusable"], received["frames"]);
    for taken in rows.iter().filter(|r| r["event"] == "taken_over" && r["path"] == path) {
        println!("taken over after {} ms", taken["after_ms"]);
        assert!(taken["after_ms"].as_f64().unwrap() < 2_000.0, "{taken}");
    }
}

/// Whatever was usable can be decoded.
#[track_caller]
fn decodes(out: &std::path::Path, rows: &[serde_json::Value], frames: u64) {
    let received = &rows.last().unwrap()["received"];
    let unusable = received["frames_unusable"].as_u64().unwrap();
    let (decoded, complaints) = decoded(out);
    // An unusable frame spoils at most its group of 25.
    assert!(decoded + unusable * 25 >= frames && decoded > frames / 2, "{decoded} of {frames} frames: {complaints}");
    if unusable == 0 {
        assert_eq!((decoded, complaints.as_str()), (frames, ""));
    }
}

#[test]
fn two_loopback_addresses_through_the_emulator() {
    if !has("ffmpeg", "two_loopback_addresses_through_the_emulator") {
        return;
    }
    let (_dir, out) = scratch();
    let (port, input, relays) = (port(), port(), [port(), port()]);
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let relay = |i: usize, more: &str| format!("listen 127.0.0.1:{} to 127.0.0.1:{port} rate 6mbit {more}", relays[i]);
    let (wlan, umts) = (relay(0, "delay 20ms"), relay(1, "delay 40ms at 4s down at 7s up"));
    let _emulator = start(&["emulate", "--path", &wlan, "--path", &umts, "--stats", "none"]);
    relays.iter().for_each(|p| listening(*p));
    let path = |i: usize| format!("127.0.0.{},via=127.0.0.1:{}", i + 1, relays[i]);
    let (from, to) = (format!("udp://127.0.0.1:{input}"), format!("anabranch://127.0.0.1:{port}?latency=800"));
    let s = start(&["send", &from, &to, "--path", &path(0), "--path", &path(1), "-J"]);
    listening(input);
    let rows = finish(encoder(&[], input, 11), s, r);
    cut_and_back(&rows, 1);
    decodes(&out, &rows, 11 * 25);
}

/// Two namespaces with two links between them; they go with the test.
struct Namespaces([String; 2]);

impl Namespaces {
    fn new() -> Option<Self> {
        let names = ["send", "recv"].map(|n| format!("anb-{n}-{}", std::process::id()));
        let all = Namespaces(names);
        let [a, b] = &all.0;
        if !ip(&format!("netns add {a}")) || !ip(&format!("netns add {b}")) {
            return None;
        }
        let mut done = true;
        for i in 0..2 {
            done &= ip(&format!("link add va{i} netns {a} type veth peer name vb{i} netns {b}"))
                && ip(&format!("-n {a} addr add 10.9.{i}.1/24 dev va{i}"))
                && ip(&format!("-n {b} addr add 10.9.{i}.2/24 dev vb{i}"))
                && ip(&format!("-n {a} link set va{i} up"))
                && ip(&format!("-n {b} link set vb{i} up"));
        }
        // The receiver has one address; the sender's only default route leads over the first link.
        done &= ip(&format!("-n {a} link set lo up"))
            && ip(&format!("-n {b} link set lo up"))
            && ip(&format!("-n {b} addr add 10.10.0.1/32 dev lo"))
            && ip(&format!("-n {a} route add default via 10.9.0.2 dev va0"))
            && ip(&format!("-n {a} route add 10.10.0.1/32 via 10.9.1.2 dev va1 metric 500"));
        done.then_some(all)
    }

    fn sent_bytes(&self, interface: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/tx_bytes");
        let o = Command::new("ip").args(["netns", "exec", &self.0[0], "cat", &path]).output().expect("ip runs");
        String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(args: &str) -> bool {
    Command::new("ip").args(args.split(' ')).output().is_ok_and(|o| o.status.success())
}

#[test]
fn two_namespaces_two_interfaces_one_default_route() {
    const NAME: &str = "two_namespaces_two_interfaces_one_default_route";
    if !has("ffmpeg", NAME) {
        return;
    }
    let Some(spaces) = Namespaces::new() else {
        return eprintln!("SKIPPED {NAME}: no right to make network namespaces");
    };
    let (_dir, out) = scratch();
    let [a, b] = spaces.0.each_ref().map(|n| ["ip", "netns", "exec", n.as_str()]);
    let r = start_in(&b, &["recv", "anabranch://:9899", out.to_str().unwrap(), "--once"]);
    sleep(Duration::from_millis(500));
    let to = "anabranch://10.10.0.1:9899?latency=800";
    // Both count from the beginning: what leaves by one call has its headers counted once by the interface.
    let before = ["va0", "va1"].map(|i| spaces.sent_bytes(i));
    let s = start_in(&a, &["send", "udp://127.0.0.1:5001", to, "--path", "va0", "--path", "va1", "-J"]);
    sleep(Duration::from_millis(500));
    let encoder = encoder(&a, 5001, 11);
    sleep(Duration::from_secs(4));
    assert!(ip(&format!("-n {} link set vb1 down", spaces.0[1])));
    sleep(Duration::from_secs(3));
    assert!(ip(&format!("-n {} link set vb1 up", spaces.0[1])));
    let rows = finish(encoder, s, r);
    cut_and_back(&rows, 1);
    decodes(&out, &rows, 11 * 25);
    let sent = ["va0", "va1"].map(|i| spaces.sent_bytes(i));
    let sent = [sent[0] - before[0], sent[1] - before[1]];
    let paths = rows.last().unwrap()["paths"].as_array().unwrap();
    for (i, sent) in sent.iter().enumerate() {
        let counted = paths[i]["bytes_sent"].as_u64().unwrap();
        println!("va{i}: {sent} bytes by the interface, {counted} by us");
        // How the stream is shared is the scheduler's affair, and either link could carry all of it. Slack for what the
        // kernel sends by itself, and for what it throws away uncounted while the link is down: probes, and what left
        // before the path was given up.
        assert!(counted > 0 && *sent > counted / 10 * 9, "path {i} left through va{i}: {sent} of {counted}");
        assert!(*sent < counted * 2 + 4_096, "nothing else left through va{i}: {sent} of {counted}");
    }
}
