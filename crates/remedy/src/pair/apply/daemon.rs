//! The daemon: it follows the tasks of a command, and puts those that the table knows on the domains where they cost least.

use super::domains::{Domains, sizes};
use super::report::Report;
use super::table::{Known, Table, mixed_groups};
use crate::CannotEngage;
use crate::follow::Follows;
use nearmiss_pairing::{Costs, Planner};
use nearmiss_workload::{CpuSet, GuardedMasks};
use std::fs;
use std::time::{Duration, Instant};

/// Tasks are moved only for as much of their cost: a move empties caches.
const PLANNER: Planner = Planner { least_gain: 0.02 };

/// A task of the command.
#[derive(Debug)]
struct Task {
    task: i32,
    process: i32,
    /// Its number in the table.
    slot: Option<usize>,
    /// What it is to have when all is over.
    original: CpuSet,
    /// The place it was put on.
    place: Option<usize>,
    /// Its program has set its mask.
    is_own: bool,
}

/// The daemon.
pub struct Daemon {
    table: Table,
    domains: Domains,
    /// Where tasks can be put: domains, or single CPUs where there is one domain.
    places: Vec<CpuSet>,
    override_masks: bool,
    period: Duration,
    due: Instant,
    masks: GuardedMasks,
    tasks: Vec<Task>,
    seen: usize,
    /// Look through `/proc` for tasks of this process, whose forks nobody tells.
    scan: Option<i32>,
    is_changed: bool,
    /// So far.
    report: Report,
}

