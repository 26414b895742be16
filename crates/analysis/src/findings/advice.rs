//! Waits that no remedy takes away, and what their author can do.

use nearmiss_record::machine::Machine;
use nearmiss_record::model::{FunctionRow, MissClass, ModelRecord, Tally};
use nearmiss_record::symbols::PAGE_FAULT;
use nearmiss_record::units::Bytes;
use nearmiss_record::waits::{Reason, Waits};
use nearmiss_record::words::{grouped, percent};
use std::collections::BTreeSet;

/// Functions with which Linux clears a page for user mode, 8 bytes a store (arch/x86/lib/clear_page_64.S).
const CLEARING: [&str; 3] = ["clear_page_orig", "clear_page_rep", "clear_page_erms"];
/// Functions that give a new page to a page fault.
const ANONYMOUS: [&str; 2] = ["do_anonymous_page", "do_huge_pmd_anonymous_page"];
/// More processes than a program and its wrapper leave pages to one another as they end.
const MOST_PROCESSES: usize = 2;
/// Memory that comes back this often is worth keeping.
const TIMES: u64 = 2;
/// Shares of the cycles from which faults and waits are worth a paragraph.
const LEAST_FAULTS: f64 = 0.05;
const LEAST_WAIT: f64 = 0.1;

/// Returns one paragraph for each kind of wait that stands out.
pub(crate) fn advice(model: &ModelRecord) -> Vec<String> {
    [fresh_memory(model), beyond_reach(model)].into_iter().flatten().collect()
}

/// Pages that the kernel clears for the command over and over, because it gives memory back and takes it again.
fn fresh_memory(model: &ModelRecord) -> Option<String> {
    let page_bytes = model.machine.memory.page_size.0.max(8);
    let clears = |row: &&FunctionRow| row.kernel && CLEARING.contains(&row.name.as_str());
    let clearing = || model.functions.iter().filter(clears).map(|row| &row.tally);
    let cleared = clearing().map(|tally| tally.stores).sum::<u64>() * 8 / page_bytes;
    // A line that was never in the last cache belongs to a page that was not cleared before.
    let first = |tally: &Tally| tally.levels.last().map_or(0, |level| level.class(MissClass::Compulsory));
    let line_bytes = model.machine.caches.last().map_or(64, |cache| cache.line.0);
    let different = clearing().map(first).sum::<u64>() * line_bytes / page_bytes;
    let has = |frames: &[String], names: &[&str]| frames.iter().any(|frame| names.contains(&frame.as_str()));
    let gives_pages =
        |frames: &[String]| has(frames, &[PAGE_FAULT]) && (has(frames, &ANONYMOUS) || has(frames, &CLEARING));
    let in_faults = model.stacks.iter().filter(|stack| gives_pages(&stack.frames));
    let faults = in_faults.map(|stack| stack.cycles).sum::<u64>() as f64 / model.totals.cycles.max(1) as f64;
    let processes: BTreeSet<u32> = model.tasks.iter().filter(|task| task.of_command).map(|task| task.pid).collect();
    if processes.len() > MOST_PROCESSES { None } else { kept(cleared, different, faults) }
}

/// `faults`: share of the command's cycles in page faults.
fn kept(cleared: u64, different: u64, faults: f64) -> Option<String> {
    let again = faults * (1.0 - different as f64 / cleared.max(1) as f64);
    let comes_back = cleared >= different.saturating_mul(TIMES);
    (comes_back && again >= LEAST_FAULTS).then(|| {
        format!(
            "The kernel cleared {} pages for the command, {} of them for the first time: memory is given back and taken \
             again. That takes {} of the cycles in page faults. Keep it in the program, or with glibc's malloc: \
             GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824",
            grouped(cleared),
            grouped(different),
            percent(again)
        )
    })
}

/// One object that is larger than the last cache, which misses for that.
fn beyond_reach(model: &ModelRecord) -> Option<String> {
    let (level, last) = last_level(&model.machine)?;
    let waits = Waits::new(model);
    let share = |cycles: u64| cycles as f64 / model.totals.cycles.max(1) as f64;
    let outermost = model.totals.levels.len().saturating_sub(1);
    let rows = model.objects.iter().filter_map(|row| {
        let bytes = row.size_bytes.filter(|bytes| *bytes > last.0)?;
        if waits.heaviest_level(&row.tally, MissClass::Capacity) != outermost {
            return None;
        }
        let waited = share(waits.of(&row.tally)[Reason::Capacity as usize]);
        (waited >= LEAST_WAIT).then_some((row, bytes, waited))
    });
    let (row, bytes, waited) = rows.max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(format!(
        "`{}` has {}, and {level} holds {last}: {} of the cycles wait for parts of it that were pushed out. No placement \
         makes it fit. Work through it in blocks that fit, make its elements smaller, or ask for its next parts ahead",
        row.name,
        Bytes(bytes),
        percent(waited)
    ))
}

/// Name and size of the outermost cache.
fn last_level(machine: &Machine) -> Option<(String, Bytes)> {
    machine.caches.iter().max_by_key(|cache| cache.level).map(|cache| (format!("L{}", cache.level), cache.size))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_comes_back_is_worth_keeping_and_other_memory_is_not() {
        let text = kept(10_000, 500, 0.4).unwrap();
        assert!(text.contains("cleared 10,000 pages") && text.contains("500 of them for the first time"), "{text}");
        assert!(text.contains("38% of the cycles in page faults"), "{text}");
        assert_eq!(kept(900, 500, 0.4), None, "most pages are cleared once");
        assert_eq!(kept(10_000, 500, 0.02), None, "faults cost nothing to speak of");
    }
}
