//! A trace taken apart by task and put together again: which tasks run side by side, and that the replay is the place
//! policy's.
#![allow(clippy::unwrap_used)]

use crate::support::*;
use nearmiss_machine::model::{Fast, Hand, Model, ModelOptions, ModelTotals, Parted, Parting, Replay, TaskWindows};
use nearmiss_machine::observer::{Effective, NullObserver, Observer, Outcome};
use nearmiss_machine::twin::Slow;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::policy::{Order, PlacePolicy, Placed, Policy};
use nearmiss_record::reference::{Control, ControlKind, Record};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

fn switch(pid: u32) -> Vec<Record> {
    let mut records = vec![Record::default(); 6];
    records[0] = Record::control(ControlKind::Switch, u64::from(pid) << 12, 0, u64::from(pid) | 1 << 32);
    records
}

/// A task's turn on a recorded CPU: loads of these lines, an instruction each.
fn turn(pid: u32, lines: &[u64]) -> Vec<Record> {
    [switch(pid), lines.iter().map(|line| load(line * 64).with_instructions(1)).collect()].concat()
}

fn header(seq: usize, vcpu: u32, records: &[Record]) -> ChunkHeader {
    let (seq, records) = (seq as u64, records.len() as u32);
    ChunkHeader { seq, slice: seq, vcpu, records, ..ChunkHeader::default() }
}

fn parted(wanted: &[(u32, std::ops::Range<u64>)], window: u64, chunks: &[(u32, Vec<Record>)]) -> Parted {
    let wanted = wanted.iter().map(|(pid, windows)| TaskWindows { pid: *pid, windows: windows.clone() }).collect();
    let mut parting = Parting::new(wanted, window, 2).unwrap();
    for (seq, (vcpu, records)) in chunks.iter().enumerate() {
        parting.chunk(&header(seq, *vcpu, records), records).unwrap();
    }
    parting.finish()
}

/// CPU and line of every reference, CPU and task of every switch, in their order.
#[derive(Default)]
struct CpuLines(Vec<(u32, u64)>);

impl Observer for CpuLines {
    fn control(&mut self, cpu: u32, control: &Control<'_>) {
        if let Control::Switch { pid, .. } = control {
            self.0.push((cpu, u64::from(*pid) + 1000));
        }
    }
    fn hit(&mut self, reference: &Effective) {
        self.0.push((reference.cpu, reference.vaddr / 64));
    }
    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.0.push((reference.cpu, reference.vaddr / 64));
    }
    fn instructions(&mut self, _: u32, _: u64) {}
}

fn lines(visited: &[(u32, u64)]) -> Vec<(u32, u64)> {
    visited.iter().copied().filter(|(_, what)| *what < 1000).collect()
}

#[test]
fn hands_give_each_cpu_its_task_s_next_windows() {
    // One CPU executed both tasks, one after the other; each has three windows of two instructions.
    let chunks = [(0, turn(1, &[1, 2, 3, 4, 5, 6])), (0, turn(2, &[11, 12, 13, 14, 15, 16]))];
    let parted = parted(&[(1, 0..3), (2, 0..3)], 2, &chunks);
    assert_eq!((parted.windows(0), parted.windows(1), parted.windows(2)), (3, 3, 0));
    assert_eq!((parted.executed_on(0), parted.executed_on(1)), (&[6, 0][..], &[6, 0][..]));
    let hand = |tasks: [Option<usize>; 2], windows| Hand { tasks: tasks.to_vec(), windows };
    let hands = [hand([Some(0), Some(1)], 1), hand([Some(1), None], 1), hand([None, Some(0)], 9)];
    let visited =
        parted.replay::<Fast, _>(&two_levels(2, 1), &options(2), &hands, CpuLines::default()).unwrap().observer.0;
    // All miss and wait equally long, so that the CPUs take turns.
    let together = [(0, 1), (1, 11), (0, 2), (1, 12)];
    assert_eq!(lines(&visited), [&together[..], &[(0, 13), (0, 14)], &[(1, 3), (1, 4), (1, 5), (1, 6)]].concat());
    let switched: Vec<_> = visited.iter().copied().filter(|(_, what)| *what > 1000).collect();
    assert_eq!(switched.first(), Some(&(0, 1001)));
    assert!(switched.contains(&(0, 1002)) && switched.contains(&(1, 1001)), "{switched:?}");
}

