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
            SCENARIO.replace("\"main\"\n", "\"main\"\nto = \"absent\"\n"),
            "there is no host `absent`; there are sender, receiver",
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
fn other_seeds_or_keys_leave_the_full_run_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = SCENARIO.replace("seeds = 40", "seeds = 2");
    for (more, folder) in [(&[][..], "small"), (&["--seeds", "1"], "small-custom"), (&["--quick"], "small-quick")] {
        let (code, lines) = end(&lab(dir.path(), &text, more));
        assert_eq!(code, Some(0), "{lines:?}");
        assert!(dir.path().join("results").join(folder).join("report.html").is_file(), "{folder}");
    }
    let (code, lines) = end(&lab(dir.path(), &text, &["--set", "duration=1s"]));
    assert_eq!(code, Some(0), "{lines:?}");
    let rows = |folder: &str| std::fs::read_to_string(dir.path().join("results").join(folder).join("results.csv"));
    let lines = |folder: &str| rows(folder).expect("results").lines().count();
    // Two values, two seeds and a head; --set came last into the folder of custom forms.
    assert_eq!((lines("small"), lines("small-custom")), (5, 5));
    let manifest = std::fs::read_to_string(dir.path().join("results/small/manifest.json")).expect("a manifest");
    assert!(manifest.contains("\"form\": \"full\""), "{manifest}");
}

/// The disk fills between results and manifest: what was there stays, and no report mixes the two.
#[test]
fn a_disk_that_fills_between_two_files_leaves_both_as_they_were() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = SCENARIO.replace("seeds = 40", "seeds = 2");
    let (code, lines) = end(&lab(dir.path(), &text, &["--out", "out"]));
    assert_eq!(code, Some(0), "{lines:?}");
    let read = |name: &str| std::fs::read(dir.path().join("out").join(name)).expect(name);
    let before = (read("results.csv"), read("manifest.json"));
    assert!(before.0.len() < 2_048 && before.1.len() > 4_096, "{} {}", before.0.len(), before.1.len());
    // Blocks of 512 bytes: room for results and journal, none for the manifest.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" lab run small.toml --out out --seeds 1 --jobs 1";
    let o = Command::new("sh").current_dir(dir.path()).args(["-c", limited, env!("CARGO_BIN_EXE_anabranch")]).output();
    let (code, lines) = end(&o.expect("runs"));
    assert_eq!(code, Some(2), "{lines:?}");
    assert!(lines.last().is_some_and(|l| l.contains("cannot write out/manifest.json")), "{lines:?}");
    assert!((read("results.csv"), read("manifest.json")) == before);
    let (code, lines) =
        end(&anabranch().current_dir(dir.path()).args(["lab", "report", "out"]).output().expect("runs"));
    assert_eq!(code, Some(0), "{lines:?}");
}

