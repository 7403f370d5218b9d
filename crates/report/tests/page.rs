//! The page as a whole: well formed, self-contained, safe against what names contain, the same every time.

mod common;

use anabranch_report::{BarPlot, Fact, LinePlot, Page, Section, Table, Verdict};

const NASTY: &str = "<script>alert('x')</script> & \"q\" \u{1b}[31m \u{0} http://example.invalid/";

fn nasty_page() -> Page {
    let table = Table::new(NASTY).text(NASTY).number(NASTY, NASTY, 1).row((NASTY, 1.0)).row((NASTY, f64::NAN));
    let line = LinePlot::new(NASTY)
        .note(NASTY)
        .x(NASTY, NASTY)
        .y(NASTY, NASTY)
        .series(NASTY, [(0.0, 1.0), (1.0, 2.0)])
        .points(NASTY, [(0.5, 1.0)])
        .span(0.2, 0.4, NASTY)
        .marker(0.6, NASTY)
        .limit(1.5, NASTY);
    let bars = BarPlot::new(NASTY, [NASTY, "b"]).note(NASTY).y(NASTY, NASTY, 1).bars(NASTY, [1.0, 2.0]);
    let lying = bars.clone().bars(NASTY, [3.0, 1.0]).horizontal();
    Page::new(NASTY)
        .lead(NASTY)
        .verdict(Verdict::info(NASTY))
        .facts(&[Fact::new(NASTY, 1.0, 1, NASTY), Fact::text(NASTY, NASTY)])
        .section(Section::new(NASTY).paragraph(NASTY).table(&table).plot(&line).plots(&[&bars, &lying]))
        .section(Section::new(NASTY).details(NASTY, NASTY).verdict(&Verdict::warn(NASTY)))
        .footer(NASTY)
}

#[test]
fn whatever_stands_in_names_the_page_is_well_formed_and_runs_nothing() {
    let html = nasty_page().to_html();
    let elements = common::parse(&html).unwrap();
    assert!(!elements.iter().any(|e| matches!(e.0.as_str(), "script" | "iframe" | "object" | "embed" | "img" | "use")));
    for (name, attributes) in &elements {
        for (key, value) in attributes {
            assert!(!key.starts_with("on"), "{name} {key}");
            // The only link is the empty icon, which keeps browsers from asking a server for one.
            let reference = matches!(key.as_str(), "href" | "src" | "srcset" | "data" | "action" | "xlink:href");
            assert!(!reference || value == "data:,", "{name} {key}={value}");
        }
    }
}

#[test]
fn nothing_outside_is_mentioned() {
    let plot = LinePlot::new("a").series("b", [(0.0, 1.0)]).span(0.0, 1.0, "c");
    let html = Page::new("t").section(Section::new("s").plot(&plot)).to_html();
    for word in ["http", "//", "url(", "@import", "<script"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("<meta charset=\"utf-8\"/>") && html.contains("prefers-color-scheme:dark"));
    assert!(html.find("<meta charset").is_some_and(|at| at < 1_024), "browsers look no further");
}

#[test]
fn long_pages_have_contents_that_lead_to_their_sections() {
    let page = |n: usize| {
        let page = Page::new("t");
        (0..n).fold(page, |p, i| p.section(Section::new(format!("part {i}")))).to_html()
    };
    assert!(!page(5).contains("<nav>"));
    let elements = common::parse(&page(6)).unwrap();
    let values = |key: &str| -> Vec<String> {
        elements.iter().flat_map(|e| &e.1).filter(|a| a.0 == key).map(|a| a.1.clone()).collect()
    };
    let links: Vec<String> = values("href").iter().filter_map(|h| h.strip_prefix('#').map(str::to_owned)).collect();
    assert_eq!(links.len(), 6);
    assert_eq!(links, values("id"));
}

#[test]
fn equal_input_is_equal_bytes_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.html"), folder.path().join("b.html"));
    nasty_page().write_to(&a).unwrap();
    nasty_page().write_to(&b).unwrap();
    let bytes = std::fs::read(&a).unwrap();
    assert_eq!(bytes, std::fs::read(&b).unwrap());
    assert_eq!(String::from_utf8(bytes).unwrap(), nasty_page().to_html());
    assert!(nasty_page().write_to(folder.path().join("missing/c.html")).is_err());
}
