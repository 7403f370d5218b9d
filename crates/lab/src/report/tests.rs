use super::*;
use crate::claims::{ClaimFile, Verdict};
use crate::figures::FigureFile;
use crate::results::{Form, Metric, Row, Table};
use anabranch_base::RandomStream;

/// Results of the shape of `rtx-csi`, made up: nothing of them is measured.
pub(crate) fn made_up(form: Form, seeds: u64, loss: &[&str]) -> Results {
    let buffers = [("16KB", 1.1), ("32KB", 2.2), ("64KB", 4.3), ("128KB", 7.0), ("256KB", 8.5)];
    let metric = |name: &str, unit: &str| Metric { name: name.into(), unit: unit.into() };
    let mut draw = RandomStream::named(1, "made-up");
    let mut e1 = Table {
        scenario: "e1".into(),
        keys: vec!["rbuf".into(), "background".into()],
        metrics: vec![metric("main.goodput", "bit/s"), metric("main.delay", "s")],
        rows: Vec::new(),
    };
    for (i, (rbuf, rate)) in buffers.iter().enumerate() {
        for (background, share) in [("without", 1.0), ("with", [0.99, 0.98, 0.95, 0.75, 0.5][i])] {
            for seed in 1..=seeds {
                let noise = 1.0 + 0.01 * (draw.unit() - 0.5);
                let values = vec![Some(rate * 1e6 * share * noise), Some(0.06 / share.powi(2) * noise)];
                let point = vec![(*rbuf).to_owned(), background.to_owned()];
                e1.rows.push(Row { point, seed, values, fingerprint: seed });
            }
        }
    }
    // What the paper does not state makes background cost more or less.
    let mut segments = Table { scenario: "e1-segments".into(), rows: Vec::new(), ..e1.clone() };
    segments.keys.insert(0, "segment".into());
    for (segment, less) in [("536", 0.2), ("1000", 0.5), ("1300", 0.9), ("1380", 1.0), ("1460", 1.1)] {
        for row in &e1.rows {
            let without = e1.rows.iter().find(|r| r.seed == row.seed && r.point[0] == row.point[0]);
            let base = without.and_then(|r| r.values[0]);
            let rate = row.values[0].zip(base).map(|(v, base)| base - less * (base - v));
            let point = [vec![segment.to_owned()], row.point.clone()].concat();
            segments.rows.push(Row { point, values: vec![rate, row.values[1]], ..row.clone() });
        }
    }
    let stages = ["cwnd", "ssthresh", "timeouts", "age", "draw"];
    let case = |name: &str, draw: &mut RandomStream| {
        let mut metrics = vec![metric("main.goodput", "bit/s"), metric("main.delay", "s")];
        metrics.extend(stages.iter().map(|s| metric(&format!("main.stage-{s}"), "")));
        let mut rows = Vec::new();
        let policies = ["rtx_same", "rtx_asap", "rtx_loss_rate", "rtx_cwnd", "rtx_ssthresh", "rtx_csi"];
        for (rbuf, rate) in buffers {
            for (l, loss) in loss.iter().enumerate() {
                for policy in policies {
                    for seed in 1..=seeds {
                        let gain = 1.0 - 0.05 * f64::from(policy == "rtx_ssthresh");
                        let rate = rate * 1e6 * gain / (1.0 + 0.4 * l as f64) * (0.98 + 0.04 * draw.unit());
                        let mut values = vec![Some(rate), Some(0.08)];
                        let csi = policy == "rtx_csi";
                        values.extend([0.9, 0.06, 0.02, 0.015, 0.005].map(|v| csi.then_some(v)));
                        let point = vec![rbuf.to_owned(), (*loss).to_owned(), policy.to_owned()];
                        rows.push(Row { point, seed, values, fingerprint: seed });
                    }
                }
            }
        }
        Table { scenario: name.into(), keys: vec!["rbuf".into(), "loss".into(), "policy".into()], metrics, rows }
    };
    let cases = ["e2-case1", "e2-case2"].map(|n| case(n, &mut draw));
    Results { experiment: "rtx-csi".into(), form, tables: [vec![e1, segments], cases.into()].concat() }
}

