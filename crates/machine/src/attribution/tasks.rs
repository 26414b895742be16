//! Tasks that ran, by `task_struct`.

use super::ledger::{References, Row};
use nearmiss_record::maps::Event;
use nearmiss_record::reference::Usage;
use rustc_hash::FxHashMap;

/// One task while it lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    /// The `task_struct`; `None` for the first task of a CPU, until it is switched away.
    task: Option<u64>,
    /// The row that this one should have been, had its `task_struct` been known.
    pub same_as: Option<u32>,
    /// Thread and process; `None` while not known.
    pub identity: Option<Identity>,
    /// Whether all work of the task is the command's: earlier work, from before that was known, is another row's.
    pub of_command: bool,
    /// Last name known.
    pub comm: String,
    /// Kept references by mode (user, kernel); of an idle task only those in device interrupts.
    pub references: [References; 2],
    pub misses: [Row; 2],
    /// References that the filter dropped, and instructions.
    pub usage: Usage,
}

impl Task {
    /// Nothing was charged to the task yet.
    fn is_unused(&self) -> bool {
        self.references == <[References; 2]>::default()
            && self.misses == <[Row; 2]>::default()
            && self.usage == Usage::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub tid: u32,
    pub pid: u32,
}

/// All tasks of a run.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub rows: Vec<Task>,
    by_struct: FxHashMap<u64, u32>,
    by_tid: FxHashMap<u32, u32>,
}

impl Tasks {
    /// The row of a task of which nothing is known: the first on a CPU.
    pub fn first(&mut self) -> u32 {
        self.push()
    }

    /// The task of row `index` turns out to be `task`.
    pub fn was(&mut self, index: u32, task: u64) {
        if self.rows[index as usize].task.is_some() {
            return;
        }
        self.rows[index as usize].task = Some(task);
        match self.by_struct.get(&task) {
            Some(other) => self.rows[index as usize].same_as = Some(*other),
            None => {
                self.by_struct.insert(task, index);
            }
        }
    }

    /// The task of row `index` is this one, unless more is known.
    pub fn assume(&mut self, index: u32, tid: u32, pid: u32) {
        if self.rows[index as usize].identity.is_none() {
            self.identify(index, Identity { tid, pid });
        }
    }

    fn identify(&mut self, index: u32, identity: Identity) {
        self.rows[index as usize].identity = Some(identity);
        self.by_tid.insert(identity.tid, index);
    }

    /// Process of a row, `u32::MAX` while not known.
    pub fn pid(&self, index: u32) -> u32 {
        self.rows[index as usize].identity.map_or(u32::MAX, |i| i.pid)
    }

    /// Returns the row of a task with an unknown identity (so far).
    pub fn unknown(&mut self, task: u64) -> u32 {
        if let Some(index) = self.by_struct.get(&task) {
            return *index;
        }
        let index = self.push();
        self.rows[index as usize].task = Some(task);
        self.by_struct.insert(task, index);
        index
    }

    /// Returns the row of a task that a switch reported. A `task_struct` reused for another thread is another row.
    pub fn known(&mut self, task: u64, tid: u32, pid: u32, comm: &str) -> u32 {
        let identity = Identity { tid, pid };
        let mut index = self.unknown(task);
        if self.rows[index as usize].identity.is_some_and(|known| known != identity) {
            index = self.push();
            self.rows[index as usize].task = Some(task);
            self.by_struct.insert(task, index);
        }
        self.identify(index, identity);
        let row = &mut self.rows[index as usize];
        if row.comm != comm {
            comm.clone_into(&mut row.comm);
        }
        index
    }

    fn push(&mut self) -> u32 {
        self.rows.push(Task::default());
        self.rows.len() as u32 - 1
    }

    /// The row of the same task from when it turns out to be the command's, or not to be.
    pub fn belongs(&mut self, index: u32, of_command: bool) -> u32 {
        let row = &mut self.rows[index as usize];
        if row.of_command == of_command {
            return index;
        }
        if row.is_unused() {
            row.of_command = of_command;
            return index;
        }
        let (task, same_as, identity, comm) = (row.task, row.same_as, row.identity, row.comm.clone());
        self.rows.push(Task { task, same_as, identity, of_command, comm, ..Task::default() });
        let new = self.rows.len() as u32 - 1;
        for known in task.and_then(|task| self.by_struct.get_mut(&task)).into_iter().filter(|row| **row == index) {
            *known = new;
        }
        for known in identity.and_then(|i| self.by_tid.get_mut(&i.tid)).into_iter().filter(|row| **row == index) {
            *known = new;
        }
        new
    }

    /// Names change.
    pub fn event(&mut self, event: &Event) {
        if let Event::Name { tid, name, .. } = event
            && let Some(index) = self.by_tid.get(tid)
        {
            self.rows[*index as usize].comm.clone_from(name);
        }
    }

    /// Adds a report of dropped references.
    pub fn add_usage(&mut self, index: u32, usage: &Usage) {
        add_usage(&mut self.rows[index as usize].usage, usage);
    }
}

/// Sum of two reports.
pub(super) fn add_usage(sum: &mut Usage, usage: &Usage) {
    sum.user_instructions += usage.user_instructions;
    sum.kernel_instructions += usage.kernel_instructions;
    sum.user_loads += usage.user_loads;
    sum.kernel_loads += usage.kernel_loads;
    sum.user_stores += usage.user_stores;
    sum.kernel_stores += usage.kernel_stores;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change() {
        let mut tasks = Tasks::default();
        let first = tasks.known(0x1000, 50, 50, "sh");
        tasks.event(&Event::Name { pid: 50, tid: 50, exec: true, name: "sort".into() });
        assert_eq!(tasks.rows[first as usize].comm, "sort");
    }

    #[test]
    fn work_from_before_a_task_was_the_commands_keeps_its_row() {
        let mut tasks = Tasks::default();
        let a = tasks.known(0x1000, 50, 50, "a");
        assert_eq!(tasks.belongs(a, true), a, "it did nothing yet");
        tasks.add_usage(a, &Usage { user_loads: 1, ..Usage::default() });
        let b = tasks.belongs(a, false);
        assert_ne!(b, a);
        assert_eq!(tasks.known(0x1000, 50, 50, "a"), b);
        assert_eq!([a, b].map(|row| tasks.rows[row as usize].of_command), [true, false]);
        assert_eq!(tasks.rows[b as usize].usage, Usage::default());
    }

    #[test]
    fn a_reused_task_struct_is_another_task() {
        let mut tasks = Tasks::default();
        let a = tasks.known(0x1000, 50, 50, "a");
        assert_eq!(tasks.known(0x1000, 50, 50, "a"), a);
        assert_ne!(tasks.known(0x1000, 77, 77, "b"), a);
    }
}
