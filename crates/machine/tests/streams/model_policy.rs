//! Each part of a policy on streams that are small enough to follow by hand, and its refusals.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::describe::read_file;
use nearmiss_machine::model::{Model, ModelOptions, ModelTotals};
use nearmiss_machine::observer::{Effective, NullObserver, Observer, Outcome};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::machine::{CacheKind, Machine, Sharing, Tlb};
use nearmiss_record::model::Tally;
use nearmiss_record::policy::*;
use nearmiss_record::reference::*;
use nearmiss_record::run::Filter;
use nearmiss_record::units::InsnId;
use std::path::Path;

const KERNEL: u64 = 0xffff_8880_0000_0000;

/// Two CPUs, each in a node of its own with a megabyte.
fn two_nodes() -> (Machine, ModelOptions) {
    let mut m = two_levels(2, 1);
    m.memory.nodes = 2;
    (m, ModelOptions { node_bytes: vec![1 << 20, 1 << 20], ..options(2) })
}

fn rule(pages: Option<(u64, u64)>, task: Option<u32>, home: Home) -> HomeRule {
    HomeRule { pages, task, home }
}

/// Chunks of CPUs under rules of homes.
fn at_home(rules: Vec<HomeRule>, chunks: &[(u32, Vec<Record>)]) -> ModelTotals {
    let (m, o) = two_nodes();
    let policy = Policy { home: HomePolicy::Rules(rules), ..Policy::default() };
    let chunks: Vec<_> = chunks.iter().enumerate().map(|(n, (cpu, r))| (*cpu, n as u64, r.clone())).collect();
    replay_on(&m, &policy, &o, &chunks, NullObserver).0
}

fn remote_reads(totals: &ModelTotals) -> [u64; 2] {
    [0, 1].map(|cpu| totals.cpus[cpu].bus.read_remote)
}

fn switch(pid: u32, tgid: u32) -> Vec<Record> {
    let mut records = vec![Record::default(); 6];
    records[0] = Record::control(ControlKind::Switch, u64::from(pid) << 12, 0, u64::from(pid) | u64::from(tgid) << 32);
    records
}

fn heap(op: HeapOp, address: u64, size: u64) -> Vec<Record> {
    vec![Record::control(ControlKind::Heap, op as u64, 0, 0), Record { a: address, b: size }, Record::default()]
}

#[test]
fn pages_of_a_range_lie_where_its_rule_has_them_and_others_stay() {
    let rules = || vec![rule(Some((0x1000, 0x3000)), None, Home::Node(1))];
    let walk: Vec<_> = (0..5).map(|page| load(page * 4096)).collect();
    assert_eq!(remote_reads(&at_home(rules(), &[(0, walk.clone())])), [2, 0], "pages 1 and 2 of five");
    assert_eq!(remote_reads(&at_home(rules(), &[(1, walk)])), [0, 3]);
}

#[test]
fn a_page_that_the_kernel_cleared_goes_where_its_range_belongs_when_it_is_used() {
    let kernel =
        |address| Record::reference(Kind::Store, KERNEL + address, 8, FLAG_KERNEL, InsnId(3), address >> 12, 0);
    let rules = vec![rule(Some((0x1000, 0x3000)), None, Home::Node(1)), rule(None, None, Home::FirstTouch)];
    // Cleared by CPU 0, so its node until the program's first use; a hit is a use too.
    let chunk = vec![kernel(0x1000), load(0x1000), kernel(0x1040), kernel(0x4000), kernel(0x4040)];
    assert_eq!(remote_reads(&at_home(rules, &[(0, chunk)])), [1, 0], "the second line of page 1");
}

#[test]
fn a_task_s_rule_governs_the_pages_that_it_touches_first() {
    let rules = || vec![rule(None, Some(7), Home::FirstTouch), rule(None, Some(8), Home::Interleave)];
    let one = |pid, address| [switch(pid, 5), vec![load(address), load(address + 64)]].concat();
    // Page 1 of node 0 by task 7 on CPU 1; page 2 by task 9, which no rule names; pages 3 and 4 by task 8.
    let chunks = [(1, one(7, 0x1000)), (1, one(9, 0x2000)), (1, one(8, 0x3000)), (1, one(8, 0x4000))];
    assert_eq!(remote_reads(&at_home(rules(), &chunks)), [0, 4]);
}

