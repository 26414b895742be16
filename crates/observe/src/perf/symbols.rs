//! Names of code and data, from the files and from the kernel's own table.

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer as Blazesym};
use nearmiss_record::observed::Frame;
use nearmiss_symbols::{Elf as ElfFile, JitNames};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The module name of kernel code.
pub const KERNEL: &str = "[kernel]";
/// The module name of code made at run time.
pub const MADE_AT_RUN_TIME: &str = "[jit]";

/// Resolves addresses; remembers what it has resolved.
pub struct Symbolizer {
    inner: Blazesym,
    known: HashMap<(Option<Arc<Path>>, u64), Vec<Frame>>,
    data: Option<Vec<(u64, String)>>,
    files: HashMap<Arc<Path>, Option<ElfFile>>,
    made: HashMap<i32, JitNames>,
}

impl Default for Symbolizer {
    fn default() -> Self {
        let inner = Blazesym::builder().enable_code_info(true).enable_inlined_fns(true).enable_demangling(true).build();
        Symbolizer { inner, known: HashMap::new(), data: None, files: HashMap::new(), made: HashMap::new() }
    }
}

impl Symbolizer {
    /// Returns the frames of an instruction in a file, by its offset there: the innermost inlined function first.
    pub fn in_file(&mut self, path: &Arc<Path>, offset: u64) -> Vec<Frame> {
        let key = (Some(path.clone()), offset);
        if let Some(frames) = self.known.get(&key) {
            return frames.clone();
        }
        let module = path.to_string_lossy().into_owned();
        let named = if path.is_file() {
            let source = Source::Elf(Elf::new(path.as_ref()));
            self.inner.symbolize_single(&source, Input::FileOffset(offset)).ok()
        } else {
            None
        };
        let frames = match named.as_ref().and_then(Symbolized::as_sym) {
            Some(sym) => expand(sym, &module, offset, false),
            None => vec![self.unnamed(path, &module, offset)],
        };
        self.known.insert(key, frames.clone());
        frames
    }

    /// Names code without a symbol: by the begin of its function, which the tables for unwinding contain.
    fn unnamed(&mut self, path: &Arc<Path>, module: &str, offset: u64) -> Frame {
        let short = module.rsplit('/').next().unwrap_or(module);
        let file = self.files.entry(path.clone()).or_insert_with(|| ElfFile::open(path));
        let named = file.as_ref().and_then(|file| Some(file.name(short, file.address(offset)?)));
        let function = named.unwrap_or_else(|| format!("{short}+{offset:#x}"));
        Frame { function, module: module.to_owned(), address: offset, ..Frame::default() }
    }

    /// Lets the names of code made at run time be read anew: there may be more by now.
    pub fn forget_made(&mut self) {
        self.made.clear();
    }

    /// Returns the frame of an instruction that a process made at run time: all such code is one function where its
    /// runtime names none.
    pub fn made_at_run_time(&mut self, pid: i32, address: u64) -> Frame {
        let file = || JitNames::read(&JitNames::file(pid.unsigned_abs())).unwrap_or_default();
        let function = self.made.entry(pid).or_insert_with(file).at(address);
        let (function, line) = function.map_or((MADE_AT_RUN_TIME, ""), |made| (&made.name, &made.line));
        Frame {
            function: function.to_owned(),
            module: MADE_AT_RUN_TIME.to_owned(),
            line: line.to_owned(),
            ..Frame::default()
        }
    }

    /// Returns the frames of an instruction of the kernel.
    pub fn in_kernel(&mut self, address: u64) -> Vec<Frame> {
        let key = (None, address);
        if let Some(frames) = self.known.get(&key) {
            return frames.clone();
        }
        let source = Source::Kernel(Kernel::default());
        let named = self.inner.symbolize_single(&source, Input::AbsAddr(address)).ok();
        let frames = match named.as_ref().and_then(Symbolized::as_sym) {
            Some(sym) => expand(sym, KERNEL, address, true),
            None => vec![Frame {
                function: format!("[kernel]+{address:#x}"),
                module: KERNEL.to_owned(),
                address,
                kernel: true,
                ..Frame::default()
            }],
        };
        self.known.insert(key, frames.clone());
        frames
    }

    /// The kernel variable that lies at or covers an address (within a page after its symbol), by `/proc/kallsyms`.
    pub fn kernel_variable(&mut self, address: u64) -> Option<String> {
        let data = self.data.get_or_insert_with(|| {
            let mut data: Vec<(u64, String)> = fs::read_to_string("/proc/kallsyms")
                .unwrap_or_default()
                .lines()
                .filter_map(|line| {
                    let mut fields = line.split_whitespace();
                    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
                    let kind = fields.next()?;
                    let name = fields.next()?;
                    (address != 0 && "bBdDrRA".contains(kind)).then(|| (address, name.to_owned()))
                })
                .collect();
            data.sort();
            data
        });
        let after = data.partition_point(|(start, _)| *start <= address);
        let (start, name) = data.get(after.checked_sub(1)?)?;
        let end = data.get(after).map_or(u64::MAX, |(next, _)| *next);
        let offset = address - start;
        (address < end && offset < 4096 && after < data.len())
            .then(|| if offset == 0 { name.clone() } else { format!("{name}+{offset:#x}") })
    }
}

fn expand(sym: &Sym<'_>, module: &str, address: u64, kernel: bool) -> Vec<Frame> {
    let frame = |function: &str, code: Option<&CodeInfo<'_>>| Frame {
        function: function.to_owned(),
        module: module.to_owned(),
        line: code.map(place).unwrap_or_default(),
        address,
        kernel,
    };
    let mut frames: Vec<Frame> =
        sym.inlined.iter().rev().map(|inlined| frame(&inlined.name, inlined.code_info.as_ref())).collect();
    frames.push(frame(&sym.name, sym.code_info.as_deref()));
    frames
}

fn place(code: &CodeInfo<'_>) -> String {
    match code.line {
        Some(line) => format!("{}:{line}", code.to_path().display()),
        None => code.to_path().display().to_string(),
    }
}
