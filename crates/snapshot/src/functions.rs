//! Functions that a process's C library has chosen for its CPU.
//!
//! glibc picks its string functions when a process starts, by the CPU it finds (`IFUNC`), and keeps their addresses
//! where `R_X86_64_IRELATIVE` relocations point. On a CPU with AVX-512 these are functions of EVEX instructions, which
//! the guest does not have: the restored process would end at its first `strlen`. The addresses are read from the
//! process, and the instructions there are looked at; the names of these functions are in no symbol table of a stripped
//! library.

use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, FlowControl};
use nearmiss_symbols::Elf;
use object::read::elf::{ElfFile64, FileHeader, Rela, SectionHeader};
use object::{Endianness, elf};
use std::fs;
use std::os::unix::fs::FileExt;

/// Bytes of a function that are looked at: EVEX instructions come early in these.
const LOOKED_AT: usize = 256;

/// Functions of a C library as a process has chosen them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The library's file.
    pub(crate) library: String,
    /// The address at which it is mapped.
    pub(crate) base: u64,
    /// The place of each address, relative to the base, and the address.
    pub(crate) functions: Vec<(u64, u64)>,
    /// Addresses of functions that the guest's CPU cannot run.
    pub(crate) wide: Vec<u64>,
}

/// A library as it is mapped.
struct Mapped {
    path: String,
    base: u64,
}

impl Chosen {
    /// Returns the functions of a process's C library; `None` where it has none, or cannot be read.
    pub(crate) fn by(pid: i32) -> Option<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let library = c_library(&maps)?;
        let slots = irelative_slots(&fs::read(&library.path).ok()?)?;
        let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
        let function = |slot: u64| {
            let mut address = [0; 8];
            memory.read_exact_at(&mut address, library.base + slot).ok()?;
            Some((slot, u64::from_le_bytes(address)))
        };
        let functions: Vec<(u64, u64)> = slots.into_iter().filter_map(function).collect();
        let is_wide = |at: &u64| {
            let mut code = [0; LOOKED_AT];
            memory.read_at(&mut code, *at).is_ok_and(|length| is_wide(&code[..length], *at))
        };
        let mut wide: Vec<u64> = functions.iter().map(|(_, address)| *address).collect();
        wide.sort_unstable();
        wide.dedup();
        wide.retain(is_wide);
        Some(Chosen { library: library.path, base: library.base, functions, wide })
    }
}

/// glibc is `libc.so.6` everywhere, and `libc-2.31.so` on older releases.
fn c_library(maps: &str) -> Option<Mapped> {
    maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        let name = path.rsplit('/').next()?;
        let is_libc = name == "libc.so.6" || name.starts_with("libc-2.") && name.ends_with(".so");
        let (start, rest) = line.split_once('-')?;
        let offset = rest.split(' ').nth(2)?;
        let is_first = u64::from_str_radix(offset, 16) == Ok(0);
        (is_libc && is_first).then_some(Mapped { path: path.into(), base: u64::from_str_radix(start, 16).ok()? })
    })
}

/// The places of the addresses of chosen functions, relative to the library's base.
fn irelative_slots(file: &[u8]) -> Option<Vec<u64>> {
    let elf = ElfFile64::<Endianness>::parse(file).ok()?;
    let endian = elf.endian();
    let sections = elf.elf_header().sections(endian, file).ok()?;
    let mut slots = Vec::new();
    for section in sections.iter() {
        if let Ok(Some((relocations, _))) = section.rela(endian, file) {
            let chosen = relocations.iter().filter(|r| r.r_type(endian, false) == elf::R_X86_64_IRELATIVE);
            slots.extend(chosen.map(|relocation| relocation.r_offset(endian)));
        }
    }
    Some(slots)
}

/// Whether the function of a library at a linked address has EVEX instructions anywhere, in whichever of its paths.
pub(crate) fn has_evex(library: &Elf, at: u64) -> bool {
    let Some((start, bytes)) = library.extent(at) else { return false };
    let Some(code) = library.bytes_at(start, bytes) else { return false };
    Decoder::with_ip(64, code, start, DecoderOptions::NONE).iter().any(|i| i.code().encoding() == EncodingKind::EVEX)
}

/// Whether the code from here to its first return has EVEX instructions.
fn is_wide(code: &[u8], at: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.code() == Code::INVALID || instruction.flow_control() == FlowControl::Return {
            return false;
        }
        if instruction.code().encoding() == EncodingKind::EVEX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `vpminub ymm17,ymm16,[rdi]` behind a `test`.
    const EVEX: [u8; 10] = [0x85, 0xc0, 0x62, 0xe1, 0x7d, 0x20, 0xda, 0x0f, 0x90, 0xc3];
    /// `vpcmpeqb ymm1,ymm0,[rdi]; ret`, then what is another function's.
    const AVX2: [u8; 12] = [0xc5, 0xfd, 0x74, 0x0f, 0xc3, 0x90, 0x62, 0xe1, 0x7d, 0x20, 0xda, 0x0f];

    #[test]
    fn evex_before_the_return_is_wide() {
        assert!(is_wide(&EVEX, 0x1000));
        assert!(!is_wide(&AVX2, 0x1000));
        assert!(!is_wide(&[0xb8, 0x62, 0x62, 0x62, 0x62, 0xc3], 0x1000), "a byte of a constant is no prefix");
    }

    #[test]
    fn the_library_is_found_by_its_first_mapping() {
        let maps = "7f0000028000-7f0000200000 r-xp 00028000 08:01 7 /usr/lib/libc.so.6\n\
                    7f0000000000-7f0000028000 r--p 00000000 08:01 7 /usr/lib/libc.so.6\n";
        let library = c_library(maps);
        assert_eq!(library.map(|l| (l.path, l.base)), Some(("/usr/lib/libc.so.6".into(), 0x7f00_0000_0000)));
    }
}
