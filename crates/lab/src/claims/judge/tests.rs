use super::*;
use crate::claims::{ClaimFile, to_csv};
use crate::results::{Metric, Row};

/// One key `k` with values a, b, c; each seed's value is given per point, plus what all points of a seed share.
fn results(form: Form, points: [[f64; 4]; 3]) -> Results {
    let shared = [0.0, 50.0, -20.0, 5.0];
    let mut rows = Vec::new();
    for (name, values) in ["a", "b", "c"].iter().zip(points) {
        for (seed, (v, s)) in values.iter().zip(shared).enumerate() {
            let values = vec![Some(v + s)];
            rows.push(Row { point: vec![(*name).into()], seed: seed as u64, values, fingerprint: 0 });
        }
    }
    let metrics = vec![Metric { name: "m".into(), unit: "bit/s".into() }];
    let table = Table { scenario: "s".into(), keys: vec!["k".into()], metrics, rows };
    Results { experiment: "x".into(), form, tables: vec![table] }
}

fn claim(text: &str) -> Claim {
    let text = format!("[[claim]]\nid = \"X\"\nsays = \"x\"\nmetric = \"m\"\n{text}");
    toml::from_str::<ClaimFile>(&text).unwrap().claims.remove(0)
}

const RISING: [[f64; 4]; 3] = [[100.0, 100.1, 99.9, 100.0], [110.0, 110.1, 110.0, 109.9], [115.0, 115.1, 115.0, 114.9]];

fn verdict(points: [[f64; 4]; 3], text: &str) -> (Verdict, String) {
    let j = judge_one(&claim(text), &results(Form::Full, points), &[]);
    (j.verdict.unwrap(), j.reason)
}

#[test]
fn a_printed_value_is_judged_by_the_interval_or_the_stated_tolerance() {
    let value = |printed: &str| {
        verdict(
            RISING,
            &format!(
                "kind = \"value\"\ncompare = {{ key = \"k\", a = \"b\", b = \"a\", as = \"difference\" }}\n{printed}"
            ),
        )
    };
    // The difference is 10.0, give or take 0.2, although seeds differ by 70.
    assert_eq!(value("printed = 10.05").0, Verdict::Reproduced);
    let (verdict, reason) = value("printed = 9.0");
    assert_eq!(verdict, Verdict::Contradicted);
    assert!(reason.starts_with("the printed value lies outside our interval; the sign agrees"), "{reason}");
    assert!(value("printed = -9.0").1.contains("the sign is the other one"));
    assert_eq!(value("printed = 9.0\ntolerance = 1.5").0, Verdict::Reproduced);
    assert_eq!(value("printed = 0.01\nunit = \"kbit/s\"").0, Verdict::Reproduced);
}

#[test]
fn trends_and_orderings_are_judged_by_pairs() {
    let up = "kind = \"increasing\"\nover = \"k\"";
    let down = "kind = \"decreasing\"\nover = \"k\"";
    let order = "kind = \"ordering\"\nkey = \"k\"\norder = [\"c\", \"b\", \"a\"]";
    let gain = "kind = \"shrinking-gain\"\nover = \"k\"";
    assert_eq!(verdict(RISING, up).0, Verdict::Reproduced);
    assert_eq!(verdict(RISING, order).0, Verdict::Reproduced);
    assert_eq!(verdict(RISING, gain).0, Verdict::Reproduced);
    assert_eq!(verdict(RISING, down).0, Verdict::Contradicted);
    let [a, b, c] = RISING;
    assert_eq!(verdict([a, c, b], up).0, Verdict::Contradicted);
    assert_eq!(verdict([a, c, b], "kind = \"shape\"\nover = \"k\"\nturns = [\"up\", \"down\"]").0, Verdict::Reproduced);
    // The step from b to c is up and down.
    let (verdict, reason) = verdict([a, b, [110.0, 110.1, 109.9, 110.1]], up);
    assert_eq!(verdict, Verdict::NotTestable);
    assert!(reason.contains("1 of 2: undecided") && reason.contains("k b to c"), "{reason}");
}

