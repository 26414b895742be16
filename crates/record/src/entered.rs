//! How often a run entered each function, and which functions of the kernel serve system calls.

use crate::side::SideTables;
use crate::symbols::Symbols;
use std::collections::HashMap;

/// Prefixes of the kernel functions that serve a system call: of a 64-bit program, and of a 32-bit one.
const SERVED_BY: [&str; 2] = ["__x64_sys_", "__ia32_sys_"];
/// Prefix of the function behind them, which serves a call without arguments by itself.
const SERVED_WITHOUT_ARGUMENTS: &str = "__do_sys_";
/// System calls that the kernel has under another name than programs.
const RENAMED: [(&str, &str); 6] = [
    ("newstat", "stat"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];

/// Returns the system call, as programs name it, that a function of the kernel serves.
pub fn system_call(function: &str) -> Option<&str> {
    SERVED_BY.iter().find_map(|prefix| function.strip_prefix(prefix)).map(renamed)
}

/// Returns the system call that a function serves if no function serves it that [`system_call`] names.
pub fn system_call_without_arguments(function: &str) -> Option<&str> {
    function.strip_prefix(SERVED_WITHOUT_ARGUMENTS).map(renamed)
}

fn renamed(call: &str) -> &str {
    RENAMED.iter().find(|(kernels, _)| *kernels == call).map_or(call, |(_, programs)| programs)
}

/// Returns the entries of each function by all tasks: by index of the function.
pub fn entries(side: &SideTables, symbols: &Symbols) -> HashMap<u32, u64> {
    // A function is entered at its first instruction, with which a block and so a run of instructions begins. The
    // same instruction may be in the table several times, with runs of other lengths.
    let mut first: HashMap<u32, (u64, u64)> = HashMap::new();
    for (insn, (function, ..)) in side.insns.iter().zip(&symbols.insns) {
        if insn.run == 0 || insn.executions == 0 || *function == 0 {
            continue;
        }
        let entry = first.entry(*function).or_insert((insn.vaddr, 0));
        match insn.vaddr.cmp(&entry.0) {
            std::cmp::Ordering::Less => *entry = (insn.vaddr, insn.executions),
            std::cmp::Ordering::Equal => entry.1 += insn.executions,
            std::cmp::Ordering::Greater => {}
        }
    }
    first.into_iter().map(|(function, (_, entered))| (function, entered)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Insn;

    fn insn(vaddr: u64, run: u32, executions: u64) -> Insn {
        Insn { vaddr, run, executions, ..Insn::default() }
    }

    #[test]
    fn a_function_is_entered_at_its_first_instruction() {
        let symbols =
            Symbols { insns: vec![(1, 0, 0), (1, 0, 0), (1, 0, 0), (2, 0, 0), (0, 0, 0)], ..Symbols::default() };
        // A loop inside runs more often, and the entry is in the table twice.
        let insns =
            vec![insn(0x108, 3, 900), insn(0x100, 8, 30), insn(0x100, 2, 12), insn(0x200, 0, 5), insn(0x1, 1, 7)];
        let side = SideTables { insns, ..SideTables::default() };
        assert_eq!(entries(&side, &symbols), HashMap::from([(1, 42)]));
    }

    #[test]
    fn system_calls_have_the_names_that_programs_use() {
        assert_eq!(["__x64_sys_read", "__ia32_sys_openat"].map(system_call), [Some("read"), Some("openat")]);
        assert_eq!(["__x64_sys_newstat", "__x64_sys_newfstatat"].map(system_call), [Some("stat"), Some("newfstatat")]);
        assert_eq!(["do_syscall_64", "__do_sys_getpid"].map(system_call), [None; 2]);
        assert_eq!(system_call_without_arguments("__do_sys_getpid"), Some("getpid"));
    }
}
