//! The pieces of a page: sections, key facts, verdicts.

use crate::text::{escape, fixed};
use crate::{Drawing, Plot, ReportError, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// A judgement in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    class: &'static str,
    mark: &'static str,
    text: String,
}

impl Verdict {
    /// It holds.
    pub fn pass(text: impl Into<String>) -> Self {
        Verdict { class: "pass", mark: "\u{2713}", text: text.into() }
    }
    /// It does not hold.
    pub fn fail(text: impl Into<String>) -> Self {
        Verdict { class: "fail", mark: "\u{2717}", text: text.into() }
    }
    /// It holds with a reserve, or the measurement is doubtful.
    pub fn warn(text: impl Into<String>) -> Self {
        Verdict { class: "warn", mark: "!", text: text.into() }
    }
    /// Nothing was judged.
    pub fn info(text: impl Into<String>) -> Self {
        Verdict { class: "info", mark: "i", text: text.into() }
    }
    /// What it says.
    pub(crate) fn words(&self) -> &str {
        &self.text
    }
    /// As a word in a table.
    pub(crate) fn to_inline_html(&self) -> String {
        format!("<span class=\"mark {}\">{}\u{a0}{}</span>", self.class, self.mark, escape(&self.text))
    }
    /// The badge as an HTML fragment.
    pub(crate) fn to_html(&self) -> String {
        // The mark carries the meaning without the colour, too.
        format!(
            "<div class=\"badge {}\"><span>{}</span><span>{}</span></div>\n",
            self.class,
            self.mark,
            escape(&self.text)
        )
    }
}

/// One big number with its unit and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    value: String,
    unit: String,
    label: String,
    starred: bool,
}

impl Fact {
    /// `value` with that many decimals; a value that is not finite shows as a dash.
    pub fn new(label: impl Into<String>, value: f64, decimals: usize, unit: impl Into<String>) -> Self {
        Fact { value: fixed(value, decimals.min(17)), unit: unit.into(), label: label.into(), starred: false }
    }
    /// A fact in words.
    pub fn text(label: impl Into<String>, value: impl Into<String>) -> Self {
        Fact { value: value.into(), unit: String::new(), label: label.into(), starred: false }
    }
    /// Sets it apart from the others.
    #[must_use]
    pub fn star(mut self) -> Self {
        self.starred = true;
        self
    }
}

/// The facts as an HTML fragment.
pub(crate) fn facts_html(facts: &[Fact]) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for fact in facts {
        let class = if fact.starred { " class=\"star\"" } else { "" };
        let _ = write!(out, "<div{class}><dt>{}</dt><dd>{}", escape(&fact.label), escape(&fact.value));
        if !fact.unit.is_empty() {
            let _ = write!(out, " <span>{}</span>", escape(&fact.unit));
        }
        out.push_str("</dd></div>\n");
    }
    out.push_str("</dl>\n");
    out
}

/// A heading and what stands below it, in the order it was added.
#[derive(Clone, Debug)]
pub struct Section {
    heading: String,
    body: String,
}

