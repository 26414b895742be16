//! Names of small programs compiled here.

use super::elf::Elf;
use super::live::module_data;
use super::stack::Calls;
use super::{JitNames, Sources, managed_allocator, resolve};
use nearmiss_record::maps::{Event, MapLog, Mapping};
use nearmiss_record::side::{Context, INSN_KERNEL, Insn};
use nearmiss_record::symbols::{KernelLayout, KernelPages, StackVariable, Symbols};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
#include <stdio.h>
#include <stdlib.h>
long counters[512];
int table[4] = {1, 2, 3, 4};
static inline __attribute__((always_inline)) long twice(long x) {
    return x * counters[x & 511];
}
__attribute__((noinline)) long sum(long n) {
    long s = 0;
    for (long i = 0; i < n; i++)
        s += twice(i) + table[i & 3];
    return s;
}
int main(int argc, char **argv) {
    char *p = malloc(sum(argc) & 15);
    printf(\"%p\\n\", p);
    return 0;
}
";

/// Prints a line with the reason and returns `None` if there is no compiler.
fn compile(directory: &Path, options: &[&str]) -> Option<PathBuf> {
    compile_source(directory, SOURCE, options)
}

fn compile_source(directory: &Path, text: &str, options: &[&str]) -> Option<PathBuf> {
    let (source, program) = (directory.join("prog.c"), directory.join("prog"));
    std::fs::write(&source, text).unwrap();
    let run = Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(&source).args(options).output();
    match run {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            println!("skipped: gcc does not run here: {error}");
            None
        }
    }
}

/// Prints a line with the reason and returns `None` if there is no Go.
fn compile_go(directory: &Path, text: &str) -> Option<PathBuf> {
    let (source, program) = (directory.join("prog.go"), directory.join("prog"));
    std::fs::write(&source, text).unwrap();
    match Command::new("go").current_dir(directory).args(["build", "-o"]).args([&program, &source]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            println!("skipped: go does not run here: {error}");
            None
        }
    }
}

/// Address of a symbol, from `nm`.
fn address(program: &Path, symbol: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|l| l.split_whitespace().nth(2) == Some(symbol)).unwrap();
    u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
}

/// Innermost source line of an address, as binutils see it.
fn addr2line(program: &Path, address: u64) -> u32 {
    let output = Command::new("addr2line").arg("-e").arg(program).arg(format!("{address:#x}")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().rsplit(':').next().and_then(|l| l.split(' ').next()).and_then(|l| l.parse().ok()).unwrap_or(0)
}

/// Resolves instructions at these linked addresses of a program mapped at `BIAS`.
fn names(program: &Path, addresses: &[u64]) -> Symbols {
    const BIAS: u64 = 0x5555_5555_4000;
    let elf = Elf::open(program).unwrap();
    let mut maps = MapLog::default();
    maps.task(0, 0xf00, 7);
    for segment in &elf.segments {
        let start = (segment.vaddr & !0xfff) + BIAS;
        let mapping = Mapping {
            start,
            end: (segment.vaddr + segment.file_bytes + BIAS).next_multiple_of(4096),
            file_offset: segment.file_offset & !0xfff,
            executable: true,
            path: program.to_str().unwrap().to_owned(),
        };
        maps.event(0, &Event::Map { pid: 7, mapping });
    }
    let anon =
        Mapping { start: 0x7000_0000, end: 0x7000_1000, file_offset: 0, executable: true, path: "//anon".into() };
    maps.event(0, &Event::Map { pid: 7, mapping: anon });
    let insn = |a: &u64| Insn { vaddr: if *a < 0x1000_0000 { a + BIAS } else { *a }, task: 0xf00, ..Insn::default() };
    let insns: Vec<_> = addresses.iter().map(insn).collect();
    resolve(Sources {
        insns: &insns,
        contexts: &[],
        call_slots: &[],
        maps: &maps,
        kallsyms: "",
        layout: KernelLayout::default(),
        pages: KernelPages::default(),
        structures: Vec::new(),
        made: &made,
    })
}

/// One function at run time, in process 7.
fn made(process: u32) -> Option<JitNames> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("perf-7.map");
    std::fs::write(&file, "70000100 20 JS:*fib /srv/app.js:3:14\n").unwrap();
    JitNames::read(&file).filter(|_| process == 7)
}

fn function(symbols: &Symbols, id: usize) -> &str {
    &symbols.functions[symbols.insns[id].0 as usize].name
}

