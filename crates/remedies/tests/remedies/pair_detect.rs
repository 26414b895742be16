//! Which tasks share a cache well: two groups are found, tasks that are all alike are left alone, and what a trace does
//! not carry is refused.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Traced};
use nearmiss_machine::describe::{cut, filter_for, preset};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::machine::{Machine, Sharing, Topology};
use nearmiss_record::policy::Order;
use nearmiss_record::reference::{ControlKind, Kind, Record};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::run::{Filter, MANIFEST, RunDir, SYMBOLS, TRACE};
use nearmiss_record::side::{Insn, SideTables};
use nearmiss_record::symbols::{SCHEMA, Symbols};
use nearmiss_record::trace::{self, TraceHeader, TraceWriter};
use nearmiss_record::units::InsnId;
use nearmiss_remedies::pair::REMEDY;
use std::path::Path;

const BASE: u64 = 0x7f00_0000_0000;
const PROCESS: u64 = 100;
/// Three quarters of the L2: one block fits, two do not.
const BLOCK_LINES: u64 = (384 << 10) / 64;
const INSTRUCTIONS: u8 = 10;

fn machine(cpus: u32) -> Machine {
    cut(&preset("xeon-ht-2x2").unwrap().machine().unwrap(), cpus)
}

/// Threads of one process, each of which reads a block three times over.
struct Script {
    threads: u64,
    /// Block of each thread.
    block: fn(u64) -> u64,
    /// CPU on which each thread was recorded.
    cpu: fn(u64) -> u32,
}

const TWO_GROUPS: Script = Script { threads: 8, block: |thread| thread % 2, cpu: |thread| (thread / 2) as u32 };

impl Script {
    fn chunks(&self) -> Vec<(u32, Vec<Record>)> {
        // Each switch reports what the thread executed that leaves the CPU.
        let mut executed = [0u64; 4];
        let mut runs = |thread: u64, executes: u64| {
            let (tid, cpu) = (PROCESS + thread, (self.cpu)(thread) as usize);
            let mut records = vec![Record::control(ControlKind::Switch, 0x1000 + tid, 0, tid | PROCESS << 32)];
            records.resize(6, Record::default());
            records[3].a = std::mem::replace(&mut executed[cpu], executes);
            records
        };
        let mut mark = vec![Record::control(ControlKind::Mark, 1, 0, 0)];
        mark.resize(4, Record::default());
        let mut chunks = vec![((self.cpu)(0), [runs(0, 0), mark].concat())];
        for _ in 0..3 {
            for thread in 0..self.threads {
                let line = |n: u64| (self.block)(thread) * BLOCK_LINES + n * 37 % BLOCK_LINES;
                let load = |n: u64| {
                    let at = line(n) * 64;
                    Record::reference(Kind::Load, BASE + at, 8, 0, InsnId(1), at >> 12, INSTRUCTIONS)
                };
                let reads: Vec<Record> = (0..BLOCK_LINES).map(load).collect();
                chunks.push(((self.cpu)(thread), runs(thread, BLOCK_LINES * u64::from(INSTRUCTIONS))));
                chunks.extend(reads.chunks(2000).map(|reads| ((self.cpu)(thread), reads.to_vec())));
            }
        }
        // The last ones to run are reported too.
        chunks.extend((0..self.threads).map(|thread| ((self.cpu)(thread), runs(thread, 0))));
        chunks
    }

    fn case(&self, place: &Path, machine: &Machine, filter: Filter) -> Case {
        let run = RunDir::create(place, "run").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/healthy").join(MANIFEST);
        std::fs::copy(fixture, run.file(MANIFEST)).unwrap();
        run.write_json(SYMBOLS, &Symbols { schema: SCHEMA.to_owned(), ..Symbols::default() }).unwrap();
        let cpus = machine.topology.cpus();
        let node_bytes = vec![1 << 30];
        let header =
            TraceHeader { schema: trace::SCHEMA.to_owned(), cpus, filter, node_bytes, ..TraceHeader::default() };
        let mut writer = TraceWriter::create(&run.file(TRACE), &header).unwrap();
        for (seq, (vcpu, records)) in self.chunks().iter().enumerate() {
            let (seq, vcpu, count) = (seq as u64, vcpu % cpus, records.len() as u32);
            writer.chunk(&ChunkHeader { seq, vcpu, records: count, ..ChunkHeader::default() }, records).unwrap();
        }
        let executions = 3 * self.threads * BLOCK_LINES;
        let insns = vec![Insn::default(), Insn { run: INSTRUCTIONS.into(), executions, ..Insn::default() }];
        writer.finish(&SideTables { insns, ..SideTables::default() }).unwrap();
        let traced = Traced::open(&run, Some(machine), Some(Order::Recorded), &|_, _| ()).unwrap();
        Case::from(traced)
    }

