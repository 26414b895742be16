//! One kept memory reference, as the tap sends it and as a trace holds it: 16 bytes.
//!
//! The layout is that of `struct nm_record` in `native/include/nearmiss_tap.h`.

use crate::code::CodeBlock;
use crate::units::InsnId;
use bytemuck::{Pod, Zeroable};

/// 16 bytes of the stream: a memory reference, an instruction fetch, a control record, or payload of the latter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct Record {
    /// Virtual address (bits 0..48), kind (48..52), size − 1 (52..58), flags (58..64).
    pub a: u64,
    /// Instruction id (bits 0..23), the report of the tap's first level (23..28), physical page (28..56), instructions
    /// since the vCPU's previous record (56..64).
    pub b: u64,
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Data read.
    Load = 0,
    /// Data write.
    Store = 1,
    /// Locked read-modify-write.
    Atomic = 2,
    /// Non-temporal store.
    NtStore = 3,
    /// Instruction fetch: execution enters a line.
    Fetch = 4,
    /// See [`ControlKind`].
    Control = 15,
}

/// Kinds by number.
const KINDS: [Option<Kind>; 16] =
    by_number(&[Kind::Load, Kind::Store, Kind::Atomic, Kind::NtStore, Kind::Fetch, Kind::Control]);
const PLAIN_KINDS: [Option<Kind>; 16] = by_number(&[Kind::Load, Kind::Store, Kind::Fetch]);

const fn by_number(kinds: &[Kind]) -> [Option<Kind>; 16] {
    let mut by_number = [None; 16];
    let mut at = 0;
    while at < kinds.len() {
        by_number[kinds[at] as usize] = Some(kinds[at]);
        at += 1;
    }
    by_number
}

/// Second half of a reference that straddles two lines.
pub const FLAG_CONT: u8 = 1;
/// With [`FLAG_CONT`]: the first half was dropped by the filter, it hit.
pub const FLAG_FIRST_HIT: u8 = 2;
/// Executed in kernel mode.
pub const FLAG_KERNEL: u8 = 4;
/// Store half of a plain read-modify-write.
pub const FLAG_RMW: u8 = 8;

/// Bits of an instruction id.
pub const INSN_BITS: u32 = 23;
/// Lowest bit of a physical page number.
pub const PAGE_LOW: u32 = 28;
/// Bits of a physical page number.
pub const PAGE_BITS: u32 = 28;
const ADDRESS_MASK: u64 = (1 << 48) - 1;

impl Record {
    /// Builds a reference. `size` is 1..=64 bytes, all inside one line of the filter.
    #[allow(clippy::too_many_arguments)]
    pub fn reference(
        kind: Kind,
        vaddr: u64,
        size: u32,
        flags: u8,
        insn: InsnId,
        physical_page: u64,
        instructions: u8,
    ) -> Self {
        debug_assert!((1..=64).contains(&size));
        Record {
            a: (vaddr & ADDRESS_MASK) | (kind as u64) << 48 | u64::from(size - 1) << 52 | u64::from(flags) << 58,
            b: u64::from(insn.0) | (physical_page & ((1 << PAGE_BITS) - 1)) << PAGE_LOW | u64::from(instructions) << 56,
        }
    }

    /// Builds a control record; its payload, if any, follows it.
    pub fn control(kind: ControlKind, argument: u64, small: u8, value: u64) -> Self {
        Record {
            a: (argument & ADDRESS_MASK) | (Kind::Control as u64) << 48 | (kind as u64) << 52 | u64::from(small) << 58,
            b: value,
        }
    }

    /// The kind, or `None` for a value no version of the format uses.
    #[inline]
    pub fn kind(self) -> Option<Kind> {
        KINDS[(self.a >> 48) as usize & 15]
    }

    /// The kind, if it is a load, a store or a fetch.
    #[inline]
    pub fn plain_kind(self) -> Option<Kind> {
        PLAIN_KINDS[(self.a >> 48) as usize & 15]
    }

