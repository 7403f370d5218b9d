use super::*;
use crate::claims::Shape;
use crate::results::{Form, Metric, Results, Row, Table};

/// rbuf 16KB and 64KB, background with and without; the rate is 1 Mbit/s per 16 KB, a quarter less with background.
fn results() -> Results {
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

fn figure(text: &str) -> Figure {
    let head = "[[figure]]\nname = \"f\"\ntitle = \"F\"\nkind = \"line\"\nx = \"rbuf\"\nmetric = \"main.goodput\"\n";
    toml::from_str::<FigureFile>(&format!("{head}{text}")).unwrap().figures.remove(0)
}

#[test]
fn a_line_for_each_value_of_a_key() {
    let data = resolve(&figure("series = \"background\"\nunit = \"Mbit/s\""), &results()).unwrap();
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
    let data = resolve(&f, &results()).unwrap();
    let spots = &data.panels[0].lines[0].spots;
    assert!((spots[0].ours.unwrap().mean - 0.25).abs() < 1e-9);
    assert_eq!((spots[0].printed, spots[1].printed), (None, Some(0.3)));
    let svg = draw(&f, &data)[0].standalone();
    assert!(svg.contains("impact, printed") && svg.contains("Outlined marks are what the paper prints."));
}

#[test]
fn panels_share_their_axis() {
    let f = figure("panels = \"background\"");
    let data = resolve(&f, &results()).unwrap();
    let drawings = draw(&f, &data);
    assert_eq!(drawings.len(), 2);
    assert_eq!(data.panels[1].name, "background with");
}

#[test]
fn a_percentile_has_a_bootstrap_interval() {
    let f = figure("at = { background = \"with\" }\npercentile = 50");
    let data = resolve(&f, &results()).unwrap();
    let e = data.panels[0].lines[0].spots[0].ours.unwrap();
    assert!((e.mean - 751_500.0).abs() < 1.0);
    assert!(e.interval.is_some_and(|(a, b)| a < e.mean && e.mean < b));
}

#[test]
fn mistakes_are_named() {
    let (rbuf, background) = (["16KB".to_owned(), "64KB".to_owned()], ["with".to_owned(), "without".to_owned()]);
    let shape =
        Shape { name: "e1", keys: vec![("rbuf", &rbuf), ("background", &background)], metrics: vec!["main.goodput"] };
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
