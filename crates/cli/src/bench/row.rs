//! One figure of one run.

/// A metric and its value. Names are those of the harness that also runs the peers.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub metric: String,
    pub value: f64,
}

impl Row {
    pub fn new(metric: &str, value: f64) -> Row {
        Row { metric: metric.to_owned(), value }
    }
}
