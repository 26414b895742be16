//! Parts of a policy that a trace's filter can carry.
//!
//! The filter is exact for the run as recorded ([`can_replay`](super::can_replay)). Each part of a policy changes the
//! references that the caches see, and so which would have hit. A trace carries the part if the filter sent all that
//! could miss under any policy of that part. The tap has a mode for each part that the plain filter cannot carry.
//!
//! **Addresses.** Objects that move change which lines share a set. The one-line filter has no sets: between two
//! touches of its line its CPU touched no other, wherever both lie. Bytes that leave their line (`Apart`, `Copies`) are
//! those of shared lines, which every filter sends whole while they are shared; what was dropped before that is counted, as for
//! the modelled order.
//!
//! **Stores** (`ordered_stores`). *Claim*: what is dropped hits, whichever plain stores are turned non-temporal, if the
//! filter's conditions hold and no line of the machine is longer than the filter's, or the filter has one line.
//! *Proof*: the tap sends every store and every fence, and a store makes its set forget. Each dropped reference is a
//! load of a line X, and X's set saw nothing since another load of X. That load was sent, or was dropped for the same
//! reason, so X was in the first level behind it. Only a non-temporal store to X's coherence unit could take it from
//! there otherwise than the filter's proof has it. One by this CPU would be a store to X's set, since the unit is X's
//! line; one by another CPU is a store to X, for which the tap makes every filter forget X. A store never hits
//! silently, so the write-combining buffers get every byte in its order. ∎ With one line any store of this CPU makes
//! the filter forget, regardless of the unit.
//!
//! **Tasks** (`by_task`). *Claim*: each task's references to user addresses may run on another CPU than they did, with
//! other tasks' references between them, if no other task uses that CPU's first level, nor an inclusive level over it.
//! *Proof*: each chunk, and each stay of a task on a vCPU, begins with an empty filter, so a dropped reference repeats
//! one of the same task in the same chunk: since then the task touched no other line of that set, and a task of the
//! same CPU comes between chunks only. Kernel addresses are left out of such a replay, but the kernel's references to
//! user addresses are kept: the filter goes by virtual address, so only those can stand for a user's. Another task's
//! store takes the line: a line that two tasks touch, one of them writing, is sent whole from when the second one came,
//! and no store is dropped that writes a byte for the first time. ∎ Drops before the second came are counted
//! ([`SideTables::lost_before_share`](nearmiss_record::side::SideTables)), as for the modelled order.
//!
//! The one-line filter that is cleared whenever another vCPU ran (`clear_on_slice`, without `by_task`) carries places
//! approximately: what it dropped repeats the line that its vCPU touched last, and a switch of tasks touches lines of the
//! kernel's. It tracks sharing between vCPUs only. For a line that tasks of one vCPU share, it sent what one task would
//! have sent, and so what they pass to each other on CPUs of their own is a lower bound.
//!
//! **Tasks in the recorded order** need no more than the run as recorded does, approximately. A filter of several lines
//! dropped what repeats the line that its vCPU touched last in that set. On another CPU, or behind another task of the
//! same CPU, the first such reference of a stay of a task on a vCPU might miss, and those behind it would not: at most
//! one miss for each line of the filter and each stay. A stay is as long as the recorder's slice, some hundred thousand
//! references.
//!
//! **Fields** (`every_access`). Bytes that leave their line for a place among those of other objects may miss wherever
//! they are used. The tap drops no access to data, so that nothing is left to prove.
//!
//! **Homes** change no set and no hit: every filter carries them. Pools need a record of who allocated what.
//!
//! **Wakes** concern when a server looks again. A trace of references has no waits.

use super::filter::must_clear;
use nearmiss_record::machine::Machine;
use nearmiss_record::run::Filter;

/// No filter at all: every reference to data was kept.
fn is_whole(filter: Filter) -> bool {
    filter.line_log2 == 0 || filter.every_access
}

/// Whether a replay may place the fields of objects anew.
pub fn can_place_fields(filter: Filter) -> Result<(), String> {
    if is_whole(filter) {
        return Ok(());
    }
    Err("the fields policy needs every access, and the trace's filter dropped repeated ones; record the run again with `nearmiss trace --carry fields`".into())
}

/// Whether a replay may move addresses (a color policy).
pub fn can_move_addresses(filter: Filter) -> Result<(), String> {
    if filter.index_bits == 0 || is_whole(filter) {
        return Ok(());
    }
    Err("the trace was made with a filter of several lines, which is exact only where lines stay; record it with the one-line filter".into())
}