/// Every file in the folder but the parts of the journal, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.expect("a name").path());
    let mut names: Vec<String> = entries
        .filter(|p| p.is_file())
        .map(|p| p.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn other_results_in_a_folder_are_reported_and_leave_nothing_beside_the_new() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = |part: &str| dir.path().join("out").join(part);
    let text =
        SCENARIO.replace("seeds = 40", "seeds = 2").replace("[\"main.goodput\"]", "[\"main.goodput\", \"main.delay\"]");
    let noting = text.replace("topology =", "series = [\"main.cwnd\"]\ntopology =");
    let run = |text: &str, more: &[&str]| {
        let (code, mut lines) = end(&lab(dir.path(), text, &[&["--out", "out"], more].concat()));
        assert_eq!(code, Some(0), "{lines:?}");
        lines.retain(|l| l.contains("holds other results"));
        lines
    };
    assert_eq!(run(&noting, &["--log", "--csv", "--pcap"]), [""; 0]);
    for own in ["trace/mine.jsonl", "figures/main.cwnd-mine.svg", "series/mine.csv"] {
        std::fs::write(out(own), "x").expect("a file");
    }
    let all = ["trace", "figures", "series"].map(|f| files(&out(f)));
    assert_eq!((all[0].len(), all[2].len()), (2 * 4 + 1, 2), "{all:?}");
    // Once more, and with more seeds: nothing goes.
    assert_eq!(run(&noting, &[]), [""; 0]);
    assert_eq!(run(&noting, &["--seeds", "3"]), [""; 0]);
    assert_eq!(["trace", "figures", "series"].map(|f| files(&out(f))), all);
    // Stopped by a mistake: all stays as it was.
    let before = std::fs::read(out("results.csv")).expect("results");
    let (code, _) = end(&lab(dir.path(), &text.replace("10ms", "ten"), &["--out", "out"]));
    assert_eq!((code, std::fs::read(out("results.csv")).expect("results")), (Some(2), before));
    // Another network, without series and with one metric less.
    let other = text.replace("10ms", "90ms").replace(", \"main.delay\"", "");
    let said = run(&other, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("out holds other results (topology.path1.down.delay = 0.01, now 0.09 and"), "{said:?}");
    assert_eq!((files(&out("trace")), files(&out("series"))), (vec!["mine.jsonl".into()], vec!["mine.csv".into()]));
    let figures = files(&out("figures"));
    assert!(figures.iter().all(|f| f.starts_with("main.goodput.") || f == "main.cwnd-mine.svg"), "{figures:?}");
    assert!(figures.len() > 2, "{figures:?}");
    // A scenario of another name; and fewer points.
    let said = run(&other.replace("\"small\"", "\"big\""), &["--log"]);
    assert!(said.len() == 1 && said[0].contains("(scenario `small`)"), "{said:?}");
    let said = run(&other.replace("\"small\"", "\"big\"").replace("\"16KB\", ", ""), &[]);
    assert!(said.len() == 1 && said[0].contains("(rbuf = 16KB)"), "{said:?}");
    assert_eq!(files(&out("trace")), ["big-64KB-seed1.jsonl", "mine.jsonl"]);
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

/// Starts a run and waits until this file is there and not empty.
fn started(dir: &Path, more: &[&str], sign: &str) -> std::process::Child {
    let run = ["lab", "run", "small.toml", "--out", "out", "--jobs", "1"];
    let mut child = anabranch();
    child.current_dir(dir).args(run).args(more).stdout(std::process::Stdio::null());
    let child = child.stderr(std::process::Stdio::piped()).spawn().expect("starts");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::fs::metadata(dir.join("out").join(sign)).map_or(0, |m| m.len()) == 0 {
        assert!(std::time::Instant::now() < until, "no {sign}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

fn interrupt(child: &std::process::Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
}

#[test]
fn an_interrupt_between_traces_ends_with_130() {
    let dir = tempfile::tempdir().expect("a folder");
    let values: Vec<String> = (0..40).map(|i| format!("\"{}KB\"", 16 + i)).collect();
    let text = SCENARIO.replace("seeds = 40", "seeds = 1").replace("\"16KB\", \"64KB\"", &values.join(", "));
    std::fs::write(dir.path().join("small.toml"), text.replace("\"2s\"", "\"60s\"")).expect("a file");
    let child = started(dir.path(), &["--csv", "--log"], "trace/small-16KB-seed1.csv");
    interrupt(&child);
    let ended = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("the traces that are named are whole"), "{said}");
    let names = std::fs::read_dir(dir.path().join("out/trace")).expect("a folder");
    let names: Vec<_> = names.map(|e| e.expect("a name").file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() < 80 && names.iter().all(|n| !n.ends_with(".part")), "{names:?}");
}

#[test]
fn a_second_interrupt_does_not_wait_for_a_long_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = SCENARIO.replace("rbuf", "time").replace("flow.main.receive-buffer", "duration");
    // The first run is over at once, the second takes hours.
    let text = text.replace("\"16KB\", \"64KB\"", "\"1s\", \"300000s\"");
    std::fs::write(dir.path().join("small.toml"), text).expect("a file");
    let mut child = started(dir.path(), &["--seeds", "1"], "journal.jsonl");
    interrupt(&child);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(child.try_wait().expect("its state"), None, "what is running is finished");
    interrupt(&child);
    let ended = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("Ctrl-C again ends at once"), "{said}");
}

#[test]
fn a_manifest_says_what_was_run_and_by_what() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, said) = end(&lab(dir.path(), SCENARIO, &["--seeds", "1", "--out", "r"]));
    assert_eq!(code, Some(0), "{said:?}");
    let text = std::fs::read_to_string(dir.path().join("r/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let run = &manifest["scenarios"][0];
    // What the file does not set comes from the profile.
    assert_eq!(run["resolved"]["flow.main.window"], "westwood:floor=2,round=50", "{run}");
    assert_eq!(run["points"][1]["changes"]["flow.main.receive-buffer"], 65_536, "{run}");
    assert_eq!(run["resolved"]["flow.main.traffic"]["kind"], "bulk", "{run}");
    let page = std::fs::read_to_string(dir.path().join("r/report.html")).expect("a page");
    assert!(page.contains("at the first point, as written") && page.contains("manifest.json has every parameter"));
    assert_eq!(run["sets"]["rbuf"][0], "flow.main.receive-buffer", "{run}");
    let git = Command::new("git").args(["ls-files", "--error-unmatch", "build.rs"]).output();
    if git.is_ok_and(|o| o.status.success()) {
        let commit = manifest["commit"].as_str().unwrap_or_default();
        let id = commit.strip_suffix('+').unwrap_or(commit);
        assert!(id.len() >= 12 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{commit:?}");
    }
}

#[test]
fn a_scenario_that_is_shown_runs_from_a_file_of_its_own() {
    let dir = tempfile::tempdir().expect("a folder");
    let show = |name: &str, file: &str| {
        let shown = anabranch().args(["lab", "show", name]).output().expect("runs");
        assert_eq!(shown.status.code(), Some(0), "{name}");
        std::fs::write(dir.path().join(file), &shown.stdout).expect("a file");
        String::from_utf8_lossy(&shown.stderr).into_owned()
    };
    let run = |file: &str| {
        let short = ["--seeds", "1", "--quick", "--set", "duration=6s", "--out", "r"];
        let ran = anabranch().current_dir(dir.path()).args(["lab", "run", file]).args(short).output().expect("runs");
        assert_eq!(ran.status.code(), Some(0), "{file}: {:?}", end(&ran).1);
    };
    assert_eq!(show("rtx-csi/e2-case1", "e2.toml"), "");
    run("e2.toml");
    let said = show("examples/kinds-of-loss", "loss.toml");
    assert_eq!(
        said,
        "anabranch: it reads `losses.txt` beside it: anabranch lab show examples/losses.txt > losses.txt\n"
    );
    show("examples/losses.txt", "losses.txt");
    run("loss.toml");
}

#[test]
fn the_experiment_of_the_documentation_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let page = include_str!("../../../docs/REPORTS.md");
    let mut written = 0;
    for block in page.split("```toml\n# my/").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        let (name, text) = text.split_once('\n').expect("a name and a file");
        std::fs::create_dir_all(dir.path().join("my")).expect("a folder");
        std::fs::write(dir.path().join("my").join(name), text).expect("a file");
        written += 1;
    }
    assert_eq!(written, 5);
    let run = |what: &str| {
        let ran = anabranch().current_dir(dir.path()).args(["lab", "run", what]).output().expect("runs");
        assert_eq!(ran.status.code(), Some(0), "{what}: {:?}", end(&ran).1);
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let said = run("my");
    assert!(said.contains("Claims: 1 reproduced, 0 contradicted, 0 not testable"), "{said}");
    let figure = std::fs::read_to_string(dir.path().join("results/distance/figures/goodput.csv")).expect("a figure");
    assert!(figure.contains("near") && figure.contains("far"), "{figure}");
    run("my/far.toml");
    assert!(dir.path().join("results/far/report.html").is_file());
}

const FILM: &str = r#"
name = "film"
duration = "3s"
measure-from = "1s"
seeds = 4
metrics = ["film.whole-frames", "film.goodput", "film.possible-frames"]
[topology]
kind = "disjoint-paths"
path1 = { rate = "8mbit", delay = "10ms" }
path2 = { rate = "8mbit", delay = "20ms" }
[[flow]]
name = "film"
transport = "sctp"
profile = "live"
encapsulation = "udp"
packet-size = 1228
playout = "500ms"
traffic = { kind = "video", rate = "2mbit", fps = 25, group = 50 }
"#;

fn emulate(dir: &Path, text: &str, more: &[&str]) -> Output {
    std::fs::write(dir.join("film.toml"), text).expect("a file");
    anabranch().current_dir(dir).args(["lab", "emulate", "film.toml"]).args(more).output().expect("runs")
}

#[test]
fn what_an_emulator_cannot_carry_out_is_one_line_and_code_2() {
    let dir = tempfile::tempdir().expect("a folder");
    let second = "[[flow]]\nname = \"other\"\ntransport = \"sctp\"\n";
    let wrong = [
        (format!("{FILM}{second}"), "film: on real sockets: a scenario has exactly one flow"),
        (
            FILM.replace("profile = \"live\"\n", "read-rate = \"1mbit\"\n"),
            "film: on real sockets: there is no read-rate",
        ),
    ];
    for (text, said) in wrong {
        let (code, lines) = end(&emulate(dir.path(), &text, &[]));
        assert!(code == Some(2) && lines.len() == 1 && lines[0].contains(said), "{code:?} {lines:?}, not {said}");
    }
    let (code, lines) = end(&emulate(dir.path(), FILM, &["--at", "sender=live"]));
    assert!(code == Some(2) && lines.len() == 1 && lines[0].contains("no scenario sweeps `sender`"), "{lines:?}");
    let (code, lines) = end(&emulate(dir.path(), FILM, &["--out", "nowhere/film.csv"]));
    assert!(code == Some(2) && lines.len() == 1 && lines[0].contains("cannot write nowhere/film.csv"), "{lines:?}");
}

/// The machine that tests run on may be busy: what is judged is that values come from both sides, not what they are.
#[test]
fn a_scenario_runs_on_real_sockets_and_in_the_simulator() {
    let dir = tempfile::tempdir().expect("a folder");
    let o = emulate(dir.path(), FILM, &["--runs", "1", "--out", "film.csv"]);
    let (code, lines) = end(&o);
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?} {lines:?}");
    let table = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(table.contains("film.whole-frames") && !table.contains("possible"), "{table}");
    let csv = std::fs::read_to_string(dir.path().join("film.csv")).expect("written");
    let count = |place: &str| csv.lines().filter(|l| l.contains(place) && l.contains("whole-frames")).count();
    assert_eq!(count("simulated"), 4, "{csv}");
    assert!(count("real") == 1 || code == Some(3), "{csv}");
}

