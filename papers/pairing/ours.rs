//! Our method: a graded table in which what is not certain is unknown, the optimum by it, and moves only where they gain.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::policy::{Policy, Sample, Wish};
use nearmiss_pairing::optimum::balanced;
use nearmiss_pairing::table::USUAL_CONFIDENCE;
use nearmiss_pairing::{Affinity, Bitmaps, Costs, PairTable, Planner};
use std::collections::VecDeque;

/// A plan a second.
const PERIOD_TICKS: u64 = TICKS_PER_SECOND;
/// So long each order of a core's tasks is looked at, while some of its pairs are not known.
const LOOK_TICKS: u64 = 2 * PERIOD_TICKS;
/// Counters of less time tell of the caches' filling, not of the pair.
const LEAST_TOGETHER_TICKS: u64 = 20;
/// Tasks with less CPU time are left out, as in the paper.
const LEAST_TICKS: u64 = 3 * TICKS_PER_SECOND;
/// Moves must save this part of the present cost.
const LEAST_GAIN: f64 = 0.02;
/// A pair was seen well after so many samples.
const SEEN: u32 = 3;

/// Its state.
#[derive(Clone, Debug)]
pub struct Ours {
    /// Cycles an instruction of each task beside each other one.
    table: PairTable,
    bitmaps: Bitmaps,
    tasks: usize,
    /// By task: seen for long enough.
    known: Vec<bool>,
}

impl Ours {
    /// Of so many tasks.
    pub fn new(tasks: usize) -> Self {
        Ours { table: PairTable::new(tasks), bitmaps: Bitmaps::default(), tasks, known: vec![false; tasks] }
    }

    fn is_seen(&self, a: usize, b: usize) -> bool {
        self.table.beside(a, b).count().min(self.table.beside(b, a).count()) >= SEEN
    }

    /// Mean of what was seen of a task, whoever was beside it.
    fn usual(&self, task: usize) -> Option<f64> {
        let seen: Vec<f64> = (0..self.tasks).filter_map(|other| self.table.beside(task, other).mean()).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }

    /// A pair that was not seen costs what either task costs on average; none while a task was not seen at all.
    fn costs(&self) -> Option<Costs> {
        let usual: Option<Vec<f64>> = (0..self.tasks).map(|task| self.usual(task)).collect();
        let usual = usual?;
        let mut costs = Costs::new(self.tasks);
        for (a, b) in self.table.pairs() {
            let of = |task: usize, other| self.table.beside(task, other).mean().unwrap_or(usual[task]);
            costs.set(a, b, of(a, b) + of(b, a));
        }
        usual.iter().enumerate().for_each(|(task, cost)| costs.set_alone(task, *cost));
        Some(costs)
    }

    /// Two tasks of one hardware thread that were never seen beside each other: one of them changes places with a task of
    /// the core's other hardware thread. Costs nothing but a switch.
    fn look(&self, core: &[Vec<usize>; THREADS]) -> Option<Wish> {
        let hidden = |queue: &[usize]| {
            let pairs = queue.iter().enumerate().flat_map(|(at, a)| queue[at + 1..].iter().map(move |b| (*a, *b)));
            pairs.filter(|(a, b)| !self.is_seen(*a, *b)).map(|(a, b)| a.max(b)).min()
        };
        let look = |queue: &[usize], other: &[usize]| Some(Wish::Swap(hidden(queue)?, *other.iter().min()?));
        look(&core[0], &core[1]).or_else(|| look(&core[1], &core[0]))
    }

    fn plan(&self, cores: &[[Vec<usize>; THREADS]]) -> Vec<Wish> {
        let Some(costs) = self.costs() else { return Vec::new() };
        let mut present = vec![None; self.tasks];
        let mut domains = Vec::new();
        for (core, queues) in cores.iter().enumerate() {
            domains.push(queues.iter().map(Vec::len).sum::<usize>());
            queues.iter().flatten().for_each(|task| present[*task] = Some(core));
        }
        let mut sizes = balanced(self.tasks, cores.len());
        // Of sizes that differ by one, the present ones.
        let mut present_sizes = domains.clone();
        present_sizes.sort_unstable_by(|a, b| b.cmp(a));
        if present_sizes == sizes {
            sizes = domains;
        }
        let Some(plan) = (Planner { least_gain: LEAST_GAIN }).plan(&costs, &present, &sizes) else { return Vec::new() };
        wishes(&plan.moves.iter().map(|m| (m.task, m.from, m.to)).collect::<Vec<_>>())
    }
}

/// Moves against each other are swaps.
fn wishes(moves: &[(usize, Option<usize>, usize)]) -> Vec<Wish> {
    let mut left = moves.to_vec();
    let mut wishes = Vec::new();
    while let Some((task, from, to)) = left.pop() {
        let against = left.iter().position(|(_, other_from, other_to)| *other_from == Some(to) && Some(*other_to) == from);
        wishes.push(match against {
            Some(at) => Wish::Swap(task, left.remove(at).0),
            None => Wish::Move(task, to),
        });
    }
    wishes
}

impl Policy for Ours {
    fn read(&mut self, sample: &Sample) -> Option<Affinity> {
        if sample.ticks < LEAST_TOGETHER_TICKS || sample.age.iter().any(|age| *age < LEAST_TICKS) {
            return None;
        }
        let [a, b] = sample.tasks;
        for (task, other, did) in [(a, b, sample.did[0]), (b, a, sample.did[1])] {
            self.table.add(task, other, did.cycles / did.instructions);
            self.known[task] = true;
        }
        let mean = self.table.mean()?;
        let judged = self.table.judge(a, b, mean, USUAL_CONFIDENCE).affinity;
        self.bitmaps.set(a, b, judged);
        Some(judged)
    }

    fn next(&mut self, _: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize {
        let runnable = active.iter().filter(|task| **task < 64).fold(0, |word, task| word | 1 << task);
        self.bitmaps.next(picked, beside, runnable)
    }

    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>) {
        // Once all are known, each has its core.
        if from != to && self.known.iter().all(|known| *known) {
            tasks.clear();
        }
    }

    fn tick(&mut self, now: u64, cores: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish> {
        if !now.is_multiple_of(PERIOD_TICKS) || !self.known.iter().all(|known| *known) {
            return Vec::new();
        }
        let cores = cores();
        let may_look = now.is_multiple_of(LOOK_TICKS);
        let looks: Vec<Wish> = cores.iter().filter_map(|core| self.look(core).filter(|_| may_look)).collect();
        if looks.is_empty() { self.plan(&cores) } else { looks }
    }
}
