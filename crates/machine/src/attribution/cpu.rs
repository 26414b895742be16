//! State of each CPU: its task and calling context.

use super::ledger::{References, Row};
use super::stack_tables::Visits;
use super::tasks::{Tasks, add_usage};
use crate::owner::{Class, Owner};
use nearmiss_record::reference::Usage;

#[derive(Debug)]
pub(super) struct Cpu {
    /// Row of the running task.
    pub task: u32,
    /// Process of the running task, `u32::MAX` while not known.
    pub pid: u32,
    pub context: u32,
    /// References of the command since the context was entered.
    here: u64,
    /// Instruction that made the last reference of the command.
    last_insn: u32,
    /// Last context of user mode: kernel mode has contexts of its own, which do not name the caller.
    user_context: u32,
    /// The last record was the kernel's.
    pub kernel: bool,
    /// References since the last change of the running task or of the work's owner, by user and kernel.
    pub pending: [References; 2],
    /// Kept references of each [`Owner`], on all tasks of this CPU.
    pub references: [References; 4],
    /// Misses of the command.
    pub misses: Row,
    /// References that the filter dropped while a task of the command ran.
    pub usage: Usage,
}

impl Cpu {
    pub fn new(task: u32) -> Self {
        Cpu {
            task,
            pid: u32::MAX,
            context: 0,
            here: 0,
            last_insn: 0,
            user_context: 0,
            kernel: false,
            pending: Default::default(),
            references: Default::default(),
            misses: Row::default(),
            usage: Usage::default(),
        }
    }

    /// Charges pending references to their owners.
    pub fn settle(&mut self, tasks: &mut Tasks, owner: Owner) {
        let pending = std::mem::take(&mut self.pending);
        for (kernel, references) in pending.iter().enumerate() {
            if matches!(owner, Owner::Command | Owner::Others) {
                tasks.rows[self.task as usize].references[kernel].add(references);
            }
            self.references[owner as usize].add(references);
        }
    }

    /// Adds the running task's report of dropped references.
    pub fn report(&mut self, tasks: &mut Tasks, class: Class, usage: &Usage) {
        tasks.add_usage(self.task, usage);
        if class == Class::Command {
            add_usage(&mut self.usage, usage);
        }
    }

    /// Another task runs: the one of this row, of this process.
    pub fn switch_to(&mut self, task: u32, pid: u32) {
        (self.task, self.pid) = (task, pid);
        self.user_context = 0;
        self.kernel = true;
    }

    /// Records from here on have this calling context.
    pub fn enter_context(&mut self, context: u32, visits: &mut Visits) {
        self.settle_context(visits);
        self.user_context = self.user_context();
        self.context = context;
    }

    /// Counts a kept reference of the command in its calling context.
    #[inline]
    pub fn visit(&mut self, insn: u32) {
        self.here += 1;
        self.last_insn = insn;
    }

    /// Charges the counts to the calling context.
    pub fn settle_context(&mut self, visits: &mut Visits) {
        visits.add(self.context, std::mem::take(&mut self.here), self.last_insn);
    }

    /// The calling context that user mode is or was in.
    pub fn user_context(&self) -> u32 {
        if self.kernel { self.user_context } else { self.context }
    }
}
