//! Records that the plugin sends, of a program with accesses that can be counted by hand.
#![allow(clippy::unwrap_used)]

use crate::engines::under_each_engine;
use crate::sent_code::{Block, SentCode};
use crate::support::turn;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nearmiss_record::reference::{Control, FLAG_CONT, FLAG_FIRST_HIT, FLAG_RMW, HeapOp, Kind, Record, Usage};
use nearmiss_record::run::{Associativity, Filter, FirstLevel};
use nearmiss_record::units::InsnId;
use nearmiss_tap::guest::{
    ExitReason, GuestCommand, GuestError, GuestShape, HEAP_SHIM, KernelImage, QemuBinary, WarmUp,
};
use nearmiss_tap::session::{Recorded, Session, TapConfig, TapError};

/// A recording, flattened.
struct Stream {
    /// vCPU and record, in recorded order, payload left out.
    records: Vec<(u32, Record)>,
    shares: Vec<(u64, u32, u64)>,
    heap: Vec<(HeapOp, u64, u64, u64)>,
    fences: usize,
    code: SentCode,
    usage: Usage,
    last_instructions: BTreeMap<u32, u64>,
    places: BTreeMap<String, u64>,
    recorded: Recorded,
    /// The subject's file.
    program: Vec<u8>,
}

impl Stream {
    /// References of user mode to `bytes` at `start`.
    fn to(&self, start: u64, bytes: u64) -> impl Iterator<Item = (u32, Record)> + '_ {
        self.records.iter().copied().filter(move |(_, r)| {
            !r.is_kernel() && r.kind() != Some(Kind::Fetch) && (start..start + bytes).contains(&r.vaddr())
        })
    }

    fn count(&self, start: u64, bytes: u64, kind: Kind) -> usize {
        self.to(start, bytes).filter(|(_, r)| r.kind() == Some(kind)).count()
    }
}

fn subject(scratch: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/tap/tests/subject.c");
    let program = scratch.join("subject");
    let built = Command::new("cc").args(["-std=gnu11", "-O1", "-pthread", "-o"]).args([&program, &source]).status();
    built.is_ok_and(|status| status.success()).then_some(program)
}

/// Records `subject WHAT`; `None`, and a line with the reason, where this machine cannot.
fn record(what: &str, shape: GuestShape, filter: Filter, only_user: bool, heap: bool) -> Option<Stream> {
    record_under(QemuBinary::installed(), what, shape, filter, only_user, heap)
}

