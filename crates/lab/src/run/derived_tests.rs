//! Metrics that are made of others, and the quality of a picture.

use super::run_one;
use crate::metrics::Picture;
use crate::scenario::Scenario;

const BASE: &str = r#"
name = "base"
duration = "6s"
phases = { early = "0s-3s", late = "3s-6s" }
metrics = [METRICS]
[topology]
kind = "disjoint-paths"
delay = "20ms"
path1 = { rate = "4mbit" }
path2 = { rate = "2mbit", up.loss = "2%" }
[[flow]]
name = "main"
transport = "sctp"
traffic = { kind = "cbr", rate = "1mbit", size = 900 }
[[flow]]
name = "tcp1"
transport = "tcp"
[[flow]]
name = "tcp2"
transport = "tcp"
start = "4s"
[metric]
"#;

fn parse(metrics: &str, defined: &str) -> Result<Scenario, String> {
    let text = format!("{}{defined}", BASE.replace("METRICS", metrics));
    Scenario::parse("base.toml", &text, &|_| Err(String::new())).map_err(|e| e.to_string())
}

/// The metrics' names with their values and units.
fn run(metrics: &str, defined: &str) -> Vec<(Option<f64>, String)> {
    let s = parse(metrics, defined).unwrap_or_else(|e| panic!("{e}"));
    let row = run_one(&s.points().expect("points").remove(0), 1).expect("runs");
    row.values.into_iter().zip(s.measures.iter().map(|m| m.unit.to_string())).collect()
}

#[test]
fn a_formula_is_of_the_values_of_its_run() {
    let metrics =
        "\"main.goodput\", \"tcp*.goodput\", \"main.delay-p99.9\", \"both\", \"part\", \"spare\", \"ms\", \"gain\"";
    let all = run(
        metrics,
        "both = \"main.goodput+tcp*.goodput\"\n\
         part = \"main.goodput / (main.goodput + tcp*.goodput)\"\n\
         spare = { is = \"0.15-main.delay-p99.9\", unit = \"ms\" }\n\
         ms = { is = \"main.delay-p99.9 * 1000 / max(main.messages, 1)\", unit = \"ms\" }\n\
         gain = \"main.goodput@late/main.goodput@early - 1\"",
    );
    let value = |i: usize| all[i].0.expect("a value");
    let (main, tcp, delay) = (value(0), value(1), value(2));
    assert_eq!((value(3), all[3].1.as_str()), (main + tcp, "bit/s"));
    assert_eq!((value(4), all[4].1.as_str()), (main / (main + tcp), ""));
    assert!((value(5) - (0.15 - delay) * 1e3).abs() < 1e-9 && all[5].1 == "ms", "{:?}", all[5]);
    assert!(value(6) > 0.0 && value(7).abs() < 0.2, "{} {}", value(6), value(7));
}

#[test]
fn a_phase_holds_for_all_that_name_none() {
    let metrics = "\"x@late\", \"main.goodput@late\", \"path1.utilisation@late\", \"main.goodput@early\"";
    let all = run(metrics, "x = { is = \"main.goodput / path1.utilisation - main.goodput@early\", unit = \"kbit/s\" }");
    let value = |i: usize| all[i].0.expect("a value");
    assert!((value(0) - (value(1) / value(2) - value(3)) / 1e3).abs() < 1e-6, "{}", value(0));
}

#[test]
fn what_has_no_value_gives_none() {
    let all = run(
        "\"zero\", \"none\", \"least\", \"main.goodput\"",
        "zero = \"1 / main.timeouts\"\nnone = \"1 + path1.loss-drops / path1.mtu-drops\"\n\
         least = \"min(main.goodput, tcp2.goodput / tcp1.timeouts)\"",
    );
    // The path loses nothing, so there is nothing to divide by; what is empty is not passed over.
    assert!(all[1].0.is_none() && all[3].0.is_some(), "{all:?}");
    assert!(all[0].0.is_none_or(f64::is_finite) && all[2].0.is_none_or(f64::is_finite), "{all:?}");
}

