//! The sentence that matters, cause by cause.

#![allow(clippy::unwrap_used)]

use crate::support::{self, Builder, Event};
use nearmiss_record::machine::{CacheKind, Index};
use nearmiss_record::model::MissClass::*;
use nearmiss_record::model::*;
use nearmiss_record::policy::Order;
use nearmiss_record::units::Bytes;
use nearmiss_report::sentence::{Cause, sentence};

const CACHES: &[(u8, u64, u32)] = &[(1, 32 << 10, 8), (2, 1 << 20, 16), (3, 16 << 20, 16)];

/// A program with two functions and two objects, of which `main` on `heap` does a million harmless things.
fn program() -> Builder {
    let mut b = Builder::new(&["program"], CACHES);
    b.function("main", "/bin/program").function("worker", "/bin/program").function("copy_user", "[kernel]");
    b.object(ObjectKind::Heap, "heap", 40, None, Some(16)).object(
        ObjectKind::Global,
        "counters",
        1,
        Some(64),
        Some(64),
    );
    b.task(100, "program");
    b.event(Event { count: 1_000_000, ..Event::default() });
    b
}

fn sentence_of(builder: Builder, cause: Cause) -> String {
    let sentence = sentence(&builder.report());
    assert_eq!(sentence.cause, cause, "{}", sentence.text);
    sentence.text
}

#[test]
fn one_array_in_few_sets_wants_padding_and_a_hashed_cache_no_coloring() {
    let conflict = |count, index| {
        let mut b = Builder::new(&["matmul"], CACHES);
        b.function("main", "/bin/matmul")
            .object(ObjectKind::Heap, "b", count, Some(32 << 20), Some(4096))
            .task(100, "matmul");
        for cache in &mut b.model.machine.caches {
            cache.index = index;
        }
        b.event(Event { object: "b", count: 500_000, missed: &[Conflict], sets: &[0, 1, 2, 3], ..Event::default() });
        b
    };
    assert_eq!(
        sentence_of(conflict(1, Index::Physical), Cause::SetConflict),
        "93% of the command's cycles wait for conflict misses in 4 of the 64 sets of L1d, caused by `main` reading `b`: \
         coloring or padding its parts would spread them."
    );
    assert!(
        sentence_of(conflict(9, Index::Hashed), Cause::SetConflict)
            .ends_with("its sets are hashed, so coloring would not help.")
    );
    assert!(
        sentence_of(conflict(9, Index::Physical), Cause::SetConflict)
            .ends_with("9 objects `b` of 4 KiB alignment: coloring would spread them.")
    );
}

#[test]
fn conflicts_all_over_are_not_for_coloring() {
    let mut b = program();
    let sets: Vec<u32> = (0..64).collect();
    b.event(Event { function: "worker", count: 200_000, missed: &[Conflict], sets: &sets, ..Event::default() });
    assert_eq!(
        sentence_of(b, Cause::Conflict),
        "70% of the command's cycles wait for conflict misses of L1 in `worker` on 40 objects `heap`: lines in use share sets; \
         `nearmiss diagnose` shows whether to move them apart."
    );
}

#[test]
fn false_sharing_names_line_and_order() {
    let mut b = program();
    let missed = &[FalseSharing, FalseSharing];
    b.event(Event { function: "worker", object: "counters", count: 90_000, missed, sets: &[1], ..Event::default() });
    b.event(Event {
        count: 30_000,
        missed: &[Capacity, Capacity],
        sets: &[2, 3, 4, 5, 6, 7, 8, 9],
        ..Event::default()
    });
    let line = |object: &str, false_sharing| SharedLineRow {
        line_paddr: 64,
        object: object.into(),
        true_sharing: 0,
        false_sharing,
        functions: vec!["worker".into()],
        ..SharedLineRow::default()
    };
    b.model.shared_lines = vec![line("counters+0x0", 80_000), line("heap+0x40", 10_000)];
    b.model.order = Order::Modelled;
    assert_eq!(
        sentence_of(b, Cause::FalseSharing),
        "76% of the command's cycles wait for false sharing in `worker` on the line of `counters+0x0`: CPUs write different bytes \
         of it; apart, each would keep its own line (modelled order)."
    );
}

