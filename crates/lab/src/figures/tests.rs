use super::*;
use crate::claims::Shape;
use crate::reference::Reference;
use crate::results::{Form, Metric, Over, Results, Row, Table, Timeline};

/// rbuf 16KB and 64KB, background with and without; the rate is 1 Mbit/s per 16 KB, a quarter less with background.
pub(super) fn results() -> Results {
    let mut rows = Vec::new();
    for (rbuf, rate) in [("16KB", 1e6), ("64KB", 4e6)] {
        for (background, share) in [("without", 1.0), ("with", 0.75)] {
            for seed in 1..=3u64 {
                let value = rate * share * (1.0 + seed as f64 / 1_000.0);
                let point = vec![rbuf.to_owned(), background.to_owned()];
                rows.push(Row { point, seed, values: vec![Some(value)], fingerprint: 0 });
            }
        }
    }
    let metrics = vec![Metric { name: "main.goodput".into(), unit: "bit/s".into() }];
    let keys = vec!["rbuf".into(), "background".into()];
    Results {
        experiment: "x".into(),
        form: Form::Full,
        tables: vec![Table { scenario: "e1".into(), keys, metrics, rows }],
    }
}

pub(super) fn figure(text: &str) -> Figure {
    let kind = if text.starts_with("kind") { "" } else { "kind = \"line\"\n" };
    let head = format!("[[figure]]\nname = \"f\"\ntitle = \"F\"\n{kind}x = \"rbuf\"\nmetric = \"main.goodput\"\n");
    toml::from_str::<FigureFile>(&format!("{head}{text}")).unwrap().figures.remove(0)
}

#[test]
fn a_line_for_each_value_of_a_key() {
    let data = resolve(&figure("series = \"background\"\nunit = \"Mbit/s\""), &results(), &[], &[]).unwrap();
    let names: Vec<&str> = data.panels[0].lines.iter().map(|l| l.name.as_str()).collect();
    assert_eq!((data.x.join(" "), names), ("16KB 64KB".to_owned(), vec!["without", "with"]));
    assert!((data.panels[0].lines[1].spots[1].ours.unwrap().mean - 3.006).abs() < 1e-9);
    let csv = to_csv(&data);
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().nth(1).unwrap().starts_with(",without,16KB,1.002,"), "{csv}");
}

#[test]
fn lines_of_their_own_with_what_was_printed() {
    let f = figure(
        "[[figure.line]]\nname = \"impact\"\nprinted = { \"64KB\" = 0.3 }\n\
         compare = { key = \"background\", a = \"without\", b = \"with\", as = \"impact\" }",
    );
    let data = resolve(&f, &results(), &[], &[]).unwrap();
    let spots = &data.panels[0].lines[0].spots;
    assert!((spots[0].ours.unwrap().mean - 0.25).abs() < 1e-9);
    assert_eq!((spots[0].printed, spots[1].printed), (None, Some(0.3)));
    let svg = draw(&f, &data)[0].standalone();
    assert!(svg.contains("impact, printed") && svg.contains("Outlined marks are what the paper prints."));
}

