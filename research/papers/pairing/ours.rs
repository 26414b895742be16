//! Our method: a graded table in which what is not certain is unknown, the optimum by it, and moves only where they gain.

use super::kernel::{THREADS, TICKS_PER_SECOND};
use super::policy::{Policy, Sample, Wish};
use nearmiss_pairing::optimum::balanced;
use nearmiss_pairing::table::{LEAST_SAMPLES, USUAL_CONFIDENCE};
use nearmiss_pairing::{Affinity, Bitmaps, Costs, PairTable, Planner};
use std::collections::VecDeque;

/// A plan a second at most.
const PERIOD_TICKS: u64 = TICKS_PER_SECOND;
/// Longest period: after a plan without moves the next one waits twice as long, up to this.
const LONGEST_PERIOD_TICKS: u64 = 16 * PERIOD_TICKS;
/// So long each order of a core's tasks is looked at, while some of its pairs are not known.
const LOOK_TICKS: u64 = 2 * PERIOD_TICKS;
/// So often one pair is looked for.
const MOST_LOOKS: u8 = 3;
/// Counters of less time show the caches' filling, not the pair.
const LEAST_TOGETHER_TICKS: u64 = 20;
/// Tasks with less CPU time are left out, as in the paper.
const LEAST_TICKS: u64 = 3 * TICKS_PER_SECOND;
/// Moves must save this part of the present cost.
const LEAST_GAIN: f64 = 0.02;

/// State of our method.
#[derive(Clone, Debug)]
pub struct Ours {
    /// Cycles an instruction of each task beside each other one.
    table: PairTable,
    bitmaps: Bitmaps,
    /// Tasks that have not ended, ascending.
    live: Vec<usize>,
    /// Whether it was seen for long enough, by task.
    known: Vec<bool>,
    /// How often a pair was to be seen for the first time, by the larger number and the smaller.
    looked: Vec<Vec<u8>>,
    /// When the next plan is due, and the time to the one behind it.
    due: u64,
    period: u64,
}

impl Ours {
    /// Creates the policy for so many tasks.
    pub fn new(tasks: usize) -> Self {
        Ours {
            table: PairTable::new(tasks),
            bitmaps: Bitmaps::default(),
            live: (0..tasks).collect(),
            known: vec![false; tasks],
            looked: (0..tasks).map(|task| vec![0; task]).collect(),
            due: PERIOD_TICKS,
            period: PERIOD_TICKS,
        }
    }

    fn all_are_known(&self) -> bool {
        self.live.iter().all(|task| self.known[*task])
    }

    fn is_seen(&self, a: usize, b: usize) -> bool {
        self.table.beside(a, b).count().min(self.table.beside(b, a).count()) >= LEAST_SAMPLES
    }

    /// Mean of what was seen of a task, whoever was beside it.
    fn usual(&self, task: usize) -> Option<f64> {
        let seen: Vec<f64> = self.live.iter().filter_map(|other| self.table.beside(task, *other).mean()).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }

    /// Costs of the tasks that live. A pair that was not seen costs what both cost on average; none while one of them was
    /// not seen at all.
    fn costs(&self) -> Option<Costs> {
        let usual: Option<Vec<f64>> = self.live.iter().map(|task| self.usual(*task)).collect();
        let usual = usual?;
        let mut costs = Costs::new(self.live.len());
        for (i, &a) in self.live.iter().enumerate() {
            costs.set_alone(i, usual[i]);
            for (j, &b) in self.live.iter().enumerate().skip(i + 1) {
                let one = self.table.beside(a, b).mean().unwrap_or(usual[i]);
                let two = self.table.beside(b, a).mean().unwrap_or(usual[j]);
                costs.set(i, j, one + two);
            }
        }
        Some(costs)
    }

