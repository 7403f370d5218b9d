//! What a live stream costs: processor time of a sending and a receiving program, ours and SRT's, in one interleaved run.
//!
//! `benches/live.sh` runs it. Between a source and a sink in this process, both of UDP, stands `anabranch send` with
//! `anabranch recv`, or srt-live-transmit twice, over loopback and without encryption. The stream is the clip of the
//! demo, looped; for higher rates each frame has as many more packets.

use anabranch_media::looping::LoopedClip;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bit rate of the clip, Mbit/s.
const CLIP_RATE: u64 = 8;

/// Until the connection is up and has measured its path.
const START: Duration = Duration::from_millis(2_500);
/// Part of the stream that is not counted.
const LEAD: Duration = Duration::from_secs(2);

struct Args {
    program: String,
    rates: Vec<u64>,
    rounds: usize,
    seconds: f64,
    latency: u64,
    extra: Vec<String>,
    only: Option<String>,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        program: "target/release/anabranch".into(),
        rates: vec![8, 40, 200],
        rounds: 3,
        seconds: 8.0,
        latency: 300,
        extra: Vec::new(),
        only: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let mut value = || words.next().ok_or(format!("{flag} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("{text} is no number"));
        match flag.as_str() {
            "--program" => args.program = value()?,
            "--rates" => args.rates = value()?.split(',').map(|r| number(r.into())).collect::<Result<_, _>>()?,
            "--rounds" => args.rounds = number(value()?)? as usize,
            "--seconds" => args.seconds = number(value()?)? as f64,
            "--latency" => args.latency = number(value()?)?,
            "--send" => args.extra = value()?.split_whitespace().map(Into::into).collect(),
            "--only" => args.only = Some(value()?),
            _ => {
                return Err(format!(
                    "there is no {flag}; there are --program, --rates, --rounds, --seconds, --latency, --send, --only"
                ));
            }
        }
    }
    if args.rounds == 0 || args.rates.is_empty() || args.rates.iter().any(|r| *r < CLIP_RATE) {
        return Err(format!("at least one round, and rates from {CLIP_RATE} Mbit/s"));
    }
    Ok(args)
}

/// The clip with `factor` times as many packets in each frame, numbered anew.
struct Stream {
    packets: Box<dyn Iterator<Item = Vec<u8>>>,
    factor: u64,
    counters: std::collections::BTreeMap<u16, u8>,
    repeat: Option<(Vec<u8>, u64)>,
}

impl Stream {
    fn new(clip: &LoopedClip, factor: u64) -> Self {
        let packets = Box::new(clip.iter().map(|p| p.bytes.to_vec()));
        Stream { packets, factor, counters: Default::default(), repeat: None }
    }

    fn numbered(&mut self, mut packet: Vec<u8>) -> Vec<u8> {
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        if packet[3] & 0x10 != 0 {
            let counter = self.counters.entry(pid).or_default();
            packet[3] = packet[3] & 0xf0 | *counter;
            *counter = (*counter + 1) & 0x0f;
        }
        packet
    }
}

impl Iterator for Stream {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some((packet, left)) = self.repeat.take() {
            self.repeat = (left > 1).then(|| (packet.clone(), left - 1));
            return Some(self.numbered(packet));
        }
        let packet = self.packets.next()?;
        // Whole payload, no start of a frame: a piece of picture.
        if packet[3] & 0x30 == 0x10 && packet[1] & 0x40 == 0 && self.factor > 1 {
            self.repeat = Some((packet.clone(), self.factor - 1));
        }
        Some(self.numbered(packet))
    }
}

