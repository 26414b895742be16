//! A task that nobody else is taken for.

use crate::proc;
use std::fs;

/// A task's number comes again once the task has ended; the number with the time at which the task began does not. So
/// this distinguishes a task from a later owner of its number, where holding a descriptor of each task would take a
/// descriptor of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId {
    /// Begin in clock ticks since the machine's start. First, so that tasks are ordered as they began.
    pub(crate) began: u64,
    /// Number of the task.
    pub task: i32,
    /// Number of the task's process.
    pub process: i32,
}

impl TaskId {
    /// The task that has this number now; none where nobody has.
    pub fn of(task: i32) -> Option<Self> {
        let began = proc::began(task, task)?;
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        Some(TaskId { began, task, process })
    }

    /// The task of this process that has this number now; none where the process has none. Cheaper.
    pub fn in_process(process: i32, task: i32) -> Option<Self> {
        Some(TaskId { began: proc::began(process, task)?, task, process })
    }

    /// Whether the task has not ended, or has ended and nobody has waited for it.
    pub fn is_there(&self) -> bool {
        proc::began(self.process, self.task) == Some(self.began)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn another_task_of_the_same_number_is_another() {
        let own = std::process::id() as i32;
        let task = TaskId::of(own).unwrap();
        assert!(task.is_there() && task.process == own);
        let later = TaskId { began: task.began + 1, ..task };
        assert!(!later.is_there() && later > task);
        assert_eq!(TaskId::of(i32::MAX), None);
        assert_eq!((TaskId::in_process(own, own), TaskId::in_process(1, own)), (Some(task), None));
    }
}