#[test]
fn a_pool_gives_blocks_of_its_own_node() {
    let rules = || vec![rule(None, None, Home::Pool)];
    let allocates = |pid, tgid| [switch(pid, tgid), heap(HeapOp::Alloc, 0x4010, 0x2000)].concat();
    let uses = |pid, tgid| [switch(pid, tgid), vec![load(0x4010), load(0x6000), load(0x7000)]].concat();
    // Allocated on CPU 1, first used on CPU 0: two pages of node 1, and one behind the block as recorded.
    let chunks = [(1, allocates(6, 5)), (0, uses(7, 5))];
    assert_eq!(remote_reads(&at_home(rules(), &chunks)), [2, 0]);
    let of_another_process = [(1, allocates(6, 6)), (0, uses(7, 5))];
    assert_eq!(remote_reads(&at_home(rules(), &of_another_process)), [0, 0]);
    let freed = [(1, [allocates(6, 5), heap(HeapOp::Free, 0x4010, 0)].concat()), (0, uses(7, 5))];
    assert_eq!(remote_reads(&at_home(rules(), &freed)), [0, 0]);
}

#[test]
fn a_call_site_is_an_instruction_in_its_calling_context() {
    let m = two_levels(1, 1);
    let sites = vec![CallSite { context: 4, insn: 2 }];
    let p = Policy { store: StorePolicy::NonTemporal { sites }, ..Policy::default() };
    let context = |number| Record::control(ControlKind::Context, number, 0, 0);
    let line = |at: u64| (0..8).map(move |word| store(at + word * 8));
    let mut chunk: Vec<_> = line(0).collect();
    chunk.push(context(4));
    chunk.extend(line(64));
    chunk.push(access(Kind::Store, 128, 8, 3));
    chunk.push(context(5));
    chunk.extend(line(192));
    for order in [Order::Recorded, Order::Modelled] {
        let o = ModelOptions { order, ..options(1) };
        let t = replay_on(&m, &p, &o, &[(0, 0, chunk.clone())], NullObserver).0.sum();
        assert_eq!((t.stores, t.nt_stores, t.bus.nt_full, t.bus.reads()), (25, 8, 1, 3));
    }
}

#[test]
fn stores_past_the_caches_of_a_call_site_become_plain() {
    let m = two_levels(1, 1);
    let context = |number| Record::control(ControlKind::Context, number, 0, 0);
    let around = |at: u64| (0..8).map(move |word| access(Kind::NtStore, at + word * 8, 8, 2));
    let mut chunk: Vec<_> = around(0).collect();
    chunk.push(context(4));
    chunk.extend(around(64));
    chunk.extend([load(0), load(64)]);
    let replayed = |sites| {
        let policy = Policy { store: StorePolicy::Plain { sites }, ..Policy::default() };
        replay_on(&m, &policy, &options(1), &[(0, 0, chunk.clone())], NullObserver).0.sum()
    };
    let recorded = replayed(Vec::new());
    assert_eq!((recorded.stores, recorded.nt_stores, recorded.bus.nt_full, recorded.bus.reads()), (16, 16, 2, 2));
    let plain = replayed(vec![CallSite { context: 4, insn: 2 }]);
    // The line's first store brings it, and the load finds it.
    assert_eq!((plain.stores, plain.nt_stores, plain.bus.nt_full, plain.bus.reads()), (16, 8, 1, 2));
    let loads = |tally: &Tally| tally.levels[0].load_misses.iter().sum::<u64>();
    assert_eq!([loads(&recorded), loads(&plain)], [2, 1]);
}

/// Events of a placed stream's replay: CPU and address, CPU and task, or CPU and address of code.
#[derive(Default)]
struct CpuAddresses(Vec<(u32, u64)>);

