//! What goes in comes out: files, datagrams, transport streams.

mod common;

use common::*;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_file_byte_for_byte() {
    let (dir, out) = scratch();
    let content = noise(5_000_001, 1);
    let input = file(&dir, "in", &content);
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", &input, &format!("anabranch://127.0.0.1:{port}")]);
    s.check(0, None);
    assert!(s.out().contains("5000001 bytes"), "{}", s.out());
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &content);
}

#[test]
fn empty_and_small_files_and_the_alias() {
    for content in [&b""[..], b"x", b"GGGG"] {
        let (dir, out) = scratch();
        let input = file(&dir, "in", content);
        let port = port();
        let r = start(&["recv", "--listen", &format!("127.0.0.1:{port}"), out.to_str().unwrap(), "-q"]);
        listening(port);
        run(&["send", &input, &format!("127.0.0.1:{port}")]).check(0, None);
        let e = r.wait();
        e.check(0, None);
        assert_eq!(e.out(), "", "quiet");
        same(&std::fs::read(&out).unwrap(), content);
    }
}

#[test]
fn from_pipe_to_pipe() {
    let port = port();
    let content = noise(700_000, 2);
    let r = receiver(port, "-", &[]);
    let mut s = start_with(&["send", "-", &format!("anabranch://127.0.0.1:{port}")], Stdio::piped());
    let mut stdin = s.stdin();
    for piece in content.chunks(50_000) {
        stdin.write_all(piece).unwrap();
    }
    drop(stdin);
    s.wait().check(0, None);
    let e = r.wait();
    assert_eq!(e.code(), Some(0), "{}", e.stderr);
    same(&e.stdout, &content);
    assert!(e.stderr.contains("700000 bytes"), "totals go aside: {}", e.stderr);
}

#[test]
fn datagrams_with_their_edges() {
    let (port, input) = (port(), port());
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let to = format!("udp://{}", sink.local_addr().unwrap());
    let r = receiver(port, &to, &[]);
    let from = format!("udp://127.0.0.1:{input}");
    let s = start(&["send", &from, &format!("anabranch://127.0.0.1:{port}"), "--mode", "datagram", "--ordered"]);
    listening(input);
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut buffer = vec![0; 70_000];
    for (i, size) in [1, 0, 188, 1_200, 1_201, 9_000, 65_507, 2].into_iter().enumerate() {
        let datagram = noise(size, i as u64 + 7);
        source.send_to(&datagram, ("127.0.0.1", input)).unwrap();
        let n = sink.recv(&mut buffer).unwrap();
        same(&buffer[..n], &datagram);
    }
    s.signal("INT");
    s.wait().check(130, None);
    r.wait().check(0, None);
}

#[test]
fn a_file_as_datagrams_may_be_scrambled_and_that_is_reported() {
    let (dir, out) = scratch();
    let input = file(&dir, "in", &noise(200_000, 6));
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    let to = format!("127.0.0.1:{port}");
    let s = run(&["send", &input, &to, "--mode", "datagram"]);
    s.check(0, Some("may arrive in another order; --ordered keeps it"));
    run(&["send", &input, &to, "--mode", "datagram", "--ordered"]).check(0, None);
    r.signal("INT");
    r.wait().check(130, None);
}

#[test]
fn a_live_transport_stream_is_recognised() {
    let (port, input) = (port(), port());
    let (_dir, out) = scratch();
    let r = receiver(port, out.to_str().unwrap(), &["-J"]);
    let from = format!("udp://127.0.0.1:{input}");
    let s = start(&["send", &from, &format!("anabranch://127.0.0.1:{port}?latency=2000"), "--duration", "3s"]);
    listening(input);
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let part = &clip()[..7 * 188 * 300];
    for datagram in part.chunks(7 * 188) {
        source.send_to(datagram, ("127.0.0.1", input)).unwrap();
        sleep(Duration::from_millis(1));
    }
    s.wait().check(0, None);
    let e = r.wait();
    e.check(0, None);
    assert_eq!(rows(&e.out())[0]["mode"], "media");
    assert_eq!(rows(&e.out())[0]["latency_ms"], 2000);
    same(&std::fs::read(&out).unwrap(), part);
}

