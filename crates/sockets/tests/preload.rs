//! A C program over the preload library, in virtual time: no root, no kernel SCTP, no network.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let deps = test.parent().expect("it stands in a folder");
    let name = "libanabranch_sockets.so";
    let found = [deps.join(name), deps.join("..").join(name)].into_iter().find(|p| p.exists());
    found.expect("cargo builds the library for its tests")
}

fn compiled(source: &str, to: &Path) -> Option<PathBuf> {
    let program = to.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let done = Command::new("cc").args(["-std=gnu11", "-Wall", "-o"]).arg(&program).arg(source).output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

#[test]
fn a_program_for_the_kernel_runs_over_the_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled("smoke.c", folder.path()) else {
        println!("SKIPPED a_program_for_the_kernel_runs_over_the_library: no C compiler");
        return;
    };
    for _ in 0..2 {
        let run = Command::new("env")
            .arg("ANABRANCH_WORLD=virtual")
            .arg(format!("LD_PRELOAD={}", library().display()))
            .arg(&program)
            .output()
            .expect("env runs");
        let said = String::from_utf8_lossy(&run.stdout);
        let complained = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && said == "all as it should be\n", "{said}{complained}");
    }
}
