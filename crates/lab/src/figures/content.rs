//! What a figure of any kind is made of, and what becomes of it.

use super::pairs::{self, PairData};
use super::samples::{self, SampleData};
use super::{Figure, FigureData, FigureError, Style, data, draw, map};
use crate::reference::Reference;
use crate::results::{Distribution, Results, Timeline};
use anabranch_report::Drawing;

/// What figures are drawn from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'s> {
    /// One row for each run.
    pub results: &'s Results,
    /// What runs noted over time.
    pub timelines: &'s [Timeline],
    /// How often they saw each delay.
    pub distributions: &'s [Distribution],
    /// What others measured.
    pub references: &'s [Reference],
}

/// The numbers of a figure.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// A value for each place of each line.
    Spots(FigureData),
    /// Values that are distributed.
    Samples(SampleData),
    /// Two values for each run.
    Pairs(PairData),
}

impl Content {
    /// Takes the numbers of a figure from what there is.
    ///
    /// # Errors
    /// [`FigureError`] when what the figure draws is not there. Points without runs are left empty.
    pub fn of(figure: &Figure, from: Sources<'_>) -> Result<Content, FigureError> {
        match figure.kind {
            Style::Line | Style::Bars | Style::Stacked | Style::Series | Style::Heatmap => {
                data::resolve(figure, from.results, from.timelines, from.references).map(Content::Spots)
            }
            Style::Ecdf | Style::Box => samples::resolve(figure, from).map(Content::Samples),
            Style::Scatter => pairs::resolve(figure, from.results).map(Content::Pairs),
        }
    }

    /// The name of each of its plots; a single one has none.
    pub fn panels(&self) -> Vec<&str> {
        match self {
            Content::Spots(d) => d.panels.iter().map(|p| p.name.as_str()).collect(),
            Content::Samples(d) => d.panels.iter().map(|p| p.name.as_str()).collect(),
            Content::Pairs(d) => d.panels.iter().map(|p| p.name.as_str()).collect(),
        }
    }

    /// Its plots, one for each panel.
    pub fn draw(&self, figure: &Figure) -> Vec<Drawing> {
        match self {
            Content::Spots(d) if figure.kind == Style::Heatmap => map::draw(figure, d),
            Content::Spots(d) => draw::draw(figure, d),
            Content::Samples(d) => samples::draw(figure, d),
            Content::Pairs(d) => pairs::draw(figure, d),
        }
    }

    /// Its numbers as CSV.
    pub fn to_csv(&self) -> String {
        match self {
            Content::Spots(d) => draw::to_csv(d),
            Content::Samples(d) => samples::to_csv(d),
            Content::Pairs(d) => pairs::to_csv(d),
        }
    }

    /// What marks and intervals mean.
    pub fn note(&self, figure: &Figure) -> String {
        match self {
            Content::Spots(d) => d.panels.first().map(|p| draw::note(figure, p)).unwrap_or_default(),
            Content::Samples(d) => samples::note(figure, d),
            Content::Pairs(d) => pairs::note(figure, d),
        }
    }
}
