use super::super::ClaimFile;
use super::*;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|s| (*s).to_owned()).collect()
}

fn complaint(text: &str) -> String {
    let text = format!("[[claim]]\nid = \"X-C01\"\nsays = \"x\"\n{text}");
    let claim = match toml::from_str::<ClaimFile>(&text) {
        Ok(mut file) => file.claims.remove(0),
        Err(e) => return e.message().to_owned(),
    };
    let (k, l) = (words(&["a", "b"]), words(&["1 %", "2 %"]));
    let shape =
        Shape { name: "s", keys: vec![("k", &k), ("l", &l)], metrics: vec!["m"], series: vec![], defined: vec![] };
    claim.check(&[shape]).err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_claim_that_fits_has_no_complaint() {
    assert_eq!(complaint("kind = \"increasing\"\nmetric = \"m\"\nover = \"k\"\naverage = [\"l\"]"), "");
    assert_eq!(complaint("kind = \"not-testable\"\nreason = \"r\""), "");
}

#[test]
fn each_mistake_has_its_line() {
    let base = "metric = \"m\"\nat = { l = \"1 %\" }\n";
    for (text, expected) in [
        ("kind = \"increasing\"\nover = \"k\"\ncolour = 1", "unknown field `colour`"),
        (
            "kind = \"increasing\"\nover = \"k\"\norder = [\"a\", \"b\"]",
            "`order` says nothing in a claim of kind `increasing`",
        ),
        ("kind = \"increasing\"", "a claim of kind `increasing` needs `over`"),
        ("kind = \"value\"\nover = \"k\"\nvalues = [\"a\", \"b\"]\nprinted = [1, 2, 3]", "`printed` needs 2 entries"),
        ("kind = \"value\"\nover = \"k\"\nprinted = [1, 2]", "`values` must say which"),
        (
            "kind = \"shape\"\nover = \"k\"\nvalues = [\"a\", \"b\"]\nturns = [\"up\", \"up\"]",
            "one entry for each of 1 steps",
        ),
        ("kind = \"value\"\nprinted = 1", "it says nothing about `k`"),
        ("kind = \"value\"\naverage = [\"q\"]\nprinted = 1", "does not sweep `q`; it sweeps k, l"),
        ("kind = \"ordering\"\nkey = \"k\"\norder = [\"a\", \"c\"]", "has no `k` of c; it has a, b"),
        ("kind = \"value\"\nscenario = \"t\"\naverage = [\"k\"]\nprinted = 1", "there is no scenario `t`"),
        ("kind = \"value\"\naverage = [\"k\"]\nprinted = 1\nprinted-runs = 0", "`printed-runs` is 1 or more"),
        (
            "kind = \"increasing\"\nover = \"k\"\nprinted-runs = 1",
            "`printed-runs` says nothing in a claim of kind `increasing`",
        ),
        ("kind = \"value\"\naverage = [\"k\"]\nprinted = 1\nconditional = { on = \"x\" }", "needs the sweep `key`"),
        (
            "kind = \"value\"\naverage = [\"k\"]\nprinted = 1\nconditional = { on = \"x\", scenario = \"t\", key = \"l\" }",
            "`conditional`: there is no scenario `t`",
        ),
        (
            "kind = \"value\"\naverage = [\"k\"]\nprinted = 1\nconditional = { on = \"x\", key = \"q\" }",
            "`q` needs two values or more in scenario `s`",
        ),
        ("kind = \"bound\"\naverage = [\"k\"]\nabove = 1\nany = [{ below = 0 }]", "`any`: each is one bound"),
        (
            "kind = \"bound\"\naverage = [\"k\"]\nabove = 1\nany = [{ average = [], over = \"k\" }]",
            "at the same places",
        ),
        ("kind = \"bound\"\naverage = [\"k\"]\nabove = 1\nany = [{ metric = \"q\" }]", "does not measure `q`"),
        ("kind = \"bound\"\naverage = [\"k\"]\nabove = 1\nany = [{ colour = 1 }]", "`any`: unknown field `colour`"),
        ("kind = \"increasing\"\nover = \"k\"\nany = [{ above = 1 }]", "`any` says nothing in a claim of kind"),
        (
            "kind = \"bound\"\nabove = 1\ncompare = { key = \"k\", a = \"a\", b = \"b\", metric-of-b = \"q\", as = \"difference\" }",
            "does not measure `q`",
        ),
        ("kind = \"bound\"\naverage = [\"k\"]", "needs `above`, `below`, `at-least` or `at-most`"),
        ("kind = \"bound\"\naverage = [\"k\"]\nabove = nan", "must be finite"),
    ] {
        let said = complaint(&format!("{base}{text}"));
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(complaint("kind = \"value\"\nmetric = \"z\"\nprinted = 1").contains("does not measure `z`"));
}

#[test]
fn formulas_inequalities_variations_and_percentiles() {
    let base = "metric = \"m\"\n";
    let formula = "kind = \"formula\"\nover = \"l\"\naverage = [\"k\"]\ntolerance = 5\n";
    let variation = "kind = \"variation\"\nover = \"l\"\nat = { k = \"a\" }\n";
    let value = "kind = \"value\"\naverage = [\"k\"]\nat = { l = \"1 %\" }\nprinted = 1\n";
    for fine in [
        format!("{formula}formula = \"x / sqrt(l)\"\nconstants = {{ x = \"10mbit\" }}"),
        format!("{variation}below = 3\nunit = \"%\""),
        format!("{value}percentile = 99.9"),
        format!("{value}median-of-maxima = true"),
    ] {
        assert_eq!(complaint(&format!("{base}{fine}")), "", "{fine}");
    }
    for (text, expected) in [
        (format!("{formula}formula = \"x / sqrt(l)\""), "`formula`: it knows no `x`; it knows l, sqrt"),
        (format!("{formula}formula = \"1 +\""), "`formula`: it needs a number, a name or `(`, not the end"),
        (format!("{formula}formula = \"k\""), "knows no `k`"),
        (formula.to_owned(), "a claim of kind `formula` needs `formula`"),
        (
            "kind = \"formula\"\nover = \"k\"\nat = { l = \"1 %\" }\ntolerance = 5\nformula = \"2 * k\"".to_owned(),
            "`k` of a is no number",
        ),
        (format!("{formula}formula = \"x\"\nconstants = {{ x = \"fast\" }}"), "`constants`: `x` needs a number"),
        (format!("{formula}formula = \"l\"\nconstants = {{ l = 3 }}"), "sweeps `l` itself"),
        (variation.to_owned(), "a claim of kind `variation` needs `above`"),
        (format!("{variation}below = 3\nunit = \"ms\""), "`a variation` has no unit, which `ms` cannot show"),
        ("kind = \"inequality\"\naverage = [\"k\", \"l\"]\nthan = \"z\"".to_owned(), "does not measure `z`"),
        ("kind = \"inequality\"\naverage = [\"k\", \"l\"]".to_owned(), "needs `than`"),
        (
            "kind = \"inequality\"\naverage = [\"k\", \"l\"]\nthan = \"m\"\nfactor = 0".to_owned(),
            "`factor` is a number above 0",
        ),
        (format!("{value}percentile = 100"), "`percentile` lies between 0 and 100"),
        (format!("{value}percentile = 50\nmedian-of-maxima = true"), "`percentile` says nothing"),
        (format!("{value}percentile = 50\nprinted-runs = 1"), "`printed-runs` says nothing"),
    ] {
        let said = complaint(&format!("{base}{text}"));
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn scenarios_that_are_compared_must_be_there_and_sweep_the_same() {
    let (k, l) = (words(&["a"]), words(&["1 %"]));
    let shape = |name, key| Shape {
        name,
        keys: vec![(key, &k[..]), ("l", &l)],
        metrics: vec!["m"],
        series: vec![],
        defined: vec![],
    };
    let shapes = [shape("s", "k"), shape("t", "k"), shape("other", "q")];
    let complaint = |b: &str, more: &str| {
        let text = format!(
            "[[claim]]\nid = \"X\"\nsays = \"x\"\nkind = \"equal\"\nmetric = \"m\"\ntolerance = 1\naverage = [\"l\"]\n\
             compare = {{ key = \"scenario\", a = \"s\", b = \"{b}\", as = \"advantage\" }}\n{more}"
        );
        let claim = toml::from_str::<ClaimFile>(&text).unwrap().claims.remove(0);
        claim.check(&shapes).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(complaint("t", "over = \"k\""), "");
    for (b, more, expected) in [
        ("u", "over = \"k\"", "there is no scenario `u`"),
        ("s", "over = \"k\"", "compares scenario `s` with itself"),
        ("other", "over = \"k\"", "scenario `s` sweeps `k` and `other` does not"),
        ("t", "", "it says nothing about `k`"),
        ("t", "over = \"k\"\nscenario = \"s\"", "`scenario` says nothing beside a comparison of scenarios"),
    ] {
        let said = complaint(b, more);
        assert!(said.contains(expected), "{b} {more}: {said}");
    }
}

#[test]
fn the_claims_of_rtx_csi_are_all_there_and_fit_its_scenarios() {
    let all = include_str!("../../../../../experiments/claims.csv");
    let ids: Vec<&str> = all.lines().filter_map(|l| l.split(',').next()).filter(|i| i.starts_with("RTXCSI")).collect();
    let file: ClaimFile = toml::from_str(include_str!("../../../../../experiments/rtx-csi/claims.toml")).unwrap();
    assert_eq!(file.claims.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ids);

    let rbuf = words(&["16KB", "32KB", "64KB", "128KB", "256KB"]);
    let background = words(&["without", "with"]);
    let loss: Vec<String> = (1..=10).map(|l| format!("{l}%")).collect();
    let policy = words(&["rtx_same", "rtx_asap", "rtx_loss_rate", "rtx_cwnd", "rtx_ssthresh", "rtx_csi"]);
    let metrics = vec!["main.goodput", "main.delay"];
    let case = |name| Shape {
        name,
        keys: vec![("rbuf", &rbuf[..]), ("loss", &loss), ("policy", &policy)],
        metrics: metrics.clone(),
        series: vec![],
        defined: vec![],
    };
    let e1 = Shape {
        name: "e1",
        keys: vec![("rbuf", &rbuf), ("background", &background)],
        metrics: metrics.clone(),
        series: vec![],
        defined: vec![],
    };
    let segment = words(&["536", "1000", "1300", "1380", "1460"]);
    let mut segments = Shape { name: "e1-segments", ..e1.clone() };
    segments.keys.push(("segment", &segment));
    let shapes = [e1, segments, case("e2-case1"), case("e2-case2")];
    assert_eq!(file.defaults.printed_runs, Some(1));
    for claim in &file.claims {
        claim.check(&shapes).unwrap();
    }
}
