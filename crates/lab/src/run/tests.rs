use super::*;
use crate::experiment::Experiment;
use crate::report::About;
use crate::results::{Form, Results, Row};
use crate::scenario::Scenario;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const TINY: &str = r#"
name = "tiny"
duration = "3s"
seeds = 3
metrics = ["main.goodput", "main.delay-p99", "main.stage-cwnd", "cross.goodput", "path1.queue-drops"]
[topology]
kind = "disjoint-paths"
delay = "10ms"
limit = "20p"
path1 = { rate = "4mbit" }
path2 = { rate = "2mbit", up.loss = "2%" }
[[flow]]
name = "main"
transport = "sctp"
profile = "cmt-rtx-csi"
[[flow]]
name = "cross"
transport = "tcp"
start-within = "1s"
[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["16KB", "64KB"]
"#;

fn tiny() -> Experiment {
    let s = Scenario::parse("tiny.toml", TINY, &|_| Err(String::new())).expect("a scenario");
    Experiment { name: "tiny".into(), about: About::default(), scenarios: vec![s] }
}

#[test]
fn percentiles_are_those_asked_for() {
    let text = TINY.replace("\"main.delay-p99\"", "\"main.delay-p50\", \"main.delay-p99.95\", \"main.delay-max\"");
    let s = Scenario::parse("tiny.toml", &text, &|_| Err(String::new())).expect("a scenario");
    let e = Experiment { name: "tiny".into(), about: About::default(), scenarios: vec![s] };
    let options =
        Options { jobs: 1, program: "test", stop: &AtomicBool::new(false), shard: None, progress: &|_, _| () };
    let results = run_all(&e, Form::Full, &options, None).expect("runs");
    let row = &results.tables[0].rows[0].values;
    let [half, rare, longest] = [1, 2, 3].map(|i| row[i].expect("it was measured"));
    assert!(half < rare && rare <= longest, "{row:?}");
}

/// One opportunity each 10 ms is 1.2 Mbit/s; what is sent is a fifth of it, headers included.
const RECORDED: &str = r#"
name = "recorded"
duration = "10s"
seeds = 1
metrics = ["a.goodput", "path1.utilisation"]
[topology]
kind = "single-path"
up.deliveries = { file = "cell.trace" }
[[flow]]
name = "a"
transport = "udp"
header = 0
traffic = { kind = "cbr", rate = "240kbit", size = 1500 }
"#;

#[test]
fn a_recorded_link_is_used_by_a_part_of_its_mean_rate() {
    let s = Scenario::parse("recorded.toml", RECORDED, &|_| Ok("10\n".into())).expect("a scenario");
    let e = Experiment { name: "recorded".into(), about: About::default(), scenarios: vec![s] };
    let options =
        Options { jobs: 1, program: "test", stop: &AtomicBool::new(false), shard: None, progress: &|_, _| () };
    let results = run_all(&e, Form::Full, &options, None).expect("runs");
    let used = results.tables[0].rows[0].values[1].expect("a recorded link has a rate");
    assert!((used - 0.2).abs() < 0.01, "{used}");
}

/// Runs it, stopping after `stop_after` runs.
fn run(jobs: usize, journal: Option<&mut Journal>, stop_after: usize) -> (Result<Results, Failure>, usize) {
    let (stop, runs) = (AtomicBool::new(false), AtomicUsize::new(0));
    let progress = |_: usize, _: usize| {
        // The first call is no run.
        if runs.fetch_add(1, Ordering::Relaxed) >= stop_after {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let options = Options { jobs, program: "test", stop: &stop, shard: None, progress: &progress };
    let made = run_all(&tiny(), Form::Full, &options, journal);
    (made, runs.load(Ordering::Relaxed) - 1)
}

#[test]
fn jobs_change_nothing_and_seeds_do() {
    let (one, two) = (run(1, None, 99).0.expect("runs"), run(2, None, 99).0.expect("runs"));
    assert_eq!(one, two);
    let rows = &one.tables[0].rows;
    let seen: Vec<_> = rows.iter().map(|r| (r.point[0].as_str(), r.seed)).collect();
    assert_eq!(seen, [("16KB", 1), ("16KB", 2), ("16KB", 3), ("64KB", 1), ("64KB", 2), ("64KB", 3)]);
    let different: std::collections::BTreeSet<u64> = rows.iter().map(|r| r.fingerprint).collect();
    assert_eq!(different.len(), rows.len());
    let measured = |i: usize| rows.iter().all(|r| r.values[i].is_some_and(|v| v > 0.0));
    assert!(measured(0) && measured(1) && measured(3), "{rows:?}");
}

#[test]
fn what_was_stopped_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || Journal::open(dir.path()).expect("a journal");
    let (stopped, first) = run(1, Some(&mut open()), 2);
    assert!(matches!(stopped, Err(Failure::Stopped)) && first == 2, "{stopped:?} {first}");
    // A line that was cut off does not count.
    let path = dir.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).expect("a journal");
    std::fs::write(&path, &text[..text.len() - 5]).expect("a journal");
    let (resumed, second) = run(2, Some(&mut open()), 99);
    assert_eq!(second, 5);
    assert_eq!(resumed.expect("runs"), run(1, None, 99).0.expect("runs"));
    assert_eq!(run(1, Some(&mut open()), 99).1, 0);
}

#[test]
fn a_folder_reads_back_as_it_was_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let (e, results) = (tiny(), run(2, None, 99).0.expect("runs"));
    let manifest = folder::Manifest::new(&e, Form::Full, "0123abc", About::default()).expect("a manifest");
    assert_eq!(manifest.scenarios[0].points.len(), 2);
    assert!(manifest.settings().contains("flow.main.receive-buffer"), "{}", manifest.settings());
    folder::write(dir.path(), &manifest, &results).expect("written");
    let (read, same) = folder::read(dir.path()).expect("read");
    assert!(read.results.is_some() && same == results);
    assert_eq!(folder::Manifest { results: None, ..read }, manifest);
    std::fs::remove_file(dir.path().join("results.csv")).expect("removed");
    assert!(folder::read(dir.path()).unwrap_err().contains("results.csv"));
}