impl Daemon {
    /// Of a process that has not run yet, or, with `scan`, of one that runs.
    pub fn new(
        pid: i32,
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
            scan: scan.then_some(pid),
            is_changed: false,
            report,
        };
        if scan {
            daemon.scan(pid)
        } else {
            daemon.admit(pid)
        }
        daemon.plan();
        Ok(daemon)
    }

    /// Gives all masks back. What was done.
    pub fn end(mut self) -> Report {
        self.report.restored = self.masks.restore();
        self.report
    }

    fn admit(&mut self, task: i32) {
        let order = self.seen;
        self.seen += 1;
        self.report.tasks += 1;
        let Ok(mask) = CpuSet::of_task(task) else { return };
        let Some(process) = process_of(task) else { return };
        // What began with a mask that we set inherited it.
        let inherited = self.tasks.iter().find(|parent| self.mask_set(parent) == Some(&mask));
        let original = inherited.map_or(mask, |parent| parent.original.clone());
        let is_own = self.tasks.first().is_some_and(|first| first.original != original);
        self.report.own_masks += u64::from(is_own);
        let slot = self.table.slot_of(order, |slot| self.tasks.iter().any(|task| task.slot == Some(slot)));
        self.report.known += u64::from(slot.is_some());
        self.is_changed |= slot.is_some();
        self.tasks.push(Task { task, process, slot, original, place: None, is_own });
    }

    fn mask_set(&self, task: &Task) -> Option<&CpuSet> {
        self.places.get(task.place?)
    }

    /// Tasks of a process that runs already, in the order in which they began.
    fn scan(&mut self, pid: i32) {
        let mut found = vec![pid];
        let mut next = 0;
        while let Some(process) = found.get(next).copied() {
            next += 1;
            for task in tasks_of(process) {
                if !self.tasks.iter().any(|known| known.task == task) {
                    self.admit(task);
                }
                found.extend(children_of(process, task).into_iter().filter(|child| *child != process));
            }
        }
    }

    /// Who is gone, and who has another mask than we set.
    fn refresh(&mut self) {
        for at in (0..self.tasks.len()).rev() {
            let Task { task, slot, .. } = self.tasks[at];
            let Ok(mask) = CpuSet::of_task(task) else {
                self.masks.forget(task);
                slot.into_iter().for_each(|slot| self.table.forget(slot, task));
                self.is_changed |= slot.is_some();
                self.tasks.remove(at);
                continue;
            };
            let expected = self.mask_set(&self.tasks[at]).unwrap_or(&self.tasks[at].original);
            if mask == *expected || self.tasks[at].is_own {
                continue;
            }
            let known = &mut self.tasks[at];
            (known.original, known.place, known.is_own) = (mask, None, !self.override_masks);
            self.masks.forget(task);
            self.report.own_masks += 1;
            self.is_changed |= slot.is_some();
        }
    }

    /// Puts the tasks of the table where they are best, those that can be moved.
    fn plan(&mut self) {
        self.is_changed = false;
        let members: Vec<usize> = (0..self.tasks.len()).filter(|at| self.is_member(&self.tasks[*at])).collect();
        let slots: Vec<usize> = members.iter().filter_map(|at| self.tasks[*at].slot).collect();
        let is_one_domain = self.domains.cpus.len() == 1;
        // Each on a CPU of its own: all run beside each other whatever is done.
        if members.len() < 2 || is_one_domain && members.len() <= self.places.len() {
            return;
        }
        let sizes = sizes(members.len(), &self.places.iter().map(CpuSet::len).collect::<Vec<_>>());
        let present: Vec<Option<usize>> = members.iter().map(|at| self.tasks[*at].place).collect();
        let places = match self.table.known(&slots) {
            Known::Mix(turn) => by_member(&mixed_groups(members.len(), &sizes, turn), members.len()),
            Known::Costs(costs) => {
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
        task.slot.is_some() && !task.is_own
    }

    fn put(&mut self, at: usize, place: usize) {
        let (masks, places) = (&self.masks, &self.places);
        let task = &mut self.tasks[at];
        if task.place == Some(place) {
            return;
        }
        let Some(cpus) = places.get(place) else { return };
        let has_room = cpus.iter().all(|cpu| task.original.contains(cpu));
        if !has_room || masks.set(task.process, task.task, &task.original, cpus).is_err() {
            self.report.refused += 1;
            return;
        }
        self.report.set += 1;
        self.report.moves += u64::from(task.place.is_some());
        task.place = Some(place);
    }

    fn period(&mut self) {
        self.due = Instant::now() + self.period;
        if let Some(pid) = self.scan {
            self.scan(pid);
        }
        self.refresh();
        let ran = |task: &Task| Some((task.slot?, task.task, task.place?));
        let ran: Vec<(usize, i32, usize)> = self.tasks.iter().filter_map(ran).collect();
        self.is_changed |= self.table.period(&ran);
    }
}

impl Follows for Daemon {
    fn look(&mut self, started: &[i32]) {
        started.iter().for_each(|task| self.admit(*task));
        if Instant::now() >= self.due {
            self.period();
        }
        if self.is_changed {
            self.plan();
        }
    }
}

/// Costs of these tasks alone, by their place among them.
fn among(costs: &Costs, slots: &[usize]) -> Costs {
    let mut among = Costs::new(slots.len());
    for (a, one) in slots.iter().enumerate() {
        among.set_alone(a, costs.alone(*one));
        slots.iter().enumerate().skip(a + 1).for_each(|(b, other)| among.set(a, b, costs.pair(*one, *other)));
    }
    among
}

/// Costs by which those that hurt each other come together: tasks of one CPU never run at the same time.
fn apart(costs: &Costs) -> Costs {
    let tasks = costs.tasks();
    let pairs = || (0..tasks).flat_map(|a| (a + 1..tasks).map(move |b| (a, b)));
    let most = pairs().map(|(a, b)| costs.pair(a, b)).fold(0.0, f64::max);
    let mut apart = Costs::new(tasks);
    pairs().for_each(|(a, b)| apart.set(a, b, most - costs.pair(a, b)));
    apart
}

fn by_member(groups: &[Vec<usize>], members: usize) -> Vec<usize> {
    let mut places = vec![0; members];
    for (place, group) in groups.iter().enumerate() {
        group.iter().filter(|member| **member < members).for_each(|member| places[*member] = place);
    }
    places
}

fn process_of(task: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

fn tasks_of(process: i32) -> Vec<i32> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut tasks: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tasks.sort_unstable();
    tasks
}

fn children_of(process: i32, task: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{task}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn costs(of: &[(usize, usize, f64)]) -> Costs {
        let mut costs = Costs::new(4);
        of.iter().for_each(|(a, b, cost)| costs.set(*a, *b, *cost));
        costs
    }

    #[test]
    fn tasks_that_hurt_each_other_take_turns_on_one_cpu() {
        // Chases 0 and 1 leave each other alone; streams 2 and 3 spoil everybody.
        let of = costs(&[(0, 1, 2.0), (2, 3, 4.0), (0, 2, 3.5), (0, 3, 3.5), (1, 2, 3.5), (1, 3, 3.5)]);
        let plan = PLANNER.plan(&apart(&of), &[None; 4], &[2, 2]).unwrap();
        // Either each chase with a stream (so that likes run at the same time), or likes on one CPU; the sums decide:
        // 2 + 4 run at the same time against 3.5 + 3.5.
        assert_ne!(plan.domain_of[0], plan.domain_of[1], "{plan:?}");
        assert_ne!(plan.domain_of[2], plan.domain_of[3], "{plan:?}");
    }

    #[test]
    fn costs_of_some_tasks_are_those_of_the_table() {
        let of = costs(&[(1, 3, 7.0), (0, 1, 5.0)]);
        assert_eq!(among(&of, &[3, 1]).pair(0, 1), 7.0);
        assert_eq!(by_member(&[vec![1], vec![0, 2]], 3), [1, 0, 1]);
    }
}
