//! `anabranch lab` as a user meets it: mistakes, a stop, a disk that fills.

use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "small"
duration = "2s"
seeds = 40
metrics = ["main.goodput"]
topology = { kind = "single-path", rate = "2mbit", delay = "10ms", up.loss = "1%" }
[[flow]]
name = "main"
transport = "sctp"
[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["16KB", "64KB"]
"#;

/// Two networks without a way from one to the other.
const ISLANDS: &str = r#"
[topology]
kind = "free"
hosts = ["sender", "receiver", "a", "b"]
[[topology.cable]]
from = "sender"
to = "a"
[[topology.cable]]
from = "b"
to = "receiver"
"#;

fn anabranch() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anabranch"))
}

fn lab(dir: &Path, text: &str, more: &[&str]) -> Output {
    std::fs::write(dir.join("small.toml"), text).expect("a file");
    anabranch().current_dir(dir).args(["lab", "run", "small.toml"]).args(more).output().expect("runs")
}

/// Exit code and the lines on standard error.
fn end(o: &Output) -> (Option<i32>, Vec<String>) {
    (o.status.code(), String::from_utf8_lossy(&o.stderr).lines().map(str::to_owned).collect())
}

#[test]
fn mistakes_are_one_line_and_code_2() {
    let dir = tempfile::tempdir().expect("a folder");
    let wrong = [
        (SCENARIO.replace("seeds", "seedz"), "small.toml:4: unknown key `seedz`; did you mean `seeds`?"),
        (SCENARIO.replace("\"16KB\"", "\"1KB\""), "`receive-buffer` is 1024, and must lie between 1500 bytes and 4GB"),
        (
            SCENARIO.replace("\"main\"\n", "\"main\"\nto = \"nobody\"\n"),
            "there is no host `nobody`; there are sender, receiver",
        ),
        (SCENARIO.replace("\"sctp\"\n", "\"sctp\"\nstreams = 0\n"), "`streams`: needs one stream or more"),
        (
            SCENARIO.replace(SCENARIO.lines().find(|l| l.starts_with("topology")).unwrap_or_default(), ISLANDS),
            "flow `main`: `to`: no way leads from `sender` to `receiver`; only routers pass packets on",
        ),
        (SCENARIO.replace("sctp\"\n", "sctp\"\nretransmission = \"rtx_csi:tau=-1\"\n"), "rtx_csi: tau=-1 does not fit"),
    ];
    for (text, what) in wrong {
        let (code, lines) = end(&lab(dir.path(), &text, &[]));
        assert_eq!((code, lines.len()), (Some(2), 1), "{lines:?}");
        assert!(lines[0].contains("small.toml:") && lines[0].contains(what), "{lines:?}");
    }
    let (code, lines) = end(&anabranch().args(["lab", "run", "rtx-cis"]).output().expect("runs"));
    assert!(code == Some(2) && lines[0].contains("rtx-csi"), "{lines:?}");
    assert!(!dir.path().join("results").exists(), "nothing was written");
}

#[test]
fn a_disk_that_fills_keeps_what_was_done() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("small.toml"), SCENARIO).expect("a file");
    // Files may not grow beyond a few kilobytes, and the signal of it is ignored as that of a full disk never comes.
    let limited = "trap '' XFSZ; ulimit -f 4; exec \"$0\" lab run small.toml --out out --jobs 1";
    let o = Command::new("sh").current_dir(dir.path()).args(["-c", limited, env!("CARGO_BIN_EXE_anabranch")]).output();
    let (code, lines) = end(&o.expect("runs"));
    assert_eq!((code, lines.len()), (Some(2), 1), "{lines:?}");
    assert!(lines[0].contains("cannot write out/journal.jsonl") && lines[0].contains("goes on"), "{lines:?}");
    let journal = || std::fs::read_to_string(dir.path().join("out/journal.jsonl")).expect("a journal");
    let before = journal();
    let done = before.lines().filter(|l| l.ends_with('}')).count();
    assert!((5..80).contains(&done), "{done}");

    let again = lab(dir.path(), SCENARIO, &["--out", "out"]);
    let (code, lines) = end(&again);
    assert_eq!(code, Some(0), "{lines:?}");
    assert!(lines.iter().any(|l| l.contains(&format!("{done} of 80 runs were done before"))), "{lines:?}");
    let kept: String = before.split_inclusive('\n').filter(|l| l.ends_with('\n')).collect();
    assert!(journal().starts_with(&kept) && journal().lines().count() == 80);
    for file in ["results.csv", "claims.csv", "manifest.json", "report.html"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
    let rows = std::fs::read_to_string(dir.path().join("out/results.csv")).expect("results");
    assert_eq!(rows.lines().count(), 81);
}

#[test]
fn the_page_says_what_was_changed_and_how_to_make_it_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, lines) = end(&lab(dir.path(), SCENARIO, &["--out", "out", "--seeds", "2", "--set", "duration=1s"]));
    assert_eq!(code, Some(0), "{lines:?}");
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).expect("a page");
    assert!(page.contains("To run it again: anabranch lab run small.toml --seeds 2 --set duration=1s<"));
    assert!(
        page.contains("Other seeds or keys than the experiment") && page.contains("other seeds or keys than its own")
    );
}

#[test]
fn an_interrupt_ends_with_130() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("small.toml"), SCENARIO).expect("a file");
    let run = ["lab", "run", "small.toml", "--out", "out", "--seeds", "100000", "--jobs", "1"];
    let mut child = anabranch().current_dir(dir.path()).args(run).spawn().expect("starts");
    // Once the first run is noted the signals are caught.
    let journal = dir.path().join("out/journal.jsonl");
    while std::fs::metadata(&journal).map_or(0, |m| m.len()) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert!(!dir.path().join("out/results.csv").exists());
}
