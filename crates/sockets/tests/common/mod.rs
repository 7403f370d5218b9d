//! The library under test, and C programs to run over it.

#![allow(dead_code, reason = "each test uses some of it")]

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library that was built with this test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let deps = test.parent().expect("it is in a folder");
    let name = "libanabranch_sockets.so";
    let found = [deps.join(name), deps.join("..").join(name)].into_iter().find(|p| p.exists());
    found.expect("cargo builds the library for its tests")
}

/// A program of `tests/`; none without a C compiler.
pub fn compiled(source: &str, to: &Path) -> Option<PathBuf> {
    let program = to.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let flags = ["-std=gnu11", "-O2", "-D_FORTIFY_SOURCE=2", "-Wall", "-pthread", "-o"];
    let done = Command::new("cc").args(flags).arg(&program).arg(source).output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

/// A UDP port that is free now.
pub fn free_port() -> u16 {
    let s = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    s.local_addr().expect("its address").port()
}

/// A program over the library with real packets, for a minute at most.
pub fn over_library(program: &Path, udp_port: u16) -> Command {
    let mut c = Command::new("timeout");
    c.args(["60", "env"]).arg(format!("LD_PRELOAD={}", library().display()));
    c.arg(format!("ANABRANCH_SET=udp_port={udp_port}")).arg(program);
    c.stdout(Stdio::piped());
    c
}
