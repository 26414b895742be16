//! What each CPU is doing: which task, in which interrupt, in which calling context.

use super::ledger::{References, Row};
use super::stack_tables::Visits;
use super::tasks::{Tasks, add_usage};
use nearmiss_record::maps::Decoder;
use nearmiss_record::reference::Usage;

/// Whose the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The command's and the system's that serves it.
    Command = 0,
    /// Nobody's: the CPU has nothing to do.
    Idle = 1,
    /// The timer's.
    Tick = 2,
}

/// Interrupts nest no deeper than this; entries beyond are not told apart.
const MAX_NESTING: u32 = 60;

#[derive(Debug)]
pub(super) struct Cpu {
    /// Row of the running task.
    pub task: u32,
    /// Its process, `u32::MAX` while not known.
    pub pid: u32,
    idle: bool,
    /// One bit an interrupt handler entered and not left, the innermost lowest: 1 = the timer's.
    interrupts: u64,
    nesting: u32,
    mode: Mode,
    pub context: u32,
    /// References of the command since the context was entered.
    here: u64,
    /// The instruction that made the last of them.
    last_insn: u32,
    /// The last that user mode was in: kernel mode has contexts of its own, which do not say who called it.
    user_context: u32,
    /// The last record was the kernel's.
    pub kernel: bool,
    /// References since the running task or the mode changed, by user and kernel.
    pub pending: [References; 2],
    /// Kept references of idle and of ticks on all tasks of this CPU.
    pub apart: [References; 3],
    /// Of the command.
    pub references: References,
    /// Of the command.
    pub misses: Row,
    /// What the filter dropped while a task ran that was not idle.
    pub usage: Usage,
    pub decoder: Decoder,
}

impl Cpu {
    pub fn new(task: u32) -> Self {
        Cpu {
            task,
            pid: u32::MAX,
            idle: false,
            interrupts: 0,
            nesting: 0,
            mode: Mode::Command,
            context: 0,
            here: 0,
            last_insn: 0,
            user_context: 0,
            kernel: false,
            pending: Default::default(),
            apart: Default::default(),
            references: References::default(),
            misses: Row::default(),
            usage: Usage::default(),
            decoder: Decoder::default(),
        }
    }

    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Charges pending references to whom they belong.
    pub fn settle(&mut self, tasks: &mut Tasks) {
        let pending = std::mem::take(&mut self.pending);
        for (kernel, references) in pending.iter().enumerate() {
            if self.mode == Mode::Command {
                tasks.rows[self.task as usize].references[kernel].add(references);
                self.references.add(references);
            } else {
                self.apart[self.mode as usize].add(references);
            }
        }
    }

    /// The running task's report of what the filter dropped.
    pub fn report(&mut self, tasks: &mut Tasks, usage: &Usage) {
        tasks.add_usage(self.task, usage);
        if !self.idle {
            add_usage(&mut self.usage, usage);
        }
    }

    pub fn switch_to(&mut self, tasks: &mut Tasks, task: u64, tid: u32, pid: u32, comm: &str) {
        self.task = tasks.known(task, tid, pid, comm);
        self.pid = pid;
        self.idle = tid == 0;
        self.user_context = 0;
        self.kernel = true;
        // An interrupt that ends in a switch has been left by the task that goes on.
        (self.interrupts, self.nesting) = (0, 0);
        self.remember_mode();
    }

    /// Records from here on have this calling context.
    pub fn enter_context(&mut self, context: u32, visits: &mut Visits) {
        self.settle_context(visits);
        self.user_context = self.user_context();
        self.context = context;
    }

    /// Counts a kept reference in its calling context.
    #[inline]
    pub fn visit(&mut self, insn: u32) {
        if self.mode == Mode::Command {
            self.here += 1;
            self.last_insn = insn;
        }
    }

    /// Charges what was counted to the calling context.
    pub fn settle_context(&mut self, visits: &mut Visits) {
        visits.add(self.context, std::mem::take(&mut self.here), self.last_insn);
    }

    /// The calling context that user mode is or was in.
    pub fn user_context(&self) -> u32 {
        if self.kernel { self.user_context } else { self.context }
    }

    /// Enters an interrupt handler (`Some(of the timer)`) or leaves the innermost.
    pub fn interrupt(&mut self, entered: Option<bool>) {
        match entered {
            Some(timer) if self.nesting < MAX_NESTING => {
                self.interrupts = self.interrupts << 1 | u64::from(timer);
                self.nesting += 1;
            }
            Some(_) => {}
            None => {
                self.interrupts >>= 1;
                self.nesting = self.nesting.saturating_sub(1);
            }
        }
        self.remember_mode();
    }

    fn remember_mode(&mut self) {
        self.mode = if self.interrupts != 0 {
            Mode::Tick
        } else if self.idle && self.nesting == 0 {
            Mode::Idle
        } else {
            Mode::Command
        };
    }
}
