//! From instruction ids to functions and source lines.

use super::elf::Elf;
use super::jit::{JitFunction, JitNames};
use super::kallsyms::Kallsyms;
use super::lines::{Lines, SourcePlace};
use super::live::module_data;
use super::stack::Calls;
use nearmiss_record::maps::MapLog;
use nearmiss_record::side::{Context, INSN_KERNEL, Insn};
use nearmiss_record::symbols::{Function, KERNEL_MODULE, KernelLayout, KernelPages, KernelStructure, SCHEMA, Symbols};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const UNKNOWN: &str = "[unknown]";
const JIT: &str = "[jit]";
const VDSO: &str = "[vdso]";
/// The kernel maps its own page of user code up here without an event.
const VDSO_FLOOR: u64 = 0x7ff0_0000_0000;
const USER_END: u64 = 1 << 47;
/// Most variables of stacks.
const MOST_VARIABLES: usize = 1 << 16;

/// Sources of names.
pub struct Sources<'a> {
    /// The run's instructions.
    pub insns: &'a [Insn],
    /// The run's calling contexts.
    pub contexts: &'a [Context],
    /// By context, the address that its call stored the return address at, the first time.
    pub call_slots: &'a [u64],
    /// Mappings by process and time.
    pub maps: &'a MapLog,
    /// Text of the guest's `/proc/kallsyms`.
    pub kallsyms: &'a str,
    /// Places of the guest kernel's data.
    pub layout: KernelLayout,
    /// Uses of the guest's pages.
    pub pages: KernelPages,
    /// Structures in the guest kernel's slabs.
    pub structures: Vec<KernelStructure>,
    /// Returns the names of the code that a process made at run time.
    pub made: &'a dyn Fn(u32) -> Option<JitNames>,
}

/// Names every instruction as well as can be. A file that is gone or cannot be read costs its names, nothing else.
pub fn resolve(sources: Sources<'_>) -> Symbols {
    let mut table = Table::new(sources.insns.len());
    let mut by_file: BTreeMap<&str, Vec<(u64, u32)>> = BTreeMap::new();
    let mut made: BTreeMap<Option<u32>, Vec<(u64, u32)>> = BTreeMap::new();
    let mut kernel = Vec::new();
    for (id, insn) in (0u32..).zip(sources.insns) {
        if insn.flags & INSN_KERNEL != 0 {
            kernel.push((insn.vaddr, id));
            continue;
        }
        match sources.maps.place(id, insn) {
            Some(place) if place.is_file => by_file.entry(place.path).or_default().push((place.file_offset, id)),
            Some(place) if place.path.starts_with(VDSO) => table.set(id, VDSO, VDSO, false, None),
            Some(_) => made.entry(sources.maps.process(insn.task, id)).or_default().push((insn.vaddr, id)),
            None if (VDSO_FLOOR..USER_END).contains(&insn.vaddr) => table.set(id, VDSO, VDSO, false, None),
            None => {}
        }
    }
    let mut data: Vec<_> = sources.maps.files().into_iter().filter_map(module_data).collect();
    if !kernel.is_empty() {
        let symbols = Kallsyms::parse(sources.kallsyms);
        for (address, id) in kernel {
            match symbols.function(address) {
                Some((name, module)) => table.set(id, module, name, true, None),
                None => table.set(id, KERNEL_MODULE, KERNEL_MODULE, true, None),
            }
        }
        data.push(symbols.data);
    }
    for (process, insns) in made {
        name_made(&mut table, process.and_then(sources.made).unwrap_or_default(), insns);
    }
    let (lines, calls) = (Lines::new(), Calls::new(sources.contexts, sources.call_slots));
    for (path, insns) in by_file {
        name_file(&mut table, &lines, &calls, path, insns);
    }
    table.symbols.stack.sort_unstable();
    table.symbols.stack.truncate(MOST_VARIABLES);
    Symbols {
        data,
        kernel_layout: sources.layout,
        kernel_pages: sources.pages,
        kernel_structures: sources.structures,
        ..table.finish()
    }
}

/// Names code made at run time; all that no runtime named is one function.
fn name_made(table: &mut Table, names: JitNames, insns: Vec<(u64, u32)>) {
    for (address, id) in insns {
        let function = names.at(address);
        let place = function.map(place_of);
        table.set(id, JIT, function.map_or(JIT, |function| &function.name), false, place.as_ref());
    }
}

fn place_of(function: &JitFunction) -> SourcePlace {
    let split = function.line.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = split.unwrap_or((&function.line, 0));
    SourcePlace { file: Some(file.to_owned()), line, ..SourcePlace::default() }
}

