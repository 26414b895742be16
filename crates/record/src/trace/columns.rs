//! A block's records as columns of unpredicted values.
//!
//! Each instruction tends to repeat its last execution: the next instruction after it, the stride of its addresses, its
//! size and kind. One byte a record marks which predictions held; the failed ones go to columns of their own. Most of
//! these bytes are alike, and zstd takes them to a few bits. Instructions are numbered by first appearance in the
//! block, so that a hostile id costs no memory.

use crate::abi::ChunkHeader;
use crate::reference::{Kind, Record};

const CONTROL: u8 = 0xff;
const NEXT_HELD: u8 = 1;
const META_HELD: u8 = 2;
const PAGE_HELD: u8 = 4;
const COUNT_HELD: u8 = 8;
const ADDRESS_SHIFT: u8 = 4; // two bits
const STRIDE: u8 = 0;
const SAME: u8 = 1;
const FROM_OWN: u8 = 2;
const FROM_PREVIOUS: u8 = 3;

const PAGE_SLOTS: usize = 4096;
const VADDR_MASK: u64 = (1 << 48) - 1;

/// Last execution of one instruction.
#[derive(Clone, Copy, Default)]
struct Habit {
    vaddr: u64,
    stride: u64,
    next: u32,
    id: u32,
    meta: u16,
    count: u8,
}

/// The predictor: the same on both sides.
struct Predictor {
    habits: Vec<Habit>,
    pages: Vec<(u64, u64)>,
    previous: usize,
    previous_vaddr: u64,
    previous_page: u64,
}

impl Predictor {
    fn new() -> Self {
        Predictor {
            habits: Vec::new(),
            pages: vec![(u64::MAX, 0); PAGE_SLOTS],
            previous: 0,
            previous_vaddr: 0,
            previous_page: 0,
        }
    }

    fn reset(&mut self) {
        self.habits.clear();
        // Instruction 0 of a block never exists: `previous` needs a habit to begin with.
        self.habits.push(Habit::default());
        self.pages.fill((u64::MAX, 0));
        self.previous = 0;
        self.previous_vaddr = 0;
        self.previous_page = 0;
    }

    #[inline]
    fn page_slot(vaddr: u64) -> (usize, u64) {
        let page = (vaddr & VADDR_MASK) >> 12;
        ((page ^ (page >> 12)) as usize % PAGE_SLOTS, page)
    }

    #[inline]
    fn learn(&mut self, local: usize, vaddr: u64, meta: u16, count: u8, physical: u64) {
        let habit = &mut self.habits[local];
        habit.stride = vaddr.wrapping_sub(habit.vaddr) & VADDR_MASK;
        habit.vaddr = vaddr;
        habit.meta = meta;
        habit.count = count;
        self.habits[self.previous].next = local as u32;
        self.previous = local;
        self.previous_vaddr = vaddr;
        self.previous_page = physical;
    }
}

/// The columns, in the order in which they are stored.
#[derive(Default)]
struct Columns {
    chunks: Vec<u8>,
    flags: Vec<u8>,
    insns: Vec<u8>,
    ids: Vec<u8>,
    addresses: Vec<u8>,
    pages: Vec<u8>,
    metas: Vec<u8>,
    counts: Vec<u8>,
    controls: Vec<u8>,
}

impl Columns {
    fn all(&self) -> [&Vec<u8>; 9] {
        let c = self;
        [&c.chunks, &c.flags, &c.insns, &c.ids, &c.addresses, &c.pages, &c.metas, &c.counts, &c.controls]
    }

    fn all_mut(&mut self) -> [&mut Vec<u8>; 9] {
        let c = self;
        [
            &mut c.chunks,
            &mut c.flags,
            &mut c.insns,
            &mut c.ids,
            &mut c.addresses,
            &mut c.pages,
            &mut c.metas,
            &mut c.counts,
            &mut c.controls,
        ]
    }
}

#[inline]
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn zigzag(delta: u64) -> u64 {
    (delta << 1) ^ ((delta as i64 >> 63) as u64)
}

#[inline]
fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Distance between two 48-bit addresses, sign-extended.
#[inline]
fn address_delta(from: u64, to: u64) -> u64 {
    ((to.wrapping_sub(from) << 16) as i64 >> 16) as u64
}

/// Turns chunks into a block's bytes.
pub(super) struct Encoder {
    predictor: Predictor,
    columns: Columns,
    /// Number in this block and the block that gave it, by instruction id, so that nothing needs clearing.
    local: Vec<(u32, u32)>,
    block: u32,
    chunks: u32,
    records: u32,
    previous: ChunkHeader,
}

impl Encoder {
    pub(super) fn new() -> Self {
        let mut predictor = Predictor::new();
        predictor.reset();
        Encoder {
            predictor,
            columns: Columns::default(),
            local: Vec::new(),
            block: 1,
            chunks: 0,
            records: 0,
            previous: ChunkHeader::default(),
        }
    }

    pub(super) fn records(&self) -> usize {
        self.records as usize
    }

