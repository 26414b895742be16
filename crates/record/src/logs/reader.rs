//! Reading a log row by row.

use super::cell::{Kind, MOST_TEXT_BYTES, Stored};
use super::error::LogError;
use super::footer::{self, Group};
use super::pages::Pages;
use super::row::Row;
use super::schema;
use super::source::Source;
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows decoded at once.
const BATCH_ROWS: usize = 4096;

/// The rows of a log, in the order of the file. At most a page of each column and a batch of rows is in memory.
///
/// The file may be hostile: its claims are checked, and the first impossible one ends the rows with an error.
pub struct Reader<R> {
    path: PathBuf,
    source: Source,
    schema: SchemaDescPtr,
    groups: std::vec::IntoIter<Group>,
    columns: Vec<Decoded>,
    /// Rows of the group that are not decoded yet.
    left: usize,
    /// Rows of the batch, and how many of them were handed out.
    batch: usize,
    handed: usize,
    row: u64,
    rows: u64,
    ended: bool,
    kind: PhantomData<R>,
}

/// The values of a column in the batch, and where more come from.
enum Decoded {
    Numbers(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Texts(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
    /// The file is of before the column.
    Absent(i64),
}

impl<R: Row> Reader<R> {
    /// Opens a log and checks its footer.
    ///
    /// Errors: a file that cannot be read, is no log, or is a log of other rows or of another version.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let source = Source::open(path).map_err(|e| LogError::io(path, e))?;
        let groups = footer::read::<R>(&source, path)?;
        let schema = schema::of(R::COLUMNS).map_err(|e| LogError::damaged(path, e))?;
        Ok(Reader {
            path: path.to_owned(),
            source,
            schema: Arc::new(SchemaDescriptor::new(schema)),
            rows: groups.iter().map(|group| group.rows as u64).sum(),
            groups: groups.into_iter(),
            columns: Vec::new(),
            left: 0,
            batch: 0,
            handed: 0,
            row: 0,
            ended: false,
            kind: PhantomData,
        })
    }

    /// Returns the number of rows that the file specifies.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn next_row(&mut self) -> Result<Option<R>, LogError> {
        while self.handed == self.batch {
            if self.left == 0 && !self.next_group()? {
                return Ok(None);
            }
            self.next_batch()?;
        }
        let at = self.handed;
        self.handed += 1;
        self.row += 1;
        self.load(at).map(Some)
    }

    fn next_group(&mut self) -> Result<bool, LogError> {
        let Some(group) = self.groups.next() else { return Ok(false) };
        let columns = group.chunks.iter().zip(R::COLUMNS).enumerate().map(|(place, (chunk, column))| {
            let Some(chunk) = chunk else { return Ok(Decoded::Absent(column.absent.unwrap_or_default())) };
            let of = self.schema.column(place);
            let pages = Pages::open(&self.source, chunk, column.kind, of.clone(), group.rows)?;
            let pages: Box<dyn PageReader> = Box::new(pages);
            Ok(match column.kind {
                Kind::Number => Decoded::Numbers(ColumnReaderImpl::new(of, pages), Vec::new()),
                Kind::Text => Decoded::Texts(ColumnReaderImpl::new(of, pages), Vec::new()),
            })
        });
        let columns: parquet::errors::Result<Vec<Decoded>> = columns.collect();
        self.columns = columns.map_err(|e| LogError::damaged(&self.path, e))?;
        self.left = group.rows;
        Ok(true)
    }

    fn next_batch(&mut self) -> Result<(), LogError> {
        let wanted = self.left.min(BATCH_ROWS);
        for (decoded, column) in self.columns.iter_mut().zip(R::COLUMNS) {
            let read = decoded.read(wanted);
            let why = match read {
                Ok(read) if read == wanted => continue,
                Ok(_) => format!("column `{}` ends before row {}", column.name, self.row + wanted as u64),
                Err(e) => format!("column `{}`: {e}", column.name),
            };
            return Err(LogError::damaged(&self.path, why));
        }
        self.left -= wanted;
        self.batch = wanted;
        self.handed = 0;
        Ok(())
    }

    fn load(&self, at: usize) -> Result<R, LogError> {
        let mut columns = self.columns.iter().zip(R::COLUMNS);
        let mut last = "";
        let row = R::load(&mut || {
            let (decoded, column) = columns.next().ok_or("is missing")?;
            last = column.name;
            decoded.stored(at)
        });
        let row = row.map_err(|why| LogError::Value { path: self.path.clone(), row: self.row, column: last, why })?;
        match row.sound() {
            Ok(()) => Ok(row),
            Err(why) => Err(LogError::Row { path: self.path.clone(), row: self.row, why }),
        }
    }
}

impl Decoded {
    /// Reads at most so many values in place of those of the last batch.
    fn read(&mut self, most: usize) -> parquet::errors::Result<usize> {
        let (records, _, _) = match self {
            Decoded::Numbers(reader, values) => {
                values.clear();
                reader.read_records(most, None, None, values)?
            }
            Decoded::Texts(reader, values) => {
                values.clear();
                reader.read_records(most, None, None, values)?
            }
            Decoded::Absent(_) => return Ok(most),
        };
        Ok(records)
    }

    fn stored(&self, at: usize) -> Result<Stored<'_>, String> {
        match self {
            Decoded::Numbers(_, values) => values.get(at).map(|number| Stored::Number(*number)),
            Decoded::Texts(_, values) => {
                let bytes = values.get(at).map_or(&[][..], ByteArray::data);
                if bytes.len() > MOST_TEXT_BYTES {
                    return Err(format!("is a text of {} bytes, expected at most {MOST_TEXT_BYTES}", bytes.len()));
                }
                let text = std::str::from_utf8(bytes).map_err(|_| "is no text (not UTF-8)")?;
                Some(Stored::Text(text.into()))
            }
            Decoded::Absent(number) => Some(Stored::Number(*number)),
        }
        .ok_or_else(|| "is missing".to_owned())
    }
}

impl<R: Row> Iterator for Reader<R> {
    type Item = Result<R, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.next_row().transpose();
        self.ended = !matches!(row, Some(Ok(_)));
        row
    }
}
