//! The keys that docs/COMING-FROM-NS2.md names are keys.

use anabranch_lab::scenario::Scenario;

/// Is `line` a key of a flow over `transport`?
fn reads(transport: &str, line: &str) -> Result<(), String> {
    let text = format!(
        "name = \"one\"\nduration = \"1s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"disjoint-paths\"\nrate = \
         \"1mbit\"\npath1 = {{}}\npath2 = {{}}\n[[flow]]\nname = \"main\"\n{transport}\n{line}\n"
    );
    Scenario::parse("one.toml", &text, &|_| Err(String::new())).map(drop).map_err(|e| e.to_string())
}

#[test]
fn every_key_of_the_table_of_variables_is_taken() {
    let page = include_str!("../../../docs/COMING-FROM-NS2.md");
    let table = page.split("## Variables").nth(1).and_then(|t| t.split("\n## ").next()).expect("the table");
    let mut seen = 0;
    for row in table.lines().filter(|l| l.starts_with("| `")) {
        let here = row.trim_end_matches('|').rsplit('|').next().expect("a cell");
        for line in here.split('`').skip(1).step_by(2) {
            let rest = if line.contains("cbr") { "rate = \"1mbit\"" } else { "peak = \"1mbit\"" };
            let line = match line.strip_suffix("... }") {
                Some(kind) => format!("traffic = {kind}{rest}, size = 210 }}"),
                None => line.to_owned(),
            };
            // Keys of links, and names alone, are no settings of a flow.
            if !line.contains(" = ") || line.starts_with("limit") || line.starts_with("loss-at") {
                continue;
            }
            let line = if line.starts_with("transport") { String::new() } else { line };
            let ways = ["transport = \"sctp\"", "transport = \"tcp\""].map(|t| reads(t, &line));
            assert!(ways.iter().any(Result::is_ok), "{row}\n{line}: {ways:?}");
            seen += 1;
        }
    }
    assert!(seen > 12, "{seen}");
}
