//! C programs over the preload library with real packets on loopback: no root, no kernel SCTP.

mod common;

use common::{compiled, free_port, library, over_library};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};

/// A server that listens, and what else it will say.
fn server(program: &Path, udp_port: u16, way: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut child = over_library(program, udp_port).args(["server", "7007", way]).spawn().expect("it runs");
    let mut said = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    assert_eq!(line, "listening\n");
    (child, said)
}

/// What the client said, and then the server.
fn both(client: &str, client_way: &str, server_way: &str) -> Option<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("echo.c", folder.path())?;
    let udp_port = free_port();
    let (mut child, mut said) = server(&program, udp_port, server_way);
    let run = over_library(&program, udp_port).args([client, "7007", client_way]).output().expect("it runs");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it is text");
    let ended = child.wait().expect("it ends");
    let output = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && ended.success(), "client: {output}server: {rest}");
    Some((output, rest))
}

fn check(name: &str, client: &str, ways: (&str, &str), said: (&str, &str)) {
    match both(client, ways.0, ways.1) {
        Some((a, b)) => assert_eq!((a.as_str(), b.as_str()), said),
        None => println!("SKIPPED {name}: no C compiler"),
    }
}

#[test]
fn programs_that_wait_in_their_calls() {
    check("programs_that_wait_in_their_calls", "client", ("block", "block"), ("echoed 300\n", "served 300\n"));
}

#[test]
fn programs_that_wait_in_the_kernel() {
    for ways in [("poll", "epoll"), ("select", "poll"), ("epoll", "select"), ("edge", "edge")] {
        check("programs_that_wait_in_the_kernel", "client", ways, ("echoed 300\n", "served 300\n"));
    }
}

#[test]
fn a_child_of_fork_has_no_part_in_its_parents_sockets() {
    let said = ("the parent goes on\n", "served 1\n");
    check("a_child_of_fork_has_no_part_in_its_parents_sockets", "fork", ("-", "block"), said);
}

#[test]
fn a_thread_that_waits_can_be_cancelled_and_interrupted() {
    let said = ("no call hangs\n", "served 1\n");
    check("a_thread_that_waits_can_be_cancelled_and_interrupted", "cancel", ("-", "block"), said);
}

#[test]
fn what_was_sent_before_the_end_of_the_process_arrives() {
    let said = ("gone\n", "served 1\n");
    check("what_was_sent_before_the_end_of_the_process_arrives", "quick", ("-", "poll"), said);
}

#[test]
fn a_mistake_in_the_settings_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled("echo.c", folder.path()) else {
        println!("SKIPPED a_mistake_in_the_settings_is_one_line_and_exit_code_2: no C compiler");
        return;
    };
    let file = folder.path().join("sctp.toml");
    std::fs::write(&file, "profil = \"cmt\"\n").expect("a file");
    for (variable, value, line) in [
        ("ANABRANCH_CONFIG", file.to_str().expect("text"), format!("{}: unknown setting profil=cmt", file.display())),
        ("ANABRANCH_CONFIG", "/nowhere", "cannot read /nowhere: No such file or directory (os error 2)".into()),
        ("ANABRANCH_PROFILE", "fast", "no profile is called 'fast'".into()),
        ("ANABRANCH_LOCAL", "eth77", "there is no interface eth77; there are: ".into()),
    ] {
        let run = Command::new("env")
            .arg(format!("LD_PRELOAD={}", library().display()))
            .arg(format!("{variable}={value}"))
            .args([program.to_str().expect("text"), "client", "7007", "block"])
            .output()
            .expect("env runs");
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{variable}: {said}");
        assert!(said.starts_with(&format!("anabranch: {line}")) && said.lines().count() == 1, "{said}");
    }
}
