//! Table (a): the walk among 1,024 processes on three cache sizes (P0, section 4.2, figures 6 and 7).

use super::clock::Counts;
use super::figures::{self, COLORS, SIZES};
use super::memory::Memory;
use super::queue::RunQueue;
use super::server::Server;
use super::web::{Sleep, Web};
use super::{AWAY_MICROS, Kernel, SEED, WEB_WORK, hand, way_bytes};
use crate::parallel::simulate_all;
use crate::record::{Row, Shape, Table, Theirs, Unit};
use crate::{PaperError, machine};
use nearmiss_record::machine::Replacement;

/// Processes of the experiment.
pub const PROCESSES: usize = 1024;
/// The first machine's.
const CPUS: usize = 4;
/// Counted on each CPU, a placement.
const SLICES: u64 = 96;
/// Placements of the stacks.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Placements of the check by hand.
const HAND_SEEDS: u64 = 5;

/// Standard and colored on one size.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Second level, KB.
    pub kilobytes: u64,
    /// 2.4 as it was.
    pub standard: Counts,
    /// In 32 colors.
    pub colored: Counts,
    /// Miss ratio of the walk in 32 colors where nothing is displaced between walks.
    pub undisturbed_percent: f64,
}

/// A WebBench-like run on the first machine.
pub fn web(processes: usize, kernel: Kernel) -> Web {
    Web { processes, sleep: Sleep::Micros(AWAY_MICROS), kernel, cpus: CPUS, work: WEB_WORK, seed: SEED, slices: 128 }
}

/// How many simulations [`pairs`] makes.
pub const PARTS: usize = 2 * SIZES.len() * SEEDS.len();

/// Simulates all; counts of the placements are added up.
pub fn pairs(done: &(dyn Fn() + Sync)) -> Result<Vec<Pair>, PaperError> {
    let mut inputs = Vec::new();
    for (_, name) in SIZES {
        for kernel in [Kernel::Standard, Kernel::Colored(COLORS)] {
            inputs.extend(SEEDS.map(|seed| (name, kernel, seed)));
        }
    }
    let counts = simulate_all(&inputs, done, |&(name, kernel, seed)| {
        Web { seed, slices: SLICES, ..web(PROCESSES, kernel) }.run(&machine(name)?)
    })?;
    let mut pairs = Vec::new();
    for ((kilobytes, name), both) in SIZES.into_iter().zip(counts.chunks(2 * SEEDS.len())) {
        let (standard, colored) = both.split_at(SEEDS.len());
        let sum = |counts: &[Counts]| counts.iter().fold(Counts::default(), |sum, c| sum.plus(c));
        let undisturbed_percent = undisturbed(name)?;
        pairs.push(Pair { kilobytes, standard: sum(standard), colored: sum(colored), undisturbed_percent });
    }
    Ok(pairs)
}

/// Stacks anywhere, true LRU, nothing between two walks of one CPU: mean of some placements.
pub fn undisturbed(name: &str) -> Result<f64, PaperError> {
    let mut machine = machine(name)?;
    machine.caches.iter_mut().for_each(|c| c.replacement = Replacement::Lru);
    let mut sum = 0.0;
    for seed in 1..=HAND_SEEDS {
        let stacks = Memory::new(seed).stacks(PROCESSES, 0);
        let mut server = Server::new(&machine, 1)?;
        let mut queue = RunQueue::new(Kernel::Colored(COLORS), &stacks, way_bytes(&machine)?, 1)?;
        for task in 0..PROCESSES {
            queue.place(task, &mut server)?;
        }
        let mut running = None;
        let mut share = 0.0;
        for _ in 0..3 {
            let scheduled = queue.schedule(0, running, false, &mut server)?;
            running = scheduled.next;
            share = super::percentage(scheduled.walk.l2_misses, scheduled.walk.l2_reads);
        }
        sum += share;
    }
    Ok(sum / HAND_SEEDS as f64)
}

impl Pair {
    /// Miss ratios of the walk, standard and colored.
    pub fn miss_percent(&self) -> (f64, f64) {
        let share = |c: &Counts| super::percentage(c.walks.l2_misses, c.walks.l2_reads);
        (share(&self.standard), share(&self.colored))
    }

    /// Change of a count a request.
    pub fn change_percent(&self, count: impl Fn(&Counts) -> u64) -> f64 {
        change(per_slice(&self.standard, &count), per_slice(&self.colored, &count))
    }

    /// Change of requests a second.
    pub fn requests_percent(&self) -> f64 {
        change(rate(&self.standard), rate(&self.colored))
    }
}

/// A count for each slice, of which a request has always as many.
pub fn per_slice(counts: &Counts, count: &impl Fn(&Counts) -> u64) -> f64 {
    count(counts) as f64 / counts.slices as f64
}

