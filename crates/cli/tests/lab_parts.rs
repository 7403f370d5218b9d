//! Parts of an experiment: some points, some seeds, shards of several machines, and how long it all takes.

use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
name = "small"
duration = "2s"
seeds = 5
metrics = ["main.goodput"]
series = ["main.cwnd"]
topology = { kind = "single-path", rate = "2mbit", delay = "10ms", up.loss = "1%" }
[[flow]]
name = "main"
transport = "sctp"
[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["16KB", "64KB"]
[[sweep]]
name = "loss"
sets = "topology.up.loss"
values = ["0%", "1%", "2%"]
"#;

fn lab(dir: &Path, words: &[&str]) -> Output {
    std::fs::write(dir.join("small.toml"), SCENARIO).expect("a file");
    let program = env!("CARGO_BIN_EXE_anabranch");
    Command::new(program).current_dir(dir).arg("lab").args(words).output().expect("runs")
}

fn ends_well(o: &Output) -> String {
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// Code 2 and its one line.
fn mistake(o: &Output) -> String {
    let text = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(2), "{text}");
    text.lines().last().unwrap_or_default().to_owned()
}

/// All files of a folder with their contents, but the journal and what runs left for it.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(dir).expect("inside").display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name != "journal.jsonl" && !name.starts_with("series/runs") {
                out.push((name, std::fs::read(&path).expect("a file")));
            }
        }
    }
    out.sort();
    out
}

#[test]
fn shards_that_are_merged_are_the_whole_byte_for_byte() {
    let dir = tempfile::tempdir().expect("a folder");
    ends_well(&lab(dir.path(), &["run", "small.toml", "--out", "whole"]));
    let whole = contents(&dir.path().join("whole"));
    assert!(whole.iter().any(|(n, _)| n == "report.html") && whole.iter().any(|(n, _)| n == "series/small.csv"));
    for of in [2, 7] {
        let merged = format!("merged{of}");
        let mut words = vec!["merge".to_owned(), "small.toml".to_owned(), "--out".to_owned(), merged.clone()];
        for number in 1..=of {
            let (shard, out) = (format!("{number}/{of}"), format!("part{number}of{of}"));
            let said = ends_well(&lab(dir.path(), &["run", "small.toml", "--shard", &shard, "--out", &out]));
            assert!(said.contains("of 30 runs are in") && said.contains("lab merge small.toml --from"), "{said}");
            assert!(!dir.path().join(&out).join("results.csv").exists());
            if number == of {
                // Without the last one some are missing, and are named.
                let all: Vec<&str> = words.iter().map(String::as_str).collect();
                let why = mistake(&lab(dir.path(), &all));
                assert!(why.contains("of 30 runs are in none of these folders, such as small, rbuf = "), "{why}");
            }
            words.extend(["--from".to_owned(), out]);
        }
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        ends_well(&lab(dir.path(), &all));
        assert_eq!(contents(&dir.path().join(&merged)), whole, "{of} shards");
    }
}

#[test]
fn a_journal_says_what_each_of_its_runs_was() {
    let dir = tempfile::tempdir().expect("a folder");
    ends_well(&lab(dir.path(), &["run", "small.toml", "--shard", "2/30", "--out", "part"]));
    let journal = std::fs::read_to_string(dir.path().join("part/journal.jsonl")).expect("a journal");
    let line: serde_json::Value = serde_json::from_str(journal.lines().next().expect("a line")).expect("JSON");
    assert_eq!((journal.lines().count(), &line["scenario"], &line["row"]["seed"]), (1, &"small".into(), &2.into()));
    assert_eq!((&line["of"]["rbuf"], &line["of"]["loss"]), (&"16KB".into(), &"0%".into()));
    assert!(line["of"]["main.goodput"].as_f64().is_some_and(|g| g > 1e5));
}

#[test]
fn some_points_and_seeds_are_those_of_the_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    ends_well(&lab(dir.path(), &["run", "small.toml", "--out", "whole"]));
    let words = ["run", "small.toml", "--points", "rbuf=64KB", "--points", "loss=2%", "--points", "loss=0%"];
    ends_well(&lab(dir.path(), &[&words[..], &["--seeds", "2-4", "--out", "some"]].concat()));
    let rows = |of: &str| -> Vec<String> {
        let text = std::fs::read_to_string(dir.path().join(of).join("results.csv")).expect("results");
        text.lines().map(str::to_owned).collect()
    };
    let (whole, some) = (rows("whole"), rows("some"));
    assert_eq!(some.len(), 1 + 2 * 3);
    assert!(some.iter().all(|row| whole.contains(row)), "{some:?}");
    assert!(some[1].starts_with("small,64KB,0%,2,") && some[6].starts_with("small,64KB,2%,4,"), "{some:?}");
    let page = std::fs::read_to_string(dir.path().join("some/report.html")).expect("a page");
    assert!(page.contains("--seeds 2-4 --points rbuf=64KB --points loss=2% --points loss=0%<"), "the command");
}

