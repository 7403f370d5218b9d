//! Axes: where values lie, where axes end, what is refused.

use super::tests::{figure, results};
use super::*;
use crate::claims::Shape;
use crate::results::Results;

fn svg(text: &str, results: &Results) -> String {
    let f = figure(text);
    draw(&f, &resolve(&f, results, &[], &[]).unwrap())[0].standalone()
}

/// The rate at 16, 32 and 1024 KB, written in an order of its own.
fn three(values: [f64; 3]) -> Results {
    let mut r = results();
    let table = &mut r.tables[0];
    table.rows.clear();
    for (rbuf, v) in ["1MB", "16KB", "32KB"].iter().zip(values) {
        for seed in 1..=2u64 {
            let point = vec![(*rbuf).to_owned(), "with".to_owned()];
            let values = vec![Some(v + seed as f64)];
            table.rows.push(crate::results::Row { point, seed, values, fingerprint: 0 });
        }
    }
    r
}

#[test]
fn values_are_placed_by_their_numbers() {
    let at = "at = { background = \"with\" }\n";
    let r = three([3e6, 1e6, 2e6]);
    let category = svg(at, &r);
    assert!(category.contains(">1MB</text>") && category.contains(">16KB</text>"));
    let numeric = svg(&format!("{at}x-axis = \"numeric\""), &r);
    // Two of the three values are written in KB, so the axis is.
    assert!(numeric.contains(">rbuf (KB)</text>") && numeric.contains(">400</text>"), "{numeric}");
    let log = svg(&format!("{at}x-axis = \"log\"\nx-name = \"buffer\""), &r);
    assert!(log.contains(">buffer (KB)</text>") && log.contains(">64</text>"), "{log}");
    // From left to right, though the scenario begins with the largest: no line turns back.
    for svg in [&numeric, &log] {
        let line = svg.split("<path class=\"l c0\"").nth(1).unwrap();
        let d = line.split(" d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let x: Vec<f64> = d.replace('L', " ").split(' ').step_by(2).map(|v| v.parse().unwrap()).collect();
        assert!(x.len() == 3 && x.windows(2).all(|w| w[0] < w[1]), "{d}");
        let shares = (x[1] - x[0]) / (x[2] - x[0]);
        // 16 of 1008, or one of six doublings.
        let expected = if svg == &log { 1.0 / 6.0 } else { 16.0 / 1008.0 };
        assert!((shares - expected).abs() < 0.002, "{shares}");
    }
}

#[test]
fn a_logarithmic_axis_keeps_what_it_can_and_says_what_it_cannot() {
    let f = figure("at = { background = \"with\" }\ny-axis = \"log\"");
    let data = resolve(&f, &three([3e6, -5.0, 2.0]), &[], &[]).unwrap();
    let svg = draw(&f, &data)[0].standalone();
    assert!(svg.contains(">10⁶</text>"), "{svg}");
    let said = note(&f, &data.panels[0]);
    assert!(said.contains("Not above zero, and so not on the logarithmic axis: 1 of the values."), "{said}");
    assert_eq!(svg.matches("<path class=\"p c0\"").count(), 2, "two marks, and none in a legend without names");
}

#[test]
fn ends_are_where_the_figure_wants_them() {
    let at = "at = { background = \"with\" }\nunit = \"Mbit/s\"\n";
    let labels = |more: &str| {
        let svg = svg(&format!("{at}{more}"), &three([3e6, 1e6, 2e6]));
        let ticks = svg.split("text-anchor=\"end\">").skip(1).filter_map(|s| s.split('<').next());
        ticks.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(labels("").last().map(String::as_str), Some("4"));
    let top = labels("y-max = 8.0");
    assert_eq!((top.first().map(String::as_str), top.last().map(String::as_str)), (Some("0"), Some("8")));
    let both = labels("y-min = 1.0\ny-max = 2.0");
    assert_eq!((both.first().map(String::as_str), both.last().map(String::as_str)), (Some("1.0"), Some("2.0")));
}

#[test]
fn panels_share_an_axis_that_is_logarithmic() {
    let f = figure("panels = \"background\"\ny-axis = \"log\"");
    let drawings = draw(&f, &resolve(&f, &results(), &[], &[]).unwrap());
    let ticks = |svg: &str| -> Vec<String> {
        svg.split("text-anchor=\"end\">").skip(1).filter_map(|s| Some(s.split('<').next()?.to_owned())).collect()
    };
    assert_eq!(ticks(&drawings[0].standalone()), ticks(&drawings[1].standalone()));
}

#[test]
fn the_median_of_maxima_and_percentiles_of_comparisons_are_drawn() {
    // The highest of both settings of each seed is the one without background.
    let f = figure("average = [\"background\"]\nmedian-of-maxima = true");
    let data = resolve(&f, &results(), &[], &[]).unwrap();
    let e = data.panels[0].lines[0].spots[0].ours.unwrap();
    assert!((e.mean - 1_002_000.0).abs() < 1e-6 && e.interval.is_some(), "{e:?}");
    assert!(note(&f, &data.panels[0]).starts_with("Median of the highest values and 95 % interval of 3 seeds."));
    let compare = "compare = { key = \"background\", a = \"with\", b = \"without\", as = \"ratio\" }\npercentile = 50";
    let data = resolve(&figure(compare), &results(), &[], &[]).unwrap();
    let e = data.panels[0].lines[0].spots[0].ours.unwrap();
    assert!((e.mean - 0.75).abs() < 1e-12, "{e:?}");
}

#[test]
fn mistakes_about_axes_are_named() {
    let (rbuf, policy) = (["16KB".to_owned(), "0".to_owned()], ["rtx_csi".to_owned(), "64KB".to_owned()]);
    let keys = vec![("rbuf", &rbuf[..]), ("policy", &policy[..])];
    let shape = Shape { name: "e1", keys, metrics: vec!["main.goodput"], series: vec![], defined: vec![] };
    let complaint = |text: &str| {
        let f = figure(&format!("{text}\n"));
        f.check(std::slice::from_ref(&shape)).err().map(|e| e.what).unwrap_or_default()
    };
    let line = |text: &str| complaint(&format!("series = \"policy\"\n{text}"));
    assert_eq!(line("x-axis = \"numeric\"\nx-max = 70.0\ny-axis = \"log\"\ny-min = 1.0"), "");
    for (text, expected) in [
        ("x-axis = \"log\"", "`x-axis`: `rbuf` of 0 has no place on a logarithmic axis"),
        ("x-min = 3.0", "`x-min` and `x-max` need an `x-axis` that is `numeric` or `log`"),
        ("y-axis = \"category\"", "`y-axis` is `numeric` or `log`"),
        ("y-axis = \"log\"\ny-max = 0.0", "`y-max`: 0 has no place on a logarithmic axis; it is above zero"),
        ("y-min = 3.0\ny-max = 3.0", "`y-min` is less than `y-max`"),
        ("y-min = nan", "`y-min` is a number"),
        ("percentile = 50\nmedian-of-maxima = true", "give either `percentile` or `median-of-maxima`, not both"),
    ] {
        assert_eq!(line(text), expected, "{text}");
    }
    let bars = |text: &str| complaint(&format!("kind = \"bars\"\nseries = \"policy\"\n{text}"));
    assert!(bars("y-axis = \"log\"").starts_with("`y-axis`: bars begin at zero"));
    assert!(bars("x-axis = \"numeric\"").starts_with("`x-axis`: values of a sweep lie side by side"));
    assert!(bars("y-min = 1.0").starts_with("`y-min`: bars begin at zero"));
    assert_eq!(bars("y-max = 1.0"), "");
    // Of another key along the axis.
    let mut f = figure("series = \"rbuf\"\nx-axis = \"numeric\"");
    f.x = "policy".into();
    let said = f.check(std::slice::from_ref(&shape)).unwrap_err().what;
    assert_eq!(said, "`x-axis`: `policy` of rtx_csi is no number");
    f.values = vec!["64KB".into()];
    assert_eq!(f.check(std::slice::from_ref(&shape)), Ok(()));
}
