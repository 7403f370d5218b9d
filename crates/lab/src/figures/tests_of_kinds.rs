//! Distributions, boxes, marks and maps: their numbers, their drawings over odd data, what is refused.

use super::tests::results;
use super::*;
use crate::claims::Shape;
use crate::results::{Counted, Distribution, Form, Metric, Over, Results, Row, Table, Timeline};

pub(super) fn figure(text: &str) -> Figure {
    let head = "[[figure]]\nname = \"f\"\ntitle = \"F\"\n";
    toml::from_str::<FigureFile>(&format!("{head}{text}")).unwrap_or_else(|e| panic!("{text}: {e}")).figures.remove(0)
}

fn of(f: &Figure, results: &Results) -> Content {
    let sources = Sources { results, timelines: &[], distributions: &[], references: &[] };
    Content::of(f, sources).unwrap_or_else(|e| panic!("{e}"))
}

/// One key with these values, and two metrics with a value for each of them and seed.
fn of_values(groups: &[(&str, &[f64])]) -> Results {
    let row = |key: &str, seed: usize, v: f64| Row {
        point: vec![key.to_owned()],
        seed: seed as u64 + 1,
        values: vec![Some(v), (!v.is_nan()).then_some(2.0 * v + 1.0)],
        fingerprint: 0,
    };
    let rows = groups.iter().flat_map(|(key, values)| values.iter().enumerate().map(move |(i, v)| row(key, i, *v)));
    let metrics = ["main.delay", "main.goodput"]
        .map(|n| Metric { name: n.into(), unit: crate::metrics::unit_of(n).unwrap().into() });
    let table = Table { scenario: "s".into(), keys: vec!["key".into()], metrics: metrics.into(), rows: rows.collect() };
    Results { experiment: "x".into(), form: Form::Full, tables: vec![table] }
}

#[test]
fn a_distribution_counts_every_run() {
    let r = of_values(&[("a", &[3.0, 1.0, 2.0, 2.0]), ("b", &[5.0])]);
    let f = figure("kind = \"ecdf\"\nmetric = \"main.delay\"\nseries = \"key\"\nunit = \"ms\"");
    let content = of(&f, &r);
    let csv = content.to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "panel,series,value,count,share,unit");
    assert_eq!(lines[1..], [",a,1000,1,0.25,ms", ",a,2000,2,0.75,ms", ",a,3000,1,1,ms", ",b,5000,1,1,ms"]);
    assert_eq!(content.note(&f), "The part of all values that is at most as high. Of 1 to 4 runs each.");
    let svg = content.draw(&f)[0].standalone();
    // Lines without marks differ by their dashes as well.
    assert!(svg.contains(">main.delay (ms)</text>") && svg.contains(">part of the runs</text>"), "{svg}");
    assert!(svg.contains("stroke-dasharray=\"6 4\""));
    let pooled = figure("kind = \"ecdf\"\nmetric = \"main.delay\"\npool = [\"key\"]");
    assert_eq!(of(&pooled, &r).to_csv().lines().nth(1), Some(",,1,1,0.2,s"));
}

