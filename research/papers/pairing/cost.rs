//! Cost of a call of the scheduler (figure 8): the lines that it touches, all from memory, since the product has
//! displaced them since the call before; and accesses to counters.

use super::kernel::TICKS_PER_SECOND;
use super::run::Counts;
use nearmiss_record::machine::Machine;

/// Lines of a call without counters: of the task that leaves 3, of the one that comes 4 with its stack, of the queue 2,
/// the array's bitmap.
const STANDARD_LINES: u64 = 10;
/// More of the paper's method: the sibling's queue and task; of both tasks the mean, a row of each bitmap and the
/// pointer; the table's head and the bitmap of who can run; of both tasks the entry of a score's list with the
/// neighbours and heads it leaves and enters.
const THEIR_LINES: u64 = 2 + 2 * 4 + 2 + 2 * 5;
/// More of ours: the sibling's queue and task; of both tasks the series and a row of each bitmap; the table's head and
/// the bitmap of who can run.
const OUR_LINES: u64 = 2 + 2 * 3 + 2;
/// Two counters of two hardware threads are read and set.
const COUNTER_ACCESSES: u64 = 8;
/// Cycles of an access to a model-specific register.
pub const COUNTER_ACCESS_CYCLES: u64 = 300;

/// A scheduler with a counted cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Linux 2.6.3.
    Standard,
    /// The paper's.
    Theirs,
    /// Ours, without the plan: that one is not the kernel's.
    Ours,
}

/// Cycles of a call.
pub fn call_cycles(scheduler: Scheduler, machine: &Machine) -> f64 {
    let line = u64::from(machine.latency.memory_local_cycles);
    let counters = COUNTER_ACCESSES * COUNTER_ACCESS_CYCLES;
    let cycles = match scheduler {
        Scheduler::Standard => STANDARD_LINES * line,
        Scheduler::Theirs => (STANDARD_LINES + THEIR_LINES) * line + counters,
        Scheduler::Ours => (STANDARD_LINES + OUR_LINES) * line + counters,
    };
    cycles as f64
}

/// Share of all CPUs' time, in percent, by the calls of these runs.
pub fn percent(call_cycles: f64, machine: &Machine, runs: &[Counts]) -> f64 {
    let calls: u64 = runs.iter().map(|counts| counts.schedules).sum();
    let ticks: u64 = runs.iter().map(|counts| counts.ticks).sum();
    let tick_cycles = f64::from(machine.clock_mhz) * 1e6 / TICKS_PER_SECOND as f64;
    calls as f64 * call_cycles / (ticks as f64 * tick_cycles * f64::from(machine.topology.cpus())) * 100.0
}