/// The claims and figures of `rtx-csi`, which are real.
pub(crate) fn about() -> About {
    let mut claims: ClaimFile = toml::from_str(include_str!("../../../../experiments/rtx-csi/claims.toml")).unwrap();
    let figures: FigureFile = toml::from_str(include_str!("../../../../experiments/rtx-csi/figures.toml")).unwrap();
    claims.claims.iter_mut().for_each(|c| claims.defaults.fill(c));
    About {
        title: "Made-up numbers".into(),
        question: "Does the report work?".into(),
        source: "Some One <some@one>".into(),
        notes: vec!["Nothing here is measured.".into()],
        claims: claims.claims,
        figures: figures.figures,
        references: Vec::new(),
        overviews: Vec::new(),
        command: "anabranch lab run rtx-csi".into(),
        version: "0.0.0".into(),
        settings: "seeds = 5".into(),
    }
}

const LOSS: [&str; 10] = ["1%", "2%", "3%", "4%", "5%", "6%", "7%", "8%", "9%", "10%"];

#[test]
fn everything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    // For looking at it: ANABRANCH_KEEP=folder cargo test.
    let dir = std::env::var_os("ANABRANCH_KEEP").map_or(folder.path().to_path_buf(), PathBuf::from);
    let written = write(&dir, &about(), &made_up(Form::Full, 5, &LOSS)).unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let csv = read("claims.csv");
    assert_eq!(csv.lines().count(), 33);
    assert!(csv.lines().skip(1).all(|l| Verdict::ALL.iter().any(|v| v.word() == l.split(',').nth(1).unwrap())));
    let verdicts = |v| written.judgements.iter().filter(|j| j.verdict == Some(v)).count();
    assert!(verdicts(Verdict::Reproduced) > 0 && verdicts(Verdict::Contradicted) > 0);
    let c04 = written.judgements.iter().find(|j| j.id == "RTXCSI-C04").unwrap();
    assert_eq!(c04.verdict, Some(Verdict::Conditional), "{}", c04.reason);
    let html = read("report.html");
    for id in written.judgements.iter().map(|j| &j.id) {
        assert!(html.contains(id.as_str()));
    }
    assert!(html.contains("so?") && html.contains("yes"));
    assert!(html.contains("Full form, 5 paired seeds") && html.contains("Some One &lt;some@one&gt;"));
    for name in ["e1-impact-throughput", "case1-advantage", "case2-stages", "case1-loss-rbuf-16KB"] {
        assert!(read(&format!("figures/{name}.svg")).starts_with("<svg"));
    }
    assert!(
        read("figures/case1-advantage.csv")
            .lines()
            .any(|l| l.contains("CWND over SSTHRESH,128KB,") && l.contains(",56.39,%"))
    );
}

#[test]
fn what_others_measured_stands_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let mut about = about();
    let mut other: crate::reference::Reference =
        toml::from_str("name = \"ns-2\"\nfile = \"ns2.csv\"\nnote = \"By hand\"").unwrap();
    for (background, value) in [("without", 2e6), ("with", 1e6)] {
        let at = [("rbuf", "16KB"), ("background", background)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let (scenario, metric) = ("e1".into(), "main.goodput".into());
        other.rows.push(crate::reference::Row { scenario, metric, at, value, interval: None });
    }
    about.references.push(other);
    write(folder.path(), &about, &made_up(Form::Full, 5, &LOSS)).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let html = read("report.html");
    for part in ["measured elsewhere", "ns-2:\u{a0}0.5", "Measured elsewhere by ns-2 (ns2.csv): By hand."] {
        assert!(html.contains(part), "{part}");
    }
    let claims = read("claims.csv");
    let c01 = claims.lines().find(|l| l.starts_with("RTXCSI-C01")).unwrap();
    assert!(c01.ends_with(",ns-2: 0.5,,"), "{c01}");
    assert!(claims.lines().find(|l| l.starts_with("RTXCSI-C02")).unwrap().ends_with(",,,"));
    // Orderings work it out from both sides.
    assert!(claims.lines().find(|l| l.starts_with("RTXCSI-C09")).unwrap().ends_with(",ns-2: 100; ; ; ; ,,"));
    assert!(
        read("figures/e1-throughput.csv").starts_with("panel,series,x,value,ci_low,ci_high,seeds,printed,unit,ns-2,")
    );
    assert!(
        read("figures/case1-throughput.csv").starts_with("panel,series,x,value,ci_low,ci_high,seeds,printed,unit\n")
    );
}

