//! Hand-made streams with known answers, and random ones with tables that must sum up.

mod shares;
mod stacks;

use super::*;
use crate::model::{ModelTotals, Pollution};
use crate::observer::BusRead;
use nearmiss_record::machine::*;
use nearmiss_record::model::MissClass;
use nearmiss_record::model::{LevelTally, ModelRecord, ObjectKind, Tally};
use nearmiss_record::policy::CallSite;
use nearmiss_record::reference::{FLAG_CONT, FLAG_KERNEL, HeapOp, Usage};
use nearmiss_record::side::{Context, INSN_ATOMIC, INSN_KERNEL, Insn, SideTables};
use nearmiss_record::symbols::{Function, Symbols};
use nearmiss_record::units::{Bytes, InsnId};
use proptest::prelude::*;

const LEVELS: usize = 2;

fn machine() -> Machine {
    Machine {
        name: "test".into(),
        title: "test".into(),
        isa: "x86-64".into(),
        clock_mhz: 1000,
        cycles_per_instruction: 0.7,
        topology: Topology { packages: 1, cores_per_package: 2, threads_per_core: 1, cores_per_cluster: 0 },
        memory: Memory {
            nodes: 2,
            page_size: Bytes(4096),
            placement: Placement::AsRecorded,
            placement_seed: 0,
            first_touch_cycles: None,
            large_first_touch_cycles: None,
        },
        caches: Vec::new(),
        coherence: Protocol::Mesi,
        latency: Latency {
            level_cycles: vec![1, 10],
            core_clean_cycles: 20,
            core_modified_cycles: 30,
            remote_cache_cycles: 40,
            memory_local_cycles: 100,
            memory_remote_cycles: 200,
        },
        tlb: None,
        core: None,
        streams: None,
        store_aliasing: None,
        overlap: 0.0,
        bus: Bus { transaction_cycles: 1, shared_by: BusSharing::Machine, channels: 1 },
        write_combining_buffers: 4,
        noise: None,
        sources: Default::default(),
    }
}

/// Feeds an attribution and, as the model would, keeps the totals of its events.
struct Stream {
    attribution: Attribution,
    model: Tally,
}

impl Stream {
    fn new() -> Self {
        let options = Options {
            cpus: 2,
            levels: LEVELS,
            line_bytes: 64,
            crowds: None,
            aliasing: Some(StoreAliasing { stores: 4, wait_cycles: 1.0 }),
        };
        Stream {
            attribution: Attribution::new(options, Box::new(RecordedData::default())),
            model: Tally { levels: vec![LevelTally::default(); LEVELS], ..Tally::default() },
        }
    }

    fn control(&mut self, vcpu: u32, control: Control<'_>) {
        self.attribution.control(vcpu, &control);
    }

    fn switch(&mut self, vcpu: u32, tid: u32, outgoing: u64, usage: Usage) {
        let task = 0xffff_8880_0000_0000 + u64::from(tid);
        self.control(
            vcpu,
            Control::Switch { task, pid: tid, tgid: tid, mm: 0, outgoing, comm: format!("t{tid}"), usage },
        );
    }

    /// The command's first task, 7, runs on CPU 0.
    fn begin(&mut self) {
        self.switch(0, 7, 0, Usage::default());
        self.control(0, Control::Mark { number: 1, usage: Usage::default() });
    }

    /// Process `parent` made process `pid`.
    fn fork(&mut self, vcpu: u32, pid: u32, parent: u32) {
        let mut fork = 7u32.to_le_bytes().to_vec();
        fork.extend([0u16.to_le_bytes(), 32u16.to_le_bytes()].concat());
        [pid, parent, pid, parent, 0, 0].iter().for_each(|v| fork.extend(v.to_le_bytes()));
        self.control(vcpu, Control::Maps(&fork));
    }

    fn hit(&mut self, vcpu: u32, record: Record) {
        self.attribution.hit(&as_recorded(vcpu, record));
    }

    fn miss(&mut self, vcpu: u32, record: Record, outcome: Outcome) {
        self.attribution.miss(&as_recorded(vcpu, record), &outcome);
        let mut ledger = Ledger::default();
        let mut row = Row::default();
        ledger.add(&mut row, record, &outcome);
        self.model += &ledger.tally(row, &References::default(), LEVELS);
    }