#[test]
fn functions_lines_and_what_was_inlined() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &["-g"]) else { return };
    let (sum, main) = (address(&program, "sum"), address(&program, "main"));
    let loop_body: Vec<u64> = (sum..sum + 160).collect();
    let symbols = names(&program, &[&[sum, main, 0x7000_0010, 0x1000_0000][..], &loop_body].concat());
    assert_eq!([0, 1, 2, 3].map(|id| function(&symbols, id)), ["sum", "main", "[jit]", "[unknown]"]);
    let place = |id: usize| (symbols.files[symbols.insns[id].1 as usize].as_str(), symbols.insns[id].2);
    assert_eq!((place(1), place(2)), ((directory.path().join("prog.c").to_str().unwrap(), 14), ("", 0)));
    for (id, address) in (4..).zip(&loop_body) {
        assert_eq!(place(id).1, addr2line(&program, *address), "at {address:#x}");
    }
    // The inlined function's line, charged to the function that was compiled.
    assert!((4..164).any(|id| place(id).1 == 6 && function(&symbols, id) == "sum"), "{:?}", symbols.insns);
    assert_eq!(
        symbols.modules[symbols.functions[symbols.insns[0].0 as usize].module as usize],
        program.to_str().unwrap()
    );
}

const CALLS_BACK: &str = "volatile int sum;
static inline __attribute__((always_inline)) void own(int i) { sum += i; }
#include \"bits/each.h\"
int main(int argc, char **argv) { (void)argv; each(argc); return sum; }
";
const EACH: &str = "static __attribute__((noinline)) void each(int n) {
    for (int i = 0; i < n; i++)
        own(i);
}
";

#[test]
fn what_is_inlined_into_the_library_has_the_users_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("bits")).unwrap();
    std::fs::write(directory.path().join("bits/each.h"), EACH).unwrap();
    let Some(program) = compile_source(directory.path(), CALLS_BACK, &["-g"]) else { return };
    let each = address(&program, "each");
    let body: Vec<u64> = (each..each + 32).collect();
    let symbols = names(&program, &body);
    let own: Vec<_> = (0..32).filter_map(|id| symbols.own_line(id)).collect();
    assert!(!own.is_empty(), "{:?}", symbols.insns);
    for (file, line) in own {
        assert_eq!((file.rsplit('/').next(), line), (Some("prog.c"), 2));
    }
}

const GO: &str = "\
package main

import \"sync/atomic\"

//go:noinline
func count(counter *atomic.Int64) {
	counter.Add(1)
}

func main() {
	count(new(atomic.Int64))
}
";

#[test]
fn what_go_inlines_of_its_library_has_the_users_line() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile_go(directory.path(), GO) else { return };
    let count = address(&program, "main.count");
    let body: Vec<u64> = (count..count + 16).collect();
    let symbols = names(&program, &body);
    let file = |index: u32| symbols.files[index as usize].rsplit('/').next().unwrap();
    let is_inlined = |(_, at, _): &(u32, u32, u32)| file(*at) == "type.go";
    let inlined: Vec<u32> = (0..).zip(&symbols.insns).filter(|(_, at)| is_inlined(at)).map(|(id, _)| id).collect();
    assert!(!inlined.is_empty(), "{:?}", symbols.insns);
    for id in inlined {
        let (_, at, line) = *symbols.inlined_at.iter().find(|(of, ..)| *of == id).unwrap();
        assert_eq!((file(at), line), ("prog.go", 7));
    }
}

#[test]
fn the_function_that_gives_out_gos_memory_is_found_in_programs_of_go() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile_go(directory.path(), GO) else { return };
    let elf = Elf::open(&program).unwrap();
    let found = managed_allocator(&program).unwrap();
    assert_eq!(elf.address(found.file_offset), Some(address(&program, "runtime.mallocgc")));
    let Some(program) = compile(directory.path(), &[]) else { return };
    assert_eq!(managed_allocator(&program), None);
}

#[test]
fn code_made_at_run_time_has_the_names_of_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &["-g"]) else { return };
    let symbols = names(&program, &[0x7000_0110, 0x7000_0010]);
    assert_eq!([0, 1].map(|id| function(&symbols, id)), ["fib", "[jit]"]);
    assert_eq!((symbols.files[symbols.insns[0].1 as usize].as_str(), symbols.insns[0].2), ("/srv/app.js", 3));
}

