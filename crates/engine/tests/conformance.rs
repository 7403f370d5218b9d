//! `docs/CONFORMANCE.md`: which test shows which row of `conformance/rfc9260.md` and `conformance/extensions.md`.
//!
//! A test names its rows in a doc line, `Shows: 9260/A21, ext/R2.`; in scripts it is a comment. `UPDATE=1` rewrites
//! the page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const MARK: &str = "Shows: ";
/// Largest share of MUSTs that may stand without a test.
const MAX_EXCUSED_PERCENT: usize = 5;

/// The lists of rows: how a mark names them, their title, their file.
const CHECKLISTS: [(&str, &str, &str); 2] =
    [("9260", "RFC 9260", "conformance/rfc9260.md"), ("ext", "the extensions", "conformance/extensions.md")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

struct Row {
    id: String,
    level: String,
}

/// The rows of the checklist, in its order.
fn rows(checklist: &str) -> Vec<Row> {
    let cells = |l: &str| l.split('|').map(|c| c.trim().to_owned()).collect::<Vec<_>>();
    let lines = checklist.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| #"));
    let rows: Vec<Row> = lines.map(cells).map(|c| Row { id: c[1].clone(), level: c[3].clone() }).collect();
    for (i, r) in rows.iter().enumerate() {
        assert!(["M", "S", "R", "-"].contains(&r.level.as_str()), "{}: level {}", r.id, r.level);
        assert!(rows[..i].iter().all(|o| o.id != r.id), "{} twice", r.id);
    }
    rows
}

/// Every file below `dir` whose name ends so.
fn files(dir: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    let Ok(list) = fs::read_dir(dir) else { return };
    for e in list.flatten() {
        let path = e.path();
        if path.is_dir() {
            files(&path, endings, out);
        } else if endings.iter().any(|end| path.to_string_lossy().ends_with(end)) {
            out.push(path);
        }
    }
}

/// The ids of a mark, when the line is one.
fn ids(line: &str, comment: &str) -> Option<Vec<String>> {
    let list = line.trim().strip_prefix(comment)?.trim_start().strip_prefix(MARK)?;
    Some(list.trim_end_matches('.').split(',').map(|id| id.trim().to_owned()).collect())
}

/// Test name and ids of each mark in a Rust source. Doc lines and attributes may stand between mark and function.
fn marks_in_rust(name: &str, text: &str) -> Vec<(String, Vec<String>)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let belongs = |l: &&str| l.starts_with("///") || l.starts_with("#[");
    let mut out = vec![];
    for (i, line) in lines.iter().enumerate() {
        let Some(ids) = ids(line, "///") else { continue };
        let before = lines[..i].iter().rev().take_while(|l| belongs(l));
        let after = lines[i + 1..].iter().take_while(|l| belongs(l)).count();
        let is_test =
            before.chain(&lines[i + 1..=i + after]).any(|l| l.starts_with("#[test]") || l.starts_with("#[tokio::test"));
        let function = lines
            .get(i + 1 + after)
            .and_then(|l| l.trim_start_matches("async ").strip_prefix("fn "))
            .and_then(|l| l.split('(').next());
        let Some(function) = function.filter(|_| is_test) else { panic!("{name}:{}: a mark without a test", i + 1) };
        out.push((format!("{name}::{function}"), ids));
    }
    out
}

/// In a script the mark is above a function, or holds for the whole file.
fn marks_in_script(name: &str, text: &str) -> Vec<(String, Vec<String>)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut out = vec![];
    for (i, line) in lines.iter().enumerate() {
        let Some(ids) = ids(line, "#") else { continue };
        let next = lines[i + 1..].iter().find(|l| !l.starts_with('#'));
        let function = next.and_then(|l| l.split_once("()")).map(|(f, _)| f.trim_start_matches("function ").trim());
        out.push((function.map_or_else(|| name.to_owned(), |f| format!("{name}::{f}")), ids));
    }
    out
}

/// Tests by checklist and row id.
fn marks(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut list = vec![];
    for c in fs::read_dir(root.join("crates")).expect("crates").flatten() {
        files(&c.path().join("tests"), &[".rs"], &mut list);
        files(&c.path().join("src"), &[".rs"], &mut list);
    }
    files(&root.join("scripts"), &[".sh"], &mut list);
    files(&root.join("interop"), &[".sh", ".py", ".rs", ".c"], &mut list);
    list.sort();
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in list {
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).expect("a text");
        let found = if name.ends_with(".rs") { marks_in_rust(&name, &text) } else { marks_in_script(&name, &text) };
        for (test, ids) in found {
            for id in ids {
                let known = id.split_once('/').is_some_and(|(list, _)| CHECKLISTS.iter().any(|c| c.0 == list));
                assert!(known, "{test} shows {id}: of which checklist?");
                by_id.entry(id).or_default().push(test.clone());
            }
        }
    }
    by_id
}

/// Why rows have no test.
fn reasons(text: &str) -> BTreeMap<String, String> {
    let table: toml::Table = text.parse().expect("reasons.toml");
    let list = table.get("row").and_then(|r| r.as_array()).cloned().unwrap_or_default();
    let mut out = BTreeMap::new();
    for r in list {
        let word = |key| r.get(key).and_then(|v| v.as_str()).filter(|v| !v.is_empty() && !v.contains('\n'));
        let (id, reason) = (word("id").expect("id"), word("reason").expect("reason"));
        assert!(["host API", "ICMP", "obsolete"].contains(&reason), "{id}: reason {reason}");
        assert!(word("why").is_some(), "{id}: why");
        assert!(out.insert(id.to_owned(), reason.to_owned()).is_none(), "{id} twice");
    }
    out
}