/// Slices of work a cycle: in proportion to requests a second.
pub fn rate(counts: &Counts) -> f64 {
    counts.slices as f64 / counts.elapsed_cycles() as f64
}

/// From `before` to `after`, in percent.
pub fn change(before: f64, after: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// Returns the table of the paper's figures and ours.
pub fn table(pairs: &[Pair]) -> Table {
    let mut rows = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let of = format!("{} KB", super::grouped(pair.kilobytes));
        let row = |what: &str, unit, paper, ours| Row::new(of.clone(), what, unit, paper, ours);
        let number = |figure: Option<f64>, words: &str| figure.map_or(Theirs::Words(words.to_owned()), Theirs::Figure);
        let (standard, colored) = pair.miss_percent();
        let last = i + 1 == pairs.len();
        let fit = |row: Row, used: bool| if used { row.fitted() } else { row };
        rows.push(row(
            "L2 miss ratio in the walk, standard",
            Unit::Percent,
            Theirs::Figure(figures::STANDARD_MISS_PERCENT),
            standard,
        ));
        let theirs = Theirs::Figure(figures::COLORED_MISS_PERCENT[i]);
        rows.push(row("L2 miss ratio in the walk, 32 colors", Unit::Percent, theirs, colored).fitted());
        let change = pair.change_percent(|c| c.all.colored);
        let theirs = number(figures::COLORED_LINES_CHANGE_PERCENT[i], "slightly more");
        rows.push(fit(row("bus transactions, colored lines", Unit::ChangePercent, theirs, change), last));
        let change = pair.change_percent(|c| c.all.other);
        rows.push(row("bus transactions, other lines", Unit::ChangePercent, Theirs::None, change));
        let theirs = number(figures::REQUESTS_CHANGE_PERCENT[i], "slightly more");
        rows.push(fit(row("web requests/s", Unit::ChangePercent, theirs, pair.requests_percent()), last));
        let by_hand = Theirs::Figure(hand::cyclic_walk_miss_percent(PROCESSES as u64, pair.kilobytes, COLORS));
        let what = "nothing displaced, LRU: by hand | modelled";
        rows.push(row(what, Unit::Percent, by_hand, pair.undisturbed_percent));
    }
    Table {
        name: "a".to_owned(),
        title: "1,024 httpd on 4 Pentium Pro: the walk of the run queue, standard and 32 colors".to_owned(),
        source: "section 4.2, figures 6 and 7".to_owned(),
        shapes: shapes(pairs),
        known: None,
        notes: Vec::new(),
        rows,
        grid: None,
    }
}

fn shapes(pairs: &[Pair]) -> Vec<Shape> {
    let list = |value: &dyn Fn(&Pair) -> f64, unit| {
        pairs.iter().map(|p| crate::text::figure(value(p), unit)).collect::<Vec<_>>().join(", ")
    };
    let falls = |value: &dyn Fn(&Pair) -> f64| pairs.windows(2).all(|p| value(&p[1]) < value(&p[0]));
    let rises = |value: &dyn Fn(&Pair) -> f64| pairs.windows(2).all(|p| value(&p[1]) > value(&p[0]));
    let standard = |p: &Pair| p.miss_percent().0;
    let colored = |p: &Pair| p.miss_percent().1;
    let lines = |p: &Pair| p.change_percent(|c| c.all.colored);
    let smallest = pairs.first().map_or(0.0, lines);
    vec![
        Shape {
            claim: "standard: nearly every visit misses, at every size".to_owned(),
            holds: pairs.iter().all(|p| standard(p) > 95.0),
            ours: list(&standard, Unit::Percent),
        },
        Shape {
            claim: "colored: the larger the cache, the fewer misses".to_owned(),
            holds: falls(&colored),
            ours: list(&colored, Unit::Percent),
        },
        Shape {
            claim: "transactions on colored lines fall at 512 and 1,024 KB, more at the latter".to_owned(),
            holds: falls(&lines) && pairs.iter().skip(1).all(|p| lines(p) < -20.0),
            ours: list(&lines, Unit::ChangePercent),
        },
        Shape {
            claim: "at 256 KB they rise slightly: lines that hit before are displaced".to_owned(),
            holds: (0.0..10.0).contains(&smallest),
            ours: crate::text::figure(smallest, Unit::ChangePercent),
        },
        Shape {
            claim: "the gain in requests/s grows with the cache: slight, large, larger".to_owned(),
            holds: rises(&Pair::requests_percent) && pairs.first().is_some_and(|p| p.requests_percent().abs() < 5.0),
            ours: list(&Pair::requests_percent, Unit::ChangePercent),
        },
    ]
}
