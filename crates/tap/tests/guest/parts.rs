//! A run in parts: what is recorded is whole within each part, nothing of the pauses is, and the command ends with the plan.
#![allow(clippy::unwrap_used)]

use crate::engines::under_each_engine;
use crate::support::turn;
use nearmiss_record::reference::{Control, HeapOp, Kind, Record, Usage};
use nearmiss_record::run::Filter;
use nearmiss_record::side::{INSN_KERNEL, Insn};
use nearmiss_tap::guest::{GuestCommand, GuestShape, HEAP_SHIM, KernelImage, QemuBinary, WarmUp};
use nearmiss_tap::parts::{Parts, Pauses};
use nearmiss_tap::session::{Recorded, Session, TapConfig};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// `NM_MARK_PART`.
const PART: u64 = 3;

#[derive(Default)]
struct PartTotals {
    usage: Usage,
    /// Part marks, and heap objects reported in all.
    parts: usize,
    objects: usize,
    /// Objects of the pauses and parts so far, where all calls were followed: those with a calling context, and all.
    followed: (usize, usize),
    /// Calling contexts of blocks of 5,000 bytes, from the first one on that has one.
    sites: Vec<u32>,
    /// Calling context of the records that follow.
    context: u32,
    /// Stores of user mode by number of the part.
    stores: Vec<usize>,
    /// The CPUs' idle tasks.
    idle: BTreeSet<u64>,
}

impl PartTotals {
    fn take(&mut self, records: &[Record]) {
        let mut rest = records;
        while let Some((record, behind)) = rest.split_first() {
            let payload = if record.kind() == Some(Kind::Control) { record.payload_records().unwrap() } else { 0 };
            let (payload, behind) = behind.split_at(payload);
            rest = behind;
            if record.kind() == Some(Kind::Store) && !record.is_kernel() {
                self.stores.resize(self.parts + 1, 0);
                self.stores[self.parts] += 1;
            }
            if record.kind() != Some(Kind::Control) {
                continue;
            }
            match Control::decode(*record, payload).unwrap() {
                Control::Mark { number, usage } => {
                    self.parts += usize::from(number == PART);
                    self.usage.user_instructions += usage.user_instructions;
                }
                Control::Switch { usage, task, pid, .. } => {
                    self.usage.user_instructions += usage.user_instructions;
                    self.idle.extend((pid == 0).then_some(task));
                }
                Control::Heap { op, size, .. } => {
                    self.objects += 1;
                    if op == HeapOp::Alloc && size == 5000 && (self.context != 0 || !self.sites.is_empty()) {
                        self.sites.push(self.context);
                    }
                    self.followed = (self.followed.0 + usize::from(self.context != 0), self.followed.1 + 1);
                }
                Control::Context(context) => self.context = context,
                _ => {}
            }
        }
    }
}

/// Parts of at most 0.15 s or 200,000 records, for 3 s.
fn short_parts() -> Parts {
    Parts {
        followed: Duration::ZERO,
        first: 150 * MS,
        first_records: 200_000,
        longest: 150 * MS,
        records: 200_000,
        pauses: Pauses::Growing { first: 60 * MS, by: 1.4 },
        whole: 3000 * MS,
        all_records: u64::MAX,
        paused_ns_a_second: 0,
        part_ns: None,
        period_ns: 0,
    }
}

fn record(qemu: QemuBinary, cpus: u32, plan: Parts) -> Option<(PartTotals, Recorded)> {
    let kernel = KernelImage::newest().inspect_err(|error| println!("skipped: {error}")).ok()?;
    let _turn = turn();
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("subject");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/tap/tests/subject.c");
    let built = Command::new("cc").args(["-std=gnu11", "-O1", "-pthread", "-o"]).args([&program, &source]).status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return None;
    }
    let mut command = GuestCommand::inherit([program.as_os_str(), "turning".as_ref()]).unwrap();
    let null = || Some(File::options().read(true).write(true).open("/dev/null").unwrap().into());
    command.streams = [null(), null(), None];
    let filter =
        Filter { line_log2: 6, index_low: 6, index_bits: 6, fetches: true, contexts: true, ..Filter::default() };
    let session = Session::new(TapConfig {
        shape: GuestShape::flat(cpus),
        memory: vec![256 << 20],
        kernel,
        qemu,
        only_user: true,
        filter,
        heap_shim: Some(HEAP_SHIM.to_vec()),
        icount: None,
        timeout: Some(Duration::from_secs(120)),
        keep: None,
        aslr: false,
        kernel_arguments: Vec::new(),
        warm_up: WarmUp::Files,
        libc_tunables: None,
        saved_boot: true,
    });
    let mut seen = PartTotals::default();
    let recorded = session.unwrap().in_parts(Some(plan)).record(command, &mut |_, records| {
        seen.take(records);
        Ok(())
    });
    Some((seen, recorded.unwrap()))
}

/// Records with this plan, or on a busy machine with longer ones, until the program has done its `work`.
fn once_it_works(
    qemu: &QemuBinary,
    cpus: u32,
    plan: Parts,
    work: impl Fn(&PartTotals) -> bool,
) -> Option<(PartTotals, Recorded)> {
    for longer in [1, 5] {
        let (seen, recorded) =
            record(qemu.clone(), cpus, Parts { followed: longer * plan.followed, whole: longer * plan.whole, ..plan })?;
        println!("{} objects, stores of parts {:?}, {:?}", seen.objects, seen.stores, recorded.covered);
        if work(&seen) {
            return Some((seen, recorded));
        }
    }
    panic!("the program did not begin its work");
}