impl Observer for CpuAddresses {
    fn control(&mut self, cpu: u32, control: &Control<'_>) {
        match control {
            Control::Switch { pid, .. } => self.0.push((cpu, u64::from(*pid))),
            Control::Code(block) => self.0.push((cpu, block.vaddr)),
            _ => {}
        }
    }
    fn hit(&mut self, reference: &Effective) {
        self.0.push((reference.cpu, reference.vaddr));
    }
    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.0.push((reference.cpu, reference.vaddr));
    }
    fn instructions(&mut self, _: u32, _: u64) {}
}

fn placed(tasks: &[(u32, u32)], window_instructions: u64) -> Policy {
    let tasks = tasks.iter().map(|&(pid, cpu)| Placed { pid, cpu }).collect();
    Policy { place: PlacePolicy::Tasks { tasks, window_instructions }, ..Policy::default() }
}

/// A load that so many instructions precede.
fn later(address: u64, instructions: u8) -> Record {
    load(address).with_instructions(instructions)
}

#[test]
fn placed_tasks_run_window_by_window_of_instructions() {
    let m = two_levels(2, 1);
    let kernel = Record::reference(Kind::Load, KERNEL, 8, FLAG_KERNEL, InsnId(3), 0, 10);
    let copy = Record::reference(Kind::Load, 0x1080, 8, FLAG_KERNEL, InsnId(3), 1, 10);
    // One CPU: task 1, then task 3, which is not placed, then task 2.
    let first = [switch(1, 1), vec![later(0x1000, 5), later(0x1040, 5), kernel, copy, later(0x10c0, 25)]].concat();
    let unplaced = [switch(3, 3), vec![later(0x3000, 50)]].concat();
    let second = [switch(2, 2), vec![later(0x2000, 10), later(0x2040, 1), later(0x2080, 30)]].concat();
    let chunks = [(0, 0, first), (0, 1, unplaced), (0, 2, second)];
    let visited = replay_on(&m, &placed(&[(1, 0), (2, 1)], 10), &options(1), &chunks, CpuAddresses::default()).1.0;
    let by_window = [
        vec![(0, 1), (0, 0x1000), (0, 0x1040), (1, 2), (1, 0x2000)], // instructions 1 to 10 of both
        vec![(0, 0x1080), (1, 0x2040)],                              // 11 to 20
        vec![(0, 0x10c0), (1, 0x2080)],                              // 41 to 50 of each
    ];
    assert_eq!(visited, by_window.concat());
}

#[test]
fn placed_tasks_find_the_code_that_any_of_them_brought() {
    let code = |vaddr| {
        let mut payload = CodeBlock::encode(0x9000, &[(0, InsnId(2))], &[0xc3]);
        payload.resize(payload.len().next_multiple_of(16), 0);
        let head = Record::control(ControlKind::Code, vaddr, 0, 19);
        [vec![head], payload.chunks_exact(16).map(bytemuck::pod_read_unaligned).collect()].concat()
    };
    // Task 3, which is not placed, brings code that the others execute as well.
    let first = [switch(1, 1), vec![later(0x1000, 10)], code(0x40_1000), vec![later(0x1040, 10)]].concat();
    let unplaced = [switch(3, 3), code(0x40_2000), vec![later(0x3000, 10)]].concat();
    let second = [switch(2, 2), vec![later(0x2000, 10)], code(0x40_3000), vec![later(0x2040, 10)]].concat();
    let chunks = [(0, 0, first), (0, 1, unplaced), (0, 2, second)];
    let policy = placed(&[(1, 0), (2, 1)], 10);
    for order in [Order::Recorded, Order::Modelled] {
        let options = ModelOptions { order, ..options(1) };
        let visited = replay_on(&two_levels(2, 1), &policy, &options, &chunks, CpuAddresses::default()).1.0;
        let code = [(0, 0x40_1000), (0, 0x40_2000), (0, 0x40_3000)];
        assert_eq!(visited[..3], code, "ahead of every window");
        assert_eq!(visited[3..], [(0, 1), (0, 0x1000), (1, 2), (1, 0x2000), (0, 0x1040), (1, 0x2040)]);
    }
}

