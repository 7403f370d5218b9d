use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(dead_code, reason = "only whether they can be read is of interest")]
struct Keys {
    name: String,
    small: Option<u16>,
    large: Option<u64>,
    share: Option<f64>,
    on: Option<bool>,
    list: Option<Vec<String>>,
    map: Option<BTreeMap<String, f64>>,
    inner: Option<Inner>,
    kind: Option<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only whether they can be read is of interest")]
struct Inner {
    count: u8,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Line,
    Bars,
}

fn error(text: &str) -> String {
    let made = parse(&Origin::of_file("a.toml"), text);
    let read = made.and_then(|table| read::<Keys>(Part::new("part", &table)));
    ScenarioError::from(read.expect_err(text)).to_string()
}

#[test]
fn what_serde_finds_is_said_with_its_line_and_key() {
    let cases = [
        ("small = 70000", "`small`: needs a whole number from 0 to 65535, not the number 70000"),
        ("small = \"x\"", "`small`: needs a whole number, not the text `x`"),
        ("small = 1.5", "`small`: needs a whole number, not the number 1.5"),
        ("large = -1", "`large`: needs a whole number from 0 to 18446744073709551615, not the number -1"),
        ("share = \"1%\"", "`share`: needs a number, not the text `1%`"),
        ("on = 1", "`on`: needs true or false, not the number 1"),
        ("on = 2026-01-01", "`on`: needs true or false, not a date or a time of day"),
        ("list = \"x\"", "`list`: needs a list, not the text `x`"),
        ("list = [\"a\", 3]", "`list`: needs a text, not the number 3"),
        ("map = []", "`map`: needs a table, not a list"),
        ("map.one = true", "`map.one`: needs a number, not true"),
        ("inner = {}", "`inner`: the key `count` is missing"),
        ("inner = { count = 1, cuont = 2 }", "unknown key `cuont`; did you mean `count`?"),
        ("kind = \"lien\"", "`kind`: unknown value `lien`; did you mean `line`?"),
        ("kind = \"pie-chart\"", "`kind`: unknown value `pie-chart`; known are line, bars"),
        ("kind = 3", "`kind`: needs a text, not the number 3"),
        ("smal = 3", "unknown key `smal`; did you mean `small`?"),
    ];
    for (line, what) in cases {
        assert_eq!(error(&format!("name = \"a\"\n\n{line}\n")), format!("a.toml:3: part: {what}"));
    }
    assert_eq!(error("on = true\n"), "a.toml: part: the key `name` is missing");
    assert_eq!(error("[name]\n"), "a.toml:1: part: `name`: needs a text, not a table");
}

#[test]
fn an_element_has_a_line_of_its_own() {
    assert_eq!(
        error("name = \"a\"\nlist = [\n  \"b\",\n  4,\n]"),
        "a.toml:4: part: `list`: needs a text, not the number 4"
    );
    let huge = error("name = \"a\"\nlist = [\n  \"b\",\n  99999999999999999999,\n]");
    assert_eq!(huge, "a.toml:4: `99999999999999999999` is too large for a whole number");
}

#[test]
fn what_is_no_toml_is_said_with_its_line() {
    for (text, line) in [("name = ", 1), ("name = \"a\"\n\non = tru", 3), ("a = 1\nb = 2\na = 3", 3), ("[a\n", 1)] {
        let e = error(text);
        assert!(e.starts_with(&format!("a.toml:{line}: ")) && !e.contains('\n'), "{text:?}: {e}");
    }
}

#[test]
fn values_are_those_of_the_toml_crate() {
    let text =
        "a = 0x1f\nb = [1, 2.5, { c = \"d\" }]\n[e.f]\ng = true\nh = 2026-01-01\n[[i]]\nj = 'k'\n[[i]]\nl = -inf\n";
    let table = parse(&Origin::of_file("a.toml"), text).expect("fine");
    assert_eq!(table.plain(), text.parse::<toml::Table>().expect("fine"));
}

#[test]
fn the_place_of_a_value_stays_with_it_when_tables_are_merged() {
    let of = |name: &str, text: &str| parse(&Origin::of_file(name), text).expect("fine");
    let mut base = of("base", "[a]\nx = 1\ny = 2\n[b]\nz = 3\n");
    base.merge(of("over", "a = { y = 4 }\n\nc = 5\n"));
    let at = |key: &str| base.find(key).map(|e| e.node.at.to_string());
    let places = ["a.x", "a.y", "a", "b.z", "c", "b.nothing", "d"].map(at);
    let want = [Some("base:2"), Some("over:1"), Some("over:1"), Some("base:5"), Some("over:3"), Some("base:4"), None];
    assert_eq!(places, want.map(|w| w.map(str::to_owned)));
    assert_eq!(base.plain().to_string(), "c = 5\n\n[a]\nx = 1\ny = 4\n\n[b]\nz = 3\n");
}
