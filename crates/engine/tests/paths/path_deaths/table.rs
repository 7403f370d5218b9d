//! The table of take-over times in `docs/PATHS.md`: each test holds its own cells against it, or writes them.

use anabranch_base::Duration;
use std::sync::Mutex;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PATHS.md");
const COMMAND: &str = "UPDATE=1 cargo test -p anabranch-engine --test paths path_deaths";
/// Tests of one process take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Median and worst of a death and a profile are what the page says; with `UPDATE` they become so.
pub fn cell(death: &str, profile: &str, median: Duration, worst: Duration) {
    let text = format!("{:.0}, {:.0}", median.as_millis_f64(), worst.as_millis_f64());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let page = std::fs::read_to_string(PAGE).expect("docs/PATHS.md");
    let new = with_cell(&page, death, profile, &text);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, new).expect("docs/PATHS.md can be written");
    } else {
        assert!(new == page, "{death}, {profile}: {text}, and docs/PATHS.md has something else: {COMMAND}");
    }
}

/// The page with this text in a cell of its table.
fn with_cell(page: &str, death: &str, profile: &str, text: &str) -> String {
    let mut column = None;
    let mut found = false;
    let line = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.get(1) == Some(&"death") {
            column = cells.iter().position(|c| *c == profile);
        }
        let Some(column) = column.filter(|_| cells.get(1) == Some(&death) && !found) else { return line.to_owned() };
        found = true;
        let mut row = "|".to_owned();
        for (i, cell) in cells.iter().enumerate().take(cells.len() - 1).skip(1) {
            match if i == column { text } else { cell } {
                "" => row += " |",
                cell => row += &format!(" {cell} |"),
            }
        }
        row
    };
    let lines: Vec<String> = page.lines().map(line).collect();
    assert!(found, "the table of docs/PATHS.md has no row `{death}` or no column `{profile}`");
    lines.join("\n") + "\n"
}

#[test]
fn a_cell_is_one_of_its_row_and_column() {
    let page = "text\n\n| death | a | b | bound |\n|---|---|---|---|\n| x | 1, 2 | | 9 |\n| y | | 3, 4 | 9 |\n\nend\n";
    let new = with_cell(page, "x", "b", "5, 6");
    assert_eq!(new, page.replace("| x | 1, 2 | | 9 |", "| x | 1, 2 | 5, 6 | 9 |"));
    assert_eq!(with_cell(page, "y", "b", "3, 4"), page);
}