    fn finish(self, side: &SideTables, symbols: &Symbols, instructions: u64) -> ModelRecord {
        let model = Tally { instructions, ..self.model };
        self.attribution.into_record(ModelledRun {
            machine: machine(),
            policy: Default::default(),
            order: Default::default(),
            only_user: false,
            notes: Vec::new(),
            totals: ModelTotals { cpus: vec![model], ..ModelTotals::default() },
            curve: None,
            side,
            symbols,
        })
    }
}

fn as_recorded(cpu: u32, record: Record) -> Effective {
    let (kind, address, vaddr, size) = (record.kind().unwrap(), record.paddr(), record.vaddr(), record.size());
    Effective { cpu, node: 0, kind, address, vaddr, size, record }
}

fn load(vaddr: u64, insn: u32) -> Record {
    Record::reference(Kind::Load, vaddr, 8, 0, InsnId(insn), (vaddr >> 12) & 0xff, 1)
}

fn kernel(record: Record) -> Record {
    Record { a: record.a | u64::from(FLAG_KERNEL) << 58, ..record }
}

fn missed(class: MissClass, levels: usize, stall_cycles: u32) -> Outcome {
    let mut outcome = Outcome { stall_cycles, line_paddr: 0x1040, ..Outcome::default() };
    outcome.missed[..levels].fill(Some(class));
    outcome.read = (levels == LEVELS).then_some(BusRead::LocalNone);
    outcome
}

/// Instruction `i` is in function `i / 2 + 1`, line `i`; the last two are kernel code.
fn names(insns: u32) -> Symbols {
    let functions = insns.div_ceil(2);
    let function = |f: u32| Function { name: format!("f{f}"), module: 1, kernel: f == functions, inlined: None };
    let mut symbols = Symbols {
        modules: vec!["[unknown]".into(), "/bin/prog".into()],
        functions: vec![Function::default()],
        files: vec![String::new(), "src/prog.c".into()],
        insns: (0..insns).map(|i| (i / 2 + 1, 1, i)).collect(),
        ..Symbols::default()
    };
    symbols.functions.extend((1..=functions).map(function));
    symbols
}

fn assert_sums(record: &ModelRecord) {
    let sum = |rows: &mut dyn Iterator<Item = &Tally>| {
        let mut sum = Tally { levels: vec![LevelTally::default(); LEVELS], ..Tally::default() };
        rows.for_each(|row| sum += row);
        sum
    };
    assert_eq!(sum(&mut record.functions.iter().map(|r| &r.tally)), record.totals, "functions");
    assert_eq!(sum(&mut record.lines.iter().map(|r| &r.tally)), record.totals, "lines");
    assert_eq!(sum(&mut record.objects.iter().map(|r| &r.tally)), record.totals, "objects");
    assert_eq!(sum(&mut record.other_functions.iter().map(|r| &r.tally)), record.others, "other tasks' functions");
    for (of_command, totals) in [(true, &record.totals), (false, &record.others)] {
        let rows = record.tasks.iter().filter(|r| r.of_command == of_command);
        assert_eq!(sum(&mut rows.flat_map(|r| [&r.user, &r.kernel])), *totals, "tasks");
    }
    let cpus = sum(&mut record.cpus.iter());
    assert_eq!(Tally { cycles: record.totals.cycles, ..cpus.clone() }, record.totals, "CPUs");
    assert_eq!(cpus.cycles, record.totals.cycles, "cycles of CPUs");
    assert_eq!(record.stalls.total(), record.totals.stall_cycles, "stalls");
    assert_eq!(record.stalls.first_touch, record.totals.first_touch_cycles, "first touches");
    assert_eq!(record.stalls.mispredicted, record.totals.mispredicted_cycles, "mispredicted branches");
    let bins = record.page_offsets.user.iter().chain(&record.page_offsets.kernel).sum::<u64>();
    assert_eq!(bins, record.totals.bus.transactions(), "page offsets");
    for level in 0..LEVELS {
        let stacks = record.stacks.iter().map(|s| s.misses[level]).sum::<u64>();
        assert_eq!(stacks, record.totals.levels[level].misses(), "stacks");
    }
    assert_eq!(record.stacks.iter().map(|s| s.stall_cycles).sum::<u64>(), record.totals.stall_cycles);
    assert_eq!(record.stacks.iter().map(|s| s.cycles).sum::<u64>(), record.totals.cycles, "cycles of stacks");
    for function in record.functions.iter().filter(|f| f.tally.cycles > 0 && f.name != "[unattributed]") {
        let rows = record.instructions.iter().filter(|row| row.function == function.name);
        assert_eq!(sum(&mut rows.map(|row| &row.tally)), function.tally, "instructions of {}", function.name);
    }
    assert!(record.notes.iter().all(|n| !n.contains("fault")), "{:?}", record.notes);
}