#[test]
fn not_worse_by_more_than_a_margin() {
    let [a, ..] = RISING;
    let slightly_less = a.map(|v| v - 0.5);
    let claim = |margin| format!("kind = \"ordering\"\nkey = \"k\"\norder = [\"b\", \"a\"]\n{margin}");
    assert_eq!(verdict([a, slightly_less, a], &claim("")).0, Verdict::Contradicted);
    assert_eq!(verdict([a, slightly_less, a], &claim("margin = 1.0")).0, Verdict::Reproduced);
    assert_eq!(verdict([a, slightly_less, a], &claim("margin = 0.1")).0, Verdict::Contradicted);
}

#[test]
fn signs_bounds_and_equality() {
    let compare = "compare = { key = \"k\", a = \"b\", b = \"a\", as = \"advantage\" }";
    let both = |kind: &str| verdict(RISING, &format!("{kind}\n{compare}")).0;
    assert_eq!(both("kind = \"bound\"\nabove = 5.0\nunit = \"%\""), Verdict::Reproduced);
    assert_eq!(both("kind = \"bound\"\nbelow = 5.0\nunit = \"%\""), Verdict::Contradicted);
    assert_eq!(both("kind = \"equal\"\ntolerance = 5.0\nunit = \"%\""), Verdict::Contradicted);
    assert_eq!(both("kind = \"equal\"\ntolerance = 15.0\nunit = \"%\""), Verdict::Reproduced);
    let signs = "kind = \"signs\"\nover = \"k\"\nsigns = [\"positive\", \"positive\", \"not-positive\"]";
    assert_eq!(verdict(RISING, signs).0, Verdict::Contradicted);
}

#[test]
fn equality_supports_at_least_and_not_greater_but_nothing_strict() {
    let [a, b, _] = RISING;
    let compare = "at = { k = \"a\" }\ncompare = { key = \"k\", a = \"a\", b = \"b\", as = \"difference\" }";
    let order = "kind = \"ordering\"\nkey = \"k\"\norder = [\"a\", \"b\"]";
    let signs = |sign: &str| {
        let over = "over = \"k\"\nvalues = [\"a\"]";
        let compare = compare.split_once('\n').unwrap().1;
        format!("kind = \"signs\"\n{over}\nsigns = [\"{sign}\"]\n{compare}")
    };
    for (claim, equal, b_higher) in [
        (order.to_owned(), Verdict::Contradicted, Verdict::Contradicted),
        (format!("{order}\nmargin = 0"), Verdict::Reproduced, Verdict::Contradicted),
        (signs("positive"), Verdict::Contradicted, Verdict::Contradicted),
        (signs("not-positive"), Verdict::Reproduced, Verdict::Reproduced),
        (format!("kind = \"bound\"\nabove = 0\n{compare}"), Verdict::Contradicted, Verdict::Contradicted),
        (format!("kind = \"bound\"\nbelow = 0\n{compare}"), Verdict::Contradicted, Verdict::Reproduced),
        (format!("kind = \"bound\"\nat-least = 0\n{compare}"), Verdict::Reproduced, Verdict::Contradicted),
        (format!("kind = \"bound\"\nat-most = 0\n{compare}"), Verdict::Reproduced, Verdict::Reproduced),
    ] {
        assert_eq!(verdict([a, a, a], &claim).0, equal, "{claim}");
        assert_eq!(verdict([a, b, a], &claim).0, b_higher, "{claim}");
    }
}

#[test]
fn only_the_full_form_gives_verdicts() {
    let c = claim("kind = \"increasing\"\nover = \"k\"");
    for form in [Form::Quick, Form::Custom] {
        let j = judge_one(&c, &results(form, RISING), &[]);
        assert_eq!(j.verdict, None);
        assert!(to_csv(&[j]).lines().nth(1).unwrap().starts_with("X,none,increasing,"));
    }
}

#[test]
fn what_is_missing_is_not_testable_and_says_so() {
    let (v, reason) = verdict(RISING, "kind = \"value\"\nat = { k = \"z\" }\nprinted = 1");
    assert_eq!(v, Verdict::NotTestable);
    assert!(reason.contains("no complete runs at k z"), "{reason}");
    let c = "[[claim]]\nid = \"X\"\nsays = \"x\"\nkind = \"not-testable\"\nreason = \"a wish\"";
    let c = toml::from_str::<ClaimFile>(c).unwrap().claims.remove(0);
    let j = judge_one(&c, &results(Form::Full, RISING), &[]);
    assert_eq!((j.verdict, j.reason.as_str()), (Some(Verdict::NotTestable), "a wish"));
}

