//! The rules over samples whose truth is known.

use crate::claims::{Claim, ClaimFile, Judgement, Outcome, Verdict, judge};
use crate::results::{Form, Metric, Results, Row, Table};
use anabranch_base::RandomStream;

/// Nearly normal: a sum of twelve even draws.
fn normal(random: &mut RandomStream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn claim(text: &str) -> Claim {
    let text = format!("[[claim]]\nid = \"X\"\nsays = \"x\"\nmetric = \"m\"\n{text}");
    toml::from_str::<ClaimFile>(&text).unwrap().claims.remove(0)
}

/// A scenario whose key `k` has these points, each with the values of its seeds.
fn table(scenario: &str, points: &[(String, Vec<f64>)]) -> Table {
    let row = |k: &String, (seed, v): (usize, &f64)| Row {
        point: vec![k.clone()],
        seed: seed as u64,
        values: vec![Some(*v)],
        fingerprint: 0,
    };
    let metrics = vec![Metric { name: "m".into(), unit: "bit/s".into() }];
    let rows = points.iter().flat_map(|(k, values)| values.iter().enumerate().map(move |v| row(k, v))).collect();
    Table { scenario: scenario.into(), keys: vec!["k".into()], metrics, rows }
}

fn of(claim: &Claim, tables: Vec<Table>) -> Judgement {
    let results = Results { experiment: "x".into(), form: Form::Full, tables };
    judge(std::slice::from_ref(claim), &results, &[]).remove(0)
}

/// A pair of runs that share most of their luck, the second higher by `gain`.
fn pair(random: &mut RandomStream, gain: f64) -> [f64; 2] {
    let shared = 100.0 + 10.0 * normal(random);
    [shared + 2.0 * normal(random), shared + 2.0 * normal(random) + gain]
}

fn two(random: &mut RandomStream, seeds: usize, gain: f64) -> Table {
    let (a, b) = (0..seeds).map(|_| <(f64, f64)>::from(pair(random, gain))).unzip();
    table("s", &[("a".into(), a), ("b".into(), b)])
}

#[test]
fn a_single_run_of_ours_is_contradicted_as_rarely_as_it_says() {
    for (n, how) in ["difference", "advantage", "impact", "ratio"].into_iter().enumerate() {
        let mut random = RandomStream::named(n as u64, "single runs");
        let (trials, mut counts) = (600, [0; 3]);
        for _ in 0..trials {
            let runs = two(&mut random, 12, 1.0);
            let [a, b] = pair(&mut random, 1.0);
            let printed = match how {
                "difference" => b - a,
                "advantage" => b / a - 1.0,
                "impact" => ((b - a) / b).abs(),
                _ => b / a,
            };
            let value = format!(
                "kind = \"value\"\nprinted = {printed:?}\n\
                 compare = {{ key = \"k\", a = \"b\", b = \"a\", as = \"{how}\" }}"
            );
            let one = of(&claim(&format!("{value}\nprinted-runs = 1")), vec![runs.clone()]);
            counts[0] += i32::from(one.verdict == Some(Verdict::Contradicted));
            counts[1] += i32::from(one.verdict == Some(Verdict::Compatible));
            // Held against the mean alone most true values look false.
            counts[2] += i32::from(of(&claim(&value), vec![runs]).verdict == Some(Verdict::Contradicted));
        }
        let [wrong, one_run, by_mean] = counts.map(|c| f64::from(c) / f64::from(trials));
        assert!((0.02..0.08).contains(&wrong), "{how}: {wrong}");
        assert!(one_run > 0.3 && by_mean > 0.3, "{how}: {one_run} {by_mean}");
        assert!((wrong + one_run - by_mean).abs() < 1e-9, "{how}: what is compatible is what the mean alone refuses");
    }
}

#[test]
fn means_over_a_key_are_taken_within_the_run() {
    // Four points; what a single run prints is its own mean over them, which spreads half as far as one point.
    let mut random = RandomStream::named(7, "averages");
    let points: Vec<(String, Vec<f64>)> =
        (0..4).map(|k| (k.to_string(), (0..30).map(|_| 10.0 + normal(&mut random)).collect())).collect();
    let value = |x: f64| {
        let text = format!("kind = \"value\"\nprinted-runs = 1\naverage = [\"k\"]\nprinted = {x:?}");
        of(&claim(&text), vec![table("s", &points)])
    };
    let j = value(10.6);
    assert_eq!(j.verdict, Some(Verdict::Compatible), "{}", j.reason);
    let (low, high) = j.steps[0].further.unwrap();
    assert!((1.5..2.7).contains(&(high - low)), "{low} {high}");
    assert!(j.reason.contains("one further run would lie"), "{}", j.reason);
    assert_eq!(value(12.0).verdict, Some(Verdict::Contradicted));
}

#[test]
fn the_mean_of_a_few_runs_has_less_room_than_one() {
    let mut random = RandomStream::named(8, "few");
    let runs = two(&mut random, 30, 0.0);
    let verdict = |runs_behind: &str| {
        let text = format!(
            "kind = \"value\"\nprinted = 3.0\n{runs_behind}\n\
             compare = {{ key = \"k\", a = \"b\", b = \"a\", as = \"difference\" }}"
        );
        let j = of(&claim(&text), vec![runs.clone()]);
        (j.verdict.unwrap(), j.word(), j.reason)
    };
    assert_eq!(verdict("printed-runs = 1").1, "compatible with one run");
    assert_eq!(verdict("printed-runs = 20").0, Verdict::Contradicted);
    assert_eq!(verdict("").0, Verdict::Contradicted);
    let (_, word, reason) = verdict("printed-runs = 2");
    assert_eq!(word, "compatible with 2 runs");
    assert!(reason.contains("the mean of 2 further runs"), "{reason}");
}

#[test]
fn many_steps_of_nothing_seldom_contradict() {
    // Twelve settings that differ by nothing but chance: rising, ordered and signs are claimed of noise.
    let mut random = RandomStream::named(9, "many steps");
    let (trials, mut wrong) = (400, [0; 2]);
    for _ in 0..trials {
        let points: Vec<(String, Vec<f64>)> =
            (0..12).map(|k| (format!("{k:02}"), (0..10).map(|_| normal(&mut random)).collect())).collect();
        for (i, kind) in ["increasing", "decreasing"].into_iter().enumerate() {
            let j = of(&claim(&format!("kind = \"{kind}\"\nover = \"k\"")), vec![table("s", &points)]);
            assert!(j.steps.len() == 11 && j.reason.contains("11 comparisons by Holm at 5 % together"), "{}", j.reason);
            wrong[i] += i32::from(j.verdict != Some(Verdict::NotTestable));
        }
    }
    for share in wrong.map(|n| f64::from(n) / f64::from(trials)) {
        assert!(share < 0.05, "{share}");
    }
}

#[test]
fn true_trends_are_still_seen() {
    let mut random = RandomStream::named(10, "trend");
    let points: Vec<(String, Vec<f64>)> =
        (0..6).map(|k| (k.to_string(), (0..20).map(|_| 2.0 * f64::from(k) + normal(&mut random)).collect())).collect();
    let j = of(&claim("kind = \"increasing\"\nover = \"k\""), vec![table("s", &points)]);
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    assert!(j.steps.iter().all(|s| s.outcome == Outcome::Supported && s.p.is_some_and(|p| p < 0.05)));
}

#[test]
fn several_printed_values_of_ours_are_one_claim() {
    // Five true values at once, each a single run: the claim as a whole is contradicted in one of twenty.
    let mut random = RandomStream::named(11, "five values");
    let (trials, mut wrong) = (500, 0);
    for _ in 0..trials {
        let points: Vec<(String, Vec<f64>)> =
            (0..5).map(|k| (k.to_string(), (0..10).map(|_| normal(&mut random)).collect())).collect();
        let printed: Vec<f64> = (0..5).map(|_| normal(&mut random)).collect();
        let text = format!(
            "kind = \"value\"\nprinted-runs = 1\nover = \"k\"\nvalues = [\"0\", \"1\", \"2\", \"3\", \"4\"]\n\
             printed = {printed:?}"
        );
        wrong += i32::from(of(&claim(&text), vec![table("s", &points)]).verdict == Some(Verdict::Contradicted));
    }
    let share = f64::from(wrong) / f64::from(trials);
    assert!((0.02..0.08).contains(&share), "{share}");
}

#[test]
fn what_hangs_on_an_unstated_parameter_says_so() {
    // Ours are what the parameter is: 10, 20, 30, give or take 0.6 of a run.
    let mut random = RandomStream::named(12, "conditional");
    let runs = |at: f64, random: &mut RandomStream| (0..20).map(|_| at + 0.6 * normal(random)).collect::<Vec<f64>>();
    let swept: Vec<(String, Vec<f64>)> =
        ["10", "20", "30"].map(|k| (k.to_owned(), runs(k.parse().unwrap(), &mut random))).to_vec();
    let main = table("main", &[("20".into(), runs(20.0, &mut random))]);
    let value = |printed: f64, conditional: &str| {
        let text = format!(
            "kind = \"value\"\nscenario = \"main\"\nat = {{ k = \"20\" }}\nprinted-runs = 1\nprinted = {printed:?}\n\
             conditional = {{ on = \"the size of it\", {conditional} }}"
        );
        let j = of(&claim(&text), vec![main.clone(), table("sweep", &swept)]);
        (j.verdict.unwrap(), j.reason)
    };
    let by_key = "scenario = \"sweep\", key = \"k\"";
    let (verdict, reason) = value(30.2, by_key);
    assert_eq!(verdict, Verdict::Conditional);
    for part in
        ["hangs on the size of it", "among ours at k 30 and not at k 10, 20", "10: ", "in the main runs the printed"]
    {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    // Reproduced where everything else was run, and not elsewhere: it hangs on that value all the same.
    assert_eq!(value(20.1, by_key).0, Verdict::Conditional);
    // Between two values that were run: one between them would do.
    let (verdict, reason) = value(25.0, by_key);
    assert_eq!(verdict, Verdict::Conditional);
    assert!(reason.contains("lies between those at k 20 and 30"), "{reason}");
    let (verdict, reason) = value(50.0, by_key);
    assert_eq!(verdict, Verdict::Contradicted);
    assert!(reason.contains("nor does any value of the size of it"), "{reason}");
    let some = "scenario = \"sweep\", key = \"k\", values = [\"20\"]";
    assert_ne!(value(20.1, some).0, Verdict::Conditional);
    // Without the runs that show it nothing is held against the paper.
    let (verdict, reason) = value(30.2, "scenario = \"elsewhere\", key = \"k\"");
    assert_eq!(verdict, Verdict::NotTestable);
    assert!(reason.contains("no runs show other values"), "{reason}");
}

#[test]
fn settings_may_be_scenarios() {
    let runs = |name: &str, at: f64| table(name, &[("a".into(), vec![at - 0.1, at, at + 0.1, at])]);
    let tables = vec![runs("main", 5.0), runs("small", 5.0), runs("large", 9.0)];
    let text = "kind = \"value\"\nscenario = \"main\"\nat = { k = \"a\" }\nprinted = 9.0\n\
                conditional = { on = \"a queue\", scenario = [\"small\", \"large\"] }";
    let j = of(&claim(text), tables);
    assert_eq!(j.verdict, Some(Verdict::Conditional));
    assert!(j.reason.contains("at scenario large and not at scenario small"), "{}", j.reason);
}

#[test]
fn exact_numbers_need_no_spread() {
    let points: Vec<(String, Vec<f64>)> = [("a".into(), vec![3.0; 4]), ("b".into(), vec![3.0; 4])].to_vec();
    let verdict = |text: &str| of(&claim(text), vec![table("s", &points)]).verdict.unwrap();
    let value = |x: &str| verdict(&format!("kind = \"value\"\nprinted-runs = 1\nat = {{ k = \"a\" }}\nprinted = {x}"));
    assert_eq!((value("3.0"), value("3.1")), (Verdict::Reproduced, Verdict::Contradicted));
    assert_eq!(verdict("kind = \"bound\"\nat-most = 3\nat = { k = \"a\" }"), Verdict::Reproduced);
    assert_eq!(verdict("kind = \"bound\"\nbelow = 3\nat = { k = \"a\" }"), Verdict::Contradicted);
    assert_eq!(verdict("kind = \"increasing\"\nover = \"k\""), Verdict::Contradicted);
}

#[test]
fn an_impact_is_bounded_as_an_absolute_value() {
    let mut random = RandomStream::named(13, "impact");
    let runs = two(&mut random, 30, -10.0);
    let verdict = |bound: &str| {
        let text = format!(
            "kind = \"bound\"\n{bound}\nunit = \"%\"\ncompare = {{ key = \"k\", a = \"b\", b = \"a\", as = \"impact\" }}"
        );
        of(&claim(&text), vec![runs.clone()]).verdict.unwrap()
    };
    assert_eq!(verdict("below = 20"), Verdict::Reproduced);
    assert_eq!(verdict("above = 5"), Verdict::Reproduced);
    assert_eq!(verdict("below = 5"), Verdict::Contradicted);
    assert_eq!(verdict("above = 20"), Verdict::Contradicted);
}

#[test]
fn one_seed_decides_nothing_but_a_tolerance() {
    let one = || vec![table("s", &[("a".into(), vec![3.0])])];
    let verdict = |text: &str| of(&claim(&format!("at = {{ k = \"a\" }}\n{text}")), one()).verdict.unwrap();
    assert_eq!(verdict("kind = \"value\"\nprinted = 3.5\nprinted-runs = 1"), Verdict::NotTestable);
    assert_eq!(verdict("kind = \"value\"\nprinted = 3.5\ntolerance = 1"), Verdict::Reproduced);
    assert_eq!(verdict("kind = \"bound\"\nabove = 1"), Verdict::NotTestable);
}
