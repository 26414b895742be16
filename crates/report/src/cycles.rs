//! Uses of the modelled cycles.

use crate::levels::Level;
use nearmiss_record::model::{ModelRecord, ShareRange};

/// Cycles with what they were spent on.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// Use of the cycles, for people.
    pub on: String,
    /// How many.
    pub cycles: u64,
    /// Range of the share, with what lay between the recorded parts.
    pub range: Option<ShareRange>,
}

/// The total's cycles by what they were spent on, in the order computing, caches from near to far, memory. Adds up to
/// the total's cycles.
pub fn spent(model: &ModelRecord, levels: &[Level]) -> Vec<Spent> {
    let totals = &model.totals;
    let stall_cycles = totals.stall_cycles.min(totals.cycles);
    let ranges = model.ranges.as_ref();
    let row = |on: &str, cycles, range| Spent { on: on.to_owned(), cycles, range };
    let computing = ranges.map(|of| ShareRange { low: 1.0 - of.all.high, high: 1.0 - of.all.low });
    let mut rows = vec![row("computing", totals.cycles - stall_cycles, computing)];
    let stalls = &model.stalls;
    let known = stalls.total();
    if known == 0 || known > stall_cycles {
        rows.push(row("waiting for caches and memory", stall_cycles, ranges.map(|of| of.all)));
    } else {
        for (index, cycles) in stalls.levels.iter().enumerate() {
            let name = levels.get(index).map_or_else(|| format!("L{}", index + 1), |l| l.name.clone());
            let range = ranges.and_then(|of| of.levels.get(index).copied());
            rows.push(row(&format!("waiting for {name}"), *cycles, range));
        }
        rows.push(row("waiting for another CPU", stalls.coherence, ranges.map(|of| of.coherence)));
        rows.push(row("first touches of memory", stalls.first_touch, ranges.map(|of| of.first_touch)));
        rows.push(row("waiting for memory", stalls.memory_local, ranges.map(|of| of.memory_local)));
        rows.push(row("waiting for remote memory", stalls.memory_remote, ranges.map(|of| of.memory_remote)));
        rows.push(row("mispredicted branches", stalls.mispredicted, ranges.map(|of| of.mispredicted)));
        rows.push(row("waiting otherwise", stalls.other + (stall_cycles - known), ranges.map(|of| of.other)));
    }
    rows.retain(|r| r.cycles > 0);
    rows
}
