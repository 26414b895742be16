//! Names of a run's code and data, resolved while the files are those that ran.

mod code;
mod debug;
mod demangle;
mod disassembly;
mod dwarf;
mod elf;
mod entry;
mod jit;
mod kallsyms;
mod lines;
mod live;
mod locals;
mod plt;
mod resolve;
mod stack;
mod structures;
#[cfg(test)]
mod tests;
mod unwind;

pub use elf::{Elf, has_symbol_table};
pub use entry::{Entry, entry, managed_allocator};
pub use jit::{JitFunction, JitNames};
pub use live::{Booted, LiveData};
pub use resolve::{Sources, resolve};
pub use structures::{Member, Structure, structures};
