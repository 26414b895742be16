//! Instructions of a file as text.

use super::elf::Elf;
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind};

/// Longest instruction of x86.
const LONGEST: u64 = 15;

impl Elf {
    /// The instruction at a linked address in Intel's notation, with the name of the function that it calls or jumps
    /// to; `None` where the file has no instruction. `module`: prefix of names of stripped code.
    pub fn instruction(&self, module: &str, address: u64) -> Option<String> {
        let mut decoder = Decoder::with_ip(64, self.bytes_at(address, LONGEST)?, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let mut formatter = IntelFormatter::new();
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_space_after_operand_separator(true);
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        if let Some(target) = self.elsewhere(module, &instruction) {
            text += &format!(" <{target}>");
        }
        Some(text)
    }

    /// The linked address that a direct call at this linked address enters.
    pub(super) fn call_target(&self, address: u64) -> Option<u64> {
        let mut decoder = Decoder::with_ip(64, self.bytes_at(address, LONGEST)?, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let is_direct = instruction.mnemonic() == Mnemonic::Call && instruction.op0_kind() == OpKind::NearBranch64;
        is_direct.then(|| instruction.near_branch_target())
    }

    /// The function that an instruction passes control to, if it is another than its own.
    fn elsewhere(&self, module: &str, instruction: &Instruction) -> Option<String> {
        let target = Some(instruction.near_branch_target()).filter(|target| *target != 0)?;
        let name = self.name(module, target);
        (instruction.mnemonic() == Mnemonic::Call || name != self.name(module, instruction.ip())).then_some(name)
    }
}
