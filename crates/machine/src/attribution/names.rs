//! Names for instruction ids and calling contexts.

use nearmiss_record::go;
use nearmiss_record::side::{Context, Insn, SideTables};
use nearmiss_record::symbols::{Function, Symbols};
use std::collections::BTreeMap;

/// Name of unattributed work.
pub(super) const UNATTRIBUTED: &str = "[unattributed]";
/// Directory of the heap shim in the guest.
const SHIM_DIRECTORY: &str = "/run/nearmiss/";
/// Most functions of a list.
const MAX_FUNCTIONS: usize = 8;
/// Deepest call stack that is reported.
const MAX_DEPTH: usize = 256;

/// Looks up the tables beside the stream.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub symbols: &'a Symbols,
    pub insns: &'a [Insn],
    contexts: &'a [Context],
}

impl<'a> Names<'a> {
    pub fn new(symbols: &'a Symbols, side: &'a SideTables) -> Self {
        Names { symbols, insns: &side.insns, contexts: &side.contexts }
    }

    /// Index of the function of an instruction; 0: unknown.
    pub fn function(&self, insn: u32) -> u32 {
        let function = self.symbols.insns.get(insn as usize).map_or(0, |i| i.0);
        if (function as usize) < self.symbols.functions.len() { function } else { 0 }
    }

    /// Source file and line, where known.
    pub fn line(&self, insn: u32) -> Option<(&'a str, u32)> {
        let (_, file, line) = *self.symbols.insns.get(insn as usize)?;
        let file = self.symbols.files.get(file as usize).filter(|f| !f.is_empty())?;
        (line != 0).then_some((file, line))
    }

    fn entry(&self, function: u32) -> Option<&'a Function> {
        if function == 0 { None } else { self.symbols.functions.get(function as usize) }
    }

    pub fn function_name(&self, function: u32) -> &'a str {
        self.entry(function).map_or(UNATTRIBUTED, |f| f.name.as_str())
    }

    pub fn module(&self, function: u32) -> &'a str {
        let module = self.entry(function).and_then(|f| self.symbols.modules.get(f.module as usize));
        module.map_or("", String::as_str)
    }

    pub fn is_kernel_function(&self, function: u32) -> bool {
        self.entry(function).is_some_and(|f| f.kernel)
    }

    /// The calls that lead to `context`, outermost first.
    pub fn calls(&self, context: u32) -> Vec<u32> {
        let (mut calls, mut at) = (Vec::new(), context);
        while at != 0 && calls.len() < MAX_DEPTH {
            let Some(node) = self.contexts.get(at as usize) else { break };
            calls.push(node.call);
            // A parent is always older; anything else is damage, and could be a ring.
            if node.parent >= at {
                break;
            }
            at = node.parent;
        }
        calls.reverse();
        calls
    }

    /// The innermost call that leads to `context`; 0: none is known.
    pub fn calling_insn(&self, context: u32) -> u32 {
        self.contexts.get(context as usize).map_or(0, |node| node.call)
    }

    /// Returns the calls that lead to an allocation, without those inside the allocator or the kernel, and those that
    /// led to the program's `main`.
    pub fn allocation_calls(&self, context: u32) -> Vec<u32> {
        let mut calls = self.calls(context);
        let is_main = |call: &u32| matches!(self.function_name(self.function(*call)), "main" | "main.main");
        if let Some(main) = calls.iter().rposition(is_main) {
            calls.drain(..main);
        }
        let is_inside = |call: &u32, inside: &dyn Fn(&str, &str) -> bool| {
            let function = self.function(*call);
            self.is_kernel_function(function) || inside(self.function_name(function), self.module(function))
        };
        while calls.last().is_some_and(|call| is_inside(call, &is_allocator)) {
            calls.pop();
        }
        // A container of the language's library allocates for the program, unless the library allocates for itself.
        // What the program hands to it may be inlined there.
        let is_own = |call: &u32| self.symbols.own_line(*call).is_some() || !is_inside(call, &is_of_library);
        let own = calls.iter().rposition(is_own);
        calls.truncate(own.map_or(calls.len(), |own| own + 1));
        calls
    }

    /// Functions of instructions with their counts, most first.
    pub fn most_of<'b>(&self, counts: impl Iterator<Item = (&'b u32, &'b u64)>) -> Vec<(String, u64)> {
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for (insn, count) in counts {
            *functions.entry(self.function_name(self.function(*insn))).or_default() += count;
        }
        let mut functions: Vec<(String, u64)> = functions.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        functions.truncate(MAX_FUNCTIONS);
        functions
    }

    /// `run_queue.c:41 new_task`, or `new_task` where no line is known.
    pub fn site(&self, call: u32) -> String {
        let name = self.function_name(self.function(call));
        match self.symbols.own_line(call).or_else(|| self.line(call)) {
            Some((file, line)) => format!("{}:{line} {name}", file.rsplit('/').next().unwrap_or(file)),
            None => name.to_owned(),
        }
    }
}

