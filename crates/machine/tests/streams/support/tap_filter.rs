//! The plugin's own filters, compiled without QEMU and fed by hand.
#![allow(clippy::unwrap_used)]

use nearmiss_record::reference::Record;
use nearmiss_record::run::Filter;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `native/tap/tests/filter_cli.c`, running.
pub struct TapFilter {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    commands: String,
    _scratch: tempfile::TempDir,
}

impl TapFilter {
    /// Compiles and starts the filter. Without a C compiler with sanitizers: prints a line with the reason and returns
    /// `None`.
    pub fn start() -> Option<TapFilter> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/tap");
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("filter");
        let sources = ["tests/filter_cli.c", "filter.c", "sharing.c", "reference.c", "first_level.c", "code_line.c"];
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover", "-o"])
            .arg(&program)
            .args(["-I".as_ref(), folder.join("../include").as_os_str(), "-I".as_ref(), folder.as_os_str()])
            .args(sources.map(|source| folder.join(source)))
            .status();
        if !built.is_ok_and(|status| status.success()) {
            println!("skipped: no C compiler with sanitizers");
            return None;
        }
        let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(TapFilter { child, input, output, commands: String::new(), _scratch: scratch })
    }

    /// Forgets everything.
    pub fn begin(&mut self, filter: Filter, vcpus: u32) {
        let Filter { line_log2, index_low, index_bits, clear_on_slice, ordered_stores, by_task, every_access, .. } =
            filter;
        let modes = u8::from(clear_on_slice) | u8::from(ordered_stores) << 1 | u8::from(by_task) << 2;
        let modes = modes | u8::from(every_access) << 3;
        writeln!(self.commands, "new {vcpus:x} {line_log2:x} {index_low:x} {index_bits:x} {modes:x}").unwrap();
    }

    /// From here on this vCPU runs this task.
    pub fn slice(&mut self, vcpu: u32, task: u32) {
        writeln!(self.commands, "slice {vcpu:x} {task:x}").unwrap();
    }

    /// The vCPU executes so many instructions.
    pub fn run(&mut self, instructions: u64) {
        writeln!(self.commands, "run {instructions:x}").unwrap();
    }

    /// The vCPU touches memory; the record's virtual address is its physical one.
    pub fn reference(&mut self, record: Record) {
        let kind = record.kind().unwrap() as u8;
        let (address, size, insn) = (record.vaddr(), record.size(), record.insn().0);
        writeln!(self.commands, "ref {kind:x} {address:x} {size:x} {insn:x}").unwrap();
    }

    /// One store that the emulator reports in so many parts of 8 bytes.
    pub fn wide_store(&mut self, address: u64, parts: u32, insn: u32) {
        writeln!(self.commands, "wide {address:x} {parts:x} {insn:x}").unwrap();
    }

    /// Sets the calling context of the next events on this vCPU.
    pub fn context(&mut self, context: u32) {
        writeln!(self.commands, "context {context:x}").unwrap();
    }

    /// The vCPU executes a fence.
    pub fn fence(&mut self) {
        self.commands.push_str("fence\n");
    }

    /// Returns the plugin's records since the last call.
    pub fn sent(&mut self) -> Vec<Record> {
        self.commands.push_str("send\n");
        self.input.write_all(self.commands.as_bytes()).unwrap();
        self.commands.clear();
        let mut records = Vec::new();
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the filter ended");
            let Some((a, b)) = line.trim_end().split_once(' ') else { return records };
            records.push(Record { a: u64::from_str_radix(a, 16).unwrap(), b: u64::from_str_radix(b, 16).unwrap() });
        }
    }
}

impl Drop for TapFilter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