fn name_file(table: &mut Table, lines: &Lines, calls: &Calls<'_>, path: &str, mut insns: Vec<(u64, u32)>) {
    insns.sort_unstable();
    let base = path.rsplit('/').next().unwrap_or(path);
    let Some(elf) = Elf::open(Path::new(path)) else {
        for (offset, id) in insns {
            table.set(id, path, &format!("{base}+{:#x}", offset & !0xfff), false, None);
        }
        return;
    };
    let mut addresses: Vec<_> = insns.iter().filter_map(|(offset, id)| Some((elf.address(*offset)?, *id))).collect();
    addresses.sort_unstable();
    table.symbols.stack.extend(calls.variables(path, &elf, &addresses));
    let mut unique: Vec<u64> = addresses.iter().map(|a| a.0).collect();
    unique.dedup();
    let places = if elf.has_debug_info() { lines.places(Path::new(path), &unique) } else { Vec::new() };
    let unnamed = format!("{base}+");
    let mut last: Option<(u64, String)> = None;
    let mut at = 0;
    for (address, id) in addresses {
        while unique[at] < address {
            at += 1;
        }
        let place = places.get(at);
        if last.as_ref().is_none_or(|(known, _)| *known != address) {
            let name = elf.name(base, address);
            // A stripped file's debug file has more names than its symbol tables.
            let better = place.and_then(|p| p.function.as_ref()).filter(|_| name.starts_with(&unnamed));
            last = Some((address, better.cloned().unwrap_or(name)));
        }
        if let Some((_, name)) = &last {
            table.set(id, path, name, false, place);
        }
    }
}

/// Builds the tables, each name once.
struct Table {
    symbols: Symbols,
    modules: HashMap<String, u32>,
    functions: HashMap<(u32, String), u32>,
    files: HashMap<String, u32>,
    /// Instructions of the innermost inlined functions by function, `None` for its own.
    inlined: HashMap<u32, BTreeMap<Option<String>, u64>>,
}

impl Table {
    fn new(insns: usize) -> Self {
        let unknown = Function { name: UNKNOWN.to_owned(), ..Function::default() };
        Table {
            symbols: Symbols {
                schema: SCHEMA.to_owned(),
                modules: vec![UNKNOWN.to_owned()],
                functions: vec![unknown],
                files: vec![String::new()],
                insns: vec![(0, 0, 0); insns],
                ..Symbols::default()
            },
            modules: HashMap::from([(UNKNOWN.to_owned(), 0)]),
            functions: HashMap::new(),
            files: HashMap::from([(String::new(), 0)]),
            inlined: HashMap::new(),
        }
    }

    fn set(&mut self, id: u32, module: &str, name: &str, kernel: bool, place: Option<&SourcePlace>) {
        let module = index(&mut self.modules, &mut self.symbols.modules, module);
        let functions = &mut self.symbols.functions;
        let function = match self.functions.get(&(module, name.to_owned())) {
            Some(known) => *known,
            None => {
                functions.push(Function { name: name.to_owned(), module, kernel, inlined: None });
                self.functions.insert((module, name.to_owned()), functions.len() as u32 - 1);
                functions.len() as u32 - 1
            }
        };
        let (mut file, mut line) = (0, 0);
        if let Some(place) = place {
            let path = place.file.as_deref().filter(|_| place.line != 0).unwrap_or("");
            file = index(&mut self.files, &mut self.symbols.files, path);
            line = if file == 0 { 0 } else { place.line };
            *self.inlined.entry(function).or_default().entry(place.inlined.clone()).or_default() += 1;
            if let Some((path, line)) = &place.inlined_at {
                let file = index(&mut self.files, &mut self.symbols.files, path);
                self.symbols.inlined_at.push((id, file, *line));
            }
        }
        self.symbols.insns[id as usize] = (function, file, line);
    }

    fn finish(mut self) -> Symbols {
        self.symbols.inlined_at.sort_unstable();
        for (function, names) in self.inlined {
            let all: u64 = names.values().sum();
            let most = names.into_iter().find(|(_, count)| count * 2 > all);
            self.symbols.functions[function as usize].inlined = most.and_then(|(name, _)| name);
        }
        self.symbols
    }
}

fn index(known: &mut HashMap<String, u32>, all: &mut Vec<String>, text: &str) -> u32 {
    match known.get(text) {
        Some(index) => *index,
        None => {
            all.push(text.to_owned());
            known.insert(text.to_owned(), all.len() as u32 - 1);
            all.len() as u32 - 1
        }
    }
}
