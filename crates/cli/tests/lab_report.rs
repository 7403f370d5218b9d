//! `lab run`, `lab report` and `trace` from end to end: the page opens in a browser without a complaint, plots are on it,
//! mistakes have one line.

mod common;

use common::run;
use std::path::Path;
use std::process::Command;

const SCENARIO: &str = r#"
name = "tiny"
title = "Two buffers"
duration = "3s"
seeds = 6
metrics = ["main.goodput", "main.delay"]
topology = { kind = "single-path", rate = "10mbit", delay = "50ms", limit = "50p", loss = "1%" }

[[flow]]
name = "main"
transport = "sctp"
profile = "sctp"

[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["16KB", "128KB"]

[[figure]]
name = "goodput"
title = "Goodput by receive buffer"
kind = "line"
x = "rbuf"
metric = "main.goodput"
unit = "Mbit/s"
printed = { "16KB" = 1.2 }

[[figure]]
name = "delay"
title = "Delay by receive buffer"
kind = "bars"
x = "rbuf"
metric = "main.delay"
unit = "ms"

[[claim]]
id = "TINY-C01"
says = "a larger buffer is faster"
kind = "increasing"
metric = "main.goodput"
unit = "Mbit/s"
over = "rbuf"
"#;

/// A folder with results and traces, made by the program.
fn results() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let out = folder.path().join("out");
    let traces = ["--pcap", "--csv", "--log", "--trace-at", "rbuf=128KB"];
    let args = ["lab", "run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let ended = run(&[&args[..], &traces].concat());
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    folder
}

/// The page as a browser sees it, and what it says on its console; none without a browser.
fn browse(page: &Path) -> Option<(String, String)> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let profile = tempfile::tempdir().unwrap();
    for name in names {
        let output = Command::new("timeout")
            .args(["60", name, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .output();
        if let Ok(o) = output
            && o.status.success()
        {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            return Some((text(&o.stdout), text(&o.stderr)));
        }
    }
    None
}

/// What a page says on its console.
fn complaints(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("CONSOLE")).collect()
}

/// Otherwise a page without complaints would say nothing.
#[test]
fn a_browser_that_complains_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("wrong.html");
    for wrong in ["console.error('loud');", "unknown.to(this);"] {
        std::fs::write(&page, format!("<!doctype html><title>x</title><script>{wrong}</script>")).unwrap();
        let Some((_, log)) = browse(&page) else {
            eprintln!("SKIPPED {}: no chromium here to open it", page.display());
            return;
        };
        assert_eq!(complaints(&log).len(), 1, "{wrong}: {log}");
    }
}

#[track_caller]
fn opens(page: &Path, plots: usize, marks: &[&str]) {
    let Some((dom, log)) = browse(page) else {
        eprintln!("SKIPPED {}: no chromium here to open it", page.display());
        return;
    };
    assert!(complaints(&log).is_empty(), "{log}");
    assert_eq!(dom.matches("<svg class=\"plot\"").count(), plots);
    for mark in marks {
        assert!(dom.contains(&format!("<path class=\"{mark} c0\"")), "no marks of kind {mark}");
    }
    assert!(!dom.contains("no data"));
}

