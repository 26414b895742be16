//! Waits that no remedy takes away, and what their author can do.

use crate::page_faults::PageFaults;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{MissClass, ModelRecord};
use nearmiss_record::units::Bytes;
use nearmiss_record::waits::{Reason, Waits};
use nearmiss_record::words::{grouped, percent};
use std::collections::BTreeSet;

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
    let PageFaults { cleared, different, cycles, .. } = PageFaults::of(model);
    let faults = cycles as f64 / model.totals.cycles.max(1) as f64;
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
             again. That takes {} of the cycles in page faults. Keep it in the program, or let its allocator keep it",
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
         makes it fit. Work through it in blocks that fit, make its elements smaller, or prefetch its next parts",
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
