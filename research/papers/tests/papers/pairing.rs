//! The fourth paper: the product's references and rates, the replica of the 2.6 scheduler, and all figures, pinned.
#![allow(clippy::unwrap_used)]

use nearmiss_papers::pacing::plan::Scale;
use nearmiss_papers::pairing::kernel::{Desk, Kernel, SLICE_TICKS, THREADS};
use nearmiss_papers::pairing::ours::Ours;
use nearmiss_papers::pairing::policy::{Bound, Policy, Standard};
use nearmiss_papers::pairing::product::{ThreadBlock, Writer};
use nearmiss_papers::pairing::rates::{Beside, Rate, Rates};
use nearmiss_papers::pairing::run::{Class, Counts, Daemons, Run};
use nearmiss_papers::pairing::study::{self, Extent, PRODUCT};
use nearmiss_papers::pairing::work::{Product, Size, mix};
use nearmiss_papers::pairing::{MACHINE, hand};
use nearmiss_papers::{machine, paper, text};
use std::collections::VecDeque;
use std::path::Path;

/// All tables, with few runs of each scheduler.
#[test]
fn the_pairing_papers_figures_are_these() {
    let record = paper("pairing").unwrap().run(None, Scale::Trial, Path::new(""), &|_, _| ()).unwrap();
    insta::assert_snapshot!(text::render(&record));
    let files: Vec<_> = record.pictures.iter().map(|p| p.file.as_str()).collect();
    assert_eq!(files, ["figure-5.svg", "figure-10.svg", "figure-14.svg"]);
    for picture in &record.pictures {
        assert!(picture.svg.starts_with("<svg") && picture.svg.ends_with("</svg>"), "{}", picture.file);
        assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{}", picture.file);
    }
}

#[test]
fn a_row_reads_all_of_b_s_block_once_and_does_all_its_instructions() {
    let mut writer = Writer::new(PRODUCT, 6);
    let part = ThreadBlock { inner: 2, column: 3, first_row: 7, phase: 100 };
    assert_eq!(writer.row(&part, 1), PRODUCT.multiplications() * 6);
    let bytes = |instruction: u64| -> u64 {
        let of = writer.records.iter().filter(|record| record.vaddr() / (192 << 20) == instruction);
        of.map(|record| u64::from(record.size())).sum()
    };
    assert_eq!(bytes(1), PRODUCT.block_bytes());
    // A has an element for each 16, as its lines come.
    assert!((22..=23).contains(&(bytes(0) / PRODUCT.element)), "{}", bytes(0));
    assert!(writer.records.iter().all(|record| record.vaddr() % 64 + u64::from(record.size()) <= 64));
}

#[test]
fn a_thread_misses_least_beside_its_group_and_always_beside_the_other() {
    let extent = Extent { runs: 0, placements: 1, rows: 2, mixes: 0, first_seed: 0 };
    let rates = study::load(extent, PRODUCT.element).rates(&machine(MACHINE).unwrap(), &|| ()).unwrap();
    let [alone, same, other] = [Beside::Nobody, Beside::Same, Beside::Other].map(|kind| rates.mean(kind));
    // Lines of the block: 350 rows of 22 or 23.
    assert!((7700.0..8100.0).contains(&other.misses), "{other:?}");
    assert!(same.misses < alone.misses && alone.misses < 0.7 * other.misses, "{same:?} {alone:?}");
    assert!(same.cycles < alone.cycles && alone.cycles < other.cycles);
}

/// Takes what the kernel picks, and records which task ran for how long.
#[derive(Default)]
struct Quiet {
    switches: usize,
}

impl Desk for Quiet {
    fn switching(&mut self, _: usize, _: [Option<usize>; THREADS]) {
        self.switches += 1;
    }
    fn next(&mut self, _: usize, picked: usize, _: Option<usize>, active: &VecDeque<usize>) -> usize {
        assert_eq!(active.front(), Some(&picked));
        picked
    }
    fn migrating(&mut self, _: usize, _: usize, _: &mut Vec<usize>) {}
}

fn lengths(kernel: &Kernel) -> Vec<usize> {
    (0..kernel.cpus()).map(|cpu| kernel.tasks_of(cpu).count()).collect()
}

#[test]
fn tasks_of_a_cpu_have_slices_in_turn() {
    let (mut kernel, mut desk) = (Kernel::new(4, 0), Quiet::default());
    (0..8).for_each(|task| kernel.place(task / 2));
    let mut ran = [0; 8];
    for _ in 0..1 + 4 * SLICE_TICKS {
        kernel.tick(&mut desk);
        (0..4).for_each(|cpu| ran[kernel.running(cpu).unwrap()] += 1);
    }
    assert_eq!(ran, [205, 204, 205, 204, 205, 204, 205, 204]);
    assert_eq!((kernel.schedules, desk.switches), (20, 20), "as the arrays change places, and never else");
}

#[test]
fn idle_cpus_pull_one_a_tick_and_busy_ones_what_they_saw_twice() {
    let (mut kernel, mut desk) = (Kernel::new(4, 150), Quiet::default());
    kernel.fork(1, 8, 90);
    kernel.tick(&mut desk);
    assert_eq!(lengths(&kernel), [1, 5, 1, 1], "each idle CPU one, from the end of the array");
    assert_eq!((kernel.cpu_of(7), kernel.cpu_of(6), kernel.cpu_of(5)), (0, 2, 3));
    (151..200).for_each(|_| kernel.tick(&mut desk));
    // At 200 ms CPU 0 pulls half of 5 − 1 from CPU 1, which looks for the first time and counts nothing yet; CPU 2
    // pulls half of 3 − 1, and CPU 3 half of 2 − 1, which is all that waits there.
    assert_eq!(lengths(&kernel), [3, 1, 2, 2]);
    (200..400).for_each(|_| kernel.tick(&mut desk));
    assert_eq!(lengths(&kernel).iter().sum::<usize>(), 8);
}