#[test]
fn mistakes_are_one_line() {
    let line = 1 + BASE.lines().count();
    for (defined, want) in [
        ("x = \"main.goodput / main.goodputs\"", "no metric is called `goodputs`; did you mean `goodput`?"),
        (
            "x = \"main.goodput / mian.goodput\"",
            "`mian.goodput`: no flow or cable is called `mian`; did you mean `main`?",
        ),
        ("x = \"main.goodput + main.delay\"", "`bit s^-1` and `s` cannot be added or compared"),
        ("x = \"main.goodput / 2 +\"", "needs a number, a name or `(`, not the end"),
        ("x = \"main.goodput / (2\"", "needs `)`, not the end"),
        ("x = \"max(main.goodput)\"", "`max` needs two values or more"),
        ("x = \"2 + 3\"", "has no metric in it, such as main.goodput"),
        ("x = \"main.goodput@later\"", "`main.goodput@later`: no phase is called `later`; did you mean `late`?"),
        ("x = { is = \"main.delay\", unit = \"bit/s\" }", "is in s, which `bit/s` cannot show"),
        (
            "x = \"1 / main.delay\"",
            "comes to a unit without a name: give it one, as in x = { is = \"1 / main.delay\", unit = \"\u{2026}\" }",
        ),
        ("x = 3", "needs a formula, such as \"main.goodput / path1.utilisation\""),
        (
            "x = \"main.delay * y\"\ny = \"main.delay\"",
            "is made of metrics of flows and cables, and `y` is defined itself",
        ),
    ] {
        let got = parse("\"main.goodput\"", defined).expect_err(defined);
        assert_eq!(got, format!("base.toml:{line}: [metric]: `x`: {want}"), "{defined}");
    }
    let name = parse("\"main.goodput\"", "\"a.b\" = \"main.goodput\"").expect_err("a name");
    assert_eq!(
        name,
        format!("base.toml:{line}: [metric]: `a.b`: a name needs a letter, then letters, digits, `-`, `_`")
    );
    let near = parse("\"effciency\"", "efficiency = \"main.goodput / main.goodput\"").expect_err("a name");
    assert!(near.starts_with("base.toml:5: `metrics`: ") && near.ends_with("did you mean `efficiency`?"), "{near}");
    let key = parse("\"main.goodput\"", "x = { as = \"main.goodput\" }").expect_err("a key");
    assert!(key.starts_with(&format!("base.toml:{line}: [metric] `x`: unknown key `as`")), "{key}");
    let empty = parse("\"x\"", "x = \"1 + tcp1.losses\"").expect_err("empty");
    assert!(empty.contains("`x` would always be empty: in `tcp1.losses`, flow `tcp1` is over tcp"), "{empty}");
    let twice = parse("\"x\"", "x = \"main.goodput\"\n[[sweep]]\nname = \"x\"\nsets = \"duration\"\nvalues = [\"6s\"]");
    assert!(twice.expect_err("a column").contains("is a column of the results already"));
}

/// What a formula says is part of what was run.
#[test]
fn another_formula_is_another_run() {
    let hash = |defined: &str| parse("\"x\"", defined).expect("fine").points().expect("points")[0].hash;
    let (one, other) = (hash("x = \"main.goodput * 1\""), hash("x = \"main.goodput * 2\""));
    assert!(one != other && one == hash("x = \"main.goodput * 1\""));
}

#[test]
fn a_picture_is_judged_by_its_throughput() {
    let picture = |rate: &str| {
        let text = BASE.replace("METRICS", "\"main.psnr\", \"main.mos\", \"main.psnr-capped\", \"main.goodput\"");
        let text = text.replacen("size = 900 }", &format!("size = 900 }}\n{rate}"), 1);
        let s = Scenario::parse("base.toml", &text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
        let v = run_one(&s.points().expect("points").remove(0), 1).expect("runs").values;
        [0, 1, 2, 3].map(|i| v[i].expect("a value"))
    };
    // More than the stream has, and twice what it has.
    assert_eq!(picture("psnr-rate = \"500kbit\"")[..3], [60.0, 5.0, 1.0]);
    let [psnr, mos, capped, goodput] = picture("psnr-rate = \"2mbit\"");
    assert!((psnr - 20.0 * libm::log10(2e6 / (2e6 - goodput))).abs() < 1e-9 && (mos, capped) == (1.0, 0.0), "{psnr}");
    // Without one it is that of its traffic.
    let [psnr, _, _, goodput] = picture("");
    assert_eq!(psnr, Picture::Psnr.of(1e6, goodput));
    let without = parse("\"tcp1.psnr\"", "").expect_err("no rate");
    assert!(without.contains("flow `tcp1` needs a `psnr-rate`, such as \"1mbit\""), "{without}");
}
