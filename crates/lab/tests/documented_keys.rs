//! Every key that the reader of scenarios knows has its place in the documentation.
//!
//! What it knows it says itself: a key that means nothing is answered with those that do.

use anabranch_lab::scenario::Scenario;
use std::collections::BTreeSet;

/// A key that is near no other.
const NONE: &str = "qqqqqqqqqqqq";

/// What the reader puts beside the name of a file: no keys of a user's.
const FROM_FILES: [&str; 2] = ["rows", "text"];

/// The keys that are named in answer to a scenario with this text in place of its parts.
fn known(text: &str) -> Vec<String> {
    let files = |name: &str| match name {
        "frames" => Ok("I 100\n".to_owned()),
        other => Err(format!("cannot read `{other}`")),
    };
    let e = Scenario::parse("one.toml", text, &files).expect_err(text).to_string();
    let list = e.split("; known are ").nth(1).unwrap_or_else(|| panic!("{e}\n{text}"));
    list.split(", ").map(|key| key.split(" (").next().unwrap_or(key).to_owned()).collect()
}

/// A scenario with a topology, a flow and more.
fn scenario(topology: &str, flow: &str, rest: &str) -> String {
    format!(
        "name = \"one\"\nduration = \"1s\"\nmetrics = [\"main.goodput\"]\n[topology]\n{topology}\n[[flow]]\nname = \"main\"\n\
         {flow}\n{rest}\n"
    )
}

/// Words in the code of a page.
fn words_of(page: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let code: Vec<&str> = if fenced { vec![line] } else { line.split('`').skip(1).step_by(2).collect() };
        for piece in code {
            words.extend(piece.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').map(str::to_owned));
        }
    }
    words
}

#[test]
fn every_key_of_a_scenario_is_documented() {
    let path = "kind = \"single-path\"\nrate = \"1mbit\"";
    let sctp = "transport = \"sctp\"";
    let none = format!("{NONE} = 1");
    let mut keys: BTreeSet<String> = BTreeSet::new();
    let mut add = |text: String| keys.extend(known(&text));
    add(format!("{none}\n{}", scenario(path, sctp, "")));
    add(scenario(&format!("{path}\n{none}"), sctp, ""));
    add(scenario(&format!("kind = \"shared-bottleneck\"\nbottleneck = {{}}\n{none}"), sctp, ""));
    add(scenario(&format!("kind = \"free\"\nhosts = [\"a\"]\n{none}"), sctp, ""));
    let file = "deliveries = { file = \"frames\", QQ = 1 }".replace("QQ", NONE);
    add(scenario(&format!("kind = \"single-path\"\n{file}"), sctp, ""));
    let file = "loss = { file = \"frames\", QQ = 1 }".replace("QQ", NONE);
    add(scenario(&format!("kind = \"single-path\"\n{file}"), sctp, ""));
    for transport in ["sctp", "tcp", "udp", "mptcp", "nc-mptcp", "fmtcp"] {
        add(scenario(path, &format!("transport = \"{transport}\"\n{none}"), ""));
    }
    for table in [
        "[[sweep]]\nname = \"s\"",
        "[quick]",
        "[[claim]]\nid = \"c\"",
        "[[figure]]\nname = \"f\"",
        "[[reference]]\nname = \"r\"",
    ] {
        add(scenario(path, sctp, &format!("{table}\n{none}")));
    }
    add(scenario(
        path,
        sctp,
        &format!("[[figure]]\nname = \"f\"\ntitle = \"t\"\nkind = \"bars\"\n[[figure.line]]\n{none}"),
    ));
    let kinds = Scenario::parse("one.toml", &scenario(path, &format!("{sctp}\ntraffic = \"{NONE}\""), ""), &|_| {
        Err(String::new())
    });
    let kinds = kinds.expect_err("a kind").to_string();
    let kinds: Vec<&str> = kinds.split("there are ").nth(1).expect("kinds").split(", ").collect();
    assert!(kinds.len() > 8, "{kinds:?}");
    for kind in &kinds {
        add(scenario(path, &format!("{sctp}\ntraffic = {{ kind = \"{kind}\", {NONE} = 1 }}"), ""));
    }
    assert!(keys.len() > 120, "{} keys", keys.len());
    let pages = [
        include_str!("../../../docs/LAB.md"),
        include_str!("../../../docs/REPORTS.md"),
        include_str!("../../../docs/EMULATE.md"),
    ];
    let mut words: BTreeSet<String> = pages.iter().flat_map(|page| words_of(page)).collect();
    // Hooks have a page of their own, in the names of the code.
    words.extend(words_of(include_str!("../../../docs/ALGORITHMS.md")).iter().map(|w| w.replace('_', "-")));
    let missing: Vec<&String> =
        keys.iter().filter(|key| !words.contains(*key) && !FROM_FILES.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "not in LAB.md, REPORTS.md or EMULATE.md: {missing:?}");
    assert!(!words.contains(NONE));
}
