//! Reads a trace, block by block, trusting nothing.

use super::bad::Bad;
use super::columns::Decoder;
use super::{BLOCK_HEAD_BYTES, END_MAGIC, MAGIC, MAX_BLOCK_RECORDS, MAX_HEAD_BYTES, MAX_RAW_BYTES, TAIL_BYTES};
use super::{TraceError, TraceHeader};
use crate::abi::ChunkHeader;
use crate::reference::Record;
use crate::side::{Context, Insn, SideTables};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Most bytes the side tables may unpack to for each byte they take: real ones stay below 40, so a file cannot claim
/// memory out of proportion to its own size.
const MAX_TABLES_RATIO: u64 = 256;

/// A block's chunks; reused from block to block.
#[derive(Debug, Default)]
pub struct Block {
    headers: Vec<ChunkHeader>,
    records: Vec<Record>,
}

impl Block {
    /// The chunks, in order.
    pub fn chunks(&self) -> impl Iterator<Item = (&ChunkHeader, &[Record])> {
        let mut rest = self.records.as_slice();
        self.headers.iter().map(move |header| {
            let (these, tail) = rest.split_at(header.records as usize);
            rest = tail;
            (header, these)
        })
    }

    /// Records of all chunks.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

/// An open trace.
pub struct TraceReader {
    file: File,
    path: PathBuf,
    header: TraceHeader,
    side: SideTables,
    blocks: Vec<u64>,
    /// End of the last block.
    end: u64,
    packed: Vec<u8>,
    raw: Vec<u8>,
    decoder: Decoder,
}

/// A file that should be a trace, while its parts are read.
struct Opened<'a> {
    file: &'a File,
    path: &'a Path,
    size: u64,
}

/// Offsets of the parts behind the blocks, and the number of blocks.
struct Tail {
    tables: u64,
    index: u64,
    blocks: u64,
}

impl Opened<'_> {
    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.to_owned(), source }
    }

    fn damaged(&self, offset: u64, what: &str) -> TraceError {
        TraceError::Damaged { path: self.path.to_owned(), offset, what: what.into() }
    }

    /// The header, and the offset of the first block.
    fn head(&self) -> Result<(TraceHeader, u64), TraceError> {
        let mut head = [0; 12];
        match self.file.read_exact_at(&mut head, 0) {
            Ok(()) if head[..8] == MAGIC => {}
            Err(source) if source.kind() != io::ErrorKind::UnexpectedEof => return Err(self.failed(source)),
            _ => return Err(TraceError::NotATrace { path: self.path.to_owned() }),
        }
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if length > MAX_HEAD_BYTES || u64::from(length) + 12 + TAIL_BYTES > self.size {
            return Err(self.damaged(8, "the head's length is impossible"));
        }
        let mut json = vec![0; length as usize];
        self.file.read_exact_at(&mut json, 12).map_err(|source| self.failed(source))?;
        let header: TraceHeader =
            serde_json::from_slice(&json).map_err(|e| self.damaged(12, &format!("the head is not understood: {e}")))?;
        impossible(&header).map_or(Ok(()), |what| Err(self.damaged(12, &what)))?;
        Ok((header, 12 + u64::from(length)))
    }

    fn tail(&self, first_block: u64) -> Result<Tail, TraceError> {
        let end = self.size - TAIL_BYTES;
        let mut tail = [0; TAIL_BYTES as usize];
        self.file.read_exact_at(&mut tail, end).map_err(|source| self.failed(source))?;
        if tail[24..] != END_MAGIC {
            return Err(self.damaged(self.size - 8, "the file was cut short: its end is missing"));
        }
        let number = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().unwrap_or_default());
        let (tables, index, blocks) = (number(0), number(8), number(16));
        if tables < first_block || index < tables || index > end || blocks > self.size / BLOCK_HEAD_BYTES as u64 {
            return Err(self.damaged(end, "the end points outside the file"));
        }
        Ok(Tail { tables, index, blocks })
    }

    /// Offsets of the blocks.
    fn blocks(&self, first_block: u64, tail: &Tail) -> Result<Vec<u64>, TraceError> {
        let index = self.unpacked(tail.index, self.size - TAIL_BYTES, tail.blocks * 8)?;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let blocks: Vec<u64> = index.chunks_exact(8).map(number).collect();
        let mut low = first_block;
        for offset in &blocks {
            if *offset < low || offset + BLOCK_HEAD_BYTES as u64 > tail.tables {
                return Err(self.damaged(tail.index, "a block's offset is impossible"));
            }
            low = offset + BLOCK_HEAD_BYTES as u64;
        }
        if blocks.len() as u64 != tail.blocks {
            return Err(self.damaged(tail.index, "the index is shorter than the end states"));
        }
        Ok(blocks)
    }

    fn tables(&self, tail: &Tail) -> Result<SideTables, TraceError> {
        let most = (tail.index - tail.tables) * MAX_TABLES_RATIO;
        let tables = self.unpacked(tail.tables, tail.index, most)?;
        decode_tables(&tables).map_err(|what| self.damaged(tail.tables, what))
    }

    /// The unpacked bytes of a part, no more than `most`.
    fn unpacked(&self, from: u64, to: u64, most: u64) -> Result<Vec<u8>, TraceError> {
        let mut packed = vec![0; (to - from) as usize];
        self.file.read_exact_at(&mut packed, from).map_err(|source| self.failed(source))?;
        let mut out = Vec::new();
        zstd::Decoder::new(packed.as_slice())
            .and_then(|decoder| decoder.take(most + 1).read_to_end(&mut out))
            .map_err(|e| self.damaged(from, &e.to_string()))?;
        if out.len() as u64 > most { Err(self.damaged(from, "unpacks to more than it may")) } else { Ok(out) }
    }
}

