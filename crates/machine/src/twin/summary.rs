//! The slow engine's counters put together, and the invariant that it must keep.

use super::engine::Slow;
use crate::model::{CacheTotals, ModelTotals, Sites};
use nearmiss_record::machine::CacheKind;
#[cfg(test)]
use nearmiss_record::machine::Protocol;
use nearmiss_record::model::SetMap;
use std::collections::BTreeMap;

impl Slow {
    /// One writer or many readers: fails with the line that breaks it.
    #[cfg(test)]
    pub(super) fn check(&self) -> Result<(), String> {
        if self.plan.others.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let overlap = |a: usize, b: usize| self.plan.instances[a].cpus & self.plan.instances[b].cpus != 0;
        let mut holders: BTreeMap<u64, Vec<(usize, bool)>> = BTreeMap::new();
        for (at, table) in self.tables.iter().enumerate() {
            for resident in table.sets.iter().flatten().flatten() {
                let unit = (resident.line * table.line_bytes()) >> self.plan.unit_log2;
                holders.entry(unit).or_default().push((at, resident.dirty));
            }
        }
        for (unit, holders) in &holders {
            for &(a, dirty) in holders {
                for &(b, other_dirty) in holders {
                    let wrong = match self.plan.protocol {
                        Protocol::Moesi => dirty && other_dirty,
                        _ => dirty,
                    };
                    if wrong && !overlap(a, b) {
                        return Err(format!("unit {unit:#x}: caches {a} (modified) and {b} both hold it"));
                    }
                }
                let foreign =
                    |(last, writer): &(u64, usize)| last == unit && self.plan.instances[a].cpus >> writer & 1 == 0;
                if let Some((_, writer)) = self.last_writer.filter(foreign) {
                    return Err(format!("unit {unit:#x}: CPU {writer} wrote it and cache {a} still holds it"));
                }
            }
        }
        Ok(())
    }

    /// All counters put together.
    pub(super) fn totals(&self, sites: &Sites) -> ModelTotals {
        let mut pollution = BTreeMap::new();
        let mut totals = ModelTotals { nodes: self.nodes.clone(), ..ModelTotals::default() };
        for (number, config) in self.plan.configs.iter().enumerate() {
            let mut map = SetMap {
                cache: config.name.clone(),
                ways: config.ways as u32,
                misses: vec![0; config.sets as usize],
                conflict_misses: vec![0; config.sets as usize],
                lines: vec![0; config.sets as usize],
            };
            for (table, instance) in self.tables.iter().zip(&self.plan.instances).filter(|(_, i)| i.config == number) {
                for ((polluter, victim), misses) in table.pollution() {
                    *pollution.entry((number, polluter, victim)).or_insert(0) += misses;
                }
                for set in 0..config.sets as usize {
                    map.misses[set] += table.set_misses[set];
                    map.conflict_misses[set] += table.set_conflicts[set];
                    map.lines[set] += table.set_lines[set];
                }
                totals.caches.push(CacheTotals {
                    name: config.name.clone(),
                    level: config.level as u8 + 1,
                    instance: instance.number,
                    cpus: (0..64).filter(|cpu| instance.cpus >> cpu & 1 == 1).collect(),
                    accesses: table.accesses,
                    hits: table.hits,
                    fills: table.fills.len() as u64,
                    dirty_evictions: table.dirty_evictions,
                    line_misses: table.line_misses,
                    references: table.references,
                });
            }
            if config.kind != CacheKind::Instruction {
                totals.sets.push(map);
            }
        }
        totals.set_shared_lines(self.sharing.iter().map(|(&line, &(t, f))| (line, t, f)));
        let name = |c: usize| self.plan.configs[c].name.clone();
        totals.set_pollution(
            pollution.into_iter().map(|((c, p, v), misses)| (c, name(c), sites.site(p), sites.site(v), misses)),
        );
        totals
    }
}