#[test]
fn parts_are_whole_and_the_command_ends_with_the_plan() {
    under_each_engine(|qemu| {
        for cpus in [1, 2] {
            let plan = short_parts();
            let stores = |seen: &PartTotals| seen.stores.iter().skip(1).filter(|stores| **stores > 0).count();
            let works = |seen: &PartTotals| seen.objects > 0 && stores(seen) >= 2;
            let Some((seen, recorded)) = once_it_works(&qemu, cpus, plan, works) else { return };
            assert_eq!(recorded.cut, None);
            let covered = recorded.covered;
            assert!(covered.ended && covered.parts >= 3, "{covered:?}");
            assert!(covered.recorded < covered.reached && covered.reached < 10 * plan.whole, "{covered:?}");
            assert!(seen.parts + 1 >= covered.parts as usize - 1, "{} marks of {covered:?}", seen.parts);
            let counted: u64 = recorded.side.insns.iter().map(|insn| u64::from(insn.run) * insn.executions).sum();
            assert_eq!(counted, seen.usage.user_instructions, "executions are the instructions of all tasks");
            // A part's first code is that of the CPU that runs first, and the other one may be idle.
            let of_none = |insn: &&Insn| insn.flags & INSN_KERNEL == 0 && seen.idle.contains(&insn.task);
            assert_eq!(recorded.side.insns.iter().filter(of_none).count(), 0, "code of user mode in an idle task");
        }
    });
}

/// A thread's first heap object may come in a pause, which sees no stores but those that report objects.
#[test]
fn objects_of_a_pause_are_seen_though_no_part_saw_one() {
    under_each_engine(|qemu| {
        let plan = Parts {
            first: MS,
            first_records: u64::MAX,
            longest: MS,
            records: u64::MAX,
            pauses: Pauses::Growing { first: 60_000 * MS, by: 1.0 },
            ..short_parts()
        };
        let Some((_, recorded)) = once_it_works(&qemu, 1, plan, |seen| seen.objects > 0) else { return };
        assert_eq!(recorded.covered.parts, 1);
    });
}

/// Calls are followed in pauses too, where the plan has it so.
#[test]
fn objects_of_followed_pauses_have_their_call_sites() {
    under_each_engine(|qemu| {
        for cpus in [1, 2] {
            let plan = Parts {
                followed: 3000 * MS,
                pauses: Pauses::Filling,
                whole: 2000 * MS,
                all_records: 1_000_000,
                ..short_parts()
            };
            let works = |seen: &PartTotals| seen.followed.1 > 0 && seen.stores.iter().skip(1).any(|stores| *stores > 0);
            let Some((seen, recorded)) = once_it_works(&qemu, cpus, plan, works) else { return };
            println!("{:?} followed", seen.followed);
            assert!(recorded.covered.parts >= 2, "{:?}", recorded.covered);
            assert_eq!(seen.followed.0, seen.followed.1, "objects without a call site");
            assert_eq!(recorded.cut, None);
        }
    });
}

/// A pause that follows no calls finds them on the stack, where an earlier part saw them.
#[test]
fn objects_of_a_pause_have_the_call_sites_that_a_part_saw() {
    under_each_engine(|qemu| {
        let plan = Parts { pauses: Pauses::Growing { first: 300 * MS, by: 1.4 }, ..short_parts() };
        let works = |seen: &PartTotals| seen.parts >= 2 && seen.sites.len() > 100;
        let Some((seen, recorded)) = once_it_works(&qemu, 1, plan, works) else { return };
        let caller = |context: u32| recorded.side.contexts[context as usize].parent;
        // A part may begin inside malloc: its first block has no caller.
        let (known, unknown): (Vec<u32>, Vec<u32>) = seen.sites.iter().partition(|context| caller(**context) != 0);
        assert!(unknown.len() <= seen.parts, "{} of {} blocks have no call site", unknown.len(), seen.sites.len());
        let call = |context: u32| recorded.side.insns[recorded.side.contexts[context as usize].call as usize].vaddr;
        let sites: BTreeSet<_> = known.iter().map(|context| (call(*context), call(caller(*context)))).collect();
        assert_eq!(sites.len(), 1, "{} blocks of one place", known.len());
    });
}

/// QEMU must take a hundred changes: each drops all translated code.
#[test]
fn a_hundred_parts_do_no_harm() {
    under_each_engine(|qemu| {
        let plan = Parts {
            first: 15 * MS,
            first_records: u64::MAX,
            longest: 15 * MS,
            records: u64::MAX,
            pauses: Pauses::Growing { first: 15 * MS, by: 1.0 },
            whole: 6_000 * MS,
            ..short_parts()
        };
        let Some((_, recorded)) = record(qemu, 2, plan) else { return };
        assert_eq!(recorded.cut, None);
        println!("{:?}", recorded.covered);
        assert!(recorded.covered.parts >= 50, "{:?}", recorded.covered);
    });
}
