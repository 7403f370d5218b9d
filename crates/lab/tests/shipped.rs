//! What comes with the program runs, and the same everywhere.
//!
//! `UPDATE=1 just fingerprints` writes the fingerprints anew after a change that was meant.

use anabranch_lab::claims::{judge, to_csv};
use anabranch_lab::experiment::{Experiment, SHIPPED};
use anabranch_lab::results::{Form, Results};
use anabranch_lab::run::{Options, run_all, run_one};
use anabranch_lab::scenario::{Choice, Scenario, Seeds};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// The quick form with the first seed.
fn run(e: &Experiment, jobs: usize) -> Results {
    let e = e.chosen(Choice { quick: true, seeds: Some(Seeds::up_to(1)) }).expect("a quick form");
    let stop = AtomicBool::new(false);
    let options = Options { jobs, program: "", stop: &stop, shard: None, progress: &|_, _| {} };
    run_all(&e, Form::Quick, &options, None).expect("runs")
}

/// One line for each run.
fn lines(results: &Results) -> String {
    let mut out = String::from("scenario,point,seed,fingerprint\n");
    for t in &results.tables {
        for r in &t.rows {
            out += &format!("{},{},{},{:016x}\n", t.scenario, r.point.join(" "), r.seed, r.fingerprint);
        }
    }
    out
}

/// Of an ordinary run one of so many runs of an experiment, for builds without optimisation take ten times as long. It
/// shares no factor with the numbers of policies and points that follow each other.
const ONE_IN: usize = 7;

/// Runs must give the committed fingerprints: with `ANABRANCH_ALL_CASES` all of them, as `scripts/check_fingerprints.py` has
/// it of the program.
fn compare(name: &str, experiment: &Experiment) {
    let path = folder().join(name).join("fingerprints.csv");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let how = "if that is meant, run UPDATE=1 just fingerprints";
    let quick = experiment.chosen(Choice { quick: true, seeds: Some(Seeds::up_to(1)) }).expect("a quick form");
    let points: Vec<_> = quick
        .scenarios
        .iter()
        .flat_map(|s| {
            s.points().expect("points").into_iter().map(|p| (format!("{},{},1,", s.name, p.values.join(" ")), p))
        })
        .collect();
    let named: BTreeSet<_> = committed.lines().skip(1).map(|l| &l[..=l.rfind(',').expect("a fingerprint")]).collect();
    let asked: BTreeSet<_> = points.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, asked, "{name}: not the runs of its file; {how}");
    let one_in = if std::env::var_os("ANABRANCH_ALL_CASES").is_some() { 1 } else { ONE_IN };
    let changed: Vec<String> = points
        .iter()
        .step_by(one_in)
        .map(|(at, point)| format!("{at}{:016x}", run_one(point, 1).expect("runs").fingerprint))
        .filter(|line| !committed.lines().any(|c| c == line))
        .collect();
    assert!(changed.is_empty(), "{name}: {} runs differ, {how}:\n{}", changed.len(), changed.join("\n"));
}

/// By profiles of ours that change with each improvement, and long: their fingerprints are compared by
/// `scripts/check_fingerprints.py` alone, and written by it too.
const BY_THE_PROGRAM: [&str; 4] = ["weather", "encoder", "confluent-scheduling", "fairness"];

/// Every second one from `half` on: two tests, for two processors.
fn shipped_experiments(half: usize) {
    for shipped in SHIPPED.iter().filter(|s| !BY_THE_PROGRAM.contains(&s.name)).skip(half).step_by(2) {
        let e = Experiment::shipped(shipped.name).expect("shipped").expect("no mistakes");
        assert_eq!(e.name, shipped.name);
        compare(shipped.name, &e);
    }
}

#[test]
fn shipped_experiments_deliver_what_they_did() {
    shipped_experiments(0);
}

#[test]
fn the_other_shipped_experiments_deliver_what_they_did() {
    shipped_experiments(1);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let e = Experiment::shipped("loss-causes").expect("shipped").expect("no mistakes");
    assert_eq!(lines(&run(&e, 1)), lines(&run(&e, 3)));
}

#[test]
fn examples_run_and_measure_what_they_name() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder().join("examples")).expect("examples").map(|f| f.expect("a file").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml") && !f.ends_with("experiment.toml"));
    let shipped = SHIPPED.iter().find(|s| s.name == "examples").expect("shipped");
    assert_eq!(files.len(), shipped.scenarios().count(), "each is part of the program");
    let load = |f: &PathBuf| Experiment::load(f).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<Experiment> = files.iter().map(load).collect();
    for e in &all {
        for t in &run(e, 2).tables {
            for (i, m) in t.metrics.iter().enumerate() {
                assert!(t.rows.iter().any(|r| r.values[i].is_some()), "{}: no run measured {}", e.name, m.name);
            }
        }
    }
}