#[test]
fn a_recorded_transport_stream_byte_for_byte_at_its_own_pace() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--stats", "json", "--stats-interval", "500ms"]);
    let began = std::time::Instant::now();
    let s = run(&["send", CLIP, &format!("anabranch://127.0.0.1:{port}"), "-J", "--latency", "2s"]);
    s.check(0, None);
    assert!(began.elapsed() > Duration::from_millis(3_800), "the clip lasts 3.84 s: {:?}", began.elapsed());
    let e = r.wait();
    e.check(0, None);
    same(&std::fs::read(&out).unwrap(), &clip());

    let sent = rows(&s.out());
    assert_eq!((&sent[0]["event"], &sent[0]["version"]), (&"begin".into(), &1.into()));
    let stats: Vec<_> = sent.iter().filter(|r| r["event"] == "stats").collect();
    assert!(stats.len() >= 3, "one an interval and path: {}", stats.len());
    for row in &stats {
        let srtt = &row["srtt_ms"];
        let [min, avg, max] = ["min", "avg", "max"].map(|k| srtt[k].as_f64().unwrap());
        assert!(min <= avg && avg <= max && max > 0.0, "{srtt}");
        assert!(row["cwnd_bytes"]["min"].as_f64().unwrap() > 0.0);
    }
    let bytes: u64 = stats.iter().map(|r| r["data_sent"].as_u64().unwrap()).sum();
    assert!(bytes > 2_000_000, "{bytes}");
    let total = sent.last().unwrap();
    assert_eq!((&total["event"], &total["ended"]), (&"totals".into(), &"done".into()));
    assert_eq!(total["received"]["bytes"], clip().len());
    assert_eq!(total["received"]["frames_unusable"], 0);
    let got = rows(&e.out());
    assert_eq!(got.last().unwrap()["stream"]["frames"], total["received"]["frames"]);
    let packets: u64 = stats.iter().map(|r| r["packets_sent"].as_u64().unwrap()).sum();
    assert_eq!(total["paths"][0]["packets_sent"], packets, "rows add up");
    assert!(got.iter().any(|r| r["event"] == "stream"));
}

#[test]
fn a_transport_stream_from_a_pipe_is_held_to_its_own_pace() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let began = std::time::Instant::now();
    // A file as standard input gives all it has at once, as `cat` does.
    let input = std::fs::File::open(CLIP).unwrap();
    let s = start_with(&["send", "-", &format!("127.0.0.1:{port}"), "--latency", "2s"], input.into()).wait();
    s.check(0, None);
    assert!(began.elapsed() > Duration::from_millis(3_500), "the clip lasts 3.84 s: {:?}", began.elapsed());
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &clip());
}

#[test]
fn a_stream_that_is_mostly_given_up_is_reported() {
    let (_dir, out) = scratch();
    let (port, relay) = (port(), port());
    let path = format!("listen 127.0.0.1:{relay} to 127.0.0.1:{port} rate 1mbit delay 20ms");
    let _emulator = start(&["emulate", "--stats", "none", "--path", &path]);
    listening(relay);
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", CLIP, &format!("127.0.0.1:{relay}"), "--no-pace"]);
    s.check(0, Some("messages were given up: they could not be sent within the latency of 300 ms"));
    r.wait().check(0, None);
}

/// What is said at the end is what it was: paths that were dead, or limits of classes.
#[test]
fn why_most_was_given_up_is_said() {
    let (_dir, out) = scratch();
    let (port, relay) = (port(), common::port());
    let path = format!("listen 127.0.0.1:{relay} to 127.0.0.1:{port} delay 5ms at 1s down at 6s up");
    let _emulator = start(&["emulate", "--stats", "none", "--path", &path]);
    listening(relay);
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", CLIP, &format!("127.0.0.1:{relay}"), "-q"]);
    s.check(0, Some("messages were given up: no path worked within the latency of 300 ms"));
    r.wait();
    // Two ways of 400 ms: the path works, and nothing can be in time.
    let (port, relay) = (common::port(), common::port());
    let path = format!("listen 127.0.0.1:{relay} to 127.0.0.1:{port} delay 400ms");
    let _emulator = start(&["emulate", "--stats", "none", "--path", &path]);
    listening(relay);
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", CLIP, &format!("127.0.0.1:{relay}"), "-q"]);
    s.check(0, Some("they could not be sent within the latency of 300 ms"));
    r.wait();
    let (port, relay) = (common::port(), common::port());
    let path = format!("listen 127.0.0.1:{relay} to 127.0.0.1:{port} delay 50ms");
    let _emulator = start(&["emulate", "--stats", "none", "--path", &path]);
    listening(relay);
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", CLIP, &format!("127.0.0.1:{relay}"), "-q", "--class-lifetime", "1ms,1ms,1ms"]);
    s.check(0, Some("they could not be sent within the limits of --class-lifetime"));
    r.wait();
}

