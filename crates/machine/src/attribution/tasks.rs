//! Who ran: tasks by `task_struct`, and which of them belong to the command.

use super::ledger::{References, Row};
use nearmiss_record::maps::Event;
use nearmiss_record::reference::Usage;
use rustc_hash::{FxHashMap, FxHashSet};

/// One task while it lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    /// `None` for the first task of a CPU, until it is switched away.
    task: Option<u64>,
    /// The row that this one should have been, had its `task_struct` been known.
    pub same_as: Option<u32>,
    /// `None` until a switch told.
    pub identity: Option<Identity>,
    /// Last name known.
    pub comm: String,
    /// Kept references by mode (user, kernel); of an idle task only those in device interrupts.
    pub references: [References; 2],
    pub misses: [Row; 2],
    /// What the filter dropped, and instructions.
    pub usage: Usage,
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
    command: FxHashSet<u32>,
    /// Task that ran at the BEGIN mark: its process is the command's.
    root: Option<u32>,
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
        if self.root == Some(index) {
            self.command.insert(identity.pid);
        }
    }

    /// Process of a row, `u32::MAX` while not known.
    pub fn pid(&self, index: u32) -> u32 {
        self.rows[index as usize].identity.map_or(u32::MAX, |i| i.pid)
    }

    /// The row of a task whose identity is not known (yet).
    pub fn unknown(&mut self, task: u64) -> u32 {
        if let Some(index) = self.by_struct.get(&task) {
            return *index;
        }
        let index = self.push();
        self.rows[index as usize].task = Some(task);
        self.by_struct.insert(task, index);
        index
    }

    /// The row of a task that a switch told of. A `task_struct` that serves another thread than before is another row.
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

    /// The command starts in this task.
    pub fn begin(&mut self, index: u32) {
        self.root = Some(index);
        if let Some(identity) = self.rows[index as usize].identity {
            self.command.insert(identity.pid);
        }
    }

    /// Process `pid` belongs to the command.
    pub fn of_command(&self, pid: u32) -> bool {
        self.command.contains(&pid)
    }

    /// Forks make relatives, names change.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Fork { pid, parent, .. } if self.command.contains(parent) => {
                self.command.insert(*pid);
            }
            Event::Name { tid, name, .. } => {
                if let Some(index) = self.by_tid.get(tid) {
                    self.rows[*index as usize].comm.clone_from(name);
                }
            }
            _ => {}
        }
    }

    /// Adds a report of what the filter dropped.
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
    fn descendants_of_the_process_at_begin_are_the_commands() {
        let mut tasks = Tasks::default();
        let first = tasks.unknown(0x1000);
        tasks.begin(first);
        assert!(!tasks.of_command(50), "its identity is not known yet");
        assert_eq!(tasks.known(0x1000, 50, 50, "sh"), first);
        tasks.event(&Event::Fork { pid: 51, parent: 50, tid: 51 });
        tasks.event(&Event::Fork { pid: 52, parent: 51, tid: 52 });
        tasks.event(&Event::Fork { pid: 60, parent: 1, tid: 60 });
        assert_eq!([50, 51, 52, 60, 1].map(|p| tasks.of_command(p)), [true, true, true, false, false]);
        tasks.event(&Event::Name { pid: 50, tid: 50, exec: true, name: "sort".into() });
        assert_eq!(tasks.rows[first as usize].comm, "sort");
    }

    #[test]
    fn a_reused_task_struct_is_another_task() {
        let mut tasks = Tasks::default();
        let a = tasks.known(0x1000, 50, 50, "a");
        assert_eq!(tasks.known(0x1000, 50, 50, "a"), a);
        assert_ne!(tasks.known(0x1000, 77, 77, "b"), a);
    }
}
