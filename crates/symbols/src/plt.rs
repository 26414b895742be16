//! Stubs through which a program calls functions of its libraries.

use super::code::Code;
use object::elf::{R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT};
use object::read::elf::{ElfFile64, Sym};
use object::{LittleEndian, Object, ObjectSection, RelocationFlags, RelocationTarget};
use std::collections::HashMap;

/// `jmp *offset(%rip)`.
const JUMP_THROUGH: [u8; 2] = [0xff, 0x25];

/// Every stub, named `function@plt`, by start.
pub(super) fn stubs(parsed: &ElfFile64<'_, LittleEndian>) -> Vec<Code> {
    let slots = slots(parsed);
    let mut stubs = Vec::new();
    for section in parsed.sections() {
        let plt = section.name().is_ok_and(|name| name.starts_with(".plt"));
        let (true, Ok(bytes)) = (plt, section.data()) else { continue };
        let entry = match section.elf_section_header().sh_entsize.get(LittleEndian) {
            entry @ (8 | 16 | 32) => entry as usize,
            _ => 16,
        };
        for (index, stub) in bytes.chunks(entry).enumerate() {
            let start = section.address().wrapping_add((index * entry) as u64);
            let Some(at) = stub.windows(2).position(|w| w == JUMP_THROUGH) else { continue };
            let Some(offset) = stub.get(at + 2..at + 6) else { continue };
            let offset = i32::from_le_bytes([offset[0], offset[1], offset[2], offset[3]]);
            let slot = start.wrapping_add(at as u64 + 6).wrapping_add(offset as i64 as u64);
            if let Some(name) = slots.get(&slot) {
                stubs.push(Code { start, bytes: entry as u64, symbol: format!("{name}@plt") });
            }
        }
    }
    stubs.sort_by_key(|stub| stub.start);
    stubs
}

/// Names of the functions with addresses that the loader writes, by where.
fn slots(parsed: &ElfFile64<'_, LittleEndian>) -> HashMap<u64, String> {
    let table = parsed.elf_dynamic_symbol_table();
    let mut slots = HashMap::new();
    for (place, relocation) in parsed.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        match (r_type, relocation.target()) {
            (R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT, RelocationTarget::Symbol(index)) => {
                let symbol = table.symbol(index).ok();
                let name = symbol.and_then(|s| s.name(LittleEndian, table.strings()).ok());
                if let Some(name) = name.and_then(|n| std::str::from_utf8(n).ok()) {
                    slots.insert(place, name.to_owned());
                }
            }
            (R_X86_64_IRELATIVE, _) => {
                slots.insert(place, "[chosen at start]".to_owned());
            }
            _ => {}
        }
    }
    slots
}
