//! What the link layer of a cable says of itself to the sender: keys beside those of netem.

use anabranch_base::{Duration, Modulation, Technology};
use anabranch_sim::FrameReports;
use anabranch_sim::netem::units::{self, ValueError};
use anabranch_sim::netem::{Cursor, Guest, ParseError};

/// Keys of a cable, of both directions alike.
pub(super) const OF_LINK_LAYER: [&str; 4] = ["technology", "modulation", "frame", REPORT];

/// Without this one the others do nothing.
pub(super) const REPORT: &str = "report";

/// The keys, while a cable is read.
pub(super) struct LinkLayer(pub FrameReports);

impl Default for LinkLayer {
    fn default() -> Self {
        LinkLayer(FrameReports::NONE)
    }
}

impl Guest for LinkLayer {
    fn words(&self) -> &'static [&'static str] {
        &OF_LINK_LAYER
    }

    fn read(&mut self, word: &str, at: Option<Duration>, words: &mut Cursor<'_>) -> Result<bool, ParseError> {
        if at.is_some() {
            let says = "cannot change while a path runs; give it at the start, before any `at`";
            return Err(ParseError::about(word, says));
        }
        match word {
            "technology" => self.0.technology = words.read(word, "a kind of link such as wlan", technology)?,
            "modulation" => self.0.modulation = words.read(word, "a modulation such as qpsk", modulation)?,
            "frame" => self.0.frame = words.read(word, "bytes of a frame such as 1500B", frame)?,
            _ => self.0.every = words.read(word, "a time such as 100ms, or none", every)?,
        }
        Ok(false)
    }
}

fn listed(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn technology(text: &str) -> Result<Technology, ValueError> {
    text.parse().map_err(|_| ValueError::needs(listed(&Technology::WORDS.map(|w| w.0)), text))
}

fn modulation(text: &str) -> Result<Modulation, ValueError> {
    text.parse().map_err(|_| ValueError::needs(listed(&Modulation::WORDS.map(|w| w.0)), text))
}

fn frame(text: &str) -> Result<u32, ValueError> {
    let bytes = units::bytes(text)?;
    let needs = || ValueError::needs(format!("1 to {} bytes", u32::MAX), text);
    u32::try_from(bytes).ok().filter(|b| *b > 0).ok_or_else(needs)
}

fn every(text: &str) -> Result<Option<Duration>, ValueError> {
    if text == "none" {
        return Ok(None);
    }
    let every = units::time(text)?;
    // Reports that come more often than packets would be all that a run does.
    (every >= Duration::from_millis(1)).then_some(Some(every)).ok_or_else(|| ValueError::needs("1ms or more", text))
}