    /// Returns this reference with another kind.
    pub fn with_kind(self, kind: Kind) -> Self {
        Record { a: self.a & !(15 << 48) | (kind as u64) << 48, ..self }
    }

    /// Returns this reference, so many instructions after the record before it; at most 255.
    pub fn with_instructions(self, instructions: u8) -> Self {
        Record { b: self.b << 8 >> 8 | u64::from(instructions) << 56, ..self }
    }

    /// Virtual address, sign-extended.
    #[inline]
    pub fn vaddr(self) -> u64 {
        ((self.a << 16) as i64 >> 16) as u64
    }

    /// Physical address (offset in guest RAM).
    #[inline]
    pub fn paddr(self) -> u64 {
        self.physical_page() << 12 | (self.a & 0xfff)
    }

    /// Physical page number.
    #[inline]
    pub fn physical_page(self) -> u64 {
        (self.b >> PAGE_LOW) & ((1 << PAGE_BITS) - 1)
    }

    /// Bytes touched inside the line, 1..=64.
    #[inline]
    pub fn size(self) -> u32 {
        ((self.a >> 52) & 63) as u32 + 1
    }

    /// `FLAG_*`.
    #[inline]
    pub fn flags(self) -> u8 {
        (self.a >> 58) as u8
    }

    /// Whether the CPU was in kernel mode.
    #[inline]
    pub fn is_kernel(self) -> bool {
        self.flags() & FLAG_KERNEL != 0
    }

    /// The instruction.
    #[inline]
    pub fn insn(self) -> InsnId {
        InsnId((self.b & ((1 << INSN_BITS) - 1)) as u32)
    }

    /// Returns the way that a missing line takes, if the tap runs the first level. Else 0.
    #[inline]
    pub fn way(self) -> usize {
        (self.b >> INSN_BITS) as usize & 15
    }

    /// Whether the line that had this way was used again after another line of the set was, if the tap runs the first
    /// level.
    #[inline]
    pub fn goes_reused(self) -> bool {
        self.b >> (INSN_BITS + 4) & 1 != 0
    }

    /// Instructions the vCPU executed since its previous record (the rest of a larger number is carried over).
    #[inline]
    pub fn instructions(self) -> u64 {
        self.b >> 56
    }

    /// For a control record: which one.
    pub fn control_kind(self) -> Option<ControlKind> {
        ControlKind::from_number((self.a >> 52) & 63)
    }

    /// For a control record: its 48-bit argument.
    pub fn argument(self) -> u64 {
        self.a & ADDRESS_MASK
    }

    /// For a control record: how many payload records follow it.
    pub fn payload_records(self) -> Option<usize> {
        Some(match self.control_kind()? {
            ControlKind::Switch => 5,
            ControlKind::Maps | ControlKind::Code => usize::try_from(self.b.div_ceil(16)).ok()?,
            ControlKind::Mark => 3,
            ControlKind::Heap => 2,
            ControlKind::Context
            | ControlKind::Share
            | ControlKind::Halt
            | ControlKind::Fence
            | ControlKind::Irq
            | ControlKind::Branch => 0,
        })
    }
}

/// Kind of a control record; the numbers are those of `enum nm_control_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ControlKind {
    /// The vCPU now runs another task.
    Switch = 1,
    /// New bytes of the vCPU's perf ring.
    Maps = 2,
    /// A marker ran, the window's begin and end included.
    Mark = 3,
    /// The vCPU's calling context from here on.
    Context = 4,
    /// A line passes from one vCPU to another.
    Share = 5,
    /// The program's allocator gave out or took back memory.
    Heap = 6,
    /// The vCPU halts until an interrupt.
    Halt = 7,
    /// Write-combining buffers drain.
    Fence = 8,
    /// The vCPU enters or leaves an interrupt handler.
    Irq = 9,
    /// Code that may run from here on.
    Code = 10,
    /// A branch was predicted wrongly.
    Branch = 11,
}

impl ControlKind {
    fn from_number(number: u64) -> Option<Self> {
        use ControlKind::*;
        [Switch, Maps, Mark, Context, Share, Heap, Halt, Fence, Irq, Code, Branch]
            .into_iter()
            .find(|k| *k as u64 == number)
    }
}