#[test]
fn a_plan_says_how_many_runs_and_about_how_long() {
    let dir = tempfile::tempdir().expect("a folder");
    let said = ends_well(&lab(dir.path(), &["plan", "small.toml", "--points", "loss=1%", "--jobs", "1"]));
    assert!(said.starts_with("small") && said.contains("2 points x    5 seeds =      10 runs  about "), "{said}");
    assert!(said.lines().last().is_some_and(|l| l.starts_with("all") && l.ends_with(" with 1 at a time")), "{said}");
    assert!(!dir.path().join("results").exists(), "nothing was written");
}

/// Three scenarios: two sweep other keys, one nothing; each has a figure.
fn three(dir: &Path) {
    let folder = dir.join("three");
    std::fs::create_dir_all(&folder).expect("a folder");
    let fixed = SCENARIO.split("[[sweep]]").next().expect("a beginning");
    let other = SCENARIO.replace("\"rbuf\"", "\"buffer\"");
    for (name, text) in [("none", fixed), ("buffers", SCENARIO), ("others", other.as_str())] {
        let own = text.replace("\"small\"", &format!("\"{name}\"")).replace("seeds = 5", "seeds = 1");
        std::fs::write(folder.join(format!("{name}.toml")), own).expect("a file");
    }
    let figure = |(name, x): (&str, &str)| {
        let at = if x == "loss" { "" } else { "at = { loss = \"0%\" }\n" };
        format!(
            "[[figure]]\nname = \"{name}\"\ntitle = \"F\"\nkind = \"bars\"\nscenario = \"{name}\"\nx = \"{x}\"\n\
             metric = \"main.goodput\"\n{at}"
        )
    };
    let figures: String = [("buffers", "rbuf"), ("others", "buffer")].map(figure).concat();
    std::fs::write(folder.join("figures.toml"), figures).expect("a file");
    let whole = "name = \"three\"\ntitle = \"Three\"\nscenarios = [\"none.toml\", \"buffers.toml\", \"others.toml\"]\n\
                 figures = [\"figures.toml\"]\n";
    std::fs::write(folder.join("experiment.toml"), whole).expect("a file");
}

#[test]
fn points_that_some_scenarios_lack_leave_out_these_and_their_figures() {
    let dir = tempfile::tempdir().expect("a folder");
    three(dir.path());
    let o = lab(dir.path(), &["run", "three", "--points", "rbuf=16KB", "--out", "some"]);
    ends_well(&o);
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(said.contains("figure `others` is left out: scenario `others` has no results"), "{said}");
    let there = |name: &str| dir.path().join("some").join(name).exists();
    assert!(there("report.html") && there("figures/buffers.svg") && !there("figures/others.svg"));
    for (pair, what) in [
        ("sender=foo", "no scenario sweeps `sender`; they sweep buffer, loss, rbuf"),
        ("rbuf=17KB", "buffers: `17KB` is none of the values of `rbuf`; there are 16KB, 64KB"),
        ("buffer=17KB", "others: `17KB` is none of the values of `buffer`; there are 16KB, 64KB"),
    ] {
        let why = mistake(&lab(dir.path(), &["plan", "three", "--points", pair]));
        assert!(why.contains(what), "{pair}: {why}");
    }
    let why = mistake(&lab(dir.path(), &["plan", "three/none.toml", "--points", "rbuf=16KB"]));
    assert!(why.contains("none: it sweeps nothing, and no `rbuf`"), "{why}");
}

#[test]
fn mistakes_are_one_line_and_code_2() {
    let dir = tempfile::tempdir().expect("a folder");
    for (words, what) in [
        (&["run", "small.toml", "--points", "rbuf"][..], "write KEY=VALUE"),
        (
            &["run", "small.toml", "--points", "rbuf=17KB"],
            "`17KB` is none of the values of `rbuf`; there are 16KB, 64KB",
        ),
        (&["run", "small.toml", "--points", "rbfu=16KB"], "it sweeps no `rbfu`; there are rbuf, loss"),
        (&["plan", "rtx-csi/zzz"], "`rtx-csi` has no scenario `zzz`; there are e1, "),
        (
            &["plan", "media-streams/picture", "--points", "sender=zzz"],
            "there are UDP, one stream, SCTP, priority, window, modified, deadlines, `priority, deadlines`, ",
        ),
        (&["merge", "small.toml", "--from", "absent"], "absent: no runs are there (no journal.jsonl)"),
    ] {
        let why = mistake(&lab(dir.path(), words));
        assert!(why.contains(what), "{words:?}: {why}");
    }
    for (words, what) in [
        (["run", "small.toml", "--seeds", "9-3"], "write 30 for seeds 1 to 30, or 31-60"),
        (["run", "small.toml", "--seeds", "0"], "write 30 for seeds 1 to 30, or 31-60"),
        (["run", "small.toml", "--shard", "4/3"], "write 3/8 for the third of eight parts"),
        (["run", "small.toml", "--shard", "0/3"], "write 3/8 for the third of eight parts"),
    ] {
        let o = lab(dir.path(), &words);
        assert!(o.status.code() == Some(2) && String::from_utf8_lossy(&o.stderr).contains(what), "{words:?}: {o:?}");
    }
    assert!(!dir.path().join("results").exists(), "nothing was written");
}