#[test]
fn instructions_have_a_row_an_address_and_stacks_the_cycles_they_compute() {
    let mut s = Stream::new();
    s.begin();
    // Kernel code, because its addresses need no map: f1 is called by f3 and, three times as often, by f2.
    let at = |insn| kernel(load(0xffff_8880_0000_1000, insn));
    s.control(0, Control::Context(1));
    s.hit(0, at(0));
    s.control(0, Control::Context(2));
    s.hit(0, at(1));
    s.hit(0, at(0));
    s.miss(0, at(1), missed(MissClass::Conflict, 1, 10));
    let insn = |vaddr, executions| Insn { vaddr, executions, run: 1, flags: INSN_KERNEL, ..Insn::default() };
    let side = SideTables {
        insns: vec![insn(0x100, 60), insn(0x104, 20), insn(0x100, 20), insn(0x200, 0), insn(0x204, 0)],
        contexts: vec![Context::default(), Context { parent: 0, call: 4 }, Context { parent: 0, call: 3 }],
        ..SideTables::default()
    };
    let mut symbols = names(6);
    // The third is the first, translated again.
    symbols.insns[2] = symbols.insns[0];
    let record = s.finish(&side, &symbols, 100);
    assert_sums(&record);
    let rows: Vec<_> =
        record.instructions.iter().map(|r| (r.address, r.line, r.tally.instructions, r.tally.cycles)).collect();
    // 0.7 cycles an instruction: 56 + 14 + a stall of 10.
    assert_eq!(rows, [(Some(0x100), 0, 80, 56), (Some(0x104), 1, 20, 24)]);
    let stacks: Vec<_> = record.stacks.iter().map(|s| (s.frames.join(">"), s.cycles, s.stall_cycles)).collect();
    let stack = |frames: &str, cycles, stalls| (frames.to_owned(), cycles, stalls);
    assert_eq!(stacks, [stack("f2>f1", 52 + 10, 10), stack("f3>f1", 18, 0), stack("[unattributed]", 0, 0)]);
}

#[test]
fn blame_names_calls_and_sums_to_all_of_it() {
    let symbols = names(6);
    let side = SideTables {
        contexts: vec![Context::default(), Context { parent: 0, call: 4 }, Context { parent: 0, call: 3 }],
        ..SideTables::default()
    };
    let site = |context, insn| CallSite { context, insn };
    let pair = |polluter, victim, misses| Pollution { cache: "L2".to_owned(), polluter, victim, misses };
    let pollution = [
        pair(site(1, 1), site(0, 2), 5),
        pair(site(2, 1), site(0, 2), 3),
        pair(site(2, 1), site(1, 2), 2),
        // Another instruction of the same function, called at the same place.
        pair(site(2, 1), site(0, 2), 7),
    ];
    let rows = super::code_tables::blame(&super::names::Names::new(&symbols, &side), &pollution);
    let blamed: Vec<_> =
        rows.iter().map(|r| (r.evictor_called_at.as_str(), r.victim_called_at.as_str(), r.misses)).collect();
    let called = |insn: u32| super::names::Names::new(&symbols, &side).site(insn);
    let (third, fourth) = (called(3), called(4));
    assert_eq!(blamed, [(third.as_str(), "", 10), (fourth.as_str(), "", 5), (third.as_str(), fourth.as_str(), 2)]);
    assert_eq!(rows.iter().map(|row| row.misses).sum::<u64>(), pollution.iter().map(|pair| pair.misses).sum::<u64>());
}

