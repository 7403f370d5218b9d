//! The built binary as a child that cannot outlive its test.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// The clip of the media crate.
pub const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../media/clips/demo.ts");

/// Longest time anything may take here.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Ports of tests, below those that the system gives away by itself.
const PORTS: Range<u16> = 21_000..27_000;

/// A running `anabranch`.
pub struct Run {
    child: Child,
    name: String,
    stdout: Output,
    stderr: Output,
}

/// What a child has written so far.
struct Output {
    so_far: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let so_far = Arc::new(Mutex::new(Vec::new()));
        let all = so_far.clone();
        let reader = thread::spawn(move || {
            let mut some = [0; 8_192];
            // A child that is killed may break the pipe.
            while let Ok(n @ 1..) = from.read(&mut some) {
                all.lock().expect("no reader panics").extend_from_slice(&some[..n]);
            }
        });
        Output { so_far, reader }
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.so_far.lock().expect("no reader panics")).into_owned()
    }
    /// Everything: the child has ended.
    fn all(&mut self) -> Vec<u8> {
        while !self.reader.is_finished() {
            sleep(Duration::from_millis(1));
        }
        self.so_far.lock().expect("no reader panics").clone()
    }
}

/// How one ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
    /// Checks the exit code, and that standard error holds this one line or nothing.
    #[track_caller]
    pub fn check(&self, code: i32, needle: Option<&str>) {
        assert_eq!(self.code(), Some(code), "stderr: {}\nstdout: {}", self.stderr, self.out());
        match needle {
            Some(needle) => {
                assert_eq!(self.stderr.lines().count(), 1, "one line: {}", self.stderr);
                assert!(self.stderr.starts_with("anabranch: "), "{}", self.stderr);
                assert!(self.stderr.contains(needle), "`{needle}` is not in: {}", self.stderr);
            }
            None => assert_eq!(self.stderr, ""),
        }
    }
}

/// Starts `anabranch` with these arguments.
pub fn start(args: &[&str]) -> Run {
    start_with(args, Stdio::null())
}

/// [`start`] with a standard input.
pub fn start_with(args: &[&str], stdin: Stdio) -> Run {
    spawn(Command::new(env!("CARGO_BIN_EXE_anabranch")).args(args), args, stdin)
}

/// [`start`] behind another command, such as one that enters a namespace.
pub fn start_in(prefix: &[&str], args: &[&str]) -> Run {
    let mut command = Command::new(prefix[0]);
    spawn(command.args(&prefix[1..]).arg(env!("CARGO_BIN_EXE_anabranch")).args(args), args, Stdio::null())
}

fn spawn(command: &mut Command, args: &[&str], stdin: Stdio) -> Run {
    let mut child = command
        .env_remove("RUST_LOG")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let stdout = Output::of(child.stdout.take().expect("a pipe"));
    let stderr = Output::of(child.stderr.take().expect("a pipe"));
    Run { child, name: args.join(" "), stdout, stderr }
}

