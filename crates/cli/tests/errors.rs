//! What goes wrong ends with one clear line and the documented code.

mod common;

use common::*;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn wrong_flags() {
    for (args, needle) in [
        (&["send"][..], "required"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&[], "which command?"),
        (&["send", "a", "b", "--frob"], "--frob"),
        (&["send", "a", "srt://b:1"], "anabranch://host:port"),
        (&["send", "a", "anabranch://b?frob=1"], "no setting called `frob`"),
        (&["send", "a", "anabranch://127.0.0.1", "--latency", "fast"], "no time"),
        (&["tunnel", "--accept", "anabranch://:1", "--forward", "udp://127.0.0.1:9", "--once"], "--accept"),
        (&["send", "a", "anabranch://127.0.0.1", "--on-rate", " "], "the command is empty"),
        (&["send", "a", "anabranch://127.0.0.1", "--mode", "x"], "auto, media, datagram and file"),
        (&["send", "rtsp://a", "anabranch://127.0.0.1"], "neither an input nor an output"),
        (&["send", "rtp://:5004?ttl=3", "anabranch://127.0.0.1"], "there are iface and reorder"),
        (&["send", "rtp://:5004?reorder=1min", "anabranch://127.0.0.1"], "reorder is a time from 0 to 2000 ms"),
        (&["send", "rtp://:5004", "anabranch://127.0.0.1", "--mode", "datagram"], "for --mode datagram use udp://"),
        (&["recv", ":1", "rtp://127.0.0.1:5004?pt=200"], "pt is a number from 0 to 127"),
        (&["recv", ":1", "rtp://:5004"], "names no address to send to"),
        (&["recv", "out.ts"], "two places"),
        (&["recv", "--listen", ":1", "a", "b"], "one more argument"),
        (&["recv", "--listen", "21003", "a"], "`21003` is only a number; a port is written :21003"),
        (&["send", "a", "anabranch://b", "--connect-timeout", "0"], "no time to wait"),
        (&["send", "a", "anabranch://b", "--connect-timeout", "1"], "`1` has no unit; write 1s or 1ms"),
        (&["recv", ":1", "a", "--peer-timeout", "0s"], "no time to wait"),
        (&["tunnel", "--accept", "anabranch://:1"], "--forward"),
        (&["tunnel", "--listen", "udp://:0", "127.0.0.1", "--from", "127.0.0.1"], "the one with --accept"),
        (&["tunnel", "--listen", "udp://:0", "127.0.0.1", "--waiting-per-address", "3"], "the one with --accept"),
        (&["tunnel", "--listen", "udp://:0", "127.0.0.1", "--waiting-per-address", "256"], "the one with --accept"),
        (&["tunnel", "--accept", ":1", "--forward", "udp://127.0.0.1:9", "--path", "lo"], "the side that connects"),
        (&["tunnel", "--accept", ":1", "--forward", "udp://127.0.0.1:9", "--allow-missing"], "the side that connects"),
        (&["send", "a", "127.0.0.1", "-J", "--stats", "text"], "-J is --stats json"),
        (&["send", "a", "127.0.0.1", "-J", "--stats", "prometheus"], "-J is --stats json"),
        (&["recv", "127.0.0.1:0", "/dev/null", "--json", "--stats", "csv"], "-J is --stats json"),
        (&["tunnel", "--listen", "udp://:0", "127.0.0.1", "-J", "--stats", "csv"], "-J is --stats json"),
        (&["recv", ":1?mode=file", "udp://127.0.0.1:9"], "mode=file: an output udp:// is for media and datagrams"),
        (&["recv", ":1?mode=file", "rtp://127.0.0.1:9"], "mode=file: an output rtp:// is for media"),
        (&["recv", ":1?mode=datagram", "rtp://127.0.0.1:9"], "mode=datagram: an output rtp:// is for media"),
        (&["emulate"], "--path"),
        (&["emulate", "--path", "listen 127.0.0.1:0"], "`to`"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9 rate fast"], "rate"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9 at 5s"], "`at 5s`: nothing happens then"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9 at 5s every 9s"], "`at 5s`: nothing happens then"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9 at 5s at 6s down"], "`at 5s`: nothing happens then"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9 at 9s down at 5s up"], "goes forward"),
        (&["emulate", "--path", "listen 127.0.0.1:9 to 127.0.0.1:9"], "leads to itself"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:70000"], "a port is at most 65535"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9", "--duration", "0"], "no time to wait"),
        (&["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9", "--seed", "x"], "not a whole number of 0 or more"),
        (
            &["emulate", "--path", "listen 127.0.0.1:0 to 127.0.0.1:9", "--seed", "99999999999999999999"],
            "more than this",
        ),
        (
            &["send", "a", "127.0.0.1", "--class-lifetime", "none,500ms,0"],
            "'--class-lifetime <I,P,B>': 0 leaves frames",
        ),
        (&["send", "a", "127.0.0.1", "--media-hint", "0xbf45"], "taken by parity; another one is free, such as 0xbf43"),
        (&["recv", ":1", "a", "--media-hint", "0x8008"], "'--media-hint <TYPE|none>': 0x8008 is taken by"),
        (
            &["send", "a", "127.0.0.1", "--strip-null", "--mode", "file"],
            "--strip-null is for media; leave out that, or the mode",
        ),
        (
            &["send", "a", "127.0.0.1?mode=datagram", "--strip-null"],
            "--strip-null is for media; leave out that, or the mode",
        ),
        (&["send", "a", "anabranch://b", "--duration", "0s"], "no time to wait"),
        (&["send", "a", "127.0.0.1:70000"], "a port is at most 65535"),
        (&["recv", ":99999", "a"], "a port is at most 65535"),
        (&["tunnel", "--listen", "udp://127.0.0.1:70000", "127.0.0.1"], "a port is at most 65535"),
        (&["tunnel"], "a tunnel is either --listen"),
        (&["tunnel", "--listen", "udp://:0"], "a tunnel is either --listen"),
        (&["tunnel", "--listen", "udp://127.0.0.1:0", "127.0.0.1?mode=media"], "`mode` is a setting of send and recv"),
        (
            &["tunnel", "--listen", "udp://127.0.0.1:0", "127.0.0.1?streamid=x"],
            "`streamid` is a setting of send and recv",
        ),
        (&["tunnel", "--listen", "udp://127.0.0.1:0", "127.0.0.1?latency=9"], "--latency"),
        (
            &["tunnel", "--accept", ":1?mode=file", "--forward", "udp://127.0.0.1:9"],
            "`mode` is a setting of send and recv",
        ),
        (
            &["tunnel", "--accept", ":1", "--forward", "udp://127.0.0.1:9", "--connect-timeout", "3s"],
            "the side that connects",
        ),
        (&["bench", "--profile", "nope"], "no profile is called 'nope'; did you mean"),
        (&["bench", "--peer", "x=/no/such"], "--peer x=/no/such: there is no such program"),
        (&["bench", "--peer", "x=no-such-program"], "there is no such program"),
    ] {
        let e = run(args);
        assert_eq!(e.stdout, b"");
        e.check(2, Some(needle));
    }
}