#[test]
fn true_sharing_on_many_lines() {
    let mut b = program();
    b.event(Event {
        function: "worker",
        count: 90_000,
        missed: &[TrueSharing, TrueSharing],
        sets: &[1],
        ..Event::default()
    });
    assert_eq!(
        sentence_of(b, Cause::TrueSharing),
        "88% of the command's cycles wait for true sharing in `worker` on 40 objects `heap`: CPUs hand the same bytes to each other; \
         `nearmiss diagnose` shows what else would help (recorded order: a lower bound)."
    );
}

#[test]
fn a_copy_that_pollutes() {
    let mut b = program();
    let all = &[Compulsory, Compulsory, Compulsory];
    b.event(Event { function: "copy_user", count: 40_000, store: true, missed: all, sets: &[1], ..Event::default() });
    b.event(Event {
        function: "worker",
        count: 20_000,
        missed: &[Capacity, Capacity, Capacity],
        sets: &[2],
        ..Event::default()
    });
    let row = |cache: &str, misses| BlameRow {
        cache: cache.into(),
        evictor: "copy_user".into(),
        victim: "worker".into(),
        misses,
        ..BlameRow::default()
    };
    b.model.blame = vec![row("L3", 15_000), row("L2", 16_000)];
    assert_eq!(
        sentence_of(b, Cause::Copy),
        "19% of the command's cycles wait for what the kernel's `copy_user` pushed out of L3 with lines that it never used again: \
         it has 67% of the misses there but 3.8% of the references."
    );
}

#[test]
fn memory_of_another_node() {
    let mut b = program();
    b.model.machine.latency.memory_remote_cycles = 900;
    let missed = &[Capacity, Capacity, Capacity];
    b.event(Event { count: 60_000, missed, sets: &[1], remote: true, ..Event::default() });
    assert_eq!(
        sentence_of(b, Cause::RemoteMemory),
        "71% of the command's cycles wait for the memory of another node in `main` on 40 objects `heap`, at 900 instead of 250 cycles: \
         keeping pages beside their CPU would help."
    );
}

#[test]
fn too_much_data_names_the_size_that_would_do() {
    let mut b = program();
    b.event(Event { count: 500_000, missed: &[Capacity, Capacity, Capacity], sets: &[1, 2, 3], ..Event::default() });
    b.model.curve = Some(MissRatioCurve {
        exact: true,
        references: 1_500_000,
        points: vec![(16 << 20, 500_000), (32 << 20, 400_000), (64 << 20, 9)],
    });
    assert_eq!(
        sentence_of(b, Cause::Capacity),
        "99% of the command's cycles wait for capacity misses of L3 in `main` on 40 objects `heap`: what is used again does not fit \
         the 16 MiB of L3; half of them would hit with 64 MiB."
    );
}

#[test]
fn first_touches_are_nobodys_fault() {
    let mut b = program();
    b.event(Event { count: 300_000, missed: &[Compulsory, Compulsory, Compulsory], sets: &[1], ..Event::default() });
    assert_eq!(
        sentence_of(b, Cause::None),
        "No cache stands out: 98% of the command's cycles wait, most for first touches in `main` on 40 objects `heap`, \
         as any cache would; `main` has the most cycles, 100%."
    );
}

#[test]
fn waits_of_the_kernel_belong_to_a_caller() {
    let mut b = program();
    let first = &[Compulsory, Compulsory, Compulsory];
    b.event(Event { function: "copy_user", count: 300_000, missed: first, sets: &[1], ..Event::default() });
    let caller = |kernel_stall_cycles| {
        vec![CallerRow { function: "worker".into(), module: "/bin/program".into(), kernel_stall_cycles }]
    };
    let waited = 300_000 * 250;
    let sentence_with = |callers| {
        let mut report = Builder { manifest: b.manifest.clone(), model: b.model.clone() }.report();
        report.model.callers = callers;
        sentence(&report).text
    };
    assert_eq!(
        sentence_with(caller(waited / 2)),
        "No cache stands out: 98% of the command's cycles wait, most for first touches in the kernel's `copy_user` for `worker` \
         on 40 objects `heap`, as any cache would; the kernel's `copy_user` for `worker` has the most cycles, 99%."
    );
    assert!(!sentence_with(caller(waited / 2 - 1)).contains("worker"));
}