#[test]
fn results_and_manifest_of_two_runs_are_not_taken_for_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let (e, results) = (tiny(), run(2, None, 99).0.expect("runs"));
    let manifest = folder::Manifest::new(&e, Form::Full, "", About::default()).expect("a manifest");
    folder::write(dir.path(), &manifest, &results).expect("written");
    let path = |name: &str| dir.path().join(name);
    // The second file cannot take its name, after the first has: only the seal can tell.
    let before = std::fs::read(path("results.csv")).expect("results");
    std::fs::rename(path("manifest.json"), path("kept")).expect("renamed");
    std::fs::create_dir_all(path("manifest.json/x")).expect("a folder");
    let mut fewer = results.clone();
    fewer.tables[0].rows.pop();
    assert!(folder::write(dir.path(), &manifest, &fewer).is_err());
    std::fs::remove_dir_all(path("manifest.json")).expect("removed");
    std::fs::rename(path("kept"), path("manifest.json")).expect("renamed");
    assert_ne!(std::fs::read(path("results.csv")).expect("results"), before);
    let refused = folder::read(dir.path()).expect_err("of two runs");
    assert!(refused.contains("results.csv: not the results") && !refused.contains('\n'), "{refused}");
    // A manifest from before there were seals is taken as it is.
    let text = std::fs::read_to_string(path("manifest.json")).expect("a manifest");
    let mut old: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    old.as_object_mut().expect("an object").remove("results");
    std::fs::write(path("manifest.json"), old.to_string()).expect("written");
    assert_eq!(folder::read(dir.path()).expect("read").1, fewer);
}

