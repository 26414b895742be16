//! System calls and page faults, counted by entries of the kernel functions that serve them.

use crate::parts::file_name;
use nearmiss_record::entered::{system_call, system_call_without_arguments};
use nearmiss_record::model::{FunctionRow, ModelRecord};
use nearmiss_record::symbols::{PAGE_FAULT, Symbols};
use std::collections::{BTreeMap, HashMap};

/// Entries of the command's tasks, by name and module: where others ran the function too, its part by instructions.
pub(crate) fn calls(
    model: &ModelRecord,
    symbols: &Symbols,
    entries: &HashMap<u32, u64>,
) -> BTreeMap<(String, String), u64> {
    let (own, others) = (instructions(&model.functions), instructions(&model.other_functions));
    let mut calls = BTreeMap::new();
    for (index, entered) in entries {
        let Some(function) = symbols.functions.get(*index as usize) else { continue };
        let module = symbols.modules.get(function.module as usize).map_or("", String::as_str);
        let key = (function.name.as_str(), module);
        let [own, others] = [&own, &others].map(|sums| sums.get(&key).copied().unwrap_or(0));
        let all = u128::from((own + others).max(1));
        let part = (u128::from(*entered) * u128::from(own) + all / 2) / all;
        *calls.entry((function.name.clone(), file_name(module).to_owned())).or_default() += part as u64;
    }
    calls
}

fn instructions(rows: &[FunctionRow]) -> HashMap<(&str, &str), u64> {
    let mut sums = HashMap::new();
    for row in rows {
        *sums.entry((row.name.as_str(), row.module.as_str())).or_default() += row.tally.instructions;
    }
    sums
}

/// Returns the figures of the kernel's services: `syscalls`, `syscalls.read`, …, `faults`.
pub(crate) fn figures(calls: &BTreeMap<(String, String), u64>) -> BTreeMap<String, u64> {
    let entered = || calls.iter().filter(|(_, entered)| **entered > 0);
    let mut served: BTreeMap<&str, u64> = BTreeMap::new();
    for ((name, _), entered) in entered() {
        if let Some(call) = system_call(name) {
            *served.entry(call).or_default() += entered;
        }
    }
    for ((name, _), entered) in entered() {
        if let Some(call) = system_call_without_arguments(name) {
            served.entry(call).or_insert(*entered);
        }
    }
    let faults = entered().filter(|((name, _), _)| name == PAGE_FAULT).map(|(_, entered)| entered).sum();
    let all = served.values().sum();
    let by_name = served.into_iter().map(|(call, entered)| (format!("syscalls.{call}"), entered));
    by_name.chain([("syscalls".to_owned(), all), ("faults".to_owned(), faults)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_as_programs_name_them() {
        let entry = |name: &str, entered| ((name.to_owned(), "[kernel]".to_owned()), entered);
        let calls = [
            entry("__x64_sys_read", 7),
            entry("__ia32_sys_read", 1),
            entry("__x64_sys_openat", 2),
            entry("__do_sys_openat", 2),
            entry("__do_sys_getpid", 5),
            entry("asm_exc_page_fault", 90),
            entry("vfs_read", 8),
        ];
        let figures = figures(&calls.into_iter().collect());
        let seen: Vec<_> = figures.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(
            seen,
            [("faults", 90), ("syscalls", 15), ("syscalls.getpid", 5), ("syscalls.openat", 2), ("syscalls.read", 8)]
        );
    }
}
