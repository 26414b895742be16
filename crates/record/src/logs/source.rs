//! A log's file as the Parquet library reads it: at places of its own, never more at once than a log can need.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The largest piece of a file that is read at once, and the largest page after decompression. A page that [`super::Writer`]
/// writes has at most some 20 MB.
pub(super) const MOST_PAGE_BYTES: usize = 32 << 20;

/// A file and its length.
#[derive(Clone)]
pub(super) struct Source {
    file: Arc<File>,
    bytes: u64,
}

impl Source {
    /// Opens a regular file; to open a pipe would wait for its writer.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Source { file: Arc::new(file), bytes })
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(At { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.bytes);
        if end.is_none() || length > MOST_PAGE_BYTES {
            return Err(ParquetError::General(format!("a piece of {length} bytes, more than a log can have there")));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads on from a place; other readers of the file do not move it.
pub(super) struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