    fn rehearsed(&self) -> Rehearsal {
        let (place, machine) = (tempfile::tempdir().unwrap(), machine(4));
        let case = self.case(place.path(), &machine, filter_for(&machine));
        let suspicions = (REMEDY.detect)(&case).unwrap();
        assert_eq!(suspicions.len(), 1);
        suspicions[0].rehearse(&case, &RehearsalRequest::default()).unwrap()
    }
}

fn pairs(rehearsal: &Rehearsal) -> &Table {
    &rehearsal.more[1]
}

fn thread(cell: &Cell) -> u64 {
    let Cell::Text(name) = cell else { panic!("{cell:?}") };
    name.rsplit(' ').next().unwrap().parse::<u64>().unwrap() - PROCESS
}

#[test]
fn all_pairs_of_one_group_rank_above_all_others_and_the_groups_are_proposed() {
    let rehearsal = TWO_GROUPS.rehearsed();
    assert_eq!(rehearsal.subject, "tasks 100 102 104 106 | 101 103 105 107");
    assert_eq!(rehearsal.placements.len(), 5);
    let rows = &pairs(&rehearsal).rows;
    let same: Vec<bool> = rows.iter().map(|row| thread(&row[0]) % 2 == thread(&row[1]) % 2).collect();
    assert_eq!((same[..12].to_vec(), same[12..].to_vec()), (vec![true; 12], vec![false; 16]));
    let judged: Vec<&Cell> = rows.iter().map(|row| &row[6]).collect();
    assert!(judged[..12].iter().all(|cell| **cell == Cell::text("high")), "{judged:?}");
    assert!(judged[12..].iter().all(|cell| **cell == Cell::text("low")), "{judged:?}");
    let names: Vec<&Cell> = rehearsal.table.rows.iter().map(|row| &row[1]).collect();
    assert_eq!((names[0], names.len()), (&Cell::text("as recorded"), 8));
    let saved = |row: usize| match rehearsal.table.rows[row][4] {
        Cell::Share(saved) => saved,
        _ => panic!("{:?}", rehearsal.table.rows[row]),
    };
    let (worst, paper, ours, best, whole) = (saved(2), saved(3), saved(4), saved(5), saved(7));
    assert!(
        worst < 0.0 && paper > 0.0 && ours >= paper && best >= ours - 1e-9 && whole > 0.1,
        "{worst} {paper} {ours} {best} {whole}"
    );
}

#[test]
fn the_pairs_are_the_same_wherever_the_tasks_were_recorded() {
    // Each group on a core of its own.
    let elsewhere = Script { cpu: |thread| (thread % 2 * 2 + thread / 2 % 2) as u32, ..TWO_GROUPS };
    let (one, other) = (TWO_GROUPS.rehearsed(), elsewhere.rehearsed());
    assert_eq!(pairs(&one), pairs(&other));
    assert_ne!(one.table.rows[0], other.table.rows[0], "what is as recorded is not");
}

#[test]
fn tasks_that_are_all_alike_are_left_alone() {
    let own = Script { block: |thread| thread, ..TWO_GROUPS };
    let (place, machine) = (tempfile::tempdir().unwrap(), machine(4));
    let case = own.case(place.path(), &machine, filter_for(&machine));
    let suspicions = (REMEDY.detect)(&case).unwrap();
    let finding = suspicions[0].finding(&case).unwrap();
    assert_eq!((finding.prediction.gain, finding.apply), (0.0, None));
    assert_eq!(finding.treatment, "None: no grouping of the tasks is certain to save anything");
    let rehearsal = suspicions[0].rehearse(&case, &RehearsalRequest::default()).unwrap();
    assert_eq!(rehearsal.subject, "8 tasks, and no grouping is proposed");
}

