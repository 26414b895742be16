//! The daemon: it follows the tasks of a command, and puts those in the table on the domains where they cost least.

use super::domains::{Domains, sizes};
use super::followed::{Exempt, Task, tasks_under};
use super::plan_basis::PlanBasis;
use super::plans::{among, apart, by_member};
use super::refusals::is_real_time;
use super::report::Report;
use super::table::{Table, mixed_groups};
use crate::follow::Follows;
use nearmiss_analysis::CannotEngage;
use nearmiss_pairing::Planner;
use nearmiss_workload::{CpuSet, GuardedMasks, TaskId};
use std::time::{Duration, Instant};

/// Tasks are moved only for as much of their cost: a move empties caches.
const PLANNER: Planner = Planner { least_gain: 0.02 };

/// The daemon.
pub struct Daemon {
    table: Table,
    domains: Domains,
    /// Places for tasks: domains, or single CPUs where there is one domain.
    places: Vec<CpuSet>,
    override_masks: bool,
    period: Duration,
    due: Instant,
    masks: GuardedMasks,
    tasks: Vec<Task>,
    seen: usize,
    /// Look through `/proc` for tasks of this process: nothing announces its forks.
    scan: Option<TaskId>,
    is_changed: bool,
    /// Report so far.
    report: Report,
}

impl Daemon {
    /// Makes the daemon of a process that has not run yet, or, with `scan`, of one that runs.
    pub fn new(
        process: TaskId,
        scan: bool,
        table: Table,
        domains: Domains,
        period: Duration,
        override_masks: bool,
    ) -> Result<Self, CannotEngage> {
        let single = |cpus: &CpuSet| cpus.iter().map(|cpu| [cpu].into_iter().collect()).collect();
        let places = match domains.cpus.as_slice() {
            [one] => single(one),
            several => several.to_vec(),
        };
        let report = Report {
            schema: super::report::SCHEMA,
            with: "affinity",
            level: domains.level.to_string(),
            domains: domains.cpus.iter().map(ToString::to_string).collect(),
            table: table.source(),
            ..Report::default()
        };
        let mut daemon = Daemon {
            table,
            domains,
            places,
            override_masks,
            period,
            due: Instant::now() + period,
            masks: GuardedMasks::new()?,
            tasks: Vec::new(),
            seen: 0,
            scan: scan.then_some(process),
            is_changed: false,
            report,
        };
        if scan {
            daemon.scan(&process)
        } else {
            daemon.admit(process)
        }
        daemon.plan();
        Ok(daemon)
    }

    /// Gives all masks back. Returns the report.
    pub fn end(mut self) -> Report {
        self.report.restored = self.masks.restore();
        self.report
    }

    fn admit(&mut self, id: TaskId) {
        let order = self.seen;
        self.seen += 1;
        self.report.tasks += 1;
        let Ok(mask) = CpuSet::of_task(id.task) else { return };
        // A task that began with a mask of ours inherited it.
        let parent = self.tasks.iter().find(|parent| self.mask_set(parent) == Some(&mask));
        let original = parent.map_or_else(|| mask.clone(), |parent| parent.original.clone());
        if original != mask && self.masks.set(&id, &original, &original).is_err() {
            return;
        }
        let is_own = self.tasks.first().is_some_and(|first| first.original != original);
        let left = is_own.then_some(Exempt::OwnMask);
        self.report.own_masks += u64::from(is_own);
        let slot = self.table.slot_of(order, |slot| self.tasks.iter().any(|task| task.slot == Some(slot)));
        self.report.known += u64::from(slot.is_some());
        self.is_changed |= slot.is_some();
        self.tasks.push(Task { id, slot, original, place: None, left });
    }

    /// A task that ended before we could look took its turn all the same.
    fn admit_number(&mut self, task: i32) {
        match TaskId::of(task) {
            Some(id) => self.admit(id),
            None => {
                self.seen += 1;
                self.report.tasks += 1;
            }
        }
    }

    fn mask_set(&self, task: &Task) -> Option<&CpuSet> {
        self.places.get(task.place?)
    }

    /// Tasks of a process that runs already, in the order in which they began.
    fn scan(&mut self, process: &TaskId) {
        for id in tasks_under(process) {
            if !self.tasks.iter().any(|known| known.id == id) {
                self.admit(id);
            }
        }
    }

    /// Finds the tasks that are gone, and those with another mask than we set.
    fn refresh(&mut self) {
        for at in (0..self.tasks.len()).rev() {
            if self.look_at(at) {
                continue;
            }
            let Task { id, slot, .. } = self.tasks.remove(at);
            self.masks.forget(&id);
            slot.into_iter().for_each(|slot| self.table.forget(slot, id.task));
            self.is_changed |= slot.is_some();
        }
    }

