//! Tasks of a process, and the daemon's record of each.

use nearmiss_workload::{CpuSet, TaskId};
use std::fs;

/// A task of the command.
#[derive(Debug)]
pub struct Task {
    pub id: TaskId,
    /// Number of the task in the table.
    pub slot: Option<usize>,
    /// Mask that the task gets back when all is over.
    pub original: CpuSet,
    /// Place that the task was put on.
    pub place: Option<usize>,
    /// Why the task is left alone, if it is.
    pub left: Option<Exempt>,
}

/// Why a task is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exempt {
    /// The program has set the task's mask.
    OwnMask,
    /// The task is a real-time task.
    RealTime,
}

/// A process's tasks and those of all its children, in the order in which they began, but none of our own.
pub fn tasks_under(process: &TaskId) -> Vec<TaskId> {
    let own = std::process::id() as i32;
    let (mut processes, mut found, mut next) = (vec![process.process], Vec::new(), 0);
    while let Some(process) = processes.get(next).copied() {
        next += 1;
        for task in tasks_of(process) {
            found.extend(TaskId::in_process(process, task));
            let children = children_of(process, task).into_iter();
            processes.extend(children.filter(|child| *child != own && !processes.contains(child)).collect::<Vec<_>>());
        }
    }
    // Tasks found under a number that has come round since are not ours.
    let is_there = process.is_there();
    found.retain(|_| is_there);
    found.sort_unstable();
    found
}

fn tasks_of(process: i32) -> Vec<i32> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children_of(process: i32, task: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{task}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_are_found_in_order_and_nothing_of_one_that_is_gone() {
        let own = TaskId::of(std::process::id() as i32).unwrap();
        let found = tasks_under(&own);
        assert!(found.first() == Some(&own) && found.len() >= 2 && found.is_sorted(), "{found:?}");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = TaskId::of(child.id() as i32).unwrap();
        child.wait().unwrap();
        assert_eq!(tasks_under(&gone), []);
    }
}
