//! One figure of one run, and the line in which a run tells it.

/// A metric and its value. Names are those of the harness that also runs the peers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub metric: String,
    pub value: f64,
}

impl Row {
    pub fn new(metric: &str, value: f64) -> Row {
        Row { metric: metric.to_owned(), value }
    }

    /// Reads `test,stack,transport,size,metric,value`; none when it is something else.
    pub fn parse(line: &str) -> Option<Row> {
        let mut fields = line.trim().split(',').skip(4);
        let (metric, value) = (fields.next()?, fields.next()?.parse().ok()?);
        Some(Row { metric: metric.to_owned(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn a_line_of_the_harness() {
        let row = Row::parse("bulk,dcsctp,mem,1024,cpu_s_per_GB,1.86\n");
        assert_eq!(row, Some(Row::new("cpu_s_per_GB", 1.86)));
        assert_eq!(Row::parse("stalled without a timer"), None);
        assert_eq!(Row::parse("a,b,c,d,e,f"), None);
    }
}