/// Whether a replay may turn stores of chosen call sites non-temporal.
pub fn can_go_around(filter: Filter, machine: &Machine) -> Result<(), String> {
    let again = "record the run again with `nearmiss trace --carry stores`";
    if !filter.contexts {
        return Err(format!(
            "the store policy names call sites and the trace has no calling contexts; {again} and without --no-stacks"
        ));
    }
    if is_whole(filter) {
        return Ok(());
    }
    if !filter.ordered_stores {
        return Err(format!(
            "the store policy needs every store, and the trace's filter dropped repeated ones; {again}"
        ));
    }
    let longest = machine.caches.iter().map(|c| c.line.0.max(1).ilog2()).max().unwrap_or(0);
    if filter.index_bits > 0 && longest > filter.line_log2 {
        return Err(format!(
            "{} has lines of {} bytes, of which a non-temporal store takes all, and the trace was filtered by lines of {}; {again},addresses",
            machine.name,
            1u64 << longest,
            1u64 << filter.line_log2
        ));
    }
    Ok(())
}

/// Whether a replay may run tasks on other CPUs than they were recorded on.
pub fn can_place_tasks(filter: Filter) -> Result<(), String> {
    if is_whole(filter) || filter.by_task || is_one_line_and_cleared(filter) {
        return Ok(());
    }
    Err("the place policy moves tasks, and the trace's filter went by CPU; record the run again with `nearmiss trace --carry tasks`".into())
}

fn is_one_line_and_cleared(filter: Filter) -> bool {
    filter.index_bits == 0 && filter.clear_on_slice
}

/// Whether a replay may take pages from pools, by who allocated the block that lies there.
pub fn can_pool(filter: Filter) -> Result<(), String> {
    if filter.heap {
        return Ok(());
    }
    Err("the home policy has pools, and the trace has no heap events; record the run again without --no-heap".into())
}

/// An approximation of a replay of a trace that carries the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximation {
    /// The first level, where addresses move under a filter of several lines.
    MovedAddresses,
    /// Tasks without a place, and kernel addresses: no filter could help.
    LeftOut,
    /// The first level of CPUs that share a cache, at the edges of windows.
    WindowEdges,
    /// The first level, where tasks move under a filter of several lines that went by CPU.
    MovedTasks,
    /// Sharing among tasks of one CPU, under a filter that went by CPU.
    SharingOfOneCpu,
}

impl Approximation {
    /// Whether figures of the first level are off.
    pub fn is_of_first_level(self) -> bool {
        matches!(self, Approximation::MovedAddresses | Approximation::WindowEdges | Approximation::MovedTasks)
    }

    /// Whether a trace without a filter would lack this approximation.
    pub fn comes_of_filter(self) -> bool {
        self != Approximation::LeftOut
    }

    /// Returns the approximation as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Approximation::MovedAddresses => {
                "First-level figures are approximate: the policy moves addresses and the trace's filter of several lines assumed that they stay."
            }
            Approximation::LeftOut => "The place policy leaves out tasks that it does not name, and kernel addresses.",
            Approximation::WindowEdges => {
                "First-level figures of CPUs that share a cache are approximate under the place policy: a reference that the filter dropped may not have hit at the edge of a window."
            }
            Approximation::MovedTasks => {
                "First-level figures are approximate under the place policy: the trace's filter of several lines went by CPU (`--carry tasks` goes by task)."
            }
            Approximation::SharingOfOneCpu => {
                "What tasks that were recorded on one CPU pass to each other is a lower bound: the trace's filter went by CPU (`--carry tasks` goes by task)."
            }
        }
    }
}

/// Returns the approximations of a replay of a trace that carries the policy: one that moves addresses, one that places
/// tasks.
pub fn approximate_policy(filter: Filter, machine: &Machine, moves: bool, places: bool) -> Vec<Approximation> {
    let is_filtered = places && !is_whole(filter);
    let by_cpu = is_filtered && !filter.by_task;
    let all = [
        (Approximation::MovedAddresses, moves && can_move_addresses(filter).is_err()),
        (Approximation::LeftOut, places),
        (Approximation::WindowEdges, is_filtered && must_clear(machine)),
        (Approximation::MovedTasks, by_cpu && !is_one_line_and_cleared(filter)),
        (Approximation::SharingOfOneCpu, by_cpu),
    ];
    all.into_iter().filter_map(|(approximation, holds)| holds.then_some(approximation)).collect()
}