#[test]
fn misses_find_their_heap_block_and_its_allocation() {
    let mut s = Stream::new();
    s.begin();
    s.control(0, Control::Context(2));
    for i in 0..4u64 {
        s.control(
            0,
            Control::Heap { op: HeapOp::Alloc, address: 0x10000 + i * 0x2000, size: 64, old: 0, alignment: 0 },
        );
    }
    s.control(0, Control::Context(1));
    s.miss(0, load(0x1_0008, 0), missed(MissClass::Conflict, 2, 100));
    s.miss(0, load(0x1_203f, 0), missed(MissClass::FalseSharing, 1, 20));
    s.miss(0, load(0x1_2040, 0), missed(MissClass::Conflict, 1, 10));
    let side = SideTables {
        insns: vec![Insn::default(); 4],
        contexts: vec![Context::default(), Context { parent: 0, call: 1 }, Context { parent: 1, call: 3 }],
        ..SideTables::default()
    };
    let record = s.finish(&side, &names(6), 0);
    assert_sums(&record);
    let block = &record.objects[0];
    assert_eq!((block.kind, block.name.as_str()), (ObjectKind::Heap, "prog.c:3 f2"));
    assert_eq!(block.allocated_at, ["f1", "f2"]);
    assert_eq!((block.count, block.size_bytes, block.alignment_bytes), (4, Some(64), Some(0x2000)));
    assert_eq!((block.tally.levels[0].misses(), block.tally.levels[1].misses(), block.tally.stall_cycles), (2, 1, 120));
    let rest = record.objects.last().unwrap();
    assert_eq!((rest.kind, rest.tally.levels[0].misses()), (ObjectKind::Unattributed, 1));
    let line = &record.shared_lines[0];
    assert_eq!((line.false_sharing, line.object.as_str()), (1, "prog.c:3 f2+0x0"));
    assert_eq!(line.functions, ["f1"]);
    assert_eq!((record.stalls.coherence, record.stalls.levels[1], record.stalls.memory_local), (20, 10, 100));
}

#[test]
fn first_touches_are_separated_from_what_recurs() {
    let mut s = Stream::new();
    s.begin();
    let of_level = |outermost, read| {
        let mut outcome = missed(MissClass::Compulsory, LEVELS, 100);
        (outcome.missed[LEVELS - 1], outcome.read) = (Some(outermost), Some(read));
        outcome
    };
    s.miss(0, load(0x1000, 0), of_level(MissClass::Compulsory, BusRead::LocalNone));
    s.miss(0, load(0x1000, 0), of_level(MissClass::Compulsory, BusRead::Remote));
    s.miss(0, load(0x1000, 1), of_level(MissClass::Capacity, BusRead::LocalNone));
    s.miss(0, load(0x1000, 1), of_level(MissClass::TrueSharing, BusRead::LocalNone));
    s.miss(0, load(0x1000, 1), of_level(MissClass::Compulsory, BusRead::LocalModified));
    s.miss(0, load(0x1000, 1), missed(MissClass::Compulsory, 1, 10));
    let side = SideTables { insns: vec![Insn::default(); 4], ..SideTables::default() };
    let record = s.finish(&side, &names(6), 0);
    assert_sums(&record);
    let line = |n: u32| &record.lines.iter().find(|line| line.line == n).unwrap().tally;
    assert_eq!((line(0).first_touch_cycles, line(0).stall_cycles), (200, 200));
    assert_eq!((line(1).first_touch_cycles, line(1).stall_cycles), (0, 310));
    assert_eq!((record.stalls.first_touch, record.stalls.memory_local, record.stalls.coherence), (200, 100, 200));
    assert_eq!(record.tasks[0].user.first_touch_cycles, 200);
}