#[test]
fn a_finding_names_the_groups_and_the_command() {
    let (place, machine) = (tempfile::tempdir().unwrap(), machine(4));
    let case = TWO_GROUPS.case(place.path(), &machine, filter_for(&machine));
    let suspicions = (REMEDY.detect)(&case).unwrap();
    let finding = suspicions[0].finding(&case).unwrap();
    assert!(finding.prediction.gain > 0.1 && finding.prediction.low > 0.0, "{:?}", finding.prediction);
    assert!(suspicions[0].most_gain() >= finding.prediction.gain);
    assert_eq!(finding.apply.unwrap()[..4], ["nearmiss", "apply", "pair", "--table"]);
    assert!(finding.treatment.starts_with("On CPUs that share the caches from L1 on: "), "{}", finding.treatment);
    assert_eq!(finding.evidence.lines[0].label, "Tasks");
    let pairs = finding.evidence.lines.iter().find(|line| line.label == "Pairs").unwrap();
    assert_eq!(pairs.text, "12 pairs share well, 16 badly, and of 0 nothing is certain.");
}

#[test]
fn a_rehearsal_keeps_its_pairs_beside_the_run() {
    let (place, machine) = (tempfile::tempdir().unwrap(), machine(4));
    let case = Script { threads: 4, ..TWO_GROUPS }.case(place.path(), &machine, filter_for(&machine));
    (REMEDY.detect)(&case).unwrap()[0].rehearse(&case, &RehearsalRequest::default()).unwrap();
    let file = case.traced.as_ref().unwrap().run.file("pairs.json");
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(kept["schema"], "nearmiss/pairs/1");
    let orders: Vec<u64> =
        kept["tasks"].as_array().unwrap().iter().map(|task| task["order"].as_u64().unwrap()).collect();
    assert_eq!((orders, &kept["tasks"][1]["name"]), (vec![0, 1, 2, 3], &"thread 101".into()));
    let pairs = kept["pairs"].as_array().unwrap();
    assert_eq!((pairs.len(), pairs[0]["of_alone"].as_array().unwrap().len()), (12, 5));
    assert_eq!((&pairs[1]["task"], &pairs[1]["beside"]), (&1.into(), &0.into()));
}

#[test]
fn one_task_one_domain_and_a_filter_by_cpu_are_not_replayed() {
    let place = tempfile::tempdir().unwrap();
    let found = |name: &str, script: &Script, machine: &Machine, filter: Filter| {
        let place = place.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let case = script.case(&place, machine, filter);
        let suspicions = (REMEDY.detect)(&case).unwrap();
        suspicions.first().map(|suspicion| {
            suspicion.rehearse(&case, &RehearsalRequest::default()).map_err(|error: CaseError| error.to_string())
        })
    };
    let four = machine(4);
    assert!(found("two", &Script { threads: 2, ..TWO_GROUPS }, &four, filter_for(&four)).is_none());
    let two = machine(2);
    assert!(found("one domain", &TWO_GROUPS, &two, filter_for(&two)).is_none());
    // First levels of their own, so that the filter has several lines and went by CPU.
    let mut cores = four.clone();
    cores.topology = Topology { packages: 2, cores_per_package: 2, threads_per_core: 1, cores_per_cluster: 0 };
    cores.caches.iter_mut().filter(|cache| cache.level == 2).for_each(|cache| cache.shared_by = Sharing::Package);
    let by_cpu = filter_for(&cores);
    let refused = found("by CPU", &TWO_GROUPS, &cores, by_cpu).unwrap().unwrap_err();
    assert!(refused.contains("record the run again with `nearmiss trace --carry tasks`"), "{refused}");
    let by_task = found("by task", &TWO_GROUPS, &cores, Filter { by_task: true, ..by_cpu }).unwrap().unwrap();
    assert_eq!(by_task.subject, "tasks 100 102 104 106 | 101 103 105 107");
}