#[test]
fn a_stripped_program_has_stubs_and_starts_of_functions() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &["-fcf-protection=none", "-Wl,-z,lazy"]) else { return };
    let (sum, main) = (address(&program, "sum"), address(&program, "main"));
    assert!(Command::new("strip").arg(&program).status().unwrap().success());
    let elf = Elf::open(&program).unwrap();
    assert_eq!(elf.name("prog", sum + 3), format!("prog+{sum:#x}"));
    assert_eq!(elf.name("prog", main + 1), format!("prog+{main:#x}"));
    let dump = Command::new("objdump").args(["-d", "-j", ".plt"]).arg(&program).output().unwrap();
    let dump = String::from_utf8(dump.stdout).unwrap();
    let stub = dump.lines().find(|l| l.contains("<printf@plt>:") || l.contains("<malloc@plt>:")).unwrap();
    let start = u64::from_str_radix(stub.split_whitespace().next().unwrap(), 16).unwrap();
    let expected = stub.split(['<', '>']).nth(1).unwrap();
    assert_eq!(elf.name("prog", start + 6), expected);
}

#[test]
fn variables_have_names_sizes_and_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &[]) else { return };
    let data = module_data(program.to_str().unwrap()).unwrap();
    let variable = |name: &str| data.objects.iter().find(|o| o.name == name).map(|o| (o.vaddr, o.bytes)).unwrap();
    assert_eq!(variable("counters"), (address(&program, "counters"), 4096));
    assert_eq!(variable("table"), (address(&program, "table"), 16));
    let bss = data.segments.iter().find(|s| s.memory_bytes > s.file_bytes).unwrap();
    assert!((bss.vaddr + bss.file_bytes..bss.vaddr + bss.memory_bytes).contains(&variable("counters").0));
    assert!(data.objects.windows(2).all(|w| w[0].vaddr + w[0].bytes <= w[1].vaddr));
    assert_eq!(module_data("/etc/passwd"), None);
    assert_eq!(module_data("/proc/self"), None);
}

/// The program prints where its variables lie, and its frame.
const ON_STACK: &str = "\
#include <stdio.h>
__attribute__((noinline)) long leaf(long n) {
    volatile long few[3] = {n, n, n};
    printf(\"%p %p\\n\", __builtin_dwarf_cfa(), (void *)few);
    return few[n & 1];
}
int main(int argc, char **argv) {
    long counters[argc > 0 ? 8 : 1][2], *volatile kept = counters[0];
    struct { char name[40]; } item = {{0}}, *volatile of_item = &item;
    printf(\"%p %p\\n\", __builtin_dwarf_cfa(), (void *)of_item);
    return (int)leaf(argc) + (int)(kept != 0) + of_item->name[0] - 3;
}
";

#[test]
fn variables_of_frames_lie_where_the_program_finds_them() {
    for option in ["-O0", "-O2", "-O1", "-fno-omit-frame-pointer"] {
        let directory = tempfile::tempdir().unwrap();
        let Some(program) = compile_source(directory.path(), ON_STACK, &["-g", "-w", option]) else { return };
        let printed = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let hexadecimal = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
        let printed: Vec<u64> = printed.split_whitespace().map(hexadecimal).collect();
        let [main_frame, item, leaf_frame, few] = printed[..] else { panic!("{printed:?}") };
        // Something called main, main called leaf, leaf called printf.
        let (main, leaf) = (address(&program, "main"), address(&program, "leaf"));
        let calls = [call_in(&program, "main", "<leaf>"), call_in(&program, "leaf", "<printf@plt>")];
        let contexts = [(0, 0), (0, 2), (1, 0), (2, 1)].map(|(parent, call)| Context { parent, call });
        let slots = [0, main_frame - 8, leaf_frame - 8, leaf_frame - 200];
        let elf = Elf::open(&program).unwrap();
        let found =
            Calls::new(&contexts, &slots).variables(program.to_str().unwrap(), &elf, &[(calls[0], 0), (calls[1], 1)]);
        let place = |v: &StackVariable| (v.start, v.bytes, v.function.clone());
        let at = |name: &str| found.iter().filter(|v| v.name == name).map(place).collect::<Vec<_>>();
        assert_eq!(at("item"), [(item, 40, "main".to_owned())], "{option}, {main:#x}: {found:#x?}");
        assert_eq!(at("few"), [(few, 24, "leaf".to_owned())], "{option}, {leaf:#x}: {found:#x?}");
    }
}

/// Linked address of the call of this target in a function, from objdump.
fn call_in(program: &Path, function: &str, target: &str) -> u64 {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let function = text.split(&format!("<{function}>:\n")).nth(1).unwrap().split("\n\n").next().unwrap();
    let line = function.lines().find(|line| line.contains("call") && line.ends_with(target)).unwrap();
    u64::from_str_radix(line.split(':').next().unwrap().trim(), 16).unwrap()
}

#[test]
fn a_damaged_file_costs_its_names_only() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &["-g"]) else { return };
    let whole = std::fs::read(&program).unwrap();
    // Every 97th byte and length: a fixed sample of damage.
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        let cut = directory.path().join("cut");
        std::fs::write(&cut, if at % 2 == 0 { &bytes[..at] } else { &bytes }).unwrap();
        if let Some(elf) = Elf::open(&cut) {
            elf.name("cut", 0x1100);
            super::locals::locals(&cut, &[0x1100, 0x1150]);
            elf.data("cut");
        }
    }
}

