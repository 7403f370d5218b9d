use super::*;
use crate::claims::Shape;
use crate::document::Origin;
use crate::results::{Metric, Row as Run};
use crate::scenario::ScenarioError;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|s| (*s).to_owned()).collect()
}

fn reference(more: &str) -> Reference {
    toml::from_str(&format!("name = \"ns-2\"\nfile = \"ns2.csv\"\n{more}")).expect("a reference")
}

/// What the file comes to for a scenario `s` with keys `rbuf` and `policy` and a metric in bit/s.
fn made(more: &str, text: &str) -> Result<Reference, String> {
    let (rbuf, policy) = (words(&["16KB", "32KB"]), words(&["a", "b"]));
    let shape = Shape {
        name: "s",
        keys: vec![("rbuf", &rbuf), ("policy", &policy)],
        metrics: vec!["main.goodput", "main.delay"],
        series: vec![],
        defined: vec![],
    };
    let at = Origin::of_file("claims.toml");
    let bare = Reference { text: text.to_owned(), ..reference(more) };
    read(bare, &at, "ns2.csv", &[shape]).map_err(|p| ScenarioError::from(p).to_string())
}

const METRIC: &str = "metric = \"main.goodput\"\nunit = \"Mbit/s\"";
const FILE: &str = "# by hand\nrbuf,policy,value,low,high\n16KB,a,2.0,1.9,2.1\n16KB,b,1.0,,\n\n32KB,a,4.0,3.9,4.1\n";

/// The scenario's runs: every point of both keys.
fn table() -> Table {
    let run = |rbuf: &str, policy: &str| Run {
        point: words(&[rbuf, policy]),
        seed: 1,
        values: vec![Some(1.0)],
        fingerprint: 0,
    };
    let rows = ["16KB", "32KB"].iter().flat_map(|r| ["a", "b"].map(|p| run(r, p))).collect();
    let metrics = vec![Metric { name: "main.goodput".into(), unit: "bit/s".into() }];
    Table { scenario: "s".into(), keys: words(&["rbuf", "policy"]), metrics, rows }
}

