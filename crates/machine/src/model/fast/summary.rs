//! Counters of the caches put together as totals.

use crate::model::cache::Cache;
use crate::model::fast::Sharing;
use crate::model::fast::plan::Plan;
use crate::model::sites::Sites;
use crate::model::totals::{CacheTotals, ModelTotals, Pollution, SHARED_LINES, SharedLine};
use nearmiss_record::machine::CacheKind;
use nearmiss_record::model::{BusTally, SetMap};
use nearmiss_record::policy::CallSite;
use std::collections::BTreeMap;

/// Totals without the CPUs' part.
pub(crate) fn summary(
    plan: &Plan,
    caches: &[Cache],
    nodes: Vec<BusTally>,
    sharing: &Sharing,
    sites: &Sites,
) -> ModelTotals {
    let mut pollution = BTreeMap::new();
    let mut sets: Vec<SetMap> = plan
        .configs
        .iter()
        .map(|config| SetMap {
            cache: config.name.clone(),
            ways: config.ways as u32,
            misses: vec![0; config.sets as usize],
            conflict_misses: vec![0; config.sets as usize],
            lines: vec![0; config.sets as usize],
        })
        .collect();
    let mut rows = Vec::new();
    for (at, cache) in caches.iter().enumerate() {
        let instance = &plan.instances[at];
        let config = plan.config(at);
        for (polluter, victim, misses) in cache.blames.counted() {
            *pollution.entry((instance.config, polluter, victim)).or_insert(0) += misses;
        }
        let map = &mut sets[instance.config];
        for (set, counts) in cache.sets.iter().enumerate() {
            map.misses[set] += counts.misses;
            map.conflict_misses[set] += counts.conflicts;
            map.lines[set] += counts.lines;
        }
        let line_misses = cache.line_misses();
        rows.push(CacheTotals {
            name: config.name.clone(),
            level: config.level as u8 + 1,
            instance: instance.number,
            cpus: (0..64).filter(|cpu| instance.cpus >> cpu & 1 != 0).collect(),
            accesses: cache.hits + line_misses.iter().sum::<u64>(),
            hits: cache.hits,
            fills: cache.fills,
            dirty_evictions: cache.dirty_evictions,
            line_misses,
            references: cache.misses.tally(),
        });
    }
    let mut config = 0..;
    sets.retain(|_| config.next().is_some_and(|i: usize| plan.configs[i].kind != CacheKind::Instruction));
    let mut totals = ModelTotals { caches: rows, nodes, sets, ..ModelTotals::default() };
    totals.set_shared_lines(sharing.iter().map(|(&line, &(t, f))| (line, t, f)));
    totals.set_pollution(
        pollution.into_iter().map(|((c, p, v), n)| (c, plan.configs[c].name.clone(), sites.site(p), sites.site(v), n)),
    );
    totals
}

impl ModelTotals {
    /// Keeps the lines that miss most.
    pub(crate) fn set_shared_lines(&mut self, lines: impl Iterator<Item = (u64, u64, u64)>) {
        self.shared_lines = lines
            .map(|(line_paddr, true_sharing, false_sharing)| SharedLine { line_paddr, true_sharing, false_sharing })
            .collect();
        self.shared_lines.sort_by_key(|l| (std::cmp::Reverse(l.true_sharing + l.false_sharing), l.line_paddr));
        self.shared_lines.truncate(SHARED_LINES);
    }

    /// Sorts the pairs of pollution: cache number, its name, polluter, victim, misses.
    pub(crate) fn set_pollution(&mut self, pairs: impl Iterator<Item = (usize, String, CallSite, CallSite, u64)>) {
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_by_key(|&(cache, _, polluter, victim, misses)| (std::cmp::Reverse(misses), cache, polluter, victim));
        self.pollution = pairs
            .into_iter()
            .map(|(_, cache, polluter, victim, misses)| Pollution { cache, polluter, victim, misses })
            .collect();
    }
}