#[test]
fn wrong_policies() {
    let (dir, _) = scratch();
    let input = file(&dir, "in", b"x");
    for (flag, value, needle) in [
        ("--profile", "cmtt", "did you mean 'cmt'?"),
        ("--scheduler", "round", "path_scheduler has no policy called 'round'"),
        ("--set", "window", "HOOK=POLICY"),
        ("--set", "frob=x", "no hook"),
        ("--set", "loss_threshold=thin:frob=1", "no parameter 'frob'"),
        ("--path", "wlan0,frob", "via="),
        ("--path", "no-such-interface", "there is no interface no-such-interface"),
        ("--path", "192.0.2.77", "192.0.2.77"),
    ] {
        run(&["send", &input, "anabranch://127.0.0.1:9", flag, value]).check(2, Some(needle));
    }
    let refused = ["--profile", "sctp", "--scheduler", "round_robin", "--path", "127.0.0.1", "--path", "127.0.0.2"];
    let e = run(&[&["send", &input, "anabranch://127.0.0.1:9"][..], &refused].concat());
    e.check(2, Some("do not go together"));
}

/// Where an address and a flag say different things, the flag holds, and `-v` says so.
#[test]
fn a_flag_wins_over_the_address() {
    let (dir, out) = scratch();
    let input = file(&dir, "in", &noise(5_000, 1));
    for (query, flags, said) in [
        ("latency=500&mode=datagram", &["--latency", "300ms"][..], Some("--latency holds")),
        ("mode=datagram", &["--mode", "file"], Some("--mode holds")),
        ("streamid=a", &["--streamid", "b"], Some("--streamid holds")),
        ("streamid=b&mode=file&latency=300", &["--streamid", "b", "--mode", "file", "--latency", "0.3s"], None),
    ] {
        let port = port();
        let r = receiver(port, out.to_str().unwrap(), &["-J"]);
        let to = format!("127.0.0.1:{port}?{query}");
        let e = run(&[&["send", &input, &to, "-v", "--ordered"], flags].concat());
        assert_eq!(e.code(), Some(0), "{}", e.stderr);
        match said {
            Some(said) => assert!(e.stderr.contains(said), "{query} {flags:?}: {}", e.stderr),
            None => assert!(!e.stderr.contains(" holds"), "{query} {flags:?}: {}", e.stderr),
        }
        let begin = &rows(&r.wait().out())[0];
        match flags[0] {
            "--latency" => assert_eq!(begin["latency_ms"], 300),
            "--mode" => assert_eq!(begin["mode"], "file"),
            _ => assert_eq!(begin["streamid"], "b"),
        }
    }
}