#[test]
fn tasks_of_one_cpu_follow_one_another_and_what_a_switch_reports_is_the_leaver_s() {
    let m = two_levels(2, 1);
    let mut leaves = switch(2, 2);
    leaves[4].a = 0;
    leaves[3] = Record { a: 35, b: 0 }; // 35 instructions of task 1, of which its records have 5
    let chunk = [switch(1, 1), vec![later(0x1000, 5)], leaves, vec![later(0x2000, 32), later(0x2040, 1)]].concat();
    let other = [switch(4, 4), vec![later(0x4000, 5), later(0x4040, 28), later(0x4080, 6)]].concat();
    let policy = placed(&[(1, 0), (2, 0), (4, 1)], 10);
    let visited = replay_on(&m, &policy, &options(2), &[(0, 0, chunk), (1, 1, other)], CpuAddresses::default()).1.0;
    let by_window = [
        vec![(0, 1), (0, 0x1000), (1, 4), (1, 0x4000)],
        vec![(0, 2), (0, 0x2000), (0, 0x2040), (1, 0x4040), (1, 0x4080)], // from instruction 31 on
    ];
    assert_eq!(visited, by_window.concat());
}

#[test]
fn a_cpu_with_a_task_that_starts_late_is_waited_for_until_so_much_is_held() {
    let m = two_levels(2, 1);
    let early = (0..200u64).map(|n| {
        let records: Vec<_> = (0..25_000).map(|_| later(0x1000, 1)).collect();
        (0, n, if n == 0 { [switch(1, 1), records].concat() } else { records })
    });
    let late = (0, 200, [switch(2, 2), vec![later(0x2000, 1); 2000]].concat());
    let chunks: Vec<_> = early.chain([late]).collect();
    let visited = replay_on(&m, &placed(&[(1, 0), (2, 1)], 1000), &options(1), &chunks, CpuAddresses::default()).1.0;
    let before = visited.iter().position(|(cpu, _)| *cpu == 1).unwrap();
    // 4 Mi of 5,000,006 records were held back, but for less than a window.
    assert_eq!(before, 807_001);
    assert_eq!(visited.len(), 5_002_002);
}

fn bound(tasks: &[(u32, Option<u32>)]) -> Policy {
    let tasks = tasks.iter().map(|&(pid, cpu)| Bound { pid, cpu }).collect();
    Policy { place: PlacePolicy::InOrder { tasks }, ..Policy::default() }
}

/// Task 1 begins on vCPU 0, where task 2 goes on, and continues on vCPU 1; the kernel is there too, and a task 3.
fn moving() -> [(u32, u64, Vec<Record>); 3] {
    let kernel = Record::reference(Kind::Load, KERNEL, 8, FLAG_KERNEL, InsnId(3), 0, 10);
    [
        (
            0,
            0,
            [switch(1, 1), vec![later(0x1000, 5), kernel, later(0x1040, 5)], switch(2, 2), vec![later(0x2000, 7)]]
                .concat(),
        ),
        (1, 1, [switch(3, 3), vec![later(0x3000, 9)], switch(1, 1), vec![later(0x1080, 5)]].concat()),
        (0, 2, vec![later(0x2040, 3)]),
    ]
}

#[test]
fn bound_tasks_run_in_the_recorded_order() {
    let m = two_levels(2, 1);
    let visited = |policy: &Policy| replay_on(&m, policy, &options(2), &moving(), CpuAddresses::default()).1.0;
    let on = |first: u32, then: u32, other: u32| {
        let begin = vec![(first, 1), (first, 0x1000), (first, 0x1040), (other, 2), (other, 0x2000)];
        let switch = if then == first && first != other { vec![] } else { vec![(then, 1)] };
        let end = if then == other { vec![(other, 2), (other, 0x2040)] } else { vec![(other, 0x2040)] };
        [begin, switch, vec![(then, 0x1080)], end].concat()
    };
    assert_eq!(visited(&bound(&[(1, None), (2, None)])), on(0, 1, 0), "where they were recorded");
    assert_eq!(visited(&bound(&[(1, Some(1)), (2, Some(0))])), on(1, 1, 0));
    assert_eq!(visited(&bound(&[(1, Some(0)), (2, Some(0))])), on(0, 0, 0));
}

