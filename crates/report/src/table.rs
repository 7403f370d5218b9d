//! One table for the terminal, the page and a spreadsheet.

use crate::Verdict;
use crate::text::{MISSING, escape, fixed, plain, printable};
use std::fmt::Write as _;

/// The content of one cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text, left aligned.
    Text(String),
    /// A number, shown with the decimals of its column.
    Number(f64),
    /// An estimate with its interval, in the unit and with the decimals of its column.
    Interval {
        /// The estimate.
        mid: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
    },
    /// A judgement.
    Verdict(Verdict),
    /// No value; shown as a dash.
    Empty,
}

impl From<Verdict> for Cell {
    fn from(v: Verdict) -> Self {
        Cell::Verdict(v)
    }
}

impl From<&str> for Cell {
    fn from(s: &str) -> Self {
        Cell::Text(s.to_owned())
    }
}
impl From<String> for Cell {
    fn from(s: String) -> Self {
        Cell::Text(s)
    }
}
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Empty, Into::into)
    }
}
/// Estimate, low end, high end.
impl From<(f64, f64, f64)> for Cell {
    fn from((mid, low, high): (f64, f64, f64)) -> Self {
        Cell::Interval { mid, low, high }
    }
}
macro_rules! cell_from_number {
    ($($t:ty),*) => {$(
        impl From<$t> for Cell {
            fn from(v: $t) -> Self {
                Cell::Number(v as f64)
            }
        }
    )*};
}
cell_from_number!(f64, f32, u8, u16, u32, u64, usize, i32, i64);