fn at(pairs: &[(&str, &str)]) -> Point {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn values_are_found_compared_and_averaged() {
    let r = made(METRIC, FILE).expect("fine");
    let q = |average: &'static [String], compare: Option<&'static Compare>| Quantity {
        average,
        compare,
        ..Quantity::of("main.goodput")
    };
    let one = r.quantity(q(&[], None), &at(&[("rbuf", "16KB"), ("policy", "a")]), &table()).expect("a value");
    assert_eq!((one.name.as_str(), one.value, one.interval), ("ns-2", 2e6, Some((1.9e6, 2.1e6))));
    assert_eq!(one.scaled(1e-6).value, 2.0);
    assert!(r.quantity(q(&[], None), &at(&[("rbuf", "32KB"), ("policy", "b")]), &table()).is_none());
    let compare = |how| Compare { key: "policy".into(), a: "a".into(), b: "b".into(), metric_of_b: None, how };
    for (how, expected) in [(How::Advantage, 1.0), (How::Impact, 0.5), (How::Difference, 1e6), (How::Ratio, 2.0)] {
        let c: &'static Compare = Box::leak(Box::new(compare(how)));
        let there = r.quantity(q(&[], Some(c)), &at(&[("rbuf", "16KB")]), &table()).expect("both sides");
        assert_eq!((there.value, there.interval), (expected, None), "{how:?}");
        // One side is missing at 32KB.
        assert!(r.quantity(q(&[], Some(c)), &at(&[("rbuf", "32KB")]), &table()).is_none());
    }
    // A mean needs all that ours is over.
    let average: &'static [String] = Box::leak(words(&["policy"]).into_boxed_slice());
    assert_eq!(r.quantity(q(average, None), &at(&[("rbuf", "16KB")]), &table()).expect("both").value, 1.5e6);
    assert!(r.quantity(q(average, None), &at(&[("rbuf", "32KB")]), &table()).is_none());
    // A file may have the mean or the comparison itself, and then no column for its key.
    let of_means = made(&format!("{METRIC}\naverage = [\"policy\"]"), "rbuf,value\n16KB,3\n").expect("fine");
    assert_eq!(of_means.quantity(q(average, None), &at(&[("rbuf", "16KB")]), &table()).expect("one").value, 3e6);
    assert!(of_means.quantity(q(&[], None), &at(&[("rbuf", "16KB"), ("policy", "a")]), &table()).is_none());
    let gain = "metric = \"main.goodput\"\nunit = \"%\"\n\
                compare = { key = \"policy\", a = \"a\", b = \"b\", as = \"advantage\" }";
    let gain = made(gain, "rbuf,value,low,high\n16KB,12,10,14\n").expect("fine");
    let c: &'static Compare = Box::leak(Box::new(compare(How::Advantage)));
    let there = gain.quantity(q(&[], Some(c)), &at(&[("rbuf", "16KB")]), &table()).expect("one");
    assert_eq!((there.value, there.interval), (0.12, Some((0.1, 0.14))));
}

#[test]
fn a_mistake_is_one_line_with_its_file_and_line() {
    let head = "rbuf,policy,value\n";
    let row = |row: &str| format!("{head}16KB,a,1\n{row}\n");
    for (more, text, said) in [
        (METRIC, "", "ns2.csv: it is empty: the first line names columns"),
        (METRIC, head, "ns2.csv: it has no values below its columns"),
        (METRIC, "rbuf,police,value\n", "ns2.csv:1: unknown column `police`; did you mean `policy`?"),
        (METRIC, "# a\nrbuf,rbuf,value\n", "ns2.csv:2: there are two columns `rbuf`"),
        (METRIC, "rbuf,policy\n", "ns2.csv:1: the column `value` is missing"),
        (METRIC, "rbuf,policy,value,low\n", "ns2.csv:1: `low` and `high` go together"),
        ("", head, "ns2.csv:1: `metric` must be a column, or a key of [[reference]]"),
        (METRIC, "metric,rbuf,policy,value\n", "ns2.csv:1: `metric` is said by [[reference]] already"),
        (METRIC, &row("16KB,b"), "ns2.csv:3: 2 fields, not 3 as in the first line"),
        (METRIC, &row("16KB,b,fast"), "ns2.csv:3: `value`: needs a number, not `fast`"),
        (METRIC, &row("16KB,b,inf"), "ns2.csv:3: `value`: needs a number, not `inf`"),
        (METRIC, &row("17KB,b,1"), "ns2.csv:3: scenario `s` has no `rbuf` of 17KB; it has 16KB, 32KB"),
        (METRIC, &row("16KB,a,2"), "ns2.csv:3: there are two values for this point"),
        (METRIC, "rbuf,value\n16KB,1\n", "ns2.csv:2: nothing is said of `policy`, which scenario `s` sweeps"),
        (METRIC, "rbuf,policy,value,low,high\n16KB,a,1,2,3\n", "ns2.csv:2: `value` must lie between `low` and `high`"),
        ("metric = \"main.jitter\"", &row("16KB,b,1"), "ns2.csv:2: scenario `s` does not measure `main.jitter`"),
        ("metric = \"main.goodput\"\nunit = \"ms\"", &row("16KB,b,1"), "ns2.csv:2: `unit`: `main.goodput` is in bit/s"),
        (&format!("{METRIC}\nscenario = \"t\""), &row("16KB,b,1"), "ns2.csv:2: there is no scenario `t`"),
        (
            &format!("{METRIC}\naverage = [\"policy\"]"),
            &row("16KB,b,1"),
            "ns2.csv:2: `policy` is averaged or compared: it has no column",
        ),
    ] {
        let wrong = made(more, text).expect_err(said);
        assert!(wrong.starts_with(said) && !wrong.contains('\n'), "{wrong} is not {said}");
    }
}