#[test]
fn bound_tasks_execute_what_they_executed_and_the_kernel_s_own_is_left_out() {
    let m = two_levels(2, 1);
    let by_cpu = |policy: &Policy| {
        let totals = replay_on(&m, policy, &options(2), &moving(), NullObserver).0;
        totals.cpus.iter().map(|cpu| (cpu.instructions, cpu.loads)).collect::<Vec<_>>()
    };
    // None of the kernel's 10 instructions is theirs.
    assert_eq!(by_cpu(&bound(&[(1, None), (2, None)])), [(20, 4), (5, 1)]);
    assert_eq!(by_cpu(&bound(&[(1, Some(1)), (2, Some(0))])), [(10, 2), (15, 3)]);
    assert_eq!(by_cpu(&bound(&[(2, Some(1))])), [(0, 0), (10, 2)]);
}

#[test]
fn a_bound_task_touches_its_pages_first_where_it_is_bound() {
    let (m, o) = two_nodes();
    let remote = |policy: Policy| replay_on(&m, &policy, &o, &moving(), NullObserver).0.sum().bus.read_remote;
    let first_touch = |policy: Policy| Policy { home: HomePolicy::everywhere(Home::FirstTouch), ..policy };
    // All pages lie on node 0.
    assert_eq!(remote(bound(&[(1, None), (2, None)])), 1, "what the task reads where it moved to");
    assert_eq!(remote(bound(&[(1, Some(1)), (2, Some(0))])), 3);
    assert_eq!(remote(first_touch(bound(&[(1, Some(1)), (2, Some(0))]))), 0);
}

