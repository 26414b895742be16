//! Ways to a copy: the call that requested it, and the call before that one. Many call sites of a trace are one way: a
//! routine that copies has several instructions that store.

use nearmiss_record::policy::CallSite;
use nearmiss_record::side::Context;
use nearmiss_record::symbols::{KERNEL_MODULE, Symbols};

/// How a copying instruction was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CopyWay {
    /// A copying routine of the C library, called from outside of it: a preloaded library takes its place.
    Called {
        /// Instruction of the call.
        call: u32,
        /// Instruction of the call that led to the function which the call is in; 0: none is known.
        outer: u32,
    },
    /// An instruction of another function, by the function's number: out of a preloaded library's reach.
    Inside(u32),
}

/// The tables that name ways.
#[derive(Clone, Copy)]
pub(super) struct Ways<'a> {
    pub symbols: &'a Symbols,
    pub contexts: &'a [Context],
}

impl Ways<'_> {
    /// The way of a call site that stores.
    pub fn of(&self, site: CallSite) -> CopyWay {
        let (call, parent) = self.context(site.context);
        let function = self.function(site.insn);
        if call != 0 && self.is_copying(function) && !self.is_libc(self.function(call)) {
            return CopyWay::Called { call, outer: self.context(parent).0 };
        }
        CopyWay::Inside(function)
    }

    /// The call that leads to a context, and the context of its caller.
    fn context(&self, context: u32) -> (u32, u32) {
        self.contexts.get(context as usize).map_or((0, 0), |node| (node.call, node.parent))
    }

    /// Number of the function of an instruction; 0: unknown.
    pub fn function(&self, insn: u32) -> u32 {
        self.symbols.insns.get(insn as usize).map_or(0, |insn| insn.0)
    }

    /// A function's name.
    pub fn name(&self, function: u32) -> &str {
        self.symbols.functions.get(function as usize).map_or("", |function| function.name.as_str())
    }

    /// Function, file and line of an instruction: "`fill` (rows.c:12)".
    pub fn place(&self, insn: u32) -> String {
        let (function, file, line) = self.symbols.insns.get(insn as usize).copied().unwrap_or_default();
        let innermost = self.symbols.files.get(file as usize).map(|file| (file.as_str(), line));
        let name = self.name(function);
        match self.symbols.own_line(insn).or(innermost) {
            Some((file, line)) if line > 0 => format!("`{name}` ({}:{line})", file.rsplit('/').next().unwrap_or(file)),
            _ => format!("`{name}`"),
        }
    }

    /// Path of a function's file.
    pub fn module(&self, function: u32) -> &str {
        let number = self.symbols.functions.get(function as usize).map_or(u32::MAX, |function| function.module);
        self.symbols.modules.get(number as usize).map_or("", String::as_str)
    }

    /// Whether a function is the kernel's.
    pub fn is_kernel(&self, function: u32) -> bool {
        self.module(function) == KERNEL_MODULE
    }

    fn is_libc(&self, function: u32) -> bool {
        is_libc(self.module(function))
    }

    fn is_copying(&self, function: u32) -> bool {
        is_copying(self.module(function), self.name(function))
    }
}

/// Whether a file is the C library, or its loader.
pub(super) fn is_libc(module: &str) -> bool {
    let file = module.rsplit('/').next().unwrap_or_default();
    file.starts_with("libc.so") || file.starts_with("libc-2.") || file.starts_with("ld-linux")
}

/// Whether a preloaded library takes the place of this routine. A function of a C library without symbols is named by
/// its address, and what is called from outside and stores in bulk is taken for such a routine.
pub(super) fn is_copying(module: &str, function: &str) -> bool {
    const ROUTINES: [&str; 4] = ["memcpy", "memmove", "mempcpy", "memset"];
    is_libc(module) && (!is_named(function) || ROUTINES.iter().any(|routine| function.contains(routine)))
}

/// Whether a function of the C library has a name, and not its address for one.
pub(super) fn is_named(function: &str) -> bool {
    !function.starts_with("libc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::symbols::Function;

    #[test]
    fn a_copy_is_reached_by_a_call_from_outside_the_c_library_or_not_at_all() {
        let function = |name: &str, module| Function { name: name.into(), module, ..Function::default() };
        let symbols = Symbols {
            modules: vec!["/usr/bin/p".into(), "/lib/libc.so.6".into()],
            functions: vec![
                function("", 0),
                function("store", 0),
                function("__memmove_avx_unaligned_erms", 1),
                function("fread", 1),
                function("libc.so.6+0x1234", 1),
                function("strcpy", 1),
            ],
            insns: [0, 1, 2, 3, 4, 5].map(|function| (function, 0, 0)).to_vec(),
            ..Symbols::default()
        };
        let node = |parent, call| Context { parent, call };
        // 1: called by store; 2: by fread, which store called.
        let contexts = [node(0, 0), node(0, 1), node(1, 3)];
        let ways = Ways { symbols: &symbols, contexts: &contexts };
        let way = |context, insn| ways.of(CallSite { context, insn });
        assert_eq!(way(1, 2), CopyWay::Called { call: 1, outer: 0 });
        assert_eq!(way(1, 4), CopyWay::Called { call: 1, outer: 0 }, "a C library without symbols");
        assert_eq!(way(2, 2), CopyWay::Inside(2), "inside the C library");
        assert_eq!(way(0, 2), CopyWay::Inside(2), "by nobody known");
        assert_eq!(way(1, 1), CopyWay::Inside(1), "built into the program");
        assert_eq!(way(1, 5), CopyWay::Inside(5), "no routine of ours");
    }
}