#[test]
fn series_tell_what_was_delivered_when_and_survive_a_stop() {
    let dir = tempfile::tempdir().expect("a folder");
    let asked = "seeds = 3\nseries = [\"main.throughput\", \"main.path-throughput\", \"main.cwnd\", \"path1.queue\"]";
    let s = Scenario::parse("tiny.toml", &TINY.replacen("seeds = 3", asked, 1), &|_| Err(String::new()));
    let e = Experiment { name: "tiny".into(), about: About::default(), scenarios: vec![s.expect("a scenario")] };
    let run = || {
        let (stop, runs) = (AtomicBool::new(false), AtomicUsize::new(0));
        let progress = |_: usize, _: usize| {
            runs.fetch_add(1, Ordering::Relaxed);
        };
        let options = Options { jobs: 2, program: "test", stop: &stop, shard: None, progress: &progress };
        let mut journal = Journal::open(dir.path()).expect("a journal");
        let results = run_all(&e, Form::Full, &options, Some(&mut journal)).expect("runs");
        let text = std::fs::read_to_string(dir.path().join("series/tiny.csv")).expect("a series");
        (results, text, runs.load(Ordering::Relaxed) - 1)
    };
    let (results, text, _) = run();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("scenario,rbuf,seed,time,series,path,value"));
    let lines: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    // Six runs of six bins: the flow once, its two paths, their windows, the queue.
    assert_eq!(lines.len(), 6 * 6 * 6);
    assert_eq!((lines[0][1], lines[0][2], lines[6 * 6][2], lines[6 * 6 * 3][1]), ("16KB", "1", "2", "64KB"));
    let first: Vec<_> = lines.iter().filter(|l| l[1] == "16KB" && l[2] == "1").collect();
    let of = |name: &str, path: &str| -> Vec<(f64, f64)> {
        let here = first.iter().filter(|l| l[4] == name && l[5] == path);
        here.map(|l| (l[3].parse().expect("a time"), l[6].parse().expect("a number"))).collect()
    };
    let sum = |name: &str, path: &str| of(name, path).iter().map(|v| v.1 * 0.5 / 8.0).sum::<f64>();
    let delivered = results.tables[0].rows[0].values[0].expect("goodput") * 3.0 / 8.0;
    let bytes = sum("main.throughput", "");
    assert!((bytes - delivered).abs() < 0.5, "{bytes} {delivered}");
    // What came on the paths is what was delivered, what waits for a gap, and repetitions.
    let came = ["1", "2"].map(|p| sum("main.path-throughput", p));
    let all = came[0] + came[1];
    assert!(all >= delivered && all < 1.2 * delivered && came[1] > 0.0, "{came:?} {delivered}");
    // A rate is of the bin from its time on, a state as it was at its time.
    let times = |v: Vec<(f64, f64)>| v.iter().map(|v| v.0).collect::<Vec<_>>();
    assert_eq!(times(of("main.throughput", "")), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
    assert_eq!(times(of("main.cwnd", "2")), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    // Twenty packets fit.
    let queue = of("path1.queue", "");
    assert!(queue.iter().any(|q| q.1 > 1.0) && queue.iter().all(|q| q.1 <= 20.0), "{queue:?}");
    assert!(of("main.cwnd", "1").iter().all(|w| w.1 > 1_000.0));
    // Looking changes nothing.
    let mut blind = e.clone();
    blind.scenarios = tiny().scenarios;
    let options =
        Options { jobs: 1, program: "test", stop: &AtomicBool::new(false), shard: None, progress: &|_, _| () };
    assert_eq!(run_all(&blind, Form::Full, &options, None).expect("runs"), results);
    // And it reads back as it was written.
    let read = series::read(dir.path(), &results.tables[0]).expect("a timeline");
    assert_eq!(read.lines.len(), 6 * 6);
    let window = read.lines.iter().find(|l| l.name == "main.cwnd" && l.path == Some(2) && l.seed == 1).expect("there");
    assert_eq!(window.point, ["16KB"]);
    let samples: Vec<(f64, f64)> = window.samples.iter().map(|(t, v)| (*t, v.expect("a value"))).collect();
    assert_eq!(samples, of("main.cwnd", "2"));
    // A run whose lines are gone is done again.
    let part = std::fs::read_dir(dir.path().join("series/runs")).expect("parts").next().expect("one").expect("one");
    std::fs::remove_file(part.path()).expect("removed");
    let (again, same, runs) = run();
    assert_eq!((again, same.as_str(), runs), (results, text.as_str(), 1));
}

/// One path of 4 Mbit/s with what `more` says of the flow.
fn single(link: &str, more: &str) -> Result<Row, RunError> {
    let text = format!(
        "name = \"single\"\nduration = \"30s\"\nmetrics = [\"main.messages\", \"main.goodput\", \"main.timeouts\"]\n[topology]\nkind = \
         \"single-path\"\nrate = \"4mbit\"\ndelay = \"10ms\"\nlimit = \"50p\"\n{link}\n[[flow]]\nname = \"main\"\ntransport = \
         \"sctp\"\n{more}\n"
    );
    let s = Scenario::parse("single.toml", &text, &|_| Err(String::new())).expect("a scenario");
    run_one(&s.points().expect("points")[0], 1)
}

#[test]
fn a_message_larger_than_the_receive_buffer_comes_in_parts_and_counts_once() {
    let traffic = "receive-buffer = \"64KB\"\ntraffic = { kind = \"bulk\", size = 200000, total = 2000000 }";
    let row = single("", traffic).expect("a run");
    assert_eq!(row.values[..2], [Some(10.0), Some(2_000_000.0 * 8.0 / 30.0)]);
}

#[test]
fn a_message_that_cannot_be_sent_is_no_run() {
    let large = "traffic = { kind = \"web\", min-size = \"1MB\", max-size = \"2MB\" }\nsend-buffer = \"256KB\"";
    let e = single("", large).expect_err("a megabyte at once").0;
    assert!(e.starts_with("flow `main`: a message of ") && e.ends_with("raise `send-buffer`"), "{e}");
}

#[test]
fn a_run_goes_on_when_its_association_has_ended() {
    let traffic = "traffic = { kind = \"cbr\", rate = \"80kbit\", size = 1000 }\nassociation-max-retrans = 2";
    let cut = single("schedule = [\"2s down\"]", traffic).expect("a run");
    let whole = single("", traffic).expect("a run");
    // Three timeouts in a row end it, and what it counted stays.
    assert_eq!((cut.values[2], whole.values[2]), (Some(3.0), Some(0.0)));
    let [cut, whole] = [cut, whole].map(|r| r.values[0].expect("messages"));
    assert!((15.0..=21.0).contains(&cut) && whole > 290.0, "{cut} {whole}");
}

/// Without HEARTBEATs a path is confirmed first (RFC 9260 §5.4), then it carries what the profile gives it.
#[test]
fn heartbeats_off_leave_data_on_every_path() {
    for profile in ["cmt", "live", "low-latency", "ns2-era-cmt"] {
        for n in 1..=3 {
            let list = |what: &dyn Fn(usize) -> String| (1..=n).map(what).collect::<Vec<_>>();
            let text = format!(
                "name = \"off\"\nduration = \"10s\"\nmetrics = [{}]\n[topology]\nkind = \"disjoint-paths\"\nrate = \
                 \"2mbit\"\ndelay = \"20ms\"\nlimit = \"50p\"\n{}\n[[flow]]\nname = \"main\"\ntransport = \"sctp\"\n\
                 profile = \"{profile}\"\nheartbeat-interval = \"off\"\n",
                list(&|i| format!("\"path{i}.utilisation\"")).join(", "),
                list(&|i| format!("path{i} = {{}}")).join("\n"),
            );
            let s = Scenario::parse("off.toml", &text, &|_| Err(String::new())).expect("a scenario");
            let row = run_one(&s.points().expect("points")[0], 1).expect("a run");
            assert!(row.values.iter().all(|u| u.is_some_and(|u| u > 0.5)), "{profile}, {n}: {:?}", row.values);
        }
    }
}

/// Nor is a failed path asked while another works (RFC 7829 §3.2, rule 5: where they are disabled none MUST be sent): it is
/// back once nothing else is left.
#[test]
fn heartbeats_off_bring_a_failed_path_back_when_it_is_the_last() {
    for profile in ["sctp", "cmt", "live", "low-latency", "ns2-era-cmt"] {
        let text = format!(
            "name = \"back\"\nduration = \"100s\"\nphases = {{ gone = \"45s-60s\", back = \"80s-100s\" }}\nmetrics = \
             [\"path1.utilisation@gone\", \"main.goodput@gone\", \"path1.utilisation@back\", \"main.goodput@back\"]\n[topology]\n\
             kind = \"disjoint-paths\"\nrate = \"2mbit\"\ndelay = \"20ms\"\npath1 = {{ schedule = [\"10s down\", \"30s up\"] }}\n\
             path2 = {{ schedule = [\"60s down\"] }}\n[[flow]]\nname = \"main\"\ntransport = \"sctp\"\nprofile = \"{profile}\"\n\
             heartbeat-interval = \"off\"\npath-max-retrans = 1\ntraffic = {{ kind = \"cbr\", rate = \"160kbit\", size = 1000 }}\n"
        );
        let s = Scenario::parse("back.toml", &text, &|_| Err(String::new())).expect("a scenario");
        let row = run_one(&s.points().expect("points")[0], 1).expect("a run");
        let [unused, other, used, back] = row.values[..] else { panic!("four metrics") };
        assert!(unused == Some(0.0) && other > Some(150_000.0), "{profile}: {:?}", row.values);
        assert!(used > Some(0.05) && back > Some(100_000.0), "{profile}: {:?}", row.values);
    }
}