    /// Makes two tasks of a core run side by side that were never seen to. On one hardware thread, one of them takes the
    /// place of the task that ran beside the other: slices may begin and end together. On both, it joins the other one
    /// first. Costs nothing but a switch.
    fn look(&mut self, core: &[Vec<usize>; THREADS]) -> Option<Wish> {
        let thread_of = |task: usize| usize::from(core[1].contains(&task));
        let tasks: Vec<usize> = core.iter().flatten().copied().collect();
        let pairs = tasks.iter().flat_map(|a| tasks.iter().filter(move |b| *b < a).map(move |b| (*a, *b)));
        let unseen = pairs.filter(|&(a, b)| !self.is_seen(a, b) && self.looked[a][b] < MOST_LOOKS);
        let (a, b) = unseen.min_by_key(|&(a, b)| (thread_of(a) != thread_of(b), a, b))?;
        self.looked[a][b] += 1;
        let together = thread_of(a) == thread_of(b);
        let side = if together { 1 - thread_of(a) } else { thread_of(b) };
        let beside = |task: &&usize| self.table.beside(b, **task).count();
        let partner = core[side].iter().filter(|task| **task != b).max_by_key(beside)?;
        Some(Wish::Swap(a, *partner))
    }

    /// Returns the moves that lead to the optimum.
    fn plan(&self, cores: &[[Vec<usize>; THREADS]]) -> Vec<Wish> {
        let Some(costs) = self.costs() else { return Vec::new() };
        let core_of = |task: &usize| cores.iter().position(|queues| queues.iter().any(|queue| queue.contains(task)));
        let present: Vec<Option<usize>> = self.live.iter().map(core_of).collect();
        let lengths: Vec<usize> = cores.iter().map(|queues| queues.iter().map(Vec::len).sum()).collect();
        let mut sizes = balanced(self.live.len(), cores.len());
        let mut descending = lengths.clone();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        // If one core has one more, it is the one that has it now.
        if descending == sizes {
            sizes = lengths;
        }
        let plan = Planner { least_gain: LEAST_GAIN }.plan(&costs, &present, &sizes);
        let moves = plan.into_iter().flat_map(|plan| plan.moves);
        wishes(moves.map(|m| (self.live[m.task], m.from, m.to)).collect())
    }
}

/// Moves against each other are swaps.
fn wishes(mut moves: Vec<(usize, Option<usize>, usize)>) -> Vec<Wish> {
    let mut wishes = Vec::new();
    while let Some((task, from, to)) = moves.pop() {
        let against = moves.iter().position(|(_, other, its)| *other == Some(to) && Some(*its) == from);
        wishes.push(match against {
            Some(at) => Wish::Swap(task, moves.remove(at).0),
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
        let judged = self.table.judge(a, b, self.table.mean()?, USUAL_CONFIDENCE).affinity;
        self.bitmaps.set(a, b, judged);
        Some(judged)
    }

    fn next(&mut self, _: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize {
        let runnable = active.iter().filter(|task| **task < 64).fold(0, |word, task| word | 1 << task);
        self.bitmaps.next(picked, beside, runnable)
    }

    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>) {
        // Once all are known, each has its core.
        if from != to && self.all_are_known() {
            tasks.clear();
        }
    }

    fn ended(&mut self, task: usize, now: u64) {
        self.live.retain(|other| *other != task);
        (self.due, self.period) = (now + 1, PERIOD_TICKS);
    }

    fn tick(&mut self, now: u64, cores: &dyn Fn() -> Vec<[Vec<usize>; THREADS]>) -> Vec<Wish> {
        if now < self.due || self.live.is_empty() || !self.all_are_known() {
            return Vec::new();
        }
        let cores = cores();
        let looks: Vec<Wish> = cores.iter().filter_map(|core| self.look(core)).collect();
        let wishes = if looks.is_empty() { self.plan(&cores) } else { looks.clone() };
        self.period = if wishes.is_empty() { (self.period * 2).min(LONGEST_PERIOD_TICKS) } else { PERIOD_TICKS };
        self.due = now + if looks.is_empty() { self.period } else { LOOK_TICKS };
        wishes
    }
}