#[test]
fn missing_files() {
    run(&["send", "/no/such/file.ts", "anabranch://127.0.0.1"]).check(2, Some("cannot read /no/such/file.ts"));
    run(&["send", "/tmp", "anabranch://127.0.0.1"]).check(2, Some("directory"));
    let listen = format!("anabranch://127.0.0.1:{}", port());
    run(&["recv", &listen, "/no/such/dir/out.ts"]).check(2, Some("cannot write /no/such/dir/out.ts"));
    run(&["emulate", "--config", "/no/such.toml"]).check(2, Some("cannot read /no/such.toml"));
}

/// Whatever it is called, and whichever argument names it: what is read stays, and what is written is a file of its own.
#[test]
fn no_output_is_written_over_another_file_of_the_command() {
    let (dir, _) = scratch();
    let input = file(&dir, "in.ts", &clip());
    let [soft, hard, new, to_new] = ["soft.ts", "hard.ts", "k.ts", "to-new.ts"].map(|n| dir.path().join(n));
    std::os::unix::fs::symlink("in.ts", &soft).unwrap();
    std::fs::hard_link(&input, &hard).unwrap();
    std::os::unix::fs::symlink("k.ts", &to_new).unwrap();
    let [soft, hard, new, to_new] = [&soft, &hard, &new, &to_new].map(|p| p.to_str().unwrap());
    let config = file(&dir, "c.toml", b"latency = 300\n");
    let awry = format!("{}/./in.ts", dir.path().display());
    let beside = file(&dir, "rate.new", b"x");
    let rate = beside.trim_end_matches(".new");
    let log = &file(&dir, "log.svg", b"{}\n");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/examples/single-path.toml");
    let scenario = file(&dir, "scenario.toml", &std::fs::read(example).unwrap());
    let in_file = format!("file:{new}");
    let named = format!("{}/{{streamid}}.ts", dir.path().display());
    for name in [input.as_str(), soft, hard, &awry] {
        for args in [[CLIP, &input], [&input, CLIP]] {
            let what = if args[0] == CLIP { "which is RECEIVED" } else { "which is SENT" };
            run(&["quality", args[0], args[1], "--no-decoding", "--csv", name]).check(2, Some(what));
        }
        for flag in ["--pcap", "--stats-file", "--rate-file"] {
            let e = run(&["send", &input, "127.0.0.1:9", "--stats", "json", flag, name]);
            e.check(2, Some(&format!("{flag} would write over {name}, which is the input; name another file")));
        }
    }
    for (args, what) in [
        (&["send", &beside, "127.0.0.1:9", "--rate-file", rate][..], "--rate-file would write over"),
        (&["send", &beside, "127.0.0.1:9", "--stats", "prometheus", "--stats-file", rate], "--stats-file would write"),
        (&["send", CLIP, "127.0.0.1:9", "--pcap", new, "--rate-file", to_new], "--rate-file and --pcap would both"),
        (&["send", CLIP, "127.0.0.1:9", "--config", &config, "--pcap", &config], "which is --config"),
        (&["recv", ":1", &in_file, "--pcap", new], "the output and --pcap would both write"),
        (&["recv", ":1", &in_file, "--stats-file", to_new], "the output and --stats-file would both write"),
        (&["recv", ":1?streamid=a,k", &named, "--pcap", new], "the output and --pcap would both write"),
        (&["recv", ":1", "-", "--config", &config, "--stats-file", &config], "which is --config"),
        (&["tunnel", "--listen", "udp://:0", "127.0.0.1", "--pcap", new, "--stats-file", new], "would both write"),
        (&["trace", log, "--out", log], "which is the log itself"),
        (&["lab", "emulate", &scenario, "--out", &scenario], "which is an experiment"),
    ] {
        run(args).check(2, Some(what));
    }
    let from = std::fs::File::open(&input).unwrap();
    let e = start_with(&["send", "-", "127.0.0.1:9", "--pcap", &input], from.into()).wait();
    e.check(2, Some("which is the input"));
    assert!(!std::path::Path::new(new).exists(), "nothing was opened for writing");
    assert_eq!(std::fs::read(&beside).unwrap(), b"x");
    same(&std::fs::read(&input).unwrap(), &clip());
    // Devices have nothing to lose.
    let null = ["--pcap", "/dev/null", "--stats-file", "/dev/null", "--rate-file", "/dev/null"];
    let e = run(&[&["send", "/dev/null", "127.0.0.1:9", "--connect-timeout", "1ms", "--once"][..], &null].concat());
    assert!(!e.stderr.contains("another file"), "{}", e.stderr);
}