/// Number of the mark with which the window begins (`NM_MARK_BEGIN`).
pub const MARK_BEGIN: u64 = 1;
/// Number of the mark with which a part begins after a pause (`NM_MARK_PART`).
pub const MARK_PART: u64 = 3;

/// A control record with its payload decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// The vCPU now runs `task`.
    Switch {
        /// Incoming `task_struct`, sign-extended.
        task: u64,
        /// Thread id of the incoming task.
        pid: u32,
        /// Process id of the incoming task.
        tgid: u32,
        /// `mm_struct` of the incoming task, 0 for a kernel thread.
        mm: u64,
        /// Outgoing `task_struct`.
        outgoing: u64,
        /// The incoming task's command name.
        comm: String,
        /// References that the filter dropped for the outgoing task since its last report.
        usage: Usage,
    },
    /// Bytes of `PERF_RECORD_*`.
    Maps(&'a [u8]),
    /// A marker.
    Mark {
        /// 1 begin, 2 end, 16.. the program's own.
        number: u64,
        /// Usage of the running task.
        usage: Usage,
    },
    /// Calling context id.
    Context(u32),
    /// A line passes to the record's vCPU.
    Share {
        /// Physical address divided by the filter's line size.
        line: u64,
        /// The vCPU that had the line.
        owner: u32,
        /// Bytes of the line that the owner wrote while it had the line, sent or not.
        written: u64,
    },
    /// The allocator.
    Heap {
        /// Operation.
        op: HeapOp,
        /// Address given out or taken back.
        address: u64,
        /// Bytes requested.
        size: u64,
        /// For realloc: the address before.
        old: u64,
        /// Alignment requested, in bytes; 0: the allocator's own.
        alignment: u64,
    },
    /// Halt.
    Halt,
    /// Write-combining buffers drain.
    Fence,
    /// Interrupt: `Some(timer)` on entry, `None` on leaving.
    Irq(Option<bool>),
    /// Code that may run from here on.
    Code(CodeBlock<'a>),
    /// A branch that a core would have predicted wrongly.
    Branch {
        /// The branch.
        insn: InsnId,
        /// Executed in kernel mode.
        kernel: bool,
        /// The branch did not go on behind itself.
        taken: bool,
        /// Instructions that the vCPU executed since its previous reference or fetch, the branch included.
        instructions: u64,
    },
}

/// Operation of the allocator; `enum nm_heap_op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeapOp {
    /// malloc, calloc, memalign family.
    Alloc = 1,
    /// free.
    Free = 2,
    /// realloc: `old` is gone, `address` is new.
    Realloc = 3,
    /// A thread's stack.
    Stack = 4,
    /// malloc_trim: freed memory goes back to the kernel.
    Trim = 5,
    /// A language's runtime gives out memory, which it takes back unseen.
    Managed = 6,
}

/// `struct nm_usage`: references that the filter dropped (they hit) and instructions, of one task since its last
/// report.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Usage {
    /// Instructions in user mode.
    pub user_instructions: u64,
    /// Instructions in kernel mode.
    pub kernel_instructions: u64,
    /// Loads dropped, user mode.
    pub user_loads: u64,
    /// Loads dropped, kernel mode.
    pub kernel_loads: u64,
    /// Stores dropped, user mode; an atomic counts as a store.
    pub user_stores: u64,
    /// Stores dropped, kernel mode.
    pub kernel_stores: u64,
}