#[test]
fn what_others_measured_has_marks_and_columns_of_its_own() {
    let row = |rbuf: &str, background: &str, value: f64| crate::reference::Row {
        scenario: "e1".into(),
        metric: "main.goodput".into(),
        at: [("rbuf", rbuf), ("background", background)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        value,
        interval: Some((value - 5e5, value + 5e5)),
    };
    let mut other: Reference = toml::from_str("name = \"ns-2\"\nfile = \"ns2.csv\"").unwrap();
    other.rows = vec![row("16KB", "without", 1.5e6), row("16KB", "with", 0.8e6), row("64KB", "with", 3e6)];
    let references = [other];
    let f = figure("series = \"background\"\nunit = \"Mbit/s\"");
    let data = resolve(&f, &results(), &[], &references).unwrap();
    assert_eq!(data.others(), ["ns-2"]);
    let svg = draw(&f, &data)[0].standalone();
    for part in ["without, ns-2", "with, ns-2", "Marks of their own are what was measured elsewhere: ns-2."] {
        assert!(svg.contains(part), "{part}");
    }
    let csv = to_csv(&data);
    assert!(
        csv.starts_with("panel,series,x,value,ci_low,ci_high,seeds,printed,unit,ns-2,ns-2 low,ns-2 high\n"),
        "{csv}"
    );
    let ends: Vec<&str> = csv.lines().skip(1).map(|l| l.split_once("Mbit/s").unwrap().1).collect();
    assert_eq!(ends[0], ",1.5,1,2");
    assert_eq!(ends[1], ",,,", "not measured at 64KB without");
    // A comparison is worked out where both sides are there; bars have a mark at their edge.
    let f =
        figure("kind = \"bars\"\ncompare = { key = \"background\", a = \"without\", b = \"with\", as = \"ratio\" }");
    let data = resolve(&f, &results(), &[], &references).unwrap();
    let spots = &data.panels[0].lines[0].spots;
    assert!((spots[0].elsewhere[0].value - 1.875).abs() < 1e-9 && spots[1].elsewhere.is_empty());
    assert!(draw(&f, &data)[0].standalone().contains("ns-2"));
}

#[test]
fn a_line_may_compare_two_scenarios() {
    let mut both = results();
    let mut other = both.tables[0].clone();
    other.scenario = "e2".into();
    other.rows.iter_mut().for_each(|r| r.values[0] = r.values[0].map(|v| v / 2.0));
    both.tables.push(other);
    let f = figure("series = \"background\"\ncompare = { key = \"scenario\", a = \"e1\", b = \"e2\", as = \"ratio\" }");
    let data = resolve(&f, &both, &[], &[]).unwrap();
    let lines: Vec<_> = data.panels[0].lines.iter().map(|l| (l.name.as_str(), l.spots.len())).collect();
    assert_eq!(lines, [("without", 2), ("with", 2)]);
    let all = data.panels[0].lines.iter().flat_map(|l| &l.spots);
    assert!(all.clone().all(|s| s.ours.is_some_and(|e| (e.mean - 2.0).abs() < 1e-9)), "{data:?}");
}

#[test]
fn panels_share_their_axis() {
    let f = figure("panels = \"background\"");
    let data = resolve(&f, &results(), &[], &[]).unwrap();
    let drawings = draw(&f, &data);
    assert_eq!(drawings.len(), 2);
    assert_eq!(data.panels[1].name, "background with");
}

#[test]
fn a_percentile_has_a_bootstrap_interval() {
    let f = figure("at = { background = \"with\" }\npercentile = 50");
    let data = resolve(&f, &results(), &[], &[]).unwrap();
    let e = data.panels[0].lines[0].spots[0].ours.unwrap();
    assert!((e.mean - 751_500.0).abs() < 1.0);
    assert!(e.interval.is_some_and(|(a, b)| a < e.mean && e.mean < b));
}

#[test]
fn mistakes_are_named() {
    let (rbuf, background) = (["16KB".to_owned(), "64KB".to_owned()], ["with".to_owned(), "without".to_owned()]);
    let shape = Shape {
        name: "e1",
        keys: vec![("rbuf", &rbuf), ("background", &background)],
        metrics: vec!["main.goodput"],
        series: vec![],
        defined: vec![],
    };
    let complaint = |text: &str| figure(text).check(std::slice::from_ref(&shape)).err().map(|e| e.to_string());
    assert_eq!(complaint("series = \"background\""), None);
    for (text, expected) in [
        ("", "it says nothing about `background`"),
        ("series = \"colour\"", "does not sweep `colour`"),
        ("at = { background = \"some\" }", "has no `background` of some"),
        ("at = { background = \"with\" }\nprinted = { \"5KB\" = 1.0 }", "has no `rbuf` of 5KB"),
        ("scenario = \"e9\"\nseries = \"background\"", "there is no scenario `e9`"),
        ("series = \"background\"\npercentile = 101", "`percentile` lies between"),
    ] {
        let said = complaint(text).unwrap_or_default();
        assert!(said.contains(expected), "{text}: {said}");
    }
}

/// Windows of two paths at two points with three seeds, 100 ms apart: 1000 bytes for each of path, seed and sample; and
/// a group of two flows.
fn timeline() -> Timeline {
    let mut lines = Vec::new();
    for (rbuf, k) in [("16KB", 1.0), ("64KB", 2.0)] {
        for seed in 1..=3u64 {
            let line = |name: &str, path: Option<usize>, samples| {
                let point = vec![rbuf.to_owned(), "with".to_owned()];
                Over { point, seed, name: name.to_owned(), path, samples }
            };
            for path in [1, 2] {
                let value = |n: usize| Some(1_000.0 * k * (path as f64 + seed as f64 + n as f64));
                let samples = (1..=4).map(|n| (n as f64 / 10.0, value(n))).collect();
                lines.push(line("main.cwnd", Some(path), samples));
            }
            for flow in ["cross.1", "cross.2"] {
                lines.push(line(&format!("{flow}.throughput"), None, vec![(0.0, Some(8.0)), (0.1, None)]));
            }
        }
    }
    Timeline { scenario: "e1".into(), keys: vec!["rbuf".into(), "background".into()], lines }
}

fn over_time(text: &str) -> Figure {
    let head = "[[figure]]\nname = \"f\"\ntitle = \"F\"\nkind = \"series\"\nat = { background = \"with\" }\n";
    toml::from_str::<FigureFile>(&format!("{head}{text}")).unwrap().figures.remove(0)
}

#[test]
fn a_line_over_time_for_each_path() {
    let f = over_time("metric = \"main.cwnd\"\nseries = \"rbuf\"\nunit = \"kB\"");
    let data = resolve(&f, &results(), &[timeline()], &[]).unwrap();
    let names: Vec<&str> = data.panels[0].lines.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["16KB, path 1", "16KB, path 2", "64KB, path 1", "64KB, path 2"]);
    assert_eq!(data.x, ["0.1", "0.2", "0.3", "0.4"]);
    // Path 2 of 64KB at 0.3 s: 2 * (2 + seed + 3) for seeds 1 to 3, in thousands.
    let e = data.panels[0].lines[3].spots[2].ours.unwrap();
    let (low, high) = e.interval.unwrap();
    assert!((e.mean - 14.0).abs() < 1e-9 && e.seeds == 3 && low < 14.0 && high > 14.0, "{e:?}");
    let csv = to_csv(&data);
    assert!(csv.lines().any(|l| l.starts_with(",\"64KB, path 2\",0.3,14,")), "{csv}");
    let svg = draw(&f, &data)[0].standalone();
    assert!(svg.contains("64KB, path 2") && svg.contains("Mean and 95 % interval of 3 seeds."));
}