#[test]
fn the_programs_own_waits_come_before_the_kernels() {
    let both = |kernel: u64| {
        let mut b = program();
        let missed = &[Capacity, Capacity, Capacity];
        b.event(Event { function: "worker", count: 10_000, missed, sets: &[1, 2, 3], ..Event::default() });
        b.event(Event {
            function: "copy_user",
            object: "counters",
            count: kernel,
            missed,
            sets: &[1, 2, 3],
            ..Event::default()
        });
        sentence_of(b, Cause::Capacity)
    };
    assert!(both(19_000).contains("most in `worker`"), "{}", both(19_000));
    assert!(both(21_000).contains(" in the kernel's `copy_user`"), "{}", both(21_000));
}

#[test]
fn a_wait_of_less_than_a_twentieth_is_no_headline() {
    let waiting = |count| {
        let mut b = program();
        b.work("main", 100, 0, 10_000_000);
        b.event(Event {
            function: "worker",
            count,
            missed: &[Capacity, Capacity, Capacity],
            sets: &[1, 2, 3],
            ..Event::default()
        });
        sentence(&b.report()).cause
    };
    // 250 cycles each, of some 11 M cycles and what is waited for.
    assert_eq!(waiting(2_000), Cause::None);
    assert_eq!(waiting(2_500), Cause::Capacity);
}

#[test]
fn nothing_stands_out() {
    assert_eq!(
        sentence_of(program(), Cause::None),
        "No cache stands out: there was not a single miss; `main` has the most cycles, 100%."
    );
    assert_eq!(
        sentence_of(support::healthy(), Cause::None),
        "No cache stands out: only 1.2% of the command's cycles wait for caches or memory; `main` has the most cycles, 100%."
    );
}

#[test]
fn lines_that_the_recorded_order_keeps_in_place_are_named() {
    let sentence_with = |references, order| {
        let mut b = support::healthy();
        let writer = Tenant { writers: vec![101], readers: vec![102], ..Tenant::default() };
        let alone = Tenant { writers: vec![101], ..Tenant::default() };
        let line = |object: &str, references, tenants| SharedLineRow {
            object: object.to_owned(),
            references,
            tenants,
            ..SharedLineRow::default()
        };
        b.model.shared_lines = vec![
            line("read+0x0", 1 << 40, vec![]),
            line("moved+0x0", 1 << 40, vec![alone]),
            line("counters+0x0", references, vec![writer]),
        ];
        b.model.order = order;
        let all = b.model.totals.loads + b.model.totals.stores;
        (sentence_of(b, Cause::None), all)
    };
    let all = sentence_with(0, Order::Recorded).1;
    assert!(sentence_with(all / 4, Order::Recorded).0.ends_with(
        "; 25% of the references are to lines that CPUs pass on, most to `counters+0x0`: `nearmiss diagnose` shows what that \
         costs."
    ));
    assert!(!sentence_with(all / 25, Order::Recorded).0.contains("pass on"));
    assert!(!sentence_with(all / 4, Order::Modelled).0.contains("pass on"), "there the cycles themselves show it");
}

#[test]
fn few_sets_of_a_level_that_costs_little_are_no_headline() {
    let mut b = program();
    let all: Vec<u32> = (0..64).collect();
    b.event(Event { function: "worker", count: 200_000, missed: &[Conflict], sets: &all, ..Event::default() });
    b.event(Event { function: "worker", count: 500, missed: &[Capacity, Conflict], sets: &[7], ..Event::default() });
    let sentence = sentence_of(b, Cause::Conflict);
    assert!(sentence.contains("conflict misses of L1 in `worker`"), "{sentence}");
}

#[test]
fn code_that_does_not_fit_names_the_cache_of_instructions() {
    let sentence_with = |by_fetches: bool| {
        let mut b = program();
        b.event(Event { function: "worker", count: 400_000, missed: &[Capacity], sets: &[1], ..Event::default() });
        let mut of_code = b.model.machine.caches[0].clone();
        (of_code.kind, of_code.size) = (CacheKind::Instruction, Bytes(64 << 10));
        b.model.machine.caches.insert(1, of_code);
        if by_fetches {
            let misses = &mut b.model.totals.levels[0];
            std::mem::swap(&mut misses.load_misses, &mut misses.fetch_misses);
        }
        sentence_of(b, Cause::Capacity)
    };
    let data = sentence_with(false);
    assert!(data.contains("capacity misses of L1 in") && data.contains("does not fit the 32 KiB of L1"), "{data}");
    let code = sentence_with(true);
    assert!(code.contains("capacity misses of L1i in `worker`"), "{code}");
    assert!(code.ends_with("what is used again does not fit the 64 KiB of L1i."), "{code}");
}
