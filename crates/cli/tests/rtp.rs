//! MPEG-TS in RTP: in, out, out of order, and RTP that is something else.

mod common;

use common::*;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const SSRC: u32 = 0x5eed_0001;

/// A datagram: 12 bytes of RTP header, and what it carries.
fn packet(payload_type: u8, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x80, payload_type];
    p.extend(sequence.to_be_bytes());
    p.extend((u32::from(sequence) * 900).to_be_bytes());
    p.extend(SSRC.to_be_bytes());
    p.extend(payload);
    p
}

/// A datagram that came.
struct Seen {
    at: Instant,
    marker: bool,
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    payload: Vec<u8>,
}

impl Seen {
    #[track_caller]
    fn of(at: Instant, d: &[u8]) -> Self {
        assert!(d.len() > 12 && d[0] == 0x80, "RTP without anything special: {:02x?}", d.get(..12));
        Seen {
            at,
            marker: d[1] & 0x80 != 0,
            payload_type: d[1] & 0x7f,
            sequence: u16::from_be_bytes([d[2], d[3]]),
            timestamp: u32::from_be_bytes(d[4..8].try_into().unwrap()),
            ssrc: u32::from_be_bytes(d[8..12].try_into().unwrap()),
            payload: d[12..].to_vec(),
        }
    }
}

/// Takes all that comes to a socket and passes it on to ports of 127.0.0.1, until nothing has come for two seconds
/// after the first.
fn tap(socket: UdpSocket, on_to: Vec<u16>) -> Receiver<Vec<(Instant, Vec<u8>)>> {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let out = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (mut all, mut buffer) = (Vec::new(), vec![0; 65_536]);
        socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
        while let Ok(n) = socket.recv(&mut buffer) {
            all.push((Instant::now(), buffer[..n].to_vec()));
            for port in &on_to {
                let _ = out.send_to(&buffer[..n], ("127.0.0.1", *port));
            }
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        }
        let _ = tx.send(all);
    });
    rx
}

fn bound() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = socket.local_addr().expect("its address").port();
    (socket, port)
}

/// `send` from a URI to a port, with a second to spare for a busy machine.
fn sender(from: &str, port: u16) -> Run {
    start(&["send", from, &format!("anabranch://127.0.0.1:{port}?latency=2000"), "-J"])
}

/// A child that cannot outlive its test.
struct Decoder(Child);

impl Drop for Decoder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn recognised_on_udp_and_put_in_order_across_the_wrap() {
    let (port, input) = (port(), port());
    let (_dir, out) = scratch();
    let r = receiver(port, out.to_str().unwrap(), &["-J"]);
    let s = sender(&format!("udp://127.0.0.1:{input}"), port);
    listening(input);
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let part = &clip()[..7 * 188 * 300];
    let mut packets: Vec<_> = part.chunks(7 * 188).zip(65_400u32..).map(|(ts, n)| packet(33, n as u16, ts)).collect();
    // Each fifth after its successor, and each ninth twice.
    for i in (5..295).step_by(5) {
        packets.swap(i, i + 1);
    }
    for (i, p) in packets.iter().enumerate() {
        for _ in 0..1 + usize::from(i % 9 == 8) {
            source.send_to(p, ("127.0.0.1", input)).unwrap();
        }
        if i % 20 == 0 {
            // A sender report.
            source.send_to(&[&[0x80, 200, 0, 6][..], &[0; 24]].concat(), ("127.0.0.1", input)).unwrap();
        }
        // What overtakes and what is overtaken leave together: this machine may be busy for longer than is waited.
        if i % 5 != 0 {
            sleep(Duration::from_millis(2));
        }
    }
    sleep(Duration::from_millis(300));
    s.signal("INT");
    s.wait().check(130, None);
    let e = r.wait();
    e.check(0, None);
    assert_eq!(rows(&e.out())[0]["mode"], "media");
    same(&std::fs::read(&out).unwrap(), part);
}

