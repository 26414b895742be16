//! A lab's cells as a table in a Parquet file: a row a cell, a column an axis, a column a figure.

use crate::{Ended, Ending, Error, Lab};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

/// Key of the schema in the file's metadata, and the schema.
const SCHEMA_KEY: &str = "nearmiss.schema";
const SCHEMA: &str = "nearmiss/lab-cells/1";

/// A value of each cell, which may be missing.
enum Values {
    Texts(Vec<Option<String>>),
    Counts(Vec<Option<i64>>),
    Figures(Vec<Option<f64>>),
}

impl Lab {
    /// A Parquet file of all cells that have ended. Errors: it cannot be encoded; `file` is its name there.
    pub fn parquet(&self, file: &Path) -> std::result::Result<Vec<u8>, Error> {
        encode(&columns(self)).map_err(|error| Error::io(file)(std::io::Error::other(error.to_string())))
    }
}

fn columns(lab: &Lab) -> Vec<(String, Values)> {
    let cells: Vec<&Ended> = lab.ended().values().collect();
    let texts = |of: &dyn Fn(&Ended) -> Option<String>| Values::Texts(cells.iter().map(|cell| of(cell)).collect());
    let figures = |of: &dyn Fn(&Ended) -> Option<f64>| Values::Figures(cells.iter().map(|cell| of(cell)).collect());
    let counts = |of: &dyn Fn(&Ended) -> i64| Values::Counts(cells.iter().map(|cell| Some(of(cell))).collect());
    let mut columns = vec![
        ("cell".to_owned(), texts(&|cell| Some(cell.cell.clone()))),
        ("workload".to_owned(), texts(&|cell| Some(cell.workload.clone()))),
        ("repetition".to_owned(), counts(&|cell| i64::from(cell.repetition))),
        ("how".to_owned(), texts(&|cell| Some(how(cell.how).to_owned()))),
        ("took_s".to_owned(), figures(&|cell| Some(cell.took_s))),
    ];
    for axis in &lab.spec.axis {
        columns.push((axis.name.clone(), texts(&|cell| cell.levels.get(&axis.name).cloned())));
    }
    let numbers: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.figures.keys()).collect();
    for name in numbers {
        columns.push((name.clone(), figures(&|cell| cell.figures.get(name).copied())));
    }
    let words: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.words.keys()).collect();
    for name in words {
        columns.push((name.clone(), texts(&|cell| cell.words.get(name).cloned())));
    }
    with_unique_names(columns)
}

fn how(how: Ending) -> &'static str {
    match how {
        Ending::Done => "done",
        Ending::Incomplete => "incomplete",
        Ending::Failed => "failed",
        Ending::TimedOut => "timed-out",
    }
}

/// An axis may be called as a figure is: the later column then gets an underscore.
fn with_unique_names(mut columns: Vec<(String, Values)>) -> Vec<(String, Values)> {
    let mut taken = BTreeSet::new();
    for (name, _) in &mut columns {
        while !taken.insert(name.clone()) {
            name.push('_');
        }
    }
    columns
}

fn encode(columns: &[(String, Values)]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(field).collect::<Result<Vec<TypePtr>>>()?;
    let schema = Type::group_type_builder("cells").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA.to_owned())]))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in columns {
        match values {
            Values::Texts(values) => {
                put::<ByteArrayType, _>(&mut group, values, |text| ByteArray::from(text.as_str()))?;
            }
            Values::Counts(values) => put::<Int64Type, _>(&mut group, values, |count| *count)?,
            Values::Figures(values) => put::<DoubleType, _>(&mut group, values, |figure| *figure)?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field((name, values): &(String, Values)) -> Result<TypePtr> {
    let (physical, logical) = match values {
        Values::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Counts(_) => (Physical::INT64, None),
        Values::Figures(_) => (Physical::DOUBLE, None),
    };
    let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).build()?))
}

/// Writes the next column: which values are there, and those.
fn put<'a, T: DataType, V>(
    group: &mut Group<'_, '_>,
    values: &'a [Option<V>],
    of: impl Fn(&'a V) -> T::T,
) -> Result<()> {
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().map(of).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&values, Some(&there), None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn missing_values_are_null_and_names_are_made_unique() {
        let columns = with_unique_names(vec![
            ("cell".to_owned(), Values::Texts(vec![Some("a".to_owned()), Some("b".to_owned())])),
            ("n".to_owned(), Values::Texts(vec![None, Some("two".to_owned())])),
            ("n".to_owned(), Values::Figures(vec![Some(0.5), None])),
            ("r".to_owned(), Values::Counts(vec![Some(1), Some(2)])),
        ]);
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &encode(&columns).unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let names: Vec<String> =
            reader.metadata().file_metadata().schema().get_fields().iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(names, ["cell", "n", "n_", "r"]);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        assert_eq!((rows[0].get_string(0).unwrap().as_str(), rows[0].get_double(2).unwrap()), ("a", 0.5));
        assert!(rows[0].get_string(1).is_err() && rows[1].get_double(2).is_err());
        assert_eq!((rows[1].get_string(1).unwrap().as_str(), rows[1].get_long(3).unwrap()), ("two", 2));
    }
}