#[test]
fn the_file_has_one_line_for_each_claim() {
    let c = claim("kind = \"increasing\"\nover = \"k\"\nnote = \"two, really\"");
    let csv = to_csv(&judge(&[c], &results(Form::Full, RISING), &[]));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "id,verdict,printed,ours,ci_low,ci_high,note,p,run_low,run_high,run_p,reference,reference_low,reference_high"
    );
    let fields: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(&fields[..3], ["X", "reproduced", "increasing"]);
    assert_eq!(fields[3].split("; ").count(), 2);
    let (_, p) = lines[1].split_once("two, really\",").expect("the note");
    assert_eq!(p.split(',').map(|f| f.split("; ").count()).collect::<Vec<_>>(), [2, 1, 1, 1, 1, 1, 1], "{p}");
}

/// The table of `results` as scenario `s`, and the other points as scenario `t`, which lists its values the other way round.
fn two(points: [[f64; 4]; 3], others: [[f64; 4]; 3]) -> Results {
    let mut both = results(Form::Full, points);
    let mut t = results(Form::Full, others).tables.remove(0);
    t.scenario = "t".into();
    t.rows.reverse();
    both.tables.push(t);
    both
}

#[test]
fn scenarios_are_compared_point_by_point_and_seed_by_seed() {
    let equal = |tolerance: f64| {
        claim(&format!(
            "kind = \"equal\"\nover = \"k\"\ntolerance = {tolerance:?}\nunit = \"%\"\n\
             compare = {{ key = \"scenario\", a = \"s\", b = \"t\", as = \"advantage\" }}"
        ))
    };
    // A tenth less at every point; seeds differ by far more.
    let less = RISING.map(|p| p.map(|v| v - 10.0));
    let of = |c: &Claim, r: &Results| judge_one(c, r, &[]);
    let j = of(&equal(15.0), &two(RISING, less));
    assert_eq!(j.verdict, Some(Verdict::Reproduced), "{}", j.reason);
    let steps: Vec<_> = j.steps.iter().map(|s| (s.what.as_str(), s.ours.mean, s.ours.seeds)).collect();
    // Seeds add 8.75 on average.
    let gain = |v: f64| 100.0 * 10.0 / (v + 8.75 - 10.0);
    assert_eq!(steps.iter().map(|s| (s.0, s.2)).collect::<Vec<_>>(), [("k a", 4), ("k b", 4), ("k c", 4)]);
    for (step, v) in steps.iter().zip([100.0, 110.0, 115.0]) {
        assert!((step.1 - gain(v)).abs() < 1e-9, "{step:?}");
    }
    assert_eq!(of(&equal(1.0), &two(RISING, less)).verdict, Some(Verdict::Contradicted));
    assert_eq!(of(&equal(0.5), &two(RISING, RISING)).verdict, Some(Verdict::Reproduced));
    // What was not run is said.
    let j = of(&equal(1.0), &results(Form::Full, RISING));
    assert_eq!(
        (j.verdict, j.reason.as_str()),
        (Some(Verdict::NotTestable), "scenario `t` has no complete runs at any point")
    );
}

#[test]
fn printed_numbers_are_for_machines() {
    let compare = "over = \"k\"\nvalues = [\"b\", \"c\"]\n\
                   compare = { key = \"k\", a = \"b\", b = \"a\", as = \"advantage\" }\nunit = \"%\"";
    let printed = |text: &str| {
        let csv = to_csv(&judge(&[claim(text)], &results(Form::Full, RISING), &[]));
        let fields: Vec<String> = csv.lines().nth(1).unwrap().split(',').map(str::to_owned).collect();
        (fields[2].clone(), fields.iter().any(|f| f.contains("in %: ")))
    };
    let value = format!("kind = \"value\"\nprinted = [-4.42, 1234567.5]\n{compare}");
    assert_eq!(printed(&value), ("-4.42; 1234567.5".to_owned(), true));
    let bound = "kind = \"bound\"\nabove = -4.5\nat = { k = \"a\" }";
    assert_eq!(printed(bound).0, "above -4.5");
    let equal = format!("kind = \"equal\"\ntolerance = 2.5\n{compare}");
    assert_eq!(printed(&equal).0, "0 +/- 2.5");
    let order = "kind = \"ordering\"\nkey = \"k\"\norder = [\"c\", \"b\"]\nmargin = 1.5";
    assert_eq!(printed(order).0, "c > b -1.5");
}