#[test]
fn one_seed_over_time_and_panels() {
    let f = over_time("metric = \"main.cwnd\"\npanels = \"rbuf\"\nseed = 2");
    let data = resolve(&f, &results(), &[timeline()], &[]).unwrap();
    assert_eq!(data.panels.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["rbuf 16KB", "rbuf 64KB"]);
    let e = data.panels[0].lines[1].spots[0].ours.unwrap();
    assert_eq!((e.mean, e.interval, data.unit.as_str()), (5_000.0, None, "byte"));
    assert_eq!(draw(&f, &data).len(), 2);
    assert_eq!(note(&f, &data.panels[0]), "Seed 2.");
    let f = over_time("metric = \"main.cwnd\"\npanels = \"rbuf\"\nseed = 9");
    let data = resolve(&f, &results(), &[timeline()], &[]).unwrap();
    assert_eq!(note(&f, &data.panels[0]), "No runs.");
}

#[test]
fn flows_of_a_group_over_time_have_their_names_and_gaps() {
    let f = over_time("metric = \"cross.throughput\"\nseries = \"rbuf\"");
    let data = resolve(&f, &results(), &[timeline()], &[]).unwrap();
    let lines = &data.panels[0].lines;
    let names: Vec<&str> = lines.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names[..2], ["16KB, cross.1", "16KB, cross.2"]);
    assert!(lines[0].spots[0].ours.is_some_and(|e| e.mean == 8.0) && lines[0].spots[1].ours.is_none());
}

#[test]
fn mistakes_over_time_are_named() {
    let (rbuf, background) = (["16KB".to_owned(), "64KB".to_owned()], ["with".to_owned()]);
    let (keys, metrics) = (vec![("rbuf", &rbuf[..]), ("background", &background[..])], vec!["main.goodput"]);
    let shape = Shape { name: "e1", keys, metrics, series: vec!["main.cwnd", "main.srtt"], defined: vec![] };
    let complaint = |text: &str| {
        let f = over_time(text);
        f.check(std::slice::from_ref(&shape)).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(complaint("metric = \"main.cwnd\"\nseries = \"rbuf\""), "");
    for (text, expected) in [
        ("metric = \"main.cwnd\"", "it says nothing about `rbuf`"),
        ("metric = \"main.goodput\"\nseries = \"rbuf\"", "does not measure `main.goodput`: add it to `series`"),
        ("metric = \"main.cwnd\"\nx = \"rbuf\"", "`x` has no meaning over time"),
        ("metric = \"main.cwnd\"\nseries = \"rbuf\"\npercentile = 5", "`percentile` has no meaning over time"),
    ] {
        let said = complaint(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
    let two =
        "[[figure.line]]\nname = \"a\"\nmetric = \"main.cwnd\"\n[[figure.line]]\nname = \"b\"\nmetric = \"main.srtt\"";
    let f = over_time(&format!("panels = \"rbuf\"\n{two}"));
    let said = resolve(&f, &results(), &[timeline()], &[]).unwrap_err().to_string();
    assert!(said.contains("its lines are in `byte` and in `s`"), "{said}");
    let said = figure("series = \"background\"\nseed = 1").check(std::slice::from_ref(&shape)).unwrap_err().what;
    assert_eq!(said, "`seed` is for figures of kind `series`");
}