impl Section {
    /// An empty section.
    pub fn new(heading: impl Into<String>) -> Self {
        Section { heading: heading.into(), body: String::new() }
    }
    /// Adds text; an empty line starts a new paragraph.
    #[must_use]
    pub fn paragraph(mut self, text: impl AsRef<str>) -> Self {
        for part in text.as_ref().split("\n\n").map(str::trim).filter(|p| !p.is_empty()) {
            let _ = writeln!(self.body, "<p>{}</p>", escape(part));
        }
        self
    }
    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: &Table) -> Self {
        self.body.push_str(&table.to_html());
        self
    }
    /// Adds a plot over the whole width.
    #[must_use]
    pub fn plot(mut self, plot: &dyn Plot) -> Self {
        let _ = writeln!(self.body, "<figure>{}</figure>", plot.inline_svg());
        self
    }
    /// Adds plots side by side where the window is wide enough; give each a width of about 400.
    #[must_use]
    pub fn plots(mut self, plots: &[&dyn Plot]) -> Self {
        self.body.push_str("<div class=\"pair\">\n");
        for plot in plots {
            let _ = writeln!(self.body, "<figure>{}</figure>", plot.inline_svg());
        }
        self.body.push_str("</div>\n");
        self
    }
    /// Adds a row of big numbers.
    #[must_use]
    pub fn facts(mut self, facts: &[Fact]) -> Self {
        self.body.push_str(&facts_html(facts));
        self
    }
    /// Adds a verdict.
    #[must_use]
    pub fn verdict(mut self, verdict: &Verdict) -> Self {
        self.body.push_str(&verdict.to_html());
        self
    }
    /// Adds preformatted text that is folded away until the reader opens it.
    #[must_use]
    pub fn details(mut self, summary: impl AsRef<str>, text: impl AsRef<str>) -> Self {
        let (summary, text) = (escape(summary.as_ref()), escape(text.as_ref()));
        // A newline right after <pre> is dropped by HTML, so this one keeps a leading newline of the text.
        let _ = writeln!(self.body, "<details><summary>{summary}</summary><pre>\n{text}</pre></details>");
        self
    }
    /// Adds a table that is folded away until the reader opens it.
    #[must_use]
    pub fn details_table(mut self, summary: impl AsRef<str>, table: &Table) -> Self {
        let summary = escape(summary.as_ref());
        let _ = writeln!(self.body, "<details><summary>{summary}</summary>{}</details>", table.to_html());
        self
    }
    /// Adds plots that are drawn already: one over the whole width, several side by side.
    #[must_use]
    pub fn drawings(mut self, drawings: &[Drawing]) -> Self {
        let several = drawings.len() > 1;
        self.body.push_str(if several { "<div class=\"pair\">\n" } else { "" });
        for drawing in drawings {
            let _ = writeln!(self.body, "<figure>{}</figure>", drawing.inline());
        }
        self.body.push_str(if several { "</div>\n" } else { "" });
        self
    }
    /// Adds a value as folded JSON.
    ///
    /// # Errors
    /// [`ReportError::Json`] when the value has no JSON form.
    pub fn details_json(self, summary: impl AsRef<str>, value: &impl Serialize) -> Result<Self, ReportError> {
        let text = serde_json::to_string_pretty(value)?;
        Ok(self.details(summary, text))
    }

    pub(crate) fn heading(&self) -> &str {
        &self.heading
    }
    pub(crate) fn to_html(&self, id: usize) -> String {
        format!("<section id=\"s{id}\">\n<h2>{}</h2>\n{}</section>\n", escape(&self.heading), self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_escaped_and_keep_their_order() {
        let section = Section::new("A & B")
            .paragraph("one <1>\n\n  two\n\n\n")
            .verdict(&Verdict::fail("x > y"))
            .facts(&[Fact::new("lost", 12.345, 1, "%").star(), Fact::text("run", "<best>")])
            .details("raw \"x\"", "a<b\n c");
        assert_eq!(
            section.to_html(3),
            "<section id=\"s3\">\n<h2>A &amp; B</h2>\n<p>one &lt;1&gt;</p>\n<p>two</p>\n\
<div class=\"badge fail\"><span>\u{2717}</span><span>x &gt; y</span></div>\n\
<dl class=\"facts\">\n<div class=\"star\"><dt>lost</dt><dd>12.3 <span>%</span></dd></div>\n\
<div><dt>run</dt><dd>&lt;best&gt;</dd></div>\n</dl>\n\
<details><summary>raw &quot;x&quot;</summary><pre>\na&lt;b\n c</pre></details>\n</section>\n"
        );
    }

    #[test]
    fn values_become_json_or_an_error() {
        let html = Section::new("x").details_json("raw", &vec![1, 2]).unwrap().to_html(1);
        assert!(html.contains("<pre>\n[\n  1,\n  2\n]</pre>"), "{html}");
        let odd = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert!(matches!(Section::new("x").details_json("raw", &odd), Err(ReportError::Json(_))));
    }
}