impl Run {
    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().expect("kill runs").success());
    }

    /// The child's standard input.
    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    /// Has it ended?
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_some()
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let until = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                break status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("`{}` does not end; stderr: {}", self.name, self.stderr.text());
            }
            sleep(Duration::from_millis(10));
        };
        let (stdout, stderr) = (self.stdout.all(), self.stderr.all());
        Ended { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }

    /// Waits until its standard error contains this.
    #[track_caller]
    pub fn says(&self, needle: &str) {
        let until = Instant::now() + LIMIT;
        while !self.stderr.text().contains(needle) {
            assert!(Instant::now() < until, "`{needle}` is not said: {}", self.stderr.text());
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `anabranch` to its end.
#[track_caller]
pub fn run(args: &[&str]) -> Ended {
    start(args).wait()
}

/// A UDP port that is this test's until its process ends. It lies below those that the system gives to sockets without
/// one, and an abstract socket of its name keeps every other test, in any process, from taking it as well.
pub fn port() -> u16 {
    static CLAIMED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    // Processes that start together look in different places first.
    let start = std::process::id() as usize % PORTS.len();
    for port in PORTS.skip(start).chain(PORTS.take(start)) {
        let name = UnixAddress::from_abstract_name(format!("anabranch-test-port-{port}")).expect("a short name");
        let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
        // Other programs do not know of claims.
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            CLAIMED.lock().expect("no test panics here").push(claim);
            return port;
        }
    }
    panic!("no port from {PORTS:?} is free");
}

/// Waits until a socket listens on a UDP port of 127.0.0.1. Trying to bind it would take it away for a moment.
#[track_caller]
pub fn listening(port: u16) {
    listening_on([127, 0, 0, 1], port);
}

/// [`listening`] on any address.
#[track_caller]
pub fn listening_on(address: [u8; 4], port: u16) {
    let until = Instant::now() + LIMIT;
    let local = format!("{:08X}:{port:04X} ", u32::from_le_bytes(address));
    while !std::fs::read_to_string("/proc/net/udp").expect("the list of sockets").contains(&local) {
        assert!(Instant::now() < until, "no socket listens on {port}");
        sleep(Duration::from_millis(10));
    }
}

/// Starts a receiver on `port` of 127.0.0.1 that ends with its first session, unless it is to go on, and waits until it
/// listens.
#[track_caller]
pub fn receiver(port: u16, output: &str, more: &[&str]) -> Run {
    let once: &[&str] = if more.contains(&"--keep") { &[] } else { &["--once"] };
    stays(port, output, &[once, more].concat())
}

/// Starts a receiver as it is without further flags.
#[track_caller]
pub fn stays(port: u16, output: &str, more: &[&str]) -> Run {
    let listen = format!("anabranch://127.0.0.1:{port}");
    let r = start(&[&["recv", &listen, output], more].concat());
    listening(port);
    r
}

/// Waits until a file has at least so many bytes.
#[track_caller]
pub fn grown(path: &Path, bytes: u64) {
    let until = Instant::now() + LIMIT;
    while std::fs::metadata(path).map_or(0, |m| m.len()) < bytes {
        assert!(Instant::now() < until, "{} does not grow", path.display());
        sleep(Duration::from_millis(10));
    }
}

/// Bytes that repeat nowhere near.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A directory that goes with the test, and a file in it.
pub fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    (dir, out)
}

/// A file with this content.
pub fn file(dir: &tempfile::TempDir, name: &str, content: &[u8]) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, content).expect("written");
    path.to_str().expect("a name").to_owned()
}

/// Fails unless both are the same, without printing megabytes.
#[track_caller]
pub fn same(got: &[u8], want: &[u8]) {
    let first = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(got == want, "{} bytes instead of {}, first difference at {first:?}", got.len(), want.len());
}

/// Rows of JSON statistics.
#[track_caller]
pub fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// Is this program here? Says by name what is skipped when it is not.
pub fn has(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("SKIPPED {test}: {program} is not installed");
    }
    found
}

/// Video frames that ffmpeg decodes from a file, and what it complains about.
pub fn decoded(path: &Path) -> (u64, String) {
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries", "stream=nb_read_frames"])
        .args(["-of", "csv=p=0"])
        .arg(path)
        .output()
        .expect("ffprobe runs");
    let frames = String::from_utf8_lossy(&probe.stdout);
    let frames = frames.lines().find_map(|l| l.trim().parse().ok()).unwrap_or(0);
    (frames, String::from_utf8_lossy(&probe.stderr).into_owned())
}

/// A live transport stream from ffmpeg to a UDP port of 127.0.0.1: 25 frames a second.
pub fn encoder(prefix: &[&str], port: u16, seconds: u32) -> Child {
    let (seconds, to) = (seconds.to_string(), format!("udp://127.0.0.1:{port}?pkt_size=1316"));
    let args = ["ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t", &seconds]
        .into_iter()
        .chain(["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25"])
        .chain([
            "-b:v", "2M", "-minrate", "2M", "-maxrate", "2M", "-bufsize", "200k", "-f", "mpegts", "-muxrate", "3M", &to,
        ]);
    let all: Vec<&str> = prefix.iter().copied().chain(args).collect();
    Command::new(all[0]).args(&all[1..]).stdin(Stdio::null()).spawn().expect("ffmpeg starts")
}

/// Opens the clip.
pub fn clip() -> Vec<u8> {
    let mut all = Vec::new();
    File::open(CLIP).and_then(|mut f| f.read_to_end(&mut all)).expect("the clip");
    all
}