impl<'a> Control<'a> {
    /// Decodes `record` with the `payload` records behind it (see [`Record::payload_records`]).
    ///
    /// Errors: a kind, an argument or a payload length that the format does not have.
    pub fn decode(record: Record, payload: &'a [Record]) -> Result<Self, &'static str> {
        let kind = record.control_kind().ok_or("unknown control kind")?;
        if Some(payload.len()) != record.payload_records() {
            return Err("payload length does not fit the control record");
        }
        let usage = |p: &[Record]| bytemuck::pod_read_unaligned::<Usage>(bytemuck::cast_slice(p));
        Ok(match kind {
            ControlKind::Switch => {
                let comm: &[u8] = bytemuck::cast_slice(&payload[1..2]);
                let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
                Control::Switch {
                    task: record.vaddr(),
                    pid: record.b as u32,
                    tgid: (record.b >> 32) as u32,
                    mm: payload[0].a,
                    outgoing: payload[0].b,
                    comm: String::from_utf8_lossy(&comm[..end]).into_owned(),
                    usage: usage(&payload[2..5]),
                }
            }
            ControlKind::Maps => Control::Maps(&bytemuck::cast_slice::<Record, u8>(payload)[..record.b as usize]),
            ControlKind::Mark => Control::Mark { number: record.argument(), usage: usage(payload) },
            ControlKind::Context => {
                Control::Context(u32::try_from(record.argument()).map_err(|_| "calling context out of range")?)
            }
            ControlKind::Share => {
                Control::Share { line: record.argument(), owner: u32::from(record.flags()), written: record.b }
            }
            ControlKind::Heap => Control::Heap {
                op: match record.argument() {
                    1 => HeapOp::Alloc,
                    2 => HeapOp::Free,
                    3 => HeapOp::Realloc,
                    4 => HeapOp::Stack,
                    5 => HeapOp::Trim,
                    6 => HeapOp::Managed,
                    _ => return Err("unknown heap operation"),
                },
                address: payload[0].a,
                size: payload[0].b,
                old: payload[1].a,
                alignment: payload[1].b,
            },
            ControlKind::Halt => Control::Halt,
            ControlKind::Fence => Control::Fence,
            ControlKind::Irq => Control::Irq((record.argument() != 0).then_some(record.b == 1)),
            ControlKind::Code => {
                let bytes = &bytemuck::cast_slice::<Record, u8>(payload)[..record.b as usize];
                Control::Code(CodeBlock::decode(record.vaddr(), bytes)?)
            }
            ControlKind::Branch => Control::Branch {
                insn: InsnId(
                    u32::try_from(record.argument())
                        .ok()
                        .filter(|id| *id < 1 << INSN_BITS)
                        .ok_or("instruction id out of range")?,
                ),
                kernel: record.flags() & 1 != 0,
                taken: record.flags() & 2 != 0,
                instructions: record.b,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_keeps_every_field() {
        let r = Record::reference(
            Kind::Store,
            0xffff_8880_0123_4567,
            8,
            FLAG_KERNEL | FLAG_RMW,
            InsnId(0x003c_def1),
            0x12345,
            200,
        );
        assert_eq!(r.kind(), Some(Kind::Store));
        assert_eq!(r.vaddr(), 0xffff_8880_0123_4567);
        assert_eq!(r.paddr(), 0x1234_5567);
        assert_eq!((r.size(), r.insn(), r.instructions()), (8, InsnId(0x003c_def1), 200));
        assert!(r.is_kernel());
        assert_eq!(r.flags(), FLAG_KERNEL | FLAG_RMW);
    }

    #[test]
    fn a_task_switch_keeps_name_and_usage() {
        let usage = Usage { user_instructions: 7, kernel_stores: 9, ..Usage::default() };
        let mut payload = vec![Record { a: 0xffff_8880_0000_1000, b: 5 }, Record::default()];
        payload[1].a = u64::from_le_bytes(*b"sort\0\0\0\0");
        payload.extend_from_slice(bytemuck::cast_slice(&[usage]));
        let head = Record::control(ControlKind::Switch, 0xffff_8880_0200_0000, 0, 42 | 40 << 32);
        match Control::decode(head, &payload).unwrap() {
            Control::Switch { task, pid, tgid, comm, usage: u, .. } => {
                assert_eq!((task, pid, tgid, comm.as_str(), u), (0xffff_8880_0200_0000, 42, 40, "sort", usage));
            }
            other => panic!("{other:?}"),
        }
        assert!(Control::decode(head, &payload[..4]).is_err());
    }
}