/// Sends at a constant rate until it is stopped.
fn source(to: SocketAddr, rate: u64, clip: LoopedClip, stop: Arc<AtomicBool>, sent: Arc<AtomicU64>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut stream = Stream::new(&clip, rate / CLIP_RATE);
    let began = Instant::now();
    let mut bytes = 0u64;
    while !stop.load(Ordering::Relaxed) {
        while (bytes as f64) < began.elapsed().as_secs_f64() * rate as f64 * 1e6 / 8.0 {
            let datagram: Vec<u8> = stream.by_ref().take(7).flatten().collect();
            // A program that is not there is seen by what arrives.
            let _ = socket.send_to(&datagram, to);
            bytes += datagram.len() as u64;
            sent.store(bytes, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn sink(socket: UdpSocket, stop: Arc<AtomicBool>, received: Arc<AtomicU64>) {
    let mut buffer = vec![0; 65_536];
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    while !stop.load(Ordering::Relaxed) {
        if let Ok(n) = socket.recv(&mut buffer) {
            received.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
}

/// Processor time of a process so far, of all its threads, in seconds.
fn cpu(child: &Child) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", child.id())) else { return 0.0 };
    let of = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(of).sum::<u64>() as f64 / 1e9
}

fn spawn(words: &[String]) -> Child {
    let program = words.first().expect("a program");
    Command::new(program)
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(if std::env::var_os("SHOW").is_some() { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}"))
}

struct Cost {
    send: f64,
    recv: f64,
    delivered: f64,
    bytes: f64,
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| w.to_string()).collect()
}

/// One run of one tool.
fn measure(args: &Args, tool: &str, rate: u64, clip: &LoopedClip) -> Cost {
    let [input, output, transport] = free_ports();
    let (input_uri, output_uri) = (format!("udp://127.0.0.1:{input}"), format!("udp://127.0.0.1:{output}"));
    let latency = args.latency;
    let (recv, send) = if tool == "srt" {
        let common = format!("latency={latency}&transtype=live");
        (
            words(&[
                "srt-live-transmit",
                "-q",
                &format!("srt://127.0.0.1:{transport}?mode=listener&{common}"),
                &output_uri,
            ]),
            words(&["srt-live-transmit", "-q", &input_uri, &format!("srt://127.0.0.1:{transport}?{common}")]),
        )
    } else {
        let mut send = words(&[
            &args.program,
            "send",
            &input_uri,
            &format!("anabranch://127.0.0.1:{transport}?latency={latency}"),
            "--path",
            "127.0.0.1",
        ]);
        send.extend(args.extra.iter().cloned());
        (words(&[&args.program, "recv", &format!("anabranch://127.0.0.1:{transport}"), &output_uri]), send)
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let socket = UdpSocket::bind(("127.0.0.1", output)).expect("the output's port");
    let mut receiver = spawn(&recv);
    std::thread::sleep(Duration::from_millis(400));
    let mut sender = spawn(&send);
    std::thread::sleep(Duration::from_millis(400));
    let threads = {
        let (stop, sent, received, clip) = (stop.clone(), sent.clone(), received.clone(), clip.clone());
        let stop_too = stop.clone();
        let to = SocketAddr::from(([127, 0, 0, 1], input));
        [
            std::thread::spawn(move || source(to, rate, clip, stop, sent)),
            std::thread::spawn(move || sink(socket, stop_too, received)),
        ]
    };
    std::thread::sleep(START + LEAD);
    let at = || {
        (cpu(&sender), cpu(&receiver), sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed), Instant::now())
    };
    let before = at();
    std::thread::sleep(Duration::from_secs_f64(args.seconds));
    let after = at();
    stop.store(true, Ordering::Relaxed);
    for child in [&mut sender, &mut receiver] {
        let _ = child.kill();
        let _ = child.wait();
    }
    threads.into_iter().for_each(|t| t.join().expect("a thread"));
    let seconds = after.4.duration_since(before.4).as_secs_f64();
    let bytes = (after.3 - before.3) as f64;
    Cost {
        send: (after.0 - before.0) / seconds,
        recv: (after.1 - before.1) / seconds,
        delivered: bytes / (after.2 - before.2).max(1) as f64,
        bytes: bytes / seconds,
    }
}

fn free_ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    sockets.map(|s| s.local_addr().expect("its address").port())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let args = args().unwrap_or_else(|what| {
        eprintln!("live_cost: {what}");
        std::process::exit(2);
    });
    let clip = LoopedClip::new(anabranch_media::DEMO_CLIP).expect("the clip");
    let tools: Vec<&str> =
        ["anabranch", "srt"].into_iter().filter(|t| args.only.as_deref().is_none_or(|only| only == *t)).collect();
    println!("rate        tool       send     recv     delivered  CPU for 10^9 bytes  ratio to srt");
    for rate in &args.rates {
        let mut costs: Vec<Vec<Cost>> = tools.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for (tool, costs) in tools.iter().zip(&mut costs) {
                costs.push(measure(&args, tool, *rate, &clip));
            }
        }
        let per_byte = |c: &Cost| (c.send + c.recv) / c.bytes.max(1.0) * 1e9;
        for (i, tool) in tools.iter().enumerate() {
            let of = |f: &dyn Fn(&Cost) -> f64| median(costs[i].iter().map(f).collect());
            let ratios = costs.last().map_or(Vec::new(), |srt| {
                costs[i].iter().zip(srt).map(|(a, b)| per_byte(a) / per_byte(b)).collect::<Vec<_>>()
            });
            println!(
                "{rate:>4} Mbit/s {tool:<10} {:>5.1} %  {:>5.1} %  {:>7.2} %  {:>12.2} s       {:>5.2}",
                of(&|c| c.send * 100.0),
                of(&|c| c.recv * 100.0),
                of(&|c| c.delivered * 100.0),
                of(&per_byte),
                median(ratios),
            );
        }
        let _ = std::io::stdout().flush();
    }
}
