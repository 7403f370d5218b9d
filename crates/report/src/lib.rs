//! Tables, plots and one self-contained HTML page from measured numbers.
//!
//! Everything is a pure function of its input: the same numbers give the same bytes. Nothing here asks for the time,
//! runs a script or refers to the network, so a report opens from disk years later as it does today. Text in a
//! name or a label comes from outside and is escaped; a number that cannot be drawn (NaN, infinite) is left out and
//! shows as a gap.
//!
//! ```
//! use anabranch_report::{LinePlot, Page, Section, Table, Verdict};
//!
//! let plot = LinePlot::new("Rate per path")
//!     .x("time", "s")
//!     .y("rate", "Mbit/s")
//!     .series("wlan", &[(0.0, 5.8), (1.0, 5.9)])
//!     .series("3g", &[(0.0, 2.1), (1.0, 2.3)])
//!     .span(0.4, 0.6, "path cut");
//! let table = Table::new("Runs")
//!     .text("run")
//!     .number("unusable", "%", 2)
//!     .row(("wlan", 12.5))
//!     .row(("best", 0.25))
//!     .highlight();
//! println!("{}", table.to_text());
//! let page = Page::new("Demo")
//!     .verdict(Verdict::pass("control ok"))
//!     .section(Section::new("Runs").paragraph("One table, one plot.").table(&table).plot(&plot));
//! assert!(page.to_html().starts_with("<!DOCTYPE html>"));
//! ```

mod error;
mod output;
mod page;
#[cfg(feature = "png")]
mod png;
mod section;
mod style;
mod svg;
mod table;
mod text;

pub use error::ReportError;
pub use output::{write_atomically, write_together};
pub use page::Page;
#[cfg(feature = "png")]
pub use png::Rasteriser;
pub use section::{Fact, Section, Verdict};
pub use svg::{BarPlot, BoxPlot, BoxStats, Drawing, HeatMap, LinePlot, Plot, over_time};
pub use table::{Cell, Row, Table};
pub use text::escape;
