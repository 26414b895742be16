//! A table of pairs from counters, learned while the command runs: how many misses each task has beside which others.

use super::plan_basis::PlanBasis;
use nearmiss_pairing::PairTable;
use nearmiss_pairing::table::LEAST_SAMPLES;
use nearmiss_workload::{CounterKind, TaskCounts};
use std::collections::HashMap;

/// Counts of a task in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Instructions.
    pub instructions: u64,
    /// Misses of the last level.
    pub misses: u64,
}

/// Counts of tasks, period by period.
pub trait Counters: Send {
    /// Returns the task's counts since the last call; none where it did nothing, is new, or cannot be counted.
    fn since_last(&mut self, task: i32) -> Option<Counted>;
    /// The task has ended.
    fn forget(&mut self, task: i32);
}

/// The kernel's counters of each task.
#[derive(Debug)]
pub struct KernelCounters {
    kind: CounterKind,
    /// None for a task that could not be counted.
    open: HashMap<i32, Option<TaskCounts>>,
}

impl KernelCounters {
    /// Errors: this machine has none of the kind.
    pub fn new(kind: CounterKind) -> std::io::Result<Self> {
        TaskCounts::open(0, kind)?;
        Ok(KernelCounters { kind, open: HashMap::new() })
    }
}

impl Counters for KernelCounters {
    fn since_last(&mut self, task: i32) -> Option<Counted> {
        let kind = self.kind;
        let counts = self.open.entry(task).or_insert_with(|| TaskCounts::open(task, kind).ok()).as_mut()?;
        let [instructions, misses] = counts.since_last().ok()?;
        (instructions > 0).then_some(Counted { instructions, misses })
    }

    fn forget(&mut self, task: i32) {
        self.open.remove(&task);
    }
}

/// Costs learned so far, by place of each task.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    table: PairTable,
    /// Mean instructions of a period, by task.
    work: Vec<f64>,
    periods: u64,
}

impl Learned {
    /// Takes a period in: what each task of the table did, and on which place it was. Misses for an instruction are
    /// charged to all who were on the same place, since who of them ran beside is unknown.
    pub fn add(&mut self, ran: &[(usize, usize, Counted)]) {
        self.periods += 1;
        let tasks = ran.iter().map(|(task, ..)| task + 1).max().unwrap_or(0);
        self.table.grow(tasks);
        self.work.resize(self.work.len().max(tasks), 0.0);
        for (task, place, counted) in ran {
            let share = 1.0 / self.periods as f64;
            self.work[*task] += (counted.instructions as f64 - self.work[*task]) * share;
            let rate = counted.misses as f64 / counted.instructions as f64;
            for (other, ..) in ran.iter().filter(|(other, at, _)| at == place && other != task) {
                self.table.add(*task, *other, rate);
            }
        }
    }

    /// Another task has this number now.
    pub fn forget(&mut self, task: usize) {
        self.table.forget(task);
        self.work.get_mut(task).into_iter().for_each(|work| *work = 0.0);
    }

    /// Returns the basis for a plan; while a pair of these tasks was seen too seldom, the turn at which all shall be
    /// mixed.
    pub fn known(&self, members: &[usize]) -> PlanBasis {
        let seldom = |a: &usize, b: &usize| self.table.beside(*a, *b).count() < LEAST_SAMPLES;
        let unseen = members.iter().enumerate().any(|(at, a)| members[at + 1..].iter().any(|b| seldom(a, b)));
        if unseen { PlanBasis::Mix(self.periods) } else { PlanBasis::Costs(self.table.costs(&self.work)) }
    }
}

/// Members in an order in which neighbours change with each turn, so that in `members − 1` turns each was next to each:
/// the first stays and the others go around, as in a tournament.
pub fn mixed(members: &[usize], turn: u64) -> Vec<usize> {
    let [first, others @ ..] = members else { return Vec::new() };
    if others.is_empty() {
        return vec![*first];
    }
    let mut around = others.to_vec();
    around.rotate_left((turn % others.len() as u64) as usize);
    let mut order = vec![*first];
    // Pairs are those across the circle: the n-th from the front beside the n-th from the back.
    order.push(around[0]);
    let (mut front, mut back) = (1, around.len());
    while front < back {
        back -= 1;
        order.push(around[front]);
        if front < back {
            order.push(around[back]);
        }
        front += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A period of four tasks on two places; 0 and 1 share well, and so do 2 and 3.
    fn period(places: [usize; 4]) -> Vec<(usize, usize, Counted)> {
        let good =
            |task: usize| (0..4).any(|other| other != task && places[other] == places[task] && other / 2 == task / 2);
        let counted = |task| Counted { instructions: 1000, misses: if good(task) { 10 } else { 50 } };
        (0..4).map(|task| (task, places[task], counted(task))).collect()
    }

    #[test]
    fn a_recorded_series_gives_the_table() {
        let mut learned = Learned::default();
        assert_eq!(learned.known(&[0, 1, 2, 3]), PlanBasis::Mix(0));
        for _ in 0..LEAST_SAMPLES {
            for places in [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] {
                learned.add(&period(places));
            }
        }
        let PlanBasis::Costs(costs) = learned.known(&[0, 1, 2, 3]) else { panic!("all pairs were seen") };
        let close = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
        // Two tasks, 1,000 instructions each, at 10 or 50 misses a thousand.
        assert!(close(costs.pair(0, 1), 20.0) && close(costs.pair(2, 3), 20.0) && close(costs.pair(0, 2), 100.0));
        learned.forget(3);
        assert_eq!(learned.known(&[0, 1, 2, 3]), PlanBasis::Mix(9));
        assert!(matches!(learned.known(&[0, 1, 2]), PlanBasis::Costs(_)));
    }

    #[test]
    fn in_one_turn_less_than_there_are_tasks_each_was_beside_each() {
        for tasks in [2usize, 4, 6, 8, 16] {
            let members: Vec<usize> = (10..10 + tasks).collect();
            let mut seen = BTreeSet::new();
            for turn in 0..tasks as u64 - 1 {
                for pair in mixed(&members, turn).chunks(2) {
                    seen.insert((pair[0].min(pair[1]), pair[0].max(pair[1])));
                }
            }
            assert_eq!(seen.len(), tasks * (tasks - 1) / 2, "{tasks}");
        }
        assert_eq!((mixed(&[], 5), mixed(&[3], 5)), (vec![], vec![3]));
        assert_eq!(mixed(&[1, 2, 3], 1).len(), 3);
    }

    #[test]
    fn the_kernels_own_counts_stand_in_where_there_are_no_hardware_counters() {
        let Ok(mut counters) = KernelCounters::new(CounterKind::StandIn) else {
            eprintln!("skipped: this kernel lets nobody count");
            return;
        };
        let own = std::process::id() as i32;
        counters.since_last(own);
        counters.forget(own);
        assert_eq!(counters.since_last(i32::MAX), None);
    }
}
