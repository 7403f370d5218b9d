//! The library under test, and C programs to run over it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that was built with this test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let deps = test.parent().expect("it stands in a folder");
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
