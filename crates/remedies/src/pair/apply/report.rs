use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/pair-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/pair-applied/1";

/// The format of the record.
pub(in crate::pair) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/pair-applied/1`.
    pub schema: &'static str,
    /// `affinity`, or `sched_ext`.
    pub with: &'static str,
    /// Level that tasks of a group share.
    pub level: String,
    /// CPUs by domain.
    pub domains: Vec<String>,
    /// Source of the table of pairs.
    pub table: &'static str,
    /// Tasks that the command had.
    pub tasks: u64,
    /// Tasks in the table.
    pub known: u64,
    /// Masks that were set, again ones included; with sched_ext, none.
    pub set: u64,
    /// Times that a task went from one domain to another.
    pub moves: u64,
    /// Tasks with a mask that the program set itself.
    pub own_masks: u64,
    /// Tasks that were or became real-time tasks, and were left alone.
    pub real_time: u64,
    /// Masks that the kernel refused, or that the program's own left no room for.
    pub refused: u64,
    /// Masks given back at the end; those of tasks that ended need none.
    pub restored: u64,
    /// Acts of the scheduler in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Requested parts that do not reach this program or this machine, one sentence each.
    pub out_of_reach: Vec<String>,
}

/// Acts of the scheduler in the kernel, and the counts of the kernel's verifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Scheduler {
    /// Share of the time of pairs that pairs of high affinity had; none where no pair ran.
    pub high_share: Option<f64>,
    /// Share of the time of pairs that pairs of low affinity had; none where no pair ran.
    pub low_share: Option<f64>,
    /// Nanoseconds that two tasks of the table ran on one domain at the same time.
    pub pair_ns: u64,
    /// Times that a task was put on a CPU.
    pub dispatched: u64,
    /// Times that a task was chosen since it shares well with the one beside it.
    pub by_table: u64,
    /// Tasks that ran beside each other, by their numbers in the table.
    pub together: Vec<Together>,
    /// Time from opening the object to the attached scheduler, in ns.
    pub load_ns: u64,
    /// Time from the order to go to the kernel's word that the scheduler is gone, in ns.
    pub detach_ns: u64,
    /// Programs: each with the instructions that the verifier went through, and those that the kernel runs.
    pub programs: Vec<Verified>,
}

/// Two tasks of the table that ran beside each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Together {
    /// Numbers of the tasks in the table.
    pub tasks: [usize; 2],
    /// Time beside each other.
    pub ns: u64,
}

/// A program and the verifier's counts of its instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verified {
    /// Name of the program, and of the member of `sched_ext_ops` that it fills.
    pub name: String,
    /// Instructions that the verifier went through.
    pub verified: u32,
    /// Instructions after the verifier had rewritten the program.
    pub instructions: u32,
}

impl Report {
    /// How often a task was put beside others.
    pub fn acts(&self) -> u64 {
        self.scheduler.as_ref().map_or(self.set, |scheduler| scheduler.dispatched)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domains = self.domains.join(" | ");
        write!(
            out,
            "pair (measured): engaged with {} on {} of level {} ({domains}), {} by {} known of {}",
            self.with,
            counted(self.domains.len() as u64, "domain"),
            self.level,
            counted(self.known, "task"),
            self.table,
            self.tasks
        )?;
        if self.scheduler.is_none() {
            write!(out, ", {} set, {} later", counted(self.set, "mask"), counted(self.moves, "move"))?;
        }
        if self.own_masks > 0 {
            write!(out, ", {} left as the program set them", counted(self.own_masks, "mask"))?;
        }
        if self.real_time > 0 {
            write!(out, ", {} left alone", counted(self.real_time, "real-time task"))?;
        }
        if self.refused > 0 {
            write!(out, ", {} refused", self.refused)?;
        }
        if self.restored > 0 {
            write!(out, ", {} given back", counted(self.restored, "mask"))?;
        }
        if let Some(scheduler) = &self.scheduler {
            write!(out, "\n{scheduler}")?;
        }
        self.out_of_reach.iter().try_for_each(|what| write!(out, "\n{what}"))
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share));
        let verified: u64 = self.programs.iter().map(|program| u64::from(program.verified)).sum();
        write!(
            out,
            "scheduler (measured): {} of the time of pairs was high affinity, {} low; {} of {} choices by the table; loaded \
             in {:.2} s and detached in {:.2} s, the verifier went through {verified} instructions of {} programs",
            percent(self.high_share),
            percent(self.low_share),
            self.by_table,
            self.dispatched,
            self.load_ns as f64 / 1e9,
            self.detach_ns as f64 / 1e9,
            self.programs.len()
        )
    }
}