    pub(super) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Adds a chunk. `records` are the tap's: payload inside the chunk.
    pub(super) fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) {
        let p = self.previous;
        let out = &mut self.columns.chunks;
        for value in [
            u64::from(header.vcpu),
            records.len() as u64,
            zigzag(header.seq.wrapping_sub(p.seq)),
            zigzag(header.slice.wrapping_sub(p.slice)),
            zigzag(header.instructions.wrapping_sub(p.instructions)),
            u64::from(header.context),
            u64::from(header.flags),
            header.task,
        ] {
            put_varint(out, value);
        }
        self.previous = *header;
        self.chunks += 1;
        self.records += records.len() as u32;

        let mut rest = records;
        while let Some((record, tail)) = rest.split_first() {
            rest = tail;
            if record.kind() == Some(Kind::Control) || record.kind().is_none() {
                self.columns.flags.push(CONTROL);
                let payload = record.payload_records().unwrap_or(0).min(rest.len());
                put_varint(&mut self.columns.controls, payload as u64);
                self.columns.controls.extend_from_slice(bytemuck::bytes_of(record));
                self.columns.controls.extend_from_slice(bytemuck::cast_slice(&rest[..payload]));
                rest = &rest[payload..];
            } else {
                self.reference(*record);
            }
        }
    }

    #[inline]
    fn reference(&mut self, record: Record) {
        let columns = &mut self.columns;
        let predictor = &mut self.predictor;
        let id = record.insn().0;
        if self.local.len() <= id as usize {
            self.local.resize((id as usize + 1).next_power_of_two(), (0, 0));
        }
        let slot = &mut self.local[id as usize];
        let fresh = slot.1 != self.block;
        if fresh {
            *slot = (predictor.habits.len() as u32, self.block);
            predictor.habits.push(Habit { id, vaddr: predictor.previous_vaddr, ..Habit::default() });
            put_varint(
                &mut columns.ids,
                zigzag(u64::from(id).wrapping_sub(u64::from(predictor.habits[predictor.previous].id))),
            );
        }
        let local = slot.0;
        let mut flags = 0;
        let habit = predictor.habits[local as usize];
        if predictor.habits[predictor.previous].next == local {
            flags |= NEXT_HELD;
        } else {
            // The decoder reads 0 as "a new instruction".
            put_varint(&mut columns.insns, if fresh { 0 } else { u64::from(local) });
        }
        let meta = (record.a >> 48) as u16;
        if habit.meta == meta {
            flags |= META_HELD;
        } else {
            columns.metas.extend_from_slice(&meta.to_le_bytes());
        }
        let count = (record.b >> 56) as u8;
        if habit.count == count {
            flags |= COUNT_HELD;
        } else {
            columns.counts.push(count);
        }
        let vaddr = record.a & VADDR_MASK;
        let own = address_delta(habit.vaddr, vaddr);
        let address = if own & VADDR_MASK == habit.stride {
            STRIDE
        } else if own == 0 {
            SAME
        } else {
            let (own, other) = (zigzag(own), zigzag(address_delta(predictor.previous_vaddr, vaddr)));
            put_varint(&mut columns.addresses, own.min(other));
            if own <= other { FROM_OWN } else { FROM_PREVIOUS }
        };
        flags |= address << ADDRESS_SHIFT;
        let physical = record.physical_page();
        let (slot, page) = Predictor::page_slot(vaddr);
        if predictor.pages[slot] == (page, physical) {
            flags |= PAGE_HELD;
        } else {
            predictor.pages[slot] = (page, physical);
            put_varint(&mut columns.pages, zigzag(physical.wrapping_sub(predictor.previous_page)));
        }
        columns.flags.push(flags);
        predictor.learn(local as usize, vaddr, meta, count, physical);
    }

    /// Appends the block's columns to `out` and begins a new block.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        for column in self.columns.all() {
            out.extend_from_slice(&(column.len() as u32).to_le_bytes());
        }
        for column in self.columns.all_mut() {
            out.extend_from_slice(column);
            column.clear();
        }
        self.predictor.reset();
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            self.local.clear();
            self.block = 1;
        }
        self.chunks = 0;
        self.records = 0;
        self.previous = ChunkHeader::default();
    }
}

/// Reads bytes, and fails when there are none left.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or("a column ends early")?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, &'static str> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number is too long")
    }

    fn take(&mut self, n: usize) -> Result<&[u8], &'static str> {
        if n > self.0.len() {
            return Err("a column ends early");
        }
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(taken)
    }
}