/// The encoder's packets are lost, overtaken and repeated on their way to `send`: what comes out is what came, in
/// order and once. A second sender on the very packets that does not wait for what was overtaken is the control.
#[test]
fn from_an_encoder_over_a_bad_network_to_a_player() {
    const NAME: &str = "from_an_encoder_over_a_bad_network_to_a_player";
    if !has("ffmpeg", NAME) {
        return;
    }
    let ports: Vec<u16> = (0..5).map(|_| port()).collect();
    let (relay, inputs, links) = (ports[0], [ports[1], ports[2]], [ports[3], ports[4]]);
    let (_dir, out) = scratch();
    // Before the senders, behind the receiver.
    let (before, before_port) = bound();
    let (behind, behind_port) = bound();
    let player = port();
    let received = receiver(links[0], &format!("rtp://127.0.0.1:{behind_port}?ssrc=0xabcdef01"), &[]);
    let control = receiver(links[1], out.to_str().unwrap(), &[]);
    let senders = [
        sender(&format!("rtp://127.0.0.1:{}?reorder=1000", inputs[0]), links[0]),
        sender(&format!("rtp://127.0.0.1:{}?reorder=0", inputs[1]), links[1]),
    ];
    inputs.iter().for_each(|p| listening(*p));
    let line =
        format!("listen 127.0.0.1:{relay} to 127.0.0.1:{before_port} delay 20ms up.loss 1% reorder 5% duplicate 2%");
    let _emulator = start(&["emulate", "--path", &line, "--seed", "7", "--stats", "none"]);
    listening(relay);
    let came = tap(before, inputs.into());
    let left = tap(behind, vec![player]);
    let from = format!("rtp://127.0.0.1:{player}");
    let decoder = ["-nostdin", "-v", "quiet", "-i", &from, "-frames:v", "60", "-f", "null", "-"];
    let mut decoder = Decoder(Command::new("ffmpeg").args(decoder).stdin(Stdio::null()).spawn().unwrap());
    sleep(Duration::from_millis(300));
    assert!(rtp_encoder(relay, 6).wait().unwrap().success());
    sleep(Duration::from_millis(500));
    for s in senders {
        s.signal("INT");
        s.wait().check(130, None);
    }
    received.wait().check(0, None);
    control.wait().check(0, None);

    let came: Vec<Seen> = came.recv().unwrap().iter().map(|(at, d)| Seen::of(*at, d)).collect();
    let first = came[0].sequence;
    let offset = |s: &Seen| s.sequence.wrapping_sub(first) as i16;
    // By number, once; what the first one overtook is before the beginning.
    let expected: BTreeMap<i16, &[u8]> =
        came.iter().filter(|s| offset(s) >= 0).map(|s| (offset(s), &s.payload[..])).collect();
    let overtaken = came.windows(2).filter(|w| offset(&w[1]) < offset(&w[0])).count();
    let lost = *expected.last_key_value().unwrap().0 as usize + 1 - expected.len();
    let repeated = came.len() - expected.len();
    println!("{} packets came: {lost} lost, {overtaken} overtaken, {repeated} repeated", came.len());
    assert!(lost > 0 && overtaken > 10 && repeated > 5, "the network did nothing");

    let left: Vec<Seen> = left.recv().unwrap().iter().map(|(at, d)| Seen::of(*at, d)).collect();
    let stream: Vec<u8> = left.iter().flat_map(|s| s.payload.clone()).collect();
    same(&stream, &expected.values().copied().collect::<Vec<_>>().concat());
    as_rfc_2250_has_it(&left);

    let control = std::fs::read(&out).unwrap();
    println!("{} bytes, {} without waiting for what was overtaken", stream.len(), control.len());
    assert!(control.len() + 10 * 188 < stream.len());
    let code = (0..100).find_map(|_| {
        sleep(Duration::from_millis(100));
        decoder.0.try_wait().expect("its state")
    });
    assert!(code.is_some_and(|c| c.success()), "ffmpeg plays 60 frames: {code:?}");
}

/// Headers of packets that left.
#[track_caller]
fn as_rfc_2250_has_it(packets: &[Seen]) {
    assert!(packets.iter().all(|s| (s.payload_type, s.ssrc) == (33, 0xabcd_ef01)));
    assert!(packets.iter().all(|s| s.payload.len() % 188 == 0 && s.payload.len() <= 7 * 188));
    assert!(packets[0].marker && packets.iter().skip(1).all(|s| !s.marker));
    assert!(packets.windows(2).all(|w| w[1].sequence == w[0].sequence.wrapping_add(1)));
    assert!(packets.windows(2).all(|w| w[1].timestamp.wrapping_sub(w[0].timestamp) < 90_000));
    let (first, last) = (&packets[0], &packets[packets.len() - 1]);
    let stamped = f64::from(last.timestamp.wrapping_sub(first.timestamp)) / 90_000.0;
    let passed = last.at.duration_since(first.at).as_secs_f64();
    assert!((stamped - passed).abs() < 1.0, "{stamped} s by time stamps, {passed} s by the clock");
}