#[test]
fn kernel_code_is_named_from_kallsyms() {
    let kallsyms = "ffffffff81000100 t copy_page\nffffffff82000000 D jiffies\nffffffff82000008 D x\n";
    let insns = [Insn { vaddr: 0xffff_ffff_8100_0110, flags: INSN_KERNEL, ..Insn::default() }];
    let symbols = resolve(Sources {
        insns: &insns,
        contexts: &[],
        call_slots: &[],
        maps: &MapLog::default(),
        kallsyms,
        layout: KernelLayout { direct_map_base: 1, per_cpu_bases: vec![2] },
        pages: KernelPages::default(),
        structures: Vec::new(),
        made: &|_| None,
    });
    assert_eq!(function(&symbols, 0), "copy_page");
    assert!(symbols.functions[symbols.insns[0].0 as usize].kernel);
    assert_eq!((symbols.data[0].objects[0].name.as_str(), symbols.kernel_layout.per_cpu_bases[0]), ("jiffies", 2));
}

/// A program in the guest may map a file under a name that is a pipe out here.
#[test]
fn a_pipe_is_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("libx.so");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(Elf::open(&pipe).is_none() && super::entry(&pipe, "main").is_none());
}

/// Not a promise about time on a busy machine, only that it is seconds and not minutes.
#[test]
fn a_big_library_is_named_in_a_moment() {
    let Some(library) =
        ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"].into_iter().find(|p| Path::new(p).exists())
    else {
        println!("skipped: no libc.so.6 at a known place");
        return;
    };
    let elf = Elf::open(Path::new(library)).unwrap();
    let text = elf.segments.iter().max_by_key(|s| s.file_bytes).copied().unwrap();
    let addresses: Vec<u64> = (0..300_000).map(|i| text.vaddr + i * 4 % text.file_bytes).collect();
    let begun = std::time::Instant::now();
    let symbols = names(Path::new(library), &addresses);
    let known = symbols.insns.iter().filter(|i| i.0 != 0).count();
    println!("{known} of 300000 instructions named in {:?}, {} functions", begun.elapsed(), symbols.functions.len());
    assert!(known > 290_000);
    assert!(symbols.functions.iter().any(|f| f.name == "malloc"));
    assert!(begun.elapsed().as_secs() < 20);
}

#[test]
fn instructions_are_those_that_objdump_shows() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile(directory.path(), &["-g"]) else { return };
    let elf = Elf::open(&program).unwrap();
    let output =
        Command::new("objdump").args(["-d", "-M", "intel", "--no-show-raw-insn"]).arg(&program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let function = text.split("<sum>:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut seen = 0;
    for line in function.lines() {
        let (address, theirs) = line.split_once(':').unwrap();
        let address = u64::from_str_radix(address.trim(), 16).unwrap();
        let ours = elf.instruction("prog", address).unwrap();
        // Prefixes that pad a `nop` are words of their own in one of the two.
        let mnemonic = |text: &str| {
            let mut words = text.split_whitespace().filter(|word| !["data16", "cs"].contains(word));
            words.next().unwrap_or_default().to_owned()
        };
        assert_eq!(mnemonic(&ours), mnemonic(theirs), "{line}");
        seen += 1;
    }
    assert!(seen > 5, "{function}");
    let main = address(&program, "main");
    let called = (main..main + 64).filter_map(|at| elf.instruction("prog", at));
    assert!(called.into_iter().any(|text| text.starts_with("call ") && text.ends_with(" <sum>")));
    assert_eq!(elf.instruction("prog", 0xffff_ffff_0000_0000), None);
    let readelf = Command::new("readelf").arg("-n").arg(&program).output().unwrap();
    let notes = String::from_utf8(readelf.stdout).unwrap();
    assert!(elf.build_id().is_none_or(|id| notes.contains(&id)), "{notes}");
}
