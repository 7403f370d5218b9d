//! A C program over the preload library, in virtual time: no root, no kernel SCTP, no network.

mod common;

use common::{compiled, library};
use std::path::Path;
use std::process::Command;

#[test]
fn a_program_for_the_kernel_runs_over_the_library() {
    runs_well("smoke.c", "a_program_for_the_kernel_runs_over_the_library");
}

#[test]
fn a_program_hears_what_becomes_of_its_messages_and_streams() {
    runs_well("events.c", "a_program_hears_what_becomes_of_its_messages_and_streams");
}

#[test]
fn a_program_sets_what_linux_has() {
    runs_well("options.c", "a_program_sets_what_linux_has");
}

#[test]
fn a_wait_that_nothing_can_end_ends_with_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled("hopeless.c", folder.path()) else {
        println!("SKIPPED a_wait_that_nothing_can_end_ends_with_one_line: no C compiler");
        return;
    };
    for threads in ["alone", "thread"] {
        let run = over_the_library(&program).arg(threads).output().expect("env runs");
        let complained = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{threads}: {complained}");
        assert!(complained.starts_with("anabranch: no packet will ever leave any more"), "{complained}");
        assert_eq!(complained.lines().count(), 1);
    }
}

fn over_the_library(program: &Path) -> Command {
    let mut run = Command::new("env");
    run.arg("ANABRANCH_WORLD=virtual").arg(format!("LD_PRELOAD={}", library().display())).arg(program);
    run
}

fn runs_well(source: &str, test: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(source, folder.path()) else {
        println!("SKIPPED {test}: no C compiler");
        return;
    };
    for _ in 0..2 {
        let run = over_the_library(&program).output().expect("env runs");
        let said = String::from_utf8_lossy(&run.stdout);
        let complained = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && said == "all as it should be\n", "{said}{complained}");
    }
}