    /// Takes a task as it is now: whether its program has set its mask since, or has made it a real-time task. False: it
    /// is gone, even if another one has its number.
    fn look_at(&mut self, at: usize) -> bool {
        let known = &self.tasks[at];
        let Some(mask) = CpuSet::of_task(known.id.task).ok().filter(|_| known.id.is_there()) else { return false };
        let expected = self.mask_set(known).unwrap_or(&known.original).clone();
        let is_real_time = is_real_time(known.id.task);
        if known.left.is_some() || mask == expected && !is_real_time {
            return true;
        }
        let mask_is_ours = mask == expected;
        let known = &mut self.tasks[at];
        known.place = None;
        if !mask_is_ours {
            known.original = mask;
            known.left = (!self.override_masks).then_some(Exempt::OwnMask);
            self.report.own_masks += 1;
        }
        if is_real_time {
            known.left = Some(Exempt::RealTime);
            self.report.real_time += 1;
        }
        // It gives back what it has of ours. The guardian tries again where the kernel does not let us now.
        if mask_is_ours && self.masks.set(&known.id, &known.original, &known.original).is_err() {
            self.report.refused += 1;
        } else {
            self.masks.forget(&known.id);
        }
        self.is_changed |= known.slot.is_some();
        true
    }

    /// Puts the tasks of the table where they are best, those that can be moved.
    fn plan(&mut self) {
        self.is_changed = false;
        let members: Vec<usize> = (0..self.tasks.len()).filter(|at| self.is_member(&self.tasks[*at])).collect();
        let slots: Vec<usize> = members.iter().filter_map(|at| self.tasks[*at].slot).collect();
        let is_one_domain = self.domains.cpus.len() == 1;
        // Each on a CPU of its own: all run beside each other in any case.
        if members.len() < 2 || is_one_domain && members.len() <= self.places.len() {
            return;
        }
        let sizes = sizes(members.len(), &self.places.iter().map(CpuSet::len).collect::<Vec<_>>());
        let present: Vec<Option<usize>> = members.iter().map(|at| self.tasks[*at].place).collect();
        let places = match self.table.known(&slots) {
            PlanBasis::Mix(turn) => by_member(&mixed_groups(members.len(), &sizes, turn), members.len()),
            PlanBasis::Costs(costs) => {
                let costs = among(&costs, &slots);
                let costs = if is_one_domain { apart(&costs) } else { costs };
                match PLANNER.plan(&costs, &present, &sizes) {
                    Some(plan) => plan.domain_of,
                    None => return,
                }
            }
        };
        members.into_iter().zip(places).for_each(|(at, place)| self.put(at, place));
    }

    fn is_member(&self, task: &Task) -> bool {
        task.slot.is_some() && task.left.is_none()
    }

    fn put(&mut self, at: usize, place: usize) {
        // The plan may be older than what the program did to its masks.
        if self.tasks[at].place == Some(place) || !self.look_at(at) || !self.is_member(&self.tasks[at]) {
            return;
        }
        let (masks, places) = (&self.masks, &self.places);
        let task = &mut self.tasks[at];
        let Some(cpus) = places.get(place) else { return };
        let has_room = cpus.iter().all(|cpu| task.original.contains(cpu));
        if !has_room || masks.set(&task.id, &task.original, cpus).is_err() {
            self.report.refused += 1;
            return;
        }
        self.report.set += 1;
        self.report.moves += u64::from(task.place.is_some());
        task.place = Some(place);
    }

    fn period(&mut self) {
        self.due = Instant::now() + self.period;
        if let Some(process) = self.scan {
            self.scan(&process);
        }
        self.refresh();
        let ran = |task: &Task| Some((task.slot?, task.id.task, task.place?));
        let ran: Vec<(usize, i32, usize)> = self.tasks.iter().filter_map(ran).collect();
        self.is_changed |= self.table.period(&ran);
    }
}

impl Follows for Daemon {
    fn look(&mut self, started: &[i32]) {
        started.iter().for_each(|task| self.admit_number(*task));
        if Instant::now() >= self.due {
            self.period();
        }
        if self.is_changed {
            self.plan();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::pair::kept::{KeptPairs, KeptTask};
    use std::process::Command;

    #[test]
    fn a_mask_that_the_program_sets_behind_a_plan_is_respected() {
        let all = CpuSet::allowed().unwrap();
        if all.len() < 2 {
            eprintln!("skipped: one CPU");
            return;
        }
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = TaskId::of(child.id() as i32).unwrap();
        let tasks = vec![KeptTask { order: 0, weight: 1.0, ..KeptTask::default() }];
        let table = Table::kept(KeptPairs { tasks, ..KeptPairs::default() });
        let single = |cpu: usize| [cpu].into_iter().collect::<CpuSet>();
        let cpus: Vec<CpuSet> = all.iter().take(2).map(single).collect();
        let domains = Domains { level: crate::pair::level::SharedLevel::L2, cpus: cpus.clone() };
        let mut daemon = Daemon::new(process, true, table, domains, Duration::from_secs(3600), false).unwrap();
        let mask = || CpuSet::of_task(process.task).unwrap();
        daemon.put(0, 0);
        assert_eq!(mask(), cpus[0]);
        let by_program =
            Command::new("taskset").args(["-p", "-c", &all.to_string(), &process.task.to_string()]).output();
        assert!(by_program.unwrap().status.success());
        daemon.put(0, 1);
        assert_eq!((mask(), daemon.report.own_masks, daemon.report.set), (all.clone(), 1, 1));
        let report = daemon.end();
        assert_eq!((mask(), report.restored), (all, 0));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
