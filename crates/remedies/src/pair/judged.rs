//! A run's pairs and schedules, and whether the chosen grouping holds when it is replayed as a whole.

use super::kept::{KeptPairs, KeptShared, KeptTask, SCHEMA};
use super::parted::{PartedRun, TaskCosts};
use super::schedules::Schedules;
use super::tasks::{Sample, Task};
use nearmiss_analysis::{CaseError, Traced, spread};
use nearmiss_machine::describe::{Approximation, Domains, approximate_policy};
use nearmiss_record::finding::{Base, LEAST_GAIN, Prediction};
use nearmiss_record::machine::Machine;

/// All that is known of the tasks of a run.
pub struct JudgedPairs {
    pub tasks: Vec<Task>,
    pub left_out: usize,
    pub domains: Domains,
    pub window: u64,
    pub windows: usize,
    pub records: u64,
    pub seen: TaskCosts,
    pub schedules: Schedules,
    pub placements: Vec<u64>,
    /// Cycles of a typical grouping by chance, and of ours, both replayed as a whole; by placement.
    pub whole: [Vec<f64>; 2],
}

impl JudgedPairs {
    /// Replays a run with windows of so many instructions.
    pub fn of(case: &Traced, domains: &Domains, window: u64) -> Result<Self, CaseError> {
        let none = || CaseError::Unfit("the run has no two tasks of the command to compare".to_owned());
        let sample = Sample::of(case, window).ok_or_else(none)?;
        let parted = PartedRun::new(case, &sample, domains.clone())?;
        let seen = parted.pairs()?;
        let schedules = Schedules::of(&seen, &parted.present(), domains);
        let mut whole = parted.groupings(&[&schedules.typical, &schedules.groups])?.into_iter();
        Ok(JudgedPairs {
            left_out: sample.left_out,
            domains: domains.clone(),
            window,
            windows: parted.windows(),
            records: parted.records(),
            placements: parted.placements.clone(),
            whole: [whole.next().unwrap_or_default(), whole.next().unwrap_or_default()],
            tasks: sample.tasks,
            seen,
            schedules,
        })
    }

    /// Leaves the pairs in the run's directory.
    pub fn keep(&self, case: &Traced) -> Result<(), CaseError> {
        self.kept(case.machine()).write(&case.run)
    }

    /// Returns the pairs for the run's directory; `machine` is the one that they were replayed on.
    fn kept(&self, machine: &Machine) -> KeptPairs {
        let tasks = self.tasks.iter().zip(&self.seen.alone);
        let tasks =
            tasks.map(|(task, weight)| KeptTask { order: task.order, name: task.name.clone(), weight: *weight });
        KeptPairs {
            schema: SCHEMA.to_owned(),
            shared: KeptShared::of(machine, &self.domains),
            nothing_proposed: self.proposed().is_none(),
            tasks: tasks.collect(),
            pairs: self.seen.samples.clone(),
        }
    }

    /// Share of the cycles by chance that our grouping saves, replayed as a whole: median, least, most of the placements.
    pub fn gain(&self) -> (f64, f64, f64) {
        let [typical, ours] = &self.whole;
        spread(typical.iter().zip(ours).map(|(typical, ours)| 1.0 - ours / typical.max(1.0)))
    }

    /// The grouping that is proposed: ours, if it saves enough on every placement and by its pairs too, some of which
    /// are certain. Among tasks that are all alike, one that began first differs from the others, and no pair gains by
    /// it.
    pub fn proposed(&self) -> Option<&[Vec<usize>]> {
        let (gain, low, _) = self.gain();
        let [high_pairs, low_pairs, _] = self.schedules.judged;
        let by_pairs = 1.0 - self.schedules.ours.cycles / self.schedules.standard.max(1.0);
        let certain = high_pairs > 0 && low_pairs > 0 && by_pairs >= LEAST_GAIN;
        (gain >= LEAST_GAIN && low >= LEAST_GAIN && certain).then_some(&self.schedules.groups)
    }

    /// Returns the proposal's savings of the command's cycles; nothing where none is made.
    pub fn prediction(&self, case: &Traced) -> Prediction {
        let (gain, low, high) = if self.proposed().is_some() { self.gain() } else { (0.0, 0.0, 0.0) };
        Prediction {
            gain,
            low,
            high,
            modelled_cycles: case.model.totals.cycles,
            of: Base::other("the cycles of these tasks in user mode"),
            placements: self.placements.clone(),
            overlap: case.machine().hidden_share(),
            approximate: self.approximate(case),
            ..Prediction::default()
        }
    }

    /// Lists the inexact parts, one sentence each.
    pub fn approximate(&self, case: &Traced) -> Vec<String> {
        let own = [
            "Waiting is not replayed: barriers and locks let tasks run at other times than here.".to_owned(),
            format!(
                "Each task is replayed by {} windows of {} instructions from late in its life, in user mode.",
                self.windows, self.window
            ),
        ];
        let policy = approximate_policy(case.filter, case.machine(), false, true);
        policy.into_iter().map(|one| one.sentence().to_owned()).chain(own).collect()
    }

    /// Whether the trace's filter carries the places of tasks with the first level too.
    pub fn is_exact(&self, case: &Traced) -> bool {
        let policy = approximate_policy(case.filter, case.machine(), false, true);
        !policy.into_iter().any(Approximation::comes_of_filter)
    }

    /// The name of a task.
    pub fn name(&self, task: usize) -> &str {
        self.tasks.get(task).map_or("", |task| &task.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::schedules::Schedule;

    /// Two tasks of which a grouping saves this much, by the pairs and replayed whole.
    fn judged(saves: f64) -> JudgedPairs {
        let schedules = Schedules {
            standard: 100.0,
            ours: Schedule { cycles: 100.0 - saves, moves: 1.0 },
            groups: vec![vec![0], vec![1]],
            judged: [1, 1, 0],
            ..Schedules::default()
        };
        JudgedPairs {
            tasks: Vec::new(),
            left_out: 0,
            domains: Domains { level: 2, cpus_each: 2, count: 2 },
            window: 50_000,
            windows: 4,
            records: 1000,
            seen: TaskCosts::of(vec![1.0; 2], Vec::new()),
            schedules,
            placements: vec![1, 2],
            whole: [vec![100.0; 2], vec![100.0 - saves; 2]],
        }
    }

    #[test]
    fn a_schedule_that_gains_too_little_is_not_proposed() {
        assert_eq!([1.0, 3.0].map(|saves| judged(saves).proposed().is_some()), [false, true]);
    }

    #[test]
    fn a_schedule_that_loses_on_some_placement_is_not_proposed() {
        let mut judged = judged(5.0);
        judged.whole[1][0] = 99.0;
        assert!(judged.proposed().is_none());
        judged.whole[1][0] = 95.0;
        judged.schedules.judged = [0, 1, 27];
        assert!(judged.proposed().is_none(), "no pair is certain to share well");
    }
}
