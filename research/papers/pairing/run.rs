//! One run: a load on the simulated kernel under a policy, tick by tick, and what is counted on the way.

use super::kernel::{Desk, Kernel, SLICE_TICKS, THREADS};
use super::policy::{Policy, Sample, Wish};
use super::work::{Did, Work};
use crate::random::Random;
use nearmiss_pairing::Affinity;
use std::collections::VecDeque;

/// Placement of both groups' threads (figure 11), while each core has as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// (1): a group a core.
    Apart,
    /// (2): one thread of each group is with the other group.
    One,
    /// (3): half of each group on each core.
    Half,
}

/// Disturbance: daemons that wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemons {
    /// Mean ticks between two.
    pub every: u64,
    /// Most ticks of one; least is 1, all as probable.
    pub longest: u64,
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Ticks until the last task ended.
    pub ticks: u64,
    /// All that the tasks did.
    pub did: Did,
    /// Ticks in each [`Class`].
    pub classes: [u64; 3],
    /// Ticks of a core in class (3) with each group on a hardware thread of its own, and with both on both.
    pub halves: [u64; 2],
    /// Ticks of a core with two tasks that do not share, and with two that do.
    pub pairs: [u64; 2],
    /// Changes from class to class.
    pub changes: [[u64; 3]; 3],
    /// Moves of tasks from core to core.
    pub moves: u64,
    /// Judgements of pairs that do not share, and of those that do: high, low, unknown.
    pub judged: [[u64; 3]; 2],
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// Ticks at which each task ended.
    pub ended: Vec<u64>,
}

impl Counts {
    /// Share of the time in pairs that share.
    pub fn sharing(&self) -> f64 {
        self.pairs[1] as f64 / (self.pairs[0] + self.pairs[1]).max(1) as f64
    }

    /// Changes of class.
    pub fn changed(&self) -> u64 {
        self.changes.iter().flatten().sum()
    }
}

/// Counters, and the policy that reads them.
struct Watch<'a, W> {
    policy: &'a mut dyn Policy,
    work: &'a W,
    counts: &'a mut Counts,
    /// Work since a task was switched there, and for how many ticks, by core.
    since: &'a mut [([Did; THREADS], u64)],
    ages: &'a [u64],
}

impl<W: Work> Desk for Watch<'_, W> {
    fn switching(&mut self, core: usize, running: [Option<usize>; THREADS]) {
        let (did, ticks) = std::mem::take(&mut self.since[core]);
        let ([Some(a), Some(b)], true) = (running, ticks > 0) else { return };
        let sample = Sample { core, tasks: [a, b], did, ticks, age: [self.ages[a], self.ages[b]] };
        let (judged, shares) = (self.policy.read(&sample), self.work.share(a, b));
        if let (Some(judged), Some(shares)) = (judged, shares) {
            let judgement = match judged {
                Affinity::High => 0,
                Affinity::Low => 1,
                Affinity::Unknown => 2,
            };
            self.counts.judged[usize::from(shares)][judgement] += 1;
        }
    }

    fn next(&mut self, core: usize, picked: usize, beside: Option<usize>, active: &VecDeque<usize>) -> usize {
        self.policy.next(core, picked, beside, active)
    }

    fn migrating(&mut self, from: usize, to: usize, tasks: &mut Vec<usize>) {
        self.policy.migrating(from, to, tasks);
    }
}

/// A load, a policy, and what disturbs them.
pub struct Run<'a, W> {
    /// Work of the tasks.
    pub work: W,
    /// Policy that decides.
    pub policy: &'a mut dyn Policy,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Other threads that wake.
    pub daemons: Daemons,
    /// Seed of all random draws.
    pub seed: u64,
}