#[test]
fn only_the_windows_that_are_wanted_are_kept() {
    let chunks = [(1, turn(1, &[1, 2, 3, 4, 5, 6, 7])), (0, turn(3, &[50, 51]))];
    let parted = parted(&[(1, 1..3), (2, 0..9)], 2, &chunks);
    assert_eq!((parted.windows(0), parted.windows(1)), (2, 0));
    assert_eq!(parted.executed_on(0), [0, 7]);
    let hands = [Hand { tasks: vec![Some(1), Some(0)], windows: 5 }];
    let visited =
        parted.replay::<Fast, _>(&two_levels(2, 1), &options(2), &hands, CpuLines::default()).unwrap().observer.0;
    assert_eq!(visited, [(1, 1001), (1, 3), (1, 4), (1, 5), (1, 6)], "the switch to the task is reported all the same");
}

/// Hits and misses by cache; stalls by CPU.
fn counts(totals: &ModelTotals) -> (Vec<(u64, u64)>, Vec<u64>) {
    let caches = totals.caches.iter().map(|cache| (cache.hits, cache.accesses)).collect();
    (caches, totals.cpus.iter().map(|cpu| cpu.stall_cycles).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// One task a CPU from begin to end equals the place policy, regardless of which CPU recorded what.
    #[test]
    fn one_hand_is_the_place_policy_s_replay(
        turns in prop::collection::vec((0..2u32, 0..2u32, prop::collection::vec(0..200u64, 0..40)), 1..12),
        window in 1..20u64,
        threads in 1..=2u32,
    ) {
        let mut executed = [0u64; 2];
        turns.iter().for_each(|(_, task, lines)| executed[*task as usize] += lines.len() as u64);
        // Both have so many windows, whole ones.
        let wanted = executed.map(|all| (window - all % window) % window);
        let longest = executed.iter().zip(wanted).map(|(all, more)| all + more).max().unwrap().max(window);
        let fill = |task: usize| (0, task as u32, vec![7; (longest - executed[task]) as usize]);
        let all = turns.iter().cloned().chain([fill(0), fill(1)]);
        let chunks: Vec<(u32, Vec<Record>)> = all.map(|(vcpu, task, lines)| (vcpu, turn(task + 1, &lines))).collect();
        let machine = two_levels(2 / threads, threads);
        let options = ModelOptions { order: Order::Modelled, ..options(2) };
        let tasks = vec![Placed { pid: 1, cpu: 0 }, Placed { pid: 2, cpu: 1 }];
        let place = PlacePolicy::Tasks { tasks, window_instructions: window };
        let mut model = Model::new(&machine, &Policy { place, ..Policy::default() }, &options, NullObserver).unwrap();
        for (seq, (vcpu, records)) in chunks.iter().enumerate() {
            model.chunk(&header(seq, *vcpu, records), records).unwrap();
        }
        let placed = model.finish().unwrap().0;
        // A place policy gives all CPUs as many windows, so hands of one.
        let hands = vec![Hand { tasks: vec![Some(0), Some(1)], windows: 1 }; (longest / window) as usize];
        let parted = parted(&[(1, 0..u64::MAX), (2, 0..u64::MAX)], window, &chunks);
        let replayed = parted.replay::<Fast, _>(&machine, &options, &hands, NullObserver).unwrap().totals;
        prop_assert_eq!(counts(&replayed), counts(&placed));
        prop_assert_eq!(replayed.sum().instructions, placed.sum().instructions);
    }
}

/// Cycles of each CPU so far.
struct Clocks(Rc<RefCell<[u64; 2]>>);

impl Observer for Clocks {
    fn control(&mut self, _: u32, _: &Control<'_>) {}
    fn hit(&mut self, _: &Effective) {}
    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.0.borrow_mut()[reference.cpu as usize] += u64::from(outcome.stall_cycles);
    }
    fn instructions(&mut self, cpu: u32, instructions: u64) {
        self.0.borrow_mut()[cpu as usize] += instructions;
    }
}

/// Cycles of two tasks on two hardware threads, on the slow twin: the one behind executes its next reference. A task
/// that is done begins anew, uncounted, until the other one is done too.
fn slowly(tasks: [&[u64]; 2]) -> [u64; 2] {
    let clocks = Rc::new(RefCell::new([0; 2]));
    let observer = Clocks(Rc::clone(&clocks));
    let mut replay = Replay::<Slow, _>::new(&two_levels(1, 2), &Policy::default(), &options(2), observer).unwrap();
    let (mut next, mut took) = ([0; 2], [0; 2]);
    for seq in 0.. {
        let now = *clocks.borrow();
        for cpu in 0..2 {
            took[cpu] = if next[cpu] == tasks[cpu].len() { now[cpu] } else { took[cpu] };
        }
        let cpu = usize::from(now[1] < now[0]);
        if (0..2).all(|cpu| next[cpu] >= tasks[cpu].len()) {
            break;
        }
        let record = [load(tasks[cpu][next[cpu] % tasks[cpu].len()] * 64).with_instructions(1)];
        replay.chunk(&header(seq, cpu as u32, &record), &record).unwrap();
        next[cpu] += 1;
    }
    replay.finish().unwrap();
    took
}

/// A task that reads three quarters of the second level in an order of its own, over and over.
fn walk(block: u64, seed: u64) -> Vec<u64> {
    (0..3000u64).map(|n| block * 1000 + (n * n * 7 + n * seed + seed) % 53 % 48).collect()
}

#[test]
fn a_grouping_gains_as_much_as_in_a_slow_interleaver() {
    let walks = [walk(0, 1), walk(0, 2), walk(1, 3), walk(1, 4)];
    let chunks: Vec<_> = walks.iter().zip(1..).map(|(walk, pid)| (0, turn(pid, walk))).collect();
    let parted = parted(&[1, 2, 3, 4].map(|pid| (pid, 0..100)), 500, &chunks);
    let quickly = |a, b| {
        let hands = [Hand { tasks: vec![Some(a), Some(b)], windows: 6 }];
        parted.replay::<Fast, _>(&two_levels(1, 2), &options(2), &hands, NullObserver).unwrap().totals.sum().cycles
    };
    let gain = |cycles: &dyn Fn(usize, usize) -> u64| {
        1.0 - (cycles(0, 1) + cycles(2, 3)) as f64 / (cycles(0, 2) + cycles(1, 3)) as f64
    };
    let slow = gain(&|a, b| slowly([&walks[a], &walks[b]]).iter().sum());
    let quick = gain(&|a, b| quickly(a, b));
    assert!(quick > 0.2 && (quick - slow).abs() < 0.1, "{quick}, slowly {slow}");
}

#[test]
fn a_fast_task_runs_beside_the_slow_one_as_often_as_in_equal_time() {
    // Half of the second level in an order of its own, and lines that are never used again.
    let tasks = [walk(0, 1).iter().map(|line| line % 1000 % 24).collect(), (0..3000).map(|n| 10_000 + n).collect()];
    let tasks: [Vec<u64>; 2] = tasks;
    let chunks: Vec<_> = tasks.iter().zip(1..).map(|(lines, pid)| (0, turn(pid, lines))).collect();
    let parted = parted(&[1, 2].map(|pid| (pid, 0..100)), 50, &chunks);
    let hands = [Hand { tasks: vec![Some(0), Some(1)], windows: 60 }];
    let replayed = parted.replay::<Fast, _>(&two_levels(1, 2), &options(2), &hands, NullObserver).unwrap();
    let slow = slowly([&tasks[0], &tasks[1]]);
    for (quick, slow) in replayed.cycles.iter().zip(slow) {
        assert!((*quick as f64 / slow as f64 - 1.0).abs() < 0.1, "{:?}, slowly {slow:?}", replayed.cycles);
    }
    let executed: Vec<u64> = replayed.totals.cpus.iter().map(|cpu| cpu.instructions).collect();
    assert!(executed[1] == 3000 && executed[0] > 2 * executed[1], "{executed:?}");
}