#[test]
fn half_of_one_task_is_all_that_can_move() {
    let (mut kernel, mut desk) = (Kernel::new(2, 150), Quiet::default());
    [0, 0, 0, 1, 1].into_iter().for_each(|cpu| kernel.place(cpu));
    (150..399).for_each(|_| kernel.tick(&mut desk));
    assert_eq!(lengths(&kernel), [3, 2], "seen once");
    kernel.tick(&mut desk);
    assert_eq!(lengths(&kernel), [1, 4], "the kernel counts down before it looks");
}

/// For any wishes, every task stays on one queue, and the running one is on its CPU's.
#[test]
fn no_task_is_lost_or_doubled() {
    let (mut kernel, mut desk) = (Kernel::new(4, 0), Quiet::default());
    kernel.fork(2, 9, 70);
    let mut left = 9;
    for now in 0..20_000 {
        let draw = |what: u64, below: u64| (mix(&[now, what]) % below) as usize;
        match draw(0, 40) {
            0 => kernel.swap(draw(1, left), draw(2, left), &mut desk),
            1 => kernel.migrate(draw(1, left), draw(2, 4), &mut desk),
            2 => kernel.wake_daemon(draw(1, 4), draw(2, 300) as u32),
            3 if now % 1000 == 0 => {
                left -= 1;
                kernel.end(left as usize, &mut desk);
            }
            _ => kernel.tick(&mut desk),
        }
        let mut all: Vec<usize> = (0..4).flat_map(|cpu| kernel.tasks_of(cpu).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..left as usize).collect::<Vec<_>>(), "tick {now}");
        for cpu in 0..4 {
            assert!(kernel.tasks_of(cpu).all(|task| kernel.cpu_of(task) == cpu), "tick {now}");
            assert!(kernel.running(cpu).is_none_or(|task| kernel.cpu_of(task) == cpu), "tick {now}");
        }
    }
}

/// Rates that need no model: beside the other group a row takes twice as long.
fn plain_rates() -> Rates {
    let rate = |cycles: f64, misses: f64| vec![Rate { cycles, misses }];
    let rates = [rate(1e6, 10.0), rate(1e6, 10.0), rate(2e6, 1000.0)];
    Rates { rates, cold: Rate::default(), instructions: 1e6 }
}

const SHORT: Size = Size { threads: 8, rows_of_block: 350, blocks: 400 };

fn run(policy: &mut dyn Policy, daemons: Daemons, seed: u64) -> Counts {
    let (rates, machine) = (plain_rates(), machine(MACHINE).unwrap());
    let work = Product::new(&rates, &machine, SHORT, seed);
    Run { work, policy, cpus: 4, daemons, seed }.run(1_000_000)
}

const NO_DAEMONS: Daemons = Daemons { every: u64::MAX, longest: 1 };

#[test]
fn placements_share_as_by_hand() {
    // Threads in the order of the cores' places: even ones are one group.
    let cases = [
        ([0, 1, 0, 1, 0, 1, 0, 1], Class::Apart, false),
        ([0, 1, 0, 1, 0, 1, 1, 0], Class::One, false),
        ([0, 0, 1, 1, 0, 0, 1, 1], Class::Half, true),
    ];
    for (cores, class, apart) in cases {
        let counts = run(&mut Bound { cores: cores.to_vec() }, NO_DAEMONS, 3);
        let by_hand = hand::sharing(class, apart);
        assert!((counts.sharing() - by_hand).abs() < 0.02, "{class:?}: {} against {by_hand}", counts.sharing());
        assert!(counts.classes[class as usize] * 100 > counts.ticks * 98, "{class:?}: {:?}", counts.classes);
        // Rows take one tick's share alone or beside their own, and twice that beside the other group.
        let rows = (SHORT.rows_of_block * SHORT.blocks * 2) as f64;
        let ticks = rows / 4.0 * 1e6 / 2.8e6 / (by_hand + (1.0 - by_hand) / 2.0);
        assert!((counts.ticks as f64 / ticks - 1.0).abs() < 0.02, "{class:?}: {} against {ticks}", counts.ticks);
    }
}

#[test]
fn ours_reaches_the_optimum_from_wherever_it_starts_and_stays_there() {
    let daemons = Daemons { every: 20_000, longest: 800 };
    for seed in 0..12 {
        let counts = run(&mut Ours::new(8), daemons, seed);
        assert!(counts.changes[0] == [0; 3], "seed {seed} leaves it: {:?}", counts.changes);
        assert!(counts.changed() < 5, "seed {seed}: {:?}", counts.changes);
        assert!(counts.classes[Class::Apart as usize] > 0, "seed {seed}: {:?}", counts.classes);
        let wrong = counts.judged[0][0] + counts.judged[1][1];
        assert!(wrong * 50 <= counts.judged.iter().flatten().sum::<u64>(), "seed {seed}: {:?}", counts.judged);
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let daemons = Daemons { every: 5_000, longest: 800 };
    let runs: Vec<Counts> = [7, 7, 8].map(|seed| run(&mut Standard, daemons, seed)).into();
    assert!(runs[0] == runs[1] && runs[0] != runs[2]);
}