/// Turns a block's bytes back into chunks.
pub(super) struct Decoder {
    predictor: Predictor,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Decoder { predictor: Predictor::new() }
    }

    /// Decodes a block of `chunks` chunks and `expected` records. Errors name the fault; memory is bounded by
    /// `expected`.
    pub(super) fn decode(
        &mut self,
        raw: &[u8],
        chunks: u32,
        expected: usize,
        headers: &mut Vec<ChunkHeader>,
        records: &mut Vec<Record>,
    ) -> Result<(), &'static str> {
        headers.clear();
        records.clear();
        records.reserve(expected);
        self.predictor.reset();
        let mut whole = Cursor(raw);
        let mut lengths = [0usize; 9];
        for length in &mut lengths {
            let bytes = whole.take(4)?;
            *length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        }
        let mut columns = [const { Cursor(&[]) }; 9];
        let mut rest = whole.0;
        for (column, length) in columns.iter_mut().zip(lengths) {
            if length > rest.len() {
                return Err("a column is longer than its block");
            }
            let (this, tail) = rest.split_at(length);
            *column = Cursor(this);
            rest = tail;
        }
        if !rest.is_empty() {
            return Err("bytes behind the last column");
        }
        let [mut heads, mut flags, mut insns, mut ids, mut addresses, mut pages, mut metas, mut counts, mut controls] =
            columns;

        let mut previous = ChunkHeader::default();
        for _ in 0..chunks {
            let vcpu = heads.varint()?;
            let count = heads.varint()?;
            let header = ChunkHeader {
                vcpu: u32::try_from(vcpu).map_err(|_| "vCPU out of range")?,
                records: u32::try_from(count).map_err(|_| "record count out of range")?,
                seq: previous.seq.wrapping_add(unzigzag(heads.varint()?)),
                slice: previous.slice.wrapping_add(unzigzag(heads.varint()?)),
                instructions: previous.instructions.wrapping_add(unzigzag(heads.varint()?)),
                context: u32::try_from(heads.varint()?).map_err(|_| "context out of range")?,
                flags: u32::try_from(heads.varint()?).map_err(|_| "flags out of range")?,
                task: heads.varint()?,
                reserved: [0; 2],
            };
            previous = header;
            headers.push(header);
            let end = records.len() + header.records as usize;
            if end > expected {
                return Err("more records than the block states");
            }
            while records.len() < end {
                let flag = flags.byte()?;
                if flag == CONTROL {
                    let payload = usize::try_from(controls.varint()?).map_err(|_| "payload out of range")?;
                    if payload >= end - records.len() {
                        return Err("a control record's payload leaves its chunk");
                    }
                    for chunk in controls.take(16 * (payload + 1))?.chunks_exact(16) {
                        records.push(bytemuck::pod_read_unaligned(chunk));
                    }
                } else {
                    let record = self.reference(
                        flag,
                        &mut insns,
                        &mut ids,
                        &mut addresses,
                        &mut pages,
                        &mut metas,
                        &mut counts,
                    )?;
                    records.push(record);
                }
            }
        }
        if records.len() == expected { Ok(()) } else { Err("fewer records than the block states") }
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn reference(
        &mut self,
        flags: u8,
        insns: &mut Cursor<'_>,
        ids: &mut Cursor<'_>,
        addresses: &mut Cursor<'_>,
        pages: &mut Cursor<'_>,
        metas: &mut Cursor<'_>,
        counts: &mut Cursor<'_>,
    ) -> Result<Record, &'static str> {
        let predictor = &mut self.predictor;
        let mut local = if flags & NEXT_HELD != 0 {
            predictor.habits[predictor.previous].next as usize
        } else {
            usize::try_from(insns.varint()?).map_err(|_| "instruction number out of range")?
        };
        if local == 0 {
            let id = u64::from(predictor.habits[predictor.previous].id).wrapping_add(unzigzag(ids.varint()?));
            let id = u32::try_from(id).map_err(|_| "instruction id out of range")?;
            local = predictor.habits.len();
            predictor.habits.push(Habit { id, vaddr: predictor.previous_vaddr, ..Habit::default() });
        }
        let habit = *predictor.habits.get(local).ok_or("an instruction that was never introduced")?;
        let meta = if flags & META_HELD != 0 {
            habit.meta
        } else {
            let bytes = metas.take(2)?;
            u16::from_le_bytes([bytes[0], bytes[1]])
        };
        let count = if flags & COUNT_HELD != 0 { habit.count } else { counts.byte()? };
        let vaddr = VADDR_MASK
            & match (flags >> ADDRESS_SHIFT) & 3 {
                STRIDE => habit.vaddr.wrapping_add(habit.stride),
                SAME => habit.vaddr,
                FROM_OWN => habit.vaddr.wrapping_add(unzigzag(addresses.varint()?)),
                _ => predictor.previous_vaddr.wrapping_add(unzigzag(addresses.varint()?)),
            };
        let (slot, page) = Predictor::page_slot(vaddr);
        let physical = if flags & PAGE_HELD != 0 {
            let (known, physical) = predictor.pages[slot];
            if known != page {
                return Err("a page that was never introduced");
            }
            physical
        } else {
            let physical = predictor.previous_page.wrapping_add(unzigzag(pages.varint()?));
            predictor.pages[slot] = (page, physical);
            physical
        };
        predictor.learn(local, vaddr, meta, count, physical);
        Ok(Record {
            a: vaddr | u64::from(meta) << 48,
            b: u64::from(habit.id) & ((1 << crate::reference::INSN_BITS) - 1)
                | (physical & ((1 << crate::reference::PAGE_BITS) - 1)) << crate::reference::PAGE_LOW
                | u64::from(count) << 56,
        })
    }
}