#[test]
fn a_tail_tells_apart_what_differs_by_one_in_ten_thousand() {
    let run = |metric: &str, point: &str, seed: u64, counts: &[(f64, u64)]| Counted {
        point: vec![point.to_owned()],
        seed,
        metric: metric.to_owned(),
        counts: counts.to_vec(),
    };
    let runs = vec![
        run("main.delay", "a", 1, &[(0.06, 49_970), (0.5, 30)]),
        run("main.delay", "a", 2, &[(0.06, 49_965), (0.4, 35)]),
        run("main.delay", "b", 1, &[(0.06, 99_920), (0.5, 80)]),
        run("main.other", "a", 1, &[(9.0, 7)]),
    ];
    let distributions = [Distribution { scenario: "s".into(), keys: vec!["key".into()], runs }];
    let r = of_values(&[("a", &[1.0]), ("b", &[1.0])]);
    let sources = Sources { results: &r, timelines: &[], distributions: &distributions, references: &[] };
    let text =
        "kind = \"ecdf\"\nsamples = \"delays\"\nmetric = \"main.delay\"\nseries = \"key\"\nunit = \"ms\"\ntail = true";
    let f = figure(&format!("{text}\ny-max = 0.001"));
    let content = Content::of(&f, sources).unwrap();
    let csv = content.to_csv();
    assert!(csv.contains("\n,a,60,99935,0.99935,ms\n,a,400,35,0.9997,ms\n,a,500,30,1,ms\n"), "{csv}");
    assert!(csv.contains("\n,b,60,99920,0.9992,ms\n") && !csv.contains("9000"), "{csv}");
    assert_eq!(content.note(&f), "The part of all values that is higher. Of 100000 delays each.");
    let drawing = content.draw(&f)[0].standalone();
    assert!(drawing.contains(">part of the delays above</text>"));
    // Levels of 6.5 and 8 in ten thousand lie more than ten pixels apart.
    let level = |color: usize| -> f64 {
        let d = drawing
            .split(&format!("<path class=\"l c{color}\""))
            .nth(2)
            .or(drawing.split(&format!("<path class=\"l c{color}\"")).nth(1));
        let d = d.unwrap().split(" d=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        d.split('V').nth(1).unwrap().split(['H', 'V']).next().unwrap().parse().unwrap()
    };
    assert!((level(0) - level(1)).abs() > 10.0, "{} {}", level(0), level(1));
    let lost = Sources { distributions: &[], ..sources };
    let said = Content::of(&f, lost).unwrap_err().to_string();
    assert_eq!(said, "figure `f`: the runs of scenario `s` kept no distributions");
}

#[test]
fn boxes_are_of_runs_or_of_bins() {
    let r = of_values(&[("a", &[1.0, 2.0, 3.0, 4.0, 100.0]), ("b", &[5.0])]);
    let f = figure("kind = \"box\"\nmetric = \"main.delay\"\nx = \"key\"");
    let content = of(&f, &r);
    let csv = content.to_csv();
    assert_eq!(csv.lines().nth(1), Some(",,a,5,1,2,3,4,4,100,s"), "{csv}");
    assert_eq!(csv.lines().nth(2), Some(",,b,1,5,5,5,5,5,,s"));
    let svg = content.draw(&f)[0].standalone();
    assert!(svg.contains("<path class=\"f c0\"") && svg.contains("median 3 s") && svg.contains("<path class=\"o c0\""));
    // Bins before `from` do not count; paths have boxes of their own.
    let line = |path, samples: &[(f64, f64)]| Over {
        point: vec!["a".into()],
        seed: 1,
        name: "main.cwnd".into(),
        path: Some(path),
        samples: samples.iter().map(|(t, v)| (*t, Some(*v))).collect(),
    };
    let lines = vec![line(1, &[(0.5, 9e9), (1.0, 1.0), (1.5, 3.0)]), line(2, &[(0.5, 9e9), (1.5, 7.0)])];
    let timelines = [Timeline { scenario: "s".into(), keys: vec!["key".into()], lines }];
    let f = figure("kind = \"box\"\nmetric = \"main.cwnd\"\nx = \"key\"\nsamples = \"bins\"\nfrom = \"1s\"");
    let sources = Sources { results: &r, timelines: &timelines, distributions: &[], references: &[] };
    let csv = Content::of(&f, sources).unwrap().to_csv();
    assert!(csv.contains("\n,path 1,a,2,1,1.5,2,2.5,3,,byte\n"), "{csv}");
    assert!(csv.contains("\n,path 2,a,1,7,7,7,7,7,,byte\n,path 2,b,0,"), "{csv}");
}

#[test]
fn a_mark_for_each_run_of_two_metrics() {
    let r = of_values(&[("a", &[1.0, 2.0]), ("b", &[3.0, f64::NAN])]);
    let text = "kind = \"scatter\"\nx-metric = \"main.delay\"\nx-unit = \"ms\"\nmetric = \"main.goodput\"\n";
    let f = figure(&format!("{text}series = \"key\""));
    let content = of(&f, &r);
    let csv = content.to_csv();
    assert_eq!(
        csv,
        "panel,series,point,seed,x,y,x_unit,unit\n,a,,1,1000,3,ms,bit/s\n,a,,2,2000,5,ms,bit/s\n,b,,1,3000,7,ms,bit/s\n"
    );
    assert_eq!(content.note(&f), "A mark for each of 3 runs.");
    let svg = content.draw(&f)[0].standalone();
    assert!(svg.contains(">main.delay (ms)</text>") && svg.contains(">main.goodput (bit/s)</text>"));
    let pooled = of(&figure(&format!("{text}pool = [\"key\"]")), &r).to_csv();
    assert!(pooled.contains("\n,,key a,1,1000,3,ms,bit/s\n") && pooled.contains("\n,,key b,1,3000,7,"), "{pooled}");
}

#[test]
fn a_map_has_a_cell_for_each_pair() {
    let f =
        figure("kind = \"heatmap\"\nx = \"rbuf\"\ny = \"background\"\nmetric = \"main.goodput\"\nunit = \"Mbit/s\"");
    let content = of(&f, &results());
    assert_eq!(content.note(&f), "Mean of 3 seeds.");
    let csv = content.to_csv();
    assert!(csv.contains("\n,with,64KB,3.006,"), "{csv}");
    let svg = content.draw(&f)[0].standalone();
    for part in [">4.01</text>", ">0.75</text>", ">without</text>", ">background</text>", "rbuf 64KB\nbackground with"]
    {
        assert!(svg.contains(part), "{part}: {svg}");
    }
}

/// Whatever the values are, each kind draws something that a browser can read.
#[test]
fn odd_values_are_drawn_without_panic() {
    let odd: [&[f64]; 9] = [
        &[],
        &[1.0],
        &[2.0, 2.0, 2.0],
        &[f64::NAN],
        &[f64::NAN, 1.0, f64::INFINITY],
        &[1e-3, 1.0, 1e3, 1e6],
        &[-5.0, -1.0, 0.0, 3.0],
        &[0.0, 0.0],
        &[-1e300, 1e300],
    ];
    let scales = ["", "x-axis = \"log\"\n", "y-axis = \"log\"\n", "y-min = 1.0\ny-max = 2.0\n", "z-axis = \"log\"\n"];
    let kinds = [
        "kind = \"ecdf\"\nmetric = \"main.delay\"\nseries = \"key\"\n",
        "kind = \"ecdf\"\nmetric = \"main.delay\"\nseries = \"key\"\ntail = true\n",
        "kind = \"ecdf\"\nmetric = \"main.delay\"\npanels = \"key\"\n",
        "kind = \"box\"\nmetric = \"main.delay\"\nx = \"key\"\n",
        "kind = \"box\"\nmetric = \"main.delay\"\nx = \"key\"\npanels = \"key\"\n",
        "kind = \"scatter\"\nmetric = \"main.delay\"\nx-metric = \"main.goodput\"\nseries = \"key\"\n",
        "kind = \"heatmap\"\nmetric = \"main.delay\"\nx = \"key\"\ny = \"key\"\n",
        "kind = \"line\"\nmetric = \"main.delay\"\nx = \"key\"\n",
    ];
    let mut drawn = 0;
    for values in odd {
        for more in odd {
            let r = of_values(&[("a", values), ("b", more)]);
            for kind in kinds {
                for scale in scales {
                    let f = figure(&format!("{kind}{scale}"));
                    let content = of(&f, &r);
                    for d in content.draw(&f) {
                        let svg = d.standalone();
                        let bad = svg
                            .split(" d=\"")
                            .skip(1)
                            .filter_map(|s| s.split('"').next())
                            .find(|d| d.contains("NaN") || d.contains("inf"));
                        assert!(bad.is_none() && svg.ends_with("</svg>\n"), "{kind}{scale}{values:?}: {bad:?}");
                        drawn += 1;
                    }
                    assert!(content.to_csv().lines().count() > 0 && !content.note(&f).is_empty());
                }
            }
        }
    }
    assert!(drawn > 2_000, "{drawn}");
}

#[test]
fn mistakes_in_other_kinds_are_named() {
    let (a, b) = (["1%".to_owned(), "3%".to_owned()], ["x".to_owned()]);
    let keys = vec![("loss", &a[..]), ("policy", &b[..])];
    let shape = Shape {
        name: "s",
        keys,
        metrics: vec!["main.delay", "main.delay@late", "main.goodput"],
        series: vec!["main.cwnd"],
        defined: vec![],
    };
    let complaint =
        |text: &str| figure(text).check(std::slice::from_ref(&shape)).err().map(|e| e.what).unwrap_or_default();
    let ecdf = |more: &str| complaint(&format!("kind = \"ecdf\"\nmetric = \"main.delay\"\nseries = \"loss\"\n{more}"));
    let pool = "pool = [\"policy\"]\n";
    assert_eq!(ecdf(&format!("{pool}samples = \"delays\"\ntail = true\nx-axis = \"log\"\ny-max = 0.1")), "");
    for (more, expected) in [
        ("", "it says nothing about `policy`: name it in `at` or `average`, or in `pool`"),
        ("x = \"policy\"", "`x` is for figures of kind `line`, `bars`, `stacked`, `box` or `heatmap`"),
        ("percentile = 5", "`percentile` is for figures of kind `line`, `bars`, `stacked` or `heatmap`"),
        ("pool = [\"color\"]", "scenario `s` does not sweep `color`"),
        (
            "average = [\"policy\"]\nsamples = \"delays\"",
            "`average` is of runs: name keys whose delays or bins are thrown together in `pool`",
        ),
        ("pool = [\"policy\"]\nfrom = \"3s\"", "`from` needs `samples = \"bins\"`"),
        (
            "pool = [\"policy\"]\ny-axis = \"log\"",
            "`y-axis`: a distribution goes from 0 to 1; `tail = true` makes it logarithmic",
        ),
        (
            "pool = [\"policy\"]\nx-axis = \"category\"",
            "`x-axis`: there are numbers along it; it is `numeric` or `log`",
        ),
        (
            "pool = [\"policy\"]\ntail = true\ny-min = 0.0",
            "`y-min`: 0 has no place on a logarithmic axis; it is above zero",
        ),
    ] {
        assert_eq!(ecdf(more), expected, "{more}");
    }
    let goodput = "kind = \"ecdf\"\nmetric = \"main.goodput\"\npool = [\"loss\", \"policy\"]\nsamples = \"delays\"";
    assert!(complaint(goodput).starts_with("`samples`: `main.goodput` is not the mean of a delay"));
    assert_eq!(complaint(&goodput.replace("main.goodput", "main.delay@late")), "");
    let phase = goodput.replace("main.goodput", "main.delay@jump");
    assert!(complaint(&phase).starts_with("scenario `s` does not measure `main.delay@jump`"));
    let bins = "kind = \"box\"\nmetric = \"main.delay\"\nx = \"loss\"\npool = [\"policy\"]\nsamples = \"bins\"";
    assert_eq!(complaint(bins), "scenario `s` does not measure `main.delay`: add it to `series`");
    let late = bins.replace("main.delay", "main.cwnd");
    assert_eq!(complaint(&late), "");
    assert!(complaint(&format!("{late}\nfrom = \"soon\"")).starts_with("`from`: needs a time with its unit"));
    let scatter = |more: &str| {
        complaint(&format!("kind = \"scatter\"\nmetric = \"main.delay\"\npool = [\"loss\", \"policy\"]\n{more}"))
    };
    assert_eq!(scatter(""), "`x-metric` must name the metric along the horizontal axis");
    assert_eq!(scatter("x-metric = \"main.goodput\"\nx-unit = \"Mbit/s\"\ny-axis = \"log\""), "");
    assert!(scatter("x-metric = \"main.share\"").starts_with("`x-metric`: scenario `s` does not measure `main.share`"));
    assert!(
        scatter("x-metric = \"main.goodput\"\nx-unit = \"ms\"")
            .starts_with("`x-metric`: `unit`: `main.goodput` is in bit/s")
    );
    let map = |more: &str| complaint(&format!("kind = \"heatmap\"\nmetric = \"main.delay\"\nx = \"loss\"\n{more}"));
    assert_eq!(map("y = \"policy\"\nz-axis = \"log\"\nz-min = 0.1"), "");
    for (more, expected) in [
        ("", "`y` must name the sweep key along the vertical axis"),
        ("y = \"loss\"", "`x` and `y` are both `loss`"),
        (
            "y = \"policy\"\nseries = \"loss\"",
            "`series` and `[[figure.line]]` have no meaning in a map; it has `x`, `y` and `panels`",
        ),
        (
            "y = \"policy\"\ny-axis = \"log\"",
            "`y-axis`: values of a sweep lie side by side; `z-axis` is that of the colours",
        ),
        (
            "y = \"policy\"\ny-max = 3.0",
            "`y-min` and `y-max` have no meaning in a map; `z-min` and `z-max` are those of the colours",
        ),
        ("y = \"policy\"\nz-axis = \"category\"", "`z-axis` is `numeric` or `log`"),
        ("y = \"policy\"\nz-min = 3.0\nz-max = 1.0", "`z-min` is less than `z-max`"),
        (
            "y = \"policy\"\nx-axis = \"log\"",
            "`x-axis`: values of a sweep lie side by side; draw a `line` to place values by their numbers",
        ),
    ] {
        assert_eq!(map(more), expected, "{more}");
    }
    let line = |more: &str| {
        complaint(&format!("kind = \"line\"\nmetric = \"main.delay\"\nx = \"loss\"\nseries = \"policy\"\n{more}"))
    };
    for (field, kind) in [
        ("tail = true", "`ecdf`"),
        ("x-metric = \"main.goodput\"", "`scatter`"),
        ("z-max = 1.0", "`heatmap`"),
        ("pool = [\"loss\"]", "`ecdf`, `box` or `scatter`"),
    ] {
        let name = field.split(' ').next().unwrap();
        assert_eq!(line(field), format!("`{name}` is for figures of kind {kind}"));
    }
}
