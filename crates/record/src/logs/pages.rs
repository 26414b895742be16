//! The pages of a column, checked before they are decoded.
//!
//! The decoders of the `parquet` crate panic at lengths that contradict the page, and its decompression allocates what a
//! page claims. The pages that the decoders get from here are checked, and decompressed within a limit: to the crate the
//! file is not compressed.

use super::cell::Kind;
use super::footer::Chunk;
use super::source::{MOST_PAGE_BYTES, Source};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use std::sync::Arc;

/// Most values of a dictionary; the writer of today ends it at a megabyte.
const MOST_ENTRIES: usize = 1 << 20;

/// Pages that a decoder can be given.
pub(super) struct Pages {
    pages: SerializedPageReader<Source>,
    compressed: bool,
    kind: Kind,
    rows_left: usize,
    has_dictionary: bool,
}

impl Pages {
    pub(super) fn open(source: &Source, chunk: &Chunk, kind: Kind, column: ColumnDescPtr, rows: usize) -> Result<Self> {
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::UNCOMPRESSED)
            .set_data_page_offset(chunk.data_page_offset)
            .set_dictionary_page_offset(chunk.dictionary_page_offset)
            .set_total_compressed_size(chunk.bytes)
            .build()?;
        Ok(Pages {
            pages: SerializedPageReader::new(Arc::new(source.clone()), &metadata, rows, None)?,
            compressed: chunk.compressed,
            kind,
            rows_left: rows,
            has_dictionary: false,
        })
    }

    fn checked(&mut self, page: Page) -> Result<Page> {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                let buf = self.expanded(buf)?;
                self.check_dictionary(num_values as usize, encoding, &buf)?;
                Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted })
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
                let buf = self.expanded(buf)?;
                self.check_data(num_values as usize, encoding, &buf)?;
                Ok(Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics })
            }
            Page::DataPageV2 { .. } => refuse("a page of a kind that nearmiss does not write"),
        }
    }

    fn check_dictionary(&mut self, values: usize, encoding: Encoding, data: &[u8]) -> Result<()> {
        if self.has_dictionary || values > MOST_ENTRIES {
            return refuse(&format!("a dictionary that cannot have {values} values"));
        }
        self.has_dictionary = true;
        match encoding {
            Encoding::PLAIN if has_values(data, values, self.kind) => Ok(()),
            other => refuse(&format!("a dictionary that is not soundly encoded by {other}")),
        }
    }

    fn check_data(&mut self, values: usize, encoding: Encoding, data: &[u8]) -> Result<()> {
        let Some(left) = self.rows_left.checked_sub(values) else {
            return refuse(&format!("a page of {values} values where {} rows are left", self.rows_left));
        };
        self.rows_left = left;
        match encoding {
            Encoding::PLAIN if has_values(data, values, self.kind) => Ok(()),
            Encoding::RLE_DICTIONARY if self.has_dictionary && has_runs(data) => Ok(()),
            other => refuse(&format!("a page that is not soundly encoded by {other}")),
        }
    }

    fn expanded(&self, packed: Bytes) -> Result<Bytes> {
        if !self.compressed || packed.is_empty() {
            return Ok(packed);
        }
        let failed = |e: snap::Error| ParquetError::General(e.to_string());
        let length = snap::raw::decompress_len(&packed).map_err(failed)?;
        if length > MOST_PAGE_BYTES {
            return refuse(&format!("a page of {length} bytes, more than a log can have"));
        }
        Ok(snap::raw::Decoder::new().decompress_vec(&packed).map_err(failed)?.into())
    }
}

/// Whether data have so many plain values: numbers of eight bytes; texts, each after its length in four bytes.
fn has_values(data: &[u8], values: usize, kind: Kind) -> bool {
    if kind == Kind::Number {
        return values <= data.len() / 8;
    }
    let mut rest = data;
    (0..values).all(|_| {
        let Some((length, text)) = rest.split_first_chunk() else { return false };
        let end = text.get(u32::from_le_bytes(*length) as usize..);
        rest = end.unwrap_or_default();
        end.is_some()
    })
}

/// Whether indices into a dictionary are runs with headers of at most five bytes. Runs follow the width of an index in
/// bits: equal indices once, others packed in eights.
fn has_runs(data: &[u8]) -> bool {
    let Some((width, mut rest)) = data.split_first() else { return false };
    let width = usize::from(*width);
    while !rest.is_empty() {
        let Some(last) = rest.iter().take(5).position(|byte| byte & 0x80 == 0) else { return false };
        let (header, values) = rest.split_at(last + 1);
        let header = header.iter().rev().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f));
        let bytes = if header & 1 == 1 { (header >> 1) * width } else { width.div_ceil(8) };
        // The last run may end early.
        rest = values.get(bytes..).unwrap_or_default();
    }
    true
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(ParquetError::General(why.to_owned()))
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
