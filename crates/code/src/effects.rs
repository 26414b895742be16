//! Registers and memory that one instruction reads, writes and addresses.

use crate::place::{FLAGS, Local, RegisterNumber, STACK_POINTER, number};
use iced_x86::{
    Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
    UsedRegister,
};

/// Bit of [`Summary`] for a write to memory.
const MEMORY_BIT: u64 = 1 << 63;

/// Registers that an instruction writes, and whether it writes memory: one look rules most instructions out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary(u64);

impl Summary {
    /// Returns the summary of one instruction.
    pub(crate) fn of(instruction: &Instruction, info: &InstructionInfo) -> Summary {
        let registers = info.used_registers().iter().filter(|used| writes(used.access()));
        let mut bits =
            registers.filter_map(|used| number(used.register())).fold(0, |bits, register| bits | 1 << register);
        if instruction.rflags_modified() != 0 {
            bits |= 1 << FLAGS;
        }
        if info.used_memory().iter().any(|memory| writes(memory.access())) {
            bits |= MEMORY_BIT;
        }
        Summary(bits)
    }

    pub(crate) fn writes(self, register: RegisterNumber) -> bool {
        self.0 >> register & 1 == 1
    }

    /// The registers that it writes.
    pub(crate) fn registers(self) -> impl Iterator<Item = RegisterNumber> {
        (0..63).filter(move |&register| self.writes(register))
    }

    pub(crate) fn writes_memory(self) -> bool {
        self.0 & MEMORY_BIT != 0
    }
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Memory that an instruction touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    /// Address, if it is plain without following a pointer.
    pub local: Option<Local>,
    pub reads: bool,
    pub writes: bool,
}

/// All of one instruction that a walk along its values needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// Registers with values that the instruction computes with, beyond addresses.
    pub values: Vec<RegisterNumber>,
    /// Registers that its addresses are computed from, without the stack pointer.
    pub address: Vec<RegisterNumber>,
    /// Registers that it may leave as they were, in part or altogether.
    keeps: u64,
    /// Memory that it touches.
    pub memory: Vec<Touched>,
    /// A string instruction: its pointers move by themselves, regardless of the loaded value.
    pub string: bool,
}

impl Effects {
    /// Returns the effects of one instruction.
    pub(crate) fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Effects {
        let info = factory.info(instruction);
        let address = addressing(info.used_memory());
        let mut values = value_registers(instruction, info, &address);
        if instruction.rflags_read() != 0 {
            values.push(FLAGS);
        }
        Effects {
            values,
            address,
            keeps: kept(info.used_registers()),
            memory: info.used_memory().iter().filter_map(touched).collect(),
            string: instruction.is_string_instruction(),
        }
    }

    /// Whether the register may hold its old value after the instruction.
    pub(crate) fn may_keep(&self, register: RegisterNumber) -> bool {
        self.keeps >> register & 1 == 1
    }
}

fn addressing(memory: &[UsedMemory]) -> Vec<RegisterNumber> {
    let mut registers: Vec<_> = memory.iter().flat_map(|m| [m.base(), m.index()]).filter_map(number).collect();
    registers.retain(|&register| register != STACK_POINTER);
    registers.sort_unstable();
    registers.dedup();
    registers
}

/// Returns the registers read for their values. Registers of an address count only if they are operands as well.
fn value_registers(
    instruction: &Instruction,
    info: &InstructionInfo,
    address: &[RegisterNumber],
) -> Vec<RegisterNumber> {
    let read = info.used_registers().iter().filter(|used| reads(used.access()));
    let implied = read.filter_map(|used| number(used.register()));
    let operands = (0..instruction.op_count())
        .filter(|&op| instruction.op_kind(op) == OpKind::Register && reads(info.op_access(op)))
        .filter_map(|op| number(instruction.op_register(op)));
    let pure = implied.filter(|register| *register != STACK_POINTER && !address.contains(register));
    let mut values: Vec<_> = pure.chain(operands).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn kept(used: &[UsedRegister]) -> u64 {
    let keeps = |used: &&UsedRegister| {
        let register = used.register();
        let part = register.is_gpr8() || register.is_gpr16();
        writes(used.access()) && (part || matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite))
    };
    used.iter().filter(keeps).filter_map(|used| number(used.register())).fold(0, |bits, register| bits | 1 << register)
}

fn touched(memory: &UsedMemory) -> Option<Touched> {
    let (reads, writes) = (reads(memory.access()), writes(memory.access()));
    (reads || writes).then(|| Touched { local: Local::of(memory), reads, writes })
}

/// Source of the stack pointer, or of another base of locals, in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebased {
    /// As this register was before, plus a constant.
    From(RegisterNumber, i64),
    /// In a way that is no constant distance from a register.
    Lost,
}

/// Returns how `base` after the instruction relates to registers before it.
pub(crate) fn rebased(instruction: &Instruction, summary: Summary, base: RegisterNumber) -> Rebased {
    if !summary.writes(base) {
        return Rebased::From(base, 0);
    }
    if base == STACK_POINTER && instruction.is_stack_instruction() {
        return moved_by_the_stack(instruction);
    }
    let source = |operand: u32| number(instruction.op_register(operand));
    let wide = instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64();
    let constant = (wide && immediate(instruction)).then(|| instruction.immediate(1) as i64);
    match (instruction.mnemonic(), constant) {
        (Mnemonic::Mov, _) if wide && instruction.op1_kind() == OpKind::Register => {
            source(1).map_or(Rebased::Lost, |from| Rebased::From(from, 0))
        }
        (Mnemonic::Add, Some(by)) => Rebased::From(base, by),
        (Mnemonic::Sub, Some(by)) => Rebased::From(base, by.wrapping_neg()),
        (Mnemonic::Lea, _) if wide && instruction.memory_index() == Register::None => number(instruction.memory_base())
            .map_or(Rebased::Lost, |from| Rebased::From(from, instruction.memory_displacement64() as i64)),
        _ => Rebased::Lost,
    }
}

fn moved_by_the_stack(instruction: &Instruction) -> Rebased {
    const FRAME_POINTER: RegisterNumber = 5;
    match instruction.mnemonic() {
        Mnemonic::Leave => Rebased::From(FRAME_POINTER, 8),
        Mnemonic::Enter => Rebased::Lost,
        _ => Rebased::From(STACK_POINTER, i64::from(instruction.stack_pointer_increment())),
    }
}

fn immediate(instruction: &Instruction) -> bool {
    use OpKind::*;
    instruction.op_count() > 1
        && matches!(instruction.op1_kind(), Immediate8 | Immediate32 | Immediate8to64 | Immediate32to64 | Immediate64)
}