#[test]
fn ports_in_use() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (_dir, out) = scratch();
    let listen = format!("anabranch://{address}");
    run(&["recv", &listen, out.to_str().unwrap()]).check(1, Some("in use"));
    assert!(!out.exists(), "nothing was overwritten");
    let input = format!("udp://{address}");
    run(&["send", &input, "anabranch://127.0.0.1:9"]).check(1, Some("in use"));
    run(&["tunnel", "--listen", &input, "anabranch://127.0.0.1:9"]).check(1, Some("in use"));
    run(&["tunnel", "--accept", &listen, "--forward", "udp://127.0.0.1:9"]).check(1, Some("in use"));
    let path = format!("listen {address} to 127.0.0.1:9");
    run(&["emulate", "--path", &path]).check(1, Some("in use"));
}

#[test]
fn unreachable_peer() {
    let (dir, _) = scratch();
    let input = file(&dir, "in", b"x");
    let peer = format!("anabranch://127.0.0.1:{}", port());
    let began = Instant::now();
    let e = run(&["send", &input, &peer, "--connect-timeout", "700ms"]);
    e.check(1, Some("does not answer within 0.7 s"));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn another_sender_is_asked_to_wait() {
    let (dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let peer = format!("anabranch://127.0.0.1:{port}?latency=2000");
    let first = start(&["send", common::CLIP, &peer]);
    grown(&out, 1);
    let input = file(&dir, "in", b"x");
    run(&["send", &input, &peer]).check(1, Some("busy"));
    let listen = format!("udp://127.0.0.1:{}", common::port());
    let bare = format!("anabranch://127.0.0.1:{port}");
    run(&["tunnel", "--listen", &listen, &bare, "--once"]).check(1, Some("this is `anabranch recv`"));
    first.wait().check(0, None);
    r.wait().check(0, None);
    same(&std::fs::read(&out).unwrap(), &clip());
}

#[test]
fn a_killed_sender_leaves_the_part_received() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &["--peer-timeout", "2s"]);
    let peer = format!("anabranch://127.0.0.1:{port}?latency=1000");
    let sender = start(&["send", common::CLIP, &peer]);
    grown(&out, 300_000);
    sender.signal("KILL");
    let e = r.wait();
    e.check(1, Some("is gone"));
    let got = std::fs::read(&out).unwrap();
    assert!(e.stderr.contains(&format!("the {} bytes received are in", got.len())), "{}", e.stderr);
    same(&got, &clip()[..got.len()]);
    assert!(got.len() >= 300_000);
}

#[test]
fn a_killed_receiver_is_noticed() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let peer = format!("anabranch://127.0.0.1:{port}?latency=1000");
    let sender = start(&["send", common::CLIP, &peer, "--peer-timeout", "2s", "--once"]);
    grown(&out, 300_000);
    r.signal("KILL");
    sender.wait().check(1, Some("is gone"));
    let got = std::fs::read(&out).unwrap();
    same(&got, &clip()[..got.len()]);
}

#[test]
fn a_silent_peer_is_reported_before_it_counts_as_gone() {
    let (_dir, out) = scratch();
    let port = port();
    let r = receiver(port, out.to_str().unwrap(), &[]);
    let mut s = start_with(&["send", "-", &format!("127.0.0.1:{port}"), "--peer-timeout", "7s"], Stdio::piped());
    let mut pipe = s.stdin();
    pipe.write_all(&noise(10_000, 1)).unwrap();
    grown(&out, 10_000);
    r.signal("KILL");
    let began = Instant::now();
    let s = s.wait();
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(s.code(), Some(1));
    let lines: Vec<_> = s.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("warning: nothing comes from"), "{}", s.stderr);
    assert!(lines[1].contains("is gone"), "{}", s.stderr);
}

#[test]
fn a_full_disk_is_reported_to_both() {
    let Ok(_) = std::fs::metadata("/dev/full") else {
        eprintln!("SKIPPED full disk: this machine has no /dev/full");
        return;
    };
    let (dir, _) = scratch();
    let input = file(&dir, "in", &noise(3_000_000, 5));
    let port = port();
    let r = receiver(port, "/dev/full", &[]);
    let sender = start(&["send", &input, &format!("anabranch://127.0.0.1:{port}")]);
    sender.wait().check(1, Some("no space is left"));
    r.wait().check(2, Some("no space is left"));
}
