//! Uses of the modelled cycles.

use crate::levels::Level;
use nearmiss_record::model::ModelRecord;

/// Cycles with what they were spent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Use of the cycles, for people.
    pub on: String,
    /// How many.
    pub cycles: u64,
}

/// The total's cycles by what they were spent on, in the order computing, caches from near to far, memory. Adds up to
/// the total's cycles.
pub fn spent(model: &ModelRecord, levels: &[Level]) -> Vec<Spent> {
    let totals = &model.totals;
    let stall_cycles = totals.stall_cycles.min(totals.cycles);
    let row = |on: &str, cycles| Spent { on: on.to_owned(), cycles };
    let mut rows = vec![row("computing", totals.cycles - stall_cycles)];
    let stalls = &model.stalls;
    let known = stalls.total();
    if known == 0 || known > stall_cycles {
        rows.push(row("waiting for caches and memory", stall_cycles));
    } else {
        for (index, cycles) in stalls.levels.iter().enumerate() {
            let name = levels.get(index).map_or_else(|| format!("L{}", index + 1), |l| l.name.clone());
            rows.push(row(&format!("waiting for {name}"), *cycles));
        }
        rows.push(row("waiting for another CPU", stalls.coherence));
        rows.push(row("first touches of memory", stalls.first_touch));
        rows.push(row("waiting for memory", stalls.memory_local));
        rows.push(row("waiting for remote memory", stalls.memory_remote));
        rows.push(row("waiting otherwise", stalls.other + (stall_cycles - known)));
    }
    rows.retain(|r| r.cycles > 0);
    rows
}