/// A transfer has something to send at any time, and so no end but the run's.
#[test]
fn a_transfer_over_a_link_that_reports_ends_with_the_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = FILM
        .replace(
            "metrics = [\"film.whole-frames\", \"film.goodput\", \"film.possible-frames\"]",
            "metrics = [\"film.goodput\"]",
        )
        .replace("profile = \"live\"", "profile = \"cmt-cl-fd\"")
        .replace("delay = \"10ms\"", "delay = \"10ms\", report = \"100ms\", loss = \"1%\", technology = \"wlan\"");
    let text: String = text
        .lines()
        .filter(|l| !l.starts_with("traffic") && !l.starts_with("playout"))
        .map(|l| format!("{l}\n"))
        .collect();
    let o = emulate(dir.path(), &text, &["--runs", "1", "--out", "film.csv"]);
    let (code, lines) = end(&o);
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?} {lines:?}");
    let csv = std::fs::read_to_string(dir.path().join("film.csv")).expect("written");
    let real = csv.lines().find_map(|l| l.strip_prefix("film,,film.goodput,real,"));
    // Of 16 Mbit/s, on a machine that may be busy.
    let carried = real.map(|v| v.parse::<f64>().expect("a number"));
    assert!(carried.is_some_and(|v| (1e5..16e6).contains(&v)) || code == Some(3), "{csv}");
}
