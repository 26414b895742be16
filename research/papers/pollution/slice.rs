//! References of one record's way, as the model takes them.

use super::function::{Caller, Function};
use nearmiss_record::reference::{ControlKind, FLAG_KERNEL, Kind, Record};
use nearmiss_record::units::InsnId;

/// Bytes of a record, a page and a block.
pub const RECORD_BYTES: u64 = 4096;
const KERNEL_BASE: u64 = 0xffff_8000_0000_0000;
const LINE_BYTES: u64 = 64;
/// Instructions of a copy for half a line: eight of its four-byte words, loaded or stored.
const HALF_LINE_INSTRUCTIONS: u8 = 8;
/// Instructions of one copy.
pub const COPY_INSTRUCTIONS: u64 = 2 * HALF_LINE_INSTRUCTIONS as u64 * RECORD_BYTES / LINE_BYTES;
/// Most that a record can hold.
const MOST_INSTRUCTIONS: u64 = 255;

/// Work of a CPU with one record of a stream.
#[derive(Default)]
pub struct Slice {
    /// In order.
    pub records: Vec<Record>,
    /// Instructions of the copies.
    copying: u64,
    /// References that are not a copy's.
    others: u64,
    /// All instructions.
    pub instructions: u64,
}

impl Slice {
    fn refer(&mut self, function: Function, kind: Kind, address: u64, bytes: u32, instructions: u8) {
        let (insn, page) = (InsnId(function as u32), address >> 12);
        let vaddr = KERNEL_BASE + address;
        self.records.push(Record::reference(kind, vaddr, bytes, FLAG_KERNEL, insn, page, instructions));
    }

    /// A reference, line by line.
    pub fn touch(&mut self, function: Function, kind: Kind, address: u64, bytes: u64) {
        let (mut at, end) = (address, address + bytes);
        while at < end {
            let next = (at / LINE_BYTES * LINE_BYTES + LINE_BYTES).min(end);
            self.refer(function, kind, at, (next - at) as u32, 0);
            self.others += 1;
            at = next;
        }
    }

    /// A record copied line by line for a caller, with a fence behind it.
    pub fn copy(&mut self, function: Function, caller: Caller, from: u64, to: u64) {
        self.records.push(Record::control(ControlKind::Context, caller as u64, 0, 0));
        for at in (0..RECORD_BYTES).step_by(LINE_BYTES as usize) {
            self.refer(function, Kind::Load, from + at, LINE_BYTES as u32, HALF_LINE_INSTRUCTIONS);
            self.refer(function, Kind::Store, to + at, LINE_BYTES as u32, HALF_LINE_INSTRUCTIONS);
        }
        self.copying += COPY_INSTRUCTIONS;
        self.records.push(Record::control(ControlKind::Fence, 0, 0, 0));
        self.records.push(Record::control(ControlKind::Context, 0, 0, 0));
    }

    /// Sets the instructions in all; those that are not a copy's go evenly to the other references.
    pub fn spread(&mut self, instructions: u64) {
        self.instructions = instructions + self.copying;
        let each = (instructions / self.others.max(1)).min(MOST_INSTRUCTIONS) as u8;
        for record in &mut self.records {
            if record.kind() != Some(Kind::Control) && record.instructions() == 0 {
                *record = record.with_instructions(each);
            }
        }
    }
}