/// A live transport stream in RTP from ffmpeg to a port of 127.0.0.1: 25 frames a second.
fn rtp_encoder(port: u16, seconds: u32) -> Child {
    let (seconds, to) = (seconds.to_string(), format!("rtp://127.0.0.1:{port}"));
    let args = ["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t", &seconds];
    let codec = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-b:v", "2M"];
    let rate = ["-minrate", "2M", "-maxrate", "2M", "-bufsize", "200k", "-f", "rtp_mpegts", &to];
    let all: Vec<&str> = args.into_iter().chain(codec).chain(rate).collect();
    Command::new("ffmpeg").args(all).stdin(Stdio::null()).spawn().expect("ffmpeg starts")
}

/// Sends datagrams to a port, 5 ms apart.
fn fed(port: u16, datagrams: impl IntoIterator<Item = Vec<u8>>) {
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    for d in datagrams {
        source.send_to(&d, ("127.0.0.1", port)).unwrap();
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_no_transport_stream_in_rtp_is_refused() {
    let (port, out) = (port(), scratch());
    let r = receiver(port, out.1.to_str().unwrap(), &["--keep"]);
    type Make = fn(u16) -> Vec<u8>;
    let cases: [(Make, &str); 4] = [
        (|n| packet(96, n, &[0x41; 1_316]), "RTP with payload type 96 (whatever its SDP says, such as H.264 or Opus)"),
        (|n| packet(0, n, &[0x41; 160]), "payload type 0 (sound as G.711)"),
        (|n| clip()[usize::from(n) * 1_316..][..1_316].to_vec(), "a transport stream without RTP"),
        (|n| vec![n as u8; 100], "no RTP"),
    ];
    for (make, needle) in cases {
        let input = common::port();
        let s = sender(&format!("rtp://127.0.0.1:{input}"), port);
        listening(input);
        fed(input, (0..20).map(make));
        s.wait().check(2, Some(needle));
    }
    r.signal("INT");
    assert_eq!(r.wait().code(), Some(130));
}

/// Packets of 1,328 bytes fit those that `live` finds on the path; where it does not look, each is cut in two.
#[test]
fn other_rtp_on_udp_goes_whole_as_datagrams_and_that_is_said() {
    let [whole, cut] = [&[][..], &["--mtu", "none"]].map(packets_for_each_datagram);
    println!("{whole:.2} packets for each datagram, {cut:.2} where larger ones are not looked for");
    assert!(whole < 1.5 && cut > 1.9, "{whole} {cut}");
}

fn packets_for_each_datagram(more: &[&str]) -> f64 {
    let (port, input) = (port(), port());
    let (sink, sink_port) = bound();
    let r = receiver(port, &format!("udp://127.0.0.1:{sink_port}"), &[]);
    let (from, to) = (format!("udp://127.0.0.1:{input}"), format!("anabranch://127.0.0.1:{port}"));
    let s = start(&[&["send", &from, &to, "-J"], more].concat());
    listening(input);
    let came = tap(sink, Vec::new());
    let sent: Vec<_> = (0..600).map(|n| packet(96, n, &noise(1_316, n.into()))).collect();
    fed(input, sent.clone());
    sleep(Duration::from_millis(300));
    s.signal("INT");
    let e = s.wait();
    e.check(130, Some("is RTP with payload type 96"));
    assert!(e.stderr.contains("without classes and without play-out"), "{}", e.stderr);
    r.wait().check(0, None);
    let mut came: Vec<_> = came.recv().unwrap().into_iter().map(|(_, d)| d).collect();
    came.sort_by_key(|d| [d[2], d[3]]);
    assert!(came == sent, "{} of {} packets, unchanged", came.len(), sent.len());
    let rows = rows(&e.out());
    assert_eq!(rows[0]["mode"], "datagram");
    rows.last().unwrap()["paths"][0]["packets_sent"].as_f64().unwrap() / 600.0
}

/// ffmpeg's datagrams have 1,472 bytes unless it is given `pkt_size`; the encoder may have run before `send` did.
#[test]
fn packets_that_run_on_across_datagrams_are_media() {
    for (size, from) in [(1_472, 0), (1_000, 0), (1_400, 77), (8_192, 100)] {
        let (port, input) = (port(), port());
        let (_dir, out) = scratch();
        let r = receiver(port, out.to_str().unwrap(), &[]);
        let s = sender(&format!("udp://127.0.0.1:{input}"), port);
        listening(input);
        let part = &clip()[from..from + 200_000];
        fed(input, part.chunks(size).map(<[u8]>::to_vec));
        sleep(Duration::from_millis(300));
        s.signal("INT");
        let e = s.wait();
        assert_eq!(e.code(), Some(130), "{}", e.stderr);
        assert!(from > 0 || e.stderr.is_empty(), "{}", e.stderr);
        assert_eq!(rows(&e.out())[0]["mode"], "media", "{size} from {from}");
        assert!(rows(&e.out()).last().unwrap()["stream"]["frames"].as_u64() > Some(5), "{size} from {from}");
        r.wait().check(0, None);
        same(&std::fs::read(&out).unwrap(), part);
    }
}

/// What looks like a stream and cannot be taken for one is said; what does not goes without a word.
#[test]
fn what_only_looks_like_a_stream_goes_as_datagrams_and_that_is_said() {
    let clip = clip();
    let wide: Vec<u8> = clip.chunks(188).take(400).flat_map(|p| [&[1, 2, 3, 4], p].concat()).collect();
    let cut = |bytes: &[u8], size: usize| bytes.chunks_exact(size).take(50).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let holes = (0..50).map(|i| clip[i * 1_001..][..700].to_vec()).collect();
    let cases: [(Vec<Vec<u8>>, &[&str]); 5] = [
        (cut(&wide, 1_472), &["packets of 192 bytes (M2TS", "without -mpegts_m2ts_mode"]),
        (cut(&wide, 7 * 192), &["packets of 192 bytes (M2TS"]),
        (holes, &["looks like a transport stream", "take --mode media"]),
        ([cut(&clip[100..164], 64), cut(&clip[164..], 1_472)].concat(), &["its first datagram did not show"]),
        (cut(&noise(60_000, 9), 1_200), &[]),
    ];
    for (datagrams, needles) in cases {
        let (port, input) = (port(), port());
        let (sink, sink_port) = bound();
        let r = receiver(port, &format!("udp://127.0.0.1:{sink_port}"), &[]);
        let s = sender(&format!("udp://127.0.0.1:{input}"), port);
        listening(input);
        let came = tap(sink, Vec::new());
        fed(input, datagrams.clone());
        sleep(Duration::from_millis(300));
        s.signal("INT");
        let e = s.wait();
        assert_eq!(e.code(), Some(130), "{}", e.stderr);
        assert_eq!(e.stderr.lines().count(), usize::from(!needles.is_empty()), "{}", e.stderr);
        assert!(needles.iter().all(|n| e.stderr.contains(n)), "{needles:?}: {}", e.stderr);
        assert_eq!(rows(&e.out())[0]["mode"], "datagram");
        r.wait().check(0, None);
        let mut came: Vec<_> = came.recv().unwrap().into_iter().map(|(_, d)| d).collect();
        let mut sent = datagrams;
        came.sort();
        sent.sort();
        assert!(came == sent, "{} of {} datagrams", came.len(), sent.len());
    }
}

#[test]
fn an_output_in_rtp_takes_a_transport_stream_only() {
    let (dir, _) = scratch();
    let input = file(&dir, "in", &noise(1_000, 3));
    let port = port();
    let r = receiver(port, "rtp://127.0.0.1:9", &[]);
    let s = run(&["send", &input, &format!("anabranch://127.0.0.1:{port}"), "--mode", "file"]);
    s.check(1, Some("its output rtp://127.0.0.1:9 takes a transport stream, not files"));
    r.wait().check(1, Some("takes a transport stream"));
}