#[test]
fn a_figure_of_a_scenario_that_was_not_run_is_left_out_and_named() {
    let whole = made_up(Form::Custom, 2, &LOSS[..2]);
    let about = about();
    for gone in whole.tables.iter().map(|t| &t.scenario) {
        let folder = tempfile::tempdir().unwrap();
        let mut some = whole.clone();
        some.tables.retain(|t| t.scenario != *gone);
        let written = write(folder.path(), &about, &some).unwrap();
        assert!(written.page.exists());
        for f in &about.figures {
            let drawn = written.figures.contains(&folder.path().join(format!("figures/{}.csv", f.name)));
            let line = format!("figure `{}` is left out: scenario `{gone}` has no results", f.name);
            let compared = f.compare.iter().chain(f.lines.iter().filter_map(|l| l.compare.as_ref()));
            let needs = f.scenario.as_ref() == Some(gone)
                || f.lines.iter().any(|l| l.scenario.as_ref() == Some(gone))
                || compared.filter_map(|c| c.scenarios()).flatten().any(|name| name == gone);
            assert_eq!(
                (drawn, written.warnings.contains(&line)),
                (!needs, needs),
                "{}: {:?}",
                f.name,
                written.warnings
            );
        }
    }
}

#[test]
fn a_quick_form_says_so_and_gives_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = made_up(Form::Quick, 3, &LOSS[..3]);
    for t in &mut results.tables {
        t.rows.retain(|r| !r.point.iter().any(|v| ["32KB", "128KB"].contains(&v.as_str())));
    }
    let written = write(folder.path(), &about(), &results).unwrap();
    assert!(written.judgements.iter().all(|j| j.verdict.is_none()));
    // What can be shown is shown, beside what is printed.
    let c06 = written.judgements.iter().find(|j| j.id == "RTXCSI-C06").unwrap();
    assert_eq!(c06.steps.iter().map(|s| s.what.as_str()).collect::<Vec<_>>(), ["rbuf 16KB", "rbuf 64KB", "rbuf 256KB"]);
    // One printed value for each of ours, and none for points that were not run.
    assert_eq!(c06.printed, "0.05019; 0.1235; 0.3037");
    let claims = std::fs::read_to_string(folder.path().join("claims.csv")).unwrap();
    let row = |id: &str| claims.lines().find(|l| l.starts_with(id)).unwrap().to_owned();
    assert!(row("RTXCSI-C06").starts_with("RTXCSI-C06,none,0.05019; 0.1235; 0.3037,"), "{}", row("RTXCSI-C06"));
    assert!(row("RTXCSI-C11").starts_with("RTXCSI-C11,none,,,,,"), "{}", row("RTXCSI-C11"));
    let c32 = written.judgements.iter().find(|j| j.id == "RTXCSI-C32").unwrap();
    assert_eq!(c32.printed, "not > 0; not > 0; > 0");
    let csv = std::fs::read_to_string(folder.path().join("figures/e1-impact-throughput.csv")).unwrap();
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.lines().nth(3).is_some_and(|l| l.contains("256KB") && l.contains(",0.5238,")), "{csv}");
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(html.contains("Quick form: 3 seeds") && html.contains("It gives no verdicts."));
    assert!(!html.contains("claims reproduced"));
    // Nor step by step, nor by numbers that only hold in the full form.
    let (_, steps) = html.split_once("Claims of several steps").unwrap();
    let steps = steps.split_once("</table>").unwrap().0;
    assert!(steps.contains("RTXCSI-C06") && !steps.contains("so?"), "{steps}");
    assert!(!["✓ yes", "✗ no", "undecided"].iter().any(|w| steps.contains(w)), "{steps}");
    assert!(!html.contains("ten loss rates"));
}

#[test]
fn a_folder_that_cannot_be_written_leaves_the_rest_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("figures"), "not a folder").unwrap();
    std::fs::write(folder.path().join("report.html"), "old").unwrap();
    let error = write(folder.path(), &about(), &made_up(Form::Quick, 2, &["1%"])).unwrap_err().to_string();
    assert!(error.contains("cannot make the folder") && error.contains("figures"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("report.html")).unwrap(), "old");
}