/// Returns why no tap writes such a header to a file; none: one may.
fn impossible(header: &TraceHeader) -> Option<String> {
    let (cpus, nodes) = (header.cpus as usize, header.node_bytes.len());
    if header.schema != super::SCHEMA {
        Some(format!("schema is `{}`, this nearmiss reads `{}`", header.schema, super::SCHEMA))
    } else if cpus == 0 || cpus > crate::abi::MAX_VCPUS || nodes > crate::abi::MAX_NODES {
        Some("impossible number of CPUs or nodes".to_owned())
    } else if !(4..=6).contains(&header.filter.line_log2) {
        Some("the filter's line must be 16, 32 or 64 bytes".to_owned())
    } else if header.filter.first_level.is_some() {
        Some("the tap ran the first level: such records are for one model as they come".to_owned())
    } else {
        None
    }
}

impl TraceReader {
    /// Opens a trace and reads its head, tables and index.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let opened = Opened { file: &file, path, size };
        let (header, first_block) = opened.head()?;
        let tail = opened.tail(first_block)?;
        let blocks = opened.blocks(first_block, &tail)?;
        let side = opened.tables(&tail)?;
        Ok(TraceReader {
            file,
            path: path.to_owned(),
            header,
            side,
            blocks,
            end: tail.tables,
            packed: Vec::new(),
            raw: Vec::new(),
            decoder: Decoder::new(),
        })
    }

    /// Returns the trace's header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The tables beside the stream.
    pub fn side(&self) -> &SideTables {
        &self.side
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error for a validator's finding in block `block`.
    pub fn bad_record(&self, block: usize, bad: Bad) -> TraceError {
        let Bad { vcpu, record, chunk, what } = bad;
        TraceError::BadRecord { path: self.path.clone(), vcpu, record, block: block as u64, chunk, what }
    }

    /// Reads block `n` (0..[`TraceReader::blocks`]) into `block`.
    pub fn read(&mut self, n: usize, block: &mut Block) -> Result<(), TraceError> {
        let offset = self.blocks[n];
        let limit = self.blocks.get(n + 1).copied().unwrap_or(self.end);
        let path = self.path.clone();
        let damaged =
            |what: &str| TraceError::Damaged { path: path.clone(), offset, what: format!("block {n}: {what}") };
        let mut head = [0; BLOCK_HEAD_BYTES];
        let failed = |source| TraceError::Io { path: path.clone(), source };
        self.file.read_exact_at(&mut head, offset).map_err(failed)?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (packed, raw, chunks, records) = (number(0) as usize, number(4) as usize, number(8), number(12) as usize);
        if (packed + BLOCK_HEAD_BYTES) as u64 != limit - offset {
            return Err(damaged("its length is not that of its place in the file"));
        }
        if raw > MAX_RAW_BYTES || records > MAX_BLOCK_RECORDS || chunks as usize > MAX_BLOCK_RECORDS {
            return Err(damaged("it claims to be larger than a block may be"));
        }
        self.packed.resize(packed, 0);
        self.file.read_exact_at(&mut self.packed, offset + BLOCK_HEAD_BYTES as u64).map_err(failed)?;
        self.raw.resize(raw, 0);
        let unpacked =
            zstd::bulk::decompress_to_buffer(&self.packed, &mut self.raw).map_err(|e| damaged(&e.to_string()))?;
        if unpacked != raw {
            return Err(damaged("it unpacks to another length than it states"));
        }
        self.decoder.decode(&self.raw, chunks, records, &mut block.headers, &mut block.records).map_err(damaged)
    }
}

pub(super) fn encode_tables(side: &SideTables, out: &mut Vec<u8>) {
    let numbers = [
        side.insns.len() as u64,
        side.contexts.len() as u64,
        side.prefetches,
        side.io_accesses,
        side.lost_before_share,
        side.skipped,
    ];
    for n in numbers {
        out.extend_from_slice(&n.to_le_bytes());
    }
    out.extend_from_slice(bytemuck::cast_slice(&side.insns));
    out.extend_from_slice(bytemuck::cast_slice(&side.contexts));
}

fn decode_tables(bytes: &[u8]) -> Result<SideTables, &'static str> {
    let (head, body) = bytes.split_at_checked(48).ok_or("the tables are cut short")?;
    let number = |n: usize| u64::from_le_bytes(head[8 * n..8 * n + 8].try_into().unwrap_or_default());
    let insn_bytes = usize::try_from(number(0)).ok().and_then(|n| n.checked_mul(size_of::<Insn>()));
    let (insns, contexts) =
        insn_bytes.and_then(|n| body.split_at_checked(n)).ok_or("the instruction table is cut short")?;
    if contexts.len() as u64 != number(1).saturating_mul(size_of::<Context>() as u64) {
        return Err("the context table has another length than it states");
    }
    Ok(SideTables {
        insns: insns.chunks_exact(size_of::<Insn>()).map(bytemuck::pod_read_unaligned).collect(),
        contexts: contexts.chunks_exact(size_of::<Context>()).map(bytemuck::pod_read_unaligned).collect(),
        prefetches: number(2),
        io_accesses: number(3),
        lost_before_share: number(4),
        skipped: number(5),
    })
}
