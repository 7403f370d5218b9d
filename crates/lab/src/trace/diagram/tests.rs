use super::*;
use std::io::BufReader;

fn log() -> Vec<Line> {
    let dir = tempfile::tempdir().unwrap();
    crate::trace::tests::run(Some(dir.path()));
    // For looking at it: ANABRANCH_KEEP=folder cargo test.
    if let Some(keep) = std::env::var_os("ANABRANCH_KEEP") {
        std::fs::copy(dir.path().join("run.jsonl"), std::path::Path::new(&keep).join("run.jsonl")).unwrap();
    }
    read(BufReader::new(std::fs::File::open(dir.path().join("run.jsonl")).unwrap())).unwrap()
}

#[test]
fn a_run_becomes_a_page_and_a_drawing() {
    let lines = log();
    let diagram = lay_out(&lines, &Options::default()).unwrap();
    let html = diagram.page("0.0.0").to_html();
    for word in [
        "path 1: sent",
        "path 2: sent again",
        "lost: random loss",
        "path 1: ssthresh",
        "upper.forward (path 1)",
        "reported missing",
    ] {
        assert!(html.contains(word), "{word}");
    }
    let svg = diagram.drawing().standalone();
    assert!(svg.contains("TSNs over time") && svg.contains("Congestion windows") && !svg.contains("no data"));
    // The whole run costs no more than what can be seen of it.
    assert!(html.len() < 1_500_000, "{}", html.len());
}

#[test]
fn a_part_of_the_time_shows_that_part() {
    let lines = log();
    let all = lay_out(&lines, &Options::default()).unwrap();
    let part = lay_out(&lines, &Options { from: 2.0, to: 2.5, ..Options::default() }).unwrap();
    assert!(part.drawing().standalone().len() < all.drawing().standalone().len() / 2);
    let nothing = lay_out(&lines, &Options { from: 70.0, ..Options::default() }).unwrap_err().to_string();
    assert!(nothing.contains("choose other times with --from and --to"), "{nothing}");
}

#[test]
fn mistakes_are_reported() {
    let wrong = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        wrong("{\"event\":\"run\",\"scenario\":\"\",\"point\":\"\",\"seed\":1,\"flows\":[]}\nx")
            .starts_with("line 2 is not of an event log")
    );
    let lines = log();
    let error = lay_out(&lines, &Options { flow: Some("tcp".into()), ..Options::default() }).unwrap_err();
    assert_eq!(error.to_string(), "no flow `tcp` of SCTP or TCP sent data here; main did");
    assert!(
        lay_out(&[], &Options::default()).unwrap_err().to_string().contains("no flow of SCTP or TCP sent anything")
    );
}
