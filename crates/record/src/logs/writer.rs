//! Writing a log in row groups, under a temporary name until it is whole.

use super::cell::{Kind, Stored};
use super::error::LogError;
use super::row::Row;
use super::{SCHEMA_KEY, schema};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a full row group.
const GROUP_ROWS: usize = 1 << 16;
/// Bytes of text that end a row group early, so that no page exceeds a reader's limit.
const GROUP_TEXT_BYTES: usize = 8 << 20;

/// Writes the rows of a log. Only [`Writer::finish`] gives the file its name; a writer that is dropped leaves nothing.
pub struct Writer<R> {
    path: PathBuf,
    temporary: PathBuf,
    out: Option<SerializedFileWriter<File>>,
    columns: Vec<Gathered>,
    rows: usize,
    text_bytes: usize,
    kind: PhantomData<R>,
}

/// The values of a column for the next row group.
enum Gathered {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

/// Writes a whole log into the run directory, under the name of its rows.
pub fn write<R: Row>(directory: &Path, rows: impl IntoIterator<Item = R>) -> Result<(), LogError> {
    let mut writer = Writer::create(&directory.join(R::FILE))?;
    for row in rows {
        writer.push(&row)?;
    }
    writer.finish()
}

impl<R: Row> Writer<R> {
    /// Begins a log that is to have this path.
    pub fn create(path: &Path) -> Result<Self, LogError> {
        let temporary = path.with_extension(format!("part-{}", std::process::id()));
        let file = File::create(&temporary).map_err(|e| LogError::io(path, e))?;
        let mut writer = Writer {
            path: path.to_owned(),
            temporary,
            out: None,
            columns: R::COLUMNS.iter().map(|column| Gathered::new(column.kind)).collect(),
            rows: 0,
            text_bytes: 0,
            kind: PhantomData,
        };
        let out = parquet_writer::<R>(file);
        writer.out = Some(out.map_err(|e| writer.failed(e))?);
        Ok(writer)
    }

    /// Adds a row.
    pub fn push(&mut self, row: &R) -> Result<(), LogError> {
        let mut columns = self.columns.iter_mut();
        let text_bytes = &mut self.text_bytes;
        row.store(&mut |stored| {
            if let Some(column) = columns.next() {
                *text_bytes += column.gather(stored);
            }
        });
        self.rows += 1;
        if self.rows < GROUP_ROWS && self.text_bytes < GROUP_TEXT_BYTES {
            return Ok(());
        }
        self.write_group().map_err(|e| self.failed(e))
    }

    /// Writes the rest and gives the file its name.
    pub fn finish(mut self) -> Result<(), LogError> {
        self.write_group().map_err(|e| self.failed(e))?;
        let Some(out) = self.out.take() else { return Ok(()) };
        let closed = out.into_inner().map_err(into_io).and_then(|file| file.sync_data());
        let named = closed.and_then(|()| fs::rename(&self.temporary, &self.path));
        named.map_err(|e| LogError::io(&self.path, e))
    }

    fn write_group(&mut self) -> ParquetResult<()> {
        let Some(out) = self.out.as_mut().filter(|_| self.rows > 0) else { return Ok(()) };
        let mut group = out.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut chunk) = group.next_column()? else { break };
            match column {
                Gathered::Numbers(values) => {
                    chunk.typed::<Int64Type>().write_batch(values, None, None)?;
                    values.clear();
                }
                Gathered::Texts(values) => {
                    chunk.typed::<ByteArrayType>().write_batch(values, None, None)?;
                    values.clear();
                }
            }
            chunk.close()?;
        }
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }

    fn failed(&self, error: ParquetError) -> LogError {
        LogError::io(&self.path, into_io(error))
    }
}

impl<R> Drop for Writer<R> {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = fs::remove_file(&self.temporary);
    }
}

impl Gathered {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Gathered::Numbers(Vec::new()),
            Kind::Text => Gathered::Texts(Vec::new()),
        }
    }

    /// Takes a cell; returns its bytes of text. Rows declare the kind of a column and of its cells in one place.
    fn gather(&mut self, stored: Stored<'_>) -> usize {
        match (self, stored) {
            (Gathered::Numbers(values), Stored::Number(number)) => values.push(number),
            (Gathered::Texts(values), Stored::Text(text)) => {
                let bytes = text.len();
                values.push(match text {
                    Cow::Borrowed(text) => ByteArray::from(text),
                    Cow::Owned(text) => ByteArray::from(text.into_bytes()),
                });
                return bytes;
            }
            _ => {}
        }
        0
    }
}

fn parquet_writer<R: Row>(file: File) -> ParquetResult<SerializedFileWriter<File>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(SCHEMA_KEY.to_owned(), R::SCHEMA.to_owned())]))
        .build();
    SerializedFileWriter::new(file, schema::of(R::COLUMNS)?, Arc::new(properties))
}

fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause.to_string()),
        },
        other => io::Error::other(other.to_string()),
    }
}