#[test]
fn loads_behind_stores_of_their_page_offset_find_both_blocks() {
    let mut s = Stream::new();
    s.begin();
    for (context, address) in [(1, 0x1_0000), (2, 0x2_0010)] {
        s.control(0, Control::Context(context));
        s.control(0, Control::Heap { op: HeapOp::Alloc, address, size: 4096, old: 0, alignment: 0 });
    }
    let store = |vaddr| Record::reference(Kind::Store, vaddr, 8, 0, InsnId(1), vaddr >> 12, 1);
    // A running sum: the stored value is loaded two elements later.
    for i in 0..10 {
        s.hit(0, load(0x1_0000 + i * 8, 0));
        s.hit(0, store(0x2_0010 + i * 8));
    }
    // The kernel's copies and the other CPU's stores are not in the way of anything.
    s.hit(0, kernel(load(0x1_0050, 0)));
    s.hit(1, load(0x1_0050, 0));
    let side = SideTables {
        insns: vec![Insn::default(); 4],
        contexts: vec![Context::default(), Context { parent: 0, call: 1 }, Context { parent: 0, call: 3 }],
        ..SideTables::default()
    };
    let found = s.attribution.aliases(&side, &names(6));
    let [alias] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((alias.loads, alias.functions.as_slice()), (8, [("f1".to_owned(), 8)].as_slice()));
    let side = |party: &Party| (party.kind, party.name.clone(), party.extents.clone());
    assert_eq!(side(&alias.loaded), (ObjectKind::Heap, "prog.c:1 f1".into(), vec![(0x1_0000, 0x1_1000)]));
    assert_eq!(side(&alias.stored), (ObjectKind::Heap, "prog.c:3 f2".into(), vec![(0x2_0010, 0x2_1010)]));
}

#[test]
fn loads_that_wait_by_chance_are_not_reported() {
    let mut s = Stream::new();
    s.begin();
    for i in 0..10u64 {
        s.hit(0, load(0x1_0000 + i * 8, 0));
        // Four of ten are stored where the next is loaded.
        let vaddr = 0x2_0008 + if i < 4 { i * 8 } else { 0x800 };
        s.hit(0, Record::reference(Kind::Store, vaddr, 8, 0, InsnId(1), vaddr >> 12, 1));
    }
    let side = SideTables { insns: vec![Insn::default(); 2], ..SideTables::default() };
    assert_eq!(s.attribution.aliases(&side, &names(6)), []);
}

#[test]
fn atomics_are_loads_even_where_the_filter_called_them_stores() {
    let mut s = Stream::new();
    s.begin();
    s.switch(0, 8, 0, Usage { user_stores: 12, ..Usage::default() });
    let insn = |store_hits, flags| Insn { store_hits, flags, ..Insn::default() };
    let side = SideTables { insns: vec![insn(5, 0), insn(7, INSN_ATOMIC)], ..SideTables::default() };
    let record = s.finish(&side, &names(2), 0);
    assert_sums(&record);
    assert_eq!((record.totals.loads, record.totals.stores), (7, 5));
    let task = &record.tasks[0];
    assert_eq!((task.tid, task.user.loads, task.user.stores), (7, 7, 5));
}

#[derive(Clone, Debug)]
enum Step {
    Switch(u32, u64),
    Begin,
    Fork(u32, u32),
    Irq(Option<bool>),
    Context(u32),
    Heap(u64, u64),
    Hit(u8, u64, u32, u8),
    Miss(u8, u64, u32, u8, u8, usize, u8),
    Drained(u64, u32),
}

fn steps() -> impl Strategy<Value = Vec<(u32, Step)>> {
    let address = prop_oneof![0u64..0x8000, (0u64..0x8000).prop_map(|a| a | 0xffff_8880_0000_0000)];
    let flags = prop_oneof![Just(0u8), Just(FLAG_CONT), Just(FLAG_KERNEL)];
    let step = prop_oneof![
        (0u32..5, 0u64..40).prop_map(|(t, u)| Step::Switch(t, u)),
        Just(Step::Begin),
        (1u32..5, 1u32..5).prop_map(|(pid, parent)| Step::Fork(pid, parent)),
        proptest::option::of(any::<bool>()).prop_map(Step::Irq),
        (0u32..6).prop_map(Step::Context),
        (0u64..0x8000, 0u64..0x400).prop_map(|(a, s)| Step::Heap(a, s)),
        (0u8..5, address.clone(), 0u32..10, flags.clone()).prop_map(|(k, a, i, f)| Step::Hit(k, a, i, f)),
        (0u8..5, address, 0u32..10, flags, 0u8..6, 0usize..3, any::<u8>())
            .prop_map(|(k, a, i, f, c, l, t)| Step::Miss(k, a, i, f, c, l, t)),
        (0u64..0x8000, 0u32..10).prop_map(|(a, i)| Step::Drained(a, i)),
    ];
    proptest::collection::vec((0u32..2, step), 0..200)
}

