//! The footer of a log: which schema, which columns, where the row groups lie. Every field of it is checked.
//!
//! The footer is not read by the `parquet` crate, which allocates and recurses along the footer's tree of columns (a
//! count of children in a damaged file can make it allocate 17 GB), but by a reader with a limit.

use super::cell::Kind;
use super::error::{LogError, line};
use super::row::Row;
use super::source::Source;
use super::{Column, SCHEMA_KEY};
use parquet::file::reader::{ChunkReader, Length};
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{
    ColumnChunk, ColumnMetaData, CompressionCodec, FieldRepetitionType, FileMetaData, RowGroup, SchemaElement, Type,
};
use std::path::Path;

/// Largest footer. A row group of 65,536 rows has some 3 kB in it.
const MOST_FOOTER_BYTES: usize = 4 << 20;
/// Most rows of a file.
const MOST_ROWS: u64 = 1 << 32;
/// Bytes at the end of a file that contain the offset of the footer.
const TAIL_BYTES: usize = 8;

/// A row group.
pub(super) struct Group {
    /// Rows.
    pub rows: usize,
    /// One for each column of the row type, in its order; none for a column that is younger than the file.
    pub chunks: Vec<Option<Chunk>>,
}

/// The values of a column in a row group.
pub(super) struct Chunk {
    pub data_page_offset: i64,
    pub dictionary_page_offset: Option<i64>,
    pub bytes: i64,
    /// Compressed by Snappy; else not at all.
    pub compressed: bool,
}

/// Reads and checks the footer of a log of `R`.
pub(super) fn read<R: Row>(source: &Source, path: &Path) -> Result<Vec<Group>, LogError> {
    let damaged = |why: String| LogError::damaged(path, why);
    let metadata = metadata(source).map_err(damaged)?;
    let schema = schema(&metadata);
    if let Some(found) = schema.filter(|found| *found != R::SCHEMA) {
        return Err(LogError::Schema { path: path.to_owned(), found: line(found), expected: R::SCHEMA });
    }
    let places = places(&metadata.schema, R::COLUMNS).map_err(|why| match schema {
        Some(_) => damaged(why),
        None => LogError::Unversioned { path: path.to_owned(), why: line(&why), expected: R::SCHEMA },
    })?;
    let groups: Result<Vec<Group>, String> =
        metadata.row_groups.iter().map(|group| self::group(group, &places, R::COLUMNS, source.len())).collect();
    let groups = groups.map_err(damaged)?;
    let rows = groups.iter().map(|group| group.rows as u64).fold(0, u64::saturating_add);
    if rows > MOST_ROWS {
        return Err(damaged(format!("claims {rows} rows")));
    }
    Ok(groups)
}

fn metadata(source: &Source) -> Result<FileMetaData, String> {
    let too_short = "is no Parquet file, or only the beginning of one".to_owned();
    let Some(tail_at) = source.len().checked_sub(TAIL_BYTES as u64) else { return Err(too_short) };
    let tail = source.get_bytes(tail_at, TAIL_BYTES).map_err(|e| e.to_string())?;
    let Some((length, b"PAR1")) = tail.split_first_chunk() else { return Err(too_short) };
    let length = u32::from_le_bytes(*length) as usize;
    let Some(at) = tail_at.checked_sub(length as u64).filter(|_| length <= MOST_FOOTER_BYTES) else {
        return Err(format!("claims a footer of {length} bytes"));
    };
    let footer = source.get_bytes(at, length).map_err(|e| e.to_string())?;
    // An element of a list takes at least one byte, and eight of the limit.
    let mut protocol = TCompactInputProtocol::new(footer.as_ref(), 8 * MOST_FOOTER_BYTES);
    FileMetaData::read_from_in_protocol(&mut protocol).map_err(|e| format!("its footer cannot be read ({e})"))
}

/// The schema that the file names.
fn schema(metadata: &FileMetaData) -> Option<&str> {
    let entries = metadata.key_value_metadata.iter().flatten();
    entries.filter(|entry| entry.key == SCHEMA_KEY).find_map(|entry| entry.value.as_deref())
}

/// Returns each column's place among those of the file, if it is there; else the error of the first that does not fit.
fn places(tree: &[SchemaElement], columns: &[Column]) -> Result<Vec<Option<usize>>, String> {
    let (root, leaves) = tree.split_first().ok_or("has no columns")?;
    if root.num_children.and_then(|n| usize::try_from(n).ok()) != Some(leaves.len()) {
        return Err("has columns of columns".to_owned());
    }
    let places: Result<Vec<Option<usize>>, String> = columns.iter().map(|column| place(leaves, column)).collect();
    let places = places?;
    match leaves.iter().enumerate().find(|(place, _)| !places.contains(&Some(*place))) {
        Some((_, unknown)) => Err(format!("has an unknown column `{}`", unknown.name)),
        None => Ok(places),
    }
}

fn place(leaves: &[SchemaElement], column: &Column) -> Result<Option<usize>, String> {
    let Column { name, kind, absent } = column;
    let Some((place, leaf)) = leaves.iter().enumerate().find(|(_, leaf)| leaf.name == *name) else {
        return if absent.is_some() { Ok(None) } else { Err(format!("has no column `{name}`")) };
    };
    if leaf.type_ != Some(physical(*kind)) || leaf.num_children.is_some_and(|n| n != 0) {
        return Err(format!("has a column `{name}` that does not keep {}", kind.name()));
    }
    if leaf.repetition_type != Some(FieldRepetitionType::REQUIRED) {
        return Err(format!("has a column `{name}` that may be null"));
    }
    Ok(Some(place))
}

fn physical(kind: Kind) -> Type {
    match kind {
        Kind::Number => Type::INT64,
        Kind::Text => Type::BYTE_ARRAY,
    }
}

fn group(group: &RowGroup, places: &[Option<usize>], columns: &[Column], file_bytes: u64) -> Result<Group, String> {
    let kept = places.iter().flatten().count();
    if group.columns.len() != kept {
        return Err(format!("a row group has {} columns of {kept}", group.columns.len()));
    }
    let chunks: Result<Vec<Option<Chunk>>, String> = places
        .iter()
        .zip(columns)
        .map(|(place, column)| {
            let Some(place) = place else { return Ok(None) };
            let chunk = group.columns.get(*place).and_then(|chunk| chunk_of(chunk, column, file_bytes));
            chunk.map(Some).ok_or_else(|| format!("a row group has no values of column `{}`", column.name))
        })
        .collect();
    let rows = usize::try_from(group.num_rows).map_err(|_| format!("a row group claims {} rows", group.num_rows))?;
    Ok(Group { rows, chunks: chunks? })
}

/// Returns `None` if the footer's description of the chunk is impossible.
fn chunk_of(chunk: &ColumnChunk, column: &Column, file_bytes: u64) -> Option<Chunk> {
    let of: &ColumnMetaData = chunk.meta_data.as_ref()?;
    let compressed = match of.codec {
        CompressionCodec::SNAPPY => true,
        CompressionCodec::UNCOMPRESSED => false,
        _ => return None,
    };
    let start = of.dictionary_page_offset.unwrap_or(of.data_page_offset);
    let end = u64::try_from(start).ok()?.checked_add(u64::try_from(of.total_compressed_size).ok()?)?;
    let sound = of.data_page_offset >= 0 && end <= file_bytes && of.type_ == physical(column.kind);
    sound.then_some(Chunk {
        data_page_offset: of.data_page_offset,
        dictionary_page_offset: of.dictionary_page_offset,
        bytes: of.total_compressed_size,
        compressed,
    })
}