/// Where 0 means never, it stays.
#[test]
fn media_need_a_latency() {
    let (dir, out) = scratch();
    let input = file(&dir, "in", &noise(10_000, 3));
    let zero = "a latency of 0 leaves media no time";
    for flags in [&["--latency", "0"][..], &["--latency", "0ms"], &["--latency", "0us"], &["--latency", "0.4ms"]] {
        run(&[&["send", CLIP, "127.0.0.1:9"][..], flags].concat()).check(2, Some(zero));
    }
    for (from, more) in [(CLIP, &[][..]), (CLIP, &["--mode", "media"]), ("udp://:0", &["--mode", "media"])] {
        run(&[&["send", from, "127.0.0.1:9?latency=0"][..], more].concat()).check(2, Some(zero));
    }
    for (from, mode) in [(input.as_str(), "auto"), (CLIP, "file"), (CLIP, "datagram")] {
        let port = port();
        let r = receiver(port, out.to_str().unwrap(), &[]);
        let to = format!("127.0.0.1:{port}?latency=0");
        run(&["send", from, &to, "--mode", mode, "--ordered"]).check(0, None);
        r.wait().check(0, None);
        same(&std::fs::read(&out).unwrap(), &std::fs::read(from).unwrap());
    }
    // Known only when it comes.
    let (input, port) = (common::port(), common::port());
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    let s = start(&["send", &format!("udp://127.0.0.1:{input}"), &format!("127.0.0.1:{port}?latency=0")]);
    listening(input);
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    source.send_to(&clip()[..1_316], ("127.0.0.1", input)).unwrap();
    s.wait().check(2, Some(zero));
    r.signal("INT");
    r.wait();
}

/// What says something of media alone is no secret where none is sent.
#[test]
fn a_flag_for_media_beside_a_file_is_said() {
    let (dir, out) = scratch();
    let input = file(&dir, "in", &noise(10_000, 3));
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let flags = ["--strip-null", "--class-retransmissions", "9,9,9", "-q"];
    let s = run(&[&["send", &input, &format!("127.0.0.1:{port}")][..], &flags].concat());
    s.check(0, Some("--strip-null and --class-retransmissions are for media, and"));
    assert!(s.stderr.contains("goes as file: nothing changes"), "{}", s.stderr);
    r.wait().check(0, None);
}

/// Packets of 192 and 204 bytes arrive as they are, with a line that says how to stream them, also where the user says
/// that they are media.
#[test]
fn wider_packets_go_as_a_file_and_that_is_said() {
    let (dir, out) = scratch();
    for (before, after, what) in [(4, 0, "packets of 192 bytes (M2TS"), (0, 16, "packets of 204 bytes (parity")] {
        let packets = clip();
        let wide = packets.chunks(188).take(200).flat_map(|p| [&vec![7; before][..], p, &vec![9; after]].concat());
        let input = file(&dir, "wide", &wide.collect::<Vec<_>>());
        let port = port();
        let r = receiver(port, out.to_str().unwrap(), &[]);
        let s = run(&["send", &input, &format!("127.0.0.1:{port}")]);
        s.check(0, Some(what));
        assert!(s.stderr.contains("goes as a file; to stream it: ffmpeg -re -i"), "{}", s.stderr);
        r.wait().check(0, None);
        same(&std::fs::read(&out).unwrap(), &std::fs::read(&input).unwrap());
        let port = common::port();
        let r = receiver(port, out.to_str().unwrap(), &[]);
        let s = run(&["send", &input, &format!("127.0.0.1:{port}"), "--mode", "media", "-q"]);
        s.check(0, Some(what));
        let how = format!("this streams it: ffmpeg -re -i {input} -c copy -f mpegts - | anabranch send -");
        assert!(s.stderr.contains(&how), "{}", s.stderr);
        r.wait();
    }
}

#[test]
fn damaged_transport_streams_pass_with_one_warning() {
    let mut content = clip()[..188 * 1_500].to_vec();
    content.splice(188 * 700..188 * 700, noise(501, 9));
    content.extend(noise(100, 3));
    let (dir, out) = scratch();
    let input = file(&dir, "in.ts", &content);
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let s = run(&["send", &input, &format!("anabranch://127.0.0.1:{port}"), "--mode", "media", "--latency", "2s"]);
    s.check(0, Some("warning: the input is no clean transport stream"));
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &content);
}

