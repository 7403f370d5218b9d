//! Results as Parquet, for readers with a data frame: the columns of results.csv with their types.

use super::folder::columns;
use crate::results::{Results, Row, Table};
use anabranch_report::{ReportError, write_atomically};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::path::Path;
use std::sync::Arc;

/// Writes `results.parquet`, whole or not at all.
///
/// # Errors
/// A file that cannot be written.
pub fn write(dir: &Path, results: &Results) -> Result<(), ReportError> {
    let path = dir.join("results.parquet");
    let bytes = bytes(results)
        .map_err(|e| ReportError::Write { path: path.clone(), source: std::io::Error::other(e.to_string()) })?;
    write_atomically(path, &bytes)
}

/// One row for each run: scenario, sweep keys as text, seed, metrics as doubles, fingerprint as an unsigned number. What
/// a scenario has not is null. The unit of a metric is in the file's metadata, as `unit:NAME`.
fn bytes(results: &Results) -> Result<Vec<u8>, ParquetError> {
    let (keys, metrics) = columns(results);
    let mut fields = vec![text("scenario", Repetition::REQUIRED)?];
    for key in &keys {
        fields.push(text(key, Repetition::OPTIONAL)?);
    }
    fields.push(number("seed", Physical::INT64, Repetition::REQUIRED)?);
    for metric in &metrics {
        fields.push(number(metric, Physical::DOUBLE, Repetition::OPTIONAL)?);
    }
    fields.push(number("fingerprint", Physical::INT64, Repetition::REQUIRED)?);
    let schema = Arc::new(Type::group_type_builder("run").with_fields(fields).build()?);
    let all = results.tables.iter().flat_map(|t| &t.metrics);
    let units: Vec<KeyValue> = metrics
        .iter()
        .filter_map(|name| all.clone().find(|m| m.name == *name))
        .map(|m| KeyValue::new(format!("unit:{}", m.name), m.unit.clone()))
        .collect();
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(Some(units)).build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let rows: Vec<(&Table, &Row)> = results.tables.iter().flat_map(|t| t.rows.iter().map(move |r| (t, r))).collect();
    column::<ByteArrayType>(&mut group, rows.iter().map(|(t, _)| Some(t.scenario.as_str().into())), false)?;
    for key in &keys {
        column::<ByteArrayType>(&mut group, rows.iter().map(|(t, r)| t.key(r, key).map(ByteArray::from)), true)?;
    }
    column::<Int64Type>(&mut group, rows.iter().map(|(_, r)| Some(r.seed as i64)), false)?;
    for metric in &metrics {
        column::<DoubleType>(&mut group, rows.iter().map(|(t, r)| t.metric(r, metric)), true)?;
    }
    // All 64 bits are kept; the type says that they have no sign.
    column::<Int64Type>(&mut group, rows.iter().map(|(_, r)| Some(r.fingerprint as i64)), false)?;
    group.close()?;
    file.into_inner()
}

fn text(name: &str, repetition: Repetition) -> Result<TypePtr, ParquetError> {
    let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
    Ok(Arc::new(column.with_repetition(repetition).with_logical_type(Some(LogicalType::String)).build()?))
}

fn number(name: &str, physical: Physical, repetition: Repetition) -> Result<TypePtr, ParquetError> {
    let unsigned = (physical == Physical::INT64).then_some(LogicalType::integer(64, false));
    let column = Type::primitive_type_builder(name, physical);
    Ok(Arc::new(column.with_repetition(repetition).with_logical_type(unsigned).build()?))
}

/// The next column of the group; with `optional` a value may be missing.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
    optional: bool,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".to_owned()));
    };
    let values: Vec<Option<T::T>> = values.collect();
    let there: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, optional.then_some(there.as_slice()), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Form, Metric};
    use crate::run::folder::to_csv;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn results() -> Results {
        let table = |scenario: &str, key: &str, metric: &str, values: [Option<f64>; 2]| Table {
            scenario: scenario.to_owned(),
            keys: vec![key.to_owned()],
            metrics: vec![Metric { name: metric.to_owned(), unit: "bit/s".to_owned() }],
            rows: (1..=2u64)
                .map(|seed| Row {
                    point: vec!["64KB, quoted".to_owned()],
                    seed,
                    values: vec![values[seed as usize - 1]],
                    fingerprint: u64::MAX - seed,
                })
                .collect(),
        };
        let tables = vec![
            table("e1", "rbuf", "main.goodput", [Some(0.1 + 0.2), None]),
            table("e2", "loss", "main.delay", [Some(5e-324), Some(-0.0)]),
        ];
        Results { experiment: "x".to_owned(), form: Form::Full, tables }
    }

    /// As results.csv writes it.
    fn cell(name: &str, f: &Field) -> String {
        match f {
            Field::Null => String::new(),
            Field::Str(s) if s.contains(',') => format!("\"{s}\""),
            Field::Str(s) => s.clone(),
            Field::ULong(n) if name == "fingerprint" => format!("{n:016x}"),
            Field::ULong(n) => n.to_string(),
            Field::Double(v) => v.to_string(),
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn it_reads_back_as_the_csv_beside_it() {
        let dir = tempfile::tempdir().expect("a folder");
        write(dir.path(), &results()).expect("written");
        let file = std::fs::File::open(dir.path().join("results.parquet")).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let units = reader.metadata().file_metadata().key_value_metadata().expect("units").clone();
        assert!(units.contains(&KeyValue::new("unit:main.delay".to_owned(), "bit/s".to_owned())), "{units:?}");
        let mut lines = Vec::new();
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let columns: Vec<(&String, &Field)> = row.get_column_iter().collect();
            if lines.is_empty() {
                lines.push(columns.iter().map(|c| c.0.as_str()).collect::<Vec<_>>().join(","));
            }
            lines.push(columns.iter().map(|(n, f)| cell(n, f)).collect::<Vec<_>>().join(","));
        }
        let csv = to_csv(&results());
        assert_eq!(lines, csv.lines().collect::<Vec<_>>());
        assert_eq!(lines.len(), 5);
    }
}
