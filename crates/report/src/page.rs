//! One HTML file that needs nothing but a browser.

use crate::section::facts_html;
use crate::style::{PAGE, PLOT, VARIABLES};
use crate::text::escape;
use crate::{Fact, ReportError, Section, Verdict, write_atomically};
use std::fmt::Write as _;
use std::path::Path;

/// From this many sections on, the page has a list of contents.
const CONTENTS_FROM: usize = 6;

/// A report: title, verdict, key facts, sections, footer. Style sheet and plots are inside; there is no script, and
/// nothing is fetched. The markup is HTML that an XML parser reads, too.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    lead: String,
    verdict: Option<Verdict>,
    facts: Vec<Fact>,
    sections: Vec<Section>,
    footer: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Page { title: title.into(), ..Page::default() }
    }
    /// One or two sentences below the title.
    #[must_use]
    pub fn lead(mut self, text: impl Into<String>) -> Self {
        self.lead = text.into();
        self
    }
    /// The verdict on the whole, a badge below the title.
    #[must_use]
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }
    /// The numbers to see first.
    #[must_use]
    pub fn facts(mut self, facts: &[Fact]) -> Self {
        self.facts.extend_from_slice(facts);
        self
    }
    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
    /// Small print at the end: version, seed, machine, time. The page itself adds none, so equal input is equal bytes.
    #[must_use]
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// The whole file.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
<meta name=\"color-scheme\" content=\"light dark\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n\
<title>{title}</title>\n<style>\n{VARIABLES}{PAGE}{PLOT}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        );
        if !self.lead.is_empty() {
            let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&self.lead));
        }
        if let Some(verdict) = &self.verdict {
            out.push_str(&verdict.to_html());
        }
        if !self.facts.is_empty() {
            out.push_str(&facts_html(&self.facts));
        }
        out.push_str("</header>\n<main>\n");
        if self.sections.len() >= CONTENTS_FROM {
            out.push_str("<nav><section><h2>Contents</h2>\n<ol>\n");
            for (i, section) in self.sections.iter().enumerate() {
                let _ = writeln!(out, "<li><a href=\"#s{}\">{}</a></li>", i + 1, escape(section.heading()));
            }
            out.push_str("</ol></section></nav>\n");
        }
        for (i, section) in self.sections.iter().enumerate() {
            out.push_str(&section.to_html(i + 1));
        }
        out.push_str("</main>\n");
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer>{}</footer>", escape(&self.footer));
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    /// Writes the page; see [`write_atomically`].
    ///
    /// # Errors
    /// [`ReportError::Write`] when the file cannot be written.
    pub fn write_to(&self, path: impl AsRef<Path>) -> Result<(), ReportError> {
        write_atomically(path, self.to_html().as_bytes())
    }
}