/// The comparison of initial windows begins with the one that all other runs of `rtx-csi` have.
#[test]
fn ablation_start_has_the_window_of_the_main_runs() {
    let committed = std::fs::read_to_string(folder().join("rtx-csi/fingerprints.csv")).expect("fingerprints");
    let of = |run: &str| committed.lines().find_map(|l| l.strip_prefix(run)).unwrap_or_else(|| panic!("no {run}"));
    for policy in ["rtx_cwnd", "rtx_ssthresh", "rtx_csi"] {
        let (main, start) =
            (format!("e2-case1,16KB 5% {policy},"), format!("ablation-start,16KB 5% {policy} 3 packets,"));
        assert_eq!(of(&main), of(&start), "{policy}");
    }
}

#[test]
fn every_file_of_a_shipped_experiment_is_part_of_the_program() {
    for shipped in SHIPPED {
        let load = Experiment::load(&folder().join(shipped.name).join("experiment.toml"));
        let (from_disk, built_in) =
            (load.expect("on disk"), Experiment::shipped(shipped.name).expect("shipped").expect("built in"));
        let names = |e: &Experiment| e.scenarios.iter().map(|s| (s.name.clone(), s.runs())).collect::<Vec<_>>();
        assert_eq!(names(&from_disk), names(&built_in));
        assert_eq!(from_disk.about, built_in.about);
    }
}

#[test]
fn the_weather_is_all_there() {
    let e = Experiment::shipped("weather").expect("shipped").expect("no mistakes");
    let count = |f: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(f.expect("a file").path()).expect("a text");
        usize::from(text.starts_with("name = ") && text.contains("\nextends = "))
    };
    let files: usize = std::fs::read_dir(folder().join("weather")).expect("files").map(count).sum();
    assert_eq!(files, e.scenarios.len());
    assert!(files >= 40 && e.scenarios.iter().all(|s| s.seeds == 20), "{files}");
}

#[test]
fn the_scenario_of_the_documentation_is_one() {
    let page = std::fs::read_to_string(folder().join("../docs/LAB.md")).expect("the page");
    let (_, rest) = page.split_once("```toml\n").expect("a scenario");
    let (text, _) = rest.split_once("```").expect("its end");
    let s = Scenario::parse("docs/LAB.md", text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
    assert!(text.lines().count() < 30 && s.runs() == 30);
}

/// Rivals of which only abstracts were at hand: a reader has to see that wherever they stand beside something.
const RECONSTRUCTED: [&str; 3] = ["CMT-QA", "NC-MPTCP", "FMTCP"];

#[test]
fn reconstructions_are_named_so_wherever_they_are_shown() {
    for shipped in SHIPPED {
        let named = format!("{}: `{{}}` needs `(reconstruction)`", shipped.name);
        for (file, text) in shipped.files.iter().filter(|f| f.0.ends_with(".toml")) {
            let table: toml::Table = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
            let sweeps = table.get("sweep").and_then(toml::Value::as_array).into_iter().flatten();
            for sweep in sweeps {
                let [values, sets] = ["values", "as"].map(|k| sweep.get(k).and_then(toml::Value::as_array));
                for (value, set) in values.into_iter().flatten().zip(sets.into_iter().flatten()) {
                    let transport = set.get("transport").and_then(toml::Value::as_str).unwrap_or_default();
                    let value = value.as_str().unwrap_or_default();
                    let is_one = matches!(transport, "nc-mptcp" | "fmtcp") || RECONSTRUCTED.contains(&value);
                    let says = value.ends_with("(reconstruction)");
                    assert!(says || !is_one, "{file}, {}", named.replace("{}", value));
                }
            }
        }
    }
}

#[test]
fn claims_beside_reconstructions_say_so() {
    let e = Experiment::shipped("cmt-cl-fd").expect("shipped").expect("no mistakes");
    assert!(
        e.about.question.contains("reconstructions") && e.about.notes.iter().any(|n| n.contains("reconstructions"))
    );
    // What a reader gets of a claim before anything ran: the note is there whatever comes out.
    let nothing = Results { experiment: e.name.clone(), form: Form::Quick, tables: Vec::new() };
    let csv = to_csv(&judge(&e.about.claims, &nothing, &[]));
    let mut beside = 0;
    for (claim, line) in e.about.claims.iter().zip(csv.lines().skip(1)) {
        let compares = format!("{claim:?}");
        if RECONSTRUCTED.iter().any(|r| compares.contains(&format!("\"{r} (reconstruction)\""))) {
            beside += 1;
            assert!(line.contains("reconstruction.") || line.contains("reconstructions."), "{line}");
        }
    }
    assert!(beside >= 60, "{beside}");
    let lines: Vec<&str> = e.about.figures.iter().flat_map(|f| &f.lines).map(|l| l.name.as_str()).collect();
    for line in lines.iter().filter(|l| RECONSTRUCTED.iter().any(|r| l.starts_with(r))) {
        assert!(line.ends_with("(reconstruction)"), "a line of a figure: {line}");
    }
}