#[test]
fn the_report_is_made_again_and_opens_in_a_browser() {
    let folder = results();
    let out = folder.path().join("out");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let (page, claims) = (read("report.html"), read("claims.csv"));
    assert!(claims.contains("TINY-C01,reproduced,increasing,"), "{claims}");
    assert!(read("figures/goodput.csv").lines().count() == 3 && read("figures/delay.svg").starts_with("<svg"));
    for gone in ["report.html", "claims.csv", "figures/goodput.csv"] {
        std::fs::remove_file(out.join(gone)).unwrap();
    }
    let ended = run(&["lab", "report", out.to_str().unwrap()]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert_eq!((read("report.html"), read("claims.csv")), (page, claims));
    // Lines with error bars and points, what is printed, and bars.
    opens(&out.join("report.html"), 2, &["l", "e", "p", "o", "f"]);

    let trace = out.join("trace");
    let names: Vec<String> =
        std::fs::read_dir(&trace).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let log = trace.join("tiny-128KB-seed1.jsonl");
    run(&["trace", log.to_str().unwrap()]).check(0, None);
    opens(&log.with_extension("html"), 5, &["l", "p", "o"]);
}

/// Of results made elsewhere: CI runs an experiment's quick form with the released program and has its page looked at.
#[test]
#[ignore = "needs ANABRANCH_RESULTS, a folder that `lab run` wrote"]
fn the_page_of_a_folder_of_results_opens_in_a_browser() {
    let folder = std::env::var_os("ANABRANCH_RESULTS").expect("ANABRANCH_RESULTS names a folder that `lab run` wrote");
    // Tests run in the folder of their crate, who calls them in that of the repository.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let drawn = std::fs::read_dir(folder.join("figures")).expect("figures").map(|f| f.expect("a file").path());
    let plots = drawn.filter(|f| f.extension().is_some_and(|e| e == "svg")).count();
    assert!(plots > 1, "an experiment has figures");
    let page = folder.join("report.html").canonicalize().expect("a page");
    opens(&page, plots, &["l", "e", "p", "f"]);
}

/// The output of a command is not read, or cannot be: the files are there all the same.
#[test]
fn a_reader_that_is_gone_is_no_failure_and_a_full_device_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    std::fs::write(&file, SCENARIO.replace("seeds = 6", "seeds = 2")).unwrap();
    let commands = [
        "lab run tiny.toml --out out --log --trace-at rbuf=16KB",
        "lab report out",
        "trace out/trace/tiny-16KB-seed1.jsonl",
        "lab list",
        "policies",
    ];
    let ended = |sh: String| {
        let mut bash = Command::new("bash");
        let o = bash.current_dir(folder.path()).args(["-c", &sh, env!("CARGO_BIN_EXE_anabranch")]).output().unwrap();
        (o.status.code(), String::from_utf8_lossy(&o.stderr).into_owned())
    };
    for command in commands {
        // The pipe has lost its reader before the first line.
        let (code, said) = ended(format!("(sleep 0.3; exec \"$0\" {command}) | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((code, said.contains("panicked")), (Some(0), false), "{command}: {said}");
        let (code, said) = ended(format!("exec \"$0\" {command} >/dev/full"));
        assert_eq!(code, Some(2), "{command}: {said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("anabranch: cannot write to standard output: No space left"), "{command}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(folder.path().join("out/trace/tiny-16KB-seed1.html").is_file());
}

#[test]
fn mistakes_have_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("not.jsonl"), "hello\n").unwrap();
    std::fs::write(path("manifest.json"), "{}").unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["lab", "run", "rtx-csi/e1", "--quick", "--out", &path("not.jsonl")], "not.jsonl: a file and no folder"),
        (&["lab", "run", "rtx-csi/e1", "--quick", "--out", &path("not.jsonl/x")], "journal.jsonl: Not a directory"),
        (&["lab", "report", &path("nowhere")], "holds no results"),
        (&["lab", "report", &path("")], "manifest.json"),
        (&["trace", &path("none.jsonl")], "cannot read"),
        (&["trace", &path("not.jsonl")], "line 1 is not of an event log"),
        (&["trace", &path("not.jsonl"), "--out", "x.pdf"], "end the name in .html, .svg or .png"),
        (&["lab", "run", "rtx-csi/e1", "--log", "--trace-at", "rbuf=7KB"], "`rbuf` is one of 16KB"),
        (&["lab", "run", "rtx-csi", "--pcap"], "choose some with --trace-at"),
        (&["lab", "run", "rtx-csi/e1", "--frames", "--trace-at", "rbuf=16KB"], "no flow there has a viewer"),
    ];
    for (args, needle) in cases {
        run(args).check(2, Some(needle));
    }
}