#[test]
fn a_policy_that_no_machine_or_trace_carries_is_refused_by_name() {
    let (m, o) = two_nodes();
    let refused = |policy: Policy, options: &ModelOptions| {
        Model::new(&m, &policy, options, NullObserver).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let home = |rule| Policy { home: HomePolicy::Rules(vec![rule]), ..Policy::default() };
    assert_eq!(refused(home(rule(None, None, Home::Node(1))), &o), "");
    assert!(refused(home(rule(None, None, Home::Node(2))), &o).starts_with("home: node 2 of test, which has 2"));
    assert!(refused(home(rule(Some((8, 8)), None, Home::FirstTouch)), &o).contains("range 0x8 to 0x8 is empty"));
    let no_heap = ModelOptions { filter: Filter { heap: false, ..o.filter }, ..o.clone() };
    assert!(refused(home(rule(None, None, Home::Pool)), &no_heap).contains("the trace has no heap events"));
    assert_eq!(refused(home(rule(None, None, Home::Pool)), &o), "");
    assert!(refused(placed(&[(1, 2)], 10), &o).starts_with("place: task 1 on CPU 2 of a machine of 2"));
    assert!(refused(placed(&[(1, 0), (1, 1)], 10), &o).contains("named twice"));
    assert!(refused(placed(&[(1, 0)], 0), &o).contains("windows of no instructions"));
    assert!(refused(bound(&[(1, Some(2))]), &o).starts_with("place: task 1 on CPU 2 of a machine of 2"));
    assert!(refused(bound(&[(1, None), (1, Some(1))]), &o).contains("named twice"));
    let recorded = ModelOptions { cpus: 3, ..o.clone() };
    assert!(refused(bound(&[(1, None)]), &recorded).starts_with("place: recorded on 3 CPUs"));
}

/// Words of elements of 24 bytes from 0x1000 on, in any order.
fn words() -> Vec<(u64, u64)> {
    let mut state = 3u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    (0..4000).map(|_| (random(100), random(3))).collect()
}

#[test]
fn fields_in_arrays_of_their_own_miss_as_a_program_that_declares_them_so() {
    // One set: lines alone decide, wherever they lie.
    let m = machine(1, 1, vec![cache(1, CacheKind::Data, 1, 16, 64, Sharing::Core)]);
    let o = ModelOptions { filter: Filter { every_access: true, ..options(1).filter }, ..options(1) };
    let run = |policy: &Policy, place: &dyn Fn(u64, u64) -> u64| {
        let records: Vec<Record> = words().iter().map(|(element, word)| load(place(*element, *word))).collect();
        let totals = replay_on(&m, policy, &o, &[(0, 0, records)], NullObserver).0;
        totals.sum().levels[0].misses()
    };
    let recorded = |element, word| 0x1000 + element * 24 + word * 8;
    let elements = vec![Elements { from: 0x1000, count: 60 }, Elements { from: 0x1000 + 60 * 24, count: 40 }];
    let field = |from, to, part, at| PlacedField { from, to, part, at };
    // The middle word apart, the others together.
    let fields = vec![field(0, 8, 0, 0), field(16, 24, 0, 8), field(8, 16, 1, 0)];
    let array = Rearranged { elements, bytes: 24, begin: 0, parts: vec![16, 8], fields };
    let policy = |array| Policy { address: AddressPolicy::Fields { arrays: vec![array] }, ..Policy::default() };
    let by_hand = |element, word| match word {
        1 => 0x9000 + element * 8,
        word => 0x5000 + element * 16 + word / 2 * 8,
    };
    let stays = Rearranged { parts: Vec::new(), fields: Vec::new(), ..array.clone() };
    let as_it_was = run(&Policy::default(), &recorded);
    assert_eq!(run(&policy(stays), &recorded), as_it_was);
    let apart = run(&policy(array), &recorded);
    assert_eq!(apart, run(&Policy::default(), &by_hand));
    assert_ne!(apart, as_it_was);
}

#[test]
fn fields_are_translated_where_they_lie() {
    let mut m = machine(1, 1, vec![cache(1, CacheKind::Data, 64, 16, 64, Sharing::Core)]);
    m.core = read_file(Path::new("tests/machines/with-core.toml")).unwrap().core;
    m.tlb = Some(Tlb { entries: 16, miss_cycles: 7, ..Tlb::default() });
    let o = ModelOptions { filter: Filter { every_access: true, ..options(1).filter }, ..options(1) };
    // A word of each of 32 elements of 2 MiB, twice.
    let bytes = 2 << 20;
    let walk: Vec<Record> = (0..64).map(|n| load(bytes * (1 + n % 32))).collect();
    let first_misses = |address: AddressPolicy| {
        let policy = Policy { address, ..Policy::default() };
        let totals = replay_on(&m, &policy, &o, &[(0, 0, walk.clone())], NullObserver).0;
        totals.translation.map(|counted| counted.first_misses)
    };
    let fields =
        vec![PlacedField { from: 0, to: 8, part: 0, at: 0 }, PlacedField { from: 8, to: bytes, part: 1, at: 0 }];
    let elements = vec![Elements { from: bytes, count: 32 }];
    let hot = Rearranged { elements, bytes, begin: 0, parts: vec![8, bytes - 8], fields };
    assert_eq!(first_misses(AddressPolicy::Recorded), Some(64));
    assert_eq!(first_misses(AddressPolicy::Fields { arrays: vec![hot] }), Some(1), "all hot words lie in a page");
}

#[test]
fn observers_receive_where_and_how_a_reference_ran() {
    struct Last(Option<Effective>);
    impl Observer for Last {
        fn control(&mut self, _: u32, _: &Control<'_>) {}
        fn hit(&mut self, reference: &Effective) {
            self.0 = Some(*reference);
        }
        fn miss(&mut self, reference: &Effective, _: &Outcome) {
            self.0 = Some(*reference);
        }
        fn instructions(&mut self, _: u32, _: u64) {}
    }
    let (m, o) = two_nodes();
    let p = Policy {
        address: AddressPolicy::Shift { objects: vec![Shifted { from: 0x1000, to: 0x2000, by: 64 }] },
        store: StorePolicy::NonTemporal { sites: vec![CallSite { context: 0, insn: 2 }] },
        ..placed(&[(1, 1)], 10)
    };
    let chunk = [switch(1, 1), vec![store(0x1008)]].concat();
    let reference = replay_on(&m, &p, &o, &[(0, 0, chunk)], Last(None)).1.0.unwrap();
    let record = access(Kind::NtStore, 0x1008, 8, 2);
    let expected = Effective { cpu: 1, node: 1, kind: Kind::NtStore, address: 0x1048, vaddr: 0x1048, size: 8, record };
    assert_eq!(reference, expected);
}
