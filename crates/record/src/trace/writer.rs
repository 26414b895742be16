//! Writes a trace: under a temporary name until it is whole.

use super::columns::Encoder;
use super::{BLOCK_RECORDS, END_MAGIC, MAGIC, TraceError, TraceHeader};
use crate::abi::ChunkHeader;
use crate::reference::Record;
use crate::side::SideTables;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Size of a written trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Records in the file, payload included.
    pub records: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Writes chunks in the order of their `seq`.
pub struct TraceWriter {
    file: File,
    path: PathBuf,
    temporary: PathBuf,
    encoder: Encoder,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    packed: Vec<u8>,
    offset: u64,
    /// Offset of each block, and the records before it.
    blocks: Vec<(u64, u64)>,
    records: u64,
    finished: bool,
}

impl TraceWriter {
    /// Begins a trace at `path`.
    pub fn create(path: &Path, header: &TraceHeader) -> Result<Self, TraceError> {
        let temporary = crate::run::temporary(path);
        let failed = |source| TraceError::Io { path: temporary.clone(), source };
        let mut compressor = zstd::bulk::Compressor::new(1).map_err(failed)?;
        compressor.include_checksum(true).map_err(failed)?;
        let mut file = File::create(&temporary).map_err(failed)?;
        let json = serde_json::to_vec(header).map_err(|e| failed(e.into()))?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&(json.len() as u32).to_le_bytes());
        head.extend_from_slice(&json);
        file.write_all(&head).map_err(failed)?;
        Ok(TraceWriter {
            file,
            path: path.to_owned(),
            offset: head.len() as u64,
            temporary,
            encoder: Encoder::new(),
            compressor,
            raw: Vec::new(),
            packed: Vec::new(),
            blocks: Vec::new(),
            records: 0,
            finished: false,
        })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Adds a chunk. After an error (disk full) call [`TraceWriter::finish`]: it keeps the blocks that fit.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), TraceError> {
        self.encoder.chunk(header, records);
        if self.encoder.records() >= BLOCK_RECORDS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let (chunks, records) = (self.encoder.chunks(), self.encoder.records() as u32);
        if chunks == 0 {
            return Ok(());
        }
        self.raw.clear();
        self.encoder.finish(&mut self.raw);
        let mut head = Vec::with_capacity(16);
        self.pack()?;
        for n in [self.packed.len() as u32, self.raw.len() as u32, chunks, records] {
            head.extend_from_slice(&n.to_le_bytes());
        }
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(&self.packed));
        written.map_err(|source| self.failed(source))?;
        self.blocks.push((self.offset, self.records));
        self.offset += (head.len() + self.packed.len()) as u64;
        self.records += u64::from(records);
        Ok(())
    }

    fn pack(&mut self) -> Result<(), TraceError> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        let packed = self.compressor.compress_to_buffer(&self.raw, &mut self.packed);
        packed.map(|_| ()).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.temporary.clone(), source }
    }

    /// Writes the tables and the index and gives the file its name. When the disk is full, gives up as many of the last
    /// blocks as it takes; the summary then has fewer records than were added.
    pub fn finish(mut self, side: &SideTables) -> Result<TraceSummary, TraceError> {
        let mut outcome = self.flush().and_then(|()| self.tail(side));
        while let Err(TraceError::Io { source, .. }) = &outcome
            && source.kind() == io::ErrorKind::StorageFull
            && let Some((offset, records)) = self.blocks.pop()
        {
            (self.offset, self.records) = (offset, records);
            outcome = self.tail(side);
        }
        outcome?;
        self.file.sync_data().map_err(|source| self.failed(source))?;
        std::fs::rename(&self.temporary, &self.path).map_err(|source| self.failed(source))?;
        self.finished = true;
        Ok(TraceSummary { records: self.records, bytes: self.offset })
    }

    fn tail(&mut self, side: &SideTables) -> Result<(), TraceError> {
        let cut = |w: &mut File, offset| w.set_len(offset).and_then(|()| w.seek(SeekFrom::Start(offset)).map(|_| ()));
        cut(&mut self.file, self.offset).map_err(|source| self.failed(source))?;
        let tables = self.offset;
        self.raw.clear();
        super::reader::encode_tables(side, &mut self.raw);
        self.pack()?;
        let mut end = std::mem::take(&mut self.packed);
        let index = tables + end.len() as u64;
        self.raw.clear();
        for (offset, _) in &self.blocks {
            self.raw.extend_from_slice(&offset.to_le_bytes());
        }
        self.pack()?;
        end.extend_from_slice(&self.packed);
        for n in [tables, index, self.blocks.len() as u64] {
            end.extend_from_slice(&n.to_le_bytes());
        }
        end.extend_from_slice(&END_MAGIC);
        self.file.write_all(&end).map_err(|source| self.failed(source))?;
        self.offset = tables + end.len() as u64;
        Ok(())
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing half-written stays behind; an error here can no longer be reported.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