/// Anything that fills a row: a tuple of up to ten values, an array, or a vector of cells.
pub trait Row {
    /// The cells from left to right.
    fn cells(self) -> Vec<Cell>;
}
impl<T: Into<Cell>> Row for Vec<T> {
    fn cells(self) -> Vec<Cell> {
        self.into_iter().map(Into::into).collect()
    }
}
impl<T: Into<Cell>, const N: usize> Row for [T; N] {
    fn cells(self) -> Vec<Cell> {
        self.into_iter().map(Into::into).collect()
    }
}
macro_rules! row_from_tuple {
    ($($name:ident)+) => {
        impl<$($name: Into<Cell>),+> Row for ($($name,)+) {
            #[allow(non_snake_case, reason = "a variable is called as the type parameter it is of")]
            fn cells(self) -> Vec<Cell> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    };
}
row_from_tuple!(A);
row_from_tuple!(A B);
row_from_tuple!(A B C);
row_from_tuple!(A B C D);
row_from_tuple!(A B C D E);
row_from_tuple!(A B C D E F);
row_from_tuple!(A B C D E F G);
row_from_tuple!(A B C D E F G H);
row_from_tuple!(A B C D E F G H I);
row_from_tuple!(A B C D E F G H I J);

#[derive(Clone, Debug, Default)]
struct Column {
    name: String,
    unit: String,
    /// `None` for a column of words.
    decimals: Option<usize>,
}

impl Column {
    fn heading(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// Columns, then rows. A row that is too short is filled with dashes; one that is too long adds unnamed columns.
#[derive(Clone, Debug, Default)]
pub struct Table {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    highlighted: Vec<usize>,
    /// Row and the remark below it.
    notes: Vec<(usize, String)>,
}

impl Table {
    /// An empty table; an empty title shows none.
    pub fn new(title: impl Into<String>) -> Self {
        Table { title: title.into(), ..Table::default() }
    }
    /// Adds a column of words, left aligned.
    #[must_use]
    pub fn text(mut self, name: impl Into<String>) -> Self {
        self.columns.push(Column { name: name.into(), ..Column::default() });
        self
    }
    /// Adds a column of numbers, right aligned with that many decimals; an empty unit shows none.
    #[must_use]
    pub fn number(mut self, name: impl Into<String>, unit: impl Into<String>, decimals: usize) -> Self {
        self.columns.push(Column { name: name.into(), unit: unit.into(), decimals: Some(decimals.min(17)) });
        self
    }
    /// Adds a row.
    #[must_use]
    pub fn row(mut self, row: impl Row) -> Self {
        self.push(row);
        self
    }
    /// Adds a row in place, for loops.
    pub fn push(&mut self, row: impl Row) {
        let cells = row.cells();
        while self.columns.len() < cells.len() {
            self.columns.push(Column::default());
        }
        self.rows.push(cells);
    }
    /// Sets the latest row apart: the one the reader should find.
    #[must_use]
    pub fn highlight(mut self) -> Self {
        self.highlighted.extend(self.rows.len().checked_sub(1));
        self
    }
    /// Puts a remark below the latest row, over the whole width. The CSV form has none.
    pub fn push_remark(&mut self, text: impl Into<String>) {
        if let Some(row) = self.rows.len().checked_sub(1) {
            self.notes.push((row, text.into()));
        }
    }
    fn remarks(&self, row: usize) -> impl Iterator<Item = &str> {
        self.notes.iter().filter(move |n| n.0 == row).map(|n| n.1.as_str())
    }
    /// Rows so far.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table for a terminal: aligned by spaces, ASCII rules, a star before a highlighted row. Ends with a newline.
    pub fn to_text(&self) -> String {
        let heads: Vec<String> = self.columns.iter().map(|c| printable(&c.heading())).collect();
        let body: Vec<Vec<String>> = self.rows.iter().map(|r| self.texts(r)).collect();
        let width = |i: usize| {
            let cells = body.iter().filter_map(|r| r.get(i));
            heads.get(i).into_iter().chain(cells).map(|s| s.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let star = !self.highlighted.is_empty();
        let mut out = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(out, "{}", printable(&self.title));
        }
        let line = |out: &mut String, mark: &str, cells: &[String]| {
            let mut text = if star { format!("{mark} ") } else { String::new() };
            for (i, (column, &w)) in self.columns.iter().zip(&widths).enumerate() {
                let cell = cells.get(i).map_or("", String::as_str);
                let gap = if i == 0 { "" } else { "  " };
                let _ = match column.decimals {
                    Some(_) => write!(text, "{gap}{cell:>w$}"),
                    None => write!(text, "{gap}{cell:<w$}"),
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&mut out, " ", &heads);
        let rules: Vec<String> = widths.iter().map(|&w| "-".repeat(w)).collect();
        line(&mut out, " ", &rules);
        for (i, row) in body.iter().enumerate() {
            line(&mut out, if self.highlighted.contains(&i) { "*" } else { " " }, row);
            for text in self.remarks(i) {
                let _ = writeln!(out, "    {}", printable(text));
            }
        }
        out
    }

    /// The cells of a row as plain text, one for each column.
    fn texts(&self, row: &[Cell]) -> Vec<String> {
        let text = |(i, column): (usize, &Column)| {
            let show = |v: f64| plain(v, column.decimals.unwrap_or(2)).unwrap_or_else(|| "-".to_owned());
            match row.get(i).unwrap_or(&Cell::Empty) {
                Cell::Text(s) => printable(s),
                Cell::Verdict(v) => printable(v.words()),
                Cell::Number(v) => show(*v),
                Cell::Interval { mid, low, high } => format!("{} [{}, {}]", show(*mid), show(*low), show(*high)),
                Cell::Empty => "-".to_owned(),
            }
        };
        self.columns.iter().enumerate().map(text).collect()
    }

    /// The table as an HTML fragment.
    pub fn to_html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table>\n");
        if !self.title.is_empty() {
            let _ = writeln!(out, "<caption>{}</caption>", escape(&self.title));
        }
        out.push_str("<thead><tr>");
        for column in &self.columns {
            let class = if column.decimals.is_some() { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}", escape(&column.name));
            if !column.unit.is_empty() {
                let _ = write!(out, " <span>({})</span>", escape(&column.unit));
            }
            out.push_str("</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (i, row) in self.rows.iter().enumerate() {
            out.push_str(if self.highlighted.contains(&i) { "<tr class=\"best\">" } else { "<tr>" });
            for (i, column) in self.columns.iter().enumerate() {
                let class = if column.decimals.is_some() { " class=\"n\"" } else { "" };
                let cell = row.get(i).unwrap_or(&Cell::Empty);
                let _ = write!(out, "<td{class}>{}</td>", html_cell(cell, column.decimals.unwrap_or(2)));
            }
            out.push_str("</tr>\n");
            for text in self.remarks(i) {
                let _ = writeln!(
                    out,
                    "<tr class=\"remark\"><td colspan=\"{}\">{}</td></tr>",
                    self.columns.len().max(1),
                    escape(text)
                );
            }
        }
        out.push_str("</tbody>\n</table></div>\n");
        out
    }

    /// The table as CSV with a heading line (RFC 4180 §2, but lines end with a newline alone). Numbers keep full
    /// precision; an interval takes three columns; what is missing is empty.
    pub fn to_csv(&self) -> String {
        let interval = |i: usize| self.rows.iter().any(|r| matches!(r.get(i), Some(Cell::Interval { .. })));
        let wide: Vec<bool> = (0..self.columns.len()).map(interval).collect();
        let mut out = String::new();
        let mut heads = Vec::new();
        for (column, &wide) in self.columns.iter().zip(&wide) {
            let head = column.heading();
            if wide {
                heads.extend([csv_field(&head), csv_field(&format!("{head} low")), csv_field(&format!("{head} high"))]);
            } else {
                heads.push(csv_field(&head));
            }
        }
        let _ = writeln!(out, "{}", heads.join(","));
        for row in &self.rows {
            let mut fields = Vec::new();
            for (i, &wide) in wide.iter().enumerate() {
                let mut three = match row.get(i).unwrap_or(&Cell::Empty) {
                    Cell::Text(s) => [csv_field(s), String::new(), String::new()],
                    Cell::Verdict(v) => [csv_field(v.words()), String::new(), String::new()],
                    Cell::Number(v) => [csv_number(*v), String::new(), String::new()],
                    Cell::Interval { mid, low, high } => [csv_number(*mid), csv_number(*low), csv_number(*high)],
                    Cell::Empty => Default::default(),
                }
                .into_iter();
                fields.extend(three.by_ref().take(if wide { 3 } else { 1 }));
            }
            let _ = writeln!(out, "{}", fields.join(","));
        }
        out
    }
}

fn html_cell(cell: &Cell, decimals: usize) -> String {
    match cell {
        Cell::Text(s) => escape(s),
        Cell::Verdict(v) => v.to_inline_html(),
        Cell::Number(v) => fixed(*v, decimals),
        Cell::Interval { mid, low, high } => format!(
            "{} <span class=\"ci\">[{}, {}]</span>",
            fixed(*mid, decimals),
            fixed(*low, decimals),
            fixed(*high, decimals)
        ),
        Cell::Empty => MISSING.to_owned(),
    }
}

fn csv_field(s: &str) -> String {
    if s.contains([',', '"', '\n', '\r']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.to_owned() }
}

fn csv_number(v: f64) -> String {
    if v.is_finite() { format!("{v}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table::new("Runs")
            .text("run")
            .number("rate", "Mbit/s", 2)
            .number("frames", "", 0)
            .row(("wlan", 5.876, 450))
            .row(("a, \"b\" <c>", f64::NAN, 12_345_u64))
            .row(("best", 8.0, Option::<u32>::None))
            .highlight()
    }

    #[test]
    fn text_is_aligned() {
        let expected = "\
Runs
  run         rate (Mbit/s)  frames
  ----------  -------------  ------
  wlan                 5.88     450
  a, \"b\" <c>              -   12345
* best                 8.00       -
";
        assert_eq!(sample().to_text(), expected);
    }

    #[test]
    fn html_is_escaped_and_right_aligned() {
        let html = sample().to_html();
        assert!(html.contains("<th scope=\"col\" class=\"n\">rate <span>(Mbit/s)</span></th>"), "{html}");
        assert!(html.contains("<td>a, &quot;b&quot; &lt;c&gt;</td><td class=\"n\">\u{2013}</td>"), "{html}");
        assert!(html.contains("<td class=\"n\">12\u{202F}345</td>"), "{html}");
        assert!(html.contains("<tr class=\"best\"><td>best</td><td class=\"n\">8.00</td>"), "{html}");
    }

    #[test]
    fn csv_keeps_precision_and_quotes() {
        let csv = sample().to_csv();
        assert_eq!(csv, "run,rate (Mbit/s),frames\nwlan,5.876,450\n\"a, \"\"b\"\" <c>\",,12345\nbest,8,\n");
    }

    #[test]
    fn intervals_in_all_three_forms() {
        let table = Table::new("").text("x").number("y", "s", 1).row(("a", (1.0, 0.5, 1.5))).row(("b", 2));
        assert_eq!(table.to_text(), "x           y (s)\n-  --------------\na  1.0 [0.5, 1.5]\nb             2.0\n");
        assert!(table.to_html().contains("1.0 <span class=\"ci\">[0.5, 1.5]</span>"));
        assert_eq!(table.to_csv(), "x,y (s),y (s) low,y (s) high\na,1,0.5,1.5\nb,2,,\n");
    }

    #[test]
    fn remarks_stand_below_their_row() {
        let mut table = Table::new("").text("x").number("y", "", 0).row(("a", 1));
        table.push_remark("why <so>");
        table.push(("b", 2));
        assert_eq!(table.to_text(), "x  y\n-  -\na  1\n    why <so>\nb  2\n");
        assert!(table.to_html().contains("<tr class=\"remark\"><td colspan=\"2\">why &lt;so&gt;</td></tr>\n<tr><td>b"));
        assert_eq!(table.to_csv(), "x,y\na,1\nb,2\n");
    }

    #[test]
    fn rows_of_other_lengths_lose_nothing() {
        let table = Table::new("").text("x").row(("a", "b")).row(["c"]).row(Vec::<Cell>::new());
        assert_eq!(table.to_text(), "x\n-  -\na  b\nc  -\n-  -\n");
        assert_eq!(table.len(), 3);
    }
}