fn record_under(
    qemu: Result<QemuBinary, GuestError>,
    what: &str,
    shape: GuestShape,
    filter: Filter,
    only_user: bool,
    heap: bool,
) -> Option<Stream> {
    let _turn = turn();
    let scratch = tempfile::tempdir().unwrap();
    let (kernel, qemu) = match (KernelImage::newest(), qemu) {
        (Ok(kernel), Ok(qemu)) => (kernel, qemu),
        (Err(error), _) | (_, Err(error)) => {
            println!("skipped: {error}");
            return None;
        }
    };
    let Some(program) = subject(scratch.path()) else {
        println!("skipped: no C compiler");
        return None;
    };
    let mut command = GuestCommand::inherit([program.as_os_str(), what.as_ref()]).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.streams = [Some(File::open("/dev/null").unwrap().into()), Some(writer.into()), None];
    let memory = vec![256 << 20; shape.nodes as usize];
    let session = Session::new(TapConfig {
        shape,
        memory,
        kernel,
        qemu,
        only_user,
        filter,
        heap_shim: heap.then(|| HEAP_SHIM.to_vec()),
        icount: None,
        timeout: Some(Duration::from_secs(120)),
        keep: None,
        aslr: false,
        kernel_arguments: Vec::new(),
        warm_up: WarmUp::Files,
        libc_tunables: None,
        saved_boot: true,
    });
    let session = session.unwrap();
    let (mut records, mut shares, mut objects, mut fences) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut code = SentCode::default();
    let mut usage = Usage::default();
    let mut last_instructions = BTreeMap::new();
    let mut add = |more: Usage| {
        usage.user_instructions += more.user_instructions;
        usage.kernel_instructions += more.kernel_instructions;
        usage.user_loads += more.user_loads;
        usage.kernel_loads += more.kernel_loads;
        usage.user_stores += more.user_stores;
        usage.kernel_stores += more.kernel_stores;
    };
    let recorded = session.record(command, &mut |head, these| {
        last_instructions.insert(head.vcpu, head.instructions);
        let mut at = 0;
        while at < these.len() {
            let record = these[at];
            at += 1;
            if record.kind() != Some(Kind::Control) {
                code.reference(record);
                records.push((head.vcpu, record));
                continue;
            }
            let payload = &these[at..at + record.payload_records().unwrap()];
            at += payload.len();
            match Control::decode(record, payload)? {
                Control::Share { line, owner, written } => shares.push((line, owner, written)),
                Control::Heap { op, address, size, old, .. } => objects.push((op, address, size, old)),
                Control::Fence => fences += 1,
                Control::Code(block) => code.add(&block),
                Control::Switch { usage, .. } | Control::Mark { usage, .. } => add(usage),
                _ => {}
            }
        }
        Ok(())
    });
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(TapError::NoPlugin) => {
            println!("skipped: built without the plugin");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(recorded.exit.reason, ExitReason::Ended);
    assert_eq!(recorded.cut, None);
    let wanted = !filter.first_level.is_some_and(|first| first.misses_only);
    assert_eq!(code.unexplained == 0, wanted, "{} references without code", code.unexplained);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let places = text
        .lines()
        .filter_map(|line| {
            let (name, address) = line.split_once(" 0x")?;
            Some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
        })
        .collect();
    let program = std::fs::read(program).unwrap();
    Some(Stream { records, shares, heap: objects, fences, code, usage, last_instructions, places, recorded, program })
}

fn filter(line_log2: u32, index_bits: u32) -> Filter {
    Filter { line_log2, index_low: line_log2, index_bits, fetches: true, contexts: true, ..Filter::default() }
}

#[test]
fn kinds_sizes_and_halves_are_exact_through_the_one_line_filter() {
    under_each_engine(|qemu| kinds_sizes_and_halves(qemu, filter(6, 0)));
}

fn kinds_sizes_and_halves(qemu: QemuBinary, filter: Filter) {
    let Some(stream) = record_under(Ok(qemu), "kinds", GuestShape::flat(1), filter, true, false) else { return };
    let swept = stream.places["swept"];
    // 16,384 lines, twice, each store on another line than the one before.
    assert_eq!(stream.count(swept, 1 << 20, Kind::Store), 2 * 16384);
    let pages: HashSet<u64> = stream.to(swept, 1 << 20).map(|(_, r)| r.physical_page()).collect();
    assert_eq!(pages.len(), 256, "each virtual page on a page of its own");
    let virtual_and_physical: HashSet<(u64, u64)> =
        stream.to(swept, 1 << 20).map(|(_, r)| (r.vaddr() >> 12, r.physical_page())).collect();
    assert_eq!(virtual_and_physical.len(), 256, "and always on the same one");

    let vectors = stream.places["vectors"];
    let line = |n: u64| stream.to(vectors + 64 * n, 64).map(|(_, r)| r).collect::<Vec<_>>();
    let all = |n: u64, kind: Kind, offset: u64, size: u32, flags: u8| {
        let these: Vec<_> = line(n)
            .into_iter()
            .filter(|r| {
                r.kind() == Some(kind)
                    && r.size() == size
                    && r.vaddr() == vectors + 64 * n + offset
                    && r.flags() == flags
            })
            .collect();
        these.len()
    };
    assert_eq!(all(0, Kind::Store, 0x38, 8, 0), 1000, "first half of the straddling store");
    assert_eq!(all(1, Kind::Store, 0, 8, FLAG_CONT), 1000, "second half, right behind the first");
    assert_eq!(all(1, Kind::Store, 0, 8, FLAG_CONT | FLAG_FIRST_HIT), 0);
    assert_eq!(all(2, Kind::Load, 0, 16, 0), 1000, "two 8-byte parts are one load");
    assert_eq!(all(3, Kind::NtStore, 0, 16, 0), 1000);
    assert_eq!(all(3, Kind::NtStore, 16, 8, 0), 1000);
    assert_eq!(stream.fences, 1000, "the atomic drains by itself");
    assert_eq!(all(4, Kind::Atomic, 0, 8, 0), 1000);
    // Load and store of one instruction touch one line: the load brings it in, the store is sent for its first write.
    assert_eq!(all(5, Kind::Load, 0, 8, 0), 1000);
    assert_eq!(all(5, Kind::Store, 0, 8, FLAG_RMW), 1000);
    assert_eq!(all(6, Kind::Atomic, 0, 8, 0), 1000);
    assert_eq!(all(7, Kind::Atomic, 0, 16, 0), 1000, "cmpxchg16b, failing");
    assert!((1000..1100).contains(&stream.recorded.side.prefetches));
}

#[test]
fn nothing_is_lost_between_records_counters_and_tables() {
    under_each_engine(nothing_is_lost);
}

fn nothing_is_lost(qemu: QemuBinary) {
    let Some(stream) = record_under(Ok(qemu), "kinds", GuestShape::flat(2), filter(6, 6), false, false) else { return };
    let insns = &stream.recorded.side.insns;
    let (mut user_loads, mut user_stores, mut kernel_loads, mut kernel_stores, mut instructions) = (0, 0, 0, 0, 0);
    for insn in insns {
        if insn.flags & nearmiss_record::side::INSN_KERNEL == 0 {
            user_loads += insn.load_hits;
            user_stores += insn.store_hits;
        } else {
            kernel_loads += insn.load_hits;
            kernel_stores += insn.store_hits;
        }
        instructions += u64::from(insn.run) * insn.executions;
    }
    // A block that was translated for another program before the window would have no task, and its code no name.
    assert_eq!(insns.iter().filter(|insn| insn.executions > 0 && insn.task == 0).count(), 0);
    let usage = stream.usage;
    assert_eq!((usage.user_loads, usage.user_stores), (user_loads, user_stores));
    assert_eq!((usage.kernel_loads, usage.kernel_stores), (kernel_loads, kernel_stores));
    let counted = usage.user_instructions + usage.kernel_instructions;
    assert_eq!(counted, instructions, "executions by run are the instructions of all tasks");
    assert!(stream.last_instructions.values().sum::<u64>() <= counted);
    // The second sweep finds every set of the filter on another line, as the first did.
    assert_eq!(stream.count(stream.places["swept"], 1 << 20, Kind::Store), 2 * 16384);
    // In the set filter, the loop's plain accesses hit their own sets; non-temporal stores never do.
    assert_eq!(stream.count(stream.places["vectors"] + 192, 64, Kind::NtStore), 2000);
}

#[test]
fn two_pinned_threads_are_two_cpus_and_their_sharing_passes_the_filter() {
    under_each_engine(two_pinned_threads);
}

fn two_pinned_threads(qemu: QemuBinary) {
    let shape = GuestShape { packages: 2, cores: 1, threads: 1, nodes: 2 };
    let Some(stream) = record_under(Ok(qemu), "sharing", shape, filter(6, 6), true, false) else { return };
    let by = |place: &str, offset: u64, cpu: u32, kind: Kind| {
        stream.to(stream.places[place] + offset, 64).filter(|(vcpu, r)| *vcpu == cpu && r.kind() == Some(kind)).count()
    };
    let line = |place: &str| stream.to(stream.places[place], 64).next().unwrap().1.paddr() >> 6;

    // Each its own line: the filter drops nearly all, and nothing comes from the other CPU.
    for me in [0, 1] {
        assert!((1..50).contains(&by("own", 64 * u64::from(me), me, Kind::Store)));
        assert_eq!(by("own", 64 * u64::from(me), 1 - me, Kind::Store), 0);
    }
    // Read by both: filtered. Written by one of them after that: every later read of either passes.
    for me in [0, 1] {
        let loads = by("read", 0, me, Kind::Load);
        assert!((1001..1050).contains(&loads), "CPU {me} sent {loads} loads of the line");
    }
    assert_eq!(by("read", 0, 0, Kind::Store), 1);
    assert_eq!(stream.shares.iter().filter(|s| s.0 == line("read")).count(), 1);
    // Written in part by CPU 0, read by CPU 1: the bytes written are sent, though the filter may have held them back.
    let passed: Vec<_> = stream.shares.iter().filter(|s| s.0 == line("passed")).collect();
    assert_eq!(passed, [&(line("passed"), 0, 0x0f00_ff00)]);
    // Both increment: everything after the line became shared was sent. The first slice alone may be missing.
    let counted: usize = [0, 1].iter().map(|me| by("counted", 0, *me, Kind::Store)).sum();
    assert!(counted >= 200_000, "{counted} of 400,000 stores were sent");
    assert_eq!(stream.shares.iter().filter(|s| s.0 == line("counted")).count(), 1);

    // Pages touched on a node's CPU lie in that node's memory.
    for (node, place) in ["node0", "node1"].iter().enumerate() {
        let pages: HashSet<u64> =
            stream.to(stream.places[*place], 64 << 12).map(|(_, r)| r.paddr() / (256 << 20)).collect();
        assert_eq!(pages, HashSet::from([node as u64]), "{place}");
        assert_eq!(stream.to(stream.places[*place], 64 << 12).count(), 64);
    }
}

/// Each store goes to another line than its thread's last one, so the filter drops none and all are counted.
#[test]
fn two_threads_count_alike_under_every_engine_on_one_two_and_four_cpus() {
    under_each_engine(|qemu| {
        for cpus in [1, 2, 4] {
            let shape = GuestShape::flat(cpus);
            let Some(stream) = record_under(Ok(qemu.clone()), "sweeping", shape, filter(6, 6), true, false) else {
                return;
            };
            let stores = ["mine", "other"].map(|half| stream.count(stream.places[half], 1 << 19, Kind::Store));
            assert_eq!(stores, [4 * 8192; 2], "{cpus} CPUs");
        }
    });
}

/// A line of code with a faulting first instruction is entered twice, and releases differ in where the second entry
/// begins.
#[test]
fn user_instructions_of_one_thread_are_within_one_percent_under_every_engine() {
    let mut counts = Vec::new();
    under_each_engine(|qemu| {
        if let Some(stream) = record_under(Ok(qemu), "kinds", GuestShape::flat(1), filter(6, 6), true, false) {
            counts.push(stream.usage.user_instructions);
        }
    });
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(least.zip(most).is_none_or(|(least, most)| most - least <= least / 100), "{counts:?}");
}

#[test]
fn a_task_that_moves_between_cpus_is_filtered_on_each() {
    let shape = GuestShape { packages: 2, cores: 1, threads: 1, nodes: 1 };
    let Some(stream) = record("moving", shape, filter(6, 6), true, false) else { return };
    let carried = stream.places["carried"];
    let stores = stream.count(carried, 16 * 64, Kind::Store);
    // Each move sends a line once. The table's page may be entered again, and an epoch may begin, in the middle of it.
    assert!((40 * 16..60 * 16).contains(&stores), "{stores} of {} stores were sent", 40 * 100 * 16);
    let cpus: HashSet<u32> = stream.to(carried, 16 * 64).map(|(cpu, _)| cpu).collect();
    assert_eq!(cpus, HashSet::from([0, 1]));
}

#[test]
fn heap_objects_and_stacks_are_reported_and_the_shim_is_left_out() {
    let Some(stream) = record("heap", GuestShape::flat(1), filter(6, 6), true, true) else { return };
    let place = |name: &str| stream.places[name];
    let has = |event: (HeapOp, u64, u64, u64)| stream.heap.iter().filter(|e| **e == event).count();
    assert_eq!(has((HeapOp::Alloc, place("malloc"), 1001, 0)), 1);
    assert_eq!(has((HeapOp::Alloc, place("calloc"), 7 * 286, 0)), 1);
    assert_eq!(has((HeapOp::Alloc, place("aligned"), 3072, 0)), 1);
    assert_eq!(has((HeapOp::Realloc, place("realloc"), 400_004, place("malloc"))), 1);
    assert_eq!(has((HeapOp::Free, place("realloc"), 0, 0)), 1);
    assert_eq!(stream.heap.iter().filter(|e| e.0 == HeapOp::Stack && e.2 >= 65536).count(), 1);
    assert!(stream.recorded.side.skipped >= 6 * stream.heap.len() as u64, "six stores fill a mailbox");
}

#[test]
fn a_function_that_calls_itself_has_contexts_by_its_call_sites_not_by_its_depth() {
    let Some(stream) = record("recursion", GuestShape::flat(1), filter(6, 6), true, false) else { return };
    let (halves, leaves) = (stream.places["halves"], stream.places["leaves"]);
    assert_eq!(stream.count(leaves, 4096 * 64, Kind::Store), 4096);
    let side = &stream.recorded.side;
    let calls_itself = |call: u32| (halves..halves + 128).contains(&side.insns[call as usize].vaddr);
    let deeper = side.contexts.iter().filter(|context| calls_itself(context.call)).count();
    assert_eq!(deeper, 4, "first half, second, first of second, second of first");
}

/// Returns a function's bytes from its file.
fn bytes_of(program: &[u8], function: &str) -> Vec<u8> {
    let file = object::File::parse(program).unwrap();
    let symbol = file.symbol_by_name(function).unwrap();
    let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
    section.data_range(symbol.address(), symbol.size()).unwrap().unwrap().to_vec()
}

#[test]
fn the_code_of_the_run_is_sent_once_with_its_loads_named_and_new_code_again() {
    let Some(stream) = record("code", GuestShape::flat(1), filter(6, 6), true, false) else { return };
    let sent: HashSet<&Block> = stream.code.blocks.iter().collect();
    assert_eq!(sent.len(), stream.code.blocks.len(), "nothing is sent twice");

    // The function as its file has it, byte by byte from all blocks that lie in it.
    let (start, wanted) = (stream.places["walk"], bytes_of(&stream.program, "walk"));
    let inside = |block: &&Block| (start..start + wanted.len() as u64).contains(&block.vaddr);
    let mut found = vec![None; wanted.len()];
    for block in stream.code.blocks.iter().filter(inside) {
        let at = (block.vaddr - start) as usize;
        for (byte, slot) in block.code.iter().zip(&mut found[at..]) {
            *slot = Some(*byte);
        }
    }
    assert_eq!(found, wanted.iter().copied().map(Some).collect::<Vec<_>>());

    // All its loads of the list are the one instruction, `mov (%rax), %rax`, and a block names it at these bytes.
    let loads: HashSet<InsnId> = stream.to(stream.places["list"], 4096 * 64).map(|(_, r)| r.insn()).collect();
    let of_walk = |insn: &InsnId| (start..start + 128).contains(&stream.recorded.side.insns[insn.0 as usize].vaddr);
    let loads: Vec<InsnId> = loads.into_iter().filter(of_walk).collect();
    assert!(!loads.is_empty());
    for load in loads {
        let vaddr = stream.recorded.side.insns[load.0 as usize].vaddr;
        let names = |block: &&Block| {
            block.named.iter().any(|(at, insn)| *insn == load && block.vaddr + u64::from(*at) == vaddr)
        };
        let block = stream.code.blocks.iter().find(names).unwrap();
        assert_eq!(block.code[(vaddr - block.vaddr) as usize..][..3], [0x48, 0x8b, 0x00]);
    }

    // Made while it runs: the same load, then another number to add, then the first one again.
    let made = stream.places["made"];
    let blocks: Vec<&Block> = stream.code.blocks.iter().filter(|block| block.vaddr == made).collect();
    let [one, two] = blocks[..] else { panic!("{blocks:?}") };
    assert_eq!(
        (&one.code[..], &two.code[..]),
        (&[0x8b, 7, 0x83, 0xc0, 1, 0xc3][..], &[0x8b, 7, 0x83, 0xc0, 2, 0xc3][..])
    );
    assert_eq!(one.named, two.named, "the load is the same, and so is its number");
    assert_eq!(one.paddr, two.paddr);
}

#[test]
fn who_counts_misses_alone_gets_no_code() {
    let fetch = Some(Associativity { ways: 8, tree: true });
    let first_level = Some(FirstLevel { data: None, fetch, misses_only: true });
    let filter = Filter { first_level, ..filter(6, 6) };
    let Some(stream) = record("kinds", GuestShape::flat(1), filter, true, false) else { return };
    assert_eq!(stream.code.blocks, []);
}
