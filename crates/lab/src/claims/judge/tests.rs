use super::*;
use crate::claims::ClaimFile;
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
    let j = judge_one(&claim(text), &results(Form::Full, points));
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
fn only_the_full_form_gives_verdicts() {
    let c = claim("kind = \"increasing\"\nover = \"k\"");
    for form in [Form::Quick, Form::Custom] {
        let j = judge_one(&c, &results(form, RISING));
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
    let j = judge_one(&c, &results(Form::Full, RISING));
    assert_eq!((j.verdict, j.reason.as_str()), (Some(Verdict::NotTestable), "a wish"));
}

#[test]
fn the_file_has_one_line_for_each_claim() {
    let c = claim("kind = \"increasing\"\nover = \"k\"\nnote = \"two, really\"");
    let csv = to_csv(&judge(&[c], &results(Form::Full, RISING)));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "id,verdict,printed,ours,ci_low,ci_high,note");
    let fields: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(&fields[..3], ["X", "reproduced", "increasing"]);
    assert_eq!(fields[3].split("; ").count(), 2);
    assert!(lines[1].ends_with("two, really\""));
}
