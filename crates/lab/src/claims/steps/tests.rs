//! Kinds of claims over samples whose truth is known.

use crate::claims::{Claim, ClaimFile, Judgement, Verdict, judge, to_csv};
use crate::results::{Form, Metric, Results, Row, Table};
use anabranch_base::RandomStream;

/// Nearly normal: a sum of twelve even draws.
fn normal(random: &mut RandomStream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn claim(text: &str) -> Claim {
    let text = format!("[[claim]]\nid = \"X\"\nsays = \"x\"\nmetric = \"a.goodput\"\n{text}");
    toml::from_str::<ClaimFile>(&text).unwrap().claims.remove(0)
}

const LOSSES: [&str; 4] = ["1%", "2%", "4%", "9%"];

/// Goodput of `a` and `b` and the longest delay of `a`, over losses and two schemes, as `of` has them before the noise of a
/// run: loss as a share, true for scheme `y`.
fn runs(seeds: u64, noise: f64, of: impl Fn(f64, bool) -> [f64; 3]) -> Results {
    let mut random = RandomStream::named(1, "kinds of claims");
    let mut rows = Vec::new();
    for loss in LOSSES {
        for scheme in ["x", "y"] {
            for seed in 0..seeds {
                let share: f64 = loss.trim_end_matches('%').parse().unwrap();
                let values = of(share / 100.0, scheme == "y").map(|v| Some(v * (1.0 + noise * normal(&mut random))));
                let point = vec![loss.to_owned(), scheme.to_owned()];
                rows.push(Row { point, seed, values: values.to_vec(), fingerprint: 0 });
            }
        }
    }
    let metric = |name: &str, unit: &str| Metric { name: name.into(), unit: unit.into() };
    let metrics = vec![metric("a.goodput", "bit/s"), metric("b.goodput", "bit/s"), metric("a.delay-max", "s")];
    let tables = vec![Table { scenario: "s".into(), keys: vec!["loss".into(), "scheme".into()], metrics, rows }];
    Results { experiment: "x".into(), form: Form::Full, tables }
}

/// 1.22 segments of 1460 bytes a round trip of 100 ms for each square root of the loss; scheme `y` has more by a third,
/// and `b` half of `a`.
fn law(loss: f64, y: bool) -> [f64; 3] {
    let a = 1460.0 * 8.0 / 0.1 * 1.22 / loss.sqrt() * if y { 4.0 / 3.0 } else { 1.0 };
    [a, a / 2.0, 0.1 + loss]
}

fn of(text: &str, results: &Results) -> Judgement {
    judge(&[claim(text)], results, &[]).remove(0)
}

fn verdict(text: &str, results: &Results) -> Verdict {
    let j = of(text, results);
    j.verdict.unwrap_or_else(|| panic!("{text}: {}", j.reason))
}

#[test]
fn a_formula_holds_within_so_many_per_cent() {
    let results = runs(20, 0.02, law);
    let formula = |scheme: &str, tolerance: f64| {
        format!(
            "kind = \"formula\"\nat = {{ scheme = \"{scheme}\" }}\nover = \"loss\"\ntolerance = {tolerance:?}\n\
             formula = \"mss*8/rtt*1.22/sqrt(loss)\"\nconstants = {{ mss = \"1460B\", rtt = \"100ms\" }}"
        )
    };
    let j = of(&formula("x", 5.0), &results);
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    assert_eq!((j.steps.len(), j.unit.as_str()), (4, "%"));
    assert!(j.steps[0].what.contains("away from 1424960 bit/s"), "{}", j.steps[0].what);
    assert!(j.steps.iter().all(|s| s.ours.mean.abs() < 2.0));
    assert_eq!(verdict(&formula("y", 5.0), &results), Verdict::Contradicted, "a third more");
    assert_eq!(verdict(&formula("y", 40.0), &results), Verdict::Reproduced);
    // A tolerance finer than what the seeds can tell stays open.
    assert_eq!(verdict(&formula("x", 0.2), &results), Verdict::NotTestable);
    let j = of(&format!("{}\nunit = \"Mbit/s\"", formula("x", 5.0).replace("mss*8", "mss*8/1e6")), &results);
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    let csv = to_csv(&[j]);
    assert!(csv.lines().nth(1).unwrap().starts_with("X,reproduced,mss*8/1e6/rtt*1.22/sqrt(loss) +/- 5,"), "{csv}");
    let zero = formula("x", 5.0).replace("mss*8", "0*mss");
    let j = of(&zero, &results);
    assert!(j.verdict == Some(Verdict::NotTestable) && j.reason.contains("gives no number"), "{}", j.reason);
}

#[test]
fn a_formula_that_is_true_is_seldom_contradicted() {
    // Judged at a tolerance of nothing: of true values one in twenty claims of four steps may say no.
    let (trials, mut wrong) = (300, 0);
    let mut random = RandomStream::named(2, "formulas");
    for _ in 0..trials {
        let mut results = runs(10, 0.0, law);
        for row in &mut results.tables[0].rows {
            row.values[0] = row.values[0].map(|v| v * (1.0 + 0.05 * normal(&mut random)));
        }
        let text = "kind = \"formula\"\nat = { scheme = \"x\" }\nover = \"loss\"\ntolerance = 0\n\
                    formula = \"1460*8/0.1*1.22/sqrt(loss)\"";
        wrong += i32::from(verdict(text, &results) == Verdict::Contradicted);
    }
    let share = f64::from(wrong) / f64::from(trials);
    assert!((0.01..0.09).contains(&share), "{share}");
}

#[test]
fn one_metric_against_another() {
    let results = runs(20, 0.02, law);
    let than = |more: &str| {
        format!("kind = \"inequality\"\nthan = \"b.goodput\"\naverage = [\"loss\"]\nat = {{ scheme = \"x\" }}\n{more}")
    };
    assert_eq!(verdict(&than(""), &results), Verdict::Reproduced);
    assert_eq!(verdict(&than("factor = 1.8"), &results), Verdict::Reproduced);
    assert_eq!(verdict(&than("factor = 2.2"), &results), Verdict::Contradicted);
    // Twice is what it is: neither more nor less.
    assert_eq!(verdict(&than("factor = 2.0"), &results), Verdict::NotTestable);
    let j = of(&than("factor = 2.0\nmargin = 0.1\nunit = \"Mbit/s\""), &results);
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    assert_eq!(j.printed, "a.goodput \u{2265} 2 \u{d7} b.goodput \u{2212} 0.1 Mbit/s");
    assert_eq!(j.stated, "a.goodput >= 2 * b.goodput - 0.1");
    // Where there is nothing of the other, more than nothing is more.
    let none = runs(20, 0.02, |loss, y| [law(loss, y)[0], 0.0, 1.0]);
    assert_eq!(verdict(&than("factor = 100"), &none), Verdict::Reproduced);
}

#[test]
fn how_much_a_metric_varies_over_a_key() {
    let results = runs(20, 0.02, law);
    // In proportion to 1, 1/sqrt(2), 1/2 and 1/3: a deviation of 0.287 around 0.635.
    let variation = |more: &str| format!("kind = \"variation\"\nover = \"loss\"\nat = {{ scheme = \"x\" }}\n{more}");
    let j = of(&variation("above = 40\nunit = \"%\""), &results);
    assert_eq!((j.verdict, j.steps.len()), (Some(Verdict::Reproduced), 1), "{}", j.reason);
    assert!((j.steps[0].ours.mean - 45.2).abs() < 1.0 && j.steps[0].what.contains("variation over loss"), "{j:?}");
    assert_eq!(verdict(&variation("below = 0.3"), &results), Verdict::Contradicted);
    assert_eq!(verdict(&variation("at-most = 0.5"), &results), Verdict::Reproduced);
    // Both schemes vary alike in proportion; one that levels off varies less.
    let both = "kind = \"variation\"\nover = \"loss\"\n\
                compare = { key = \"scheme\", a = \"y\", b = \"x\", as = \"ratio\" }\n";
    assert_eq!(verdict(&format!("{both}below = 1"), &results), Verdict::NotTestable);
    let level = runs(20, 0.02, |loss, y| [if y { 1e6 + 1e6 * loss } else { law(loss, y)[0] }, 0.0, 1.0]);
    assert_eq!(verdict(&format!("{both}below = 0.5"), &level), Verdict::Reproduced);
}

#[test]
fn percentiles_and_medians_of_maxima_have_bootstrap_intervals() {
    let results = runs(60, 0.05, law);
    let delay = |text: &str| of(&text.replace("a.goodput", "a.delay-max"), &results);
    let at = "at = { loss = \"1%\", scheme = \"x\" }";
    let as_metric = |text: &str| {
        let mut c = claim(text);
        c.metric = Some("a.delay-max".into());
        judge(&[c], &results, &[]).remove(0)
    };
    // 0.11 s, give or take 5 %: the 90th percentile of a normal is 1.2816 deviations above its mean.
    let truth = 0.11 * (1.0 + 0.05 * 1.2816);
    let j = as_metric(&format!("kind = \"value\"\npercentile = 90\nprinted = {truth:?}\n{at}"));
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    let (low, high) = j.steps[0].ours.interval.unwrap();
    assert!(low < truth && truth < high && high - low < 0.01, "{low} {high}");
    let far = as_metric(&format!("kind = \"value\"\npercentile = 90\nprinted = 0.13\n{at}"));
    assert_eq!(far.verdict, Some(Verdict::Contradicted));
    // Trends and comparisons of percentiles work as those of means do.
    let trend = "kind = \"increasing\"\npercentile = 90\nover = \"loss\"\nat = { scheme = \"x\" }";
    assert_eq!(as_metric(trend).verdict, Some(Verdict::Reproduced));
    let less = "kind = \"bound\"\nabove = 20\nunit = \"%\"\npercentile = 50\naverage = [\"loss\"]\n\
                compare = { key = \"scheme\", a = \"y\", b = \"x\", as = \"advantage\" }";
    assert_eq!(delay(less).verdict, Some(Verdict::Reproduced));
    // The highest over the losses is that at 9 %, 0.19 s, and little more by the noise of the others.
    let j = as_metric(
        "kind = \"value\"\nmedian-of-maxima = true\naverage = [\"loss\"]\nprinted = 0.19\nat = { scheme = \"x\" }",
    );
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    let mean = as_metric("kind = \"value\"\naverage = [\"loss\"]\nprinted = 0.19\nat = { scheme = \"x\" }");
    assert_eq!(mean.verdict, Some(Verdict::Contradicted));
}

#[test]
fn claims_about_percentiles_of_nothing_seldom_say_anything() {
    // Two schemes of the same delays: no claim about their 75th percentile should hold or fail more often than it may.
    let (trials, mut said) = (200, 0);
    let mut random = RandomStream::named(5, "percentiles");
    for _ in 0..trials {
        let mut results = runs(40, 0.0, |_, _| [1.0; 3]);
        for row in &mut results.tables[0].rows {
            row.values[0] = row.values[0].map(|v| v + normal(&mut random) / 10.0);
        }
        let text = "kind = \"bound\"\nabove = 0\npercentile = 75\nat = { loss = \"1%\" }\n\
                    compare = { key = \"scheme\", a = \"y\", b = \"x\", as = \"difference\" }";
        said += i32::from(verdict(text, &results) != Verdict::NotTestable);
    }
    let share = f64::from(said) / f64::from(trials);
    assert!(share < 0.1, "{share}");
}

/// Of scheme `y` less, at each loss by so much of scheme `x`, give or take what a run has of its own.
fn apart(seeds: u64, by: [f64; 4]) -> Results {
    let mut results = runs(seeds, 0.0, |_, _| [0.0; 3]);
    let mut random = RandomStream::named(2, "distances");
    for row in &mut results.tables[0].rows {
        let gap = by[LOSSES.iter().position(|l| *l == row.point[0]).unwrap()];
        let noise = if gap == 0.0 { 0.0 } else { normal(&mut random) };
        row.values[0] = Some(1_000.0 - if row.point[1] == "y" { gap + noise } else { 0.0 });
    }
    results
}

#[test]
fn distances_shrink_whichever_side_is_higher() {
    let trend = |kind: &str, (a, b): (&str, &str), how: &str, values: &str| {
        format!(
            "kind = \"{kind}\"\nover = \"loss\"\nvalues = {values}\n\
             compare = {{ key = \"scheme\", a = \"{a}\", b = \"{b}\", as = \"{how}\" }}"
        )
    };
    let all = "[\"1%\", \"2%\", \"4%\", \"9%\"]";
    let shrinking = apart(20, [90.0, 60.0, 40.0, 20.0]);
    for sides in [("x", "y"), ("y", "x")] {
        let of = |kind, how| verdict(&trend(kind, sides, how, all), &shrinking);
        assert_eq!(of("decreasing", "distance"), Verdict::Reproduced, "{sides:?}");
        assert_eq!(of("increasing", "distance"), Verdict::Contradicted, "{sides:?}");
    }
    // By its sign it rises from -90 to -20.
    assert_eq!(verdict(&trend("decreasing", ("y", "x"), "difference", all), &shrinking), Verdict::Contradicted);
    // From one side to as far on the other it is no smaller, and from far to near it is.
    for (by, wanted) in [
        ([90.0, -90.0, 90.0, -90.0], Verdict::NotTestable),
        ([90.0, -60.0, 40.0, -20.0], Verdict::Reproduced),
        ([20.0, -40.0, 60.0, -90.0], Verdict::Contradicted),
    ] {
        assert_eq!(verdict(&trend("decreasing", ("y", "x"), "distance", all), &apart(20, by)), wanted, "{by:?}");
    }
}

#[test]
fn a_difference_that_vanished_has_nothing_to_shrink() {
    let of = |by| {
        let text = "kind = \"decreasing\"\nover = \"loss\"\n\
                    compare = { key = \"scheme\", a = \"y\", b = \"x\", as = \"distance\" }";
        let j = of(text, &apart(20, by));
        (j.verdict.unwrap(), j.steps.len())
    };
    assert_eq!(
        of([90.0, 40.0, 0.0, 0.0]),
        (Verdict::Reproduced, 2),
        "to nothing is a step, from there to nothing none"
    );
    assert_eq!(of([90.0, 40.0, 0.0, 30.0]), (Verdict::Contradicted, 3), "from nothing it grows");
    assert_eq!(of([0.0; 4]), (Verdict::NotTestable, 0));
}

#[test]
fn a_distance_that_may_be_on_either_side_is_not_known_to_shrink() {
    // Seeds apart by far more than what is left of the difference: from 3 to 2, either way round.
    let mut results = apart(12, [3.0, 2.0, 1.0, 1.0]);
    let mut random = RandomStream::named(3, "distances");
    for row in results.tables[0].rows.iter_mut().filter(|r| r.point[1] == "y") {
        row.values[0] = row.values[0].map(|v| v + 20.0 * normal(&mut random));
    }
    for kind in ["decreasing", "increasing"] {
        let text = format!(
            "kind = \"{kind}\"\nover = \"loss\"\ncompare = {{ key = \"scheme\", a = \"y\", b = \"x\", as = \"distance\" }}"
        );
        assert_eq!(verdict(&text, &results), Verdict::NotTestable, "{kind}");
    }
}

#[test]
fn one_of_several_bounds_is_enough() {
    let results = runs(20, 0.02, law);
    // Scheme y has a third more than x in both metrics; the delay is the same.
    let text = |first: &str, any: &str| {
        format!(
            "kind = \"bound\"\nover = \"loss\"\nunit = \"%\"\n{first}\n\
             compare = {{ key = \"scheme\", a = \"y\", b = \"x\", as = \"advantage\" }}\nany = [{any}]"
        )
    };
    for (first, any, wanted) in [
        ("below = 0", "{ metric = \"b.goodput\" }", Verdict::Contradicted),
        ("above = 20", "{ metric = \"b.goodput\", above = 0 }", Verdict::Reproduced),
        ("above = 50", "{ metric = \"b.goodput\", above = 20 }", Verdict::Reproduced),
        (
            "above = 50",
            "{ metric = \"b.goodput\", above = 60 }, { metric = \"a.delay-max\", above = 30 }",
            Verdict::Contradicted,
        ),
        (
            "above = 50",
            "{ metric = \"b.goodput\", above = 60 }, { metric = \"a.delay-max\", above = 0 }",
            Verdict::NotTestable,
        ),
    ] {
        let j = of(&text(first, any), &results);
        assert_eq!(j.verdict, Some(wanted), "{first} {any}: {}", j.reason);
        assert_eq!(j.steps.len(), 4, "one a place");
    }
    let j = of(&text("above = 50", "{ metric = \"b.goodput\", above = 20 }"), &results);
    assert_eq!(j.printed, "above 50 % or above 20 %");
    assert_eq!(j.steps[0].what, "b.goodput of y beside x: loss 1%");
}

#[test]
fn the_other_side_may_be_another_metric() {
    let results = runs(20, 0.02, law);
    let of = |(a, b): (&str, &str), above: f64| {
        let text = format!(
            "kind = \"bound\"\nover = \"loss\"\nunit = \"%\"\nabove = {above:?}\ncompare = {{ key = \"scheme\", \
             a = \"{a}\", b = \"{b}\", metric-of-b = \"b.goodput\", as = \"advantage\" }}"
        );
        verdict(&text, &results)
    };
    // What y has of a is 8/3 of what x has of b, what x has of a 3/2 of what y has of b.
    for (sides, more) in [(("y", "x"), 500.0 / 3.0), (("x", "y"), 50.0)] {
        assert_eq!(of(sides, more - 10.0), Verdict::Reproduced, "{sides:?}");
        assert_eq!(of(sides, more + 10.0), Verdict::Contradicted, "{sides:?}");
    }
}
