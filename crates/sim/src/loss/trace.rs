//! Losses as they were recorded, packet by packet.

use super::LossModel;
use crate::TraceError;
use crate::trace::lines;
use anabranch_base::{Instant, RandomStream};

/// The fate of each packet in the order they are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossTrace {
    /// Is the packet of this place lost?
    pub lost: Vec<bool>,
    /// Begin again at the end? If not, nothing is lost after it.
    pub repeat: bool,
}

impl LossTrace {
    /// Reads a trace of `0` (arrived) and `1` (lost), in one line or many, with or without blanks and
    /// commas in between. Comments from `#` on are skipped.
    ///
    /// # Errors
    /// The first line that holds anything else; a trace without any packet.
    pub fn parse(text: &str, repeat: bool) -> Result<Self, TraceError> {
        let mut lost = Vec::new();
        for (number, line) in lines(text) {
            for sign in line.chars() {
                match sign {
                    '0' => lost.push(false),
                    '1' => lost.push(true),
                    ' ' | '\t' | ',' => {}
                    other => {
                        let what = format!("`{other}` is neither 0 (arrived) nor 1 (lost)");
                        return Err(TraceError::at(number, what));
                    }
                }
            }
        }
        if lost.is_empty() {
            return Err(TraceError::at(0, "there is no packet in this trace: write 0 (arrived) and 1 (lost)"));
        }
        Ok(LossTrace { lost, repeat })
    }

    /// Reads the numbers of lost packets, counted from 0, separated by blanks, commas or new lines.
    /// Comments from `#` on are skipped.
    ///
    /// # Errors
    /// The first line with something that is no number.
    pub fn parse_numbers(text: &str) -> Result<Vec<u64>, TraceError> {
        let mut numbers = Vec::new();
        for (number, line) in lines(text) {
            for word in line.split([' ', '\t', ',']).filter(|w| !w.is_empty()) {
                let wrong =
                    |_| TraceError::at(number, format!("`{word}` is no packet number: write whole numbers from 0"));
                numbers.push(word.parse().map_err(wrong)?);
            }
        }
        Ok(numbers)
    }

    pub(super) fn mean(&self) -> f64 {
        let lost = self.lost.iter().filter(|lost| **lost).count();
        if self.repeat && lost > 0 { lost as f64 / self.lost.len() as f64 } else { 0.0 }
    }
}

pub(super) struct Model {
    trace: LossTrace,
    seen: usize,
}

impl Model {
    pub(super) fn new(trace: LossTrace) -> Self {
        Model { trace, seen: 0 }
    }
}

impl LossModel for Model {
    fn loses(&mut self, _now: Instant, _random: &mut RandomStream) -> bool {
        if self.seen == self.trace.lost.len() && self.trace.repeat {
            self.seen = 0;
        }
        let lost = self.trace.lost.get(self.seen).copied().unwrap_or(false);
        self.seen = self.seen.saturating_add(1).min(self.trace.lost.len());
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(trace: LossTrace, n: usize) -> Vec<usize> {
        let mut random = RandomStream::named(0, "trace");
        let mut model = Model::new(trace);
        (0..n).filter(|_| model.loses(Instant::ZERO, &mut random)).collect()
    }

    #[test]
    fn a_trace_is_followed_and_repeated() {
        let trace = LossTrace::parse("# run 7\n0,1,0\n\n1 0 # end\n", true).unwrap();
        assert_eq!(trace.lost, [false, true, false, true, false]);
        assert_eq!(lost(trace.clone(), 12), [1, 3, 6, 8, 11]);
        assert_eq!(trace.mean(), 0.4);
        assert_eq!(lost(LossTrace { repeat: false, ..trace }, 12), [1, 3]);
        assert_eq!(lost(LossTrace { lost: vec![], repeat: true }, 4), [] as [usize; 0]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| LossTrace::parse(text, true).unwrap_err().to_string();
        assert_eq!(error("01\n0x1\n"), "line 2: `x` is neither 0 (arrived) nor 1 (lost)");
        assert_eq!(error("\n"), "there is no packet in this trace: write 0 (arrived) and 1 (lost)");
        assert_eq!(LossTrace::parse_numbers("3, 17\n#no\n20").unwrap(), [3, 17, 20]);
        let error = LossTrace::parse_numbers("3\n\n-4").unwrap_err();
        assert_eq!(error.to_string(), "line 3: `-4` is no packet number: write whole numbers from 0");
    }
}