impl<W: Work> Run<'_, W> {
    /// Runs until all tasks ended, or for so many ticks.
    pub fn run(mut self, most_ticks: u64) -> Counts {
        let mut random = Random::new(self.seed);
        let mut kernel = self.boot(&mut random);
        let tasks = self.work.tasks();
        let mut counts = Counts { ended: vec![0; tasks], ..Counts::default() };
        let mut since = vec![([Did::default(); THREADS], 0); self.cpus / THREADS];
        let mut ages = vec![0; tasks];
        let mut class = None;
        for now in 1..=most_ticks {
            if random.below(self.daemons.every.max(1)) == 0 {
                let cpu = random.below(self.cpus as u64) as usize;
                kernel.wake_daemon(cpu, 1 + random.below(self.daemons.longest) as u32);
            }
            work(&mut self.work, &kernel, &mut counts, &mut since, &mut ages);
            let wishes = self.policy.tick(now, &|| queues(&kernel));
            let before: Vec<usize> = (0..tasks).map(|task| kernel.cpu_of(task) / THREADS).collect();
            let mut watch =
                Watch { policy: self.policy, work: &self.work, counts: &mut counts, since: &mut since, ages: &ages };
            wishes.into_iter().for_each(|wish| fulfil(&mut kernel, wish, &mut watch));
            kernel.tick(&mut watch);
            for task in (0..tasks).filter(|task| self.work.is_done(*task)) {
                if watch.counts.ended[task] == 0 {
                    watch.counts.ended[task] = now;
                    kernel.end(task, &mut watch);
                    watch.policy.ended(task, now);
                }
            }
            counts.moves += (0..tasks).filter(|task| kernel.cpu_of(*task) / THREADS != before[*task]).count() as u64;
            classify(&self.work, &kernel, &mut counts, &mut class);
            counts.ticks = now;
            if counts.ended.iter().all(|ended| *ended > 0) {
                break;
            }
        }
        counts.schedules = kernel.schedules;
        counts
    }

    fn boot(&self, random: &mut Random) -> Kernel {
        let mut kernel = Kernel::new(self.cpus, random.below(TICKS_OF_A_TURN));
        match self.policy.start() {
            Some(cores) => {
                let mut next = vec![0; self.cpus / THREADS];
                for core in cores {
                    kernel.place(core * THREADS + next[core] % THREADS);
                    next[core] += 1;
                }
            }
            None => {
                let cpu = random.below(self.cpus as u64) as usize;
                let slice = 1 + random.below(u64::from(SLICE_TICKS)) as u32;
                kernel.fork(cpu, self.work.tasks(), slice);
            }
        }
        kernel
    }
}

/// The clock of ticks begins anywhere between two rounds of balancing.
const TICKS_OF_A_TURN: u64 = 200;

fn queues(kernel: &Kernel) -> Vec<[Vec<usize>; THREADS]> {
    let of = |core: usize| std::array::from_fn(|thread| kernel.tasks_of(core * THREADS + thread).collect());
    (0..kernel.cpus() / THREADS).map(of).collect()
}

/// Advances the work of all running tasks by a tick.
fn work<W: Work>(
    work: &mut W,
    kernel: &Kernel,
    counts: &mut Counts,
    since: &mut [([Did; THREADS], u64)],
    ages: &mut [u64],
) {
    for (core, (sum, ticks)) in since.iter_mut().enumerate() {
        let running = kernel.running_on(core);
        let did = work.tick(core, running);
        for (sum, did) in sum.iter_mut().zip(did) {
            sum.add(did);
            counts.did.add(did);
        }
        *ticks += 1;
        running.iter().flatten().for_each(|task| ages[*task] += 1);
        if let [Some(a), Some(b)] = running
            && let Some(shares) = work.share(a, b)
        {
            counts.pairs[usize::from(shares)] += 1;
        }
    }
}

fn fulfil(kernel: &mut Kernel, wish: Wish, desk: &mut dyn Desk) {
    match wish {
        Wish::Swap(a, b) => kernel.swap(a, b, desk),
        Wish::Move(task, core) => {
            let length = |thread: &usize| kernel.tasks_of(core * THREADS + thread).count();
            let shorter = (0..THREADS).min_by_key(length).unwrap_or(0);
            kernel.migrate(task, core * THREADS + shorter, desk);
        }
    }
}

/// Counts the placement of figure 11 where it is one.
fn classify<W: Work>(work: &W, kernel: &Kernel, counts: &mut Counts, before: &mut Option<usize>) {
    let tasks = work.tasks();
    if tasks != 8 || kernel.cpus() != 4 || counts.ended.iter().any(|ended| *ended > 0) {
        return;
    }
    let like_first = |task: usize| work.share(0, task) == Some(true) || task == 0;
    let mut by_cpu = [[0usize; 2]; 4];
    (0..tasks).for_each(|task| by_cpu[kernel.cpu_of(task)][usize::from(like_first(task))] += 1);
    let core = |core: usize| [0, 1].map(|group| by_cpu[core * 2][group] + by_cpu[core * 2 + 1][group]);
    let [other, first] = core(0);
    if other + first != 4 || work.share(0, 1).is_none() {
        return;
    }
    let class = [Class::Half, Class::One, Class::Apart][first.abs_diff(2)] as usize;
    counts.classes[class] += 1;
    if let Some(before) = before.replace(class).filter(|before| *before != class) {
        counts.changes[before][class] += 1;
    }
    for core in (0..2).filter(|_| class == Class::Half as usize) {
        match by_cpu[core * 2] {
            [2, 0] | [0, 2] => counts.halves[0] += 1,
            [1, 1] => counts.halves[1] += 1,
            _ => {}
        }
    }
}
