//! Places that hold a value: registers, the flags, and memory with an address that needs no values of pointers.

use iced_x86::{Register, UsedMemory};

/// A register under its full name, as a number under 58.
pub(crate) type RegisterNumber = u8;

/// The stack pointer.
pub(crate) const STACK_POINTER: RegisterNumber = 4;
/// The first vector register.
const VECTORS: RegisterNumber = 16;
/// The first mask register.
const MASKS: RegisterNumber = 48;
/// All registers of the x87 and MMX, which share their bits.
const X87: RegisterNumber = 56;
/// The flags.
pub(crate) const FLAGS: RegisterNumber = 57;
/// Registers that a called function leaves as they were (System V ABI, x86-64): rbx, rsp, rbp, r12 to r15.
const CALLEE_SAVED: u64 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;
/// The frame pointer, where the code has one.
const FRAME_POINTER: RegisterNumber = 5;

/// The number of a register; `None`: not one that addresses are computed with.
pub(crate) fn number(register: Register) -> Option<RegisterNumber> {
    let full = register.full_register();
    let offset = full.number() as RegisterNumber;
    if full.is_gpr() {
        Some(offset)
    } else if full.is_vector_register() {
        Some(VECTORS + offset)
    } else if full.is_k() {
        Some(MASKS + offset)
    } else {
        (full.is_st() || full.is_mm()).then_some(X87)
    }
}

/// Whether a called function leaves the register as it was.
pub(crate) fn survives_a_call(register: RegisterNumber) -> bool {
    CALLEE_SAVED >> register & 1 == 1
}

/// Memory at a constant distance from a register, or at a constant address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Local {
    /// The register; `None`: the displacement is the address.
    pub base: Option<RegisterNumber>,
    /// Bytes from the register on.
    pub displacement: i64,
    /// Bytes of the value.
    pub size: u16,
}

impl Local {
    /// The memory of an operand, where stack pointer, frame pointer or nothing is its base.
    pub(crate) fn of(memory: &UsedMemory) -> Option<Local> {
        let plain = memory.index() == Register::None && !matches!(memory.segment(), Register::FS | Register::GS);
        let base = number(memory.base());
        let near = base.map_or(memory.base() == Register::None, |base| matches!(base, STACK_POINTER | FRAME_POINTER));
        (plain && near).then(|| Local {
            base,
            displacement: memory.displacement() as i64,
            size: memory.memory_size().size().clamp(1, 512) as u16,
        })
    }

    /// Whether the two share bytes.
    pub(crate) fn overlaps(&self, other: &Local) -> bool {
        let before = |a: &Local, b: &Local| a.displacement < b.displacement.saturating_add(i64::from(b.size));
        self.base == other.base && before(self, other) && before(other, self)
    }

    /// Whether all bytes of `other` are among these.
    pub(crate) fn covers(&self, other: &Local) -> bool {
        let end = |local: &Local| local.displacement.saturating_add(i64::from(local.size));
        self.base == other.base && self.displacement <= other.displacement && end(self) >= end(other)
    }
}

/// Location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ValuePlace {
    /// In a register.
    Register(RegisterNumber),
    /// In memory that was read by the instruction of the graph with this number.
    Local(Local, u32),
}
