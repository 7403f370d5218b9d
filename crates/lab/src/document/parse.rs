//! From the text of a file to values that know their lines.

use super::{Entry, Node, Origin, Problem, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads the text of a file; `file` is the whole of it.
pub(crate) fn parse(file: &Origin, text: &str) -> Result<Table, Problem> {
    let lines = Lines { file, breaks: text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i).collect() };
    let table = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or_else(|| file.clone(), |span| lines.of(span.start));
        Problem::new(&at, e.message().replace('\n', "; "))
    })?;
    lines.table(table.into_inner(), file.clone())
}

/// Finds the lines of a text.
struct Lines<'f> {
    file: &'f Origin,
    breaks: Vec<usize>,
}

impl Lines<'_> {
    fn of(&self, offset: usize) -> Origin {
        self.file.line(self.breaks.partition_point(|b| *b < offset) + 1)
    }

    fn table(&self, table: DeTable<'_>, at: Origin) -> Result<Table, Problem> {
        let mut made = Table::new(&at);
        for (key, value) in table {
            // The header of a table may be that of several keys: the key's own place is nearer than the value's.
            let key_at = self.of(key.span().start);
            let node = self.node(value.into_inner(), key_at.clone())?;
            made.insert(&key.into_inner(), Entry { key: key_at, node });
        }
        Ok(made)
    }

    fn node(&self, value: DeValue<'_>, at: Origin) -> Result<Node, Problem> {
        let range = |what: &str, text: &str| Problem::new(&at, format!("`{text}` is too large for {what}"));
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(n) => {
                let whole = i64::from_str_radix(n.as_str(), n.radix());
                Value::Integer(whole.map_err(|_| range("a whole number", n.as_str()))?)
            }
            DeValue::Float(n) => Value::Float(n.as_str().parse().map_err(|_| range("a number", n.as_str()))?),
            DeValue::Boolean(b) => Value::Boolean(b),
            DeValue::Datetime(date) => Value::Date(date),
            DeValue::Array(list) => {
                let element = |v: Spanned<DeValue<'_>>| {
                    let at = self.of(v.span().start);
                    self.node(v.into_inner(), at)
                };
                Value::List(list.into_iter().map(element).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table, at.clone())?),
        };
        Ok(Node { value, at })
    }
}
