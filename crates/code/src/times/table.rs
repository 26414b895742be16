//! Cycles by kind of instruction.

use iced_x86::{Instruction, Mnemonic, OpKind};

/// Cycles from an instruction's inputs in registers to its result, without its loads.
pub(crate) fn cycles_to_value(instruction: &Instruction) -> f32 {
    match instruction.mnemonic() {
        Mnemonic::Mov
        | Mnemonic::Movaps
        | Mnemonic::Movups
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Push
        | Mnemonic::Pop => 0.0,
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd if instruction.op1_kind() == OpKind::Memory => 0.0,
        Mnemonic::Imul | Mnemonic::Mul => 3.0,
        Mnemonic::Div | Mnemonic::Idiv => 12.0,
        _ => 1.0,
    }
}
