//! Figures in the pages under `docs/`: a test holds its own cell of a table against what it measured, or writes it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Mutex, PoisonError};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
/// Tests of one process take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A page, and the command that lets its tests write it.
pub struct Page {
    pub file: &'static str,
    pub command: &'static str,
}

pub const SECURITY: Page = Page {
    file: "SECURITY.md",
    command: "UPDATE=1 cargo test -p anabranch-engine --lib --test attacks --test endurance --test paths --test transfer",
};

/// A row of a table, cell by cell, with the names of its columns.
pub struct Row<'a> {
    columns: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The cell in the column of this name; none where the table has no such column.
    pub fn cell(&self, column: &str) -> Option<&'a str> {
        self.cells.get(self.columns.iter().position(|c| *c == column)?).copied()
    }
}

impl Page {
    pub fn text(&self) -> String {
        std::fs::read_to_string(format!("{DOCS}{}", self.file)).expect(self.file)
    }

    /// In the rows for which `change` gives a text, the cell of `column` has that text; with `UPDATE` it becomes so.
    /// Gives the number of such rows.
    pub fn hold(&self, column: &str, change: impl FnMut(&Row<'_>) -> Option<String>) -> usize {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (new, differences, rows) = changed(&self.text(), column, change);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(format!("{DOCS}{}", self.file), new).expect(self.file);
        } else {
            assert!(
                differences.is_empty(),
                "docs/{} is not what was measured:\n{}\nIt is written by {}",
                self.file,
                differences.join("\n"),
                self.command
            );
        }
        rows
    }
}

fn cells(line: &str) -> Vec<&str> {
    let all: Vec<&str> = line.split('|').map(str::trim).collect();
    all.get(1..all.len() - 1).unwrap_or_default().to_vec()
}

/// All rows of all tables of a page, with the numbers of their lines.
pub fn rows(page: &str) -> Vec<(usize, Row<'_>)> {
    let lines: Vec<&str> = page.lines().collect();
    let (mut columns, mut out) = (vec![], vec![]);
    for (n, line) in lines.iter().enumerate() {
        let is_rule = |line: &&str| line.starts_with("|---");
        if lines.get(n + 1).is_some_and(is_rule) {
            columns = cells(line);
        } else if line.starts_with('|') && !is_rule(line) {
            out.push((n, Row { columns: columns.clone(), cells: cells(line) }));
        }
    }
    out
}

/// The page with the texts in their cells; what it said otherwise; and the number of rows that have a text.
pub fn changed(
    page: &str,
    column: &str,
    mut change: impl FnMut(&Row<'_>) -> Option<String>,
) -> (String, Vec<String>, usize) {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let (mut differences, mut found) = (vec![], 0);
    for (n, row) in rows(page) {
        let Some(is) = row.cell(column) else { continue };
        let Some(text) = change(&row) else { continue };
        found += 1;
        assert_eq!(row.cells.len(), row.columns.len(), "a row with other columns than its table: {}", lines[n]);
        if is != text {
            differences.push(format!("  it says      {is}\n  measured was {text}"));
        }
        let line = row.cells.iter().zip(&row.columns).map(|(c, of)| if *of == column { &text } else { *c });
        lines[n] =
            line.fold("|".to_owned(), |line, c| if c.is_empty() { line + " |" } else { format!("{line} {c} |") });
    }
    (lines.join("\n") + "\n", differences, found)
}

/// The tests that a cell names: what is in quotes and has a path.
pub fn tests_named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && !name.contains(' ')).collect()
}

/// `docs/SECURITY.md` gives these figures in the rows that name `test`, one for each row. Where a row names several
/// tests, each has a part of the cell, in their order, with semicolons between them.
pub fn figures(test: &str, texts: &[&str]) {
    texts.iter().for_each(|text| println!("{test}: {text}"));
    let mut left = texts.iter();
    let found = SECURITY.hold("figure", |row| {
        let names = tests_named(row.cell("test")?);
        let at = names.iter().position(|name| *name == test)?;
        let text = left.next().copied().unwrap_or_default();
        if names.len() == 1 {
            return Some(text.to_owned());
        }
        assert!(!text.contains("; "), "{test} is one of several tests of its row: {text}");
        let mut parts: Vec<&str> = row.cell("figure")?.split("; ").collect();
        parts.resize(names.len(), "");
        parts[at] = text;
        Some(parts.join("; "))
    });
    assert_eq!(found, texts.len(), "rows of docs/SECURITY.md that name {test}");
}

/// [`figures`] of a test that one row names.
pub fn figure(test: &str, text: &str) {
    figures(test, &[text]);
}

/// 1234567 as 1,234,567.
pub fn grouped(n: impl TryInto<u64>) -> String {
    let digits = n.try_into().unwrap_or_else(|_| panic!("a number that cannot be negative")).to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of them: `no answer`, `1 answer`, `27 answers`.
pub fn count(n: impl TryInto<u64>, what: &str) -> String {
    match grouped(n).as_str() {
        "0" => format!("no {what}"),
        "1" => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Memory, from a thousand bytes on to two digits: another compiler may lay things out a little differently.
pub fn memory(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or_else(|_| panic!("memory that shrank"));
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..995_000 => (1e3, "KB"),
        _ => (1e6, "MB"),
    };
    let amount = bytes as f64 / unit;
    match amount {
        ..9.95 => format!("{amount:.1} {name}"),
        ..99.5 => format!("{amount:.0} {name}"),
        _ => format!("{:.0} {name}", (amount / 10.0).round() * 10.0),
    }
}

/// A list in words: `1, 2 and 3`.
pub fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
