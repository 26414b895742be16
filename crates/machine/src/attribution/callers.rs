//! Kernel waits by the command's code that caused them.
//!
//! Kernel mode has calling contexts of its own, which do not name the caller. So each task keeps its last place in user
//! mode: the instruction before a system call, or beside the one that faulted.

use super::names::Names;
use nearmiss_record::model::CallerRow;
use nearmiss_record::reference::Record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Most places that are kept apart.
const MAX_PLACES: usize = 1 << 18;
/// Most rows of the record.
const MAX_ROWS: usize = 64;

/// A place in user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UserSite {
    context: u32,
    insn: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Now {
    place: Option<UserSite>,
    /// Waited since the place was entered, and not in the sums yet.
    stall_cycles: u64,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Callers {
    cpus: Vec<Now>,
    /// Places of tasks that do not run, by row of the task.
    elsewhere: FxHashMap<u32, UserSite>,
    waited: FxHashMap<Option<UserSite>, u64>,
}

impl Callers {
    pub fn new(cpus: usize) -> Self {
        Callers { cpus: vec![Now::default(); cpus], elsewhere: FxHashMap::default(), waited: FxHashMap::default() }
    }

    /// User mode of the running task was seen in a calling context.
    #[inline]
    pub fn user(&mut self, vcpu: usize, context: u32, record: Record) {
        if self.cpus[vcpu].stall_cycles > 0 {
            self.flush(vcpu);
        }
        self.cpus[vcpu].place = Some(UserSite { context, insn: record.insn().0 });
    }

    /// The kernel waited while a task of the command ran.
    #[inline]
    pub fn waited(&mut self, vcpu: usize, stall_cycles: u64) {
        self.cpus[vcpu].stall_cycles += stall_cycles;
    }

    /// Another task runs.
    pub fn switch(&mut self, vcpu: usize, from: u32, to: u32) {
        self.flush(vcpu);
        match self.cpus[vcpu].place {
            Some(place) => self.elsewhere.insert(from, place),
            None => self.elsewhere.remove(&from),
        };
        self.cpus[vcpu].place = self.elsewhere.get(&to).copied();
    }

    fn flush(&mut self, vcpu: usize) {
        let now = &mut self.cpus[vcpu];
        let stall_cycles = std::mem::take(&mut now.stall_cycles);
        if stall_cycles == 0 {
            return;
        }
        let known = self.waited.len() < MAX_PLACES || self.waited.contains_key(&now.place);
        *self.waited.entry(if known { now.place } else { None }).or_default() += stall_cycles;
    }

    /// Returns the waits by function, most first; waits without a known caller are left out.
    pub fn rows(&mut self, names: &Names<'_>) -> Vec<CallerRow> {
        (0..self.cpus.len()).for_each(|vcpu| self.flush(vcpu));
        let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (place, stall_cycles) in &self.waited {
            if let Some(place) = place {
                let function = caller(names, *place);
                *sums.entry((names.function_name(function), names.module(function))).or_default() += stall_cycles;
            }
        }
        let row = |((function, module), kernel_stall_cycles): ((&str, &str), u64)| CallerRow {
            function: function.to_owned(),
            module: module.to_owned(),
            kernel_stall_cycles,
        };
        let mut rows: Vec<CallerRow> = sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.kernel_stall_cycles));
        rows.truncate(MAX_ROWS);
        rows
    }
}

/// Returns the innermost function that is no library's: the caller of `read` of the C library is of interest.
fn caller(names: &Names<'_>, place: UserSite) -> u32 {
    let innermost = names.function(place.insn);
    let outer = names.calls(place.context).into_iter().rev().map(|call| names.function(call));
    let is_library = |function: &u32| names.module(*function).contains(".so");
    std::iter::once(innermost).chain(outer).find(|function| !is_library(function)).unwrap_or(innermost)
}
