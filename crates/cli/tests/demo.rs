//! The demo as a user runs it: the program, its files, its exit codes.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn demo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("demo").args(args);
    command
}

/// Runs to the end, for no longer than `limit`.
fn run(mut command: Command, limit: Duration) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let waiting = thread::spawn(move || child.wait_with_output().unwrap());
    let started = Instant::now();
    while !waiting.is_finished() {
        if started.elapsed() > limit {
            signal(id, "KILL");
            panic!("not done after {limit:?}: {}", String::from_utf8_lossy(&waiting.join().unwrap().stderr));
        }
        thread::sleep(Duration::from_millis(20));
    }
    waiting.join().unwrap()
}

fn signal(id: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), id.to_string()]).status().unwrap();
    assert!(status.success());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn without_impairments_every_file_is_the_sent_one() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let args = ["--seconds", "3", "--no-impairments", "--format", "json", "--out", path(&out)];
    let output = run(demo(&args), Duration::from_secs(90));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let expected = ["received-3g.ts", "received-best.ts", "received-round_robin.ts", "received-wlan.ts"];
    let mut expected: Vec<&str> = expected.into_iter().chain(["report.html", "sent.ts", "summary.json"]).collect();
    expected.sort_unstable();
    assert_eq!(names(&out), expected);
    let sent = fs::read(out.join("sent.ts")).unwrap();
    assert!(sent.len() > 2_900_000 && sent.len().is_multiple_of(188));
    for name in names(&out).iter().filter(|n| n.starts_with("received-")) {
        assert!(fs::read(out.join(name)).unwrap() == sent, "{name} differs");
    }
    let text = fs::read_to_string(out.join("summary.json")).unwrap();
    assert_eq!(text, String::from_utf8(output.stdout).unwrap(), "what is printed is the file");
    check_summary(&serde_json::from_str(&text).unwrap());
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.starts_with("<!DOCTYPE html>") && report.contains("</html>"));
    for outside in ["<script", "<link rel=\"stylesheet", "src=\"http", "@import"] {
        assert!(!report.contains(outside), "{outside}");
    }
}

/// The fields that scripts rely on.
fn check_summary(summary: &Value) {
    let control = &summary["control"];
    assert!(control["ok"].is_boolean());
    for field in ["machine_loss", "delay_error_p50_ms", "delay_error_p99_ms", "delay_error_max_ms"] {
        assert!(control[field].is_f64(), "control.{field}");
    }
    assert_eq!(control["beside_runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(summary["best"], "live");
    assert_eq!(summary["impairments"], false);
    let runs = summary["runs"].as_array().unwrap();
    let run_names: Vec<&str> = runs.iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(run_names, ["wlan", "3g", "round_robin", "best"]);
    for run in runs {
        let number = |field: &str| run[field].as_u64().unwrap_or_else(|| panic!("{field} of {run}"));
        assert!((74..=78).contains(&number("frames")), "{run}");
        let by_class = |field: &str| ["I", "P", "B"].iter().map(|c| run[field][c].as_u64().unwrap()).sum::<u64>();
        assert_eq!(by_class("frames_by_class"), number("frames"));
        assert_eq!(by_class("frames_unusable_by_class"), 0);
        for field in ["frames_unusable", "frames_undecodable", "packets_unusable", "packets_late"] {
            assert_eq!(number(field), 0, "{field}");
        }
        assert!(number("packets") > 2_600);
        assert_eq!(number("bytes_media"), number("bytes_played"));
        assert!(number("bytes_wire") > number("bytes_media"));
        assert_eq!(run["identical"], true);
        let paths = run["paths"].as_array().unwrap();
        assert_eq!(paths.len(), if run["name"] == "wlan" || run["name"] == "3g" { 1 } else { 2 });
        let carried: u64 = paths.iter().map(|p| p["bytes_wire"].as_u64().unwrap()).sum();
        assert_eq!(carried, number("bytes_wire"));
    }
    let round_robin = &runs[2]["paths"];
    for path in round_robin.as_array().unwrap() {
        assert!(path["packets_delivered"].as_u64().unwrap() > 100, "both networks carry something: {path}");
    }
}

#[test]
fn mistakes_are_one_line_and_code_2() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "x").unwrap();
    let out = scratch.path().join("out");
    let cases = [
        (vec!["--out", path(&file)], "file"),
        (vec!["--out", path(&out), "--runs", "wlan,5g"], "`5g`"),
        (vec!["--out", path(&out), "--runs", "wlan,wlan"], "twice"),
        (vec!["--out", path(&out), "--seconds", "0"], "--seconds"),
        (vec!["--out", path(&out), "--colour"], "--colour"),
    ];
    for (args, word) in cases {
        let output = run(demo(&args), Duration::from_secs(20));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(word) && text.trim_end().lines().count() == 1, "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(names(scratch.path()), ["file"], "nothing was made");
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    for wait in [Duration::from_secs(1), Duration::from_secs(7)] {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().join("out");
        let mut command = demo(&["--no-impairments", "--seconds", "60", "--out", path(&out)]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(wait);
        assert!(out.exists(), "it is running");
        signal(child.id(), "INT");
        let sent = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
        assert!(!out.exists(), "{:?}", names(&out));
    }
}