/// The entries of one checklist, without its name.
fn of_list<T: Clone>(name: &str, all: &BTreeMap<String, T>) -> BTreeMap<String, T> {
    let own = |(id, t): (&String, &T)| Some((id.strip_prefix(name)?.strip_prefix('/')?.to_owned(), t.clone()));
    all.iter().filter_map(own).collect()
}

/// The part of the page about one checklist, and how many percent of the MUSTs have a reason instead of a test.
fn part(
    (_, title, file): (&str, &str, &str),
    rows: &[Row],
    tests: &BTreeMap<String, Vec<String>>,
    reasons: &BTreeMap<String, String>,
) -> (String, usize) {
    for id in tests.keys().chain(reasons.keys()) {
        assert!(rows.iter().any(|r| r.id == *id), "{id} is no row of the checklist");
    }
    let mut table = String::from("| id | level | test path | state |\n|---|---|---|---|\n");
    let (mut shown, mut missing, mut musts, mut excused) = (0, 0, 0, 0);
    for r in rows {
        musts += usize::from(r.level == "M");
        let paths = tests.get(&r.id).map(|t| t.join("<br>")).unwrap_or_default();
        let state = match (paths.is_empty(), reasons.get(&r.id)) {
            (false, None) => {
                shown += 1;
                "tested".to_owned()
            }
            (true, Some(why)) => {
                excused += usize::from(r.level == "M");
                format!("reason: {why}")
            }
            (true, None) => {
                missing += 1;
                "missing".to_owned()
            }
            (false, Some(_)) => panic!("{}: a test and a reason to have none", r.id),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {} | {} | {paths} | {state} |", r.id, r.level);
    }
    let percent = (excused * 100).div_ceil(musts.max(1));
    let part = format!(
        "## Of {title}\n\n[{file}](../{file}). {} rows: {shown} tested, {} with a reason, {missing} missing. Of {musts} \
         MUSTs {excused} have a reason.\n\n{table}",
        rows.len(),
        reasons.len(),
    );
    (part, percent)
}

const INTRODUCTION: &str = "# Conformance\n\nEvery row of the checklists with the tests that observe it, written from \
    their marks by a test (`UPDATE=1 cargo test -p anabranch-engine --test conformance`). M is a MUST, S a SHOULD, R a \
    recommendation. What has a reason instead of a test is in \
    [conformance/reasons.toml](../conformance/reasons.toml).\n";

#[test]
fn the_page_of_conformance_is_current() {
    let root = root();
    let read = |p: &str| fs::read_to_string(root.join(p)).unwrap_or_default().replace("\r\n", "\n");
    let (tests, reasons) = (marks(&root), reasons(&read("conformance/reasons.toml")));
    let mut now = String::from(INTRODUCTION);
    for list in CHECKLISTS {
        let rows = rows(&read(list.2));
        assert!(rows.len() > 100, "{} rows", rows.len());
        let (text, excused) = part(list, &rows, &of_list(list.0, &tests), &of_list(list.0, &reasons));
        assert!(excused <= MAX_EXCUSED_PERCENT, "{excused} % of the MUSTs have no test but a reason");
        now.push('\n');
        now.push_str(&text);
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(root.join("docs/CONFORMANCE.md"), &now).expect("written");
    }
    let stale = "docs/CONFORMANCE.md is stale: UPDATE=1 cargo test -p anabranch-engine --test conformance";
    assert!(read("docs/CONFORMANCE.md") == now, "{stale}");
}

#[test]
fn a_mark_counts_for_the_test_below_it() {
    let source =
        ["/// Something.\n/// SHOWS9260/A1, 9260/A2.\n#[test]\nfn one() {}", "#[test]\n/// SHOWS9260/A3.\nfn two() {}"];
    let source = source.join("\n\n").replace("SHOWS", MARK);
    let found = marks_in_rust("f.rs", &source);
    let wanted = [("f.rs::one", vec!["9260/A1", "9260/A2"]), ("f.rs::two", vec!["9260/A3"])];
    assert_eq!(found, wanted.map(|(t, ids)| (t.to_owned(), ids.into_iter().map(str::to_owned).collect())));
    let script = "# SHOWS9260/P1.\nping() {\n}\n# SHOWS9260/P2.\necho".replace("SHOWS", MARK);
    let tests: Vec<String> = marks_in_script("s.sh", &script).into_iter().map(|m| m.0).collect();
    assert_eq!(tests, ["s.sh::ping", "s.sh"]);
}

#[test]
#[should_panic(expected = "a mark without a test")]
fn a_mark_above_a_helper_is_refused() {
    marks_in_rust("f.rs", &format!("/// {MARK}9260/A1.\nfn helper() {{}}"));
}

#[test]
#[should_panic(expected = "no row")]
fn a_mark_of_an_unknown_row_is_refused() {
    let tests = BTreeMap::from([("A99".to_owned(), vec!["f.rs::one".to_owned()])]);
    part(CHECKLISTS[0], &[Row { id: "A1".to_owned(), level: "M".to_owned() }], &tests, &BTreeMap::new());
}