/// Whether a function only passes a request for memory on.
fn is_allocator(name: &str, module: &str) -> bool {
    const NAMES: &[&str] = &[
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "aligned_alloc",
        "memalign",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "__libc_malloc",
        "__libc_calloc",
        "__libc_realloc",
        "__libc_memalign",
        "xmalloc",
        "xcalloc",
        "xrealloc",
        "xnmalloc",
        "xzalloc",
        "g_malloc",
        "g_malloc0",
        "g_realloc",
        "mmap",
        "mmap64",
        "__mmap",
        "__mmap64",
        "mremap",
        "pthread_create",
        "__pthread_create",
        "allocate_stack",
        "thrd_create",
        "brk",
        "sbrk",
        "create_thread",
        "_int_malloc",
        "_int_realloc",
        "_int_memalign",
        "_mid_memalign",
        "sysmalloc",
        "tcache_init",
        "__default_morecore",
        "__minimal_malloc",
        "runtime.mallocgc",
        "runtime.newobject",
        "runtime.makeslice",
        "runtime.makeslicecopy",
        "runtime.growslice",
    ];
    const PREFIXES: &[&str] = &[
        "operator new",
        "__rust_alloc",
        "__rust_realloc",
        "__rdl_",
        "alloc::alloc::",
        "alloc::raw_vec::",
        "<alloc::alloc::Global",
        "pthread_create@",
    ];
    let plain = name.split(['@', '(']).next().unwrap_or(name);
    NAMES.contains(&plain)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || module.starts_with(SHIM_DIRECTORY)
}

/// Whether a function belongs to the standard library of C++, Rust or Go.
fn is_of_library(name: &str, module: &str) -> bool {
    /// The last four begin names that could not be demangled.
    const NAMESPACES: &[&str] =
        &["std::", "__gnu_cxx::", "core::", "alloc::", "hashbrown::", "_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx"];
    /// Functions there without a symbol have the file's name.
    const FILES: &[&str] = &["libstdc++.so", "libc++.so", "libc++abi.so"];
    let file = module.rsplit('/').next().unwrap_or(module);
    NAMESPACES.iter().any(|namespace| name.trim_start_matches('<').starts_with(namespace))
        || FILES.iter().any(|library| file.starts_with(library))
        || go::is_of_library(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_separated_from_their_users() {
        let is_of_library = |name: &str| super::is_of_library(name, "/home/me/program");
        assert!(is_of_library("std::vector<Node, std::allocator<Node> >::_M_realloc_insert<Node>"));
        assert!(is_of_library(
            "_ZSt11make_sharedI6SpriteJRiddEESt10shared_ptrINSt9enable_ifIXntsrSt8is_arrayIT_E5value"
        ));
        assert!(is_of_library("<alloc::vec::Vec<T> as core::iter::FromIterator>::from_iter"));
        assert!(is_of_library("runtime.growslice") && is_of_library("strings.(*Builder).WriteString"));
        assert!(
            !is_of_library("main.main") && !is_of_library("example.com/strings.Join") && !is_of_library("sort.part.0")
        );
        assert!(
            !is_of_library("main") && !is_of_library("stdlib::table") && !is_of_library("<app::Tree as Drop>::drop")
        );
    }

    #[test]
    fn functions_without_a_symbol_belong_to_the_library_of_their_file() {
        assert!(is_of_library("libstdc++.so.6.0.30+0x17df90", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"));
        assert!(!is_of_library("libtable.so+0x1000", "/opt/libtable.so"));
    }

    #[test]
    fn what_the_library_calls_back_is_the_users() {
        let function = |name: &str| Function { name: name.to_owned(), ..Function::default() };
        let invoke = "std::_Function_handler<void (int), main::{lambda(int)#1}>::_M_invoke";
        let named = ["", "main", invoke, "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>"];
        let context = |parent: u32| Context { parent, call: parent + 1 };
        let side = SideTables {
            contexts: vec![Context::default(), context(0), context(1), context(2)],
            ..SideTables::default()
        };
        let mut symbols = Symbols {
            functions: named.into_iter().map(function).collect(),
            files: vec![String::new(), "tasks.cc".to_owned()],
            insns: vec![(0, 0, 0), (1, 1, 20), (2, 1, 12), (3, 0, 0)],
            inlined_at: vec![(2, 1, 12)],
            ..Symbols::default()
        };
        assert_eq!(Names::new(&symbols, &side).allocation_calls(3), [1, 2]);
        symbols.inlined_at.clear();
        assert_eq!(Names::new(&symbols, &side).allocation_calls(3), [1]);
    }

    #[test]
    fn allocators_are_separated_from_their_callers() {
        assert!(is_allocator("malloc", "") && is_allocator("operator new(unsigned long)", ""));
        assert!(is_allocator("pthread_create@@GLIBC_2.34", "/lib/libc.so.6"));
        assert!(is_allocator("preload.so+0x1000", "/run/nearmiss/preload.so"));
        assert!(is_allocator("runtime.newobject", "/bin/x") && !is_allocator("runtime.malg", "/bin/x"));
        assert!(!is_allocator("main", "/bin/x") && !is_allocator("malloc_stats_of_mine", "/bin/x"));
    }

    #[test]
    fn a_damaged_context_tree_ends() {
        let side = SideTables {
            contexts: vec![Context::default(), Context { parent: 2, call: 5 }, Context { parent: 1, call: 6 }],
            ..SideTables::default()
        };
        let symbols = Symbols::default();
        assert_eq!(Names::new(&symbols, &side).calls(2), [5, 6]);
        assert_eq!(Names::new(&symbols, &side).calls(9), [0u32; 0]);
    }
}
