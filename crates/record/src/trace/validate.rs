//! Checks that a tap can have recorded a stream, before anything is modelled from it.

use super::bad::Bad;
use super::{Block, TraceError, TraceHeader, TraceReader};
use crate::abi::ChunkHeader;
use crate::code::CodeBlock;
use crate::reference::{Control, Kind, Record};
use crate::side::SideTables;

/// Follows a stream chunk by chunk and names the first record that cannot be.
#[derive(Clone, Debug)]
pub struct Validator {
    cpus: u32,
    pages: u64,
    line_mask: u64,
    next_seq: u64,
    slice: u64,
    /// Records seen, and instructions at the end of the last chunk, by vCPU.
    streams: Vec<(u64, u64)>,
    /// Instruction and context table lengths, where they are known already.
    tables: Option<(u32, u32)>,
    references: u64,
    finished: bool,
}

impl Validator {
    /// For a stream with this header; `side` where the tables are known (a file), `None` while recording.
    pub fn new(header: &TraceHeader, side: Option<&SideTables>) -> Self {
        Validator {
            cpus: header.cpus,
            pages: header.node_bytes.iter().map(|b| b / 4096).sum(),
            line_mask: (1u64 << header.filter.line_log2) - 1,
            next_seq: 0,
            slice: 0,
            streams: vec![(0, 0); header.cpus as usize],
            tables: side.map(|s| (s.insns.len() as u32, s.contexts.len() as u32)),
            references: 0,
            finished: false,
        }
    }

    /// Number of records so far that are references or fetches: the others are controls and their payload.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Checks the next chunk.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), Bad> {
        let vcpu = header.vcpu;
        let start = self.streams.get(vcpu as usize).map_or(0, |s| s.0);
        let bad = |at: usize, what: String| Bad { vcpu, record: start + at as u64, chunk: header.seq, what };
        if vcpu >= self.cpus {
            return Err(bad(0, format!("vCPU {vcpu} of {}", self.cpus)));
        }
        if header.seq != self.next_seq {
            return Err(bad(0, format!("chunk {} where {} should be", header.seq, self.next_seq)));
        }
        if header.slice < self.slice || self.finished {
            return Err(bad(0, "a chunk behind the end of its slice or of the stream".into()));
        }
        if header.instructions < self.streams[vcpu as usize].1 {
            return Err(bad(0, "the instruction count runs backwards".into()));
        }
        let mut at = 0;
        while let Some(record) = records.get(at) {
            match record.kind() {
                None => return Err(bad(at, "unknown kind".into())),
                Some(Kind::Control) => at += self.control(*record, &records[at + 1..]).map_err(|what| bad(at, what))?,
                Some(_) => {
                    self.reference(*record).map_err(|what| bad(at, what))?;
                    self.references += 1;
                }
            }
            at += 1;
        }
        self.next_seq += 1;
        self.slice = header.slice;
        self.streams[vcpu as usize] = (start + records.len() as u64, header.instructions);
        self.finished = header.flags & crate::abi::CHUNK_LAST != 0;
        Ok(())
    }

    fn reference(&self, record: Record) -> Result<(), String> {
        if (record.a & self.line_mask) + u64::from(record.size()) > self.line_mask + 1 {
            return Err(format!("{} bytes at {:#x} leave their line", record.size(), record.vaddr()));
        }
        if record.physical_page() >= self.pages {
            return Err(format!(
                "physical page {:#x} lies outside the {} pages of memory",
                record.physical_page(),
                self.pages
            ));
        }
        match self.tables {
            Some((insns, _)) if record.insn().0 >= insns => {
                Err(format!("instruction {} of a table of {insns}", record.insn()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of payload records.
    fn control(&self, record: Record, behind: &[Record]) -> Result<usize, String> {
        let payload = record.payload_records().ok_or("unknown control kind")?;
        let payload = behind.get(..payload).ok_or("a control record's payload leaves its chunk")?;
        match (Control::decode(record, payload)?, self.tables) {
            (Control::Context(id), Some((_, contexts))) if id >= contexts.max(1) => {
                Err(format!("calling context {id} of a tree of {contexts}"))
            }
            (Control::Share { owner, .. }, _) if owner >= self.cpus => {
                Err(format!("line shared by vCPU {owner} of {}", self.cpus))
            }
            (Control::Code(block), _) => self.code(&block).map(|()| payload.len()),
            _ => Ok(payload.len()),
        }
    }

    fn code(&self, block: &CodeBlock<'_>) -> Result<(), String> {
        if block.paddr != u64::MAX && block.paddr >= self.pages.saturating_mul(4096) {
            return Err(format!("code at {:#x} lies outside the {} pages of memory", block.paddr, self.pages));
        }
        let Some((insns, _)) = self.tables else { return Ok(()) };
        match block.named().find(|(_, insn)| insn.0 >= insns) {
            Some((_, insn)) => Err(format!("code of instruction {insn} of a table of {insns}")),
            None => Ok(()),
        }
    }
}

/// Checks the tables: a context's parent comes before it, and calls name instructions.
fn tables(side: &SideTables) -> Result<(), String> {
    for (id, context) in side.contexts.iter().enumerate().skip(1) {
        if context.parent as usize >= id || context.call as usize >= side.insns.len() {
            return Err(format!("calling context {id} has caller {} and call {}", context.parent, context.call));
        }
    }
    Ok(())
}

/// Reads the whole trace; `take` gets each chunk when its block was found to be sound.
pub fn each_chunk<E: From<TraceError>>(
    reader: &mut TraceReader,
    mut take: impl FnMut(&ChunkHeader, &[Record]) -> Result<(), E>,
) -> Result<(), E> {
    each_block(reader, |block| block.chunks().try_for_each(|(header, records)| take(header, records)))
}

/// Reads the whole trace; `take` gets each block when it was found to be sound.
pub fn each_block<E: From<TraceError>>(
    reader: &mut TraceReader,
    take: impl FnMut(&Block) -> Result<(), E>,
) -> Result<(), E> {
    let all = reader.blocks();
    first_blocks(reader, all, take)
}

/// Takes so many blocks from the trace's begin on.
pub fn first_blocks<E: From<TraceError>>(
    reader: &mut TraceReader,
    count: usize,
    mut take: impl FnMut(&Block) -> Result<(), E>,
) -> Result<(), E> {
    tables(reader.side()).map_err(|what| TraceError::Damaged { path: reader.path().to_owned(), offset: 0, what })?;
    let mut validator = Validator::new(reader.header(), Some(reader.side()));
    let mut block = Block::default();
    for n in 0..count.min(reader.blocks()) {
        reader.read(n, &mut block)?;
        for (header, records) in block.chunks() {
            validator.chunk(header, records).map_err(|bad| reader.bad_record(n, bad))?;
        }
        take(&block)?;
    }
    Ok(())
}

/// Reads the whole trace and checks it. Returns the number of records.
pub fn validate(reader: &mut TraceReader) -> Result<u64, TraceError> {
    let mut count = 0;
    each_chunk(reader, |_, records| {
        count += records.len() as u64;
        Ok::<_, TraceError>(())
    })?;
    Ok(count)
}