#[test]
fn from_group_to_group() {
    let (groups, ports) = ([[239, 255, 77, 77], [239, 255, 77, 78]], [port(), port()]);
    let sink = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, ports[1])).unwrap();
    if let Err(e) = sink.join_multicast_v4(&groups[1].into(), &Ipv4Addr::LOCALHOST) {
        return eprintln!("SKIPPED from_group_to_group: no multicast on the loopback interface: {e}");
    }
    sink.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let port = port();
    let r = receiver(port, &format!("udp://@239.255.77.78:{}?ttl=1&iface=lo", ports[1]), &[]);
    let from = format!("udp://@239.255.77.77:{}?iface=lo", ports[0]);
    let s = start(&["send", &from, &format!("127.0.0.1:{port}")]);
    listening_on(groups[0], ports[0]);
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut buffer = [0; 100];
    for word in ["one", "two"] {
        source.send_to(word.as_bytes(), (Ipv4Addr::from(groups[0]), ports[0])).unwrap();
        let n = sink.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], word.as_bytes());
    }
    s.signal("INT");
    s.wait().check(130, None);
    r.wait().check(0, None);
}

#[test]
fn sender_after_sender() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--keep"]);
    for content in [b"one ", b"two "] {
        let input = file(&dir, "in", content);
        run(&["send", &input, &format!("anabranch://127.0.0.1:{port}")]).check(0, None);
    }
    r.signal("INT");
    r.wait().check(130, None);
    same(&std::fs::read(&out).unwrap(), b"one two ");
}

#[test]
fn statistics_as_a_table() {
    let (dir, out) = scratch();
    let table = dir.path().join("stats.csv");
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--stats", "text", "--stats-interval", "100ms"]);
    let to = format!("anabranch://127.0.0.1:{port}");
    let more = ["--duration", "1s", "--stats", "csv", "--stats-interval", "100ms", "--stats-file"];
    let s = run(&[&["send", CLIP, &to][..], &more, &[table.to_str().unwrap()]].concat());
    s.check(0, None);
    assert_eq!(s.out(), "", "all of it goes into the file");
    let e = r.wait();
    e.check(0, None);
    assert!(e.out().lines().filter(|l| l.contains("path 0 127.0.0.1 to 127.0.0.1:")).count() >= 5, "{}", e.out());
    let table = std::fs::read_to_string(&table).unwrap();
    let (comments, lines): (Vec<_>, Vec<_>) = table.lines().partition(|l| l.starts_with("# "));
    let columns = lines[0].split(',').count();
    assert!(lines.len() > 5 && lines[0].starts_with("session,t,path,"), "{}", lines[0]);
    assert!(lines.iter().all(|l| l.split(',').count() == columns), "{table}");
    assert!(comments.last().unwrap().contains("\"event\":\"totals\""), "{table}");
}

#[test]
fn statistics_as_a_page_for_prometheus() {
    let (dir, out) = scratch();
    let (page, port) = (dir.path().join("page.prom"), port());
    let more = ["--stats", "prometheus", "--stats-interval", "100ms", "--stats-file", page.to_str().unwrap()];
    let r = receiver(port, out.to_str().unwrap(), &more);
    let input = file(&dir, "in", &noise(300_000, 5));
    let s = run(&["send", &input, &format!("127.0.0.1:{port}"), "--stats", "prometheus"]);
    s.check(0, None);
    let e = r.wait();
    e.check(0, None);
    assert_eq!(e.out(), "", "all of it is in the file");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("anabranch_stream_bytes_total{session=\"0\",command=\"recv\",mode=\"file\","), "{page}");
    for text in [page, s.out()] {
        let (comments, values): (Vec<_>, Vec<_>) =
            text.lines().filter(|l| !l.is_empty()).partition(|l| l.starts_with('#'));
        assert!(comments.iter().all(|l| l.starts_with("# HELP ") || l.starts_with("# TYPE ")), "{text}");
        let bytes = values.iter().rev().find(|l| l.starts_with("anabranch_stream_bytes_total")).unwrap();
        assert!(bytes.ends_with(" 300000"), "{bytes}");
        assert!(values.iter().all(|l| l.rsplit_once("} ").is_some_and(|(_, v)| v.parse::<f64>().is_ok())), "{text}");
        assert!(
            values.iter().any(|l| l.starts_with("anabranch_path_srtt_seconds{session=\"0\",path=\"0\",")),
            "{text}"
        );
    }
}

#[test]
fn captures() {
    let (dir, out) = scratch();
    let input = file(&dir, "in", &noise(50_000, 4));
    let capture = dir.path().join("c.pcapng");
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let to = format!("anabranch://127.0.0.1:{port}");
    run(&["send", &input, &to, "--pcap", capture.to_str().unwrap()]).check(0, None);
    r.wait().check(0, None);
    let bytes = std::fs::read(&capture).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(bytes.len() > 50_000, "{}", bytes.len());
}