fn kind(number: u8) -> Kind {
    [Kind::Load, Kind::Store, Kind::Atomic, Kind::NtStore, Kind::Fetch][number as usize]
}

proptest! {
    #[test]
    fn every_table_sums_to_the_total(
        steps in steps(),
        hits in proptest::collection::vec((0u64..50, 0u64..50, 0u64..9, 0u64..20, 0u32..32), 0..10),
        instructions in 0u64..2000,
    ) {
        let mut s = Stream::new();
        for (vcpu, step) in steps {
            match step {
                Step::Switch(tid, n) => s.switch(vcpu, tid, 0, Usage {
                    user_instructions: 3 * n, kernel_instructions: n, user_loads: n, kernel_loads: n / 2,
                    user_stores: n / 3, kernel_stores: n,
                }),
                Step::Begin => s.control(vcpu, Control::Mark { number: 1, usage: Usage::default() }),
                Step::Fork(pid, parent) => s.fork(vcpu, pid, parent),
                Step::Irq(entered) => s.control(vcpu, Control::Irq(entered)),
                Step::Context(id) => s.control(vcpu, Control::Context(id)),
                Step::Heap(address, size) => {
                    s.control(vcpu, Control::Heap { op: HeapOp::Alloc, address, size, old: 0, alignment: 0 });
                }
                Step::Hit(k, address, insn, flags) => {
                    s.hit(vcpu, Record::reference(kind(k), address, 4, flags, InsnId(insn), 1, 0));
                }
                Step::Miss(k, address, insn, flags, class, levels, traffic) => {
                    let record = Record::reference(kind(k), address, 4, flags, InsnId(insn), address >> 12 & 15, 0);
                    let mut outcome = missed(MissClass::ALL[class as usize], levels, u32::from(traffic));
                    outcome.write_backs = traffic & 3;
                    outcome.invalidated = traffic & 4 != 0;
                    outcome.home = traffic >> 7;
                    outcome.line_paddr = address & !63;
                    s.miss(vcpu, record, outcome);
                }
                Step::Drained(address, insn) => {
                    let last = Record::reference(Kind::NtStore, address, 8, 0, InsnId(insn), 1, 0);
                    s.attribution.drained(&as_recorded(vcpu, last), 1, 2, 0);
                    s.model.bus.nt_full += 1;
                    s.model.bus.nt_partial += 2;
                }
            }
        }
        let insn = |(l, st, c, e, f): (u64, u64, u64, u64, u32)| Insn {
            load_hits: l, store_hits: st, cont_hits: c, executions: e, run: 3, flags: f & (INSN_KERNEL | INSN_ATOMIC),
            ..Insn::default()
        };
        let side = SideTables {
            insns: hits.into_iter().map(insn).collect(),
            contexts: (0..5).map(|i| Context { parent: i / 2, call: i }).collect(),
            ..SideTables::default()
        };
        let dropped: u64 = side.insns.iter().map(|i| i.load_hits + i.store_hits).sum();
        let kept = |s: &Stream| {
            let rows = s.attribution.insns.iter().flatten();
            rows.map(|r| r.references.loads + r.references.stores).sum::<u64>()
        };
        let kept = kept(&s);
        let record = s.finish(&side, &names(8), instructions);
        assert_sums(&record);
        let parts = [&record.totals, &record.others, &record.idle, &record.ticks];
        prop_assert_eq!(parts.iter().map(|t| t.loads + t.stores).sum::<u64>(), kept + dropped);
        prop_assert_eq!(parts.iter().map(|t| t.instructions).sum::<u64>(), instructions);
    }
}
