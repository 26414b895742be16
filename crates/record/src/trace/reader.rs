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

impl TraceReader {
    /// Opens a trace and reads its head, tables and index.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let damaged = |offset, what: &str| TraceError::Damaged { path: path.to_owned(), offset, what: what.into() };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut head = [0; 12];
        match file.read_exact_at(&mut head, 0) {
            Ok(()) if head[..8] == MAGIC => {}
            Err(source) if source.kind() != io::ErrorKind::UnexpectedEof => return Err(failed(source)),
            _ => return Err(TraceError::NotATrace { path: path.to_owned() }),
        }
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if length > MAX_HEAD_BYTES || u64::from(length) + 12 + TAIL_BYTES > size {
            return Err(damaged(8, "the head's length is impossible"));
        }
        let mut json = vec![0; length as usize];
        file.read_exact_at(&mut json, 12).map_err(failed)?;
        let header: TraceHeader =
            serde_json::from_slice(&json).map_err(|e| damaged(12, &format!("the head is not understood: {e}")))?;
        if header.schema != super::SCHEMA {
            return Err(damaged(
                12,
                &format!("schema is `{}`, this nearmiss reads `{}`", header.schema, super::SCHEMA),
            ));
        }
        if header.cpus == 0
            || header.cpus as usize > crate::abi::MAX_VCPUS
            || header.node_bytes.len() > crate::abi::MAX_NODES
        {
            return Err(damaged(12, "impossible number of CPUs or nodes"));
        }
        if !(4..=6).contains(&header.filter.line_log2) {
            return Err(damaged(12, "the filter's line must be 16, 32 or 64 bytes"));
        }
        if header.filter.first_level.is_some() {
            return Err(damaged(12, "the tap ran the first level: such records are for one model as they come"));
        }

        let first_block = 12 + u64::from(length);
        let mut tail = [0; TAIL_BYTES as usize];
        file.read_exact_at(&mut tail, size - TAIL_BYTES).map_err(failed)?;
        if tail[24..] != END_MAGIC {
            return Err(damaged(size - 8, "the file was cut short: its end is missing"));
        }
        let number = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().unwrap_or_default());
        let (tables, index, count) = (number(0), number(8), number(16));
        if tables < first_block || index < tables || index > size - TAIL_BYTES || count > size / BLOCK_HEAD_BYTES as u64
        {
            return Err(damaged(size - TAIL_BYTES, "the end points outside the file"));
        }
        let section = |from: u64, to: u64, limit: u64| -> Result<Vec<u8>, TraceError> {
            let mut packed = vec![0; (to - from) as usize];
            file.read_exact_at(&mut packed, from).map_err(failed)?;
            let mut out = Vec::new();
            zstd::Decoder::new(packed.as_slice())
                .and_then(|d| d.take(limit + 1).read_to_end(&mut out))
                .map_err(|e| damaged(from, &e.to_string()))?;
            if out.len() as u64 > limit { Err(damaged(from, "unpacks to more than it may")) } else { Ok(out) }
        };
        let blocks: Vec<u64> = section(index, size - TAIL_BYTES, count * 8)?
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
            .collect();
        let mut low = first_block;
        for offset in &blocks {
            if *offset < low || offset + BLOCK_HEAD_BYTES as u64 > tables {
                return Err(damaged(index, "a block's offset is impossible"));
            }
            low = offset + BLOCK_HEAD_BYTES as u64;
        }
        if blocks.len() as u64 != count {
            return Err(damaged(index, "the index is shorter than the end states"));
        }
        let side = decode_tables(&section(tables, index, (index - tables) * MAX_TABLES_RATIO)?)
            .map_err(|what| damaged(tables, what))?;
        Ok(TraceReader {
            file,
            path: path.to_owned(),
            header,
            side,
            blocks,
            end: tables,
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
