//! How the tests hold the figures of `docs/SECURITY.md`.

use crate::common::page::{SECURITY, changed, count, grouped, listed, memory, rows, tests_named};
use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// No figure of an attack on the engine is one that only its author has seen: a test gives it.
#[test]
fn each_figure_is_held_by_the_test_that_its_row_names() {
    let mut files = vec![];
    ["src", "tests"].iter().for_each(|d| sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(d), &mut files));
    let code: String = files.iter().map(|f| std::fs::read_to_string(f).expect("a source")).collect();
    let page = SECURITY.text();
    let (engine, _) = page.split_once("\n## Strangers at the door of the programs").expect("the part of the programs");
    let mut named = 0;
    for (line, row) in rows(engine) {
        let names = tests_named(row.cell("test").expect("a table of attacks"));
        assert!(!names.is_empty(), "line {} names no test", line + 1);
        for name in names {
            named += 1;
            assert!(code.contains(&format!("\"{name}\"")), "line {}: `{name}` holds no figure", line + 1);
        }
    }
    assert!(named > 40, "only {named} tests are named");
}

const TABLES: &str = "\
text

| death | a | b | bound |
|---|---|---|---|
| x | 1, 2 | | 9 |
| y | | 3, 4 | 9 |

| other | b |
|---|---|
| x | kept |

end
";

#[test]
fn a_cell_is_one_of_its_row_and_column() {
    let (new, differences, rows) = changed(TABLES, "b", |r| (r.cell("death") == Some("x")).then(|| "5, 6".to_owned()));
    assert_eq!(new, TABLES.replace("| x | 1, 2 | | 9 |", "| x | 1, 2 | 5, 6 | 9 |"));
    assert_eq!((differences.len(), rows), (1, 1));
    let (same, differences, rows) = changed(TABLES, "b", |r| (r.cell("death")? == "y").then(|| "3, 4".to_owned()));
    assert_eq!((same.as_str(), differences.len(), rows), (TABLES, 0, 1));
    assert_eq!(changed(TABLES, "c", |_| Some(String::new())), (TABLES.to_owned(), vec![], 0));
}

#[test]
fn numbers_as_the_page_has_them() {
    assert_eq!([0_u64, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([0, 1, 2_000].map(|n: u64| count(n, "answer")), ["no answer", "1 answer", "2,000 answers"]);
    let amounts = [0_u64, 608, 1_000, 2_193, 9_949, 9_950, 70_400, 99_500, 225_824, 995_000, 1_328_972, 45_146_340];
    let texts = "0 bytes, 608 bytes, 1.0 KB, 2.2 KB, 9.9 KB, 10 KB, 70 KB, 100 KB, 230 KB, 1.0 MB, 1.3 MB, 45 MB";
    assert_eq!(amounts.map(memory).join(", "), texts);
    let words: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!([&words[..0], &words[..1], &words[..2], &words[..]].map(listed), ["", "a", "a and b", "a, b and c"]);
    let cell = "`x::y`, `z.rs::w` (`cargo test x::y -- --nocapture`), `z.rs`";
    assert_eq!(tests_named(cell), ["x::y", "z.rs::w"]);
}
